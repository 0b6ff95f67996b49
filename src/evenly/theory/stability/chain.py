"""The split of time between a threshold and all lower ones, and the rate of changes.

The states of `states` are repeated for each number of pools above the level. That number falls from any
state, but rises from one only, the high state without short pools. So the stationary law follows from the largest
number down, with one banded system each, because the flow up into a number equals the flow down out of it. All
terms are positive, so no digits cancel.

Higher thresholds are left out: the clock stops while the threshold is above the level. The chain of the next
higher level, solved before, gives the state in which the threshold returns, and the number of pools with two more
tasks than the level: departures from those do not change what is counted here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_banded

from evenly.theory.balance import FloatArray
from evenly.theory.stability.lattice import Lattice, build_lattice
from evenly.theory.stability.states import OVERSHOOT, Fleet

_TAIL = 1e-13  # of the Poisson law of all tasks, on either side
_LARGE = 1e100

Returns = dict[tuple[int, int], float]


@dataclass(frozen=True)
class LevelChain:
    """The chain of a level. Shares and rates refer to the time during which the threshold is at most `level`.

    `messages` is the mean number of messages when the threshold rises to the level and falls from it again.
    `returns` has the numbers of short pools and of extra missing tasks after a fall, with probabilities;
    `over_mean`, the mean number of pools above the level while the threshold is below, by `missing`.
    """

    level: int
    share_low: float
    share_high: float
    fall_rate: float
    messages: float
    returns: Returns
    missing: FloatArray
    over_mean: FloatArray
    accurate: bool


def highest_level(fleet: Fleet) -> int:
    """Return the highest threshold that the tasks suffice for, except for a negligible share of the time."""
    return _tasks(fleet)[1] // fleet.pools


def never_falls(fleet: Fleet, level: int) -> bool:
    """Return True if falls from the level are negligible: `missing` is a queue that would have to reach the cut.

    It fills no faster than at the fewest pools above the level, and empties at the rate of arrivals.
    """
    fewest_over = max(_tasks(fleet)[0] - level * fleet.pools, 0)
    filling = level * (fleet.pools - fewest_over) / fleet.arrivals
    return filling < 1 and fleet.arrivals * filling**fleet.cut < _TAIL


def _tasks(fleet: Fleet) -> tuple[int, int]:
    """Return the fewest and the most tasks in the system, except for a negligible share of the time."""
    from scipy.stats import poisson  # takes 0.3 s to load

    return int(poisson.ppf(_TAIL, fleet.arrivals)), int(poisson.isf(_TAIL, fleet.arrivals))


def solve_level(fleet: Fleet, level: int, above: LevelChain | None, resolve: bool | None = None) -> LevelChain:
    """Solve the chain of a level, given that of the next higher one if it is in reach."""
    least_tasks, most_tasks = _tasks(fleet)
    top = min(fleet.pools - 1, most_tasks - level * fleet.pools)
    bottom = max(0, min(least_tasks - level * fleet.pools, top - fleet.cut - OVERSHOOT))
    lattice = build_lattice(fleet, level, level * fleet.pools + top - least_tasks, resolve)
    mass, over = _stationary_sums(fleet, level, lattice, above, top, bottom)
    return _summary(fleet, level, lattice, mass, over)


def _stationary_sums(
    fleet: Fleet, level: int, lattice: Lattice, above: LevelChain | None, top: int, bottom: int
) -> tuple[FloatArray, FloatArray]:
    """Return the probability of each state, and the same times the number of pools above the level."""
    equations = _Equations(fleet, lattice)
    entries = _entries(fleet, lattice, above, bottom)
    size = lattice.missing.size
    mass, weighted, down_flow = np.zeros(size), np.zeros(size), np.zeros(size)
    gone, pending = 0.0, 1.0  # flow to higher thresholds, and the part of it that comes back further down
    for over in range(top, bottom - 1, -1):
        up = equations.up_rates(over)
        down = _down_rates(fleet, level, lattice, above, over) if over > bottom else np.zeros(size)
        entry = entries.get(over)
        if entry is not None:
            down_flow = down_flow + gone * entry
            pending = max(pending - float(entry.sum()), 0.0)
        from_above, from_below = equations.solve(over, up + down, down_flow)
        if over == top:
            law = from_below
            gone = float(up @ law) if top == fleet.pools - 1 else 0.0
        else:
            # A unit that comes from below leaves downwards, or upwards with probability up @ from_below.
            inflow = (float(down @ from_above) + gone * pending) / float(up @ from_below) if over > bottom else 0.0
            law = from_above + inflow * from_below
        mass += law
        weighted += over * law
        down_flow = down * law
        total = float(mass.sum())
        if total > _LARGE:
            mass, weighted, down_flow, gone = mass / total, weighted / total, down_flow / total, gone / total
    return mass / mass.sum(), weighted / mass.sum()


class _Equations:
    """The balance equations of all states with the same number of pools above the level."""

    def __init__(self, fleet: Fleet, lattice: Lattice) -> None:
        self._fleet, self._lattice = fleet, lattice
        self._size = lattice.missing.size
        self._band = int(np.max(np.abs(lattice.source - lattice.target)))
        self._place = (self._band + lattice.target - lattice.source) * self._size + lattice.source
        self._arrival = lattice.missing[lattice.target] < lattice.missing[lattice.source]

    def up_rates(self, over: int) -> FloatArray:
        """Return the arrival rates at pools that were not short; with all pools but one above, of all arrivals."""
        states = np.arange(self._size) == self._lattice.full
        if over == self._fleet.pools - 1:
            states = self._lattice.high
        return np.where(states, self._fleet.arrivals, 0.0)

    def solve(self, over: int, leave: FloatArray, inflow: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean time in each state due to the inflow, and due to one unit that enters at `full`."""
        lattice = self._lattice
        rates = np.maximum(lattice.base + lattice.slope * over, 0.0)
        if over == self._fleet.pools - 1:
            rates[self._arrival & lattice.high[lattice.source]] = 0.0
        matrix = np.bincount(self._place, -rates, (2 * self._band + 1) * self._size)
        matrix = matrix.reshape(2 * self._band + 1, self._size)
        matrix[self._band] += np.bincount(lattice.source, rates, self._size) + leave
        unit = np.zeros(self._size)
        unit[lattice.full] = 1.0
        times = solve_banded(
            (self._band, self._band),
            matrix,
            np.column_stack([inflow, unit]),
            overwrite_ab=True,
            overwrite_b=True,
            check_finite=False,
        )
        return times[:, 0], times[:, 1]


