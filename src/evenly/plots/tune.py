"""Candidates for alpha: balance and messages, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from evenly.plots.style import COLORS, GREEN, INK, MARKERS, house_style

_TICKS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998)
_FEW = 6  # candidates; more cannot all be labeled
_TALLEST = 1.3  # highest relative spread shown; a threshold that stays too high is far above
_ROOM = 10  # readable ticks side by side
_MARGIN = 0.05
_BOTH = "good (left), cheap (right)"
_LEAST_MESSAGES = 1e-3  # below it the scale is linear, so that 0 can be shown

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class CandidateLines:
    """The numbers drawn for candidates of alpha: one row per candidate, one column per load."""

    alphas: list[float]
    loads: list[float]
    spreads: Floats  # relative to JSQ
    resync: Floats  # messages per task
    taken: float
    bound: float  # of the paper, for alpha
    good: float  # relative spread
    cheap: float  # resync messages per task


def draw_balance(axes: Axes, lines: CandidateLines, good: str = "good") -> None:
    """Draw the spread against alpha, one line per load, and mark the recommended alpha."""
    for place, load in enumerate(lines.loads):
        axes.plot(_away(lines), lines.spreads[:, place], label=f"load {load:g}", **_line(place))
    worst = lines.spreads.max(axis=1)
    axes.axhspan(0, lines.good, color=GREEN, alpha=0.15, lw=0, label=good)
    axes.set_ylim(0.99, max(min(1.01 * worst.max(), _TALLEST), 1.01 * lines.good))
    axes.set_ylabel("spread over pools, relative to JSQ")
    _alpha_axis(axes, lines)


def draw_messages(axes: Axes, lines: CandidateLines, cheap: str = "cheap") -> None:
    """Draw the resync messages against alpha, at least from a tenth of `cheap` to ten times as much."""
    for place in range(len(lines.loads)):
        axes.plot(_away(lines), lines.resync[:, place], **_line(place))
    axes.plot(_away(lines), lines.resync.mean(axis=1), color=INK, lw=2, marker=".", label="mean over the loads")
    fewest, most = min(lines.resync.min(), lines.cheap / 10), max(lines.resync.max(), lines.cheap * 10)
    axes.axhspan(0, lines.cheap, color=GREEN, alpha=0.15, lw=0, label=cheap)
    axes.set_yscale("symlog", linthresh=_LEAST_MESSAGES)
    axes.set_ylim(0 if fewest < _LEAST_MESSAGES else fewest / 1.2, 1.2 * most)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_ylabel("resync messages per task")
    _alpha_axis(axes, lines)


def draw_panels(figure: Figure, lines: CandidateLines, title: str) -> None:
    """Draw balance and messages side by side, with one legend."""
    with house_style():
        balance, messages = figure.subplots(1, 2)
        draw_balance(balance, lines, _BOTH)
        draw_messages(messages, lines, _BOTH)
        _legend(figure, balance, messages)
        figure.suptitle(title, fontsize=10)


def _away(lines: CandidateLines) -> list[float]:
    return [1 - alpha for alpha in lines.alphas]


def _line(place: int) -> dict[str, Any]:
    return {"color": COLORS[place % len(COLORS)], "marker": MARKERS[place % len(MARKERS)], "ms": 4, "lw": 1}


def _alpha_axis(axes: Axes, lines: CandidateLines) -> None:
    """Draw the axis of alpha, stretched towards 1, with the recommended alpha and the paper's bound."""
    alphas, taken = lines.alphas, lines.taken
    ends = sorted([*alphas, taken])[:: len(alphas)]
    span = log((1 - ends[0]) / (1 - ends[1]))
    shown = _shown(alphas, taken, span / _ROOM)
    beyond = exp(_MARGIN * (span or 1))
    axes.set_xscale("log")
    axes.set_xlim((1 - ends[0]) * beyond, (1 - ends[1]) / beyond)
    axes.set_xticks([1 - tick for tick in shown], [f"{tick:g}" for tick in shown])
    axes.minorticks_off()
    axes.set_xlabel("alpha")
    axes.axvline(1 - taken, color=INK, lw=1, ls="--", label=f"recommended: {taken:g}")
    if alphas[0] < lines.bound < alphas[-1]:
        axes.axvline(1 - lines.bound, color=INK, lw=1, ls=":", label=f"paper's bound {lines.bound:.3g}")


def _shown(alphas: list[float], taken: float, room: float) -> list[float]:
    """Return the ticks: the recommended alpha, and others that leave room for their labels."""
    shown = [taken]
    for tick in alphas if len(alphas) <= _FEW else _TICKS:
        free = all(abs(log((1 - tick) / (1 - other))) > room for other in shown)
        if free and alphas[0] <= tick <= alphas[-1]:
            shown.append(tick)
    return shown


def _legend(figure: Figure, balance: Axes, messages: Axes) -> None:
    """Draw one legend for both panels, below them, so that it covers no line."""
    entries: dict[str, Artist] = {}
    for axes in (balance, messages):
        handles, labels = axes.get_legend_handles_labels()
        entries |= zip(labels, handles, strict=True)
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=4, fontsize=8)
