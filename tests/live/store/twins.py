"""The protocol's dispatcher in Python and the functions of the store, side by side, on the same history."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import redis

from evenly.core import LearningRule
from evenly.core.protocol import DispatcherPeer, KeyReusedError, ToDispatcher
from evenly.live.store import functions
from evenly.live.store.base import FleetSettings
from evenly.live.store.link import Argument

T = TypeVar("T")


class Numbers:
    """A choice that uses the numbers that the store gets, in the same order, on candidates sorted by name."""

    def __init__(self, seed: int, count: int) -> None:
        source = random.Random(seed)
        self.all = [source.random() for _ in range(count)]
        self._left = iter(self.all)

    def __call__(self, candidates: Sequence[T], /) -> T:
        return sorted(candidates, key=str)[math.floor(next(self._left) * len(candidates))]


class Twins:
    """Both dispatchers. Every event goes to both, and they must agree on everything that can be seen."""

    def __init__(
        self, client: redis.Redis, fleet: str, settings: FleetSettings, threshold: int, term: int
    ) -> None:
        self.client = client
        self.keys = functions.keys_of(fleet)
        self.settings = settings
        self.now = 100_000_000  # microseconds
        self.peer = DispatcherPeer(
            threshold,
            LearningRule(settings.alpha),
            term=term,
            lease=functions.microseconds(settings.lease),
            silence=functions.microseconds(settings.silence),
            memory=functions.microseconds(settings.memory),
        )
        self.peer.tick(self.now)  # the store's time begins when its state is made
        self.catch_up_at: int | None = self.now + 2 * functions.microseconds(settings.heartbeat)
        self.newest: dict[str, ToDispatcher] = {}
        self.term = term
        self.orders = 0
        self.incarnations: dict[str, int] = {}  # that each pool has registered last
        self.capacities: dict[str, int | None] = {}
        self.fcall("open", self.now, threshold, term, "00", functions.microseconds(settings.heartbeat), "")

    def fcall(self, name: str, *arguments: Argument) -> list[bytes]:
        reply = self.client.fcall(f"{functions.LIBRARY}_{name}", len(self.keys), *self.keys, *arguments)
        return cast("list[bytes]", reply)

    def call(self, name: str, *arguments: Argument) -> list[bytes]:
        common = functions.common_arguments(self.settings, self.now)
        term, *rest = self.fcall(name, *common, *arguments)
        self.term = int(term)
        return rest

    def pick(self, count: int, exclude: frozenset[str], key: str | None, seed: int) -> None:
        numbers = Numbers(seed, count)
        status, *fields = self.call(
            "pick", *functions.pick_arguments(count, exclude, key, 1), *(repr(number) for number in numbers.all)
        )
        try:
            picks = self.peer.pick_many(self.now, numbers, count, key, exclude)
        except KeyReusedError:
            assert status == b"reused"
            return
        if picks:
            assert status == b"placed"
        else:
            assert status == (b"unavailable" if any(True for _ in self.peer.known_pools()) else b"empty")
        del fields[5::6]  # the addresses
        assert fields == [
            str(value).encode()
            for pick in picks
            for value in (
                pick.pool,
                functions.padded(pick.ticket),
                round(max(0, pick.expires - self.now)),
                "" if pick.color is None else pick.color.value,
                pick.threshold,
            )
        ]

    def receive(self, message: ToDispatcher) -> None:
        """Let an agent register when it is new, and when the store has forgotten where the pool is."""
        pool = str(message.report.pool)
        if message.incarnation > self.incarnations.get(pool, -1):
            self._register(pool, message.incarnation)
        fields = self.call("receive", *functions.message_arguments(message))
        if fields == [b"unplaced"]:
            self._register(pool, message.incarnation)
            fields = self.call("receive", *functions.message_arguments(message))
        before = self.newest.get(pool)
        reply = self.peer.receive(self.now, message)
        if fields == [b"outdated"]:
            assert before is not None and message.incarnation < before.incarnation
        elif reply is None:
            assert fields == []
        else:
            numbers = functions.padded(reply.version), functions.padded(reply.oldest_ticket)
            assert fields == [b"%d" % reply.threshold, *(number.encode() for number in numbers)]
        if before is None or (message.incarnation, message.sequence) > (before.incarnation, before.sequence):
            self.newest[pool] = message
        self.agree()

    def release(self, pool: str, ticket: int) -> None:
        self.call("release", pool, functions.padded(ticket))
        self.peer.release(self.now, pool, ticket)

    def set_capacity(self, pool: str, capacity: int | None) -> None:
        self.capacities[pool] = capacity
        self._register(pool, self.incarnations.get(pool, 0))
        self.peer.set_capacity(pool, capacity)

    def _register(self, pool: str, incarnation: int) -> None:
        self.incarnations[pool] = incarnation
        capacity = self.capacities.get(pool)
        limit = "-" if capacity is None else capacity
        assert self.call("register", pool, functions.padded(incarnation), limit, f"http://{pool}") == []

    def drain(self, pool: str, on: bool) -> None:
        self.orders += 1
        self.call("order", pool, functions.padded(self.orders), int(on))
        self.call("order", pool, functions.padded(self.orders - 1), int(not on))  # an old one changes nothing
        (self.peer.drain if on else self.peer.undrain)(pool)

    def disconnect(self, pool: str, grace: int) -> None:
        last = self.newest.get(pool)
        if last is not None:
            seen = functions.padded(last.incarnation), functions.padded(last.sequence)
            self.call("disconnect", pool, grace, *seen)
            self.peer.disconnect(self.now, pool, grace)

    def tick(self) -> None:
        self.call("tick")
        self.peer.tick(self.now)
        if self.catch_up_at is not None and self.now >= self.catch_up_at:
            self.catch_up_at = None
            self.peer.catch_up()

    def use_alpha(self, alpha: str) -> None:
        self.settings = replace(self.settings, alpha=alpha)
        self.peer.rule = LearningRule(alpha)

    def agree(self) -> None:
        """Compare all that can be seen."""
        (text,) = self.call("state")
        state = json.loads(text)
        peer = self.peer
        assert (int(state["threshold"]), self.term) == (peer.threshold, peer.term)
        assert (int(state["expired"]), int(state["released"])) == (peer.expired, peer.released)
        assert (state["green"], state["yellow"]) == peer.tokens
        ranked, opened, expiring, answers = self._stored()
        assert ranked == peer._ranking._estimates
        known = sorted(state["pools"], key=lambda each: int(each["serial"]))
        assert [_seen(each) for each in known] == [
            (
                each.pool,
                each.tasks,
                each.open_tickets,
                peer.estimate(each.pool) if each.member else None,
                each.draining,
                each.leaving,
                each.member and each.full,
            )
            for each in peer.known_pools()
        ]
        assert opened == sorted(
            f"{each['name']}/{ticket:019d}" for each in known for ticket in peer.open_tickets(each["name"])
        )
        assert (expiring, answers) == (len(peer._expiring), len(peer._answers))

    def _stored(self) -> tuple[dict[str, int], list[str], int, int]:
        """Read the sets as they are stored."""
        names = dict(zip(functions.KEYS, self.keys, strict=True))
        pipeline = self.client.pipeline(transaction=False)
        pipeline.zrange(names["ranked"], 0, -1, withscores=True)
        pipeline.zrange(names["open"], 0, -1)
        pipeline.zcard(names["expiring"])
        pipeline.hlen(names["answers"])
        ranked, opened, expiring, answers = pipeline.execute()
        return (
            {pool.decode(): int(estimate) for pool, estimate in ranked},
            [each.decode() for each in opened],
            expiring,
            answers,
        )


def _seen(pool: dict[str, Any]) -> tuple[object, ...]:
    estimate = pool.get("estimate")
    return (
        pool["name"],
        int(pool["tasks"]),
        pool["open"],
        int(estimate) if estimate else None,
        pool["draining"],
        pool["leaving"],
        pool["full"],
    )
