"""The fluid equations solved mode by mode, with or without learning.

A run is a chain of stretches. Each has one mode, one threshold and one phase of the demand, and ends at the
first event: pools fill up to a level, a level can no longer be held, or the threshold moves. Write h for
threshold + 1. On the surfaces q(threshold) = 1 and q(h) = 1 the solution slides: (b) lasts while
load >= threshold (1 - q(h)), (c) while load >= h (1 - q(h + 1)). The speed at which a surface is reached is
the slack that keeps the solution on it, so modes cannot chatter.

Close to the surface, the equations of mode (a) become arbitrarily stiff. But there the deficit w is known, and so
is its share at each level, up to w^3. `_near` uses that, and never divides by a number close to zero.

Paper: Thm 1, Def. 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf

import numpy as np

from evenly.theory.balance import FloatArray
from evenly.theory.fluid.crossing import first_crossing
from evenly.theory.fluid.integration import integrate
from evenly.theory.fluid.mass import load_over, mass_after, mass_at
from evenly.theory.fluid.modes import (
    Mode,
    fill_equations,
    spill_equations,
    surviving_mass,
    survivors,
    threshold_gap,
)
from evenly.workload.demand import Phase

_CLOSE = 1e-8  # a deficit up to this is at the surface
_LEFT = 1e-4  # a deficit that grew to this has left the surface; its third power is negligible
_ZERO = 1e-11  # a deficit up to this counts as none
_SLACK = 1e-11  # how far the load may fall short, per task, before a level is no longer held at 1
_SLOWEST = 1e-6  # least divisor
_SAMPLES = 65
_HALVINGS = 0.5 ** np.arange(1, 31)
_SAMPLES_A_PERIOD = 64
_PERIODS_AHEAD = 4
_FORGOTTEN = 45.0  # the time after which nothing is left of the start: e^-45


@dataclass(frozen=True)
class State:
    """An occupancy, levels 0 to the last, and a threshold."""

    time: float
    q: FloatArray
    threshold: int

    @property
    def deficit(self) -> float:
        """The tasks per pool that are missing up to the threshold."""
        return float(np.sum(1 - self.q[1 : self.threshold + 1]))


@dataclass(frozen=True)
class Stretch:
    """A solution under one mode and threshold, from `start` to the time of `end_state`."""

    mode: Mode
    start: float
    threshold: int
    rows: FloatArray  # the occupancy at the output times from `start` on, the end excluded
    end_state: State


def grid_over(phase: Phase, start: float, end: float, until: float = inf) -> FloatArray:
    """Return times from `start` to `end`, fine enough to see every turn of the functions whose zeros are events.

    Without a wave, these functions are polynomials in e^-t; a wave adds its own turns. Times after `until` are
    left out, and the others do not depend on it.
    """
    last = min(end, start + _FORGOTTEN)
    fractions = np.linspace(1.0, exp(start - last), _SAMPLES)
    times = start - np.log(fractions)
    times[-1] = last
    if end > last:
        times = np.append(times, end)
    if phase.amplitude:
        count = int((end - start) / phase.period * _SAMPLES_A_PERIOD) + 2
        step = (end - start) / (count - 1)
        wave = start + step * np.arange(min(count - 1, int((min(until, end) - start) / step) + 1))
        times = np.union1d(times, np.append(wave, end))
    return np.clip(times[times <= until], start, end)


class Stepper:
    """A solver for the stretches of one phase of the demand; `alpha` is None if the threshold is fixed."""

    def __init__(self, phase: Phase, end: float, alpha: Fraction | None, outputs: FloatArray) -> None:
        """Solve one phase of the demand, up to its end, at these output times."""
        self._phase = phase
        self._outputs = outputs
        self._end = end
        self._restless = phase.amplitude > 0
        self._room = inf if alpha is None else float(1 - alpha)  # gap at which the threshold falls

    def settle(self, state: State) -> State:
        """Apply the changes of the threshold that are due immediately.

        Paper: Def. 2 (b), (c); after a fall no other is due (Lem. 6, App. B.4). Departs: a start where the rule
        applies at once is allowed; the first arrivals at a large system then change the threshold right away.
        """
        if self._room == inf:
            return state
        threshold, q = state.threshold, state.q
        while threshold > 0 and 1 - q[threshold] >= self._room - _ZERO:
            threshold -= 1
        while q[threshold + 1] >= 1 - _ZERO:
            threshold += 1
        return State(state.time, q, threshold)

    def stretch(self, state: State) -> Stretch:
        """Return the solution from here to the next event, or to the end of the phase."""
        deficit, load = state.deficit, self._phase.load_at(state.time)
        q, threshold = state.q, state.threshold
        high = threshold + 1
        if deficit > 2 * _CLOSE:
            return self._far(state)
        slack = _SLACK * (1 + high + load)
        if deficit > _ZERO or load - threshold * (1 - q[high]) < -slack:
            return self._near(state)
        if q[high] < 1 - _ZERO or load - high * (1 - q[high + 1]) < -slack:
            return self._hold(state)
        return self._spill(state)

    def _let_go(self, high: int) -> float:
        """Return the shortfall at which a level stops being held at 1: above any at which `stretch` holds it."""
        return 2 * _SLACK * (1 + high + self._phase.load + self._phase.amplitude)

    def _mass(self, state: State) -> Callable[[FloatArray], FloatArray]:
        start = float(np.sum(state.q[1:]))
        return lambda times: mass_after(self._phase, state.time, start, times)

    def _deficit(self, state: State) -> Callable[[FloatArray], FloatArray]:
        """Return w in mode (a) as a function of time: the mass missing up to the threshold."""
        mass, rest = self._mass(state), surviving_mass(state.q, state.threshold + 1)
        return lambda times: state.threshold - mass(times) + rest(times - state.time)

    def _first(self, state: State, *functions: Callable[[FloatArray], FloatArray]) -> float:
        """Return the time of the first event, or the end of the phase.

        Within a wave, the next periods are searched first: few events are later, and there may be many periods.
        """
        soon = state.time + _PERIODS_AHEAD * self._phase.period if self._restless else inf
        for until in (soon, inf):
            grid = grid_over(self._phase, state.time, self._end, until)
            early = state.time + (grid[1] - state.time) * _HALVINGS  # for a value that is soon back at zero
            grid = np.union1d(grid, early)
            found = (first_crossing(function, grid) for function in functions)
            times = [time for time in found if time is not None]
            if times or until >= self._end:
                break
        return min(times, default=self._end)

    def _far(self, state: State) -> Stretch:
        """Integrate mode (a) until the surface is close or the threshold falls."""
        threshold, levels = state.threshold, state.q.size - 1
        deficit = self._deficit(state)
        end = self._first(state, lambda times: deficit(times) - _CLOSE)
        mass = mass_at(self._phase, state.time, float(np.sum(state.q[1:])))
        gap_at = threshold_gap(mass, threshold, levels)

        def falls(time: float, y: FloatArray) -> float:
            return self._room - gap_at(time, y)

        y = np.concatenate([1 - state.q[1:threshold], state.q[threshold + 1 :]])
        outputs = self._between(state.time, end)
        rows, end, last = integrate(
            fill_equations(self._phase.load_at, gap_at, threshold, levels),
            state.time,
            y,
            end,
            outputs,
            None if self._room == inf else falls,
            restless=self._restless,
        )

        def occupancy(y: FloatArray, times: FloatArray) -> FloatArray:
            q = np.ones((times.size, levels + 1))
            q[:, 1:threshold] -= y[:, : threshold - 1]
            q[:, threshold + 1 :] = y[:, threshold - 1 :]
            gaps = [gap_at(time, row) for time, row in zip(times.tolist(), y, strict=True)]
            q[:, threshold] = 1 - np.array(gaps)
            return q

        ends = np.array([end])
        return self._finish(
            Mode.FILL, state, end, occupancy(rows, outputs[: rows.shape[0]]), occupancy(last[None], ends)
        )

    def _near(self, state: State) -> Stretch:
        """Solve mode (a) at the surface, where almost all of the deficit is at the threshold's level.

        A gap g there that grows at speed c makes a gap of (threshold - 1) g^2 / (load + 2 c) one level below.
        """
        threshold, high = state.threshold, state.threshold + 1
        deficit = self._deficit(state)
        left = min(_LEFT, 0.1 * self._room)  # before the threshold can fall
        end = self._first(state, deficit, lambda times: left - deficit(times))
        least = _ZERO if end > state.time else inf  # inf: the rest is filled before the next float

        def occupancy(times: FloatArray) -> FloatArray:
            rows = np.ones((times.size, state.q.size))
            rows[:, high:] = survivors(state.q, high, times - state.time)
            gap = np.maximum(deficit(times), 0.0)
            gap = np.where(gap < least, 0.0, gap)
            load = load_over(self._phase, times)
            speed = np.maximum(threshold * (1 - rows[:, high]) - load, 0.0)
            second = (threshold - 1) * gap**2 / np.maximum(load + 2 * speed, _SLOWEST)
            rows[:, threshold] -= gap - second
            rows[:, threshold - 1] -= second
            return rows

        return self._explicit(Mode.FILL, state, end, occupancy)

    def _hold(self, state: State) -> Stretch:
        """Solve mode (b) in closed form: v_h = u - threshold, and the levels above h only lose tasks."""
        threshold, high = state.threshold, state.threshold + 1
        mass, rest = self._mass(state), surviving_mass(state.q, high + 1)
        room = self._let_go(high)

        def at_high(times: FloatArray) -> FloatArray:
            return mass(times) - threshold - rest(times - state.time)

        def slack(times: FloatArray) -> FloatArray:
            return load_over(self._phase, times) - threshold * (1 - at_high(times)) + room

        end = self._first(state, lambda times: 1 - at_high(times), slack)

        def occupancy(times: FloatArray) -> FloatArray:
            rows = np.ones((times.size, state.q.size))
            rows[:, high] = np.clip(at_high(times), 0.0, 1.0)
            rows[:, high + 1 :] = survivors(state.q, high + 1, times - state.time)
            return rows

        return self._explicit(Mode.HOLD, state, end, occupancy)

    def _spill(self, state: State) -> Stretch:
        """Integrate mode (c) until threshold + 1 can no longer be held."""
        high, levels = state.threshold + 1, state.q.size - 1
        room = self._let_go(high)

        def lets_go(time: float, q: FloatArray) -> float:
            return float(self._phase.load_at(time) - high * (1 - q[0]) + room)

        equations = spill_equations(self._phase.load_at, state.threshold, levels)
        outputs = self._between(state.time, self._end)
        y, end, y_end = integrate(
            equations, state.time, state.q[high + 1 :], self._end, outputs, lets_go, restless=self._restless
        )

        def occupancy(y: FloatArray) -> FloatArray:
            return np.hstack([np.ones((y.shape[0], high + 1)), y])

        return self._finish(Mode.SPILL, state, end, occupancy(y), occupancy(y_end[None]))

    def _between(self, start: float, end: float) -> FloatArray:
        """Return the output times from `start` on, up to but excluding `end`."""
        low, high = np.searchsorted(self._outputs, [start, end])
        return self._outputs[low : self._outputs.size if end >= self._end else high]

    def _explicit(
        self, mode: Mode, state: State, end: float, occupancy: Callable[[FloatArray], FloatArray]
    ) -> Stretch:
        """Return a stretch whose occupancy is known as a function of time."""
        rows = occupancy(self._between(state.time, end))
        return self._finish(mode, state, end, rows, occupancy(np.array([end])))

    def _finish(self, mode: Mode, state: State, end: float, rows: FloatArray, last: FloatArray) -> Stretch:
        q = np.minimum.accumulate(np.clip(last[0], 0.0, 1.0))
        return Stretch(mode, state.time, state.threshold, rows, State(end, q, state.threshold))
