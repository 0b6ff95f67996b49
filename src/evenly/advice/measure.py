"""Measure candidates for alpha against JSQ: exactly where that is quick, else by simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log
from typing import Any

from evenly.errors import InputError
from evenly.sim.intervals import half_width
from evenly.sim.result import Result
from evenly.sim.run import compare
from evenly.sim.scenario import Scenario
from evenly.theory.balance import optimal_thresholds
from evenly.theory.exact.law import ExactLaw, solve_exact
from evenly.workload.delay import Delay

Progress = Callable[[float], None]

EXACT_STATES = 2000
EVENTS = 2 * 10**6  # of a run, unless the shortest window has more
WARMUP = 10.0
SHORTEST_WINDOW = 12.0  # in mean task times
OVERLOAD = 2  # tasks above the load that every pool starts with
BATCHES, LEAST_BATCHES = 20, 5
BATCH_TASKS = 10.0  # mean task times that a batch lasts at least: correlations decay like exp(-t)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A candidate at one load, compared with JSQ; rates are per mean task time.

    `error` is half of the 95 % interval of the relative spread: 0 if exact, None if the run was too short to tell.
    `share_optimal` is None where messages take time: which threshold is best is not known then.
    """

    load: float
    spread: float
    jsq_spread: float
    error: float | None
    max_tasks: float
    jsq_max_tasks: float
    resync_per_task: float
    change_rate: float
    share_optimal: float | None

    @property
    def relative_spread(self) -> float:
        """Standard deviation over pools, relative to that of JSQ."""
        return self.spread / self.jsq_spread

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return {
            "load": self.load,
            "spread": self.spread,
            "jsq_spread": self.jsq_spread,
            "error": self.error,
            "max_tasks": self.max_tasks,
            "jsq_max_tasks": self.jsq_max_tasks,
            "resync_per_task": self.resync_per_task,
            "changes_rate": self.change_rate,
            "share_optimal": self.share_optimal,
            "relative_spread": self.relative_spread,
        }


def measure(
    pools: int,
    loads: Sequence[float],
    alphas: Sequence[float],
    seed: int,
    progress: Progress | None,
    delay: Delay,
) -> tuple[str, list[list[Measurement]]]:
    """Measure each alpha at each load. Return the method, and one row per alpha with one column per load."""
    rows = _solve(pools, loads, alphas, progress) if delay.mean == 0 else None
    if rows is not None:
        return "exact", rows
    return "simulation", _simulate(pools, loads, alphas, seed, progress, delay)


def _solve(
    pools: int, loads: Sequence[float], alphas: Sequence[float], progress: Progress | None
) -> list[list[Measurement]] | None:
    """Return exact measurements, one row per alpha; None if a chain has too many states."""
    columns: list[list[Measurement]] = []
    total = len(loads) * (len(alphas) + 1)
    try:
        for load in reversed(loads):  # the largest chains first
            laws = [solve_exact(policy="jsq", pools=pools, load=load, max_states=EXACT_STATES)]
            for alpha in alphas:
                laws.append(
                    solve_exact(policy="threshold", pools=pools, load=load, alpha=alpha, max_states=EXACT_STATES)
                )
                if progress is not None:
                    progress((len(columns) * (len(alphas) + 1) + len(laws)) / total)
            columns.append([_from_law(law, laws[0]) for law in laws[1:]])
    except InputError:  # all other bad input was rejected before
        return None
    return [list(row) for row in zip(*reversed(columns), strict=True)]


def _from_law(law: ExactLaw, jsq: ExactLaw) -> Measurement:
    return Measurement(
        load=law.load,
        spread=law.spread,
        jsq_spread=jsq.spread,
        error=0.0,
        max_tasks=law.max_tasks,
        jsq_max_tasks=jsq.max_tasks,
        resync_per_task=law.resync_per_task or 0.0,
        change_rate=law.change_rate or 0.0,
        share_optimal=_share_optimal(law.threshold_share or {}, law.load),
    )


def _simulate(
    pools: int,
    loads: Sequence[float],
    alphas: Sequence[float],
    seed: int,
    progress: Progress | None,
    delay: Delay,
) -> list[list[Measurement]]:
    """Return simulated measurements, one row per alpha."""
    window = max(SHORTEST_WINDOW, EVENTS / (2 * pools * loads[-1]))
    batches = min(BATCHES, floor(window / BATCH_TASKS))
    scenarios = []
    for load in loads:
        start = ceil(load) + OVERLOAD
        warmup = WARMUP + _learning_time(pools, load, delay)
        jsq = Scenario(
            policy="jsq",
            pools=pools,
            load=load,
            delay=delay,
            initial_tasks=start,
            warmup=warmup,
            horizon=warmup + window,
        )
        scenarios.append(jsq)
        scenarios += [_learning(jsq, alpha, start) for alpha in alphas]
    results = compare(
        scenarios,
        seed=seed,
        batches=batches if batches >= LEAST_BATCHES else 0,
        mean_holding_times=delay.mean == 0,
        progress=progress,
    )
    size = len(alphas) + 1
    groups = [results[place : place + size] for place in range(0, len(results), size)]
    return [[_from_results(group[1 + place], group[0]) for group in groups] for place in range(len(alphas))]


def _learning_time(pools: int, load: float, delay: Delay) -> float:
    """Return how long late messages keep the threshold from moving to where it belongs: a round trip per step."""
    steps = OVERLOAD + 1 + 2 * load * delay.mean
    slowest = log(pools) + 1 if delay.exponential else 1.0  # of all pools, compared with the mean
    return 2 * delay.mean * slowest * steps


def _learning(jsq: Scenario, alpha: float, start: int) -> Scenario:
    return Scenario(
        pools=jsq.pools,
        load=jsq.load,
        delay=jsq.delay,
        alpha=alpha,
        threshold=ceil(start * (1 + 2 * jsq.message_delay.mean)),
        initial_tasks=start,
        warmup=jsq.warmup,
        horizon=jsq.horizon,
    )


def _from_results(result: Result, jsq: Result) -> Measurement:
    load = result.scenario.load_at_start
    ratios = [one.spread / other.spread for one, other in zip(result.windows, jsq.windows, strict=True)]
    return Measurement(
        load=load,
        spread=result.spread,
        jsq_spread=jsq.spread,
        error=half_width(ratios) if len(ratios) > 1 else None,
        max_tasks=result.max_tasks,
        jsq_max_tasks=jsq.max_tasks,
        resync_per_task=result.resync_per_task,
        change_rate=result.change_rate,
        share_optimal=None if result.scenario.networked else _share_optimal(result.threshold_share, load),
    )


def _share_optimal(time_at: dict[int, float], load: float) -> float:
    return sum(time_at.get(threshold, 0.0) for threshold in optimal_thresholds(load))
