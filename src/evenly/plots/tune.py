"""Candidates for alpha: balance and messages, side by side."""

from __future__ import annotations

from math import exp, log
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evenly.advice.alpha import CHEAP, TOLERATED, Advice
from evenly.plots.style import COLORS, GREEN, INK, MARKERS, picture

_TICKS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998)
_FEW = 6  # candidates that can all be named
_TALLEST = 1.3  # relative spread; a threshold that stays too high goes far beyond
_ROOM = 10  # ticks next to each other that can be read
_MARGIN = 0.05
_LEAST_MESSAGES = 1e-3  # below, the scale is linear, so that none can be shown


def draw(advice: Advice, path: Path) -> None:
    """Spread and resync messages against alpha, a line a load, with the alpha to take."""
    with picture(path, 9, 4.2) as figure:
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
        _cheap_messages(messages, advice)
        for axes in (balance, messages):
            _alpha_axis(axes, advice)
        _legend(figure, balance, messages)
        figure.suptitle(
            f"{advice.pools:,} pools, loads up to {advice.load_max:g}: take alpha {advice.alpha}", fontsize=10
        )


def _good_balance(axes: Axes, advice: Advice) -> None:
    spreads = [candidate.relative_spread for candidate in advice.candidates]
    good = TOLERATED * min(spreads)
    axes.axhspan(0, good, color=GREEN, alpha=0.15, lw=0, label="good (left), cheap (right)")
    axes.set_ylim(0.99, max(min(1.01 * max(spreads), _TALLEST), 1.01 * good))
    axes.set_ylabel("spread over pools, relative to JSQ")


def _cheap_messages(axes: Axes, advice: Advice) -> None:
    """At least from a decade below what is cheap to a decade above it."""
    found = [row.resync_per_task for candidate in advice.candidates for row in candidate.measurements]
    fewest, most = min(*found, CHEAP / 10), max(*found, CHEAP * 10)
    axes.axhspan(0, CHEAP, color=GREEN, alpha=0.15, lw=0, label="good (left), cheap (right)")
    axes.set_yscale("symlog", linthresh=_LEAST_MESSAGES)
    axes.set_ylim(0 if fewest < _LEAST_MESSAGES else fewest / 1.2, 1.2 * most)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_ylabel("resync messages per task")


def _alpha_axis(axes: Axes, advice: Advice) -> None:
    """Alpha, stretched towards 1, with the one to take and the paper's bound."""
    alphas = [candidate.alpha for candidate in advice.candidates]
    ends = sorted([*alphas, advice.alpha])[:: len(alphas)]
    span = log((1 - ends[0]) / (1 - ends[1]))
    shown = _shown(alphas, advice.alpha, span / _ROOM)
    beyond = exp(_MARGIN * (span or 1))
    axes.set_xscale("log")
    axes.set_xlim((1 - ends[0]) * beyond, (1 - ends[1]) / beyond)
    axes.set_xticks([1 - tick for tick in shown], [f"{tick:g}" for tick in shown])
    axes.minorticks_off()
    axes.set_xlabel("alpha")
    axes.axvline(1 - advice.alpha, color=INK, lw=1, ls="--", label=f"take {advice.alpha:g}")
    if alphas[0] < advice.alpha_min < alphas[-1]:
        axes.axvline(1 - advice.alpha_min, color=INK, lw=1, ls=":", label=f"paper's bound {advice.alpha_min:.3g}")


def _shown(alphas: list[float], taken: float, room: float) -> list[float]:
    """Ticks: the alpha to take, and others, each with room for its number."""
    shown = [taken]
    for tick in alphas if len(alphas) <= _FEW else _TICKS:
        free = all(abs(log((1 - tick) / (1 - other))) > room for other in shown)
        if free and alphas[0] <= tick <= alphas[-1]:
            shown.append(tick)
    return shown


def _legend(figure: Figure, balance: Axes, messages: Axes) -> None:
    """One for both panels, below them, where it covers no line."""
    entries: dict[str, Artist] = {}
    for axes in (balance, messages):
        handles, labels = axes.get_legend_handles_labels()
        entries |= zip(labels, handles, strict=True)
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=4, fontsize=8)
