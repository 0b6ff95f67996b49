"""Stiff differential equations, integrated up to a time or to an event.

The solver is SciPy's VODE with backward differences. Mode (a) of the fluid equations becomes arbitrarily stiff
near its surface, and solvers that guess when to be implicit stall there. The equations mainly couple neighbours,
so a tridiagonal Jacobian is enough for Newton's method. It is given explicitly, because finite differences would
be spoilt by the couplings that it leaves out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import ode

from evenly.errors import UnsolvedError
from evenly.theory.balance import FloatArray

Field = Callable[[float, FloatArray], FloatArray]
Value = Callable[[float, FloatArray], float]

_RELATIVE, _ABSOLUTE = 1e-11, 1e-14
_MAX_STEPS = 10**6
_LIVELY = 60.0  # a solution is at rest after this time: deviations fade like e^-t
_NEWTON_STEPS = 100
_TIME_ERROR = 1e-12
_NUDGE = 1e-7
_LAST_DIGITS = 1e-15
_FAR = 4.0  # a value this many times its change in a step does not dip to zero there


@dataclass(frozen=True)
class Equations:
    """y' = drift(t, y), with the derivatives of y_i' by y_(i+1), y_i and y_(i-1) as SciPy packs three bands."""

    drift: Field
    bands: Field


@dataclass(frozen=True)
class _Point:
    """The solution at a time, and the value of the event there."""

    time: float
    y: FloatArray
    value: float


def integrate(
    equations: Equations,
    start: float,
    y: FloatArray,
    end: float,
    outputs: FloatArray,
    event: Value | None = None,
    *,
    restless: bool = False,
) -> tuple[FloatArray, float, FloatArray]:
    """Return values at the output times, and the time and value at which the integration ends.

    It ends at `end`, or earlier if the value of `event` falls to zero; outputs after that are left out. Unless
    `restless` is set, the solution is taken to be at rest once deviations have had the time to fade.
    """
    reach = end if restless else min(end, start + _LIVELY)
    value = event if event is not None else _never
    solver = _solver(equations, start, y)
    wanted = outputs.tolist()
    rows = [y] if wanted and wanted[0] == start else []
    here = _Point(start, y, value(start, y))
    if _too_close(start, reach):
        here = _euler_step(equations, here, reach, value)
    while here.time < reach:
        if event is None and here.time > start:  # the same steps, without stopping after each
            goal = min(wanted[len(rows)], reach) if len(rows) < len(wanted) else reach
            there = _Point(goal, _advance(solver, goal), 1.0)
        else:
            there = _next_point(solver, reach, value)
        found = _event_between(equations, here, there, value) if event is not None else None
        until = there.time if found is None else found.time
        while len(rows) < len(wanted) and wanted[len(rows)] <= until:
            rows.append(_advance(solver, wanted[len(rows)]))  # within the step just taken: interpolated
        if found is not None:
            return _stack(rows, y), found.time, found.y
        here = there
    rows += [here.y] * (len(wanted) - len(rows))
    return _stack(rows, y), end, here.y


def _never(_: float, __: FloatArray) -> float:
    return 1.0


def _stack(rows: list[FloatArray], y: FloatArray) -> FloatArray:
    return np.array(rows) if rows else np.empty((0, y.size))


def _solver(equations: Equations, start: float, y: FloatArray) -> ode:
    solver = ode(equations.drift, equations.bands)
    solver.set_integrator(
        "vode",
        method="bdf",
        with_jacobian=True,
        lband=1,
        uband=1,
        rtol=_RELATIVE,
        atol=_ABSOLUTE,
        nsteps=_MAX_STEPS,
    )
    return solver.set_initial_value(y, start)


def _advance(solver: ode, time: float, *, step: bool = False) -> FloatArray:
    with warnings.catch_warnings(category=UserWarning, action="ignore"):  # the error below says it
        y = np.array(solver.integrate(time, step=step))
    if not solver.successful():
        raise UnsolvedError(f"The fluid equations could not be solved up to time {time:g}: reduce the horizon.")
    return y


def _next_point(solver: ode, reach: float, value: Value) -> _Point:
    """Return the end of the solver's next step, or `reach` if that comes first."""
    y = _advance(solver, reach, step=True)
    if solver.t > reach:
        y = _advance(solver, reach)
    time = float(solver.t)
    return _Point(time, y, value(time, y))


def _event_between(equations: Equations, here: _Point, there: _Point, value: Value) -> _Point | None:
    """Return where the value falls to zero within a step, even if it has risen again by the end of the step."""
    if there.value <= 0:
        return _locate(equations, here, there.time, value)
    if min(here.value, there.value) > _FAR * abs(there.value - here.value):
        return None
    falling = _rate(equations, here, value)
    rising = _rate(equations, there, value)
    if falling < 0 < rising:
        lowest = here.time + (there.time - here.time) * falling / (falling - rising)
        dip = _reach(equations, here, lowest, value)
        if dip.value <= 0:
            return _locate(equations, here, dip.time, value)
    return None


def _reach(equations: Equations, start: _Point, time: float, value: Value) -> _Point:
    """Return the solution a little later."""
    if time - start.time < _TIME_ERROR or _too_close(start.time, time):
        return _euler_step(equations, start, time, value)
    y = _advance(_solver(equations, start.time, start.y), time)
    return _Point(time, y, value(time, y))


def _too_close(start: float, time: float) -> bool:
    """Return True if VODE would refuse to start, because the two times only differ in their last digits."""
    return time - start < _LAST_DIGITS * abs(time)


def _euler_step(equations: Equations, start: _Point, time: float, value: Value) -> _Point:
    y = start.y + (time - start.time) * equations.drift(start.time, start.y)
    return _Point(time, y, value(time, y))


def _locate(equations: Equations, low: _Point, high: float, value: Value) -> _Point:
    """Locate the event between a point before it and a time after it, by Newton's method inside the bracket."""
    point, slope = low, _rate(equations, low, value)
    for _ in range(_NEWTON_STEPS):
        time = point.time - point.value / slope if slope < 0 else high
        if not low.time < time < high:
            time = (low.time + high) / 2
        if high - low.time < _TIME_ERROR or abs(time - point.time) < _TIME_ERROR:
            return _reach(equations, low, time, value)
        point = _reach(equations, low, time, value)
        slope = _rate(equations, point, value)
        width = high - low.time
        low, high = (point, high) if point.value > 0 else (low, point.time)
        if high - low.time > width / 2:  # Newton's method creeps: halve
            middle = _reach(equations, low, (low.time + high) / 2, value)
            low, high = (middle, high) if middle.value > 0 else (low, middle.time)
    raise UnsolvedError(f"An event near time {low.time:g} could not be located: reduce the horizon.")


def _rate(equations: Equations, point: _Point, value: Value) -> float:
    """Return how fast the value of the event changes along the solution."""
    slope = equations.drift(point.time, point.y)
    after = value(point.time + _NUDGE, point.y + _NUDGE * slope)
    before = value(point.time - _NUDGE, point.y - _NUDGE * slope)
    return (after - before) / (2 * _NUDGE)
