"""Measure how fast large systems approach the diffusion limits: distributions at time 2, from the balanced state.

Load 2.5 leads to an Ornstein-Uhlenbeck process, load 3 to a reflected one. Distances are Kolmogorov's. Near 0 the
limit of "pools with 4 or more" is so steep that steps of 1 / sqrt(n) remain visible even in large systems.

    python -m examples.diffusion_limits --out docs/images/diffusion.png
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenly import Scenario, simulate
from evenly.plots.style import COLORS, DASHES, INK, saved_figure
from evenly.theory.diffusion.fractional import ornstein_uhlenbeck
from evenly.theory.diffusion.whole import reflected

Array = NDArray[np.float64]
Law = Callable[[Array], Array]

SIZES, QUICK_SIZES = (20, 100, 500, 2500), (20, 100)
SYSTEMS, QUICK_SYSTEMS = 4000, 100
LIMIT_PATHS, QUICK_LIMIT_PATHS = 400_000, 10_000
TIME = 2.0
POLICIES = ("threshold", "jsq")


@dataclass(frozen=True)
class Quantity:
    """A count in a system, and the limit of its distribution after scaling."""

    load: float
    name: str
    count: Callable[[Array, int], Array]  # from the pools with at least i tasks, one row per system
    law: Law
    mean: float
    variance: float
    axis: str
    start: float


def quantities(limit_paths: int) -> list[Quantity]:
    """Return the quantities of Theorems 3 and 4."""
    smooth = ornstein_uhlenbeck(2.5)
    paths = reflected(3).sample_path([TIME], np.random.default_rng(1), start=[0, 0], paths=limit_paths)
    below, above = np.sort(paths.below[:, 0]), np.sort(paths.above[:, 0, 0])
    return [
        Quantity(
            2.5,
            "pools with 3 or more",
            lambda q, n: q[:, 3] - 0.5 * n,
            lambda at: smooth.cdf(at, time=TIME),
            0.0,
            smooth.variance(TIME),
            "minus n / 2, in units of √n",
            -5.0,
        ),
        _reflected_quantity("tasks missing below 3", lambda q, n: 3.0 * n - q[:, 1:4].sum(axis=1), below),
        _reflected_quantity("pools with 4 or more", lambda q, _: q[:, 4], above),
    ]


def _reflected_quantity(name: str, count: Callable[[Array, int], Array], ordered: Array) -> Quantity:
    def law(at: Array) -> Array:
        return np.asarray(np.searchsorted(ordered, at) / ordered.size)

    return Quantity(3, name, count, law, float(ordered.mean()), float(ordered.var()), "in units of √n", 0.0)


def sampled(load: float, pools: int, policy: str, systems: int) -> Array:
    """Return the pools with at least i tasks at the end, one row per system."""
    scenario = Scenario(policy=policy, pools=pools, load=load, initial_tasks=load, horizon=TIME)
    seed = 1 if policy == "threshold" else 2  # with the same seed both would have the same numbers of tasks
    runs = simulate(scenario, replications=systems, seed=seed, points=2).trajectories
    return np.array([np.pad(run.pools_at_least[-1], (0, 10))[:10] for run in runs], float)


def distance(values: Array, law: Law) -> float:
    """Return Kolmogorov's distance between samples, which may have ties, and a continuous distribution."""
    points, counts = np.unique(values, return_counts=True)
    after = np.cumsum(counts) / values.size
    at = law(points)
    return float(max((after - at).max(), (at - after + counts / values.size).max()))


def draw(samples: list[tuple[Quantity, dict[int, Array]]], path: Path) -> None:
    """Draw one panel per quantity: the distribution functions of systems of each size, and of the limit."""
    with saved_figure(path, 9.6, 3.8) as figure:
        panels = figure.subplots(1, len(samples), sharey=True)
        for axes, (quantity, by_size) in zip(panels, samples, strict=True):
            for (pools, values), color, dash in zip(by_size.items(), COLORS, DASHES, strict=False):
                ordered = np.sort(values)
                share = np.arange(1, values.size + 1) / values.size
                axes.step(
                    ordered,
                    share,
                    where="post",
                    color=color,
                    linewidth=1,
                    linestyle=dash,
                    label=f"{pools:,} pools",
                )
            grid = np.linspace(quantity.start, 5.0, 400)
            axes.plot(grid, quantity.law(grid), color=INK, linewidth=1.6, label="limit")
            axes.set_xlim(quantity.start, 5.0)
            axes.set_xlabel(f"{quantity.name},\n{quantity.axis}")
            axes.set_title(f"load {quantity.load:g}", fontsize=10)
        panels[0].set_ylabel(f"distribution function at time {TIME:g}")
        panels[-1].legend(loc="lower right", fontsize=9)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("diffusion.png"), help="file to write")
    parser.add_argument("--quick", action="store_true", help="simulate few and small systems")
    asked = parser.parse_args(arguments)
    sizes, systems = (QUICK_SIZES, QUICK_SYSTEMS) if asked.quick else (SIZES, SYSTEMS)
    measured = quantities(QUICK_LIMIT_PATHS if asked.quick else LIMIT_PATHS)
    print(f"{systems:,} systems of each size, at time {TIME:g}; noise alone gives a distance of", end=" ")
    print(f"{0.87 / sqrt(systems):.3f} on average\n")
    print(f"{'load':>4}  {'quantity':<22} {'policy':<10} {'pools':>6} {'distance':>9} {'mean':>8} {'variance':>9}")
    found = {
        (load, policy, pools): sampled(load, pools, policy, systems)
        for load in (2.5, 3)
        for policy in POLICIES
        for pools in sizes
    }
    drawn = []
    for quantity in measured:
        values = {
            (policy, pools): quantity.count(found[quantity.load, policy, pools], pools) / sqrt(pools)
            for policy in POLICIES
            for pools in sizes
        }
        start = f"{quantity.load:>4g}  {quantity.name:<22}"
        for (policy, pools), column in values.items():
            far = distance(column, quantity.law)
            print(f"{start} {policy:<10} {pools:>6} {far:>9.3f} {column.mean():>8.3f} {column.var():>9.3f}")
        print(f"{start} {'limit':<10} {'':>6} {'':>9} {quantity.mean:>8.3f} {quantity.variance:>9.3f}")
        drawn.append((quantity, {pools: values[POLICIES[0], pools] for pools in sizes}))
    draw(drawn, asked.out)
    print(f"\nwrote {asked.out}")


if __name__ == "__main__":
    main()
