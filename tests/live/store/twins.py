"""The protocol's dispatcher in Python and the functions of the store, side by side, on the same history."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import redis

from evenly.core import LearningRule
from evenly.core.protocol import DispatcherPeer, KeyReusedError, ToDispatcher, ToPool
from evenly.live.store import functions
from evenly.live.store.base import FleetSettings
from evenly.live.store.link import Argument

T = TypeVar("T")
TRIES = 15  # random numbers that one pick can use


class Numbers:
    """A choice that uses the numbers that the store gets, in the same order."""

    def __init__(self, seed: int, count: int) -> None:
        source = random.Random(seed)
        self.all = [source.random() for _ in range(count)]
        self._left = iter(self.all)

    def __call__(self, candidates: Sequence[T], /) -> T:
        return candidates[math.floor(next(self._left) * len(candidates))]


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
        self.epoch = 0
        self.failed_picks = False
        self.fcall("open", self.now, threshold, term, "00", functions.microseconds(settings.heartbeat), "")

    def fcall(self, name: str, *arguments: Argument) -> list[bytes]:
        reply = self.client.fcall(f"{functions.LIBRARY}_{name}", len(self.keys), *self.keys, *arguments)
        return cast("list[bytes]", reply)

    def call(self, name: str, *arguments: Argument) -> list[bytes]:
        common = functions.common_arguments(self.settings, self.now)
        epoch, *rest = self.fcall(name, *common, *arguments)
        self.epoch = int(epoch)
        return rest

    def pick(self, count: int, exclude: frozenset[str], key: str | None, seed: int) -> None:
        numbers = Numbers(seed, count * TRIES)
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
            self.failed_picks = True  # the places given back may be those that a notice named as the oldest
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
        pool = str(message.report.pool)
        status, *fields = self.call("receive", *functions.message_arguments(message))
        if self.peer.receive(self.now, message):
            self.newest[pool] = message
            assert status in {b"new", b"tell"}
        else:
            assert status in {b"old", b"tell"}
        told = dict(self.peer.messages())
        if status == b"tell":
            notice = told.pop(pool)
            assert fields == [b"%d" % notice.notice.threshold, functions.padded(notice.oldest_ticket).encode()]
            assert self.epoch == notice.notice.epoch
        self.agree(told)

    def release(self, pool: str, ticket: int) -> None:
        self.call("release", pool, functions.padded(ticket))
        self.peer.release(self.now, pool, ticket)

    def set_capacity(self, pool: str, capacity: int | None) -> None:
        self.call("register", pool, "-" if capacity is None else capacity, f"http://{pool}")
        self.peer.set_capacity(pool, capacity)

    def drain(self, pool: str, on: bool) -> None:
        self.call("drain" if on else "undrain", pool)
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
        self.peer.dispatcher.rule = LearningRule(alpha)

    def agree(self, told: dict[Hashable, ToPool] | None = None) -> None:
        """Compare all that can be seen, and what the pools are told after a change of the threshold."""
        (text,) = self.call("state")
        state = json.loads(text)
        peer, dispatcher = self.peer, self.peer.dispatcher
        assert (int(state["threshold"]), self.epoch) == (dispatcher.threshold, dispatcher.epoch)
        assert state["settled"] is dispatcher.settled
        assert (int(state["expired"]), int(state["released"])) == (peer.expired, peer.released)
        members, green, yellow, unsettled, opened, expiring, answers = self._stored()
        assert members == list(dispatcher.pools)
        assert (green, state["green"]) == (list(dispatcher.green), len(green))
        assert (yellow, state["yellow"]) == (list(dispatcher.yellow), len(yellow))
        assert unsettled == {pool for pool in members if dispatcher.awaits(pool)}
        known = sorted(state["pools"], key=lambda each: int(each["serial"]))
        assert [_seen(each) for each in known] == [
            (
                each.pool,
                each.tasks,
                each.open_tickets,
                dispatcher.estimate(each.pool) if each.member else None,
                each.draining,
                each.leaving,
                each.full,
            )
            for each in peer.known_pools()
        ]
        assert opened == sorted(
            f"{each['name']}/{ticket:019d}" for each in known for ticket in peer.open_tickets(each["name"])
        )
        assert (expiring, answers) == (len(peer._expiring), len(peer._answers))
        told = dict(peer.messages()) if told is None else told
        if told:
            self._same_notices(members, told)

    def _same_notices(self, members: list[str], told: dict[Hashable, ToPool]) -> None:
        threshold, *oldest = self.call("tell", *members)
        notices = dict(zip(members, map(int, oldest), strict=True))
        for pool, message in told.items():
            assert (message.notice.threshold, message.notice.epoch) == (int(threshold), self.epoch)
            assert notices[str(pool)] >= message.oldest_ticket
            assert notices[str(pool)] == message.oldest_ticket or self.failed_picks

    def _stored(self) -> tuple[list[str], list[str], list[str], set[str], list[str], int, int]:
        """Read the arrays and sets as they are stored."""
        names = dict(zip(functions.KEYS, self.keys, strict=True))
        pipeline = self.client.pipeline(transaction=False)
        for name in ("members", "green", "yellow"):
            pipeline.hgetall(names[name])
        pipeline.smembers(names["unsettled"])
        pipeline.zrange(names["open"], 0, -1)
        pipeline.zcard(names["expiring"])
        pipeline.hlen(names["answers"])
        members, green, yellow, unsettled, opened, expiring, answers = pipeline.execute()
        return (
            _array(members),
            _array(green),
            _array(yellow),
            {pool.decode() for pool in unsettled},
            [each.decode() for each in opened],
            expiring,
            answers,
        )


def _array(stored: dict[bytes, bytes]) -> list[str]:
    pools = [stored[b"#%d" % position] for position in range(len(stored) // 2)]
    assert [int(stored[pool]) for pool in pools] == list(range(len(pools)))
    return [pool.decode() for pool in pools]


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
