"""What the dispatcher remembers about a pool: tickets are closed, and closing them costs little."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from evenly.core.messages import Report
from evenly.core.protocol import Tickets
from evenly.core.protocol.records import Record

numbers = st.sets(st.integers(0, 40), max_size=25)


def record(tickets: dict[int, None]) -> Record:
    return Record(0.0, 10**6, Report("a", 0, None), open=tickets)


class Watched(dict[int, None]):
    """Counts the tickets that are looked at."""

    looks = 0

    def __iter__(self) -> Iterator[int]:
        for ticket in super().__iter__():
            self.looks += 1
            yield ticket

    def pop(self, key: int, default: object = None, /) -> None:
        self.looks += 1
        super().pop(key, None)


@given(opened=numbers, arrived=numbers)
def test_the_tickets_that_have_arrived_are_closed_and_the_others_stay_in_order(
    opened: set[int], arrived: set[int]
) -> None:
    tickets = Tickets()
    for ticket in arrived:
        tickets.add(ticket)
    known = record(dict.fromkeys(sorted(opened)))
    known.close(tickets.ranges)
    assert list(known.open) == sorted(opened - arrived)


def test_clients_that_never_come_do_not_make_messages_dear() -> None:
    """Each of them is a gap between two ranges, which every message repeats until the lease ends."""
    tickets = Watched(dict.fromkeys([*range(0, 10_000, 100), *range(9_901, 10_000)]))
    record(tickets).close(tuple((gap + 1, gap + 99) for gap in range(3_500, 9_900, 100)))
    assert tickets.looks <= 2 * len(tickets)


def test_a_flood_of_picks_does_not_make_messages_dear() -> None:
    tickets = Watched(dict.fromkeys(range(10_000)))
    known = record(tickets)
    for last in range(1_000):  # they arrive one by one
        known.close(((0, last),))
    assert len(tickets) == 9_000
    assert tickets.looks <= 3 * 1_000


def test_many_clients_that_never_come_do_not_make_one_arrival_dear() -> None:
    tickets = Watched(dict.fromkeys(range(10_000)))
    record(tickets).close(((9_999, 9_999),))
    assert 9_999 not in tickets
    assert tickets.looks <= 3
