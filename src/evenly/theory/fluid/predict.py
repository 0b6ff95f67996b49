"""Solve the fluid equations: with a fixed threshold, or one that learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from evenly.errors import InputError, UnsolvedError
from evenly.inputs import accept_other_names, check_function
from evenly.theory.balance import FloatArray
from evenly.theory.fluid.inputs import (
    MAX_CELLS,
    check_changes,
    check_turns,
    demand_phases,
    fluid_alpha,
    initial_state,
    last_level,
    output_times,
)
from evenly.theory.fluid.mass import load_over, total_mass
from evenly.theory.fluid.path import FluidPath
from evenly.theory.fluid.solver import State, Stepper, Stretch
from evenly.theory.inputs import checked_threshold, plain_alpha
from evenly.workload.demand import Phase

_STANDSTILL = 50  # stretches that start at the same time
_WRONG = 1e-6  # a solution with a larger error of the mass is wrong


@accept_other_names
def predict_fluid(
    *,
    load: float | None = None,
    schedule: str | Sequence[Phase] | None = None,
    threshold: int | None = None,
    alpha: float | str | Decimal | None = None,
    initial_tasks: float | Sequence[int] | None = None,
    initial_occupancy: Sequence[float] | FloatArray | None = None,
    horizon: float = 20.0,
    points: int = 201,
    progress: Callable[[float], None] | None = None,
) -> FluidPath:
    """Predict the occupancy over time in the large-system limit; with `alpha` the threshold learns.

    `threshold` is where the threshold starts, by default floor(load) if it is fixed and 0 if it learns.
    `initial_tasks` (default: 0) is the number of tasks per pool at time 0, spread evenly, or a sequence with the
    tasks of each pool. `initial_occupancy` takes its place with q(0), q(1), ... at time 0. A `schedule` (see
    `evenly.Phase`) takes the place of `load` when demand varies. `horizon` is in mean task times. `progress` is
    called with the fraction of the horizon that is done.

    Paper: Thm 1; Def. 2, Prop. 4 (updates do not pile up) and Thm 5 with learning. Departs: a start at which the
    learning rule applies at once is allowed, and the changes are then made at time 0; demand may vary.
    """
    check_function("progress", progress)
    phases = demand_phases(load, schedule)
    exact = None if alpha is None else fluid_alpha(alpha)
    times = output_times(horizon, points)
    check_turns(phases, float(times[-1]))
    initial = initial_state(initial_tasks, initial_occupancy)
    start = initial.occupancy
    first = (floor(phases[0].load) if exact is None else 0) if threshold is None else checked_threshold(threshold)
    levels, truncation = last_level(phases, start, first, learns=exact is not None)
    if (levels + 1) * times.size > MAX_CELLS:
        raise InputError(f"points times levels must be at most {MAX_CELLS}, not {times.size} times {levels + 1}.")
    if exact is not None:
        check_changes(phases, float(start[1:].sum()), float(times[-1]))
    q = np.zeros(levels + 1)
    q[: start.size] = start
    stretches = _solve(phases, times, exact, State(0.0, q, first), progress)
    path = FluidPath(
        load=phases[0].load,
        schedule=None if schedule is None else phases,
        initial_threshold=first,
        alpha=None if alpha is None else plain_alpha(alpha),
        initial_tasks=initial.tasks,
        initial_occupancy=initial.given_occupancy,
        horizon=float(times[-1]),
        points=times.size,
        total_mass=total_mass(phases, float(start[1:].sum()), times),
        truncation=truncation,
        **_solution(phases, times, stretches, first),
    )
    if path.mass_error > _WRONG:
        raise UnsolvedError(
            f"The fluid solution is off by {path.mass_error:.1e} tasks per pool: reduce the horizon."
        )
    return path


def _solve(
    phases: Sequence[Phase],
    times: FloatArray,
    alpha: Fraction | None,
    state: State,
    progress: Callable[[float], None] | None,
) -> list[Stretch]:
    """Return the stretches of the solution. Each phase is solved on a clock that starts with it.

    Late in a long run the clock of the whole run would be too coarse: its last digits decide between events.
    """
    stretches: list[Stretch] = []
    horizon = float(times[-1])
    ends = [min(phase.start, horizon) for phase in phases[1:]] + [horizon]
    for phase, end in zip(phases, ends, strict=True):
        outputs = times[(times >= phase.start) & (times < end)] - phase.start
        stepper = Stepper(replace(phase, start=0.0), end - phase.start, alpha, outputs)
        state, starts = replace(state, time=0.0), [-1.0] * _STANDSTILL
        while state.time < end - phase.start:
            stretch = stepper.stretch(stepper.settle(state))
            stretches.append(replace(stretch, start=phase.start + stretch.start))
            starts.append(stretch.start)
            state = stretch.end_state
            if progress is not None:
                progress((phase.start + state.time) / horizon)
            if starts[-_STANDSTILL] == state.time:
                time = phase.start + state.time
                raise UnsolvedError(
                    f"The fluid equations could not be solved past time {time:g}: reduce the horizon."
                )
    return stretches


def _solution(phases: Sequence[Phase], times: FloatArray, stretches: list[Stretch], first: int) -> dict[str, Any]:
    """Combine the stretches into values at the output times."""
    starts = np.array([stretch.start for stretch in stretches])
    owner = np.searchsorted(starts, times, side="right") - 1
    occupancy = np.vstack([*(stretch.rows for stretch in stretches), stretches[-1].end_state.q])
    changes = _changes(stretches, first)
    changed = [n for n in range(len(stretches)) if n == 0 or stretches[n].mode != stretches[n - 1].mode]
    demand = np.empty_like(times)
    for phase in phases:
        demand[times >= phase.start] = load_over(phase, times[times >= phase.start])
    return {
        "times": times,
        "occupancy": np.clip(occupancy, 0.0, 1.0),
        "threshold": np.array([stretch.threshold for stretch in stretches])[owner],
        "demand": demand,
        "change_times": np.array([time for time, _ in changes], float),
        "change_thresholds": np.array([value for _, value in changes], np.int64),
        "mode_times": starts[changed],
        "modes": tuple(stretches[n].mode for n in changed),
    }


def _changes(stretches: list[Stretch], first: int) -> list[tuple[float, int]]:
    """Return all changes of the threshold, one by one."""
    changes = []
    current = first
    for stretch in stretches:
        while current != stretch.threshold:
            current += 1 if stretch.threshold > current else -1
            changes.append((stretch.start, current))
    return changes
