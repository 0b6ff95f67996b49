"""A fluid solution: the occupancy over time in the large-system limit.

Time is measured in mean task times, and `load` is the offered load per pool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenly.frames import Table, Tabular
from evenly.policies import POLICIES
from evenly.theory.balance import FloatArray, optimal_thresholds
from evenly.theory.fluid.levels import level_table
from evenly.theory.fluid.modes import Mode
from evenly.theory.wording import short_label, start_words
from evenly.workload.demand import Phase

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evenly.plots.fluid import FluidLines

_MAX_CHANGES = 12  # listed in a summary


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FluidPath(Tabular):
    """A fluid solution at evenly spaced times, with its events.

    `load` is the one at time 0. `schedule`, `alpha`, `initial_tasks` and `initial_occupancy` are None where not
    given, and `initial_threshold` is the one before any change. `change_times` and `change_thresholds` list the
    changes of a learned threshold, `modes` and `mode_times` its modes (a), (b), (c) and when each begins.
    `mass_error` is the largest distance between the mass of `occupancy` and the exact one in `total_mass`;
    `truncation` bounds the part of it that is due to levels left out.
    """

    load: float
    schedule: tuple[Phase, ...] | None
    initial_threshold: int
    alpha: float | str | Decimal | None
    initial_tasks: float | tuple[int, ...] | None
    initial_occupancy: FloatArray | None
    horizon: float
    points: int
    times: FloatArray
    occupancy: FloatArray  # one row per time, from level 0
    threshold: NDArray[np.int64]
    demand: FloatArray
    total_mass: FloatArray
    change_times: FloatArray
    change_thresholds: NDArray[np.int64]
    mode_times: FloatArray
    modes: tuple[Mode, ...]
    truncation: float

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The demand, phase by phase."""
        return (Phase(0.0, self.load),) if self.schedule is None else self.schedule

    @property
    def mean_tasks(self) -> FloatArray:
        """Tasks per pool over time.

        Paper: `total_mass`, u(t) in Def. 1.
        """
        return self.total_mass

    @property
    def mass_error(self) -> float:
        """The largest error of the total mass."""
        return float(np.max(np.abs(self.tail_mass(1) - self.total_mass)))

    def tail_mass(self, level: int) -> FloatArray:
        """Return the tasks per pool from a level on, over time.

        Paper: Def. 1.
        """
        mass: FloatArray = self.occupancy[:, level:].sum(axis=1)
        return mass

    @property
    def imbalance(self) -> FloatArray:
        """Euclidean distance from the balanced occupancy of the current load, over time.

        Paper: Sec. 5.3, e(t).
        """
        levels = max(self.occupancy.shape[1], ceil(self.demand.max()) + 2)
        balanced = np.clip(self.demand[:, None] - np.arange(levels) + 1, 0.0, 1.0)
        padded = np.pad(self.occupancy, ((0, 0), (0, levels - self.occupancy.shape[1])))
        distance: FloatArray = np.sqrt(np.sum((padded - balanced) ** 2, axis=1))
        return distance

    def columns(self) -> Mapping[str, Any]:
        """Return one row per time: demand, tasks per pool, threshold and imbalance."""
        return {
            "time": self.times,
            "demand": self.demand,
            "mean_tasks": self.mean_tasks,
            "threshold": self.threshold,
            "imbalance": self.imbalance,
        }

    @property
    def levels(self) -> Table:
        """The fraction of pools with at least as many tasks, one row per time and number of tasks."""
        return level_table(self.times, self.occupancy)

    @property
    def changes(self) -> Table:
        """The changes of the threshold: when, and to what."""
        return Table(
            {"time": self.change_times, "threshold": self.change_thresholds}, units={"time": "mean task times"}
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result ready for JSON: the object that `evenly fluid --json` prints."""
        start = list(self.initial_tasks) if isinstance(self.initial_tasks, tuple) else self.initial_tasks
        return {
            "load": self.load,
            "schedule": None if self.schedule is None else ",".join(map(str, self.schedule)),
            "alpha": None if self.alpha is None else float(self.alpha),
            "first_threshold": self.initial_threshold,
            "initial": start,
            "initial_tasks": start,
            "initial_occupancy": None if self.initial_occupancy is None else self.initial_occupancy.tolist(),
            "horizon": self.horizon,
            "points": self.points,
            "times": self.times.tolist(),
            "occupancy": self.occupancy.tolist(),
            "threshold": self.threshold.tolist(),
            "update_times": self.change_times.tolist(),
            "update_thresholds": self.change_thresholds.tolist(),
            "change_times": self.change_times.tolist(),
            "change_thresholds": self.change_thresholds.tolist(),
            "demand": self.demand.tolist(),
            "total_mass": self.total_mass.tolist(),
            "modes": [
                {"time": time, "mode": mode.value}
                for time, mode in zip(self.mode_times.tolist(), self.modes, strict=True)
            ],
            "mass_error": self.mass_error,
            "truncation": self.truncation,
        }

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw demand, tasks per pool and threshold over time."""
        from evenly.plots import fluid, style

        axes = style.axes_or_new(ax)
        fluid.draw_levels(axes, self._lines())
        axes.set_xlabel(fluid.TIME)
        axes.set_title(self.title, fontsize=10)
        return axes

    def plot_panels(self, *, figure: Figure | None = None) -> Figure:
        """Draw the same, the imbalance and the occupancy: the picture that `evenly fluid --plot` saves."""
        from evenly.plots import fluid, style

        figure = style.figure_or_new(figure, 8.0, 7.0)
        fluid.draw_panels(figure, self._lines(), self.title)
        return figure

    def _lines(self) -> FluidLines:
        from evenly.plots.fluid import FluidLines

        later = self.change_times > 0  # the first threshold drawn is the one after all changes at time 0
        return FluidLines(
            times=self.times,
            phases=self.phases,
            total_mass=self.total_mass,
            threshold_times=np.concatenate([[0.0], self.change_times[later], [self.horizon]]),
            thresholds=np.concatenate([self.threshold[:1], self.change_thresholds[later], self.threshold[-1:]]),
            imbalance=self.imbalance,
            occupancy=self.occupancy,
        )

    @property
    def title(self) -> str:
        """The policy, the load and the start."""
        alpha = None if self.alpha is None else float(self.alpha)
        name = POLICIES["threshold"].label(threshold=self.initial_threshold, alpha=alpha)
        return f"fluid limit: {name}, load {self._load_words()}, from {self._start_words()}"

    def _load_words(self) -> str:
        return f"{self.load:.12g}" if self.schedule is None else ",".join(map(str, self.schedule))

    def _start_words(self) -> str:
        if self.initial_tasks is None:
            return f"an occupancy of {self.total_mass[0]:.6g} tasks per pool"
        return start_words(self.initial_tasks)

    def _headline(self) -> str:
        name = short_label("threshold", threshold=self.initial_threshold, alpha=self.alpha)
        load = f"load {self.load:.12g}" if self.schedule is None else f"{len(self.schedule)} phases of demand"
        end = f"threshold {self.threshold[-1]}, imbalance {self.imbalance[-1]:.3f}"
        return f"{name}, {load}, from {self._start_words()}: at time {self.horizon:g} {end}"

    def _rows(self) -> list[tuple[str, str]]:
        best = " or ".join(map(str, optimal_thresholds(self.demand[-1])))
        last = dict(zip(self.change_times.tolist(), self.change_thresholds.tolist(), strict=True))  # at each time
        moves = [f"{value} at {time:.4f}" for time, value in last.items()]
        shown = moves if len(moves) <= _MAX_CHANGES else [*moves[: _MAX_CHANGES - 1], "...", moves[-1]]
        return [
            ("tasks per pool", f"{self.total_mass[-1]:.6f}"),
            ("threshold", f"{self.threshold[-1]} at the end (optimum {best})"),
            *([("changes", ", ".join(shown))] if shown else []),
            ("imbalance", f"{self.imbalance[-1]:.6f}"),
            ("error of the mass", f"{self.mass_error:.1e}"),
        ]
