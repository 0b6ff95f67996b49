"""The figures of one measured window, and sentences that the verdicts of both demos share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from evenly.live.demo.balance import Balance
from evenly.live.demo.plan import Window

CLOSE = 0.10  # largest relative difference of two spreads that are called equal
_MOSTLY = 0.90  # share of the time near the optimum from which the threshold counts as learned


@dataclass(frozen=True)
class WindowReport:
    """The measurements of one window. `sides` are the balancers compared, by their names in JSON."""

    window: Window
    thresholds: tuple[int, ...]  # polled every half second
    sides: dict[str, Balance]

    @property
    def seconds(self) -> float:
        """The length of the window."""
        return self.window.end - self.window.begin

    def share_within(self, distance: int) -> float:
        """Return the share of the time with the threshold at most `distance` from the optimum."""
        return fmean(abs(threshold - self.window.optimum) <= distance for threshold in self.thresholds)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the window."""
        return {
            "load": self.window.load,
            "optimum": self.window.optimum,
            "threshold": {
                "final": self.thresholds[-1],
                "mean": fmean(self.thresholds),
                "at_optimum": self.share_within(0),
                "within_one": self.share_within(1),
            },
            "spread": {name: side.spread for name, side in self.sides.items()},
            "max_tasks": {name: side.max_tasks for name, side in self.sides.items()},
        }


@dataclass(frozen=True)
class MeanBalance:
    """The balance of one side, averaged over the windows and weighted by their lengths."""

    spread: float
    max_tasks: float


def mean_sides(windows: Sequence[WindowReport]) -> dict[str, MeanBalance]:
    """Return the mean balance of each side."""
    lengths = [each.seconds for each in windows]
    return {
        name: MeanBalance(
            spread=fmean((each.sides[name].spread for each in windows), lengths),
            max_tasks=fmean((each.sides[name].max_tasks for each in windows), lengths),
        )
        for name in windows[0].sides
    }


def threshold_words(windows: Sequence[WindowReport], *, times: str, since: str = "") -> str:
    """Return whether the threshold followed the load. `times` names the windows, `since` their beginnings."""
    final = listed([each.thresholds[-1] for each in windows])
    optimum = listed([each.window.optimum for each in windows])
    within = fmean((each.share_within(1) for each in windows), [each.seconds for each in windows])
    ends = f"it ended the {times} at {final}, where {optimum} is best"
    if within >= _MOSTLY:
        followed, off = "followed", f"at most one off {percent(within)}"
    else:
        followed, off = "did not follow", f"more than one off {percent(1 - within)}"
    return f"The threshold {followed} the load: {ends}, and {since}it was {off} of the time."


def ideal_words(spread: float, ideal: float, circumstances: str = "") -> str:
    """Compare a spread with that of join-the-shortest-queue on the same visits."""
    numbers = (
        f"spread {spread:.2f} against {ideal:.2f} for join-the-shortest-queue on the same visits{circumstances}"
    )
    if spread <= (1 + CLOSE) * ideal:
        return f"Sessions were as even as the ideal: {numbers}."
    return f"Sessions were {percent(spread / ideal - 1)} less even than the ideal: {numbers}."


def listed(things: Sequence[object]) -> str:
    """Return things as words: "5, 10 and 2"."""
    *most, last = map(str, things)
    return f"{', '.join(most)} and {last}" if most else last


def percent(share: float) -> str:
    """Return a share as words: "12 %"."""
    return f"{100 * share:.0f} %"
