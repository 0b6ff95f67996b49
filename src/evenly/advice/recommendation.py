"""The recommended alpha, and the candidates it was chosen from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from evenly.advice.measure import Measurement
from evenly.frames import Table, Tabular
from evenly.theory.tuning import exact_alpha_min
from evenly.workload.delay import Delay

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evenly.plots.tune import CandidateLines

TOLERATED = 1.02  # spread of a good candidate, relative to the best one's
CHEAP = 0.1  # resync messages per task
STEADY = 1.0  # changes of the threshold per mean task time, where they cost no messages


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An alpha and its measurements."""

    alpha: float
    measurements: tuple[Measurement, ...]

    @property
    def worst(self) -> Measurement:
        """The load with the worst balance."""
        return max(self.measurements, key=lambda measured: measured.relative_spread)

    @property
    def relative_spread(self) -> float:
        """Spread relative to JSQ, at the worst load."""
        return self.worst.relative_spread

    @property
    def resync_per_task(self) -> float:
        """On average over the loads."""
        return float(np.mean([measured.resync_per_task for measured in self.measurements]))

    @property
    def change_rate(self) -> float:
        """On average over the loads."""
        return float(np.mean([measured.change_rate for measured in self.measurements]))

    @property
    def share_optimal(self) -> float | None:
        """The share of time at an optimal threshold, on average over the loads."""
        shares = [measured.share_optimal for measured in self.measurements if measured.share_optimal is not None]
        return float(np.mean(shares)) if shares else None

    @property
    def optimal_words(self) -> str:
        """The share of time at an optimal threshold, for text."""
        return "" if self.share_optimal is None else f", optimal {100 * self.share_optimal:.2f} %"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return {
            "alpha": self.alpha,
            "relative_spread": self.relative_spread,
            "error": self.worst.error,
            "resync_per_task": self.resync_per_task,
            "changes_rate": self.change_rate,
            "share_optimal": self.share_optimal,
            "loads": [measured.to_dict() for measured in self.measurements],
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Advice(Tabular):
    """The alpha to use, and the candidates it was chosen from, in order of alpha.

    `pools_measured` is less than `pools` if a smaller system was measured instead; with more pools the threshold
    is only steadier. `paper_rule_possible` is True if some alpha above `alpha_min` keeps the two rules apart.
    `method` is "exact" or "simulation".
    """

    pools: int
    pools_measured: int
    load_max: float
    seed: int
    delay: Delay
    loads: tuple[float, ...]
    alpha: float
    alpha_min: float
    method: str
    candidates: tuple[Candidate, ...]

    @property
    def chosen(self) -> Candidate | None:
        """The recommended candidate; None if it follows the paper's rule and was not measured."""
        return next((candidate for candidate in self.candidates if candidate.alpha == self.alpha), None)

    @property
    def paper_rule_possible(self) -> bool:
        """True if there are enough pools for the paper's rule, eq. (13)."""
        return rule_possible(self.pools, self.load_max)

    @property
    def paper_rule_met(self) -> bool:
        """True if the recommended alpha follows the paper's rule, eq. (13)."""
        return meets_rule(self.alpha, self.load_max)

    def columns(self) -> Mapping[str, Any]:
        """Return one row per candidate: its spread at the worst load, and means over the loads."""
        return {
            "alpha": [candidate.alpha for candidate in self.candidates],
            "relative_spread": [candidate.relative_spread for candidate in self.candidates],
            "error": [candidate.worst.error for candidate in self.candidates],
            "resync_per_task": [candidate.resync_per_task for candidate in self.candidates],
            "change_rate": [candidate.change_rate for candidate in self.candidates],
            "share_optimal": [candidate.share_optimal for candidate in self.candidates],
            "recommended": [candidate.alpha == self.alpha for candidate in self.candidates],
        }

    @property
    def measurements(self) -> Table:
        """The measurements, one row per candidate and load."""
        rows = [(each.alpha, measured) for each in self.candidates for measured in each.measurements]
        names = (
            *("load", "spread", "jsq_spread", "relative_spread", "error", "max_tasks", "jsq_max_tasks"),
            *("resync_per_task", "change_rate", "share_optimal"),
        )
        return Table(
            {
                "alpha": [alpha for alpha, _ in rows],
                **{name: [getattr(measured, name) for _, measured in rows] for name in names},
            },
            units={"change_rate": "per mean task time", "error": "half of the 95 % interval of relative_spread"},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the object that is part of `evenly tune --json`."""
        return {
            "pools": self.pools,
            "pools_measured": self.pools_measured,
            "load_max": self.load_max,
            "seed": self.seed,
            "delay": self.delay.written,
            "loads": list(self.loads),
            "alpha_min": self.alpha_min,
            "recommended": self.alpha,
            "method": self.method,
            "paper_rule_possible": self.paper_rule_possible,
            "paper_rule_met": self.paper_rule_met,
            "candidates": [candidate.to_dict() for candidate in self.candidates],
        }

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the spread against alpha, one line per load, and mark the recommended alpha."""
        from evenly.plots import style, tune

        axes = style.axes_or_new(ax)
        tune.draw_balance(axes, self._lines())
        axes.set_title(self._title(), fontsize=10)
        axes.legend(loc="best", fontsize=8)
        return axes

    def plot_panels(self, *, figure: Figure | None = None) -> Figure:
        """Draw spread and resync messages against alpha: the picture that `evenly tune --plot` saves."""
        from evenly.plots import style, tune

        figure = style.figure_or_new(figure, 9.0, 4.2)
        tune.draw_panels(figure, self._lines(), self._title())
        return figure

    def _lines(self) -> CandidateLines:
        from evenly.plots.tune import CandidateLines

        measured = [candidate.measurements for candidate in self.candidates]
        return CandidateLines(
            alphas=[candidate.alpha for candidate in self.candidates],
            loads=list(self.loads),
            spreads=np.array([[each.relative_spread for each in row] for row in measured]),
            resync=np.array([[each.resync_per_task for each in row] for row in measured]),
            taken=self.alpha,
            bound=self.alpha_min,
            good=TOLERATED * min(candidate.relative_spread for candidate in self.candidates),
            cheap=CHEAP,
        )

    def _title(self) -> str:
        return f"{self.pools:,} pools, loads up to {self.load_max:g}: recommended alpha {self.alpha}"

    @property
    def rule_verdict(self) -> str:
        """The paper's rule and whether it is met, in words."""
        bound = f"alpha above {self.load_max:g}/{self.load_max + 1:g} = {self.alpha_min:.6f}"
        if self.chosen is None:
            measured = f"the {self.pools_measured:,} pools measured instead are too few for this rule"
            return f"{bound}: met; too large to measure, and {measured}"
        if self.paper_rule_met:
            return f"{bound}: met"
        if self.paper_rule_possible:
            return f"{bound}: meant for many more pools; here the threshold would change all the time"
        return f"{bound}: out of reach with {self.pools:,} pools"

    def _headline(self) -> str:
        how = "solved exactly" if self.method == "exact" else "simulated"
        costs = "not measured"
        if self.chosen is not None:
            spread = f"spread {self.chosen.relative_spread:.3f} of JSQ's"
            costs = f"{spread}, {self.chosen.resync_per_task:.3f} resync messages per task, {how}"
        return f"{self.pools:,} pools, loads up to {self.load_max:g}: recommended alpha {self.alpha}, {costs}"

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("recommended alpha", f"{self.alpha}"),
            ("the paper's rule", self.rule_verdict),
            *(
                (
                    f"alpha {candidate.alpha}",
                    f"spread {candidate.relative_spread:.3f}, resync {candidate.resync_per_task:.3f}, "
                    f"changes {candidate.change_rate:.3g}{candidate.optimal_words}",
                )
                for candidate in self.candidates
            ),
        ]


def rule_possible(pools: int, load_max: float) -> bool:
    """Return True if some alpha above the paper's bound keeps the two rules apart with `pools` pools."""
    return exact_alpha_min(load_max) < 1 - Fraction(1, pools)


def meets_rule(alpha: float, load_max: float) -> bool:
    """Return True if alpha is above the paper's bound for loads up to `load_max`."""
    return Fraction(str(alpha)) > exact_alpha_min(load_max)
