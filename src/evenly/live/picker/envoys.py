"""The Envoys that ask us: sessions of theirs that we did not pick, and what they think of the pools' health.

An Envoy says with every call where its admin port is, so nobody has to list Envoys. Its admin port tells the
requests open at each pool. Those beyond the sessions that it told us of were picked without us, while we were
away or by its fallback.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from evenly.errors import InputError
from evenly.live.addresses import Address, parse_address
from evenly.live.log import Log
from evenly.live.picker.balancer import Balancer
from evenly.live.picker.clusters import Host, NotUnderstoodError, ask
from evenly.live.picker.pool import LivePool
from evenly.live.wire.streams import Outlet

MOST_ENVOYS = 64
INTERVAL = 0.25
_GETTING_KNOWN, _HASTE = 2.0, 0.05  # a new Envoy is asked more often: much may have happened before
_AGREEING = 3  # answers in a row that move a count
_FIRST_CHECK = 1.0  # seconds in which an Envoy that starts has checked its pools
_TIMEOUT = 1.0
_PATIENCE = (
    5.0  # how long an Envoy that does not answer, but does not refuse either, is believed to hold its sessions
)
_MEMORY = 60.0  # how long an Envoy that is gone is asked for


@dataclass(frozen=True, slots=True)
class _Before:
    """The counts when a question was asked."""

    started: Counter[LivePool]
    ended: Counter[LivePool]


class Envoy:
    """One Envoy: sessions started and ended as it told us, and what its admin port says."""

    def __init__(self, admin: Address) -> None:
        self.admin = admin
        self.started: Counter[LivePool] = Counter()
        self.ended: Counter[LivePool] = Counter()
        self.unpicked: Counter[LivePool] = Counter()
        self.hosts: dict[Address, Host] | None = None  # None as long as it does not answer
        self.silent_since = 0.0
        self._well: set[Address] = set()
        self._unwell_since: dict[Address, float] = {}
        self._surprises: dict[LivePool, list[int]] = {}

    @property
    def sessions(self) -> int:
        """Its open sessions."""
        return self.started.total() - self.ended.total() + self.unpicked.total()

    def before(self) -> _Before:
        """Remember the counts, for `compare`."""
        return _Before(self.started.copy(), self.ended.copy())

    def compare(self, before: _Before, hosts: dict[Address, Host], pools: Sequence[LivePool]) -> None:
        """Take in an answer to a question asked at `before`: how many sessions at each pool are not ours.

        Sessions came and went while the question travelled, so there is a range: the count moves only if it lies
        outside, and only if the next answers agree, for a session just picked is not open at the pool yet. The
        first answer of an Envoy is believed at once.
        """
        agreeing = 1 if self.hosts is None else _AGREEING
        self.hosts = hosts
        surprises: dict[LivePool, list[int]] = {}
        for pool in pools:
            host = hosts.get(pool.endpoint)
            active = 0 if host is None else host.active
            low = active - (self.started[pool] - before.ended[pool])
            high = active - (before.started[pool] - self.ended[pool])
            known = self.unpicked[pool]
            wanted = max(0, min(max(known, low), high))
            if wanted == known:
                continue
            same_way = [count for count in self._surprises.get(pool, []) if (count > known) == (wanted > known)]
            surprises[pool] = [*same_way, wanted][-_AGREEING:]
            if len(surprises[pool]) >= agreeing:
                self.unpicked[pool] = min(surprises[pool], key=lambda count: abs(count - known))
                del surprises[pool]
        self._surprises = surprises

    def fails(self, endpoint: Address, now: float) -> bool | None:
        """Whether it finds that the pool fails; None if it does not know the pool, or has not checked it yet.

        An Envoy that starts calls every pool failing until it has checked it. So at first it is believed after a
        while only.
        """
        host = None if self.hosts is None else self.hosts.get(endpoint)
        if host is None:
            return None
        if not host.failing:
            self._well.add(endpoint)
            self._unwell_since.pop(endpoint, None)
            return False
        since = self._unwell_since.setdefault(endpoint, now)
        return True if endpoint in self._well or now - since > _FIRST_CHECK else None

    def refused(self) -> None:
        """It has died, or is about to: when it answers again, it starts."""
        self._well.clear()
        self._unwell_since.clear()

    def lost(self) -> None:
        """It is gone, and with it the sessions that only its admin port told us of."""
        self.refused()
        self.hosts = None
        self.unpicked.clear()
        self._surprises = {}

    def forget(self, gone: set[LivePool]) -> None:
        """Keep no counts of pools that are no more."""
        for pool in gone:
            for counts in (self.started, self.ended, self.unpicked):
                del counts[pool]
            self._well.discard(pool.endpoint)
            self._unwell_since.pop(pool.endpoint, None)


class Envoys:
    """All Envoys that were heard of, each asked again and again by a task of its own."""

    def __init__(self, balancer: Balancer, log: Log, clock: Callable[[], float]) -> None:
        self._balancer = balancer
        self._log = log
        self._clock = clock
        self._known: dict[bytes, Envoy] = {}
        self._refused: set[bytes] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(MOST_ENVOYS, thread_name_prefix="envoy")

    @property
    def all(self) -> list[Envoy]:
        """Those that we know, reachable or not."""
        return list(self._known.values())

    def heard_of(self, announced: bytes, connection: Outlet) -> Envoy | None:
        """The Envoy that announces itself so; None if we do not believe it."""
        known = self._known.get(announced)
        if known is None and announced not in self._refused:
            known = self._meet(announced, connection)
        return known

    def unknown_pools(self, envoy: Envoy) -> list[LivePool]:
        """Pools that the Envoy cannot send to."""
        hosts = envoy.hosts
        return [] if hosts is None else [pool for pool in self._balancer.pools if pool.endpoint not in hosts]

    async def close(self) -> None:
        """Ask no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _meet(self, announced: bytes, connection: Outlet) -> Envoy | None:
        try:
            admin = parse_address(announced.decode("latin-1"))
        except InputError as error:
            return self._refuse(announced, str(error))
        if admin.loopback and not Address(connection.peer, 0).loopback:
            return self._refuse(announced, f"a loopback address, said by {connection.peer}, another machine")
        if len(self._known) >= MOST_ENVOYS:
            return self._refuse(announced, f"there are {MOST_ENVOYS} Envoys already")
        envoy = self._known[announced] = Envoy(admin)
        envoy.silent_since = self._clock()
        self._log.event("envoy seen", admin=str(admin))
        task = asyncio.get_running_loop().create_task(self._follow(announced, envoy))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return envoy

    def _refuse(self, announced: bytes, reason: str) -> Envoy | None:
        if len(self._refused) < MOST_ENVOYS:
            self._refused.add(announced)
            self._log.event("envoy not believed", announced=announced.decode("latin-1")[:100], reason=reason)
        return None

    async def _follow(self, announced: bytes, envoy: Envoy) -> None:
        """Ask one Envoy until it is long gone."""
        loop = asyncio.get_running_loop()
        refusals, met = 0, self._clock()
        while True:
            before = envoy.before()
            try:
                hosts = await loop.run_in_executor(self._threads, ask, envoy.admin, _TIMEOUT)
            except (OSError, NotUnderstoodError) as error:
                if isinstance(error, ConnectionRefusedError):
                    envoy.refused()
                    refusals += 1
                silent = self._clock() - envoy.silent_since
                if envoy.hosts is not None and (refusals >= 2 or silent > _PATIENCE):
                    self._lose(envoy, error)
                if silent > _MEMORY and envoy.started.total() == envoy.ended.total():
                    del self._known[announced]
                    return
            else:
                refusals, envoy.silent_since = 0, self._clock()
                if envoy.hosts is None:
                    self._log.event("envoy reachable", admin=str(envoy.admin), pools=len(hosts))
                self._take_in(envoy, before, hosts)
            await asyncio.sleep(_HASTE if self._clock() - met < _GETTING_KNOWN else INTERVAL)

    def _take_in(self, envoy: Envoy, before: _Before, hosts: dict[Address, Host]) -> None:
        pools, first = self._balancer.pools, envoy.hosts is None
        envoy.compare(before, hosts, pools)
        envoy.forget(set(envoy.started) - set(pools))
        self._balance_unpicked(pools)
        if first:
            self._balancer.catch_up()
        for pool in pools:
            self._judge(pool)

    def _lose(self, envoy: Envoy, error: Exception) -> None:
        self._log.event("envoy lost", admin=str(envoy.admin), reason=str(error), unpicked=envoy.unpicked.total())
        envoy.lost()
        self._balance_unpicked(self._balancer.pools)

    def _balance_unpicked(self, pools: Sequence[LivePool]) -> None:
        before = sum(pool.unpicked for pool in pools)
        for pool in pools:
            self._balancer.set_unpicked(pool, sum(envoy.unpicked[pool] for envoy in self._known.values()))
        after = sum(pool.unpicked for pool in pools)
        if after > before or (before and not after):
            self._log.event("unpicked sessions", before=before, sessions=after)

    def _judge(self, pool: LivePool) -> None:
        """A pool fails if more than half of the Envoys that check it say so."""
        views = [envoy.fails(pool.endpoint, self._clock()) for envoy in self._known.values()]
        known = [view for view in views if view is not None]
        if known:
            self._balancer.set_failing(pool, 2 * sum(known) > len(known))
