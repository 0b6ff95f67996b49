"""What all pictures share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from evenly.files import atomic_write

# Okabe and Ito's palette, told apart by colour-blind readers; markers and dashes serve the others.
INK = "#222222"
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
COLORS = (RED, ORANGE, BLUE, GREEN, PURPLE, SKY, INK, "#999999")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))

_SETTINGS: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "evenly",  # the same numbers give the same file
}


@contextmanager
def picture(path: Path, width: float, height: float, *more: Path) -> Iterator[Figure]:
    """An empty figure to draw on, in our style; written to each path, whole or not at all."""
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        for target in (path, *more):
            no_date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(target.suffix[1:].lower())
            with atomic_write(target) as temporary:
                figure.savefig(temporary, dpi=160, metadata=no_date)
            figure.set_layout_engine("none")  # the places found for the first are right for the others
