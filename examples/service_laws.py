"""Measure whether the learned threshold settles under other service laws and arrivals, how fast, and how evenly.

500 pools, load 5.5, alpha 0.93, so that the optimum is 5. "Up" is the time at which the threshold first reaches 5
in a system that starts empty. "Down" is that time after the load has dropped from 9 to 5.5. Both are predicted
from the mean number of tasks per pool, which is known for every law: load * E[min(S, t)] in a system that starts
empty, and 5.5 + 3.5 * (1 - E[min(S, t)]) after the drop. In a balanced system, the threshold rises to 5 when there
are 5 tasks per pool, and falls to 5 when there are 5 + alpha. "At 5" and what follows are averages of one long
run, which starts with 5.5 tasks per pool at threshold 5. "Apart" is the largest difference between the spread and
that of JSQ at the same time, in the systems that start empty.

    python -m examples.service_laws --out docs/images/service-laws.png
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy import integrate, optimize

from evenly import Result, Scenario, compare, simulate
from evenly.plots.style import BLUE, GREEN, INK, ORANGE, PURPLE, RED, saved_figure

Survival = Callable[[float], float]


def balanced_mixture(cv: float) -> Survival:
    """Return the law of two exponentials with balanced means."""
    part = (1 + math.sqrt((cv**2 - 1) / (cv**2 + 1))) / 2
    return lambda t: part * math.exp(-2 * part * t) + (1 - part) * math.exp(-2 * (1 - part) * t)


def two_stages(first: float, second: float, chance: float) -> Survival:
    """Return the Coxian law of two stages with these means, the second with this probability, scaled to mean 1."""
    mean = first + chance * second
    fast, slow = mean / first, mean / second
    weight = chance * fast / (fast - slow)
    return lambda t: (1 - weight) * math.exp(-fast * t) + weight * math.exp(-slow * t)


def lognormal(cv: float) -> Survival:
    """Return the lognormal law."""
    variance = math.log(1 + cv**2)
    return lambda t: math.erfc((math.log(t) + variance / 2) / math.sqrt(2 * variance)) / 2


def bounded_pareto(shape: float, ratio: float) -> Survival:
    """Return the Pareto law whose largest value is `ratio` times the smallest."""
    cut = ratio**-shape
    mean = shape / (shape - 1) * (1 - ratio * cut) / (1 - cut)  # if the smallest value is 1
    return lambda t: min(max(((t * mean) ** -shape - cut) / (1 - cut), 0.0), 1.0)


# P(S > t) for laws with mean 1. Predictions come from these formulas, not from the simulator's draws.
SERVICES: dict[str, Survival] = {
    "exponential": lambda t: math.exp(-t),
    "deterministic": lambda t: float(t < 1),
    "erlang:stages=3": lambda t: math.exp(-3 * t) * (1 + 3 * t + 4.5 * t**2),
    "weibull:shape=0.5": lambda t: math.exp(-math.sqrt(2 * t)),
    "hyperexponential:cv=4": balanced_mixture(4),
    "coxian:means=0.5/4,next=0.2": two_stages(0.5, 4, 0.2),
    "lognormal:cv=1": lognormal(1),
    "lognormal:cv=4": lognormal(4),
    "pareto:shape=1.5,ratio=1000": bounded_pareto(1.5, 1000),
}
ARRIVALS = (
    "renewal:cv=0",
    "renewal:cv=4",
    "bursty:ratio=3,share=0.3,length=0.1",
    "bursty:ratio=3,share=0.3,length=1",
    "bursty:ratio=3,share=0.3,length=10",
)
DRAWN = {
    "exponential": INK,
    "deterministic": BLUE,
    "erlang:stages=3": GREEN,
    "hyperexponential:cv=4": ORANGE,
    "lognormal:cv=4": RED,
    "pareto:shape=1.5,ratio=1000": PURPLE,
}
OPTIMUM, ALPHA, HIGH = 5, 0.93, 9.0
SYSTEM = Scenario(pools=500, load=5.5, alpha=str(ALPHA))


@dataclass(frozen=True)
class Effort:
    """How long to simulate, and how often."""

    starts: int
    start_horizon: float
    high_for: float  # how long the load is high
    horizon: float
    warmup: float


WHOLE = Effort(starts=20, start_horizon=60, high_for=100, horizon=3000, warmup=500)
QUICK = Effort(starts=2, start_horizon=12, high_for=5, horizon=30, warmup=10)


def predicted(survival: Survival) -> tuple[float, float]:
    """Return the times "up" and "down" that the mean number of tasks gives."""

    def within(t: float) -> float:
        """Return E[min(S, t)], the integral of the survival function."""
        edges = [0.0, *(edge for edge in (1e-3, 0.1, 1.0, 10.0) if edge < t), t]
        return math.fsum(integrate.quad(survival, low, high)[0] for low, high in pairwise(edges))

    load = SYSTEM.load_at_start
    shares = OPTIMUM / load, 1 - (OPTIMUM + ALPHA - load) / (HIGH - load)
    up, down = (optimize.brentq(lambda t, share=share: within(t) - share, 0.0, 1000.0) for share in shares)
    return float(up), float(down)


def spreads(result: Result) -> np.ndarray:
    """Return the mean spread of all replications over time: the standard deviation of the tasks of a pool."""
    found = []
    for run in result.trajectories:
        above = run.pools_at_least[:, 1:] / SYSTEM.pools
        squares = (above * (2 * np.arange(1, above.shape[1] + 1) - 1)).sum(axis=1)
        found.append(np.sqrt(np.maximum(squares - above.sum(axis=1) ** 2, 0.0)))
    return np.asarray(np.mean(found, axis=0))


def first_times(result: Result, since: float = 0.0) -> list[float]:
    """Return when the threshold of each replication first reached the optimum; infinite if it did not."""
    found = []
    for trajectory in result.trajectories:
        there = (trajectory.change_thresholds == OPTIMUM) & (trajectory.change_times >= since)
        found.append(float(trajectory.change_times[there][0]) - since if there.any() else float("inf"))
    return found


def under_jsq(system: Scenario) -> Scenario:
    """Return the same system under JSQ."""
    return replace(system, policy="jsq", alpha=None, threshold=None)


def measured(service: str, arrivals: str, effort: Effort) -> tuple[str, Result]:
    """Return a row of the table, and the runs from an empty system."""
    system = replace(SYSTEM, service=service, arrivals=arrivals)
    starts = replace(system, horizon=effort.start_horizon)
    up, jsq_up = compare([starts, under_jsq(starts)], replications=effort.starts, points=601, seed=1)
    apart = np.abs(spreads(up) - spreads(jsq_up)).max()
    dropped = replace(
        starts,
        load=None,
        schedule=f"0:{HIGH},{effort.high_for}:{SYSTEM.load}",
        horizon=effort.high_for + effort.start_horizon,
    )
    down = simulate(dropped, replications=effort.starts, points=2, seed=2)
    late = replace(system, initial_tasks=5.5, threshold=OPTIMUM, horizon=effort.horizon, warmup=effort.warmup)
    learned, jsq = compare([late, under_jsq(late)], seed=3)
    rise, fall = predicted(SERVICES[service])
    optimal = 100 * learned.threshold_share.get(OPTIMUM, 0.0)
    numbers = (
        f"{system.service_law.cv:5.2f} {rise:9.2f} {np.median(first_times(up)):6.2f} "
        f"{fall:9.2f} {np.median(first_times(down, effort.high_for)):6.2f} {optimal:8.2f} "
        f"{learned.change_rate:8.3f} {learned.spread:7.3f} {jsq.spread:7.3f} {learned.mean_tasks:7.3f} "
        f"{apart:6.3f}"
    )
    return numbers, up


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("service-laws.png"), help="file to write")
    parser.add_argument("--quick", action="store_true", help="run few and short simulations")
    asked = parser.parse_args(arguments)
    effort = QUICK if asked.quick else WHOLE
    print(f"{SYSTEM.setting}, alpha {SYSTEM.alpha}. Times in mean task times; at 5: percent of the time.\n")
    print(f"{'law':>36}    cv predicted     up predicted   down     at 5  changes  spread     jsq   tasks  apart")
    paths: dict[str, Result] = {}
    for service in SERVICES:
        row, paths[service] = measured(service, "poisson", effort)
        print(f"{service:>36} {row}", flush=True)
    for arrivals in ARRIVALS:
        print(f"{arrivals:>36} {measured('exponential', arrivals, effort)[0]}", flush=True)
    with saved_figure(asked.out, 9.0, 4.2) as figure:
        left, right = figure.subplots(1, 2, sharex=True)
        for service, color in DRAWN.items():
            runs = paths[service].trajectories
            times = runs[0].times
            tasks = np.mean([run.pools_at_least[:, 1:].sum(axis=1) for run in runs], axis=0) / SYSTEM.pools
            left.plot(times, tasks, color=color, label=service)
            right.plot(times, np.mean([run.threshold for run in runs], axis=0), color=color, label=service)
        left.axhline(OPTIMUM, color=INK, linewidth=1, linestyle=":")
        left.set_xlim(0, min(20.0, effort.start_horizon))
        left.set_ylabel("tasks per pool")
        right.set_ylabel("threshold, mean of the runs")
        for axes in (left, right):
            axes.set_xlabel("time, in mean task times")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    print(f"\nwrote {asked.out}")


if __name__ == "__main__":
    main()
