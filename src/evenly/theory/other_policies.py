"""Other policies in the large-system limit: where they settle, and how they get there.

Power-of-d sends a task to the shortest of d pools chosen at random. In the limit its occupancy follows

    q_i' = load (q_{i-1}^d - q_i^d) - i (q_i - q_{i+1}),    i >= 1,    q_0 = 1,

where i (q_i - q_{i+1}) are the departures, as under any policy. Random assignment is d = 1. The shortest queue
balances the load.

Paper: Sec. 5.2, whose Fig. 5 compares with these policies, and Sec. 1.2. Departs: the paper does not write the
equation; it is that of Vvedenskaya et al. (1996) and Mitzenmacher (2001) with a server for each task.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import solve_banded

from evenly.errors import InputError
from evenly.theory.balance import FloatArray, balanced_occupancy
from evenly.theory.fluid.inputs import MAX_CELLS, initial_state, output_times
from evenly.theory.inputs import positive_load, whole_number
from evenly.theory.poisson import likely_levels, normalised, poisson_weights
from evenly.theory.policy_path import PolicyPath

MAX_SAMPLE_SIZE = 512
_MOST_STEPS = 100  # of Newton's method, which takes ten
_RELATIVE, _ABSOLUTE = 1e-10, 1e-13  # errors a step of the fluid equations


def jsq_fixed_point(load: float) -> FloatArray:
    """The balanced occupancy, where the shortest queue settles.

    Paper: Sec. 2.1, eq. (1).
    """
    load = positive_load(load)
    return balanced_occupancy(load, ceil(load) + 1)


def random_fixed_point(load: float) -> FloatArray:
    """The tails of a Poisson law, up to where it has less than 1e-19 left: where random assignment settles."""
    load = positive_load(load)
    return normalised(poisson_weights(load, 0, _last_level(load)), 0)[0]


def power_of_d_fixed_point(*, load: float, sample_size: int = 2) -> FloatArray:
    """Find where power-of-d settles, by Newton's method from the balanced occupancy.

    Summed over the levels from i on, the equation says load q_{i-1}^d >= i q_i, so that q_i is at most
    load / i times q_{i-1}: what lies beyond the last level is no more than under random assignment.
    """
    load, sample_size = positive_load(load), _checked_sample_size(sample_size)
    q = balanced_occupancy(load, _last_level(load) + 1)[1:]
    rounding = 4 * np.finfo(float).eps * load * sample_size
    for _ in range(_MOST_STEPS):
        drift = _drift(q, load, sample_size)
        q = np.clip(q - solve_banded((1, 1), _jacobian(q, load, sample_size), drift), 0.0, 1.0)
        if np.max(np.abs(drift)) <= rounding:
            return np.trim_zeros(np.concatenate(([1.0], q)), "b")
    raise ArithmeticError(f"No fixed point found for load {load} and sample size {sample_size}.")


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
    There a pool has what is left of its first tasks and a Poisson number with a mean below the load. The levels
    are those up to the initial maximum, and as many more as leave less than 1e-19 of that Poisson law.
    """
    return _solve("power-of-d", load, sample_size, initial_tasks, initial_occupancy, horizon, points)


def random_fluid(
    *,
    load: float,
    initial_tasks: float | Sequence[int] | None = None,
    initial_occupancy: Sequence[float] | FloatArray | None = None,
    horizon: float = 20.0,
    points: int = 201,
) -> PolicyPath:
    """Predict the occupancy over time under random assignment, as `power_of_d_fluid` does."""
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
    load, sample_size = positive_load(load), _checked_sample_size(sample_size)
    initial = initial_state(initial_tasks, initial_occupancy)
    start = initial.occupancy[1:]
    times = output_times(horizon, points)
    levels = len(start) + _last_level(load)
    if len(times) * levels > MAX_CELLS:
        raise InputError(f"points times levels must be at most {MAX_CELLS}, not {len(times)} times {levels}.")
    solution = solve_ivp(
        lambda _, q: _drift(q, load, sample_size),
        (0.0, times[-1]),
        np.pad(start, (0, levels - len(start))),
        method="LSODA",
        t_eval=times,
        jac=lambda _, q: _jacobian(q, load, sample_size),
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


def _drift(q: FloatArray, load: float, sample_size: int) -> FloatArray:
    """q' for the levels from 1 on; beyond the last there is nothing."""
    powers = np.concatenate(([1.0], q**sample_size))
    departures = np.arange(1, len(q) + 1) * -np.diff(q, append=0.0)
    return -load * np.diff(powers) - departures


def _jacobian(q: FloatArray, load: float, sample_size: int) -> FloatArray:
    """The derivatives of the drift: rows above, on and below the diagonal, as SciPy packs bands."""
    levels = np.arange(1.0, len(q) + 1)
    slopes = load * sample_size * q ** (sample_size - 1)
    bands = np.zeros((3, len(q)))
    bands[0, 1:] = levels[:-1]
    bands[1] = -slopes - levels
    bands[2, :-1] = slopes[:-1]
    return bands


def _last_level(load: float) -> int:
    """Where a Poisson law has less than 1e-19 left, in pools and in tasks."""
    return likely_levels(load, 0)[1]


def _checked_sample_size(sample_size: int) -> int:
    return whole_number("sample_size", sample_size, 1, MAX_SAMPLE_SIZE)
