"""What all pictures share: colors, style, saved figures, and the choice between given and new axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evenly.errors import InputError
from evenly.files import atomic_write
from evenly.inputs import shown

# Okabe and Ito's palette is safe for color-blind readers; markers and dashes help in black and white.
INK = "#222222"
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
COLORS = (RED, ORANGE, BLUE, GREEN, PURPLE, SKY, INK, "#999999")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))

SETTINGS: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "evenly",  # equal numbers give equal files
}

_Given = ParamSpec("_Given")
_Returned = TypeVar("_Returned")


def house_style() -> AbstractContextManager[None]:
    """Return a context in which new axes get our style."""
    return mpl.rc_context(SETTINGS)


@contextmanager
def saved_figure(path: Path, width: float, height: float, *more: Path) -> Iterator[Figure]:
    """Yield an empty figure in our style, `width` by `height` inches, and save it to `path` and to each of `more`.

    Each file is written atomically, in the format that its suffix names.
    """
    with house_style():
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        for target in (path, *more):
            no_date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(target.suffix[1:].lower())
            with atomic_write(target) as temporary:
                figure.savefig(temporary, dpi=160, metadata=no_date)
            figure.set_layout_engine("none")  # keep the layout of the first file


def figure_or_new(figure: Figure | None, width: float = 8.0, height: float = 5.2) -> Figure:
    """Return the given figure, or a new pyplot figure of `width` by `height` inches, which notebooks display."""
    if figure is not None:
        return _checked("figure", figure, Figure)
    from matplotlib import pyplot  # noqa: PLC0415  (a saved figure needs no pyplot, which takes time to load)

    return pyplot.figure(figsize=(width, height), layout="constrained")


def _checked(name: str, value: object, kind: type[_Returned]) -> _Returned:
    """Return the value, or raise InputError unless it is of this Matplotlib class."""
    if not isinstance(value, kind):
        raise InputError(f"{name} must be a Matplotlib {kind.__name__} or None, not {shown(value)}.")
    return value


def axes_or_new(ax: Axes | None, width: float = 6.4, height: float = 4.0) -> Axes:
    """Return the given axes, unchanged, or new ones in our style on a new pyplot figure."""
    if ax is not None:
        return _checked("ax", ax, Axes)
    with house_style():
        return figure_or_new(None, width, height).add_subplot()


def styled(draw: Callable[_Given, _Returned]) -> Callable[_Given, _Returned]:
    """Decorate a function that creates axes, so that they get our style."""

    @wraps(draw)
    def in_style(*args: _Given.args, **kwargs: _Given.kwargs) -> _Returned:
        with house_style():
            return draw(*args, **kwargs)

    return in_style
