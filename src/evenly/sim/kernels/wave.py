"""The distance to balance while the load swings: its time integral between two events.

Times pools, the distance at a load l is sqrt(gap + part * (part - 2 * count)). Here `gap` is the sum over levels
of (at_least - full)^2 for floor(l), `count` the number of pools with more than floor(l) tasks, and `part` the
number that balance asks for, pools * (l - floor(l)). With x = part - count, this is sqrt(x^2 + rest), where `rest`
is a whole number. As a function of complex x, it is analytic within its own value of x. So Gauss's rule is
accurate on stretches on which x moves no further than the function is large.

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
Floats = NDArray[np.float64]
Ends = tuple[float, float, float, float]  # angle and sine at both ends of a rise

_SHORT = 0.01  # radians
_STILL = 1e-14  # next to -1 and 1, the sine hardly moves
_NEAR = 0.5 - 0.5 / math.sqrt(3.0)  # the points of Gauss's rule on [0, 1]
_FAR = 0.5 + 0.5 / math.sqrt(3.0)
_THREE, _EIGHT = (np.array(np.polynomial.legendre.leggauss(points)).T.copy() for points in (3, 8))


@inlined
def load_at(rules: Record, time: float) -> float:
    """Return the offered load per pool at a time within the phase in force."""
    if rules.amplitude == 0.0:
        return float(rules.load)
    turn = 2.0 * math.pi * (time - rules.start) / rules.period
    return float(rules.load + rules.amplitude * math.sin(turn))


@inlined
def swing(rules: Record, state: Record, at_least: IntArray, full: Floats, time: float, load: float) -> float:
    """Return the integral of the distance from `since` to `time`, and move `gap` to the load at that time."""
    pools, middle, length = rules.pools, rules.load, time - state.since
    angle = length * rules.frequency
    reach = rules.amplitude * angle
    whole = math.floor(state.load)
    stays = state.load - reach > whole and state.load + reach < whole + 1 and math.floor(load) == whole
    if stays and angle < _SHORT:
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
            return float(0.5 * length * (near + far))
    area = _crossing(rules, at_least, state.gap, whole, state.since, length)
    _move(state, at_least, full, pools, math.floor(load))
    state.load = load
    return area


@kernel
def _move(state: Record, at_least: IntArray, full: Floats, pools: int, whole: int) -> None:
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
    return float(area / rules.frequency)


@kernel
def _rise(rules: Record, at_least: IntArray, gap: float, whole: int, low: float, high: float) -> float:
    """Integrate over the angle, from -pi/2 or more to pi/2 or less, level by level."""
    pools, middle, amplitude = rules.pools, rules.load, rules.amplitude
    sine, top = math.sin(low), math.sin(high)
    ends = (low, sine, high, top)
    first = math.floor(middle + amplitude * sine)
    while whole > first:
        gap -= _step(pools, at_least[whole])
        whole -= 1
    while whole < first:
        whole += 1
        gap += _step(pools, at_least[whole])
    steep = pools * amplitude
    area = 0.0
    if top - sine < _STILL:
        part = pools * (middle - whole + amplitude * sine)
        return (high - low) * math.sqrt(max(gap + part * (part - 2.0 * at_least[whole + 1]), 0.0))
    while sine < top:
        count = at_least[whole + 1]
        rest = max(gap - float(count) * count, 0.0)
        zero = (count / pools + whole - middle) / amplitude  # the sine where x = 0
        stop = min(max((whole + 1 - middle) / amplitude, sine), top)
        turn = min(max(zero, sine), stop)
        area += _outward(steep, zero, rest, turn, sine, ends) + _outward(steep, zero, rest, turn, stop, ends)
        sine = stop
        whole += 1
        gap += _step(pools, count)
    return area


@kernel
def _outward(steep: float, zero: float, rest: float, near: float, far: float, ends: Ends) -> float:
    """Integrate between two sines, on one side of x = 0, in steps that grow with the distance from it."""
    area = 0.0
    last = steep * abs(far - zero)
    x = steep * abs(near - zero)
    ahead = math.copysign(1.0 / steep, far - near)
    while near != far:
        size = math.sqrt(x * x + rest)
        stop = zero + (x + size) * ahead
        if rest == 0.0 or x + size >= 0.99 * last:
            stop = far
        width, room = abs(stop - near), 1.0 - max(abs(near), abs(stop))
        if width * 8.0 <= room and steep * width * 8.0 <= size:
            area += _by_sine(steep, zero, rest, near, stop, _THREE)
        elif width <= room:
            area += _by_sine(steep, zero, rest, near, stop, _EIGHT)
        else:
            area += _by_angle(steep, zero, rest, near, stop, ends)
        near = stop
        x += size
    return area


@inlined
def _by_sine(steep: float, zero: float, rest: float, near: float, far: float, rule: Floats) -> float:
    """Integrate over the angle between two sines that are further from -1 and 1 than from each other."""
    middle, half = 0.5 * (near + far), 0.5 * abs(far - near)
    area = 0.0
    for node in range(rule.shape[0]):
        sine = middle + half * rule[node, 0]
        x = steep * (sine - zero)
        area += rule[node, 1] * math.sqrt((x * x + rest) / ((1.0 - sine) * (1.0 + sine)))
    return area * half


@kernel
def _by_angle(steep: float, zero: float, rest: float, near: float, far: float, ends: Ends) -> float:
    """Integrate over the angle between any two sines."""
    begin, end = _angle(near, ends), _angle(far, ends)
    panels = 1 + int(abs(end - begin))
    half = 0.5 * (end - begin) / panels
    area = 0.0
    for panel in range(panels):
        middle = begin + (2 * panel + 1) * half
        for node in range(_EIGHT.shape[0]):
            x = steep * (math.sin(middle + half * _EIGHT[node, 0]) - zero)
            area += _EIGHT[node, 1] * math.sqrt(x * x + rest)
    return area * abs(half)


@inlined
def _angle(sine: float, ends: Ends) -> float:
    """Return the angle of a sine. Near -1 and 1 the sine does not tell it, so those of the ends are kept."""
    low, bottom, high, top = ends
    if sine == bottom:
        return low
    return high if sine == top else math.asin(sine)
