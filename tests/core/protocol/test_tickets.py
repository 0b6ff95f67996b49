"""Sets of ticket numbers as ranges, next to a plain set."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly.core.checks import MAX_NUMBER
from evenly.core.protocol import Tickets
from evenly.core.protocol.tickets import MAX_RANGES, check_ranges
from evenly.errors import InputError

NUMBERS = st.integers(0, 60)


def numbers(tickets: Tickets) -> set[int]:
    return {number for low, high in tickets.ranges for number in range(low, high + 1)}


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), NUMBERS)))
def test_like_a_set(events: list[tuple[bool, int]]) -> None:
    tickets, plain = Tickets(), set[int]()
    for adds, number in events:
        if adds:
            tickets.add(number)
            plain.add(number)
        else:
            tickets.forget_below(number)
            plain = {each for each in plain if each >= number}
        assert numbers(tickets) == plain
        check_ranges(tickets.ranges)
        assert all((each in tickets) == (each in plain) for each in range(-1, 63))
        assert Tickets(tickets.ranges).ranges == tickets.ranges


def test_ranges_grow_at_both_ends_and_meet() -> None:
    tickets = Tickets()
    for number, ranges in [
        (5, ((5, 5),)),
        (7, ((5, 5), (7, 7))),
        (8, ((5, 5), (7, 8))),
        (4, ((4, 5), (7, 8))),
        (4, ((4, 5), (7, 8))),
        (6, ((4, 8),)),
    ]:
        tickets.add(number)
        assert tickets.ranges == ranges


@pytest.mark.parametrize(
    ("below", "left"),
    [(0, ((1, 3), (5, 9))), (1, ((1, 3), (5, 9))), (4, ((5, 9),)), (5, ((5, 9),)), (9, ((9, 9),)), (10, ())],
)
def test_forgetting_cuts_a_range(below: int, left: tuple[tuple[int, int], ...]) -> None:
    tickets = Tickets(((1, 3), (5, 9)))
    tickets.forget_below(below)
    assert tickets.ranges == left


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([150, 300, 1000]))
def test_beyond_the_limit_the_lowest_are_forgotten(seed: int, span: int) -> None:
    added = random.Random(seed).sample(range(span), 140)
    plain = set(added)
    tickets = Tickets()
    for number in added:
        tickets.add(number)
        check_ranges(tickets.ranges)
    have = numbers(tickets)
    assert have <= plain  # a ticket on the way is never taken for one that has arrived
    assert max(plain) in have


def test_the_lowest_range_is_forgotten() -> None:
    tickets = Tickets()
    for number in range(MAX_RANGES):
        tickets.add(10 * number)
    assert len(tickets.ranges) == MAX_RANGES
    assert tickets.ranges[:2] == ((0, 0), (10, 10))
    tickets.add(10 * MAX_RANGES)
    assert len(tickets.ranges) == MAX_RANGES
    assert tickets.ranges[:2] == ((10, 10), (20, 20))
    tickets.add(5)
    assert tickets.ranges[0] == (10, 10)
    assert 5 not in tickets
    tickets.add(11)
    assert tickets.ranges[0] == (10, 11)


def test_possible_ranges_are_accepted() -> None:
    most = tuple((2 * number, 2 * number) for number in range(MAX_RANGES))
    for ranges in ((), ((0, 0),), ((MAX_NUMBER, MAX_NUMBER),), ((0, 1), (3, MAX_NUMBER)), most):
        check_ranges(ranges)


BAD_RANGES: list[object] = [
    *(None, 5, "ab", ["ab"], [(1, 2)], {}, iter(()), object()),
    *((1,), ((1,),), ((1, 2, 3),), ([1, 2],), ("12",), (None,), ((1, 2), None)),
    *((("1", "2"),), ((1.0, 2),), ((1, 2.0),), ((True, 2),), ((0, True),), ((0, None),)),
    *(((2, 1),), ((-1, 1),), ((0, MAX_NUMBER + 1),), ((0, 10**5000),)),
    *(((0, 1), (2, 3)), ((0, 1), (1, 3)), ((5, 6), (1, 2)), ((0, 5), (3, 9))),
    tuple((2 * number, 2 * number) for number in range(MAX_RANGES + 1)),
]


def test_impossible_ranges_are_rejected() -> None:
    for ranges in BAD_RANGES:
        with pytest.raises(
            InputError, match="arrived must be at most 64 ranges of whole numbers, ascending and apart"
        ):
            check_ranges(ranges)  # type: ignore[arg-type]
