"""Checks of a scenario. Each rejects what it cannot be with one sentence, or keeps the checked value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from evenly.errors import InputError
from evenly.inputs import number_from, positive_number, whole_number
from evenly.own_policy import check_class
from evenly.policies import DELAYED, POLICIES, check_parameters
from evenly.sim.limits import (
    INTERVALS,
    LONGEST,
    MAX_EVENTS,
    MAX_FLYING,
    MAX_LEVELS,
    MAX_NAMED_POOLS,
    MAX_POOLS,
    MAX_SAMPLE_SIZE,
    MAX_SESSIONS,
    MAX_SLOTS,
    MAX_SQUARES,
    MAX_TASKS,
    MAX_TURNS,
    SERVICE_RATES,
    SHORTEST,
    SHORTEST_WINDOW,
)
from evenly.sim.sizes import check_sizes
from evenly.workload.delay import parse_delay
from evenly.workload.demand import MAX_LOAD
from evenly.workload.pools import parse_sizes, sizes_text

if TYPE_CHECKING:
    from evenly.sim.scenario import Scenario


def check(scenario: Scenario) -> None:
    """Check all fields, in an order in which each can rely on those before."""
    if isinstance(scenario.policy, type):
        check_class(scenario.policy)
    _ = scenario.info  # checks the name
    _keep(scenario, "delay", _checked_delay(scenario))
    _keep_laws(scenario)
    if scenario.sizes is not None:
        _keep(scenario, "sizes", sizes_text(parse_sizes(scenario.sizes)))
        if scenario.pools == 0:
            _keep(scenario, "pools", sum(each.count for each in scenario.classes))
    most = MAX_POOLS if scenario.aggregate else MAX_NAMED_POOLS
    _keep(scenario, "pools", whole_number("pools", scenario.pools, 1, most))
    if scenario.load is None and scenario.schedule is None:
        raise InputError("Give the load in tasks per pool, or a schedule.")
    if scenario.load is not None:
        _keep(scenario, "load", positive_number("load", scenario.load, MAX_LOAD))
        if scenario.schedule is not None:
            raise InputError("A scenario takes a load or a schedule, not both.")
    _keep(scenario, "service_rate", number_from("service_rate", scenario.service_rate, *SERVICE_RATES))
    phases = scenario.phases  # checks the schedule
    if not isinstance(scenario.schedule, str | None):
        _keep(scenario, "schedule", phases)
    _check_times(scenario)
    _check_policy(scenario)
    check_sizes(scenario)
    _check_sticky(scenario)
    _check_size(scenario, _checked_start(scenario))


def _keep(scenario: Scenario, name: str, value: object) -> None:
    """Set a field to its checked value: plain numbers, also where NumPy's were given."""
    object.__setattr__(scenario, name, value)


def _checked_delay(scenario: Scenario) -> str | float:
    """Return the delay as it is written, or raise InputError if the policy or the pools do not take one."""
    delay = parse_delay(scenario.delay)
    if delay.mean > 0 and scenario.policy not in DELAYED:
        raise InputError(f"delay is for policy {', '.join(DELAYED)}, not {scenario.info.name}.")
    return delay.written


def _keep_laws(scenario: Scenario) -> None:
    """Keep a law as it is written; one that a file or the caller filled with numbers stays an object.

    Its file is read once, and a saved result does not need it.
    """
    for name, law in (("service", scenario.service_law), ("arrivals", scenario.arrival_process)):
        has_numbers = law.name in ("empirical", "recorded")
        _keep(scenario, name, law if has_numbers else str(law))
    if scenario.networked:
        check_memoryless("Policy stale-reports" if scenario.policy == "stale-reports" else "A delay", scenario)


def check_memoryless(what: str, scenario: Scenario) -> None:
    """Reject other laws than the paper's for something that needs these."""
    if not scenario.memoryless:
        raise InputError(
            f"{what} needs exponential service and Poisson arrivals, not {' and '.join(scenario.laws)}."
        )


