"""Fluctuations around the balanced load when it is a whole number: a process reflected at a boundary.

At the scale of sqrt(pools), `below` (the paper's Z) counts tasks missing below level `load`, and `above` (Q(i))
counts pools with at least i tasks for each i > load. An arrival that finds nothing missing adds to Q(load + 1).

Two facts simplify the paper's equations. Their sum shows that X = Q(load + 1) + Q(load + 2) + ... - Z, the total
number of tasks, is an Ornstein-Uhlenbeck process. And Z >= 0 means that Q(load + 1) must not be below X, less the
levels above it; being pushed up there and fading at rate load + 1 elsewhere, it is a running supremum. From a
balanced start

    Q(load + 1)(t) = sup over s <= t of exp(-(load + 1) (t - s)) X(s),    Z = Q(load + 1) - X,

and in the long run the same with s from minus infinity. The paths here and the law in `whole_law` are based on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, expm1, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm

from evenly.errors import InputError
from evenly.inputs import positive_number, whole_number
from evenly.theory.balance import FloatArray
from evenly.theory.diffusion.fractional import OrnsteinUhlenbeck, checked_paths, checked_times, is_whole

MAX_LEVELS_ABOVE = 1000
MAX_STEPS = 10**6
STEP = 0.05  # in fading times, which are 1 / (load + 1)
FORGOTTEN = 20.0  # fading times after which exp(-20) is left of a start


@dataclass(frozen=True)
class ReflectedPaths:
    """Values at some times: `below[path, time]` and `above[path, time, i]`, for level load + 1 + i."""

    times: FloatArray
    below: FloatArray
    above: FloatArray

    @property
    def total(self) -> FloatArray:
        """The fluctuation of the total number of tasks."""
        return np.asarray(self.above.sum(axis=-1) - self.below)


@dataclass(frozen=True)
class _State:
    """The total, the levels above without the push, and what the push has added to the first of them."""

    total: FloatArray
    fading: FloatArray  # one row per path, or one for all
    pushed: FloatArray

    @property
    def excess(self) -> FloatArray:
        """The amount by which the total would exceed the levels above without the push."""
        return np.asarray(self.total - self.fading.sum(axis=1))


@dataclass(frozen=True)
class Reflected:
    """The limit for a whole load, with pools of up to `levels` tasks at the start.

    Paper: Thm 4.
    """

    load: int
    levels: int

    @cached_property
    def total(self) -> OrnsteinUhlenbeck:
        """The law of the total, which does not depend on the push at the boundary."""
        return OrnsteinUhlenbeck(float(self.load))

    def sample_path(
        self,
        times: ArrayLike,
        rng: np.random.Generator,
        *,
        start: ArrayLike | None = None,
        paths: int = 1,
        step: float | None = None,
    ) -> ReflectedPaths:
        """Return paths at these times, from `start` = (below, above[load + 1], ...), else stationary ones.

        The total has the exact law. In between, each step draws the supremum of the Brownian bridge below a
        straight line in place of a curve. From a balanced or stationary start that makes `above` too low in law,
        by less than the fraction load (load + 2) step^2 / 8 to leading order: 0.03 % with the default step.

        Paper: Thm 4. Departs: samples the solution's closed form, not the equations.
        """
        grid = checked_times(times)
        width = self.levels - self.load
        checked_paths(paths, grid.size * (width + 1))
        longest = self._checked_step(step, float(grid[-1]))
        below = np.empty((paths, grid.size))
        above = np.empty((paths, grid.size, width))
        state = self._stationary(paths, rng) if start is None else self._checked_start(start, paths)
        for place, gap in enumerate(np.diff(grid, prepend=0.0)):
            state = self._advance(state, float(gap), longest, rng)
            below[:, place] = state.pushed - state.excess
            above[:, place] = state.fading
            above[:, place, 0] += state.pushed
        return ReflectedPaths(grid, below, above)

    def _advance(self, state: _State, gap: float, longest: float, rng: np.random.Generator) -> _State:
        """Return the state after a gap in time, in equal steps none of which is longer than `longest`."""
        steps = ceil(gap / longest)
        if steps == 0:
            return state
        step, paths = gap / steps, state.total.size
        kept, fade = exp(-step), exp(-(self.load + 1) * step)
        noise = sqrt(self.total.variance(step))
        # The bridge runs on the total's own clock, where exp(t) X(t) is a Brownian motion.
        clock = -self.load * expm1(-2 * step) * exp(-self.load * step)
        outflow = expm(step * self._outflow())
        for _ in range(steps):
            before = fade * state.excess
            total = kept * state.total + noise * rng.standard_normal(paths)
            moved = _State(total, state.fading @ outflow.T, state.pushed)
            after = moved.excess
            spread = np.sqrt((after - before) ** 2 + 2 * clock * rng.standard_exponential(paths))
            peak = (before + after + spread) / 2
            state = _State(total, moved.fading, np.maximum(fade * state.pushed, peak))
        return state

    def _outflow(self) -> FloatArray:
        """Return how the levels above change without the push: at rate i (Q(i + 1) - Q(i))."""
        rates = np.arange(self.load + 1, self.levels + 1, dtype=float)
        return np.diag(rates[:-1], 1) - np.diag(rates)

    def _stationary(self, paths: int, rng: np.random.Generator) -> _State:
        total = rng.normal(0.0, sqrt(self.load), paths)
        state = _State(total, np.zeros((1, self.levels - self.load)), np.maximum(total, 0.0))
        return self._advance(state, FORGOTTEN / (self.load + 1), STEP / (self.load + 1), rng)

    def _checked_start(self, start: ArrayLike, paths: int) -> _State:
        values = np.atleast_2d(np.asarray(start, float))
        width = self.levels - self.load
        if values.shape not in {(1, width + 1), (paths, width + 1)}:
            raise InputError(
                f"start must have {width + 1} numbers (for below and levels {self.load + 1} to {self.levels}), "
                f"for all paths or for each, not the shape {np.shape(start)}."
            )
        rising = (np.diff(values[:, 1:], axis=1) > 0).any()
        if not np.isfinite(values).all() or (values < 0).any() or rising:
            raise InputError("start must have no negative number, and its levels must not increase.")
        total = np.broadcast_to(values[:, 1:].sum(axis=1) - values[:, 0], (paths,))
        return _State(total, values[:, 1:], np.zeros(paths))

    def _checked_step(self, step: float | None, horizon: float) -> float:
        step = STEP / (self.load + 1) if step is None else positive_number("step", step)
        if horizon / step > MAX_STEPS:
            raise InputError(
                f"Time {horizon:g} takes {horizon / step:.3g} steps of {step:.3g} with load {self.load}, "
                f"more than {MAX_STEPS}: take a shorter time or a longer step."
            )
        return step


def reflected(load: float, levels: int | None = None) -> Reflected:
    """Return the limit for a whole load; at the start, pools have up to `levels` tasks (default: load + 1).

    Paper: Thm 4. Departs: the paper allows levels = load, where Q(load + 1) starts at 0 but does not stay there.
    """
    if not is_whole(load):
        raise InputError(
            f"The limit is Ornstein-Uhlenbeck, not reflected, for a load such as {float(load):g}, "
            "which is not a whole number (Theorem 3)."
        )
    lowest = int(load) + 1
    if levels is None:
        levels = lowest
    return Reflected(int(load), whole_number("levels", levels, lowest, lowest + MAX_LEVELS_ABOVE))
