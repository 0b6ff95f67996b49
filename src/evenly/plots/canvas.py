"""Axes and figures to draw on: those given, or new ones in our style."""

from __future__ import annotations

from contextlib import AbstractContextManager

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evenly.plots.style import _SETTINGS

# To be replaced by `axes_or_new` and `figure_or_new` of `evenly.plots.style`, which behave the same.


def house_style() -> AbstractContextManager[None]:
    """Our settings, for axes that are created while they hold."""
    return mpl.rc_context(_SETTINGS)


def axes_or_new(ax: Axes | None) -> Axes:
    """The axes given, or those of a new pyplot figure."""
    if ax is not None:
        return ax
    with house_style():
        _, axes = plt.subplots(layout="constrained")
    return axes


def figure_or_new(figure: Figure | None, width: float, height: float) -> Figure:
    """The figure given, or a new pyplot figure of this size in inches."""
    return plt.figure(figsize=(width, height), layout="constrained") if figure is None else figure
