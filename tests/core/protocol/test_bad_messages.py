"""Whatever a message carries: it is taken in, or an InputError says what is wrong and nothing has changed."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from evenly.core import Report, ThresholdNotice
from evenly.core.checks import MAX_EPOCH
from evenly.core.protocol import DispatcherPeer, Kind, ToDispatcher, ToPool
from evenly.errors import InputError
from tests.core.protocol.support import LEASE, net
from tests.core.support import first
from tests.core.test_bad_input import NO_COUNT, rejected

GOOD = ToDispatcher(Kind.HEARTBEAT, 5, 5, Report("a", 1, 0, None), ((0, 3), (5, 5)))


def state(peer: DispatcherPeer) -> object:
    """Return all that an outsider can see."""
    dispatcher = peer.dispatcher
    return (
        {
            pool: (dispatcher.estimate(pool), peer.open_tickets(pool), dispatcher.awaits(pool))
            for pool in dispatcher.pools
        },
        (list(dispatcher.green), list(dispatcher.yellow), dispatcher.notice, peer.notices, peer.expired),
        (peer.open_tickets("new"), repr(vars(peer)["_records"])),
    )


def hostile(pool: str) -> dict[str, ToDispatcher]:
    """Return messages of a pool that are wrong in one place."""
    good = replace(GOOD, report=replace(GOOD.report, pool=pool))
    found = {}
    numbers = [*NO_COUNT, None, MAX_EPOCH + 1]
    for place, value in enumerate(numbers):
        for name in ("incarnation", "sequence"):
            found[f"{name} {place}"] = replace(good, **{name: value})
        for name in ("tasks", "epoch"):
            bad = replace(good.report, **{name: value})
            found[f"{name} {place}"] = replace(good, report=bad)
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
    assert made.dispatcher.receive(0.0, replace(GOOD, report=replace(GOOD.report, pool=pool)))


def test_what_is_no_message_changes_nothing() -> None:
    made = net(1)
    before = state(made.dispatcher)
    for message in (None, "x", GOOD.report, ToPool(ThresholdNotice(1, 0), 0)):
        sentence = rejected(partial(made.dispatcher.receive, 0.0, message))  # type: ignore[arg-type]
        assert sentence.startswith("message must be a ToDispatcher, not ")
    assert state(made.dispatcher) == before


def test_the_limits_themselves_are_allowed() -> None:
    made = net(1)
    message = ToDispatcher(
        Kind.TOKEN, MAX_EPOCH, MAX_EPOCH, Report("a", 10**12, MAX_EPOCH, None), ((0, MAX_EPOCH),)
    )
    assert made.dispatcher.receive(0.0, message)
    assert made.estimate("a") == 10**12
    assert made.dispatcher.receive(0.0, ToDispatcher(Kind.TOKEN, 0, 1, Report("b", 0, 0, None), ()))


def test_numbers_of_other_types_become_plain_ones() -> None:
    made = net(1, threshold=200)
    small: Any = np.int8(127)
    assert made.dispatcher.receive(0.0, replace(GOOD, incarnation=small, report=Report("a", small, 0, None)))
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