def _check_times(scenario: Scenario) -> None:
    _keep(
        scenario,
        "horizon",
        number_from("horizon", positive_number("horizon", scenario.horizon), SHORTEST, LONGEST),
    )
    _keep(scenario, "warmup", number_from("warmup", scenario.warmup, 0))
    if scenario.horizon - scenario.warmup < SHORTEST_WINDOW * scenario.horizon:
        raise InputError(
            f"The warm-up must end before the horizon {scenario.horizon:g}, not at {scenario.warmup:.12g}."
        )
    for phase in scenario.phases:
        if phase.amplitude and scenario.horizon / phase.period > MAX_TURNS:
            raise InputError(
                f"A wave's period must be at least {scenario.horizon / MAX_TURNS:g} with the horizon "
                f"{scenario.horizon:g}, not {phase.period:g}."
            )


def _check_policy(scenario: Scenario) -> None:
    if scenario.threshold is not None:
        lowest = 1 if scenario.policy == "jbt" else 0
        _keep(scenario, "threshold", whole_number("threshold", scenario.threshold, lowest, MAX_LEVELS))
    check_parameters([scenario.policy], vars(scenario))
    _ = scenario.rule  # checks alpha
    if isinstance(scenario.alpha, Decimal):
        _keep(scenario, "alpha", str(scenario.alpha))  # the same number, and what a saved result reads back
    elif isinstance(scenario.alpha, np.floating):
        _keep(scenario, "alpha", float(str(scenario.alpha)))  # the decimal that was written, also in 32 bits
    if scenario.sample_size is not None:
        _keep(scenario, "sample_size", whole_number("sample_size", scenario.sample_size, 1, MAX_SAMPLE_SIZE))
    if scenario.report_interval is not None:
        interval = number_from("report_interval", scenario.report_interval, *INTERVALS)
        _keep(scenario, "report_interval", interval)
    if scenario.policy == "power-of-d":
        whole_number("sample_size", scenario.sampled, 1, scenario.pools, why="the number of pools")
    if scenario.capacity is None:
        if scenario.policy == "pull":
            raise InputError("The policy pull needs a capacity: it holds one token for each free slot.")
        return
    _keep(scenario, "capacity", whole_number("capacity", scenario.capacity, 1, MAX_LEVELS))
    if scenario.policy == "pull" and scenario.pools * scenario.capacity > MAX_SLOTS:
        raise InputError(
            f"The policy pull stores every slot: at most {MAX_SLOTS} in total, "
            f"not {scenario.pools} pools with {scenario.capacity} each."
        )
    limit = {"threshold": scenario.capacity - 1, "jbt": scenario.capacity}.get(scenario.info.name)
    if limit is not None and scenario.initial_threshold > limit:
        raise InputError(
            f"The threshold must be at most {limit} with capacity {scenario.capacity}, "
            f"not {scenario.initial_threshold}."
        )


def _check_sticky(scenario: Scenario) -> None:
    """Check the clients who return. Only the kernel on levels knows them."""
    _keep(scenario, "sticky", number_from("sticky", scenario.sticky, 0, 1))
    if scenario.sticky_margin is not None:
        _keep(scenario, "sticky_margin", whole_number("sticky_margin", scenario.sticky_margin, 0, MAX_LEVELS))
    if not scenario.sticky:
        if scenario.sticky_margin is not None:
            raise InputError("sticky_margin needs sticky, the share of clients who return, above 0.")
        return
    takes = [name for name, info in POLICIES.items() if info.aggregate and not info.sized]
    if scenario.info.name not in takes:
        raise InputError(f"sticky is for policy {', '.join(takes)}, not {scenario.info.name}.")
    if scenario.sizes is not None:
        raise InputError("sticky is for pools of one size: leave out sizes.")
    if scenario.networked:
        raise InputError("sticky is for messages that take no time: leave out delay.")
    check_memoryless("sticky", scenario)


