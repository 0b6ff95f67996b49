"""The order of a PoolSet is a contract: compiled kernels reproduce it."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly.core import PoolSet

UNHASHABLE: Any = []


def test_add_appends_once() -> None:
    pools = PoolSet("abc")
    pools.add("a")
    pools.add("d")
    assert list(pools) == ["a", "b", "c", "d"]


def test_discard_moves_the_last_item_into_the_gap() -> None:
    pools = PoolSet("abcd")
    pools.discard("b")
    assert list(pools) == ["a", "d", "c"]
    pools.discard("c")  # the last one: nothing moves
    assert list(pools) == ["a", "d"]
    pools.discard("x")
    assert list(pools) == ["a", "d"]


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(["add", "discard", "exchange"]), st.integers(0, 7), st.integers(0, 7))))
def test_items_and_positions_agree_after_any_history(history: list[tuple[str, int, int]]) -> None:
    pools: PoolSet[int] = PoolSet()
    model: list[int] = []
    for operation, item, position in history:
        if operation == "add":
            pools.add(item)
            model += [item] if item not in model else []
        elif operation == "discard":
            pools.discard(item)
            if item in model:
                model[model.index(item)] = model[-1]
                model.pop()
        elif item in model and position < len(model):
            old = model.index(item)
            pools.exchange(item, position)
            model[old], model[position] = model[position], model[old]
        assert list(pools) == model == [pools[i] for i in range(len(pools))]
        assert len(pools) == len(model)
        assert [item in pools for item in range(8)] == [item in model for item in range(8)]


def test_items_to_leave_out_move_to_the_end_in_an_order_of_the_set_alone() -> None:
    for left_out in ("bdx", "xdb", ""):
        pools = PoolSet("abcde")
        view = pools.without(left_out)
        assert list(view) == (["a", "e", "c"] if left_out else list("abcde"))
        assert list(pools) == (["a", "e", "c", "b", "d"] if left_out else list("abcde"))
    assert not PoolSet("ab").without("ab")


def test_it_is_a_sequence() -> None:
    pools = PoolSet("abcd")
    assert pools[-1] == "d"
    assert pools[1:3] == ["b", "c"]
    assert pools.index("c") == 2
    assert random.Random(1).choice(pools) in pools
    assert not PoolSet()
    assert UNHASHABLE not in pools
    assert repr(PoolSet("ab")) == "PoolSet(['a', 'b'])"


def test_prefix_is_a_view_of_the_first_items() -> None:
    pools = PoolSet("abcd")
    prefix = pools.prefix(3)
    assert list(prefix) == ["a", "b", "c"]
    assert (prefix[-1], prefix[0:2], len(prefix)) == ("c", ["a", "b"], 3)
    assert [item in prefix for item in ("a", "c", "d", "x", UNHASHABLE)] == [True, True, False, False, False]
    with pytest.raises(IndexError):
        prefix[3]
    pools.exchange("a", 3)
    assert list(prefix) == ["d", "b", "c"]


def test_prefix_longer_than_the_set_is_the_set() -> None:
    assert list(PoolSet("ab").prefix(5)) == ["a", "b"]
