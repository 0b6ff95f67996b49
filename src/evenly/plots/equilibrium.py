"""An equilibrium as bars, beside the balanced one.

Paper: Fig. 2.
"""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from evenly.plots.style import BLUE, ORANGE, picture
from evenly.theory.balance import FloatArray, balanced_occupancy, exactly

_VISIBLE = 2e-3  # of the highest bar
_MOST_PAIRS = 50  # of bars that can be told apart
_THINNEST = 1 / 200  # of the width of the picture
_TALLEST = 5.0  # balanced bars are cut at so many times the highest of the others


def draw(facts: dict[str, Any], path: Path) -> None:
    """Share of pools with so many tasks, from what `evenly equilibrium --json` prints."""
    load, shares = facts["load"], np.array(facts["pools_with_exactly"])
    balanced = exactly(balanced_occupancy(load, max(len(shares), ceil(load) + 1)))
    shares = np.pad(shares, (0, len(balanced) - len(shares)))
    seen = np.flatnonzero((shares > _VISIBLE * shares.max()) | (balanced > 0))
    levels = np.arange(seen[0], seen[-1] + 1)
    with picture(path, 6.4, 4.0) as figure:
        axes = figure.add_subplot()
        _draw_bars(axes, levels, shares[levels], balanced[levels], _name(facts))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("tasks in a pool")
        axes.set_ylabel("share of pools")
        axes.grid(visible=False, axis="x")
        figure.legend(loc="outside lower center", ncols=2)
        figure.suptitle(f"load {load:.12g}, very many pools: where they settle", fontsize=10)


def _draw_bars(axes: Axes, levels: NDArray[np.int64], shares: FloatArray, balanced: FloatArray, name: str) -> None:
    """Pairs of bars or, where there are too many, an area with the balanced bars in front of it.

    A balanced load puts all on two levels. Its bars are cut where they would dwarf the others.
    """
    pairs = len(levels) <= _MOST_PAIRS
    shift, width = (0.2, 0.4) if pairs else (0.0, max(1.0, _THINNEST * len(levels)))
    cut = balanced.max() > _TALLEST * shares.max()
    axes.bar(levels - shift, shares, width if pairs else 1.0, color=BLUE, label=name)
    filled = np.flatnonzero(balanced)
    where = ", ".join(f"{balanced[at]:.3g} at {levels[at]}" for at in filled)
    label = f"balanced (cut off: {where})" if cut else "balanced"
    axes.bar(levels[filled] + shift, balanced[filled], width, color=ORANGE, label=label)
    if cut:
        axes.set_ylim(0.0, _TALLEST * shares.max())


def _name(facts: dict[str, Any]) -> str:
    match facts["policy"]:
        case "threshold":
            return f"threshold {facts['threshold']}"
        case "power-of-d":
            return f"power-of-{facts['choices']}"
        case name:
            return str(name)
