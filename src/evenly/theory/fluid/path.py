"""Fluid limits: what very many pools do over time, without chance.

Time is measured in mean task times, and `load` is the offered load per pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.theory.balance import FloatArray
from evenly.theory.fluid.inputs import (
    MAX_CELLS,
    check_turns,
    demand_phases,
    fluid_alpha,
    initial_occupancy,
    last_level,
    output_times,
)
from evenly.theory.fluid.mass import load_over, total_mass
from evenly.theory.fluid.modes import Mode
from evenly.theory.fluid.solver import State, Stepper, Stretch
from evenly.theory.inputs import checked_threshold
from evenly.workload.demand import Phase

_STANDSTILL = 50  # stretches at one and the same time
_WRONG = 1e-6  # an error of the mass that no solution of ours has


@dataclass(frozen=True, kw_only=True)
class FluidPath:
    """A fluid solution at evenly spaced times, with its events.

    `update_times` and `update_thresholds` list the changes of a learned threshold, `mode_times` and `modes` the
    pieces (a), (b), (c) the solution is made of. `mass_error` is the largest distance between the mass of
    `occupancy` and the exact one in `total_mass`; `truncation` bounds the part of
    it that is due to levels left out.
    """

    times: FloatArray
    occupancy: FloatArray  # a row a time, from level 0
    threshold: NDArray[np.int64]
    demand: FloatArray
    total_mass: FloatArray
    update_times: FloatArray
    update_thresholds: NDArray[np.int64]
    mode_times: FloatArray
    modes: tuple[Mode, ...]
    truncation: float

    @property
    def mass_error(self) -> float:
        """How far the solution is from the mass that it must have."""
        return float(np.max(np.abs(self.tail_mass(1) - self.total_mass)))

    def tail_mass(self, level: int) -> FloatArray:
        """Tasks per pool from a level on, over time.

        Paper: Def. 1.
        """
        mass: FloatArray = self.occupancy[:, level:].sum(axis=1)
        return mass

    @property
    def imbalance(self) -> FloatArray:
        """Euclidean distance from the balanced occupancy of the current load, over time.

        Paper: Sec. 5.3, e(t).
        """
        levels = max(self.occupancy.shape[1], ceil(self.demand.max()) + 2)
        balanced = np.clip(self.demand[:, None] - np.arange(levels) + 1, 0.0, 1.0)
        padded = np.pad(self.occupancy, ((0, 0), (0, levels - self.occupancy.shape[1])))
        distance: FloatArray = np.sqrt(np.sum((padded - balanced) ** 2, axis=1))
        return distance

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "times": self.times.tolist(),
            "occupancy": self.occupancy.tolist(),
            "threshold": self.threshold.tolist(),
            "update_times": self.update_times.tolist(),
            "update_thresholds": self.update_thresholds.tolist(),
            "demand": self.demand.tolist(),
            "total_mass": self.total_mass.tolist(),
            "modes": [
                {"time": time, "mode": mode.value}
                for time, mode in zip(self.mode_times.tolist(), self.modes, strict=True)
            ],
            "mass_error": self.mass_error,
            "truncation": self.truncation,
        }


def fluid(
    *,
    load: float | None = None,
    schedule: str | Sequence[Phase] | None = None,
    threshold: int | None = None,
    alpha: float | str | Decimal | None = None,
    initial: float | Sequence[float] | FloatArray = 0.0,
    horizon: float = 20.0,
    points: int = 201,
) -> FluidPath:
    """Solve the fluid equations; with `alpha` the threshold learns.

    `threshold` is where the threshold starts, by default floor(load) if it stays and 0 if it learns.
    `initial` is the number of tasks per pool at time 0, spread evenly, or the occupancy q(0), q(1), ... there.
    A `schedule` (see `evenly.Phase`) takes the place of `load` when demand varies.

    Paper: Thm 1; Def. 2, Prop. 4 (updates do not pile up) and Thm 5 with learning. Departs: a start at which the
    learning rule applies at once is allowed, and the changes are then made at time 0; demand may vary.
    """
    phases = demand_phases(load, schedule)
    exact = None if alpha is None else fluid_alpha(alpha)
    times = output_times(horizon, points)
    check_turns(phases, horizon)
    start = initial_occupancy(initial)
    first = (floor(phases[0].load) if exact is None else 0) if threshold is None else checked_threshold(threshold)
    levels, truncation = last_level(phases, start, first, learns=exact is not None)
    if (levels + 1) * points > MAX_CELLS:
        raise InputError(f"points times levels must be at most {MAX_CELLS}, not {points} times {levels + 1}.")
    q = np.zeros(levels + 1)
    q[: start.size] = start
    stretches = _solve(phases, times, exact, State(0.0, q, first))
    path = _path(phases, times, stretches, first, float(start[1:].sum()), truncation)
    if path.mass_error > _WRONG:
        raise ArithmeticError(f"the fluid solution lost track of the tasks: {path.mass_error:.1e} per pool")
    return path


def _solve(phases: Sequence[Phase], times: FloatArray, alpha: Fraction | None, state: State) -> list[Stretch]:
    stretches: list[Stretch] = []
    horizon = float(times[-1])
    ends = [min(phase.start, horizon) for phase in phases[1:]] + [horizon]
    for phase, end in zip(phases, ends, strict=True):
        stepper = Stepper(phase, end, alpha, times)
        while state.time < end:
            stretches.append(stepper.stretch(stepper.settle(state)))
            state = stretches[-1].end_state
            if len(stretches) >= _STANDSTILL and stretches[-_STANDSTILL].start == state.time:
                raise ArithmeticError(f"the fluid equations do not get past time {state.time:g}")
    return stretches


def _path(
    phases: Sequence[Phase],
    times: FloatArray,
    stretches: list[Stretch],
    first: int,
    mass: float,
    truncation: float,
) -> FluidPath:
    starts = np.array([stretch.start for stretch in stretches])
    owner = np.searchsorted(starts, times, side="right") - 1
    occupancy = np.vstack([*(stretch.rows for stretch in stretches), stretches[-1].end_state.q])
    updates = _updates(stretches, first)
    changed = [n for n in range(len(stretches)) if n == 0 or stretches[n].mode != stretches[n - 1].mode]
    demand = np.empty_like(times)
    for phase in phases:
        demand[times >= phase.start] = load_over(phase, times[times >= phase.start])
    return FluidPath(
        times=times,
        occupancy=np.clip(occupancy, 0.0, 1.0),
        threshold=np.array([stretch.threshold for stretch in stretches])[owner],
        demand=demand,
        total_mass=total_mass(phases, mass, times),
        update_times=np.array([time for time, _ in updates], float),
        update_thresholds=np.array([value for _, value in updates], np.int64),
        mode_times=starts[changed],
        modes=tuple(stretches[n].mode for n in changed),
        truncation=truncation,
    )


def _updates(stretches: list[Stretch], first: int) -> list[tuple[float, int]]:
    """All changes of the threshold, one by one."""
    updates = []
    current = first
    for stretch in stretches:
        while current != stretch.threshold:
            current += 1 if stretch.threshold > current else -1
            updates.append((stretch.start, current))
    return updates
