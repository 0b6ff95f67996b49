"""The occupancy over time under a policy without a threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenly.frames import Table, Tabular
from evenly.policies import POLICIES
from evenly.theory.balance import FloatArray
from evenly.theory.fluid.levels import level_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PolicyPath(Tabular):
    """The occupancy under power-of-d or random assignment at evenly spaced times, in the large-system limit."""

    policy: str
    load: float
    sample_size: int | None
    initial_tasks: float | tuple[int, ...] | None
    initial_occupancy: FloatArray | None
    times: FloatArray
    occupancy: FloatArray  # one row per time, from level 0

    @property
    def total_mass(self) -> FloatArray:
        """Tasks per pool over time."""
        mass: FloatArray = self.occupancy[:, 1:].sum(axis=1)
        return mass

    @property
    def mean_tasks(self) -> FloatArray:
        """Tasks per pool over time: `total_mass`."""
        return self.total_mass

    def columns(self) -> Mapping[str, Any]:
        """Return one row per time: tasks per pool."""
        return {"time": self.times, "mean_tasks": self.mean_tasks}

    @property
    def levels(self) -> Table:
        """The fraction of pools with at least as many tasks, one row per time and number of tasks."""
        return level_table(self.times, self.occupancy)

    def to_dict(self) -> dict[str, Any]:
        """Return the result ready for JSON."""
        start = self.initial_tasks
        return {
            "policy": self.policy,
            "load": self.load,
            "sample_size": self.sample_size,
            "initial_tasks": list(start) if isinstance(start, tuple) else start,
            "initial_occupancy": None if self.initial_occupancy is None else self.initial_occupancy.tolist(),
            "times": self.times.tolist(),
            "occupancy": self.occupancy.tolist(),
        }

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw how the pools are filled over time."""
        from evenly.plots import fluid, style

        axes = style.axes_or_new(ax)
        fluid.draw_filling(axes, self.times, self.occupancy)
        axes.set_title(f"fluid limit: {self._name}, load {self.load:.12g}", fontsize=10)
        return axes

    @property
    def _name(self) -> str:
        return POLICIES[self.policy].label(sample_size=self.sample_size)

    def _headline(self) -> str:
        end = f"{self.total_mass[-1]:.4f} tasks per pool at time {self.times[-1]:g}"
        return f"{self._name}, load {self.load:.12g}: {end}"

    def _rows(self) -> list[tuple[str, str]]:
        return [("time", f"{self.times[-1]:g}"), ("tasks per pool", f"{self.total_mass[-1]:.6f}")]
