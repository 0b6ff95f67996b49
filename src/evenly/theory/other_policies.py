"""Other policies in the limit of many pools: where they settle, and how they get there.

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
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import solve_banded

from evenly.errors import InputError
from evenly.theory.balance import FloatArray, balanced_occupancy, exactly
from evenly.theory.equilibrium import equilibrium, likely_levels, normalised, poisson_weights
from evenly.theory.fluid.inputs import MAX_CELLS, initial_occupancy, output_times
from evenly.theory.inputs import positive_load, whole_number

PEERS = ("jsq", "power-of-d", "random")
MAX_SAMPLE_SIZE = 512
_MOST_STEPS = 100  # of Newton's method, which takes ten
_RELATIVE, _ABSOLUTE = 1e-10, 1e-13  # errors a step of the fluid equations


def describe_equilibrium(
    policy: str,
    load: float,
    *,
    threshold: int | None = None,
    kind: str | None = None,
    sample_size: int | None = None,
) -> dict[str, Any]:
    """Where a policy settles, with a fixed threshold or without: ready for JSON, and with the same keys."""
    if policy == "threshold":
        if sample_size is not None:
            raise InputError("sample_size is for policy power-of-d, not threshold.")
        if threshold is None:
            raise InputError("The equilibrium under policy threshold needs a threshold.")
        return {"policy": policy, "choices": None, **equilibrium(load, threshold, kind).to_dict()}
    if policy not in PEERS:
        raise InputError(f"policy must be one of threshold, {', '.join(PEERS)} here, not {policy!r}.")
    for name, value in (("threshold", threshold), ("kind", kind)):
        if value is not None:
            raise InputError(f"{name} is for policy threshold, not {policy}.")
    occupancy = peer_fixed_point(policy, load, sample_size)
    return {
        "policy": policy,
        "choices": (2 if sample_size is None else sample_size) if policy == "power-of-d" else None,
        "load": float(load),
        "threshold": None,
        "kind": None,
        "theta": None,
        "mean_tasks": float(occupancy[1:].sum()),
        "pools_with_exactly": exactly(occupancy).tolist(),
        "occupancy": occupancy.tolist(),
        "offered": None,
        "birth_rate": None,
        "truncation": None,
    }


def peer_fixed_point(policy: str, load: float, sample_size: int | None = None) -> FloatArray:
    """The occupancy, from level 0, in which a policy without a threshold settles."""
    if policy not in PEERS:
        raise InputError(f"policy must be one of {', '.join(PEERS)}, not {policy!r}.")
    if policy == "power-of-d":
        return power_of_d_fixed_point(load, 2 if sample_size is None else sample_size)
    if sample_size is not None:
        raise InputError(f"sample_size is for policy power-of-d, not {policy}.")
    return jsq_fixed_point(load) if policy == "jsq" else random_fixed_point(load)


def jsq_fixed_point(load: float) -> FloatArray:
    """The balanced occupancy.

    Paper: Sec. 2.1, eq. (1).
    """
    load = positive_load(load)
    return balanced_occupancy(load, ceil(load) + 1)


def random_fixed_point(load: float) -> FloatArray:
    """The tails of a Poisson law, up to where it has less than 1e-19 left."""
    load = positive_load(load)
    return normalised(poisson_weights(load, 0, _last_level(load)), 0)[0]


def power_of_d_fixed_point(load: float, sample_size: int = 2) -> FloatArray:
    """Where power-of-d settles, by Newton's method from the balanced occupancy.

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
    raise ArithmeticError(f"No fixed point found for load {load} and {sample_size} sample_size.")


def power_of_d_fluid(
    load: float, sample_size: int, initial: float | Sequence[float] | FloatArray, horizon: float, points: int
) -> tuple[FloatArray, FloatArray]:
    """Evenly spaced times from 0 to the horizon and, a row a time, the occupancy from level 0 then.

    `initial` is the number of tasks per pool at time 0, spread evenly, or the occupancy q(0), q(1), ... there.

    The tasks from level j on, v_j, change by load q_{j-1}^d - (j - 1) q_j - v_j, which is largest for d = 1.
    There a pool has what is left of its first tasks and a Poisson number with a mean below the load. The levels
    are those up to the initial maximum, and as many more as leave less than 1e-19 of that Poisson law.
    """
    load, sample_size = positive_load(load), _checked_sample_size(sample_size)
    start = initial_occupancy(initial)[1:]
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
    return times, np.column_stack((np.ones(len(times)), np.clip(solution.y.T, 0.0, 1.0)))


def random_fluid(
    load: float, initial: float | Sequence[float] | FloatArray, horizon: float, points: int
) -> tuple[FloatArray, FloatArray]:
    """As `power_of_d_fluid`, for random assignment."""
    return power_of_d_fluid(load, 1, initial, horizon, points)


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
