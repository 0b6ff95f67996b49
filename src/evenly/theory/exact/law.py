"""The exact stationary law of a small system, policy by policy, with no chance in it.

The yardstick for the simulator at sizes where limits of many pools say nothing yet. States and events are in
`chain`, the balance equations in `solve`, the input rules in `inputs`.

Service has unit rate: `load` is the offered load per pool, and the law does not depend on the service rate.
Without a capacity the total number of tasks is Poisson whatever the policy, so the chain is cut where that
Poisson law has next to nothing left. `truncation` is the probability that is cut off: the total is off by no
more, other probabilities by about as much, and averages of tasks by a few times that.
"""

from dataclasses import dataclass
from math import floor
from typing import Any

import numpy as np
from scipy import sparse

from evenly.theory.balance import balanced_occupancy
from evenly.theory.exact.chain import (
    Chain,
    FloatArray,
    SmallSystem,
    assign_by_sample,
    assign_by_threshold,
    assign_to_shortest,
    explore,
)
from evenly.theory.exact.inputs import (
    check_numbers,
    check_policy,
    checked_sample_size,
    largest_fall,
    largest_total,
    start_threshold,
)
from evenly.theory.exact.solve import stationary_law


@dataclass(frozen=True, kw_only=True)
class ExactLaw:
    """Long-run averages of a small system; None where a policy has no threshold.

    Rates are per mean service time, and `per_task` figures count every arrival, lost or not.
    """

    policy: str
    pools: int
    load: float
    threshold_start: int | None
    alpha: float | str | None
    sample_size: int | None
    capacity: int | None
    states: int
    truncation: float
    residual: float
    mean_tasks: float
    pools_with_exactly: FloatArray
    task_share: FloatArray
    max_tasks_distribution: FloatArray
    max_tasks_mean: float
    spread_mean: float
    imbalance_mean: float
    lost: float
    threshold_distribution: dict[int, float] | None
    rise_rate: float | None
    fall_rate: float | None
    green_per_task: float | None
    yellow_per_task: float | None
    resync_per_task: float | None

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, with the keys that a simulation has too."""
        return {
            "policy": self.policy,
            "pools": self.pools,
            "load": self.load,
            "alpha": None if self.alpha is None else float(self.alpha),
            "choices": self.sample_size,
            "capacity": self.capacity,
            "mean_tasks": self.mean_tasks,
            "pools_with_exactly": self.pools_with_exactly.tolist(),
            "task_share": self.task_share.tolist(),
            "max_tasks": {"mean": self.max_tasks_mean, "distribution": self.max_tasks_distribution.tolist()},
            "threshold": self._threshold(),
            "messages": self._messages(),
            "spread": {"mean": self.spread_mean},
            "imbalance": {"mean": self.imbalance_mean},
            "lost": self.lost,
            "states": self.states,
            "truncation": self.truncation,
            "residual": self.residual,
        }

    def _threshold(self) -> dict[str, Any] | None:
        if self.threshold_distribution is None or self.rise_rate is None or self.fall_rate is None:
            return None
        return {
            "initial": self.threshold_start,
            "mean": sum(level * share for level, share in self.threshold_distribution.items()),
            "time_at": {str(level): share for level, share in self.threshold_distribution.items()},
            "changes_rate": self.rise_rate + self.fall_rate,
        }

    def _messages(self) -> dict[str, float] | None:
        if self.green_per_task is None or self.yellow_per_task is None or self.resync_per_task is None:
            return None
        return {
            "green_per_task": self.green_per_task,
            "yellow_per_task": self.yellow_per_task,
            "resync_per_task": self.resync_per_task,
            "per_task": self.green_per_task + self.yellow_per_task,
        }


def exact_law(
    *,
    policy: str,
    pools: int,
    load: float,
    threshold: int | None = None,
    alpha: float | str | None = None,
    sample_size: int | None = None,
    capacity: int | None = None,
    tolerance: float = 1e-10,
    max_states: int = 400_000,
) -> ExactLaw:
    """Solve the balance equations of a small system.

    A threshold without `alpha` is fixed, floor(load) if not given; with `alpha` it is where learning starts,
    0 if not given. Power-of-d samples two pools if `sample_size` is not given. A task sent to a pool that holds
    `capacity` tasks is lost. A chain of more than `max_states` states is refused.

    Paper: Sec. 2.1, Sec. 4.1.
    """
    check_numbers(pools, load, threshold, sample_size, capacity, tolerance, max_states)
    check_policy(policy, threshold, alpha, sample_size)
    is_threshold = policy == "threshold"
    start = start_threshold(load, threshold, alpha, capacity) if is_threshold else None
    falls_at = None if alpha is None else largest_fall(alpha, pools, capacity)
    if policy == "power-of-d":
        sample_size = checked_sample_size(sample_size, pools)
    total_limit, truncation = largest_total(pools, load, capacity, tolerance, max_states)
    system = SmallSystem(
        pools=pools,
        load=load,
        assign={
            "threshold": assign_by_threshold,
            "jsq": assign_to_shortest,
            "power-of-d": assign_by_sample(sample_size or 1),
            "random": assign_by_sample(1),
        }[policy],
        threshold=start or 0,
        falls_at=falls_at,
        capacity=capacity,
        total_limit=total_limit,
    )
    chain = explore(system, max_states)
    law, residual = stationary_law(chain)
    return ExactLaw(
        policy=policy,
        pools=pools,
        load=load,
        threshold_start=start,
        alpha=alpha,
        sample_size=sample_size,
        capacity=capacity,
        states=len(chain.states),
        truncation=truncation,
        residual=residual,
        **_occupancy_means(chain, law, pools, load),
        **_event_means(chain, law, pools * load, is_threshold),
    )


def _occupancy_means(chain: Chain, law: FloatArray, pools: int, load: float) -> dict[str, Any]:
    """Averages that depend on the occupancy alone."""
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
        "max_tasks_mean": float(highest @ law),
        "spread_mean": float(_spread(counts, pools) @ law),
        "imbalance_mean": float(_imbalance(counts, pools, load) @ law),
    }


def _level_counts(chain: Chain) -> sparse.csc_array:
    """The number of pools with exactly i tasks: a row a state, a column a level."""
    rows = [row for row, state in enumerate(chain.states) for _ in state.occupancy]
    pairs = np.array([pair for state in chain.states for pair in state.occupancy])
    return sparse.csc_array((pairs[:, 1].astype(float), (rows, pairs[:, 0])))


def _spread(counts: sparse.csc_array, pools: int) -> FloatArray:
    """Per state, the standard deviation of the number of tasks over the pools."""
    levels = np.arange(counts.shape[1], dtype=float)
    mean = counts @ levels / pools
    variance = counts @ levels**2 / pools - mean**2
    spread: FloatArray = np.sqrt(np.maximum(variance, 0.0))  # rounding can leave a negative zero
    return spread


def _imbalance(counts: sparse.csc_array, pools: int, load: float) -> FloatArray:
    """Per state, the Euclidean distance between its occupancy and the balanced one, level by level."""
    levels = counts.shape[1]
    balanced = balanced_occupancy(load, max(levels, floor(load) + 2))
    squares = np.full(counts.shape[0], float(np.sum(balanced[levels:] ** 2)))
    at_least = np.full(counts.shape[0], float(pools))
    for level in range(levels):
        squares += (at_least / pools - balanced[level]) ** 2
        at_least -= counts[:, [level]].toarray().ravel()
    distance: FloatArray = np.sqrt(squares)
    return distance


def _event_means(chain: Chain, law: FloatArray, arrival_rate: float, is_threshold: bool) -> dict[str, Any]:
    """Averages that count events: messages, changes of the threshold, losses."""
    rate = {what: float(rates @ law) for what, rates in chain.counted.items()}
    thresholds = np.array([state.threshold for state in chain.states])
    time_at = np.bincount(thresholds, weights=law)
    likely = {int(level): float(time_at[level]) for level in np.flatnonzero(time_at)}
    return {
        "lost": rate["lost"] / arrival_rate,
        "threshold_distribution": likely if is_threshold else None,
        "rise_rate": rate["rises"] if is_threshold else None,
        "fall_rate": rate["falls"] if is_threshold else None,
        "green_per_task": rate["green"] / arrival_rate if is_threshold else None,
        "yellow_per_task": rate["yellow"] / arrival_rate if is_threshold else None,
        "resync_per_task": rate["resync"] / arrival_rate if is_threshold else None,
    }
