"""A diffusion limit: its stationary law, its meaning for a number of pools, and paths from the balanced state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from evenly.frames import Table, Tabular
from evenly.theory.balance import FloatArray
from evenly.theory.diffusion.fractional import QUANTILES, OrnsteinUhlenbeck
from evenly.theory.diffusion.whole_law import StationarySummary
from evenly.theory.wording import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evenly.plots.diffusion import Fluctuation

ORNSTEIN_UHLENBECK, REFLECTED = "ornstein-uhlenbeck", "reflected"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DiffusionLimit(Tabular):
    """Fluctuations around the balanced state, in units of the root of the number of pools.

    `stationary` is the stationary law: an `OrnsteinUhlenbeck` process, or a `StationarySummary` for a whole
    load. With `pools`, `occupancy_mean` and `occupancy_deviation` describe the fraction of pools with at least
    k tasks, by k; at a whole load `saturated_share` is the share of arrivals that find no pool
    below it. `sample_paths` has one row per path; `variance` is that of the total number of tasks at each time.
    """

    load: float
    limit: str
    pools: int | None
    horizon: float
    points: int
    paths: int
    seed: int
    stationary: OrnsteinUhlenbeck | StationarySummary
    occupancy_mean: dict[int, float] | None
    occupancy_deviation: dict[int, float] | None
    saturated_share: float | None
    sample_paths: dict[str, FloatArray]
    times: FloatArray
    variance: FloatArray

    @property
    def threshold(self) -> int:
        """The threshold that the limit is for, floor(load); the shortest queue has the same limit."""
        return floor(self.load)

    @property
    def quantities(self) -> dict[str, str]:
        """The quantity that each of `sample_paths` counts, in words."""
        low = self.threshold
        if self.limit == REFLECTED:
            return {"below": f"tasks missing below {low}", "above": f"pools with more than {low}"}
        return {"total": f"pools with {low + 1} or more"}

    def _laws(self) -> dict[str, dict[str, Any]]:
        """Return the stationary mean, variance and quantiles of each quantity."""
        facts = self.stationary.to_dict()
        return {name: facts[name] if self.limit == REFLECTED else facts for name in self.quantities}

    def columns(self) -> Mapping[str, Any]:
        """Return one row per quantity: stationary mean, deviation and quantiles, in units of sqrt(pools)."""
        laws = self._laws()
        return {
            "quantity": list(laws),
            "mean": [law["mean"] for law in laws.values()],
            "deviation": [sqrt(law["variance"]) for law in laws.values()],
            **{
                f"quantile_{share:.2f}": [law["quantiles"][str(share)] for law in laws.values()]
                for share in QUANTILES
            },
        }

    @property
    def samples(self) -> Table:
        """The sample paths, one row per path and time."""
        return Table(
            {
                "path": np.repeat(np.arange(self.paths), self.points),
                "time": np.tile(self.times, self.paths),
                **{name: rows.ravel() for name, rows in self.sample_paths.items()},
            },
            units={"time": "mean task times", **dict.fromkeys(self.sample_paths, "sqrt(pools)")},
        )

    @property
    def variances(self) -> Table:
        """The variance of the total number of tasks at each time."""
        return Table({"time": self.times, "variance": self.variance}, units={"time": "mean task times"})

    def to_dict(self) -> dict[str, Any]:
        """Return the result ready for JSON: the object that `evenly diffusion --json` prints."""
        return {
            "load": self.load,
            "limit": self.limit,
            "threshold": self.threshold,
            "pools": self.pools,
            "horizon": self.horizon,
            "points": self.points,
            "paths": self.paths,
            "seed": self.seed,
            "stationary": self.stationary.to_dict(),
            "occupancy_mean": _with_text_keys(self.occupancy_mean),
            "occupancy_deviation": _with_text_keys(self.occupancy_deviation),
            "saturated_share": self.saturated_share,
            "sample_paths": {name: rows.tolist() for name, rows in self.sample_paths.items()},
            "times": self.times.tolist(),
            "variance": self.variance.tolist(),
        }

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the paths; at a whole load, those of the tasks missing below it."""
        from evenly.plots import diffusion, style

        axes = style.axes_or_new(ax)
        diffusion.draw_fluctuation(axes, self.times, self._fluctuations()[0])
        diffusion.finish_fluctuation(axes)
        axes.set_title(self._title(), fontsize=10)
        return axes

    def plot_panels(self, *, figure: Figure | None = None) -> Figure:
        """Draw all paths and the stationary density: the picture that `evenly diffusion --plot` saves."""
        from evenly.plots import diffusion, style

        figure = style.figure_or_new(figure, 8.0, 5.6 if self.limit == REFLECTED else 3.8)
        diffusion.draw_panels(figure, self.times, self._fluctuations(), self._title())
        return figure

    def _fluctuations(self) -> list[Fluctuation]:
        from evenly.plots.diffusion import Fluctuation

        low, reach = self.threshold, 4 * sqrt(self.load)
        if isinstance(self.stationary, OrnsteinUhlenbeck):
            values = np.linspace(-reach, reach, 401)
            return [
                Fluctuation(
                    label=f"pools with {low + 1} or more tasks,\nless {self.load - low:.4g} n, in units of √n",
                    paths=self.sample_paths["total"],
                    limits=(-reach, reach),
                    values=values,
                    density=np.exp(-(values**2) / (2 * self.load)) / np.sqrt(2 * np.pi * self.load),
                    deviation=np.sqrt(self.variance),
                )
            ]
        # The density of `above` is unbounded near 0, and that of `below` is high at a large load.
        widest = min(1.05 * float(self.stationary.below.density(0.0)), 2.5 / sqrt(self.load))
        rows = []
        for name, marginal in (("below", self.stationary.below), ("above", self.stationary.above)):
            values = np.geomspace(1e-4, 1.0, 400) * marginal.values[-1]
            rows.append(
                Fluctuation(
                    label=f"{self.quantities[name]},\nin units of √n",
                    paths=self.sample_paths[name],
                    limits=(0.0, reach),
                    values=values,
                    density=marginal.density(values),
                    mean=marginal.mean,
                    quantile=marginal.quantile(0.95),
                    widest=widest,
                )
            )
        return rows

    def _title(self) -> str:
        name = "reflected limit" if self.limit == REFLECTED else "Ornstein-Uhlenbeck limit"
        return f"load {self.load:.12g}, n pools: {name}"

    def _headline(self) -> str:
        words = [
            f"{meaning} {law['mean']:.3f} ± {sqrt(law['variance']):.3f}"
            for meaning, law in zip(self.quantities.values(), self._laws().values(), strict=True)
        ]
        pools = "" if self.pools is None else f", {self.pools:,} pools"
        return f"load {self.load:.12g}{pools}, {self.limit}: {', '.join(words)}, in sqrt(pools)"

    def _rows(self) -> list[tuple[str, str]]:
        rows = []
        for meaning, law in zip(self.quantities.values(), self._laws().values(), strict=True):
            marks = ", ".join(f"{law['quantiles'][share]:.3f}" for share in ("0.05", "0.5", "0.95"))
            deviation = sqrt(law["variance"])
            rows.append(
                (meaning, f"mean {law['mean']:.3f}, deviation {deviation:.3f}; 5 %, 50 % and 95 % at {marks}")
            )
        if isinstance(self.stationary, StationarySummary):
            rows.append(("correlation", f"{self.stationary.correlation:.3f}"))
        if self.occupancy_mean is not None and self.occupancy_deviation is not None:
            for level, mean in self.occupancy_mean.items():
                share = f"{percent(mean)} ± {percent(self.occupancy_deviation[level])}"
                rows.append((f"pools with {level} or more tasks", share))
        if self.saturated_share is not None:
            rows.append((f"arrivals that find no pool below {self.threshold}", percent(self.saturated_share)))
        return rows


def _with_text_keys(shares: Mapping[int, float] | None) -> dict[str, float] | None:
    return None if shares is None else {str(level): share for level, share in shares.items()}