def _down_rates(fleet: Fleet, level: int, lattice: Lattice, above: LevelChain | None, over: int) -> FloatArray:
    """Return the rate at which a pool with one task more than the level loses it, by state."""
    with_more: float | FloatArray = 0.0
    if above is not None:
        with_more = np.interp(lattice.missing + fleet.pools - over, above.missing, above.over_mean)
    return (level + 1) * np.maximum(np.full(lattice.missing.size, float(over)) - with_more, 0.0)


def _entries(fleet: Fleet, lattice: Lattice, above: LevelChain | None, bottom: int) -> dict[int, FloatArray]:
    """Return the law of the state in which the threshold returns to the level, by the number of pools above it."""
    returns = {(fleet.cut, 0): 1.0} if above is None or not above.returns else above.returns
    entries: dict[int, FloatArray] = {}
    for (short, extra), chance in returns.items():
        over = min(max(fleet.pools - short, bottom), fleet.pools - 1)
        entry = entries.setdefault(over, np.zeros(lattice.missing.size))
        entry[lattice.high_state(extra)] += chance
    return entries


def _summary(fleet: Fleet, level: int, lattice: Lattice, mass: FloatArray, weighted: FloatArray) -> LevelChain:
    low = ~lattice.high
    missing, row = np.unique(lattice.missing[low], return_inverse=True)
    time = np.bincount(row, mass[low])
    over = np.bincount(row, weighted[low])
    return LevelChain(
        level=level,
        share_low=float(mass[low].sum()),
        share_high=float(mass[lattice.high].sum()),
        fall_rate=float(lattice.fall @ mass),
        messages=_messages(fleet, lattice, mass, weighted),
        returns=_returns(lattice, mass),
        missing=missing.astype(float),
        over_mean=np.divide(over, time, out=np.zeros_like(time), where=time > 0),
        accurate=lattice.accurate,
    )


def _messages(fleet: Fleet, lattice: Lattice, mass: FloatArray, weighted: FloatArray) -> float:
    """Count messages at a rise and a fall: yellow from pools at the level, then green from those that lack more.

    Departs: the paper does not say how tokens are rebuilt.
    """
    rises, falls = lattice.rise * mass, lattice.fall * mass
    if rises.sum() == 0 or falls.sum() == 0:
        return 0.0
    short = lattice.missing - lattice.extra
    short_after = np.where(
        lattice.extra > 0, short, short - 1
    )  # the arrival went to a pool that lacked more, if any
    over = float(lattice.rise @ weighted)
    yellow = fleet.pools - (over + float(rises @ short_after)) / float(rises.sum())
    green = float(falls @ (lattice.lacking_more * (short - 1))) / float(falls.sum())
    return yellow + green


def _returns(lattice: Lattice, mass: FloatArray) -> Returns:
    """Return the short pools and extra missing tasks right after a fall: the arrival went to a short pool."""
    falls = lattice.fall * mass
    returns: Returns = {}
    for state in np.flatnonzero(falls):
        chance = float(falls[state]) / float(falls.sum())
        extra = round(lattice.extra[state])
        short = int(lattice.missing[state]) - extra
        more = float(lattice.lacking_more[state])
        for after, part in (((short - 1, extra), 1 - more), ((short, max(extra - 1, 0)), more)):
            if part > 0:
                returns[after] = returns.get(after, 0.0) + chance * part
    return returns
