"""Compare the share of time that a learned threshold is off the optimum, as predicted and as simulated.

Each point is a simulation of the whole policy with its 95 % interval. Each line is a prediction, without any
simulation. Its teeth are not noise: with one more pool, one more pool below the threshold may be needed to make it
fall. Then excursions above the optimum last longer, and those below it become rarer.

    python -m examples.stability --out docs/images/stability.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import floor
from pathlib import Path

import numpy as np

from evenly import Scenario, simulate
from evenly.sim.intervals import half_width
from evenly.sim.tally import averages
from evenly.theory.balance import optimal_thresholds
from evenly.theory.stability.predict import predict_stability
from evenly.theory.stability.result import Stability

CASES = {
    (2.9, "0.97"): (50, 100, 200, 400, 500, 1000, 2000),
    (5.1, "0.9"): (20, 50, 100, 200, 500, 1000),
    (5.5, "0.93"): (20, 50, 100, 150, 200),
    (10.5, "0.96"): (50, 100, 200, 500),
}
QUICK_CASES = {(2.9, "0.97"): (50, 100), (5.5, "0.93"): (20, 50)}
TASKS, QUICK_TASKS = 1e8, 2e5  # in each simulation
REPLICATIONS = 16
WARMUP = 15.0  # mean service times; exp(-15) is 3e-7, so the start no longer matters
NAMES = ("share_above", "share_below", "change_rate", "resync_per_task")
POINTS, QUICK_POINTS = 100, 8  # per line


def simulated(
    load: float, alpha: str, pools: int, tasks: float, replications: int = REPLICATIONS, seed: int = 1
) -> dict[str, list[float]]:
    """Simulate the numbers that a prediction has, with one value per replication."""
    length = max(tasks / (pools * load * replications), 1.0)
    scenario = Scenario(
        pools=pools,
        load=load,
        alpha=alpha,
        threshold=floor(load),
        initial_tasks=load,
        warmup=WARMUP,
        horizon=WARMUP + length,
    )
    result = simulate(scenario, replications=replications, seed=seed, mean_holding_times=True)
    optimal = optimal_thresholds(load)
    columns: dict[str, list[float]] = {name: [] for name in NAMES}
    for sample in result.windows:
        means = averages(sample, pools)
        time_at = means.threshold_share
        columns["share_above"].append(sum(share for level, share in time_at.items() if level > optimal[-1]))
        columns["share_below"].append(sum(share for level, share in time_at.items() if level < optimal[0]))
        columns["change_rate"].append(sample.change_count / sample.time)
        columns["resync_per_task"].append(means.resync_per_task)
    return columns


def line_sizes(sizes: Sequence[int], points: int) -> list[int]:
    """Return the numbers of pools for a line: the simulated ones, and many in between."""
    between = np.geomspace(sizes[0], sizes[-1], points).round().astype(int).tolist()
    return sorted({*sizes, *between})


def print_row(found: Stability, columns: dict[str, list[float]]) -> None:
    """Print one row of the table."""
    cells = [f"{found.load:>5g} {found.alpha:>5g} {found.pools:>6}"]
    for name in NAMES:
        values = columns[name]
        cells.append(f"{getattr(found, name):>8.5f} {np.mean(values):>8.5f} +- {half_width(values):.5f}")
    cells.append(f"{found.time_between_excursions:>9.3g} {found.excursion_length:>8.3g}")
    print("  ".join(cells))


def draw(
    lines: dict[tuple[float, str], list[Stability]],
    points: dict[tuple[float, str], list[tuple[int, float, float]]],
    path: Path,
) -> None:
    """Draw the share of time off the optimum against the number of pools."""
    from evenly.plots.style import COLORS, DASHES, MARKERS, saved_figure  # loads Matplotlib

    with saved_figure(path, 7.2, 4.6) as figure:
        axes = figure.add_subplot()
        for (case, found), color, dash, marker in zip(lines.items(), COLORS, DASHES, MARKERS, strict=False):
            load, alpha = case
            axes.plot(
                [stability.pools for stability in found],
                [stability.share_off for stability in found],
                color=color,
                linestyle=dash,
                linewidth=1.3,
                label=f"load {load:g}, alpha {alpha}",
            )
            sizes, shares, widths = zip(*points[case], strict=True)
            axes.errorbar(
                sizes, shares, yerr=widths, color=color, fmt=marker, markersize=4.5, capsize=3, linewidth=1
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(top=1.0)
        axes.set_xlabel("pools")
        axes.set_ylabel("share of the time off the optimal threshold")
        axes.legend(title="lines predicted, points simulated", loc="lower left", fontsize=9, title_fontsize=9)


def main(arguments: Sequence[str] | None = None) -> None:
    """Predict, simulate, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("stability.png"), help="file to write")
    parser.add_argument("--quick", action="store_true", help="run few and short simulations")
    asked = parser.parse_args(arguments)
    cases, tasks, per_line = (QUICK_CASES, QUICK_TASKS, QUICK_POINTS) if asked.quick else (CASES, TASKS, POINTS)
    print(f"{tasks:,.0f} tasks in each simulation. Predicted, then simulated with 95 % intervals:\n")
    heads = ["above the optimum", "below it", "changes per time", "resync per task"]
    print(f"{'load':>5} {'alpha':>5} {'pools':>6}  " + "  ".join(f"{head:<29}" for head in heads), end="")
    print(f"  {'between':>9} {'length':>8}")
    lines: dict[tuple[float, str], list[Stability]] = {}
    points: dict[tuple[float, str], list[tuple[int, float, float]]] = {}
    for case, sizes in cases.items():
        load, alpha = case
        found = {n: predict_stability(pools=n, load=load, alpha=alpha) for n in line_sizes(sizes, per_line)}
        lines[case], points[case] = list(found.values()), []
        for pools in sizes:
            columns = simulated(load, alpha, pools, tasks)
            print_row(found[pools], columns)
            off = [
                above + below for above, below in zip(columns["share_above"], columns["share_below"], strict=True)
            ]
            points[case].append((pools, float(np.mean(off)), half_width(off)))
    draw(lines, points, asked.out)
    print(f"\nwrote {asked.out}")


if __name__ == "__main__":
    main()
