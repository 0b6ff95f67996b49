"""A fluid system in small steps of time, from the definition of the policy: slow, first order, independent."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MASS = 1e-8  # what the masses of a solution may be off by


def random_start(rng: np.random.Generator, mean: float) -> Floats:
    """Return a random occupancy with about this mean, sometimes with many pools at one level."""
    top = int(rng.integers(1, 3 + 2 * math.ceil(mean)))
    share = rng.dirichlet(np.full(top + 1, 0.5))
    if rng.random() < 0.5:
        share *= rng.random(top + 1) < 0.5
    share[int(rng.integers(top + 1))] += 0.1
    share /= share.sum()
    q = np.append(share[::-1].cumsum()[::-1], 0.0)
    q[0] = 1.0
    return np.minimum.accumulate(np.minimum(q, 1.0))


def step(q: Floats, threshold: int, tasks: float, dt: float) -> None:
    """Let tasks leave for a time dt; then send `tasks` tasks per pool where the policy sends them."""
    high = threshold + 1
    level = np.arange(1, q.size)
    q[1:] -= dt * level * (q[1:] - np.append(q[2:], 0.0))
    missing = float(np.sum(1 - q[1:high]))
    if tasks < missing:  # all go to pools below the threshold, uniformly
        share = min(tasks / (1 - q[threshold]), 1.0)
        q[1:high] += share * (q[:threshold] - q[1:high])
        rest = missing - float(
            np.sum(1 - q[1:high])
        )  # less than `tasks` if the step is too coarse to place all of them
        for i in range(1, high):
            q[i] = min(1.0, q[i] + max(tasks - rest, 0.0) / threshold)
        return
    q[1:high] = 1.0
    tasks -= missing
    fits = min(tasks, 1 - q[high])  # to pools at the threshold
    q[high] += fits
    tasks -= fits
    q[high + 1 :] += tasks * (q[high:-1] - q[high + 1 :])  # to any pool


def small_steps(
    q: Floats,
    threshold: int,
    demand: Callable[[float], float],
    horizon: float,
    dt: float,
    alpha: float | None = None,
) -> tuple[Floats, list[tuple[float, int]]]:
    """Return the occupancy at the horizon, and the changes of the threshold on the way."""
    q = q.copy()
    changes = []
    for n in range(round(horizon / dt)):
        time = n * dt
        if alpha is not None:
            if q[threshold + 1] >= 1:
                threshold += 1
                changes.append((time, threshold))
            elif q[threshold] <= alpha and threshold > 0:
                threshold -= 1
                changes.append((time, threshold))
        step(q, threshold, demand(time) * dt, dt)
    return q, changes
