"""Candidates for alpha: balance and messages, side by side."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes

from evenly.advice.alpha import CHEAP, TOLERATED, Advice
from evenly.plots.style import COLORS, GREEN, INK, MARKERS, picture

_TICKS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998)
_FEW = 6  # candidates that can all be named
_TALLEST = 1.3  # relative spread; a threshold that stays too high goes far beyond
_LEAST_MESSAGES = 1e-3  # below, the scale is linear, so that none can be shown


def draw(advice: Advice, path: Path) -> None:
    """Spread and resync messages against alpha, a line a load, with the alpha to take."""
    with picture(path, 9, 3.8) as figure:
        balance, messages = figure.subplots(1, 2)
        away = [1 - candidate.alpha for candidate in advice.candidates]
        for place, load in enumerate(advice.loads):
            rows = [candidate.measurements[place] for candidate in advice.candidates]
            style = {
                "color": COLORS[place % len(COLORS)],
                "marker": MARKERS[place % len(MARKERS)],
                "ms": 4,
                "lw": 1,
            }
            balance.plot(away, [row.relative_spread for row in rows], label=f"load {load:g}", **style)
            messages.plot(away, [row.resync_per_task for row in rows], **style)
        average = [candidate.resync_per_task for candidate in advice.candidates]
        messages.plot(away, average, color=INK, lw=2, marker=".", label="mean over the loads")
        _good_balance(balance, advice)
        _cheap_messages(messages, min(row.resync_per_task for c in advice.candidates for row in c.measurements))
        for axes in (balance, messages):
            _alpha_axis(axes, advice)
            axes.legend(fontsize=8, frameon=True, edgecolor="none")
        figure.suptitle(
            f"{advice.pools:,} pools, loads up to {advice.load_max:g}: take alpha {advice.alpha}", fontsize=10
        )


def _good_balance(axes: Axes, advice: Advice) -> None:
    spreads = [candidate.relative_spread for candidate in advice.candidates]
    good = TOLERATED * min(spreads)
    axes.axhspan(0, good, color=GREEN, alpha=0.15, lw=0, label="good")
    axes.set_ylim(0.99, max(min(1.01 * max(spreads), _TALLEST), 1.01 * good))
    axes.set_ylabel("spread over pools, relative to JSQ")


def _cheap_messages(axes: Axes, fewest: float) -> None:
    axes.axhspan(0, CHEAP, color=GREEN, alpha=0.15, lw=0, label="cheap")
    axes.set_yscale("symlog", linthresh=_LEAST_MESSAGES)
    axes.set_ylim(bottom=0 if fewest < _LEAST_MESSAGES else fewest / 2)
    axes.set_ylabel("resync messages per task")


def _alpha_axis(axes: Axes, advice: Advice) -> None:
    """Alpha, stretched towards 1, with the one to take and the paper's bound."""
    alphas = [candidate.alpha for candidate in advice.candidates]
    shown = alphas if len(alphas) <= _FEW else [tick for tick in _TICKS if alphas[0] <= tick <= alphas[-1]]
    axes.set_xscale("log")
    axes.set_xticks([1 - tick for tick in shown], [f"{tick:g}" for tick in shown])
    axes.minorticks_off()
    axes.invert_xaxis()
    axes.set_xlabel("alpha")
    axes.axvline(1 - advice.alpha, color=INK, lw=1, ls="--")
    if alphas[0] < advice.alpha_min < alphas[-1]:
        axes.axvline(1 - advice.alpha_min, color=INK, lw=1, ls=":", label=f"paper's bound {advice.alpha_min:.3g}")
