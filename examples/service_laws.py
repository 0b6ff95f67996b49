"""Measure whether the learned threshold settles under other service laws and arrivals, how fast, and how evenly.

500 pools, load 5.5, alpha 0.93, so that the optimum is 5. "Up" is the time at which the threshold first reaches 5
in a system that starts empty. "Down" is that time after the load has dropped from 9 to 5.5. Both are predicted
from the mean number of tasks per pool, which is known for every law: load * E[min(S, t)] in a system that starts
empty, and 5.5 + 3.5 * (1 - E[min(S, t)]) after the drop. In a balanced system, the threshold rises to 5 when there
are 5 tasks per pool, and falls to 5 when there are 5 + alpha.

    python -m examples.service_laws --out docs/images/service-laws.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from evenly import Result, Scenario, compare, simulate
from evenly.plots.style import BLUE, GREEN, INK, ORANGE, PURPLE, RED, saved_figure
from evenly.sim.kernels.draws import draw_many
from evenly.sim.sessions import service_draws

SERVICES = (
    "exponential",
    "deterministic",
    "erlang:stages=3",
    "weibull:shape=0.5",
    "hyperexponential:cv=4",
    "coxian:means=0.5/4,next=0.2",
    "lognormal:cv=1",
    "lognormal:cv=4",
    "pareto:shape=1.5,ratio=1000",
)
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
    draws: int


WHOLE = Effort(starts=20, start_horizon=60, high_for=100, horizon=3000, warmup=500, draws=2_000_000)
QUICK = Effort(starts=2, start_horizon=12, high_for=5, horizon=30, warmup=10, draws=20_000)


def predicted(scenario: Scenario, effort: Effort) -> tuple[float, float]:
    """Return the times "up" and "down" that the mean number of tasks gives, from draws of the law."""
    sample = np.zeros(effort.draws)
    draw_many(service_draws(scenario, np.random.SeedSequence(1)), sample)
    sample.sort()
    ends = (np.cumsum(sample) + sample * np.arange(sample.size - 1, -1, -1)) / sample.sum()  # E[min(S, t)] at each
    load = scenario.load_at_start
    ends, sample = np.append(0.0, ends), np.append(0.0, sample)
    up = np.interp(OPTIMUM / load, ends, sample)
    down = np.interp(1 - (OPTIMUM + ALPHA - load) / (HIGH - load), ends, sample)
    return float(up), float(down)


def first_times(result: Result, since: float = 0.0) -> list[float]:
    """Return when the threshold of each replication first reached the optimum; infinite if it did not."""
    found = []
    for trajectory in result.trajectories:
        there = (trajectory.change_thresholds == OPTIMUM) & (trajectory.change_times >= since)
        found.append(float(trajectory.change_times[there][0]) - since if there.any() else float("inf"))
    return found


def measured(service: str, arrivals: str, effort: Effort) -> tuple[str, Result]:
    """Return a row of the table, and the runs from an empty system."""
    system = replace(SYSTEM, service=service, arrivals=arrivals)
    starts = replace(system, horizon=effort.start_horizon)
    up = simulate(starts, replications=effort.starts, points=601, seed=1)
    dropped = replace(
        starts,
        load=None,
        schedule=f"0:{HIGH},{effort.high_for}:{SYSTEM.load}",
        horizon=effort.high_for + effort.start_horizon,
    )
    down = simulate(dropped, replications=effort.starts, points=2, seed=2)
    late = replace(system, initial_tasks=5.5, threshold=OPTIMUM, horizon=effort.horizon, warmup=effort.warmup)
    learned, jsq = compare([late, replace(late, policy="jsq", alpha=None, threshold=None)], seed=3)
    rise, fall = predicted(system, effort)
    optimal = 100 * learned.threshold_share.get(OPTIMUM, 0.0)
    numbers = (
        f"{system.service_law.cv:5.2f} {rise:9.2f} {np.median(first_times(up)):6.2f} "
        f"{fall:9.2f} {np.median(first_times(down, effort.high_for)):6.2f} {optimal:8.2f} "
        f"{learned.change_rate:8.3f} {learned.spread:7.3f} {jsq.spread:7.3f} {learned.mean_tasks:7.3f}"
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
    print(f"{'law':>36}    cv predicted     up predicted   down     at 5  changes  spread     jsq   tasks")
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
