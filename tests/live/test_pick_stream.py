"""A stream of Envoy's external processing: what its messages do to a session and to the counts of the Envoy."""

from __future__ import annotations

import random

import pytest

from evenly.core import JoinShortestQueue
from evenly.live.addresses import Address
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.latency import Latency
from evenly.live.balancer.pool import LivePool
from evenly.live.envoy import ext_proc, names
from evenly.live.envoy.pick_stream import PickService, PickStream
from evenly.live.envoy.reconcile import EnvoyCounts
from evenly.live.wire.protobuf import field, struct
from evenly.live.wire.streams import Stream
from tests.live.sent_items import SentItems

REQUEST = field(2, b"some headers")
STRANGER = Address("192.0.2.9", 80)


class Scene:
    """Three pools, an Envoy, and one of its streams."""

    def __init__(self, *, announced: bool = True) -> None:
        self.balancer = Balancer(
            JoinShortestQueue(),
            name="jsq",
            choose=random.Random(1).choice,
            clock=lambda: 0.0,
            slow_start=0.0,
            report=lambda event: None,
        )
        for port in (1, 2, 3):
            self.balancer.add(Address("127.0.0.1", port), Address("127.0.0.1", port))
        self.envoy = EnvoyCounts(Address("127.0.0.1", 9901))
        self.connection = SentItems()
        stream = Stream(self.connection, b"\0\0\0\1", 2**16)
        self.latency = Latency()
        via = self.envoy if announced else None
        self.stream = PickStream(PickService(self.balancer, self.latency), stream, via)

    def answer(self, message: bytes) -> bytes | int:
        self.stream.message(message)
        return self.connection.items[-1]

    def picked(self) -> LivePool:
        [pool] = [pool for pool in self.balancer.pools if pool.sessions]
        return pool

    def other(self) -> LivePool:
        return next(pool for pool in self.balancer.pools if not pool.sessions)

    def counts(self) -> tuple[list[int], int]:
        """Return the sessions of the pools, and those of the Envoy."""
        return sorted(pool.sessions for pool in self.balancer.pools), self.envoy.sessions


def response(served: Address | None) -> bytes:
    if served is None:
        return field(3, b"some headers")
    told = struct({names.SERVED: str(served)})
    return field(3, b"some headers") + field(8, field(1, field(1, names.NAMESPACE) + field(2, told)))


@pytest.mark.parametrize("announced", [True, False])
def test_a_session_from_its_pick_to_its_end(announced: bool) -> None:
    """Envoy responds itself, then the pool that was picked, then another one after a retry."""
    scene = Scene(announced=announced)
    answer = scene.answer(REQUEST)
    picked, other = scene.picked(), scene.other()
    assert answer == ext_proc.pick_answer(picked.endpoint)
    assert scene.answer(REQUEST) == answer  # a second question on one stream is the same session
    for served, pool in ((None, picked), (picked.endpoint, picked), (other.endpoint, other)):
        assert scene.answer(response(served)) == ext_proc.GO_ON
        assert (scene.picked(), scene.counts()) == (pool, ([0, 0, 1], announced))
    scene.stream.message(b"")  # ignored
    scene.stream.ended()
    assert scene.counts() == ([0, 0, 0], 0)
    assert (scene.balancer.moved_total, scene.balancer.unpicked_total) == (1, 0)
    assert sum(scene.latency.counts) == 2


def test_a_stranger_serves() -> None:
    """The server is not one of our pools, so the session is not counted."""
    scene = Scene()
    scene.answer(REQUEST)
    scene.answer(response(STRANGER))
    assert scene.counts() == ([0, 0, 0], 0)
    scene.stream.ended()
    assert scene.counts() == ([0, 0, 0], 0)


@pytest.mark.parametrize(("drained", "answer"), [(True, ext_proc.ALL_DRAINING), (False, ext_proc.NO_PICK)])
def test_no_pool_can_be_picked_but_one_serves(drained: bool, answer: bytes) -> None:
    scene = Scene()
    for pool in scene.balancer.pools:
        if drained:
            scene.balancer.drain(pool.address)
        else:
            scene.balancer.set_failing(pool, "down")
    assert scene.answer(REQUEST) == answer
    assert scene.counts() == ([0, 0, 0], 0)
    scene.answer(response(STRANGER))
    assert scene.counts() == ([0, 0, 0], 0)
    scene.answer(response(Address("127.0.0.1", 2)))
    assert (scene.counts(), scene.balancer.unpicked_total) == (([0, 0, 1], 1), 1)
    scene.stream.ended()
    assert scene.counts() == ([0, 0, 0], 0)


@pytest.mark.parametrize("served", [1, 2])
def test_a_released_session_is_counted_again_where_it_is_served(served: int) -> None:
    scene = Scene()
    scene.answer(REQUEST)
    pool = scene.picked()
    for seconds in (0.0, 5.0):
        scene.envoy.compare(scene.envoy.snapshot(), {}, scene.balancer.pools, seconds)
    assert scene.counts() == ([0, 0, 0], 0)
    scene.answer(response(Address("127.0.0.1", served)))
    assert scene.counts() == ([0, 0, 1], 1)
    assert (scene.picked() is pool) == (pool.endpoint.port == served)
    assert (scene.balancer.unpicked_total, scene.balancer.moved_total) == (1, 0)
    scene.stream.ended()
    assert scene.counts() == ([0, 0, 0], 0)
