"""The pool's side: sessions, tickets, and what every message carries."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from evenly.core import Color, PoolId, Report
from evenly.core.protocol import Kind, PoolPeer, ToDispatcher, ToPool
from evenly.errors import InputError
from tests.core.support import green, report, yellow


def pool(threshold: int = 2, *, capacity: int | None = None, pool_id: PoolId = "a") -> PoolPeer:
    """Return a pool in its third incarnation that knows a threshold, of version 7."""
    made = PoolPeer(pool_id, incarnation=3, capacity=capacity)
    made.receive(ToPool(threshold, 7, 0))
    return made


def said(kind: Kind, sequence: int, sent: Report, *arrived: tuple[int, int], version: int = 7) -> ToDispatcher:
    return ToDispatcher(kind, 3, sequence, sent, version, arrived)


def test_a_new_pool_knows_no_threshold_and_says_so() -> None:
    made = PoolPeer("a", incarnation=3)
    assert made.threshold == 0
    assert made.heartbeat() == said(Kind.HEARTBEAT, 1, yellow("a", 0), version=0)
    made.receive(ToPool(2, 7, 5))
    assert made.threshold == 2
    assert made.heartbeat() == said(Kind.HEARTBEAT, 2, green("a", 0))


def test_departures_are_reported_when_a_token_is_due_and_arrivals_with_a_ticket_never() -> None:
    made = pool(2)
    for session, ticket in (("x", 40), ("y", 41), ("z", 43)):
        assert made.begin(session, ticket) is None
    assert made.tasks == 3
    assert made.end("y") == said(Kind.TOKEN, 1, yellow("a", 2), (40, 41), (43, 43))
    assert made.end("x") == said(Kind.TOKEN, 2, green("a", 1), (40, 41), (43, 43))
    assert made.end("z") == said(Kind.TOKEN, 3, green("a", 0), (40, 41), (43, 43))  # every departure
    assert made.tasks == 0
    assert (made.sent.green, made.sent.yellow) == (2, 1)


def test_a_session_counts_once() -> None:
    made = pool(5)
    assert made.begin("x") is not None
    assert made.begin("x", 1) is None
    assert made.begin("x") is None
    assert made.tasks == 1
    assert made.end("x") is not None
    assert made.end("x") is None
    assert made.end("y") is None
    assert made.tasks == 0


def test_a_second_ticket_for_an_open_session_has_arrived_too() -> None:
    # The client asked twice. If the second ticket were ignored, its place would be kept for the whole lease.
    made = pool(5)
    made.begin("x", 1)
    assert made.begin("x", 5) is None
    assert made.heartbeat().arrived == ((1, 1), (5, 5))


def test_arrivals_without_a_ticket_are_reported_below_the_threshold() -> None:
    made = pool(2)
    assert made.begin("x") == said(Kind.TOKEN, 1, green("a", 1))
    assert made.begin("y") is None


def test_a_full_pool_takes_no_session_but_knows_its_own() -> None:
    made = pool(1, capacity=2)
    made.begin("x", 1)
    made.begin("y", 2)
    assert made.full
    with pytest.raises(InputError, match="at its capacity of 2"):
        made.begin("z", 3)
    assert made.heartbeat().arrived == ((1, 2),)  # ticket 3 has not been used
    assert made.begin("y", 4) is None
    made.end("x")
    assert not made.full
    made.begin("z", 3)
    assert made.tasks == 2


def test_a_refusal_gives_the_ticket_back() -> None:
    made = pool(1, capacity=1)
    made.begin("x", 1)
    assert made.refuse(2) == said(Kind.REFUSAL, 1, yellow("a", 1), (1, 2))
    assert made.tasks == 1
    assert made.sent.refusals == 1


def test_the_newest_threshold_counts_not_the_last_to_come() -> None:
    made = pool(2)
    made.begin("x", 9, 4)
    assert made.threshold == 4
    for late in (ToPool(3, 8, 0), ToPool(3, 9, 0)):
        made.receive(late)  # said before ticket 9
        assert made.threshold == 4
    made.begin("y", 8, 3)
    made.refuse(9, 5)
    assert made.threshold == 4
    made.receive(ToPool(6, 10, 0))  # said after it: other pools were picked meanwhile
    made.receive(ToPool(7, 10, 0))
    assert made.threshold == 7
    assert made.heartbeat().version == 10
    made.refuse(10, 0)
    assert made.threshold == 0
    assert made.heartbeat().version == 11


def test_tickets_that_are_not_open_any_more_are_forgotten() -> None:
    made = pool(9)
    for ticket in (10, 11, 12, 14):
        made.begin(ticket, ticket)
    made.receive(ToPool(9, 15, 12))
    assert made.heartbeat().arrived == ((12, 12), (14, 14))
    made.receive(ToPool(9, 15, 10))  # late
    made.receive(ToPool(1, 16, 15))
    assert made.heartbeat().arrived == ()


def test_heartbeats_carry_the_whole_state() -> None:
    made = pool(2)
    made.begin("x", 4)
    assert made.heartbeat() == said(Kind.HEARTBEAT, 1, green("a", 1), (4, 4))
    made.begin("y", 6)
    assert made.heartbeat() == said(Kind.HEARTBEAT, 2, yellow("a", 2), (4, 4), (6, 6))
    made.begin("z")
    assert made.heartbeat() == said(Kind.HEARTBEAT, 3, report("a", 3), (4, 4), (6, 6))
    assert made.sent.heartbeats == 3


def test_all_that_a_leaving_pool_sends_says_so_until_it_stays() -> None:
    made = pool(2)
    made.begin("x", 1)
    made.begin("y", 2)
    assert made.leave() == said(Kind.LEAVE, 1, yellow("a", 2), (1, 2))
    assert made.begin("z", 3) is None
    sent = [made.end("z"), made.refuse(4), made.end("y"), made.begin("w"), made.leave()]
    assert [each and each.kind for each in sent] == [Kind.LEAVE, Kind.LEAVE, Kind.LEAVE, None, Kind.LEAVE]
    assert [each.sequence for each in sent if each is not None] == [2, 3, 4, 5]
    assert made.heartbeat().kind is Kind.HEARTBEAT
    departed = made.end("x")
    assert departed is not None
    assert departed.kind is Kind.TOKEN
    assert made.sent.heartbeats == 3


@pytest.mark.parametrize("threshold", range(4))
def test_at_most_one_token_message_per_task_with_a_ticket_and_two_without(threshold: int) -> None:
    for ticket, arrivals in ((5, 0), (None, max(threshold - 1, 0))):
        made = pool(threshold)
        for name in range(5):
            made.begin(name, ticket)
        for name in range(5):
            made.end(name)
        assert made.sent.green + made.sent.yellow == arrivals + threshold + 1


def test_bad_numbers_change_nothing() -> None:
    made, value = pool(2), -1
    before = made.heartbeat()
    calls: dict[str, list[Callable[[], object]]] = {
        "ticket": [partial(made.begin, "x", value), partial(made.refuse, value)],
        "oldest_ticket": [partial(made.receive, ToPool(3, 9, value))],
        "version": [partial(made.receive, ToPool(3, value, 0))],
        "threshold": [partial(made.receive, ToPool(value, 9, 0)), partial(made.begin, "x", 1, value)],
        "incarnation": [partial(PoolPeer, "a", incarnation=value)],
    }
    for name, each in calls.items():
        for call in each:
            with pytest.raises(InputError, match=f"^{name} must be a whole number from 0 to"):
                call()
    after = made.heartbeat()
    assert (after.report, after.arrived, after.sequence) == (before.report, (), before.sequence + 1)
    assert made.sent.refusals == 0


def test_what_is_no_message_changes_nothing() -> None:
    made = pool(2)
    for message in (None, 9, ("a", 1)):
        with pytest.raises(InputError, match="message must be a ToPool, not"):
            made.receive(message)  # type: ignore[arg-type]
    made.begin("x", 5)
    assert made.threshold == 2
    assert made.heartbeat().arrived == ((5, 5),)
    session: Any
    for session in ([], {}):
        for call in (made.begin, made.end):
            with pytest.raises(InputError, match="session must be a hashable value, not"):
                call(session)
    assert made.tasks == 1


def test_a_pool_needs_a_name_and_room() -> None:
    name: Any
    for name in (None, []):
        with pytest.raises(InputError, match="A pool must be named"):
            pool(pool_id=name)
    with pytest.raises(InputError, match="capacity must be"):
        pool(capacity=0)
    assert pool(2).heartbeat().report.color is Color.GREEN
