"""The Envoys that ask us. Each says with every call where its admin port is, so nobody has to list them."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable, Sequence

from evenly.errors import InputError
from evenly.live.addresses import Address, parse_address
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.pool import LivePool
from evenly.live.envoy.admin_client import Host, NotUnderstoodError, ask
from evenly.live.envoy.reconcile import Before, Envoy
from evenly.live.log import Log
from evenly.live.wire.streams import Outlet

MOST_ENVOYS = 64
INTERVAL = 0.25
_GETTING_KNOWN, _HASTE = 2.0, 0.05  # a new Envoy is asked more often: much may have happened before
_TIMEOUT = 1.0
_PATIENCE = 5.0  # an Envoy that neither answers nor refuses is believed to hold its sessions for so long
_MEMORY = 60.0  # how long an Envoy that is gone is asked for
_TRIAL = 10.0  # and one that never answered


class Envoys:
    """All Envoys that were heard of, each asked again and again by a task of its own."""

    def __init__(self, balancer: Balancer, log: Log, clock: Callable[[], float]) -> None:
        self._balancer = balancer
        self._log = log
        self._clock = clock
        self._known: dict[bytes, Envoy] = {}
        self._refused: set[bytes] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def all(self) -> list[Envoy]:
        """Those that we know, reachable or not."""
        return list(self._known.values())

    def heard_of(self, announced: bytes, connection: Outlet) -> Envoy | None:
        """The Envoy that announces itself so; None if we do not believe it."""
        known = self._known.get(announced)
        if known is None and announced not in self._refused and len(self._known) < MOST_ENVOYS:
            known = self._meet(announced, connection.peer)
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

    def _meet(self, announced: bytes, peer: str) -> Envoy | None:
        try:
            admin = _believed(announced.decode("latin-1"), peer)
        except InputError as error:
            if len(self._refused) < MOST_ENVOYS:
                self._refused.add(announced)
                self._log.event(
                    "envoy not believed", announced=announced.decode("latin-1")[:100], reason=str(error)
                )
            return None
        envoy = self._known[announced] = Envoy(admin)
        self._log.event("envoy seen", admin=str(admin))
        if len(self._known) == MOST_ENVOYS:
            self._log.event("no more envoys", most=MOST_ENVOYS)
        task = asyncio.get_running_loop().create_task(self._follow(announced, envoy))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return envoy

    async def _follow(self, announced: bytes, envoy: Envoy) -> None:
        """Ask one Envoy until it is long gone."""
        met = answered = self._clock()
        refusals, reached = 0, False
        while True:
            before = envoy.before()
            try:
                hosts = await ask(envoy.admin, _TIMEOUT)
            except (OSError, NotUnderstoodError) as error:
                if isinstance(error, ConnectionRefusedError):
                    envoy.refused()
                    refusals += 1
                silent = self._clock() - answered
                if envoy.hosts is not None and (refusals >= 2 or silent > _PATIENCE):
                    self._lose(envoy, error)
                if silent > (_MEMORY if reached else _TRIAL) and envoy.started.total() == envoy.ended.total():
                    del self._known[announced]
                    return
            else:
                refusals, answered, reached = 0, self._clock(), True
                if envoy.hosts is None:
                    self._log.event("envoy reachable", admin=str(envoy.admin), pools=len(hosts))
                self._take_in(envoy, before, hosts)
            await asyncio.sleep(_HASTE if self._clock() - met < _GETTING_KNOWN else INTERVAL)

    def _take_in(self, envoy: Envoy, before: Before, hosts: dict[Address, Host]) -> None:
        pools, first = self._balancer.pools, envoy.hosts is None
        envoy.compare(before, hosts, pools, self._clock())
        envoy.forget_all_but(pools)
        self._balance_unpicked(pools)
        if first:
            self._balancer.catch_up()
        for pool in pools:
            self._judge(pool)

    def _lose(self, envoy: Envoy, error: Exception) -> None:
        reason = str(error) or type(error).__name__
        self._log.event("envoy lost", admin=str(envoy.admin), reason=reason, unpicked=envoy.unpicked.total())
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


def _believed(announced: str, peer: str) -> Address:
    """An address that is asked because somebody says so: by number, and of this machine only from this machine."""
    admin = parse_address(announced)
    try:
        number = ipaddress.ip_address(admin.host)
    except ValueError:
        raise InputError(f"An Envoy announces its admin port by number, not as {announced!r}.") from None
    if number.is_unspecified or admin.port == 0:
        raise InputError(f"An Envoy announces an admin port that can be reached, not {announced!r}.")
    if admin.loopback and not Address(peer, 0).loopback:
        raise InputError(f"{announced} is a loopback address, and {peer} is another machine.")
    return admin
