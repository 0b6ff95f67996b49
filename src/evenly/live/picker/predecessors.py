"""The open sessions of gateways that were replaced by this one.

They stay in the Envoys of those gateways until they end, and load the pools meanwhile. So the picker reads how
many each pool has, and its policy counts them as sessions of another balancer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from evenly.live.addresses import Address
from evenly.live.balancer.balancer import Balancer
from evenly.live.envoy.admin_address import AdminSocket
from evenly.live.envoy.admin_client import BadResponseError, fetch_hosts
from evenly.live.gateway_folder import GatewayFolder
from evenly.live.log import Log

_POLL_S = 0.25
_TIMEOUT_S = 1.0
_GONE_AFTER = 8  # failed polls in a row: an Envoy may be slow for a moment
_WAIT_S = 2.0  # for the counts, before the first pick


class Predecessors:
    """The Envoys of the gateways in `folders`. The balancer counts their open sessions as `elsewhere`."""

    def __init__(self, folders: Sequence[Path], balancer: Balancer, log: Log) -> None:
        self._admins = [AdminSocket(GatewayFolder(folder).admin_socket) for folder in folders]
        self._balancer = balancer
        self._log = log
        self._counts: dict[AdminSocket, Counter[Address]] = {}
        self._failures: Counter[AdminSocket] = Counter()
        self._known = asyncio.Event()

    def elsewhere(self, endpoint: Address) -> int:
        """Return the number of sessions that they have at an endpoint."""
        return sum(counts[endpoint] for counts in self._counts.values())

    async def wait_known(self, seconds: float = _WAIT_S) -> None:
        """Wait a moment until their sessions are known, so that the first picks balance them."""
        try:
            async with asyncio.timeout(seconds):
                await self._known.wait()
        except TimeoutError:
            self._log.event("sessions of the gateway before not known")

    async def run(self) -> None:
        """Follow their sessions until all of them have ended."""
        while self._admins:
            for admin in list(self._admins):
                await self._poll(admin)
            for pool in self._balancer.pools:
                self._balancer.set_elsewhere(pool, self.elsewhere(pool.endpoint))
            answered = all(admin in self._counts for admin in self._admins)  # the others have gone
            if answered and not self._known.is_set():  # the threshold was learned with these sessions
                self._balancer.catch_up()
                self._known.set()
            await asyncio.sleep(_POLL_S)

    async def _poll(self, admin: AdminSocket) -> None:
        try:
            hosts = await fetch_hosts(admin, _TIMEOUT_S)
        except (OSError, BadResponseError):
            self._failures[admin] += 1
            if self._failures[admin] >= _GONE_AFTER or not admin.path.parent.is_dir():
                self._admins.remove(admin)
                self._counts.pop(admin, None)
                self._log.event("gateway before ended", admin=str(admin))
            return
        self._failures[admin] = 0
        self._counts[admin] = Counter({endpoint: host.active for endpoint, host in hosts.items()})
