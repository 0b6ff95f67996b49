"""One replication over time, and where its threshold ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.frames import Tabular
from evenly.sim.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evenly.plots.trajectory import Levels

UNITS = {
    "time": "in units of the scenario: a task lasts 1 / service_rate on average",
    "demand": "offered load, tasks per pool",
    "mean_tasks": "tasks per pool",
    "max_tasks": "tasks in the fullest pool",
    "imbalance": "distance of the occupancy from the balanced one",
    "threshold": "tasks",
    "green_tokens": "pools with fewer tasks than the threshold",
    "yellow_tokens": "pools with at most as many tasks as the threshold",
    "tokens": "tokens at the dispatcher",
}


@dataclass(frozen=True)
class Ending:
    """Where the threshold of one replication ended, and since when it had been there."""

    threshold: int
    since: float


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Trajectory(Tabular):
    """One replication over time: snapshots at evenly spaced times, and every change of the threshold.

    scenario, seed, replication: the run that this is a part of.
    times: when the snapshots were taken, both ends of the run included.
    pools_at_least: number of pools with at least i tasks; one row per time, one column per i.
    threshold: the threshold at each time; -1 for policies without one.
    max_tasks: tasks in the fullest pool at each time.
    imbalance: distance between the occupancy and the balanced one for the demand at each time.
    demand: offered load per pool at each time.
    tokens_held: tokens at the dispatcher under jiq, jbt and pull; else 0.
    change_times, change_thresholds: when the threshold changed, and to what (the first million changes).

    Paper: m(t) is `max_tasks` and e(t) is `imbalance`, Sec. 5.3.
    """

    scenario: Scenario
    seed: int
    replication: int = 0
    times: NDArray[np.float64]
    pools_at_least: NDArray[np.int64]
    threshold: NDArray[np.int64]
    max_tasks: NDArray[np.int64]
    imbalance: NDArray[np.float64]
    demand: NDArray[np.float64]
    tokens_held: NDArray[np.int64]
    change_times: NDArray[np.float64]
    change_thresholds: NDArray[np.int64]

    @property
    def occupancy(self) -> NDArray[np.float64]:
        """Fraction of pools with at least i tasks; one row per time."""
        return np.asarray(self.pools_at_least / self.pools_at_least[0, 0])

    @property
    def mean_tasks(self) -> NDArray[np.float64]:
        """Tasks per pool at each time."""
        return np.asarray(self.occupancy[:, 1:].sum(axis=1))

    def tokens(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the green and yellow tokens at the dispatcher at each time; for the threshold policy only."""
        if self.threshold[0] < 0 or self.scenario.info.own:
            raise InputError("Only the threshold policy has green and yellow tokens.")
        rows = np.arange(self.times.size)
        pools = self.pools_at_least[0, 0]
        padded = np.pad(self.pools_at_least, ((0, 0), (0, max(0, int(self.threshold.max()) + 2))))
        return pools - padded[rows, self.threshold], pools - padded[rows, self.threshold + 1]

    def columns(self) -> Mapping[str, NDArray[Any]]:
        """Return one row per time; `UNITS` describes the columns."""
        columns: dict[str, NDArray[Any]] = {
            "time": self.times,
            "demand": self.demand,
            "mean_tasks": self.mean_tasks,
            "max_tasks": self.max_tasks,
            "imbalance": self.imbalance,
        }
        if self.threshold[0] >= 0:
            columns["threshold"] = self.threshold
        if self.threshold[0] >= 0 and not self.scenario.info.own:
            green, yellow = self.tokens()
            columns |= {"green_tokens": green, "yellow_tokens": yellow}
        elif self.tokens_held.any():
            columns["tokens"] = self.tokens_held
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return the run, the columns as lists and the changes of the threshold, ready for JSON."""
        return {
            "policy": self.scenario.info.name,
            "pools": self.scenario.pools,
            "seed": self.seed,
            "replication": self.replication,
            **{name: column.tolist() for name, column in self.columns().items()},
            "change_times": self.change_times.tolist(),
            "change_thresholds": self.change_thresholds.tolist(),
        }

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw demand, tasks per pool, fullest pool and threshold over time, on `ax` or on a new figure."""
        from evenly.plots.style import axes_or_new
        from evenly.plots.trajectory import draw_levels

        axes = draw_levels(axes_or_new(ax), self._levels())
        axes.set_xlabel("time")
        return axes

    def plot_panels(self, *, figure: Figure | None = None) -> Figure:
        """Draw the picture of `evenly simulate --plot`: the lines of `plot`, the imbalance, the pools by tasks."""
        from evenly.plots.style import figure_or_new
        from evenly.plots.trajectory import draw_panels

        return draw_panels(
            figure_or_new(figure, 8.0, 7.2),
            self._levels(),
            imbalance=self.imbalance,
            occupancy=self.occupancy,
            warmup=self.scenario.warmup,
            title=f"{self.scenario.label}, {self.scenario.pools:,} pools",
        )

    def _levels(self) -> Levels:
        from evenly.plots.trajectory import Levels

        corners: dict[str, Any] = {}
        if self.threshold[0] >= 0:
            corners = {
                "threshold_times": np.concatenate([[0.0], self.change_times, [self.scenario.horizon]]),
                "threshold": np.concatenate([self.threshold[:1], self.change_thresholds, self.threshold[-1:]]),
            }
        return Levels(
            times=self.times,
            phases=self.scenario.phases,
            mean_tasks=self.mean_tasks,
            max_tasks=self.max_tasks,
            **corners,
        )

    def _headline(self) -> str:
        ended = [f"max {self.max_tasks[-1]}", f"imbalance {self.imbalance[-1]:.2f}"]
        if self.threshold[0] >= 0:
            ended.append(f"threshold {self.threshold[-1]}")
        return f"{self.scenario.summary}: {self.times.size} points, at time {self.times[-1]:g} {', '.join(ended)}"

    def _rows(self) -> Sequence[tuple[str, str]]:
        rows = [
            ("points", f"{self.times.size}, time {self.times[0]:g} to {self.times[-1]:g}"),
            ("tasks per pool at the end", f"{self.mean_tasks[-1]:.3f}"),
            ("fullest pool at the end", f"{self.max_tasks[-1]}"),
            ("imbalance at the end", f"{self.imbalance[-1]:.3f}"),
        ]
        if self.threshold[0] >= 0:
            rows.append(
                (
                    "threshold at the end",
                    f"{self.threshold[-1]}, after {self.change_times.size:,} recorded changes",
                )
            )
        return rows
