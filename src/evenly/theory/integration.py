"""Stiff differential equations, integrated up to a time or to an event.

SciPy's VODE with backward differences: mode (a) of the fluid equations is stiff without bound near its
surface, and solvers that guess when to be implicit stall there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import ode

from evenly.theory.balance import FloatArray

Drift = Callable[[float, FloatArray], FloatArray]
Value = Callable[[float, FloatArray], float]

_RELATIVE, _ABSOLUTE = 1e-10, 1e-13
_CLOSEST_LOOK = 0.05  # time between looks for an event
_MOST_STEPS = 10**6
_NEWTON_STEPS = 20
_TIME_ERROR = 1e-12
_NUDGE = 1e-7


def integrate(
    drift: Drift, start: float, y: FloatArray, end: float, outputs: FloatArray, event: Value | None = None
) -> tuple[FloatArray, float, FloatArray]:
    """Values at the output times, and the time and value at which the integration ends.

    It ends at `end`, or before when the value of `event` falls to zero; outputs after that are left out.
    """
    looks = outputs
    if event is not None:
        looks = np.union1d(outputs, np.linspace(start, end, int((end - start) / _CLOSEST_LOOK) + 2)[1:-1])
    looks = np.append(looks[(looks > start) & (looks < end)], end)
    solver = _solver(drift, start, y)
    wanted = set(outputs.tolist())
    rows = [y] if start in wanted else []
    before, y_before = start, y
    for look in looks.tolist():
        y_now = _advance(solver, look)
        if event is not None and event(look, y_now) <= 0:
            time, y_now = _locate(drift, before, y_before, look, event)
            return _stack(rows, y), time, y_now
        if look in wanted:
            rows.append(y_now)
        before, y_before = look, y_now
    return _stack(rows, y), end, y_before


def _stack(rows: list[FloatArray], y: FloatArray) -> FloatArray:
    return np.array(rows) if rows else np.empty((0, y.size))


def _solver(drift: Drift, start: float, y: FloatArray) -> ode:
    solver = ode(drift)
    solver.set_integrator(
        "vode", method="bdf", with_jacobian=True, rtol=_RELATIVE, atol=_ABSOLUTE, nsteps=_MOST_STEPS
    )
    return solver.set_initial_value(y, start)


def _advance(solver: ode, time: float) -> FloatArray:
    y = np.array(solver.integrate(time))
    if not solver.successful():
        raise ArithmeticError(f"the differential equations could not be integrated to {time:g}")
    return y


def _locate(drift: Drift, low: float, y: FloatArray, high: float, event: Value) -> tuple[float, FloatArray]:
    """The time of an event between two looks, by Newton's method kept inside the bracket."""
    start = y
    value, slope = event(low, y), _rate(drift, low, y, event)
    time = low - value / slope if slope < 0 else high
    time = time if low < time < high else (low + high) / 2
    for _ in range(_NEWTON_STEPS):
        y = _advance(_solver(drift, low, start), time)
        value = event(time, y)
        if value > 0:
            low, start = time, y
        else:
            high = time
        slope = _rate(drift, time, y, event)
        better = time - value / slope if slope < 0 else high
        if abs(better - time) < _TIME_ERROR or high - low < _TIME_ERROR:
            return better, y + (better - time) * drift(time, y)
        time = better if low < better < high else (low + high) / 2
    raise ArithmeticError(f"an event near {time:g} could not be located")


def _rate(drift: Drift, time: float, y: FloatArray, event: Value) -> float:
    """How fast the value of the event changes along the solution."""
    slope = drift(time, y)
    return (event(time + _NUDGE, y + _NUDGE * slope) - event(time - _NUDGE, y - _NUDGE * slope)) / (2 * _NUDGE)
