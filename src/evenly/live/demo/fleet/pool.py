"""The pools of the fleet: WebSocket servers that only hold sessions, each with an agent.

`python -m evenly.live.demo.fleet.pool --pool NAME=HOST:PORT --dispatcher URL` prints a line when it listens. It
needs little to start, since the demo runs 20 of them.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from urllib.parse import parse_qs, urlsplit

from websockets.http11 import Request

from evenly.live.addresses import Address, parse_address
from evenly.live.agents import Agent
from evenly.live.agents.agent import Session as AgentSession
from evenly.live.demo.pools import PoolSession
from evenly.live.session_id import QUERY_PARAMETER

_BACKLOG = 1024

Moved = Callable[[str, int], None]
"""Takes the name of a pool, and 1 if a session has begun there, -1 if one has ended."""


class CountedSession(PoolSession):
    """A connection to a pool that its agent counts."""

    def __init__(self, agent: Agent, address: Address, sessions: dict[str, int], moved: Moved | None) -> None:
        super().__init__(str(address), sessions)
        self._agent = agent
        self._moved = moved
        self._session: AgentSession | None = None

    def _begin(self, request: Request) -> None:
        super()._begin(request)
        ids = parse_qs(urlsplit(request.path).query).get(QUERY_PARAMETER)
        self._session = self._agent.begin(ids[0] if ids else None)
        if self._moved is not None:
            self._moved(self._agent.pool, 1)

    def _end(self) -> None:
        super()._end()
        if self._session is not None:
            self._session.end()
        if self._moved is not None:
            self._moved(self._agent.pool, -1)


@asynccontextmanager
async def served_pool(
    name: str, address: Address, dispatchers: Sequence[str], moved: Moved | None = None
) -> AsyncIterator[Address]:
    """Serve a pool while the block runs. Port 0 takes a free one; yield the address."""
    listener = socket.create_server(address, backlog=_BACKLOG)
    address = Address(address.host, listener.getsockname()[1])
    sessions = {str(address): 0}
    async with Agent(pool=name, address=f"ws://{address}", dispatchers=dispatchers) as agent:
        connected = partial(CountedSession, agent, address, sessions, moved)
        server = await asyncio.get_running_loop().create_server(connected, sock=listener)
        try:
            yield address
        finally:
            server.close()


async def serve(pools: Sequence[str], dispatchers: Sequence[str]) -> None:
    """Serve pools, given as NAME=HOST:PORT, until SIGTERM arrives."""
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    async with AsyncExitStack() as stack:
        for pool in pools:
            name, _, address = pool.partition("=")
            await stack.enter_async_context(served_pool(name, parse_address(address), dispatchers))
        print("ready", flush=True)
        await over.wait()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the pools."""
    parser = argparse.ArgumentParser(description="WebSocket servers that only hold sessions, with agents.")
    parser.add_argument("--pool", action="append", required=True, metavar="NAME=HOST:PORT")
    parser.add_argument("--dispatcher", action="append", required=True, metavar="URL")
    options = parser.parse_args(arguments)
    asyncio.run(serve(options.pool, options.dispatcher))


if __name__ == "__main__":
    main()
