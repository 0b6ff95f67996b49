"""The best utility: a linear program, brute force and the closed form agree with it."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly.core import UtilityThreshold
from evenly.errors import InputError
from evenly.theory import balanced_occupancy, predict_best_utility
from evenly.workload.pools import UTILITIES, PoolClass, find_utility

names = st.sampled_from(sorted(UTILITIES))
class_lists = st.lists(
    st.builds(PoolClass, st.integers(1, 20), st.sampled_from([0.25, 1.0, 1.7, 3.0, 4.0, 9.0])),
    min_size=1,
    max_size=4,
    unique_by=lambda each: each.size,
)


@settings(max_examples=60)
@given(classes=class_lists, load=st.floats(0.01, 12.0), name=names)
def test_a_linear_program_has_the_same_value(classes: list[PoolClass], load: float, name: str) -> None:
    """Variables: the share of pools of each class that have more than x tasks."""
    from scipy.optimize import linprog

    marginal, levels = find_utility(name).marginal, 300
    pools = sum(each.count for each in classes)
    gains = np.array([[marginal(each.size, tasks) for tasks in range(levels)] for each in classes])
    program = linprog(
        -gains.ravel(),
        A_eq=np.ones((1, gains.size)),
        b_eq=[load],
        bounds=[(0.0, each.count / pools) for each in classes for _ in range(levels)],
    )
    best = predict_best_utility(sizes=classes, load=load, utility=name)
    assert best.bound == pytest.approx(-float(program.fun or 0), rel=1e-7, abs=1e-7)
    shares = np.array([each.count / pools for each in classes])
    assert shares @ (best.tasks + best.share_above) == pytest.approx(load, rel=1e-9)
    assert np.all((best.share_above >= 0) & (best.share_above < 1))


@pytest.mark.parametrize("name", UTILITIES)
def test_no_placement_of_the_tasks_is_better(name: str) -> None:
    sizes, utility = [1.0, 1.0, 2.5, 4.0], find_utility(name)
    for tasks in range(1, 13):
        best = max(
            sum(utility.total(size, count) for size, count in zip(sizes, counts, strict=True))
            for counts in product(range(tasks + 1), repeat=4)
            if sum(counts) == tasks
        )
        found = predict_best_utility(sizes="2*1,1*2.5,1*4", load=tasks / 4, utility=name)
        assert 4 * found.bound == pytest.approx(best, rel=1e-9, abs=1e-9)


@given(load=st.floats(0.001, 50.0), size=st.floats(0.01, 100.0), name=names, count=st.integers(1, 10**9))
def test_one_size_has_a_closed_form(load: float, size: float, name: str, count: int) -> None:
    utility, whole = find_utility(name), math.floor(load)
    best = predict_best_utility(sizes=[(count, size)], load=load, utility=name)  # type: ignore[list-item]
    closed = utility.total(size, whole) * (whole + 1 - load) + utility.total(size, whole + 1) * (load - whole)
    assert best.bound == pytest.approx(closed, rel=1e-9, abs=1e-9)
    assert best.tasks.tolist() == [whole]
    assert best.share_above[0] == pytest.approx(balanced_occupancy(load, whole + 2)[whole + 1], abs=1e-9)


@given(classes=class_lists, tasks=st.integers(1, 200), name=names)
def test_the_thresholds_of_the_best_index_are_the_tasks_of_the_best_spread(
    classes: list[PoolClass], tasks: int, name: str
) -> None:
    """`evenly.core` and `evenly.theory` share the utilities, but not how they are sorted."""
    policy = UtilityThreshold(0, None, name)
    pools = sum(each.count for each in classes)
    names_of = {}
    for place, each in enumerate(classes):
        for number in range(each.count):
            policy.join((place, number), 0, each.size)
        names_of[place] = (place, 0)
    policy.raise_threshold(policy.dispatcher.index_for(tasks))  # type: ignore[attr-defined]
    best = predict_best_utility(sizes=classes, load=(tasks + 1e-6) / pools, utility=name)
    assert [policy.threshold_of(names_of[place]) for place in names_of] == best.tasks.tolist()


def test_extreme_sizes_and_loads_take_no_time() -> None:
    best = predict_best_utility(sizes="1*1000,999999999*0.001", load=1000.0)
    assert math.isfinite(best.bound)
    assert best.tasks[0] / best.tasks[1] == pytest.approx(1e6, rel=1e-3)


def test_the_result_shows_itself() -> None:
    best = predict_best_utility(sizes="80*1,20*4", load=5.5)
    assert repr(best) == "BestUtility(80*1,20*4, load 5.5: log utility -6.81921 per pool)"
    assert best.to_dict()["tasks"] == best.tasks.tolist()
    assert list(best.columns()) == ["size", "pools", "tasks", "share_above", "mean_tasks"]


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"sizes": "80*0", "load": 1.0}, "size of a pool must be"),
        ({"sizes": "80*1", "load": 0.0}, "load must be"),
        ({"sizes": "80*1", "load": math.nan}, "load must be"),
        ({"sizes": "80*1", "load": 1.0, "utility": "x"}, "utility must be one of"),
    ],
)
def test_bad_input_is_rejected(given_: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        predict_best_utility(**given_)
