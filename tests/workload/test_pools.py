"""Classes of pools and utilities."""

import math
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly.errors import InputError
from evenly.workload.pools import MAX_CLASSES, UTILITIES, PoolClass, find_utility, parse_sizes, sizes_text


def test_all_spellings_give_the_same_classes() -> None:
    sizes: object
    for sizes in ("80*1,20*4", " 80 * 1.0 , 20*4e0", [(80, 1), (20, 4)], [PoolClass(80, 1.0), [20, 4.0]]):
        assert parse_sizes(sizes) == (PoolClass(80, 1.0), PoolClass(20, 4.0))
        assert sizes_text(parse_sizes(sizes)) == "80*1,20*4"


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ("", "sizes must list count"),
        ("80*", "sizes must list count"),
        ("80x1", "sizes must list count"),
        ("8_0*1", "sizes must list count"),
        (7, "sizes must list count"),
        ([], "sizes must list count"),
        ([80, 20], "pair of count and size"),
        ([(80, 1, 2)], "pair of count and size"),
        ("0*1", "number of pools of a class must be a whole number from 1"),
        ("80*0", "size of a pool must be a number from 0.001 to 1000, not 0"),
        ([(80, math.nan)], "size of a pool must be a number from 0.001 to 1000"),
        ("80*1,20*1.0", "list each size once, not 1 twice"),
        ("1000000000*1,1*2", "at most 1000000000 pools"),
        (",".join(f"1*{size}" for size in range(1, MAX_CLASSES + 2)), "at most 64 classes"),
        ([(1, size) for size in range(1, MAX_CLASSES + 2)], "at most 64 classes"),
    ],
)
def test_impossible_sizes_are_rejected_in_one_sentence(sizes: object, words: str) -> None:
    with pytest.raises(InputError, match=words.replace("(", r"\(")) as error:
        parse_sizes(sizes)
    assert "\n" not in str(error.value)


@given(st.text(max_size=30))
def test_any_text_is_read_or_rejected(text: str) -> None:
    with suppress(InputError):
        classes = parse_sizes(text)
        assert parse_sizes(sizes_text(classes)) == classes


@pytest.mark.parametrize(
    ("name", "size"), [*((name, 4.0) for name in UTILITIES), ("log", 0.001), ("sqrt", 0.37), ("rate", 1000.0)]
)
def test_marginal_utilities_are_differences_and_fall_strictly(name: str, size: float) -> None:
    utility = find_utility(name)
    for tasks in [*range(40), 1000]:
        difference = utility.total(size, tasks + 1) - utility.total(size, tasks)
        scale = abs(utility.total(size, tasks)) + abs(difference)
        assert utility.marginal(size, tasks) == pytest.approx(difference, rel=1e-9, abs=1e-12 * scale)
    for start in (0, 10_000, 10**6 - 2000):
        gains = [utility.marginal(size, tasks) for tasks in range(start, start + 2000)]
        assert all(later < earlier for earlier, later in pairwise(gains))


@pytest.mark.parametrize("name", UTILITIES)
def test_utilities_are_those_of_the_paper_with_size_one(name: str) -> None:
    """The paper's overall utility is the sum of X * g(1 / X)."""
    utility = find_utility(name)
    assert utility.total(1.0, 0) == 0.0
    assert utility.total(1.0, 3) == pytest.approx(3 * utility.quality(1 / 3))
    assert utility.total(8.0, 24) == pytest.approx(8 * utility.total(1.0, 3))  # eight pools of size 1 in one


def test_equal_marginal_utilities_of_different_sizes_compare_as_equal() -> None:
    log = find_utility("log").marginal
    assert log(1.0, 0) == log(4.0, 1) == 0.0
    for tasks in range(1, 200):
        size = (tasks + 1) * (1 + 1 / tasks) ** tasks  # the task after `tasks` adds nothing
        if size < 1000:
            assert log(size, tasks) == 0.0
            assert log(size / 2, tasks) == log(0.5, 0)
    sqrt = find_utility("sqrt").marginal
    assert sqrt(1.0, 0) == sqrt((math.sqrt(2) + 1) ** 2, 1)


def test_unknown_utilities_are_rejected() -> None:
    name: object
    for name in ("", "Log", 3, None, ["log"]):
        with pytest.raises(InputError, match="utility must be one of log, sqrt, rate, not "):
            find_utility(name)
