"""Fluid limits of policies without a threshold: power-of-d and random assignment over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.integrate import solve_ivp

from evenly.errors import InputError
from evenly.inputs import accept_other_names
from evenly.theory.balance import FloatArray
from evenly.theory.fluid.inputs import MAX_CELLS, MAX_LEVELS, initial_state, output_times
from evenly.theory.fluid.policy_path import PolicyPath
from evenly.theory.inputs import positive_load
from evenly.theory.other_policies import checked_sample_size, drift, jacobian, last_level

_RELATIVE, _ABSOLUTE = 1e-10, 1e-13  # errors per step


@accept_other_names
def power_of_d_fluid(
    *,
    load: float,
    sample_size: int = 2,
    initial_tasks: float | Sequence[int] | None = None,
    initial_occupancy: Sequence[float] | FloatArray | None = None,
    horizon: float = 20.0,
    points: int = 201,
) -> PolicyPath:
    """Predict the occupancy over time under power-of-d, in the large-system limit.

    `initial_tasks` and `initial_occupancy` are as in `predict_fluid`.

    The tasks from level j on, v_j, change by load q_{j-1}^d - (j - 1) q_j - v_j, which is largest for d = 1.
    Then a pool has what is left of its initial tasks plus a Poisson number with a mean below the load. The levels
    are those up to the initial maximum, plus enough to leave less than 1e-19 of that Poisson law.
    """
    return _solve("power-of-d", load, sample_size, initial_tasks, initial_occupancy, horizon, points)


@accept_other_names
def random_fluid(
    *,
    load: float,
    initial_tasks: float | Sequence[int] | None = None,
    initial_occupancy: Sequence[float] | FloatArray | None = None,
    horizon: float = 20.0,
    points: int = 201,
) -> PolicyPath:
    """Predict the occupancy over time under random assignment; see `power_of_d_fluid`."""
    return _solve("random", load, 1, initial_tasks, initial_occupancy, horizon, points)


def _solve(
    policy: str,
    load: float,
    sample_size: int,
    initial_tasks: float | Sequence[int] | None,
    initial_occupancy: Sequence[float] | FloatArray | None,
    horizon: float,
    points: int,
) -> PolicyPath:
    load, sample_size = positive_load(load), checked_sample_size(sample_size)
    initial = initial_state(initial_tasks, initial_occupancy)
    start = initial.occupancy[1:]
    times = output_times(horizon, points)
    levels = len(start) + last_level(load)
    if levels > MAX_LEVELS:
        raise InputError(f"The fluid equations take at most {MAX_LEVELS} levels, and this would need {levels}.")
    if len(times) * levels > MAX_CELLS:
        raise InputError(f"points times levels must be at most {MAX_CELLS}, not {len(times)} times {levels}.")
    solution = solve_ivp(
        lambda _, q: drift(q, load, sample_size),
        (0.0, times[-1]),
        np.pad(start, (0, levels - len(start))),
        method="LSODA",
        t_eval=times,
        jac=lambda _, q: jacobian(q, load, sample_size),
        lband=1,
        uband=1,
        rtol=_RELATIVE,
        atol=_ABSOLUTE,
    )
    if not solution.success:
        raise ArithmeticError(f"The fluid equations were not solved: {solution.message}")
    return PolicyPath(
        policy=policy,
        load=load,
        sample_size=sample_size if policy == "power-of-d" else None,
        initial_tasks=initial.tasks,
        initial_occupancy=initial.given_occupancy,
        times=times,
        occupancy=np.column_stack((np.ones(len(times)), np.clip(solution.y.T, 0.0, 1.0))),
    )
