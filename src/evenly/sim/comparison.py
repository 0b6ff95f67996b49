"""Several scenarios simulated on the same random numbers, side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from evenly.errors import InputError
from evenly.frames import UNKNOWN, Table, Tabular
from evenly.policies import find_policy
from evenly.sim import summary
from evenly.sim.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evenly.plots.shares import Line

_LONGEST = 180  # characters of the one-line summary; it then counts the results left out
_SHORT = 60  # characters of a setting or of a label in it


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
        """Return a result, or a comparison of a slice of them."""
        return Comparison(results=self.results[place]) if isinstance(place, slice) else self.results[place]

    def columns(self) -> Mapping[str, Any]:
        """Return one row per scenario: inputs, each mean of `Result.scalars()`, and the ends of its 95 % interval.

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
        """Draw the picture of `evenly compare --plot`: the lines of `plot` with the legend below them.

        title: text above the lines (default: pools, load and time, as far as shared; "" for none).
        """
        from evenly.plots.shares import draw_panels
        from evenly.plots.style import figure_or_new

        lines = self._lines()
        if title is None:
            span = summary.shared_span(self.results)
            title = summary.shared_setting(self.results) + ("" if span is None else f", {span}")
        return draw_panels(figure_or_new(figure, 8.0, 5.2), lines, title=title)

    def _lines(self) -> list[Line]:
        if not self.results:
            raise InputError("There is nothing to draw: the comparison has no scenarios.")
        pairs = zip(self.results, summary.labels(self.results), strict=True)
        return [(summary.share_label(result, label), result.task_share) for result, label in pairs]

    def _headline(self) -> str:
        if not self.results:
            return "no scenarios"
        line = f"{len(self)} results, {summary.shortened(summary.shared_setting(self.results), _SHORT)}, spread: "
        for place, (result, label) in enumerate(zip(self.results, summary.labels(self.results), strict=True)):
            found = f"{summary.shortened(label, _SHORT)}: {result.spread:.2f}"
            if len("Comparison()") + len(line) + len(found) > _LONGEST:
                return f"{line}{len(self) - place} more"
            line += found if place + 1 == len(self) else f"{found}; "
        return line

    def _rows(self) -> Sequence[tuple[str, str]]:
        pairs = zip(self.results, summary.labels(self.results), strict=True)
        return [(label, f"max {result.max_tasks:.2f}") for result, label in pairs]

    def _repr_html_(self) -> str:
        """Return the table that `evenly compare` prints."""
        if not self.results:
            return "<p>no scenarios</p>"
        table = Table(summary.comparison_cells(self.results))._repr_html_()
        return f"{table}<p>{UNKNOWN}: too few events to tell</p>" if UNKNOWN in table else table


def _inputs(result: Result) -> dict[str, Any]:
    """Return the inputs of a run as plain values: one row of a table."""
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
