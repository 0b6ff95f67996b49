"""A scenario: the system to simulate. Validated on creation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenly.core import LearningRule
from evenly.core.make import DEFAULT_SAMPLE_SIZE
from evenly.errors import InputError
from evenly.inputs import number_from, positive_number, shown, whole_number
from evenly.own_policy import check_class
from evenly.policies import DEFAULT, DELAYED, PolicyInfo, check_parameters, find_policy
from evenly.sim.sizes import best_index, check_sizes, most_tasks, tasks_by_class
from evenly.workload.arrivals import ArrivalProcess, parse_arrivals
from evenly.workload.delay import Delay, parse_delay
from evenly.workload.demand import MAX_LOAD, Phase, check_schedule, parse_schedule
from evenly.workload.pools import DEFAULT_UTILITY, PoolClass, parse_sizes, sizes_text
from evenly.workload.service import ServiceLaw, parse_service

MAX_POOLS = 10**9  # counts, not pools, are stored
MAX_NAMED_POOLS = 10**7  # where every pool is stored
MAX_TASKS = 10**8  # where every task is stored
MAX_SESSIONS = 2 * 10**7  # where every task is stored with the time at which it ends
MAX_SLOTS = 10**7  # where every slot is stored
MAX_FLYING = 10**6  # messages on the way
MAX_SQUARES = 2**62  # pools times tasks squared, which is summed in 64 bits
SHORTEST = 1e-15  # horizon
LONGEST = 1e100  # horizon; beyond it, areas under the curves overflow
SHORTEST_WINDOW = 1e-9  # in horizons
SERVICE_RATES = (1e-100, 1e100)
MAX_EVENTS = 1e15  # by the horizon; a clock with 53 bits cannot tell more apart
MAX_TURNS = 1e12  # periods of a wave by the horizon; beyond it, a sine is mostly rounding
MAX_SAMPLE_SIZE = 512
INTERVALS = (1e-6, 1e6)  # between two reports, in mean task times
DEFAULT_INTERVAL = 0.1
_CYCLES = 50
MAX_LEVELS = 10**6
_SHORT = 72  # characters of the setting in a one-line summary


OLD_NAMES = {"choices": "sample_size", "initial": "initial_tasks"}  # still accepted, here and in scenario files

_Class = TypeVar("_Class")


def _accept_old_names(scenario: type[_Class]) -> type[_Class]:
    """Let the constructor accept the former names of fields."""
    init: Any = scenario.__init__

    @wraps(init)
    def renaming(self: _Class, **values: object) -> None:
        init(self, **with_new_names(values))

    scenario.__init__ = renaming  # type: ignore[assignment]  # mypy keeps the signature of the dataclass
    return scenario


def with_new_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values under the current names; reject a name given in both spellings."""
    renamed: dict[str, Any] = {}
    for name, value in values.items():
        new = OLD_NAMES.get(name, name)
        if new in renamed:
            raise InputError(f"Give {new} once: {name} is its old name.")
        renamed[new] = value
    return renamed


