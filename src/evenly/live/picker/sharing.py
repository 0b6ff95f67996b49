"""The balancer's side of a shared store: its own sessions go out, those of other pickers come in."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from evenly.live.addresses import Address
from evenly.live.admin.schema import StoreView
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.pool import LivePool
from evenly.live.dashboard.source import Part
from evenly.live.log import Log
from evenly.live.store_url import parse_store_url, with_password

if TYPE_CHECKING:
    from evenly.live.store.presence import Presence
    from evenly.live.store.shared_counts import SharedCounts

_WAIT_S = 1.0  # for the counts of the others, before the first pick


class Sharing:
    """The counts that a balancer shares with the other pickers of a fleet, through the store at `url`.

    The others see this picker under its host's name and `admin_port`.
    """

    def __init__(self, url: str, fleet: str, balancer: Balancer, log: Log, *, admin_port: int) -> None:
        from evenly.live.store.presence import Presence, name_here  # noqa: PLC0415  (redis-py takes time to load)
        from evenly.live.store.shared_counts import SharedCounts  # noqa: PLC0415

        self._balancer = balancer
        self._fleet = fleet
        self._shared: SharedCounts = SharedCounts(
            parse_store_url(url),
            fleet,
            environment=os.environ,
            changed=self._take_in,
            refreshed=self._catch_up,
            log=log,
        )
        store = with_password(parse_store_url(url), os.environ)
        self._presence: Presence = Presence(
            store, fleet, "pickers", own_id=self._shared.picker, name=name_here(admin_port), log=log
        )

    def share(self, pool: LivePool) -> None:
        """Tell the others how many sessions of ours the pool has now."""
        self._shared.set_own(pool.endpoint, pool.own)

    def elsewhere(self, endpoint: Address) -> int:
        """Return the number of sessions that the others have at an endpoint."""
        return self._shared.elsewhere(endpoint)

    def view(self) -> StoreView:
        """Return the store as the admin port shows it."""
        return StoreView(fleet=self._fleet, available=self._shared.available, pickers=self._shared.pickers)

    def parts(self) -> list[Part]:
        """Return the other pickers as the dashboard shows them, by name if they have announced one."""
        announced = {each.id: each for each in self._presence.others()}
        found = []
        for picker, heard in self._shared.heard().items():
            known = announced.get(picker)
            name, age = (picker, None) if known is None else (known.name, known.age)
            found.append(Part(kind="picker", name=name, reachable=True, age=age, heard=heard))
        return found

    async def wait_known(self) -> None:
        """Wait a moment until the sessions of the others are known."""
        await self._shared.wait_known(_WAIT_S)

    async def run(self) -> None:
        """Share until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._shared.run())
            group.create_task(self._presence.run())

    def _take_in(self, endpoint: Address, count: int) -> None:
        pool = self._balancer.pool_at(endpoint)
        if pool is not None:
            self._balancer.set_elsewhere(pool, count)

    def _catch_up(self) -> None:
        """Follow the load that the other pickers brought.

        Only our own picks teach the threshold. If most sessions come through others, it would stay behind.
        """
        self._balancer.catch_up(slack=1)
