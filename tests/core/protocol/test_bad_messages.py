"""Whatever a message carries: it is taken in, or an InputError says what is wrong and nothing has changed."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from evenly.core import Report
from evenly.core.checks import MAX_NUMBER
from evenly.core.protocol import DispatcherPeer, Kind, ToDispatcher, ToPool
from evenly.errors import InputError
from tests.core.protocol.support import LEASE, net
from tests.core.support import first
from tests.core.test_bad_input import NO_COUNT, rejected

GOOD = ToDispatcher(Kind.HEARTBEAT, 5, 5, Report("a", 1, None), 6, ((0, 3), (5, 5)))


def state(peer: DispatcherPeer) -> object:
    """Return all that an outsider can see."""
    return (
        {pool: (peer.estimate(pool), peer.open_tickets(pool)) for pool in peer.members},
        (peer.tokens, peer.threshold, peer.term, peer.expired),
        (peer.open_tickets("new"), repr(vars(peer)["_records"])),
    )


def hostile(pool: str) -> dict[str, ToDispatcher]:
    """Return messages of a pool that are wrong in one place."""
    good = replace(GOOD, report=replace(GOOD.report, pool=pool))
    found = {}
    numbers = [*NO_COUNT, None, MAX_NUMBER + 1]
    for place, value in enumerate(numbers):
        for name in ("incarnation", "sequence", "version"):
            found[f"{name} {place}"] = replace(good, **{name: value})
        found[f"tasks {place}"] = replace(good, report=replace(good.report, tasks=value))
    found["sequence 0"] = replace(good, sequence=0)
    strangers: list[Any] = [0, "x", [], {}, object(), b"", 1.5]
    for place, value in enumerate(strangers):
        found[f"kind {place}"] = replace(good, kind=value)
        found[f"report {place}"] = replace(good, report=value)
        found[f"arrived {place}"] = replace(good, arrived=value)
        found[f"color {place}"] = replace(good, report=replace(good.report, color=value))
    found["kind by name"] = replace(good, kind="heartbeat")  # type: ignore[arg-type]
    found["color by name"] = replace(good, report=replace(good.report, color="green"))  # type: ignore[arg-type]
    unnamed: list[Any] = [None, [], {}, ([],)]
    for place, value in enumerate(unnamed):
        found[f"pool {place}"] = replace(good, report=replace(good.report, pool=value))
    return found


@pytest.mark.parametrize("pool", ["a", "new"])
def test_a_message_that_is_wrong_anywhere_changes_nothing(pool: str) -> None:
    made = net(1, 4, threshold=3)
    made.pick()
    before = state(made.dispatcher)
    for name, message in hostile(pool).items():
        with pytest.raises(InputError):
            made.dispatcher.receive(LEASE, message)
        assert state(made.dispatcher) == before, name
    assert made.dispatcher.receive(0.0, replace(GOOD, report=replace(GOOD.report, pool=pool))) is not None


def test_what_is_no_message_changes_nothing() -> None:
    made = net(1)
    before = state(made.dispatcher)
    for message in (None, "x", GOOD.report, ToPool(1, 0, 0)):
        sentence = rejected(partial(made.dispatcher.receive, 0.0, message))  # type: ignore[arg-type]
        assert sentence.startswith("message must be a ToDispatcher, not ")
    assert state(made.dispatcher) == before


def test_the_limits_themselves_are_allowed() -> None:
    made = net(1)
    report = Report("a", 10**12, None)
    made.deliver(ToDispatcher(Kind.TOKEN, MAX_NUMBER, MAX_NUMBER, report, MAX_NUMBER, ((0, MAX_NUMBER),)))
    assert made.estimate("a") == 10**12
    made.deliver(ToDispatcher(Kind.TOKEN, 0, 1, Report("b", 0, None), 0, ()))
    assert made.estimate("b") == 0


def test_numbers_of_other_types_become_plain_ones() -> None:
    made = net(1, threshold=200)
    small: Any = np.int8(127)
    made.dispatcher.receive(0.0, replace(GOOD, incarnation=small, report=Report("a", small, None)))
    made.pick()
    assert made.estimate("a") == 128


def test_a_time_is_a_finite_number() -> None:
    made, now = net(1), float("nan")
    before = state(made.dispatcher)
    for call in (
        partial(made.dispatcher.tick, now),
        partial(made.dispatcher.pick, now, first),
        partial(made.dispatcher.pick, now, first, "key"),
        partial(made.dispatcher.receive, now, GOOD),
        partial(made.dispatcher.release, now, "a", 5),
    ):
        assert rejected(call).startswith("now must be a finite number, not ")
        assert state(made.dispatcher) == before


def test_keys_pools_and_tickets_are_checked() -> None:
    made = net(1)
    peer = made.dispatcher
    key: Any = []
    assert rejected(partial(peer.pick, 0.0, first, key)) == "key must be a hashable value or None, not []."
    pool: Any
    for pool in (None, []):
        assert rejected(partial(peer.open_tickets, pool)).startswith("A pool must be named by a hashable value")
        assert rejected(partial(peer.release, 0.0, pool, 1)).startswith("A pool must be named by a hashable value")
    ticket: Any
    for ticket in (None, -1, [], "x", True):
        assert rejected(partial(peer.release, 0.0, "a", ticket)).startswith("ticket must be a whole number from 0")


def test_a_rejected_choice_leaves_no_ticket() -> None:
    made = net(1)
    with pytest.raises(InputError, match="choose must return one of the candidates"):
        made.pick(lambda _: "z", key="k")  # type: ignore[arg-type]
    assert made.dispatcher.open_tickets("a") == ()
    assert made.estimate("a") == 1
    assert made.pick(key="k").pool == "a"
