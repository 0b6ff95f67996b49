"""Total and tail mass: tasks per pool, overall and from a level on.

The total mass is the same under every policy without losses, and bounds on tail masses hold for any start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf, pi

import numpy as np

from evenly.theory.balance import FloatArray
from evenly.workload.demand import Phase


def load_over(phase: Phase, times: FloatArray) -> FloatArray:
    """Return the load of a phase at these times."""
    return phase.load + phase.amplitude * np.sin(2 * pi / phase.period * (times - phase.start))


def mass_after(phase: Phase, start: float, mass: float, times: FloatArray) -> FloatArray:
    """Return the total mass at times of a phase, from its value at `start`: the solution of u' = load(t) - u.

    Paper: Lem. 1, eq. (9). Departs: also for a load that swings.
    """
    decay = np.exp(start - times)
    steady: FloatArray = phase.load + (mass - phase.load) * decay
    if not phase.amplitude:
        return steady
    return steady + _swing(phase, times) - _swing(phase, np.asarray(start)) * decay


def _swing(phase: Phase, times: FloatArray) -> FloatArray:
    """Return the response to the wave alone, once the start has faded."""
    pulse = 2 * pi / phase.period
    angle = pulse * (times - phase.start)
    swing: FloatArray = phase.amplitude * (np.sin(angle) - pulse * np.cos(angle)) / (1 + pulse**2)
    return swing


def mass_at(phase: Phase, start: float, mass: float) -> Callable[[float], float]:
    """Return `mass_after` as a function of one time, for solvers that call it a million times.

    The operations are those of `mass_after`, one by one, so that both round in the same way.
    """
    load, pulse = phase.load, 2 * pi / phase.period
    damping = 1 + pulse**2

    def swing(time: float) -> float:
        angle = pulse * (time - phase.start)
        return phase.amplitude * (float(np.sin(angle)) - pulse * float(np.cos(angle))) / damping

    if not phase.amplitude:
        return lambda time: load + (mass - load) * float(np.exp(start - time))
    first = swing(start)

    def total(time: float) -> float:
        decay = float(np.exp(start - time))
        return load + (mass - load) * decay + swing(time) - first * decay

    return total


def total_mass(phases: Sequence[Phase], initial: float, times: FloatArray) -> FloatArray:
    """Return the tasks per pool over time, exactly, from `initial` tasks per pool.

    Paper: eq. (9).
    """
    masses = np.empty_like(times)
    mass = initial
    for phase, following in pairwise([*phases, None]):
        assert phase is not None
        end = inf if following is None else following.start
        here = (times >= phase.start) & (times < end)
        masses[here] = mass_after(phase, phase.start, mass, times[here])
        if following is not None:
            mass = float(mass_after(phase, phase.start, mass, np.asarray(end)))
    return masses


def tail_mass_bound(start: float, limit: float, elapsed: FloatArray) -> FloatArray:
    """Return an upper bound on a tail mass after some time: it falls exponentially to `limit`, or below.

    With a fixed threshold l: limit (load - l)^+ for the mass from level l + 1 on, and (load - l - 1)^+ for the
    mass from l + 2 on, at every load and from any time on. With a learned threshold of at most m: (load - m)^+ for
    the mass from m + 1 on, and 0 for the mass from m + 2 on (or from m + 1 on, while some pools have fewer than m
    tasks).

    Paper: Lem. 2; Prop. 1, eqs. (3a)-(3b); Prop. 5, eqs. (10a)-(10b) and (11). Departs: Prop. 1 requires
    l + 1 > load for (3a), and that bound only from some time on; neither is needed.
    """
    bound: FloatArray = limit + (start - limit) * np.exp(-elapsed)
    return bound
