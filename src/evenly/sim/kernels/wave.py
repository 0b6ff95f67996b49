"""The distance to balance while the load swings: its time integral between two events.

Times pools, the distance at a load l is sqrt(gap + part * (part - 2 * count)). Here `gap` is the sum over levels of
(at_least - full)^2 for floor(l), `count` is the number of pools with more than floor(l) tasks, and `part` is the
number that balance asks for, pools * (l - floor(l)). With x = part - count this is sqrt(x^2 + rest), where `rest` is
a whole number: a smooth function of x, except at 0 if rest = 0. As a function of complex x it is analytic within its
own value of x, so Gauss's rule is accurate on stretches on which x moves no further than the function is large.

Between two events the load hardly moves as a rule, and two points are enough. If it passes other levels, `gap`
changes by one term per level, and the stretch is cut there. Whole periods are alike, so no more than one is
integrated. The relative error is below 1e-9.

Paper: eq. (1) and Sec. 5.3.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import Record

IntArray = NDArray[np.int64]

_SHORT = 0.01  # radians
_NEAR = 0.5 - 0.5 / math.sqrt(3.0)  # the points of Gauss's rule on [0, 1]
_FAR = 0.5 + 0.5 / math.sqrt(3.0)
_NODES, _WEIGHTS = (values[4:].copy() for values in np.polynomial.legendre.leggauss(8))  # the rule is symmetric


@inlined
def load_at(rules: Record, time: float) -> float:
    """Return the offered load per pool at a time within the phase in force."""
    if rules.amplitude == 0.0:
        return float(rules.load)
    turn = 2.0 * math.pi * (time - rules.start) / rules.period
    return float(rules.load + rules.amplitude * math.sin(turn))


@kernel
def swing(
    rules: Record, state: Record, at_least: IntArray, full: NDArray[np.float64], time: float, load: float
) -> float:
    """Return the integral of the distance from `since` to `time`, when the load is `load`, and move `gap` to it."""
    pools, middle, length = rules.pools, rules.load, time - state.since
    angle = length * (2.0 * math.pi / rules.period)
    reach = rules.amplitude * angle
    whole = math.floor(state.load)
    if angle < _SHORT and state.load - reach > whole and state.load + reach < whole + 1:
        # For the sine at a part u of the way, sin(u * angle) / sin(angle) is the weight of its value at the end.
        bend = angle * angle / 6.0
        most, least = _FAR * (1.0 + (1.0 - _FAR**2) * bend), _NEAR * (1.0 + (1.0 - _NEAR**2) * bend)
        first, last = state.load - middle, load - middle
        count = 2.0 * at_least[whole + 1]
        part = pools * (middle - whole + most * first + least * last)
        near = math.sqrt(max(state.gap + part * (part - count), 0.0))
        part = pools * (middle - whole + least * first + most * last)
        far = math.sqrt(max(state.gap + part * (part - count), 0.0))
        if near + far >= 64.0 * pools * reach:  # two points are enough
            state.load = load
            return 0.5 * length * (near + far)
    area = _crossing(rules, at_least, state.gap, whole, state.since, length)
    _move(state, at_least, full, pools, math.floor(load))
    state.load = load
    return area


@kernel
def _move(state: Record, at_least: IntArray, full: NDArray[np.float64], pools: int, whole: int) -> None:
    """Keep `gap` and `full` for another whole part of the load."""
    level = math.floor(state.load)
    while level < whole:
        level += 1
        full[level] = pools
        state.gap += _step(pools, at_least[level])
    while level > whole:
        full[level] = 0.0
        state.gap -= _step(pools, at_least[level])
        level -= 1


@inlined
def _step(pools: int, count: int) -> float:
    """Return what `gap` gains when all pools should be at a level that `count` pools have reached."""
    return float(pools) * (float(pools) - 2.0 * count)


@kernel
def _crossing(rules: Record, at_least: IntArray, gap: float, whole: int, begin: float, length: float) -> float:
    """Integrate over any time in which no task arrives or departs; `gap` is for the whole part of the load."""
    turns = math.floor(length / rules.period)
    area = 0.0
    if turns > 0:
        area = 2.0 * turns * _rise(rules, at_least, gap, whole, -0.5 * math.pi, 0.5 * math.pi)
    rest = min(max(length / rules.period - turns, 0.0), 1.0)
    start = (begin - rules.start) / rules.period
    angle = 2.0 * math.pi * (start - math.floor(start))
    last = angle + 2.0 * math.pi * rest
    half = math.floor(angle / math.pi + 0.5)  # the load rises in even halves of the period, and falls in odd ones
    while angle < last:
        stop = min(last, (half + 0.5) * math.pi)
        low, high = angle - half * math.pi, stop - half * math.pi
        if half % 2 == 1:  # a fall is a rise, backwards
            low, high = -high, -low
        area += _rise(rules, at_least, gap, whole, low, high)
        angle = stop
        half += 1
    return area * (rules.period / (2.0 * math.pi))


@kernel
def _rise(rules: Record, at_least: IntArray, gap: float, whole: int, low: float, high: float) -> float:
    """Integrate over the angle, from -pi/2 or more to pi/2 or less, level by level."""
    pools, middle, amplitude = rules.pools, rules.load, rules.amplitude
    bottom, top = math.sin(low), math.sin(high)
    first = math.floor(middle + amplitude * bottom)
    while whole > first:
        gap -= _step(pools, at_least[whole])
        whole -= 1
    while whole < first:
        whole += 1
        gap += _step(pools, at_least[whole])
    steep = pools * amplitude
    area = 0.0
    while low < high:
        count = at_least[whole + 1]
        zero = (count / pools + whole - middle) / amplitude  # the sine where x = 0
        rest = max(gap - float(count) * count, 0.0)
        edge = (whole + 1 - middle) / amplitude
        stop, end = high, top
        if edge < top:
            stop, end = math.asin(max(edge, -1.0)), edge
        if bottom < zero < end:
            nadir = math.asin(zero)
            area += _outward(steep, zero, rest, nadir, low) + _outward(steep, zero, rest, nadir, stop)
        elif zero <= bottom:
            area += _outward(steep, zero, rest, low, stop)
        else:
            area += _outward(steep, zero, rest, stop, low)
        low, bottom = stop, end
        whole += 1
        gap += _step(pools, count)
    return area


@kernel
def _outward(steep: float, zero: float, rest: float, near: float, far: float) -> float:
    """Integrate over the angle between `near` and `far`, on one side of x = 0; `near` is the nearer one."""
    x, last = steep * abs(math.sin(near) - zero), steep * abs(math.sin(far) - zero)
    ahead = steep if far > near else -steep
    if last < x:  # by rounding
        return abs(_smooth(steep, zero, rest, near, far))
    area = 0.0
    while rest > 0.0:
        x += math.sqrt(x * x + rest)
        if x > 0.99 * last:
            break
        along = zero + (x if ahead > 0.0 else -x) / steep
        stop = math.asin(min(max(along, -1.0), 1.0))
        area += abs(_smooth(steep, zero, rest, near, stop))
        near = stop
    return area + abs(_smooth(steep, zero, rest, near, far))


@kernel
def _smooth(steep: float, zero: float, rest: float, begin: float, end: float) -> float:
    """Integrate over the angle by Gauss's rule with eight points, on panels of a radian at most."""
    panels = 1 + int(abs(end - begin))
    half = 0.5 * (end - begin) / panels
    area = 0.0
    for panel in range(panels):
        middle = begin + (2 * panel + 1) * half
        sine, cosine = math.sin(middle), math.cos(middle)
        for node in range(4):
            # Sine and cosine of half a radian at most, by their series: the error is below 1e-12.
            angle = half * _NODES[node]
            square = angle * angle
            c = 1.0 - square / 2 * (
                1.0 - square / 12 * (1.0 - square / 30 * (1.0 - square / 56 * (1.0 - square / 90)))
            )
            s = angle * (1.0 - square / 6 * (1.0 - square / 20 * (1.0 - square / 42 * (1.0 - square / 72))))
            left = steep * (sine * c - cosine * s - zero)
            right = steep * (sine * c + cosine * s - zero)
            area += _WEIGHTS[node] * (math.sqrt(left * left + rest) + math.sqrt(right * right + rest))
    return area * half
