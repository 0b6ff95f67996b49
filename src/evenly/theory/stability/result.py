"""The predicted stability of a learned threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from evenly.frames import Tabular
from evenly.theory.balance import optimal_thresholds
from evenly.theory.wording import ALPHA, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROUGH_SHARE = 0.04  # the largest error seen in an unreliable share of the time
ROUGH_PART = 0.5  # the same as a relative error, for small shares and rates
_WORTH_A_WORD = 0.0005  # thresholds with a smaller share of the time are not listed


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Stability(Tabular):
    """The long-run behaviour of a learned threshold. Times are in mean task times.

    The `optimum` is floor(load). A whole load and one below 1 have two optimal thresholds: `share_above` and
    `share_below` are shares of the time above and below all optimal ones, an excursion is a time away from them.
    `also_rests_at` is the threshold next above them if it is at rest too in the large-system limit: a large
    system that gets there stays for a long time, and the shares are averages over all time.

    `reliable` is False when most of the pools below the threshold lack several tasks at a fall, or when many do
    and there are too many pools to keep track of. In tests, the error of shares was then up to `ROUGH_SHARE`, and
    the relative error of small shares and of rates up to `ROUGH_PART`.
    """

    pools: int
    load: float
    alpha: float
    optimum: int
    threshold_share: dict[int, float]
    share_above: float
    share_below: float
    time_between_excursions: float
    excursion_length: float
    change_rate: float
    resync_per_task: float
    also_rests_at: int | None
    reliable: bool

    @property
    def share_off(self) -> float:
        """Share of the time away from the optimum."""
        return self.share_above + self.share_below

    def columns(self) -> Mapping[str, Any]:
        """Return one row per threshold: the share of time at it, and whether it is optimal."""
        optimal = optimal_thresholds(self.load)
        return {
            "threshold": list(self.threshold_share),
            "share": list(self.threshold_share.values()),
            "optimal": [level in optimal for level in self.threshold_share],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the result ready for JSON; no time between excursions when there are none."""
        never = self.time_between_excursions == inf
        return {
            "pools": self.pools,
            "load": self.load,
            "alpha": self.alpha,
            "optimum": self.optimum,
            "threshold": {
                "time_at": {str(level): share for level, share in self.threshold_share.items()},
                "changes_rate": self.change_rate,
            },
            "share_above": self.share_above,
            "share_below": self.share_below,
            "share_off": self.share_off,
            "time_between_excursions": None if never else self.time_between_excursions,
            "excursion_length": self.excursion_length,
            "messages": {"resync_per_task": self.resync_per_task},
            "also_rests_at": self.also_rests_at,
            "reliable": self.reliable,
        }

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the share of time at each threshold, the optimal ones marked."""
        from evenly.plots import bars, stability, style

        axes = style.axes_or_new(ax)
        setting = f"{self.pools:,} pools, load {self.load:g}, alpha {self.alpha:g}"
        stability.draw_shares(axes, self.threshold_share, optimal_thresholds(self.load), setting)
        bars.title_once(axes, f"{setting}: predicted")
        return axes

    def _headline(self) -> str:
        off = f"{percent(self.share_off)} of the time off the optimum {self.optimum}"
        rate = f"{self.change_rate:.3g} changes per mean task time"
        return f"{self.pools:,} pools, load {self.load:g}, {ALPHA}={self.alpha:g}: {off}, {rate}"

    def _rows(self) -> list[tuple[str, str]]:
        shown = {level: share for level, share in self.threshold_share.items() if share >= _WORTH_A_WORD}
        above, below = percent(self.share_above), percent(self.share_below)
        rows = [
            ("threshold", ", ".join(f"{level}: {percent(share)}" for level, share in shown.items())),
            ("off the optimum", f"{percent(self.share_off)} of the time ({above} above, {below} below)"),
        ]
        if isfinite(self.time_between_excursions):
            between = f"one in {self.time_between_excursions:.3g} mean task times"
            rows.append(("excursions", f"{between}, {self.excursion_length:.3g} long"))
        resync = f"{self.resync_per_task:.3g} resync messages per task"
        rows.append(("changes", f"{self.change_rate:.3g} per mean task time, at {resync}"))
        return rows
