"""Settling of a learned threshold in the large-system limit: where, and how soon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING, Any

import numpy as np

from evenly.frames import Tabular
from evenly.inputs import accept_other_names
from evenly.theory.balance import optimal_thresholds
from evenly.theory.inputs import checked_start, plain_alpha, positive_load
from evenly.theory.tuning import (
    MAX_INITIAL_TASKS,
    Alpha,
    is_optimal,
    is_whole_load,
    mean_start,
    settle_time_bound,
    settled_threshold,
)
from evenly.theory.wording import ALPHA

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEPS = 400  # values of the load in a plot
_AROUND = 1.5  # tasks per pool on either side of the load in a plot


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Settling(Tabular):
    """The thresholds that an alpha can settle at under a load, and a bound on the time, in the large-system limit.

    Times are in mean task times. `settled_threshold` has the paper's lower and upper bound on the value that the
    threshold settles at; the upper one may be out of reach (see `can_settle_above`). `optimal` is True if the
    paper's condition for a fluid-optimal value holds; if it does not, the threshold may still settle at one.
    `settle_time_bound` is None where no bound is known.
    """

    load: float
    alpha: Alpha
    initial_tasks: float | tuple[int, ...]
    settled_threshold: tuple[int, int]
    optimal: bool
    settle_time_bound: float | None

    @property
    def whole_load(self) -> bool:
        """True if the load is a whole number: then two thresholds are optimal and no bound on time is known."""
        return is_whole_load(self.load)

    @property
    def mean_initial_tasks(self) -> float:
        """Tasks per pool at time 0."""
        return float(mean_start(self.initial_tasks))

    def columns(self) -> Mapping[str, Any]:
        """Return one row."""
        low, high = self.settled_threshold
        return {
            "load": [self.load],
            "alpha": [float(self.alpha)],
            "initial_tasks": [self.mean_initial_tasks],
            "settled_threshold_least": [low],
            "settled_threshold_largest": [high],
            "optimal": [self.optimal],
            "settle_time_bound": [self.settle_time_bound],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the result ready for JSON: part of what `evenly tune --json` prints."""
        return {
            "load": self.load,
            "alpha": float(self.alpha),
            "initial_load": self.mean_initial_tasks,
            "settled_threshold": list(self.settled_threshold),
            "optimal": self.optimal,
            "settle_time_bound": self.settle_time_bound,
        }

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw where the threshold settles with this alpha, for loads around this one."""
        from evenly.plots import settling, style

        axes = style.axes_or_new(ax)
        first, last = max(self.load - _AROUND, self.load / _STEPS), self.load + _AROUND
        loads = np.round(np.linspace(first, last, _STEPS), 6)
        ranges = np.array([settled_threshold(load=float(load), alpha=self.alpha) for load in loads])
        optimum = np.floor(loads).astype(np.int64)
        settling.draw_range(axes, loads, ranges[:, 0], ranges[:, 1], optimum, self.load, self.settled_threshold)
        axes.set_title(f"large-system limit, alpha {self.alpha}: where the threshold settles", fontsize=10)
        return axes

    def _settles(self) -> str:
        low, high = self.settled_threshold
        if low == high:
            return f"{low}"
        return f"{low} {'or' if high == low + 1 else 'to'} {high} by the paper's bounds"

    def _headline(self) -> str:
        time = self.settle_time_bound
        within = "no bound on the time is known" if time is None else f"within {time:.3f} mean task times"
        start = f"from {self.mean_initial_tasks:g} tasks per pool"
        return f"load {self.load:g}, {ALPHA}={self.alpha}, {start}: settles at {self._settles()}, {within}"

    def _rows(self) -> list[tuple[str, str]]:
        load, high = self.load, self.settled_threshold[1]
        bound = f"{load:g}/{floor(load) + 1} = {load / (floor(load) + 1):.6f}"
        best = optimal_thresholds(load)
        if self.optimal:
            verdict = f"yes: alpha is above {bound}"
        elif high in best:
            verdict = f"yes: alpha is not above {bound}, but at a load below 1 a threshold of 1 is as good as 0"
        else:
            verdict = (
                f"not by the paper's condition: alpha is not above {bound} ({' or '.join(map(str, best))} is best)"
            )
        if self.settle_time_bound is not None:
            start = f"from {self.mean_initial_tasks:g} tasks per pool"
            within = f"{self.settle_time_bound:.3f} mean task times, {start}"
        else:
            reason = "the load is a whole number" if self.whole_load else f"alpha is not above {bound}"
            within = f"no bound is known: {reason}"
        return [
            ("threshold settles", f"at {self._settles()}"),
            ("optimal", verdict),
            ("settles within", within),
        ]


@accept_other_names
def predict_settling(*, load: float, alpha: Alpha, initial_tasks: float | Sequence[int] = 0.0) -> Settling:
    """Predict where and how soon the threshold settles under a load with an alpha, in the large-system limit.

    `initial_tasks` is the number of tasks per pool at time 0, or a sequence with the tasks of each pool.

    Paper: Prop. 6, Cor. 2, Prop. 7.
    """
    return Settling(
        load=positive_load(load),
        alpha=plain_alpha(alpha),
        initial_tasks=checked_start(initial_tasks, MAX_INITIAL_TASKS, MAX_INITIAL_TASKS),
        settled_threshold=settled_threshold(load=load, alpha=alpha),
        optimal=is_optimal(load=load, alpha=alpha),
        settle_time_bound=settle_time_bound(load=load, alpha=alpha, initial_tasks=initial_tasks),
    )
