"""Input checks of the fluid equations, and the number of levels that they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor

import numpy as np
from scipy.special import pdtrc

from evenly.errors import InputError
from evenly.inputs import number_from, shown, whole_number
from evenly.theory.balance import FloatArray, balanced_occupancy
from evenly.theory.fluid.mass import total_mass
from evenly.theory.inputs import checked_start, exact_alpha, positive_load
from evenly.workload.demand import Phase, check_schedule, parse_schedule

MAX_POINTS = 10**5
MIN_HORIZON, MAX_HORIZON = 1e-12, 10**6  # events are located to 1e-12
MAX_LEVELS = 3000
MAX_CELLS = 2 * 10**7  # times by levels
MAX_TURNS = 10**3  # periods of waves, and phases, within the horizon
MAX_CHANGES = 10**4  # of a learned threshold: each takes a few milliseconds
_SAMPLES_PER_WAVE = 16
_CLOSEST_ALPHA = Fraction(1, 10**6)
_TRUNCATION = 1e-13


def demand_phases(load: float | None, schedule: str | Sequence[Phase] | None) -> tuple[Phase, ...]:
    """Return the demand, phase by phase."""
    if (load is None) == (schedule is None):
        raise InputError("The fluid equations need a load or a schedule, and not both.")
    if load is not None:
        return (Phase(0.0, positive_load(load)),)
    if isinstance(schedule, str):
        return parse_schedule(schedule)
    phases = schedule if isinstance(schedule, Sequence) else [schedule]
    if not all(isinstance(phase, Phase) for phase in phases):
        raise InputError(f"A schedule is a text such as 0:5.5,20:10 or a list of phases, not {shown(schedule)}.")
    return check_schedule(phase for phase in phases if isinstance(phase, Phase))


def fluid_alpha(alpha: float | str | Decimal) -> Fraction:
    """Return alpha as a fraction, or raise InputError if it is too close to 1."""
    exact = exact_alpha(alpha)
    if exact > 1 - _CLOSEST_ALPHA:
        raise InputError(f"alpha must be at most {float(1 - _CLOSEST_ALPHA)} in the fluid limit, not {alpha}.")
    return exact


def output_times(horizon: float, points: int) -> FloatArray:
    """Return evenly spaced times, both ends included."""
    last = number_from("horizon", horizon, MIN_HORIZON, MAX_HORIZON)
    return np.linspace(0.0, last, whole_number("points", points, 2, MAX_POINTS))


def check_turns(phases: Sequence[Phase], horizon: float) -> None:
    """Reject a demand that changes too often, or too quickly, to be followed up to the horizon."""
    turns = len(phases) + sum(horizon / phase.period for phase in phases if phase.amplitude)
    if turns > MAX_TURNS:
        raise InputError(
            f"The demand must have at most {MAX_TURNS} phases and periods within the horizon, not {turns:.3g}."
        )
    starts = [phase.start for phase in phases if phase.start < horizon]
    for start, end in pairwise([*starts, horizon]):
        if end - start < MIN_HORIZON * max(1.0, end):
            raise InputError(
                f"Each phase of the demand must last at least {MIN_HORIZON:g}, "
                f"not {end - start:.3g} from time {start:g} on."
            )


def check_changes(phases: Sequence[Phase], initial: float, horizon: float) -> None:
    """Reject a demand under which a learned threshold would change too often.

    The threshold follows the tasks per pool, which are known, so that it changes about once per task.
    """
    times = [np.array([horizon])]
    ends = [*(phase.start for phase in phases[1:]), horizon]
    for phase, end in zip(phases, ends, strict=True):
        last = min(end, horizon)
        if phase.start < last:
            waves = (last - phase.start) / phase.period if phase.amplitude else 0.0
            times.append(np.linspace(phase.start, last, ceil(_SAMPLES_PER_WAVE * waves) + 1, endpoint=False))
    mass = total_mass(phases, initial, np.sort(np.concatenate(times)))
    changes = float(np.abs(np.diff(mass)).sum())
    if changes > MAX_CHANGES:
        raise InputError(
            f"The threshold would change about {changes:.3g} times, more than {MAX_CHANGES}: "
            "reduce the horizon, the load or how often it swings."
        )


@dataclass(frozen=True, kw_only=True)
class InitialState:
    """The state at time 0, q(0), q(1), ..., and the input that it was built from."""

    occupancy: FloatArray
    tasks: float | tuple[int, ...] | None
    given_occupancy: FloatArray | None = None


def initial_state(
    tasks: float | Sequence[int] | None, occupancy: Sequence[float] | FloatArray | None
) -> InitialState:
    """Return the state at time 0: from tasks per pool, tasks of each pool or an occupancy, else empty."""
    if occupancy is not None:
        if tasks is not None:
            raise InputError("Give initial_tasks or initial_occupancy, and not both.")
        checked = _checked_occupancy(occupancy)
        return InitialState(occupancy=checked, tasks=None, given_occupancy=checked)
    start = checked_start(0 if tasks is None else tasks, MAX_LEVELS, MAX_LEVELS - 1)
    if not isinstance(start, tuple):
        return InitialState(occupancy=balanced_occupancy(float(start), floor(start) + 2), tasks=start)
    counts = np.bincount(start)
    return InitialState(occupancy=1 - np.append(0, np.cumsum(counts)[:-1]) / len(start), tasks=start)


def _checked_occupancy(occupancy: Sequence[float] | FloatArray) -> FloatArray:
    """Return q(0), q(1), ... at time 0, or raise InputError if it is not an occupancy."""
    try:
        if len(occupancy) > MAX_LEVELS:
            occupancy = ()
        q = np.array(occupancy, float)  # a copy: the caller may change the original
    except (TypeError, ValueError, OverflowError):
        q = np.empty(0)
    ordered = q.ndim == 1 and q.size > 0 and q[0] == 1 and bool(np.all(q >= 0) and np.all(np.diff(q) <= 0))
    if not ordered or q.size > MAX_LEVELS:
        raise InputError(
            "An initial occupancy must start with 1, never increase, have no negative number "
            f"and have at most {MAX_LEVELS} levels."
        )
    return q


def last_level(phases: Sequence[Phase], start: FloatArray, threshold: int, *, learns: bool) -> tuple[int, float]:
    """Return the last level to keep, and a bound for the mass beyond it.

    Pools above threshold + 1 only receive tasks that are sent at random, at most at the rate of the load, and
    only if the mass can reach threshold + 1. So such a pool has at most its initial tasks (or threshold + 1) plus
    a Poisson number. A learned threshold rises to a level only when all pools, and so the mass, have reached it.

    Paper: Thm 1; Def. 2. The thresholds are bounded, as in the proof of Prop. 4.
    """
    peak = max(phase.load + phase.amplitude for phase in phases)
    most = max(float(start[1:].sum()), peak)
    used = max(start.size - 1, threshold + 1)
    if learns:
        used, truncation = max(used, floor(most) + 1), 0.0
    elif most < threshold + 1:
        truncation = 0.0
    else:
        extra = floor(peak)
        while _excess(extra, peak) > _TRUNCATION:
            extra += 1
        used, truncation = used + extra, _excess(extra, peak)
    levels = used + 1
    if levels > MAX_LEVELS:
        raise InputError(f"The fluid equations take at most {MAX_LEVELS} levels, and this would need {levels}.")
    return levels, truncation


def _excess(level: int, mean: float) -> float:
    """Return E[(Poisson(mean) - level)^+]."""
    return float(mean * pdtrc(level - 1, mean) - level * pdtrc(level, mean)) if level > 0 else mean
