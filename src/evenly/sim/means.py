"""The time averages of a run, as attributes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from evenly.errors import InputError
from evenly.inputs import shown, whole_number
from evenly.sim.scenario import Scenario
from evenly.sim.tally import Averages, FloatArray, Tally, averages, total


class Means:
    """Time averages over the samples of a run, from the warm-up on."""

    scenario: Scenario
    windows: tuple[Tally, ...]

    @cached_property
    def window(self) -> Tally:
        """Raw records of all samples together."""
        return total(self.windows)

    @cached_property
    def _means(self) -> Averages:
        return averages(self.window, self.scenario.pools)

    @cached_property
    def _rows_of_samples(self) -> list[dict[str, float]]:
        return [averages(window, self.scenario.pools).scalars() for window in self.windows]

    @property
    def mean_tasks(self) -> float:
        """Tasks per pool."""
        return self._means.mean_tasks

    @property
    def max_tasks(self) -> float:
        """Tasks in the fullest pool."""
        return self._means.max_tasks

    @property
    def max_tasks_distribution(self) -> FloatArray:
        """Share of time in which the fullest pool has 0, 1, 2, ... tasks."""
        return self._means.max_tasks_distribution

    @property
    def pools_with_exactly(self) -> FloatArray:
        """Share of pools with 0, 1, 2, ... tasks."""
        return self._means.pools_with_exactly

    @property
    def task_share(self) -> FloatArray:
        """Share of tasks in pools with 0, 1, 2, ... tasks, themselves included.

        Paper: Fig. 5.
        """
        return self._means.task_share

    @property
    def spread(self) -> float:
        """Standard deviation of tasks over pools."""
        return self._means.spread

    @property
    def imbalance(self) -> float:
        """Distance between the occupancy and the balanced one.

        Paper: e(t) in Sec. 5.3.
        """
        return self._means.imbalance

    @property
    def messages_per_task(self) -> float:
        """Messages between pools and dispatcher per arriving task, without those of `resync_per_task`."""
        return self._means.messages_per_task

    @property
    def resync_per_task(self) -> float:
        """Messages after changes of the threshold, per arriving task."""
        return self._means.resync_per_task

    @property
    def threshold(self) -> float:
        """The threshold; NaN for policies whose threshold is not tracked."""
        return math.nan if self._means.threshold is None else self._means.threshold

    @property
    def threshold_share(self) -> dict[int, float]:
        """Share of time at each threshold; empty for policies whose threshold is not tracked."""
        return self._means.threshold_share

    @property
    def lost_share(self) -> float:
        """Share of arriving tasks that were lost."""
        return self._means.lost_share

    @property
    def lost_tasks(self) -> int:
        """Number of tasks lost, in all replications."""
        return self.window.lost_tasks

    @property
    def change_count(self) -> int:
        """Number of changes of the threshold, in all replications."""
        return self.window.change_count

    @property
    def change_rate(self) -> float:
        """Changes of the threshold per unit of time."""
        return self.window.change_count / self.window.time

    @property
    def without_token(self) -> int:
        """Number of tasks that found no token and went to a random pool, in all replications."""
        return self.window.without_token

    @property
    def kept_share(self) -> float:
        """Share of the returning clients who got the pool that they had; NaN if no client returned."""
        return self.window.kept / self.window.returned if self.window.returned else math.nan

    @property
    def mean_utility(self) -> float:
        """Utility per pool, of the kind that the scenario names; NaN if pools have no sizes."""
        return math.nan if self._means.mean_utility is None else self._means.mean_utility

    @property
    def class_tasks(self) -> FloatArray:
        """Tasks per pool of each class of `scenario.classes`; empty if pools have no sizes."""
        window = self.window
        counts = np.array([each.count for each in self.scenario.classes], float)
        return window.class_tasks / (window.time * counts) if window.class_tasks.size else window.class_tasks

    def scalars(self) -> dict[str, float]:
        """Return the means that are single numbers, by name: one row for a table of many runs.

        These are mean_tasks, max_tasks, spread, imbalance, messages_per_task, resync_per_task, lost_share, if the
        policy has one threshold, and if pools have sizes mean_utility; `conf_int` gives their intervals.
        """
        return self._means.scalars()

    def share_above(self, tasks: int) -> float:
        """Return the share of tasks in pools with more than `tasks` tasks."""
        return float(self.task_share[whole_number("tasks", tasks, 0, 2**62) + 1 :].sum())

    def utility(self, quality: Callable[[float], float]) -> float:
        """Return the time average of the overall utility: the sum over pools of X * quality(1 / X), X tasks there.

        If `quality` is concave and increasing, it is largest when the load is balanced.

        Paper: Sec. 2.
        """
        if self.scenario.sizes is not None:
            raise InputError("utility(quality) is for pools of one size: use mean_utility.")
        if not callable(quality):
            raise InputError(f"quality must be a function, not {shown(quality)}.")
        shares = self.pools_with_exactly
        return self.scenario.pools * sum(
            float(shares[tasks]) * tasks * quality(1 / tasks) for tasks in range(1, shares.size)
        )
