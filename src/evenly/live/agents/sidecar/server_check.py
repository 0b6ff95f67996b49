"""Whether the server next to the sidecar is there: a dead one has no sessions, and would attract all clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from evenly.live.addresses import Address

INTERVAL_S = 1.0
_TIMEOUT_S = 1.0


async def watch_server(address: Address, changed: Callable[[bool], None]) -> None:
    """Call `changed` with True when something accepts connections at the address, with False when nothing does.

    It is called for the first time after the first check.
    """
    known: bool | None = None
    while True:
        there = await _accepts(address)
        if there is not known:
            known = there
            changed(there)
        await asyncio.sleep(INTERVAL_S)


async def _accepts(address: Address) -> bool:
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            _, writer = await asyncio.open_connection(address.host, address.port)
    except OSError:  # refused, unreachable, or timed out
        return False
    writer.transport.abort()
    return True
