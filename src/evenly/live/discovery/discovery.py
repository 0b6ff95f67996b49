"""Discovery: it looks names up when their TTL ends, and lets the balancer's pools follow the answers.

A server that DNS no longer lists is removed as an operator would remove it: it gets no new sessions, its open ones
stay counted, and if it is listed again meanwhile, it comes back with them. What the operator decides by hand wins
over DNS. If a lookup fails or finds nothing, the last answer stays in use.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf

from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.lifecycle import Event
from evenly.live.discovery.answer import Answer
from evenly.live.discovery.by_hand import ByHand
from evenly.live.discovery.followed import Followed
from evenly.live.discovery.own_ports import listens_at
from evenly.live.log import Log
from evenly.live.pool_source import PoolSource

_AT_ONCE = 250  # pools to add before picks get their turn: with thousands, each takes a quarter of a millisecond
_TURN_S = 0.01

Wanted = dict[Address, tuple[str, float]]  # the source and the weight of each server


class Discovery:
    """The sources that are followed. `weighs` says whether the policy takes weights into account.

    `clock` is the time in seconds since the epoch: the state file has such times. `own` are addresses that this
    balancer listens on.
    """

    def __init__(
        self,
        balancer: Balancer,
        log: Log,
        *,
        clock: Callable[[], float],
        weighs: bool,
        resolver: Address | None = None,
        by_hand: ByHand | None = None,
        answers: Mapping[str, Mapping[Address, float]] | None = None,
    ) -> None:
        self._balancer = balancer
        self._log = log
        self._clock = clock
        self._weighs = weighs
        self._resolver = resolver
        self.by_hand = ByHand(clock) if by_hand is None else by_hand
        self._restored = dict(answers or {})
        self._followed: dict[str, Followed] = {}
        self._fixed: frozenset[Address] = frozenset()
        self._weights: dict[Address, float] = {}  # as DNS had them last: the operator may have changed them since
        self._refused: dict[str, list[str]] = {}  # what was logged last, by source
        self._not_added: dict[Address, str] = {}  # the reason that was logged last
        self._changed = asyncio.Event()
        self._asked = asyncio.Event()
        self._starting = True
        self._unfinished = False  # whether there are more pools to add than one turn allows
        self.own: Sequence[Address] = ()

    @property
    def followed(self) -> list[Followed]:
        """All sources, in the order in which they are configured."""
        return list(self._followed.values())

    def use(self, sources: Iterable[PoolSource], fixed: Iterable[Address]) -> None:
        """Follow these sources from now on. Pools at `fixed` addresses stay, whatever DNS lists."""
        old, self._followed = self._followed, {}
        for source in sources:
            kept = old.get(source.text)
            if kept is None:
                kept = Followed(source=source, servers=self._restored.pop(source.text, None))
            elif kept.source != source:  # a new weight takes effect with a new lookup
                kept = Followed(source=source)
            self._followed[source.text] = kept
        self._fixed = frozenset(fixed)
        self._changed.set()
        self.reconcile()

    def note(self, address: Address, event: Event) -> None:
        """Take what the operator did to a pool by hand. A pool that DNS lists and that is added again is DNS's."""
        self.by_hand.note(address, event)
        if event is Event.ADD and address not in self._fixed and (found := self._wanted().get(address)):
            self._balancer.set_source(address, found[0])

    async def run(self) -> None:
        """Look the sources up again and again, until cancelled."""
        tasks: dict[str, tuple[Followed, asyncio.Task[None]]] = {}
        try:
            while True:
                self._changed.clear()
                for text, (followed, task) in list(tasks.items()):
                    if self._followed.get(text) is not followed:
                        task.cancel()
                        del tasks[text]
                for text, followed in self._followed.items():
                    if text not in tasks:
                        tasks[text] = followed, asyncio.create_task(self._follow(followed))
                self._note_asked()
                await self._changed.wait()
        finally:
            for _, task in tasks.values():
                task.cancel()
            await asyncio.gather(*(task for _, task in tasks.values()), return_exceptions=True)

    async def wait_asked(self, seconds: float) -> None:
        """Wait until each source has an answer or was looked up once, so that the first sessions find pools."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds if self._followed else 0.0):
                await self._asked.wait()
        self._starting = False

    async def _follow(self, followed: Followed) -> None:
        from evenly.live.discovery.lookups import Lookups  # noqa: PLC0415  (slow to import, and often not needed)

        lookups = Lookups(followed.source, self._resolver)
        while True:
            try:
                answer = await lookups.answer()
            except Exception as error:  # hostile answers must not end this loop
                answer = Answer(problem=repr(error))
            try:
                self.take(followed, answer)
                while self._unfinished:
                    await asyncio.sleep(_TURN_S)
                    self.reconcile()
            except Exception as error:
                self._log.event("fault", where="discovery", error=repr(error))
            await asyncio.sleep(followed.pause(answer.ttl, random.random()))

    def take(self, followed: Followed, answer: Answer) -> None:
        """Use an answer about a source, and log what is new."""
        before, had = followed.problem, followed.servers or {}
        answer = self._without_own(followed.source.text, answer)
        changed = followed.take(answer, self._clock())
        facts = {"source": followed.source.text, "servers": len(followed.servers or {})}
        if answer.problem and answer.problem != before:
            self._log.event("discovery failing", **facts, reason=answer.problem)
        elif before and not answer.problem:
            self._log.event("discovery works again", **facts)
        if changed:
            new = followed.servers or {}
            gained, lost = len(new.keys() - had.keys()), len(had.keys() - new.keys())
            self._log.event("servers found", **facts, new=gained, gone=lost, ttl=answer.ttl)
        self.reconcile()  # even without a change: pools may have gone, or the settings no longer list them
        self._note_asked()

    def _without_own(self, source: str, answer: Answer) -> Answer:
        """Drop servers that are this balancer itself. Log it when they change."""
        looping = [address for address in answer.servers if listens_at(address, self.own)]
        named = sorted(map(str, looping))
        if named and named != self._refused.get(source):
            self._log.event("servers refused", source=source, servers=named, reason="requests would loop")
        self._refused[source] = named
        if not looping:
            return answer
        servers = {address: weight for address, weight in answer.servers.items() if address not in looping}
        problem = answer.problem or ("" if servers else "DNS lists only this balancer itself")
        return Answer(servers=servers, ttl=answer.ttl, problem=problem)

    def _note_asked(self) -> None:
        known = (followed.asked or followed.servers is not None for followed in self._followed.values())
        if all(known):
            self._asked.set()

    # --- the balancer's pools ----------------------------------------------------------------------------------

    def reconcile(self) -> None:
        """Let the balancer's pools follow the last answers."""
        wanted = self._wanted()
        self.by_hand.listed(wanted)
        self._remove(wanted)
        weights: dict[Address, float] = {}
        new = 0
        for address, (source, weight) in wanted.items():
            pool = self._balancer.pool_at(address)
            if pool is None or pool.leaving:
                if new < _AT_ONCE and not self.by_hand.removed(address):
                    new += self._add(address, source, weight)
            elif pool.source:
                if pool.source != source:
                    self._balancer.set_source(address, source)
                if self._weights.get(address, weight) != weight:
                    weights[address] = weight
        self._weights = {
            **{
                pool.address: self._weights[pool.address]
                for pool in self._balancer.pools
                if pool.address in self._weights
            },
            **{address: weight for address, (_, weight) in wanted.items()},
        }
        self._not_added = {address: reason for address, reason in self._not_added.items() if address in wanted}
        self._weigh(weights)
        self._unfinished = new == _AT_ONCE

    def _wanted(self) -> Wanted:
        """Return what the sources list. A server that two of them list belongs to the first."""
        wanted: Wanted = {}
        for text, followed in self._followed.items():
            for address, weight in (followed.servers or {}).items():
                wanted.setdefault(address, (text, weight if self._weighs else 1.0))
        return wanted

    def _remove(self, wanted: Wanted) -> None:
        """Remove the pools that DNS no longer lists. Those of a source without any answer yet stay."""
        waiting = {text for text, followed in self._followed.items() if followed.servers is None}
        for pool in self._balancer.pools:
            if not pool.source or pool.leaving:
                continue
            if pool.address in self._fixed:
                self._balancer.set_source(pool.address, "")
            elif pool.address not in wanted and pool.source not in waiting:
                self._balancer.remove(pool.address)

    def _add(self, address: Address, source: str, weight: float) -> bool:
        try:
            self._balancer.add(address, address, weight=weight, source=source, slowly=not self._starting)
        except InputError as error:  # too many pools, or too many different weights
            if self._not_added.get(address) != str(error):
                self._not_added[address] = str(error)
                self._log.event("pool not added", pool=str(address), source=source, reason=str(error))
            return False
        self._not_added.pop(address, None)
        if self.by_hand.drained(address):
            self._balancer.drain(address)
        return True

    def _weigh(self, weights: Mapping[Address, float]) -> None:
        if not weights:
            return
        try:
            self._balancer.set_weights(weights)
        except InputError as error:
            self._log.event("weights not changed", pools=[str(address) for address in weights], reason=str(error))


def age(followed: Followed, now: float) -> float:
    """Return the seconds since the last answer without a problem; infinite if there was none."""
    return inf if followed.answered is None else max(now - followed.answered, 0.0)