@_accept_old_names
@dataclass(frozen=True, kw_only=True)
class Scenario:
    """`pools` pools under a policy and a demand, from an initial state up to the horizon.

    policy: a name of `evenly.policies.POLICIES`, or your own: a class with the methods of `evenly.own_policy`, or
        its name as "module:Class", which is imported when the run starts (default: threshold).
    pools: number of server pools (default: those of `sizes`).
    sizes: classes of pools of different sizes: a text such as "80*1,20*4" for 80 pools of size 1 and 20 of size 4,
        or a list of (count, size) pairs (default: all pools have size 1). Pools are numbered class by class.
    utility: what a task's share of its pool is worth: log, sqrt or rate (default: log). With sizes, or with a
        policy for these.
    load: offered load per pool; tasks arrive at rate pools * load * service_rate.
    schedule: load over time, instead of `load`: phases, or a text such as "0:5.5,20:10~1/4".
    threshold: where the threshold starts; it stays there unless `alpha` is given (default: 0 with `alpha`, else
        floor(load), the paper's optimum). Also the threshold of policy jbt (default: floor(load) + 1).
    alpha: makes the threshold learn; strictly between 0 and 1, taken as the decimal that was written.
    sample_size: pools that power-of-d samples (default: 2).
    capacity: tasks that fit into a pool; a task sent to a full pool is lost (default: no limit). Pull needs one.
    initial_tasks: tasks per pool at time 0, spread as evenly as possible, or a number for each (default: 0).
    service_rate: one over the mean task time (default: 1).
    service: how task times vary around their mean: a `ServiceLaw`, or a text such as "lognormal:cv=4" (default:
        "exponential"). Tasks at time 0 are as long as any other.
    arrivals: how arrivals vary around the load: an `ArrivalProcess`, or a text such as "renewal:cv=2" (default:
        "poisson").
    delay: how long tasks and messages are on the way, in mean task times: a number, or a text such as
        "exponential:0.01" for an exponential time with that mean, drawn for each (default: 0). A task is in its
        pool from its arrival there on.
    report_interval: mean task times between two reports of a pool, under stale-reports (default: 0.1).
    horizon: time at which the run ends (default: 200).
    warmup: time from which averages are taken (default: 0).

    A parameter that the policy does not take is rejected.

    Paper: Sec. 2; Sec. 4 (the remark on service rates: what counts is the offered load).
    """

    policy: str | type[Any] = DEFAULT
    pools: int = 0
    sizes: str | Sequence[PoolClass] | None = None
    utility: str | None = None
    load: float | None = None
    schedule: str | Sequence[Phase] | None = None
    threshold: int | None = None
    alpha: float | str | Decimal | None = None
    sample_size: int | None = None
    capacity: int | None = None
    initial_tasks: float | Sequence[int] | NDArray[np.int64] = 0
    service_rate: float = 1.0
    service: str | ServiceLaw = "exponential"
    arrivals: str | ArrivalProcess = "poisson"
    delay: float | str | Delay = 0.0
    report_interval: float | None = None
    horizon: float = 200.0
    warmup: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.policy, type):
            check_class(self.policy)
        _ = self.info  # checks the name
        self._keep("delay", self._checked_delay())
        self._keep_laws()
        if self.sizes is not None:
            self._keep("sizes", sizes_text(parse_sizes(self.sizes)))
            if self.pools == 0:
                self._keep("pools", sum(each.count for each in self.classes))
        self._keep("pools", whole_number("pools", self.pools, 1, MAX_POOLS if self.aggregate else MAX_NAMED_POOLS))
        if self.load is None and self.schedule is None:
            raise InputError("Give the load in tasks per pool, or a schedule.")
        if self.load is not None:
            self._keep("load", positive_number("load", self.load, MAX_LOAD))
            if self.schedule is not None:
                raise InputError("A scenario takes a load or a schedule, not both.")
        self._keep("service_rate", number_from("service_rate", self.service_rate, *SERVICE_RATES))
        phases = self.phases  # checks the schedule
        if not isinstance(self.schedule, str | None):
            self._keep("schedule", phases)
        self._check_times()
        self._check_policy()
        check_sizes(self)
        self._check_size(self._checked_start())

    def _keep(self, name: str, value: object) -> None:
        """Set a field to its checked value: plain numbers, also where NumPy's were given."""
        object.__setattr__(self, name, value)

    @cached_property
    def info(self) -> PolicyInfo:
        """The policy's name, and what it takes and needs."""
        return find_policy(self.policy, own=True)

    @property
    def aggregate(self) -> bool:
        """True if the policy needs only the number of pools at each level, or of each class there."""
        return self.info.aggregate and not self.networked and self.memoryless

    @cached_property
    def service_law(self) -> ServiceLaw:
        """How task times vary around their mean."""
        return parse_service(self.service)

    @cached_property
    def arrival_process(self) -> ArrivalProcess:
        """How arrivals vary around the load."""
        return parse_arrivals(self.arrivals)

    @property
    def memoryless(self) -> bool:
        """True if task times are exponential and arrivals Poisson, as in the paper."""
        return self.service_law.name == "exponential" and self.arrival_process.name == "poisson"

    @property
    def sized(self) -> bool:
        """True if pools have sizes, so that their utility is measured."""
        return self.sizes is not None or self.info.sized

    @cached_property
    def classes(self) -> tuple[PoolClass, ...]:
        """The classes of pools; one of size 1 if no sizes are given."""
        return (PoolClass(self.pools, 1.0),) if self.sizes is None else parse_sizes(self.sizes)

    @property
    def measure(self) -> str:
        """The utility: as given, else log."""
        return DEFAULT_UTILITY if self.utility is None else self.utility

    @property
    def message_delay(self) -> Delay:
        """How long tasks and messages are on the way, in mean task times."""
        return parse_delay(self.delay)

    @property
    def networked(self) -> bool:
        """True if what is on the way is simulated too: messages take time, or pools report at intervals."""
        return self.message_delay.mean > 0 or self.policy == "stale-reports"

    @property
    def fixed_tokens(self) -> bool:
        """True if the policy holds tokens, and its threshold never changes."""
        return self.policy in ("threshold", "jiq", "jbt") and self.alpha is None and not self.networked

    @property
    def memory(self) -> float:
        """Time in which the system forgets its state.

        That is a mean task time, unless messages or reports take longer. Pools then fill in turn, in a cycle that
        persists for dozens of delays or report intervals.

        Under another service law, the correlation of the number of tasks over time is the chance that a task in
        progress stays that long. Its integral is the mean remaining time of such a task, (1 + cv**2) / 2 mean task
        times, which is infinite if cv is. Bursty arrivals have a memory of their own.
        """
        slowest = max(self.message_delay.mean, self.interval if self.policy == "stale-reports" else 0.0)
        burst = self.arrival_process.burst
        longest = max((1 + self.service_law.cv**2) / 2, 1.0 if burst is None else burst.memory, 1.0)
        return (longest if slowest <= 1 else _CYCLES * slowest) / self.service_rate

    @property
    def interval(self) -> float:
        """Mean task times between two reports of a pool, under stale-reports."""
        return DEFAULT_INTERVAL if self.report_interval is None else self.report_interval

    @property
    def label(self) -> str:
        """The policy with its parameters, for text and pictures."""
        return self.info.label(threshold=self.initial_threshold, alpha=self.alpha, sample_size=self.sampled)

    @property
    def setting(self) -> str:
        """The pools and their load in one line, for text."""
        load = f"{self.load_at_start:g}" if self.schedule is None else self.schedule_text
        capacity = f", capacity {self.capacity}" if self.capacity is not None else ""
        delay = f", delay {self.delay}" if self.message_delay.mean > 0 else ""
        laws = "".join(f", {law}" for law in self.laws)
        sizes = "" if self.sizes is None else f" ({self.sizes})"
        return f"{self.pools:,} pools{sizes}, load {load}{capacity}{delay}{laws}"

    @property
    def laws(self) -> tuple[str, ...]:
        """The service law and the arrivals in words, where they are not those of the paper."""
        service, arrivals = self.service_law, self.arrival_process
        return (*([] if service.name == "exponential" else [f"{service} service"]),
                *([] if arrivals.name == "poisson" else [f"{arrivals} arrivals"]))  # fmt: skip

    @property
    def summary(self) -> str:
        """Policy, pools and load in one short line, with which results begin."""
        policy = self.label if self.alpha is None else f"{self.info.name} α={self.alpha}"  # noqa: RUF001
        setting = self.setting if len(self.setting) <= _SHORT else f"{self.setting[: _SHORT - 3]}..."
        return f"{policy}, {setting}"

    @property
    def schedule_text(self) -> str:
        """The demand as the option --schedule takes it; one phase if the load is constant."""
        return ",".join(map(str, self.phases))

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The demand, phase by phase; the first begins at 0."""
        if self.load is not None:
            return (Phase(0.0, float(self.load)),)
        if isinstance(self.schedule, str):
            return parse_schedule(self.schedule)
        given: Any = self.schedule
        return check_schedule(given if isinstance(given, Sequence) else [given])

    @property
    def steady(self) -> bool:
        """True if the load never changes."""
        return len(self.phases) == 1 and self.phases[0].amplitude == 0

    @property
    def load_at_start(self) -> float:
        """The load at time 0."""
        return self.phases[0].load

    def demand(self, time: float) -> float:
        """Return the offered load per pool at a time."""
        return next(phase for phase in reversed(self.phases) if phase.start <= time).load_at(time)

    @cached_property
    def rule(self) -> LearningRule | None:
        """The learning rule, if the threshold learns."""
        return None if self.alpha is None else LearningRule(self.alpha)

    @property
    def sampled(self) -> int:
        """Pools that power-of-d samples: as given, else 2, or 1 if there is only one pool."""
        return min(DEFAULT_SAMPLE_SIZE, self.pools) if self.sample_size is None else self.sample_size

    @property
    def initial_threshold(self) -> int:
        """The threshold at time 0: as given, else 0 when it learns, else the best that the capacity allows."""
        if self.threshold is not None:
            return self.threshold
        room = math.inf if self.capacity is None else self.capacity
        if self.policy == "jbt":
            return int(min(math.floor(self.load_at_start) + 1, room))
        if self.alpha is not None:
            return 0
        if self.policy == "threshold-utility":
            return self._best_index
        return int(min(math.floor(self.load_at_start), room - 1))

    @cached_property
    def _best_index(self) -> int:
        return best_index(self, self.load_at_start)

    def best_threshold(self, time: float) -> int:
        """Return the threshold that is best for the load at a time: its whole part, or an index with sizes."""
        load = self.demand(time)
        return best_index(self, load) if self.policy == "threshold-utility" else math.floor(load)

    @property
    def levels(self) -> int:
        """Numbers of tasks in a pool that a run keeps records of at first: from 0 to beyond load and start."""
        start = self.initial_tasks
        most = math.ceil(start) if isinstance(start, float) else max(start)
        peak = math.ceil(most_tasks(self, max(phase.load + phase.amplitude for phase in self.phases)))
        return max(64, most + 9, self.initial_threshold + 8, peak + 8)

    def tasks_at_start(self) -> NDArray[np.int64]:
        """Return the tasks of each pool at time 0."""
        if isinstance(self.initial_tasks, Sequence | np.ndarray):
            return np.asarray(self.initial_tasks, np.int64)
        low, fuller = self._even_split(self.initial_tasks)
        tasks = np.full(self.pools, low, np.int64)
        tasks[:fuller] += 1
        return tasks

    def tasks_by_class(self) -> list[NDArray[np.int64]]:
        """Return the number of pools of each class with at least i tasks at time 0."""
        return tasks_by_class(self)

    def at_least_at_start(self) -> NDArray[np.int64]:
        """Return the number of pools with at least i tasks at time 0, for i = 0, 1, ... up to the maximum."""
        if isinstance(self.initial_tasks, Sequence | np.ndarray):
            exactly = np.bincount(self.tasks_at_start())
            return np.cumsum(exactly[::-1])[::-1].astype(np.int64)
        low, fuller = self._even_split(self.initial_tasks)
        counts = [self.pools] * (low + 1) + [fuller] * (fuller > 0)
        return np.array(counts, np.int64)

    def _even_split(self, mean: float) -> tuple[int, int]:
        """Return the tasks that every pool has, and how many pools have one more, for this mean per pool."""
        low = math.floor(mean)
        return low, round((mean - low) * self.pools)

    def _checked_delay(self) -> str | float:
        """Return the delay as it is written, or raise InputError if the policy or the pools do not take one."""
        delay = parse_delay(self.delay)
        if delay.mean > 0 and self.policy not in DELAYED:
            raise InputError(f"delay is for policy {', '.join(DELAYED)}, not {self.info.name}.")
        return delay.written

    def _keep_laws(self) -> None:
        """Keep a law as it is written; one that a file or the caller filled with numbers stays an object.

        Its file is read once, and a saved result does not need it.
        """
        for name, law in (("service", self.service_law), ("arrivals", self.arrival_process)):
            has_numbers = law.name in ("empirical", "recorded")
            self._keep(name, law if has_numbers else str(law))
        if not self.memoryless and self.networked:
            late = "policy stale-reports" if self.policy == "stale-reports" else "a delay"
            raise InputError(
                f"{late[0].upper()}{late[1:]} needs exponential service and Poisson arrivals, "
                f"not {' and '.join(self.laws)}."
            )

    def _check_times(self) -> None:
        self._keep("horizon", number_from("horizon", positive_number("horizon", self.horizon), SHORTEST, LONGEST))
        self._keep("warmup", number_from("warmup", self.warmup, 0))
        if self.horizon - self.warmup < SHORTEST_WINDOW * self.horizon:
            raise InputError(
                f"The warm-up must end before the horizon {self.horizon:g}, not at {self.warmup:.12g}."
            )
        for phase in self.phases:
            if phase.amplitude and self.horizon / phase.period > MAX_TURNS:
                raise InputError(
                    f"A wave's period must be at least {self.horizon / MAX_TURNS:g} with the horizon "
                    f"{self.horizon:g}, not {phase.period:g}."
                )

    def _check_policy(self) -> None:
        if self.threshold is not None:
            lowest = 1 if self.policy == "jbt" else 0
            self._keep("threshold", whole_number("threshold", self.threshold, lowest, MAX_LEVELS))
        check_parameters([self.policy], vars(self))
        _ = self.rule  # checks alpha
        if isinstance(self.alpha, Decimal):
            self._keep("alpha", str(self.alpha))  # the same number, and what a saved result reads back
        elif isinstance(self.alpha, np.floating):
            self._keep("alpha", float(str(self.alpha)))  # the decimal that was written, also in 32 bits
        if self.sample_size is not None:
            self._keep("sample_size", whole_number("sample_size", self.sample_size, 1, MAX_SAMPLE_SIZE))
        if self.report_interval is not None:
            interval = number_from("report_interval", self.report_interval, *INTERVALS)
            self._keep("report_interval", interval)
        if self.policy == "power-of-d":
            whole_number("sample_size", self.sampled, 1, self.pools, why="the number of pools")
        if self.capacity is None:
            if self.policy == "pull":
                raise InputError("The policy pull needs a capacity: it holds one token for each free slot.")
            return
        self._keep("capacity", whole_number("capacity", self.capacity, 1, MAX_LEVELS))
        if self.policy == "pull" and self.pools * self.capacity > MAX_SLOTS:
            raise InputError(
                f"The policy pull stores every slot: at most {MAX_SLOTS} in total, "
                f"not {self.pools} pools with {self.capacity} each."
            )
        limit = {"threshold": self.capacity - 1, "jbt": self.capacity}.get(self.info.name)
        if limit is not None and self.initial_threshold > limit:
            raise InputError(
                f"The threshold must be at most {limit} with capacity {self.capacity}, "
                f"not {self.initial_threshold}."
            )

    def _checked_start(self) -> int:
        """Check the tasks at time 0, and return those of the fullest pool."""
        start: Any = self.initial_tasks
        if isinstance(start, np.ndarray) and start.ndim != 1:
            raise InputError(
                "initial_tasks must be a number or a flat list with one for each pool, "
                f"not an array of {start.ndim} dimensions."
            )
        if isinstance(start, Sequence | np.ndarray) and not isinstance(start, str | bytes):
            if len(start) != self.pools:
                raise InputError(
                    f"initial_tasks must have {self.pools} numbers, one for each pool, not {len(start)}."
                )
            tasks = tuple(whole_number("initial_tasks", count, 0, MAX_LEVELS) for count in start)
            self._keep("initial_tasks", tasks)
            most = max(tasks)
        else:
            mean = number_from("initial_tasks", start, 0, MAX_LEVELS)
            self._keep("initial_tasks", mean)
            most = math.ceil(mean)
        if self.capacity is not None and most > self.capacity:
            raise InputError(f"initial_tasks must be at most the capacity {self.capacity}, not {most}.")
        return most

    def _messages_on_the_way(self, peak: float) -> float:
        """Return about how many tasks and messages are on the way at the highest load."""
        if not self.networked:
            return 0.0
        per_task = {"power-of-d": 1 + 2 * self.sampled, "threshold": 3, "jsq": 2}.get(self.info.name, 1)
        flying = self.pools * peak * self.message_delay.mean * per_task
        if self.policy == "threshold":
            flying += 2 * self.pools  # a change of the threshold, and the answers
        if self.policy == "stale-reports":
            flying += self.pools * self.message_delay.mean / self.interval
        return flying

    def _check_size(self, most: int) -> None:
        """Reject a scenario that needs too much memory, or has too many events.

        `most` is the largest initial number of tasks in a pool.
        """
        peak = max(most, *(phase.load + phase.amplitude for phase in self.phases))
        if not self.aggregate and self.pools * peak > MAX_TASKS:
            raise InputError(
                f"The policy {self.info.name} stores every task: at most {MAX_TASKS} in total, "
                f"not {self.pools} pools with {peak:g} each."
            )
        burst = self.arrival_process.burst
        most_open = self.pools * (peak if burst is None else max(most, peak * burst.factors[1]))
        if not self.memoryless and most_open > MAX_SESSIONS:
            raise InputError(
                f"With {' and '.join(self.laws)}, every session is stored: at most {MAX_SESSIONS} in total, "
                f"not about {most_open:.2g}."
            )
        flying = self._messages_on_the_way(peak)
        if flying > MAX_FLYING:
            raise InputError(
                f"About {flying:.2g} messages would be on the way, more than {MAX_FLYING:.2g}: "
                "reduce delay, pools or load, or let pools report less often."
            )
        if self.pools * (2 * peak + 100) ** 2 > MAX_SQUARES:
            raise InputError(
                f"{self.pools} pools with {peak:g} tasks each are too many: reduce pools, load or initial_tasks."
            )
        events = max(2 * peak * self.pools, 1) * self.service_rate * self.horizon
        if self.policy == "stale-reports":
            events += self.pools / self.interval * self.service_rate * self.horizon
        if events > MAX_EVENTS:
            raise InputError(
                f"About {events:.0e} events by the horizon are too many: beyond {MAX_EVENTS:.0e} their times "
                "cannot be told apart. Reduce horizon, service_rate, pools or load."
            )


def checked_scenario(scenario: object) -> Scenario:
    """Return the scenario, or raise InputError if it is something else."""
    if not isinstance(scenario, Scenario):
        raise InputError(f"scenario must be a Scenario, not {shown(scenario)}.")
    return scenario
