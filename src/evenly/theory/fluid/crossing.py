"""The first time that a smooth function falls to zero."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from evenly.theory.balance import FloatArray

Function = Callable[[FloatArray], FloatArray]
_ARMED = 1e-11  # a value of at most this has not left zero yet
_BLOCK = 256  # grid points evaluated at once: the first crossing is often far from the last point


def first_crossing(function: Function, grid: FloatArray) -> float | None:
    """Return the first time on the grid's span when the function falls to zero, having been above it.

    A function that starts at zero must rise first, so an event that has just happened does not fire again.
    Between grid points, a dip is looked for where three neighbouring values allow one.
    """

    def at(time: float) -> float:
        return float(function(np.array([time]))[0])

    armed = False
    for begin in range(0, grid.size, _BLOCK):
        block = grid[max(begin - 2, 0) : begin + _BLOCK]  # a dip may lie between two blocks
        values = function(block)
        if not armed:
            above = np.flatnonzero(values > _ARMED)
            if not above.size:
                continue
            armed, block, values = True, block[above[0] :], values[above[0] :]
        below = np.flatnonzero(values <= 0)
        last = int(below[0]) if below.size else block.size - 1
        bracket = _first_dip(at, block[: last + 1], values[: last + 1])
        if bracket is None and below.size:
            bracket = float(block[last - 1]), float(block[last])
        if bracket is not None:
            return float(brentq(at, *bracket, xtol=1e-14, rtol=1e-15))
    return None


def _first_dip(at: Callable[[float], float], grid: FloatArray, values: FloatArray) -> tuple[float, float] | None:
    """Return an interval where the function falls below zero, although it is positive at the grid points."""
    inner = values[1:-1]
    lowest = np.flatnonzero((inner > 0) & (inner <= values[:-2]) & (inner <= values[2:])) + 1
    for place in lowest:
        # A parabola through three points dips below the middle one by less than its higher neighbour is above it.
        if values[place] > max(values[place - 1], values[place + 1]) - values[place]:
            continue
        found = minimize_scalar(at, bounds=(grid[place - 1], grid[place + 1]), method="bounded")
        if found.fun < 0:
            return float(grid[place - 1]), float(found.x)
    return None
