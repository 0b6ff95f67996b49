"""The pool's side: sessions, tickets, and what every message carries."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from evenly.core import Color, PoolId, Report
from evenly.core.protocol import Kind, PoolPeer, ToDispatcher, ToPool
from evenly.errors import InputError
from tests.core.support import green, notice, report, yellow


def pool(threshold: int = 2, *, capacity: int | None = None, pool_id: PoolId = "a") -> PoolPeer:
    """Return a pool in its third incarnation that knows a threshold, and has sent its answer to it."""
    made = PoolPeer(pool_id, incarnation=3, capacity=capacity)
    assert made.receive(ToPool(notice(threshold, 7), 0)) is not None
    return made


def said(kind: Kind, sequence: int, sent: Report, *arrived: tuple[int, int]) -> ToDispatcher:
    return ToDispatcher(kind, 3, sequence, sent, arrived)


def test_a_new_pool_knows_no_threshold_and_says_so() -> None:
    made = PoolPeer("a", incarnation=3)
    assert made.notice == notice(0, 0)
    assert made.heartbeat() == said(Kind.HEARTBEAT, 1, yellow("a", 0))
    assert made.receive(ToPool(notice(2, 7), 40)) == said(Kind.ANSWER, 2, report("a", 0, 7))
    assert made.notice == notice(2, 7)


def test_sessions_are_counted_and_token_messages_sent_when_due() -> None:
    made = pool(2)
    assert made.begin("x", 40) == said(Kind.TOKEN, 2, green("a", 1, 7), (40, 40))
    assert made.begin("y", 41) is None  # at the threshold
    assert made.begin("z", 43) is None
    assert made.tasks == 3
    assert made.end("y") == said(Kind.TOKEN, 3, yellow("a", 2, 7), (40, 41), (43, 43))
    assert made.end("x") == said(Kind.TOKEN, 4, green("a", 1, 7), (40, 41), (43, 43))
    assert made.end("z") == said(Kind.TOKEN, 5, green("a", 0, 7), (40, 41), (43, 43))  # every departure
    assert made.tasks == 0
    assert (made.sent.green, made.sent.yellow) == (3, 1)


def test_a_session_counts_once() -> None:
    made = pool(5)
    assert made.begin("x", 1) is not None
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


def test_sessions_without_a_ticket_count_too() -> None:
    made = pool(2)
    assert made.begin("x") == said(Kind.TOKEN, 2, green("a", 1, 7))


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
    assert made.refuse(2) == said(Kind.REFUSAL, 2, yellow("a", 1, 7), (1, 2))
    assert made.tasks == 1
    assert made.sent.refusals == 1


def test_every_change_is_answered_once() -> None:
    made = pool(2)
    made.begin("x")
    assert made.receive(ToPool(notice(3, 8), 0)) == said(Kind.ANSWER, 3, report("a", 1, 8))
    assert made.receive(ToPool(notice(3, 8), 0)) is None
    assert made.receive(ToPool(notice(9, 7), 0)) is None
    assert made.notice == notice(3, 8)
    assert made.receive(ToPool(notice(0, 9), 0)) == said(Kind.ANSWER, 4, report("a", 1, 9))
    assert made.receive(ToPool(notice(5, 20), 0)) == said(Kind.ANSWER, 5, green("a", 1, 20))
    assert (made.sent.resync, made.sent.acknowledgements) == (1, 3)


def test_tickets_that_are_not_open_any_more_are_forgotten() -> None:
    made = pool(9)
    for ticket in (10, 11, 12, 14):
        made.begin(ticket, ticket)
    made.receive(ToPool(notice(9, 7), 12))  # the threshold is not new, the number is
    assert made.heartbeat().arrived == ((12, 12), (14, 14))
    made.receive(ToPool(notice(9, 7), 10))  # late
    made.receive(ToPool(notice(1, 6), 15))
    assert made.heartbeat().arrived == ()


def test_heartbeats_carry_the_whole_state() -> None:
    made = pool(2)
    made.begin("x", 4)
    assert made.heartbeat() == said(Kind.HEARTBEAT, 3, green("a", 1, 7), (4, 4))
    made.begin("y", 6)
    assert made.heartbeat() == said(Kind.HEARTBEAT, 4, yellow("a", 2, 7), (4, 4), (6, 6))
    made.begin("z")
    assert made.heartbeat() == said(Kind.HEARTBEAT, 5, report("a", 3, 7), (4, 4), (6, 6))
    assert made.sent.heartbeats == 3


def test_all_that_a_leaving_pool_sends_says_so_until_it_stays() -> None:
    made = pool(2)
    made.begin("x", 1)
    made.begin("y", 2)
    assert made.leave() == said(Kind.LEAVE, 3, yellow("a", 2, 7), (1, 2))
    assert made.begin("z", 3) is None
    sent = [made.end("z"), made.refuse(4), made.receive(ToPool(notice(4, 8), 0)), made.begin("w", 5), made.leave()]
    assert [each.kind for each in sent if each is not None] == [Kind.LEAVE] * 5
    assert [each.sequence for each in sent if each is not None] == [4, 5, 6, 7, 8]
    assert made.heartbeat().kind is Kind.HEARTBEAT
    departed = made.end("x")
    assert departed is not None
    assert departed.kind is Kind.TOKEN
    assert made.sent.heartbeats == 3


def test_at_most_two_token_messages_per_task() -> None:
    for threshold in range(4):
        made = pool(threshold)
        for name in range(5):
            made.begin(name)
        for name in range(5):
            made.end(name)
        sent = made.sent
        assert sent.green + sent.yellow <= 10
        assert sent.green + sent.yellow == max(threshold - 1, 0) + threshold + 1  # arrivals, then departures


def test_bad_numbers_change_nothing() -> None:
    made, value = pool(2), -1
    before = made.heartbeat()
    calls: dict[str, list[Callable[[], object]]] = {
        "ticket": [partial(made.begin, "x", value), partial(made.refuse, value)],
        "oldest_ticket": [partial(made.receive, ToPool(notice(3, 9), value))],
        "incarnation": [partial(PoolPeer, "a", incarnation=value)],
    }
    for name, each in calls.items():
        for call in each:
            with pytest.raises(InputError, match=f"^{name} must be a whole number from 0 to"):
                call()
    with pytest.raises(InputError, match="ticket must be"):
        made.refuse(None)  # type: ignore[arg-type]
    after = made.heartbeat()
    assert (after.report, after.arrived, after.sequence) == (before.report, (), before.sequence + 1)
    assert made.sent.refusals == 0


def test_what_is_no_message_changes_nothing() -> None:
    made = pool(2)
    for message in (None, notice(3, 9), ("a", 1)):
        with pytest.raises(InputError, match="message must be a ToPool, not"):
            made.receive(message)  # type: ignore[arg-type]
    made.begin("x", 5)
    with pytest.raises(InputError, match="notice must be a ThresholdNotice, not"):
        made.receive(ToPool((3, 9), 9))  # type: ignore[arg-type]
    assert made.notice == notice(2, 7)
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
