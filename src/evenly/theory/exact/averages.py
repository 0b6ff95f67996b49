"""Averages under the stationary law of a chain."""

from __future__ import annotations

from math import floor
from typing import Any

import numpy as np
from scipy import sparse

from evenly.theory.balance import balanced_occupancy
from evenly.theory.exact.chain import Chain, FloatArray


def occupancy_means(chain: Chain, law: FloatArray, pools: int, load: float) -> dict[str, Any]:
    """Return the averages that depend on the occupancy alone."""
    counts = _level_counts(chain)
    exactly = counts.T @ law / pools
    tasks = np.arange(len(exactly)) * exactly
    highest = np.array([state.occupancy[-1][0] for state in chain.states])
    most = np.bincount(highest, weights=law)
    return {
        "mean_tasks": float(tasks.sum()),
        "pools_with_exactly": exactly,
        "task_share": tasks / tasks.sum(),
        "max_tasks_distribution": most,
        "max_tasks": float(highest @ law),
        "spread": float(_spread(counts, pools) @ law),
        "imbalance": float(_imbalance(counts, pools, load) @ law),
    }


def _level_counts(chain: Chain) -> sparse.csc_array:
    """Return the number of pools with exactly i tasks: one row per state, one column per level."""
    rows = [row for row, state in enumerate(chain.states) for _ in state.occupancy]
    pairs = np.array([pair for state in chain.states for pair in state.occupancy])
    return sparse.csc_array((pairs[:, 1].astype(float), (rows, pairs[:, 0])))


def _spread(counts: sparse.csc_array, pools: int) -> FloatArray:
    """Return, per state, the standard deviation of the number of tasks over the pools."""
    levels = np.arange(counts.shape[1], dtype=float)
    mean = counts @ levels / pools
    variance = counts @ levels**2 / pools - mean**2
    spread: FloatArray = np.sqrt(np.maximum(variance, 0.0))  # rounding can leave a negative zero
    return spread


def _imbalance(counts: sparse.csc_array, pools: int, load: float) -> FloatArray:
    """Return, per state, the Euclidean distance between its occupancy and the balanced one, level by level."""
    if pools == 1:
        return _distance_of_one(counts @ np.arange(counts.shape[1], dtype=float), load)
    levels = counts.shape[1]
    balanced = balanced_occupancy(load, max(levels, floor(load) + 2))
    squares = np.full(counts.shape[0], float(np.sum(balanced[levels:] ** 2)))
    at_least = np.full(counts.shape[0], float(pools))
    for level in range(levels):
        squares += (at_least / pools - balanced[level]) ** 2
        at_least -= counts[:, [level]].toarray().ravel()
    distance: FloatArray = np.sqrt(squares)
    return distance


def _distance_of_one(tasks: FloatArray, load: float) -> FloatArray:
    """Return `_imbalance` of a single pool, by its number of tasks; there can be 100,000 levels and states."""
    full = floor(load)
    part = load - (full + 1) + 1  # rounded as in `balanced_occupancy`
    squares = np.where(tasks <= full, full - tasks + part**2, (1 - part) ** 2 + (tasks - full - 1))
    distance: FloatArray = np.sqrt(squares)
    return distance


def event_means(chain: Chain, law: FloatArray, arrival_rate: float, is_threshold: bool) -> dict[str, Any]:
    """Return the averages that count events: messages, changes of the threshold, losses."""
    rate = {what: float(rates @ law) for what, rates in chain.counted.items()}
    levels, place = np.unique([state.threshold for state in chain.states], return_inverse=True)
    time_at = np.bincount(place, weights=law)
    likely = {int(levels[place]): float(time_at[place]) for place in np.flatnonzero(time_at)}
    return {
        "lost_share": rate["lost"] / arrival_rate,
        "threshold_share": likely if is_threshold else {},
        "rise_rate": rate["rises"] if is_threshold else None,
        "fall_rate": rate["falls"] if is_threshold else None,
        "green_per_task": rate["green"] / arrival_rate if is_threshold else None,
        "yellow_per_task": rate["yellow"] / arrival_rate if is_threshold else None,
        "resync_per_task": rate["resync"] / arrival_rate if is_threshold else None,
    }
