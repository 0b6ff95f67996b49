"""Several scenarios simulated on the same random numbers, side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from evenly.errors import InputError
from evenly.frames import Table, Tabular
from evenly.policies import find_policy
from evenly.sim import summary
from evenly.sim.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evenly.plots.shares import Line

_NAMED = 4  # results in the one line


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Comparison(Tabular, Sequence[Result]):
    """The results of `compare`: an immutable sequence, one result per scenario, in the order given."""

    results: tuple[Result, ...]

    def __len__(self) -> int:
        return len(self.results)

    @overload
    def __getitem__(self, place: int) -> Result: ...

    @overload
    def __getitem__(self, place: slice) -> Comparison: ...

    def __getitem__(self, place: int | slice) -> Result | Comparison:
        """A result, or a comparison of some of them."""
        return Comparison(results=self.results[place]) if isinstance(place, slice) else self.results[place]

    def columns(self) -> Mapping[str, Any]:
        """One row per scenario: its inputs, each mean of `Result.scalars()`, and the ends of its 95 % interval.

        The interval of `spread` is `spread_low` to `spread_high`. Numbers that a scenario does not have are NaN.
        """
        rows = [{**_inputs(result), **_means(result)} for result in self.results]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name, math.nan) for row in rows] for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of `evenly compare --json`."""
        return {"policies": [result.to_dict() for result in self.results]}

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the share of tasks against the tasks in their pool, one line per result, on `ax` or a new figure.

        Paper: Fig. 5.
        """
        from evenly.plots.shares import draw_shares
        from evenly.plots.style import axes_or_new

        axes = draw_shares(axes_or_new(ax, 8.0, 5.2), self._lines())
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize=9, frameon=False)
        return axes

    def plot_panels(self, *, figure: Figure | None = None, title: str | None = None) -> Figure:
        """Draw what `evenly compare --plot` shows: the lines of `plot` with the legend below them.

        title: text above the lines (default: pools, load and time of the first scenario; "" for none).
        """
        from evenly.plots.shares import draw_panels
        from evenly.plots.style import figure_or_new

        lines = self._lines()
        if title is None:
            scenario = self.results[0].scenario
            span = f"time {scenario.warmup:g} to {scenario.horizon:g}"
            title = f"{scenario.pools:,} pools, load {scenario.load_at_start:g}, {span}"
        return draw_panels(figure_or_new(figure, 8.0, 5.2), lines, title=title)

    def _lines(self) -> list[Line]:
        if not self.results:
            raise InputError("There is nothing to draw: the comparison has no scenarios.")
        return [(summary.share_label(result), result.task_share) for result in self.results]

    def _headline(self) -> str:
        if not self.results:
            return "no scenarios"
        scenario = self.results[0].scenario
        found = [f"{result.scenario.label}: {result.spread:.2f}" for result in self.results[:_NAMED]]
        more = [f"{len(self) - _NAMED} more"] if len(self) > _NAMED else []
        setting = f"{scenario.pools:,} pools, load {scenario.load_at_start:g}"
        return f"{len(self)} results, {setting}, spread: {'; '.join(found + more)}"

    def _rows(self) -> Sequence[tuple[str, str]]:
        return [(result.scenario.label, f"max {result.max_tasks:.2f}") for result in self.results]

    def _repr_html_(self) -> str:
        """The table that `evenly compare` prints."""
        return (
            Table(summary.comparison_cells(self.results))._repr_html_() if self.results else "<p>no scenarios</p>"
        )


def _inputs(result: Result) -> dict[str, Any]:
    """What was simulated, as plain values: one row of a table."""
    scenario = result.scenario
    takes = find_policy(scenario.policy).parameters
    return {
        "policy": scenario.policy,
        "label": scenario.label,
        "pools": scenario.pools,
        "load": scenario.load_at_start,
        "schedule": scenario.schedule_text,
        "initial_threshold": float(scenario.initial_threshold) if "threshold" in takes else math.nan,
        "alpha": math.nan if scenario.alpha is None else float(scenario.alpha),
        "sample_size": float(scenario.sampled) if "sample_size" in takes else math.nan,
        "capacity": math.nan if scenario.capacity is None else float(scenario.capacity),
        "initial_tasks": float(np.mean(scenario.initial_tasks)),
        "service_rate": scenario.service_rate,
        "horizon": scenario.horizon,
        "warmup": scenario.warmup,
        "seed": result.seed,
        "replications": result.replications,
        "batches": result.batches,
        "mean_holding_times": result.mean_holding_times,
    }


def _means(result: Result) -> dict[str, float]:
    table = result.conf_int()
    found: dict[str, float] = {}
    for name, mean, low, high in zip(*(table[column] for column in table), strict=True):
        found |= {name: float(mean), f"{name}_low": float(low), f"{name}_high": float(high)}
    return found
