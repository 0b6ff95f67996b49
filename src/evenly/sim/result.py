"""The result of a simulation: time averages with their intervals, tables, trajectories."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError, NotRecordedError
from evenly.frames import Table, Tabular
from evenly.inputs import shown
from evenly.sim import summary
from evenly.sim.intervals import BATCH_TASKS, CONFIDENCE, MANY, PART_TASKS, Parts
from evenly.sim.means import Means
from evenly.sim.scenario import Scenario
from evenly.sim.tally import FloatArray, Tally
from evenly.sim.trajectory import UNITS, Ending, Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEVEL_UNITS = {
    "tasks": "tasks in a pool",
    "pools_with_exactly": "share of pools with this number of tasks",
    "task_share": "share of tasks in pools with this number of tasks",
    "max_tasks_distribution": "share of time in which the fullest pool has this number of tasks",
}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result(Means, Tabular):
    """The result of simulating a scenario: time averages from the warm-up on, over all replications.

    scenario, seed, replications, batches, mean_holding_times: what was simulated, as given to `simulate`.
    seconds: wall-clock time of the run; ignored by ==.
    events: arrivals and departures in all replications, warm-up included.
    windows: raw records: one per replication, or one per batch of a single one.
    parts: the totals behind the intervals, by replication, part and column of `evenly.sim.intervals.COLUMNS`;
        ignored by ==, since they follow from the scenario and the seed.
    endings: where the threshold of each replication ended; empty for policies whose threshold is not tracked.
    trajectories: the replications recorded over time; empty unless `points` were requested.
    """

    scenario: Scenario
    seed: int
    replications: int
    batches: int
    mean_holding_times: bool
    seconds: float = field(compare=False)
    events: int
    windows: tuple[Tally, ...]
    parts: FloatArray = field(compare=False)
    endings: tuple[Ending, ...]
    trajectories: tuple[Trajectory, ...]

    @property
    def load(self) -> float:
        """The offered load per pool; with a schedule, that at time 0."""
        return self.scenario.load_at_start

    def conf_int(self, level: float = CONFIDENCE) -> Table:
        """Return the mean of each of `scalars()` with its confidence interval (default: 95 %).

        Columns: quantity, mean, low, high. The interval rests on the replications, or on the batches of a single
        one. Where too few events were seen to tell how accurate the mean is, low and high are NaN. All are NaN if
        there is one sample only, or if batches are shorter than four mean task times (ten if there are up to 20).
        """
        means, widths = self.scalars(), self.half_widths(level)
        mean = np.array(list(means.values()))
        half = np.array([widths.get(name, math.nan) for name in means])
        return Table({"quantity": list(means), "mean": mean, "low": mean - half, "high": mean + half})

    def half_widths(self, level: float = CONFIDENCE) -> dict[str, float]:
        """Return half the length of each interval of `conf_int`, by quantity.

        NaN where too few events were seen to tell, 0 for numbers that are not random, and empty where there are
        no intervals at all.
        """
        if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
            raise InputError(f"level must be a number strictly between 0 and 1, not {shown(level)}.")
        if len(self.windows) < 2:
            return {}
        least = PART_TASKS if self.batches > MANY else BATCH_TASKS
        if self.batches and self.windows[0].time / self.scenario.memory < 0.999 * least:
            return {}
        names = self.scalars().keys()
        random = [name for name in names if name not in _certain(self.scenario)]
        modes = {"max_tasks": int(self.window.max_time.argmax())}
        if self.window.threshold_time.any():
            modes["threshold"] = int(self.window.threshold_time.argmax())
        found = Parts(self.parts, modes).half_widths(random, 1 - level)
        return {name: found.get(name, 0.0) for name in names}

    @property
    def levels(self) -> Table:
        """One row per number of tasks: share of pools, share of tasks, and share of time as the maximum."""
        return Table(self.columns(), _LEVEL_UNITS)

    @property
    def samples(self) -> Table:
        """One row per independent sample, a replication or a batch: its length in time, `scalars()` and counts."""
        rows = self._rows_of_samples
        counts = ("lost_tasks", "without_token", "change_count")
        return Table(
            {
                "time": np.array([window.time for window in self.windows]),
                **{name: np.array([row[name] for row in rows]) for name in rows[0]},
                **{name: np.array([getattr(window, name) for window in self.windows]) for name in counts},
            }
        )

    @property
    def trajectory(self) -> Table:
        """One row per recorded time of the first replication."""
        return Table(self._first_trajectory().columns(), UNITS)

    def columns(self) -> Mapping[str, NDArray[Any]]:
        """Return the table `levels`: one row per number of tasks."""
        exactly = self.pools_with_exactly
        return {
            "tasks": np.arange(exactly.size),
            "pools_with_exactly": exactly,
            "task_share": self.task_share,
            "max_tasks_distribution": np.pad(self.max_tasks_distribution, (0, exactly.size))[: exactly.size],
        }

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the share of pools with each number of tasks as bars, on `ax` or on a new figure."""
        from evenly.plots.levels import draw_levels
        from evenly.plots.style import axes_or_new

        label = f"{self.scenario.label}, {self.scenario.pools:,} pools"
        return draw_levels(axes_or_new(ax), self.pools_with_exactly, max_tasks=self.max_tasks, label=label)

    def plot_panels(self, *, figure: Figure | None = None) -> Figure:
        """Draw the picture of `evenly simulate --plot`: the first replication over time. Needs `points=`."""
        return self._first_trajectory().plot_panels(figure=figure)

    def _first_trajectory(self) -> Trajectory:
        if not self.trajectories:
            raise NotRecordedError("No trajectory was recorded: simulate with points=, such as points=801.")
        return self.trajectories[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of `evenly simulate --json`."""
        scenario, window = self.scenario, self.window
        takes, start = scenario.info.parameters, scenario.initial_tasks
        return {
            "policy": scenario.info.name,
            "pools": scenario.pools,
            "load": scenario.load_at_start,
            "schedule": None if scenario.schedule is None else scenario.schedule_text,
            "alpha": None if scenario.alpha is None else float(scenario.alpha),
            "capacity": scenario.capacity,
            "service_rate": scenario.service_rate,
            "service": str(scenario.service_law),
            "arrivals": str(scenario.arrival_process),
            "service_own_mean": scenario.service_law.own_mean,
            "arrivals_own_rate": scenario.arrival_process.own_rate,
            "delay": scenario.delay,
            "report_interval": scenario.interval if "report_interval" in takes else None,
            "horizon": scenario.horizon,
            "warmup": scenario.warmup,
            "seed": self.seed,
            "replications": self.replications,
            "batches": self.batches,
            "sample_size": scenario.sampled if "sample_size" in takes else None,
            "initial_tasks": list(start) if isinstance(start, Sequence) else start,
            "initial_threshold": scenario.initial_threshold if "threshold" in takes else None,
            "steady_state": self.mean_holding_times,
            "events": self.events,
            "seconds": self.seconds,
            "mean_tasks": self.mean_tasks,
            "pools_with_exactly": self.pools_with_exactly.tolist(),
            "task_share": self.task_share.tolist(),
            "max_tasks": {"mean": self.max_tasks, "distribution": self.max_tasks_distribution.tolist()},
            "spread": {"mean": self.spread},
            "imbalance": {"mean": self.imbalance},
            "threshold": self._threshold_dict(),
            "change_rate": self.change_rate if self.endings else None,
            "messages": {
                "green": window.green,
                "yellow": window.yellow,
                "resync": window.resync,
                "other": window.other,
                "tasks": window.arrivals,
                "per_task": self.messages_per_task,
            },
            "unguided": self.without_token,
            "without_token": self.without_token,
            "lost": self.lost_tasks,
            "lost_tasks": self.lost_tasks,
            "lost_share": self.lost_share,
            "sizes": scenario.sizes,
            "utility": {"name": scenario.measure, "mean": self.mean_utility} if scenario.sized else None,
            "class_tasks": self.class_tasks.tolist() if scenario.sized else None,
            "sticky": self._sticky_dict(),
            "ci95": {name: None if math.isnan(half) else half for name, half in self.half_widths().items()}
            or None,
        }

    def _threshold_dict(self) -> dict[str, Any] | None:
        if not self.endings:
            return None
        return {
            "initial": None if self.scenario.info.own else self.scenario.initial_threshold,
            "final": Counter(ending.threshold for ending in self.endings).most_common(1)[0][0],
            "mean": self.threshold,
            "time_at": {str(level): share for level, share in self.threshold_share.items()},
            "changes": self.change_count,
            "settled_at": math.fsum(ending.since for ending in self.endings) / len(self.endings),
        }

    def _sticky_dict(self) -> dict[str, Any] | None:
        if not self.scenario.sticky:
            return None
        return {
            "share": self.scenario.sticky,
            "margin": self.scenario.margin,
            "returned": self.window.returned,
            "kept": self.window.kept,
            "kept_share": self.kept_share if self.window.returned else None,
        }

    def save(self, path: str | Path) -> None:
        """Write the whole result to an .npz file, which `Result.read` reads."""
        from evenly.sim.result_file import save  # it imports this module

        save(self, path)

    @classmethod
    def read(cls, path: str | Path) -> Result:
        """Return the result in a file that `save` wrote. Formats of earlier versions are refused."""
        from evenly.sim.result_file import read

        return read(path)

    def _headline(self) -> str:
        return summary.headline(self)

    def _rows(self) -> Sequence[tuple[str, str]]:
        return summary.rows(self)


def _certain(scenario: Scenario) -> frozenset[str]:
    """Return the averages that are no random numbers: their intervals have no width."""
    if scenario.info.own:
        return frozenset()  # it may lose tasks, and send messages, as it likes
    found = set() if scenario.capacity is not None else {"lost_share"}
    if scenario.pools == 1:
        found.add("spread")
    if scenario.rule is None:
        found |= {"threshold", "resync_per_task"}
    always = scenario.policy == "power-of-d" and not scenario.sticky
    if always or scenario.policy in ("random", "round-robin", "weighted-round-robin"):
        found.add("messages_per_task")
    return frozenset(found)
