"""A scenario: the system to simulate. Validated on creation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.core import LearningRule
from evenly.core.make import DEFAULT_SAMPLE_SIZE
from evenly.errors import InputError
from evenly.inputs import accept_other_names, shown
from evenly.policies import DEFAULT, PolicyInfo, find_policy
from evenly.sim import start
from evenly.sim.limits import DEFAULT_INTERVAL, DEFAULT_MARGIN
from evenly.sim.scenario_checks import check
from evenly.sim.sizes import best_index, most_tasks
from evenly.workload.arrivals import ArrivalProcess, parse_arrivals
from evenly.workload.delay import Delay, parse_delay
from evenly.workload.demand import Phase, check_schedule, parse_schedule
from evenly.workload.pools import DEFAULT_UTILITY, PoolClass, parse_sizes
from evenly.workload.service import ServiceLaw, parse_service

_CYCLES = 50
_SHORT = 72  # characters of the setting in a one-line summary


@accept_other_names
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
    sticky: share of the arrivals that are clients who return, and want the pool that they had: any pool, since
        they were away for long (default: 0). The others are placed by the policy.
    sticky_margin: a client gets its pool if that has at most the threshold plus this many tasks, or the mean of
        all pools plus this many under policies without a threshold; if not, the policy places it (default: 2).
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
    sticky: float = 0.0
    sticky_margin: int | None = None
    horizon: float = 200.0
    warmup: float = 0.0

    def __post_init__(self) -> None:
        check(self)

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
        tokens = self.policy in ("threshold", "jiq", "jbt") and self.alpha is None and not self.networked
        return tokens and not self.sticky  # a client that returns may go to a pool without a token

    @property
    def memory(self) -> float:
        """Time in which the system forgets its state.

        That is a mean task time, unless messages or reports take longer. Pools then fill in turn, in a cycle that
        persists for dozens of delays or report intervals.

        Other service laws and bursty arrivals have a memory of their own, which can be infinite.
        """
        slowest = max(self.message_delay.mean, self.interval if self.policy == "stale-reports" else 0.0)
        burst = self.arrival_process.burst
        longest = max(self.service_law.memory, 1.0 if burst is None else burst.memory, 1.0)
        return (longest if slowest <= 1 else _CYCLES * slowest) / self.service_rate

    @property
    def interval(self) -> float:
        """Mean task times between two reports of a pool, under stale-reports."""
        return DEFAULT_INTERVAL if self.report_interval is None else self.report_interval

    @property
    def margin(self) -> int:
        """Tasks beyond the threshold with which a pool still takes its clients back."""
        return DEFAULT_MARGIN if self.sticky_margin is None else self.sticky_margin

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
        returns = f", {self.stickiness}" if self.sticky else ""
        return f"{self.pools:,} pools{sizes}, load {load}{capacity}{delay}{laws}{returns}"

    @property
    def stickiness(self) -> str:
        """The clients who return, in words."""
        return f"{100 * self.sticky:g} % return within {self.margin}"

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
        if self.policy != "threshold-utility":
            return math.floor(load)
        return self._best_index if load == self.load_at_start else best_index(self, load)

    @property
    def levels(self) -> int:
        """Numbers of tasks in a pool that a run keeps records of at first: from 0 to beyond load and start."""
        start = self.initial_tasks
        most = math.ceil(start) if isinstance(start, float) else max(start)
        peak = math.ceil(most_tasks(self, max(phase.load + phase.amplitude for phase in self.phases)))
        return max(64, most + 9, self.initial_threshold + 8, peak + 8)

    def tasks_at_start(self) -> NDArray[np.int64]:
        """Return the tasks of each pool at time 0."""
        return start.tasks_of_pools(self)

    def tasks_by_class(self) -> list[NDArray[np.int64]]:
        """Return the number of pools of each class with at least i tasks at time 0."""
        return start.tasks_by_class(self)

    def at_least_at_start(self) -> NDArray[np.int64]:
        """Return the number of pools with at least i tasks at time 0, for i = 0, 1, ... up to the maximum."""
        return start.at_least(self)


def checked_scenario(scenario: object) -> Scenario:
    """Return the scenario, or raise InputError if it is something else."""
    if not isinstance(scenario, Scenario):
        raise InputError(f"scenario must be a Scenario, not {shown(scenario)}.")
    return scenario