def _checked_start(scenario: Scenario) -> int:
    """Check the tasks at time 0, and return those of the fullest pool."""
    start: Any = scenario.initial_tasks
    if isinstance(start, np.ndarray) and start.ndim != 1:
        raise InputError(
            "initial_tasks must be a number or a flat list with one for each pool, "
            f"not an array of {start.ndim} dimensions."
        )
    if isinstance(start, Sequence | np.ndarray) and not isinstance(start, str | bytes):
        if len(start) != scenario.pools:
            raise InputError(
                f"initial_tasks must have {scenario.pools} numbers, one for each pool, not {len(start)}."
            )
        tasks = tuple(whole_number("initial_tasks", count, 0, MAX_LEVELS) for count in start)
        _keep(scenario, "initial_tasks", tasks)
        most = max(tasks)
    else:
        mean = number_from("initial_tasks", start, 0, MAX_LEVELS)
        _keep(scenario, "initial_tasks", mean)
        most = math.ceil(mean)
    if scenario.capacity is not None and most > scenario.capacity:
        raise InputError(f"initial_tasks must be at most the capacity {scenario.capacity}, not {most}.")
    return most


def _check_size(scenario: Scenario, most: int) -> None:
    """Reject a scenario that needs too much memory, or has too many events.

    `most` is the largest initial number of tasks in a pool.
    """
    peak = max(most, *(phase.load + phase.amplitude for phase in scenario.phases))
    if not scenario.aggregate and scenario.pools * peak > MAX_TASKS:
        raise InputError(
            f"The policy {scenario.info.name} stores every task: at most {MAX_TASKS} in total, "
            f"not {scenario.pools} pools with {peak:g} each."
        )
    burst = scenario.arrival_process.burst
    most_open = scenario.pools * (peak if burst is None else max(most, peak * burst.factors[1]))
    if not scenario.memoryless and most_open > MAX_SESSIONS:
        raise InputError(
            f"With {' and '.join(scenario.laws)}, every session is stored: at most {MAX_SESSIONS} in total, "
            f"not about {most_open:.2g}."
        )
    flying = _messages_on_the_way(scenario, peak)
    if flying > MAX_FLYING:
        raise InputError(
            f"About {flying:.2g} messages would be on the way, more than {MAX_FLYING:.2g}: "
            "reduce delay, pools or load, or let pools report less often."
        )
    if scenario.pools * (2 * peak + 100) ** 2 > MAX_SQUARES:
        raise InputError(
            f"{scenario.pools} pools with {peak:g} tasks each are too many: reduce pools, load or initial_tasks."
        )
    events = max(2 * peak * scenario.pools, 1) * scenario.service_rate * scenario.horizon
    if scenario.policy == "stale-reports":
        events += scenario.pools / scenario.interval * scenario.service_rate * scenario.horizon
    remedy = "Reduce horizon, service_rate, pools or load"
    if burst is not None:
        events += 2 * scenario.service_rate * scenario.horizon / sum(burst.lengths)
        remedy += ", or make bursts longer"
    if events > MAX_EVENTS:
        raise InputError(
            f"About {events:.0e} events by the horizon are too many: beyond {MAX_EVENTS:.0e} their times "
            f"cannot be told apart. {remedy}."
        )


def _messages_on_the_way(scenario: Scenario, peak: float) -> float:
    """Return about how many tasks and messages are on the way at the highest load."""
    if not scenario.networked:
        return 0.0
    per_task = {"power-of-d": 1 + 2 * scenario.sampled, "threshold": 3, "jsq": 2}.get(scenario.info.name, 1)
    flying = scenario.pools * peak * scenario.message_delay.mean * per_task
    if scenario.policy == "threshold":
        flying += 2 * scenario.pools  # a change of the threshold, and the answers
    if scenario.policy == "stale-reports":
        flying += scenario.pools * scenario.message_delay.mean / scenario.interval
    return flying
