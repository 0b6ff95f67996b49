"""The first time that a smooth function falls to zero."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from evenly.theory.balance import FloatArray

Function = Callable[[FloatArray], FloatArray]
_ARMED = 1e-11  # a value of at most this has not left zero yet


def first_crossing(function: Function, grid: FloatArray) -> float | None:
    """The first time on the grid's span when the function falls to zero, having been above it.

    A function that starts at zero must rise first: so an event that has just happened does not fire again.
    Between grid points a dip is sought where three values show that there may be one.
    """
    values = function(grid)
    above = np.flatnonzero(values > _ARMED)
    if not above.size:
        return None

    def at(time: float) -> float:
        return float(function(np.array([time]))[0])

    armed = int(above[0])
    below = np.flatnonzero(values[armed:] <= 0)
    last = armed + int(below[0]) if below.size else grid.size - 1
    dip = _first_dip(at, grid[armed : last + 1], values[armed : last + 1])
    if dip is not None:
        return float(brentq(at, dip[0], dip[1], xtol=1e-14, rtol=1e-15))
    if not below.size:
        return None
    return float(brentq(at, grid[last - 1], grid[last], xtol=1e-14, rtol=1e-15))


def _first_dip(at: Callable[[float], float], grid: FloatArray, values: FloatArray) -> tuple[float, float] | None:
    """A stretch in which the function falls below zero though it is above at the grid points around."""
    inner = values[1:-1]
    lowest = np.flatnonzero((inner > 0) & (inner <= values[:-2]) & (inner <= values[2:])) + 1
    for place in lowest:
        # A parabola through the three dips below the middle one by less than the higher neighbour stands above it.
        if values[place] > max(values[place - 1], values[place + 1]) - values[place]:
            continue
        found = minimize_scalar(at, bounds=(grid[place - 1], grid[place + 1]), method="bounded")
        if found.fun < 0:
            return float(grid[place - 1]), float(found.x)
    return None
