"""Measure how fast large systems approach the fluid limit: sup-norm distance against the number of pools.

Each seed drives systems of all sizes (on the common probability space of the paper's appendix) and gives one line
of distances, which fall like n^(-1/2).

    python -m examples.fluid_limit --out docs/images/fluid-limit.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenly import Scenario
from evenly.paper.claims.fluid import largest_gap
from evenly.sim.coupling.sizes import simulate_sizes
from evenly.theory.fluid.path import FluidPath
from evenly.theory.fluid.predict import predict_fluid

SIZES = (100, 1_000, 10_000, 100_000)
POINTS = 601


@dataclass(frozen=True)
class Case:
    """A system with a known limit."""

    name: str
    load: float
    threshold: int
    alpha: str | None
    initial: float
    horizon: float

    def limit(self) -> FluidPath:
        """Return the fluid limit."""
        return predict_fluid(
            load=self.load,
            threshold=self.threshold,
            alpha=self.alpha,
            initial_tasks=self.initial,
            horizon=self.horizon,
            points=POINTS,
        )

    def scenario(self) -> Scenario:
        """Return the scenario to simulate. `simulate_sizes` replaces the number of pools."""
        return Scenario(
            pools=1,
            load=self.load,
            threshold=self.threshold,
            alpha=self.alpha,
            initial_tasks=self.initial,
            horizon=self.horizon,
        )


STATIC = Case("threshold 3, from empty", 5.5, 3, None, 0.0, 6.0)  # all three modes
LEARNING = Case("learning, alpha 0.93, from 9 tasks per pool", 5.5, 9, "0.93", 9.0, 6.0)


def distances(case: Case, sizes: Sequence[int], seeds: Sequence[int]) -> NDArray[np.float64]:
    """Return the largest distance over times and levels: one row per seed, one column per size."""
    limit = case.limit().occupancy
    rows = []
    for seed in seeds:
        runs = simulate_sizes(case.scenario(), pools=sizes, seed=seed, points=POINTS)
        rows.append([largest_gap(run.occupancy, limit) for run in runs])
    return np.array(rows)


def slope(sizes: Sequence[int], found: NDArray[np.float64]) -> float:
    """Return the power of n that fits the root mean squares over the seeds."""
    means = np.sqrt(np.mean(found**2, axis=0))
    return float(np.polyfit(np.log(sizes), np.log(means), 1)[0])


def draw(results: dict[str, NDArray[np.float64]], sizes: Sequence[int], path: Path) -> None:
    """Draw one panel per case: thin lines for the seeds, a thick one for their root mean square."""
    from evenly.plots.style import BLUE, GREEN, INK, saved_figure  # loads Matplotlib

    with saved_figure(path, 8.4, 3.8) as figure:
        panels = figure.subplots(1, len(results), sharey=True)
        for axes, (name, found), color in zip(panels, results.items(), (BLUE, GREEN), strict=True):
            for row in found:
                axes.plot(sizes, row, color=color, alpha=0.25, linewidth=0.8)
            means = np.sqrt(np.mean(found**2, axis=0))
            fitted = slope(sizes, found)
            axes.plot(sizes, means, color=color, marker="o", label=f"root mean square, slope {fitted:.2f}")
            axes.plot(sizes, means[0] * (np.array(sizes) / sizes[0]) ** -0.5, "--", color=INK, label="slope -1/2")
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel("pools")
            axes.set_title(name, fontsize=10)
            axes.legend(fontsize=9)
        panels[0].set_ylabel("largest distance from the fluid limit")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("fluid-limit.png"), help="file to write")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="numbers of pools")
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds (default: %(default)s)")
    asked = parser.parse_args(arguments)
    if asked.seeds < 1:
        parser.error(f"--seeds must be at least 1, not {asked.seeds}")
    if min(asked.sizes) < 1 or len(set(asked.sizes)) < 2:
        parser.error(f"--sizes must be at least two different positive numbers, not {asked.sizes}")
    results = {}
    for case in (STATIC, LEARNING):
        found = distances(case, asked.sizes, range(1, asked.seeds + 1))
        results[case.name] = found
        means = ", ".join(f"{mean:.5f}" for mean in np.sqrt(np.mean(found**2, axis=0)))
        sizes = ", ".join(map(str, asked.sizes))
        print(f"{case.name}: {means} at {sizes} pools, slope {slope(asked.sizes, found):.3f}")
    draw(results, asked.sizes, asked.out)
    print(f"wrote {asked.out}")


if __name__ == "__main__":
    main()
