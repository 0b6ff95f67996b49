"""The share of time that a finite system with a learned threshold spends at each threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from evenly.plots.bars import Bars
from evenly.plots.style import BLUE, GREEN

_VISIBLE = 1e-4


def draw_shares(axes: Axes, shares: Mapping[int, float], optimal: Sequence[int], setting: str) -> None:
    """Draw one bar per threshold, with optimal thresholds in another color."""
    seen = [level for level, share in shares.items() if share >= _VISIBLE]
    others = [level for level in seen if level not in optimal]
    best = [level for level in seen if level in optimal]
    bars = Bars(axes)
    whose = f"{setting}: " if bars.later else ""
    name = f"{whose}optimal: {' or '.join(map(str, optimal))}"
    bars.draw(best, [shares[level] for level in best], color=GREEN, label=name)
    if others:
        bars.draw(others, [shares[level] for level in others], color=BLUE, label=f"{whose}not optimal")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    low, high = axes.get_xlim() if bars.later else (inf, -inf)
    axes.set_xlim(min(*seen, *optimal, low + 0.8) - 0.8, max(*seen, *optimal, high - 0.8) + 0.8)
    axes.set_ylim(0, np.nextafter(1.0, 2.0))
    axes.set_xlabel("threshold")
    axes.set_ylabel("share of time")
    axes.legend(loc="best", fontsize=9)
