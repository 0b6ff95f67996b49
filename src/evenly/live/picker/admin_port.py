"""The admin port of a picker, which passes to the picker of the gateway that takes over."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from evenly.live.addresses import Address
from evenly.live.gateway_folder import GatewayFolder
from evenly.live.listening import first_of, listening_socket

_POLL_S = 0.1
_ANY = Address("127.0.0.1", 0)


def admin_socket(choices: Sequence[Address], gateway: GatewayFolder | None) -> socket.socket:
    """Return the socket of the admin port. Two gateways may share the port while one takes over from the other.

    A picker that is restarted after its gateway was replaced gets another port: the usual one is taken.
    """
    if gateway is not None and gateway.handed_over:
        choices = [_ANY]
    return first_of(choices, partial(listening_socket, shared=gateway is not None))


@asynccontextmanager
async def until_handed_over(
    serving: AbstractAsyncContextManager[None], gateway: GatewayFolder | None
) -> AsyncIterator[None]:
    """Serve the admin port while the block runs, or until another gateway has taken over.

    `serving` serves between its enter and its exit, which closes the socket.
    """
    left = asyncio.Event()

    async def served() -> None:
        async with serving:
            while not left.is_set() and not (gateway is not None and gateway.handed_over):
                try:
                    async with asyncio.timeout(None if gateway is None else _POLL_S):
                        await left.wait()
                except TimeoutError:
                    continue
        if gateway is not None and gateway.handed_over:
            gateway.set_admin_left()

    task = asyncio.ensure_future(served())
    try:
        yield
    finally:
        left.set()
        await task
