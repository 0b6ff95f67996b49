"""The functions in the store make the decisions of `DispatcherPeer`, on the same history with the same numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenly.core.messages import Report
from evenly.core.protocol import Kind, ToDispatcher
from evenly.core.protocol.dispatcher_peer import MAX_TERM, TERM
from evenly.live.store import functions
from evenly.live.store.base import FleetSettings
from tests.live.store.twins import Twins
from tests.live.stores import StoreServer

POOLS = tuple("abcde")
LAST = 2**63 - 1
ALPHAS = ("0.5", "0.93", "0.123456789")
fleets = (f"twins-{number}" for number in itertools.count())

some_pool = st.sampled_from(POOLS)
some_pools = st.frozensets(some_pool | st.just("no pool"), max_size=3)
big = st.sampled_from((1, 2, 3, 2**53, 2**53 + 1, 2**53 + 2, LAST - 1, LAST))
ranges = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), max_size=3)

picks = st.tuples(
    st.just("pick"), st.sampled_from((1, 1, 1, 2, 4)), st.just(frozenset()) | some_pools,
    st.none() | st.sampled_from(("k", "l")), st.integers(0, 2**32),
)  # fmt: skip
messages = st.tuples(
    st.just("message"), some_pool, st.sampled_from(list(Kind) + [Kind.HEARTBEAT] * 3),
    st.integers(0, 2) | big, st.integers(1, 20) | big, st.integers(0, 6) | st.just(10**12),
    st.sampled_from(("none", "now", "now", "now", "next", "next term", "last term", "end")), ranges,
)  # fmt: skip
events = st.one_of(
    picks,
    picks,
    messages,
    messages,
    messages,
    st.tuples(st.just("release"), some_pool, st.integers(0, 4), st.booleans()),
    st.tuples(st.just("time"), st.sampled_from((0.1, 0.7, 1.0, 3.3, 7.0, 13.0))),
    st.tuples(st.just("tick")),
    st.tuples(st.just("drain"), some_pool, st.booleans()),
    st.tuples(st.just("capacity"), some_pool, st.none() | st.integers(1, 6)),
    st.tuples(st.just("disconnect"), some_pool, st.sampled_from((0.0, 2.0))),
    st.tuples(st.just("alpha"), st.sampled_from(ALPHAS)),
)


@pytest.fixture(scope="module")
def client(server: StoreServer) -> Iterator[redis.Redis]:
    with server.client() as client:
        client.function_load(functions.library(), replace=True)
        yield client


def version_of(word: str, twins: Twins, pool: str) -> int:
    """Return a version that the pool may know: none, the newest, or one of a dispatcher that is forgotten."""
    first, opened = twins.peer.term * TERM, twins.peer.open_tickets(pool)
    return {
        "none": 0,
        "now": max(opened, default=first - 1) + 1,
        "next": max(opened, default=first) + 100,
        "next term": min(first + TERM + 7, LAST),
        "last term": MAX_TERM * TERM - 1,
        "end": LAST,
    }[word]


def arrived(twins: Twins, pool: str, gaps: list[tuple[int, int]], end: bool) -> tuple[tuple[int, int], ...]:
    """Return ranges around the open tickets of the pool, ascending and apart."""
    place = min(twins.peer.open_tickets(pool), default=twins.peer.term * TERM) - 1
    found = []
    for gap, length in gaps:
        first = place + gap + 1
        place = first + length + 1
        found.append((first, place - 1))
    found = [each for each in found if each[1] < LAST - 2]
    return (*found, (LAST - 1, LAST)) if end else tuple(found)


def apply(twins: Twins, event: tuple[object, ...]) -> None:
    match event:
        case (
            "message",
            str(pool),
            Kind() as kind,
            int(incarnation),
            int(sequence),
            int(tasks),
            str(word),
            list(gaps),
        ):
            seen, version = arrived(twins, pool, gaps, word == "end"), version_of(word, twins, pool)
            twins.receive(ToDispatcher(kind, incarnation, sequence, Report(pool, tasks, None), version, seen))
            return
        case ("pick", int(count), frozenset() as exclude, key, int(seed)):
            twins.pick(count, exclude, key if isinstance(key, str) else None, seed)
        case ("release", str(pool), int(index), bool(is_open)):
            opened = [ticket for ticket in twins.peer.open_tickets(pool) if ticket <= LAST]
            twins.release(pool, opened[index % len(opened)] if opened and is_open else index)
        case ("time", float(passed)):
            twins.now += functions.microseconds(passed)
            return
        case ("tick",):
            twins.tick()
        case ("drain", str(pool), bool(on)):
            twins.drain(pool, on)
        case ("capacity", str(pool), capacity):
            twins.set_capacity(pool, capacity if isinstance(capacity, int) else None)
        case ("disconnect", str(pool), float(grace)):
            twins.disconnect(pool, functions.microseconds(grace))
        case ("alpha", str(alpha)):
            twins.use_alpha(alpha)
        case _:
            raise AssertionError(event)
    twins.agree()


@pytest.mark.long
@settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    history=st.lists(events, min_size=10, max_size=60),
    threshold=st.integers(0, 4) | st.just(10**12 - 1),
    term=st.sampled_from((1, 215_000_000, 2**31 - 3, MAX_TERM)),
    alpha=st.sampled_from(ALPHAS),
    heartbeat=st.sampled_from((0.5, 2.0, 10.0)),
    lease=st.sampled_from((5.0, 30.0)),  # shorter or longer than a pool may be silent
)
def test_the_store_decides_like_the_protocol(
    client: redis.Redis,
    history: list[tuple[object, ...]],
    threshold: int,
    term: int,
    alpha: str,
    heartbeat: float,
    lease: float,
) -> None:
    times = FleetSettings(alpha=alpha, lease=lease, silence=9.0, memory=4.0, heartbeat=heartbeat)
    twins = Twins(client, next(fleets), times, threshold, term)
    try:
        for event in history:
            apply(twins, event)
        for _ in range(3):
            twins.now += 20_000_000
            twins.tick()
            twins.agree()
    finally:
        client.delete(*twins.keys)


def test_pools_to_avoid_are_left_out(client: redis.Redis) -> None:
    times = FleetSettings(alpha="0.93", lease=5.0, silence=9.0, memory=4.0, heartbeat=2.0)
    twins = Twins(client, next(fleets), times, threshold=50, term=1)
    for tasks, pool in enumerate(POOLS):
        twins.receive(ToDispatcher(Kind.TOKEN, 1, 1, Report(pool, tasks, None), 0, ()))
    for seed in range(60):
        twins.pick(2, frozenset(POOLS[: seed % 4]), None, seed)
    twins.agree()
    client.delete(*twins.keys)


def test_places_that_are_given_back_take_the_steps_of_the_threshold_back(client: redis.Redis) -> None:
    """All or none: the first picks of a request raise the threshold, and the last one finds no room."""
    times = FleetSettings(alpha="0.5", lease=5.0, silence=9.0, memory=4.0, heartbeat=2.0)
    twins = Twins(client, next(fleets), times, threshold=0, term=1)
    for pool in POOLS:
        twins.set_capacity(pool, 2)
        twins.receive(ToDispatcher(Kind.TOKEN, 1, 1, Report(pool, 0, None), 0, ()))
    twins.pick(2 * len(POOLS) + 1, frozenset(), None, 1)
    twins.agree()
    assert twins.peer.threshold == 0
    twins.pick(2 * len(POOLS), frozenset(), None, 1)
    twins.agree()
    assert twins.peer.threshold > 0
    client.delete(*twins.keys)


def test_a_fraction_of_exactly_alpha_lowers_the_threshold(client: redis.Redis) -> None:
    times = FleetSettings(alpha="0.5", lease=5.0, silence=9.0, memory=4.0, heartbeat=2.0)
    twins = Twins(client, next(fleets), times, threshold=1, term=1)
    for tasks, pool in enumerate("ab"):
        twins.receive(ToDispatcher(Kind.TOKEN, 1, 1, Report(pool, tasks, None), 0, ()))
    twins.pick(1, frozenset(), None, 1)
    twins.agree()
    assert twins.peer.threshold == 0
    client.delete(*twins.keys)


def test_a_burst_is_as_level_as_in_process(client: redis.Redis) -> None:
    times = FleetSettings(alpha="0.5", lease=500.0, silence=900.0, memory=4.0, heartbeat=2.0)
    twins = Twins(client, next(fleets), times, threshold=50, term=1)
    for pool in POOLS:
        twins.receive(ToDispatcher(Kind.TOKEN, 1, 1, Report(pool, 0, None), 0, ()))
    for seed in range(99):
        twins.pick(1, frozenset(), None, seed)
    twins.agree()
    assert sorted(twins.peer.estimate(pool) for pool in POOLS) == [19, 20, 20, 20, 20]
    client.delete(*twins.keys)
