"""The Envoys that use this picker. Each announces its admin port with every call, so none has to be configured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.lifecycle import Stage
from evenly.live.balancer.pool import LivePool
from evenly.live.envoy.admin_address import AdminSocket, parse_announcement
from evenly.live.envoy.admin_client import BadResponseError, Host, fetch_hosts
from evenly.live.envoy.reconcile import FIRST_CHECK_S, EnvoyCounts, Snapshot
from evenly.live.envoy.refusals import RefusalTally, fetch_refusals
from evenly.live.log import Log
from evenly.live.wire.streams import Outlet

MAX_ENVOYS = 64
_POLL_S = 0.25
_FAST_POLL_S = 0.05  # for a new Envoy: many sessions may have started before it was seen; while a caller waits
_NEW_S = 2.0  # an Envoy is new for this long
_CHECK_S = 2 * FIRST_CHECK_S  # for the checks of a new pool, which it passes or fails by then
_REFUSALS_S = 1.0  # between two looks at what an Envoy refused
_TIMEOUT_S = 1.0
_SILENCE_S = 5.0  # an Envoy that neither responds nor refuses keeps its unpicked sessions for this long
_FORGET_S = 60.0  # an Envoy that has gone silent is polled for this long
_FORGET_NEW_S = 10.0  # and one that has never responded for this long


class EnvoyFleet:
    """The known Envoys, each polled by its own task. With `own`, only that Envoy is accepted.

    `unfit` returns whether a pool is known to fail although its health checks may pass.
    """

    def __init__(
        self,
        balancer: Balancer,
        log: Log,
        clock: Callable[[], float],
        own: AdminSocket | None = None,
        unfit: Callable[[LivePool], bool] = lambda _: False,
    ) -> None:
        self._unfit = unfit
        self._balancer = balancer
        self._log = log
        self._clock = clock
        self._own = own
        self.refusals = RefusalTally(log)
        self._hurry_until = 0.0
        self._known: dict[bytes, EnvoyCounts] = {}
        self._refused: set[bytes] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def all(self) -> list[EnvoyCounts]:
        """The known Envoys, reachable or not."""
        return list(self._known.values())

    def register(self, announced: bytes, connection: Outlet) -> EnvoyCounts | None:
        """Return the Envoy that announces this admin port; None if the address is not acceptable."""
        known = self._known.get(announced)
        if known is None and announced not in self._refused and len(self._known) < MAX_ENVOYS:
            known = self._start_polling(announced, connection.peer)
        return known

    def unknown_pools(self, envoy: EnvoyCounts) -> list[LivePool]:
        """Return the pools that the Envoy cannot send to."""
        hosts = envoy.hosts
        return [] if hosts is None else [pool for pool in self._balancer.pools if pool.endpoint not in hosts]

    async def wait_checked(self, pool: LivePool) -> None:
        """Wait a moment until the Envoys have checked a new pool. Return at once if none would tell."""
        until = self._hurry_until = self._clock() + _CHECK_S
        while pool.stage is Stage.CHECKING and self._clock() < until:
            if not any(envoy.checks for envoy in self.all):
                return
            await asyncio.sleep(_FAST_POLL_S)

    def refusing(self) -> bool:
        """Return whether an Envoy has refused clients or requests just now."""
        return self.refusals.recent(self._clock())

    async def close(self) -> None:
        """Stop polling."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start_polling(self, announced: bytes, peer: str) -> EnvoyCounts | None:
        try:
            admin = parse_announcement(announced.decode("latin-1"), peer, self._own)
        except InputError as error:
            if len(self._refused) < MAX_ENVOYS:
                self._refused.add(announced)
                self._log.event(
                    "envoy not believed", announced=announced.decode("latin-1")[:100], reason=str(error)
                )
            return None
        envoy = self._known[announced] = EnvoyCounts(admin, self._clock())
        self._log.event("envoy seen", admin=str(admin))
        if len(self._known) == MAX_ENVOYS:
            self._log.event("no more envoys", most=MAX_ENVOYS)
        task = asyncio.get_running_loop().create_task(self._poll(announced, envoy))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return envoy

    async def _poll(self, announced: bytes, envoy: EnvoyCounts) -> None:
        """Poll one Envoy until it has been silent for a while and has no sessions."""
        refusals, reached, next_look = 0, False, envoy.seen
        while True:
            before = envoy.snapshot()
            try:
                hosts = await fetch_hosts(envoy.admin, _TIMEOUT_S)
            except (OSError, BadResponseError) as error:
                if isinstance(error, ConnectionRefusedError):
                    envoy.refused()
                    refusals += 1
                silent = self._clock() - envoy.answered
                if envoy.hosts is not None and (refusals >= 2 or silent > _SILENCE_S):
                    self._lose(envoy, error)
                if silent > (_FORGET_S if reached else _FORGET_NEW_S) and not envoy.picked:
                    del self._known[announced]
                    self.refusals.forget(announced)
                    return
            else:
                refusals, envoy.answered, reached = 0, self._clock(), True
                if envoy.hosts is None:
                    self._log.event("envoy reachable", admin=str(envoy.admin), pools=len(hosts))
                try:
                    self._take_in(envoy, before, hosts)
                except Exception as error:  # a bug here must not end the health checks
                    self._log.event("fault", where=self._take_in.__qualname__, error=repr(error))
                if self._clock() >= next_look:
                    next_look = self._clock() + _REFUSALS_S
                    await self._count_refusals(announced, envoy)
            fast = self._clock() < max(envoy.seen + _NEW_S, self._hurry_until)
            await asyncio.sleep(_FAST_POLL_S if fast else _POLL_S)

    async def _count_refusals(self, announced: bytes, envoy: EnvoyCounts) -> None:
        """Count what the Envoy has refused. Without an answer nothing is lost: its counts are totals."""
        with suppress(OSError, BadResponseError):
            try:
                counts = await fetch_refusals(envoy.admin, _TIMEOUT_S)
            except ConnectionRefusedError:
                envoy.refused()
                raise
            self.refusals.update(announced, counts, self._clock())

    def _take_in(self, envoy: EnvoyCounts, before: Snapshot, hosts: dict[Address, Host]) -> None:
        """Update counts and health from a response. Each step may remove pools, so each reads the current list."""
        first = envoy.hosts is None
        envoy.compare(before, hosts, self._balancer.pools, self._clock())
        envoy.forget_all_but(self._balancer.pools)
        self._balance_unpicked()
        if first:
            self._balancer.catch_up()
        for pool in self._balancer.pools:
            self._judge(pool)

    def _lose(self, envoy: EnvoyCounts, error: Exception) -> None:
        reason = str(error) or type(error).__name__
        self._log.event("envoy lost", admin=str(envoy.admin), reason=reason, unpicked=envoy.unpicked.total())
        envoy.lost()
        self._balance_unpicked()

    def _balance_unpicked(self) -> None:
        """Give each pool the sum of its unpicked sessions over all Envoys."""
        pools = self._balancer.pools
        before = sum(pool.unpicked for pool in pools)
        for pool in pools:
            self._balancer.set_unpicked(pool, sum(envoy.unpicked[pool] for envoy in self._known.values()))
        after = sum(pool.unpicked for pool in pools)
        if after > before or (before and not after):
            self._log.event("unpicked sessions", before=before, sessions=after)

    def _judge(self, pool: LivePool) -> None:
        """Mark a pool as failing if it is unfit, or if more than half of the Envoys that check it report so.

        A new pool is well when all of them can send to it. Some never can: a fixed list may not have it.
        """
        now, envoys = self._clock(), [envoy for envoy in self._known.values() if envoy.checks]
        known = [view for envoy in envoys if (view := envoy.fails(pool.endpoint, now)) is not None]
        if not known:
            return
        late = pool.stage is not Stage.CHECKING or now > pool.added + FIRST_CHECK_S
        if self._unfit(pool):
            self._balancer.set_failing(pool, "speaks another protocol")
        elif 2 * sum(known) > len(known):
            self._balancer.set_failing(pool, self._why(pool.endpoint))
        elif late or all(envoy.reaches(pool.endpoint, now) for envoy in envoys):
            self._balancer.set_well(pool)

    def _why(self, endpoint: Address) -> str:
        """Return why a pool fails, as one of the Envoys tells."""
        views = (envoy.hosts.get(endpoint) for envoy in self._known.values() if envoy.hosts is not None)
        return next((view.why for view in views if view is not None and view.failing), "")
