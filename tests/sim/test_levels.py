"""The search for a level finds what a walk through all of them finds, with few levels and with thousands."""

from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from evenly.sim.kernels.levels import level_of_rank, level_of_task, tree_of, update_tree

IntArray = NDArray[np.int64]


def _ranks_and_tasks(at_least: IntArray, tree: IntArray, total: int, top: int) -> tuple[IntArray, IntArray]:
    pools = at_least[0]
    of_ranks, of_tasks = np.zeros(pools, np.int64), np.zeros(total, np.int64)
    for rank in range(pools):
        of_ranks[rank] = level_of_rank(at_least, tree, pools, rank, top)
    for task in range(total):
        of_tasks[task] = level_of_task(at_least, tree, total, task, top)
    return of_ranks, of_tasks


def _change(at_least: IntArray, tree: IntArray, level: int, by: int) -> None:
    at_least[level] += by
    update_tree(tree, level, by)


ranks_and_tasks: Any = njit(_ranks_and_tasks)
change: Any = njit(_change)


@pytest.mark.parametrize(
    "tasks",
    [[0, 0, 0], [0, 700], [511, 512, 513], list(range(0, 1500, 7))],
    ids=lambda tasks: f"{len(tasks)} pools, {max(tasks)} tasks",
)
def test_ranks_count_from_the_emptiest_pool_and_tasks_from_the_fullest(tasks: list[int]) -> None:
    for above in (0, 5000):  # levels above the fullest pool
        size = max(tasks) + 3 + above
        at_least = np.array([sum(count >= level for count in tasks) for level in range(size)], np.int64)
        of_ranks, of_tasks = ranks_and_tasks(at_least, tree_of(at_least), sum(tasks), max(tasks))
        assert of_ranks.tolist() == sorted(tasks)
        assert of_tasks.tolist() == [count for count in sorted(tasks, reverse=True) for _ in range(count)]


def test_the_tree_follows_the_counts() -> None:
    rng = np.random.default_rng(1)
    at_least = np.sort(rng.integers(0, 1000, 3000))[::-1].copy()
    tree = tree_of(at_least)
    for level in rng.integers(1, 3000, 500).tolist():
        change(at_least, tree, level, int(rng.choice([-1, 1])))
    assert tree.tolist() == tree_of(at_least).tolist()
