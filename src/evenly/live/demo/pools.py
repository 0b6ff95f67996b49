"""The server pools of the demo: WebSocket servers in one process that only hold sessions.

`python -m evenly.live.demo.pools --count 20` prints one JSON line with the ports when it is ready. It ends when
its standard input closes, so that it never outlives its parent.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from evenly.live.addresses import Address
from evenly.live.processes import raise_fd_limit

MAX_MESSAGE = 2**16
_BACKLOG = 4096
_HOST = "127.0.0.1"
_TIMEOUT_S = 20.0  # for the process to start or to end, on a busy machine


class PoolSession(asyncio.Protocol):
    """One connection to a pool: a session, or a request for the session counts.

    A session costs this object and no task. The server of `websockets` has a task and timers for each session,
    which costs too much for thousands of sessions next to Envoy; only its protocol is used here.
    """

    def __init__(self, address: str, sessions: dict[str, int]) -> None:
        self._address = address
        self._sessions = sessions
        self._websocket = ServerProtocol(max_size=MAX_MESSAGE)
        self._counted = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer a request. Later messages are read and dropped."""
        self._websocket.receive_data(data)
        for event in self._websocket.events_received():
            if isinstance(event, Request):
                self._answer(event)
        self._flush()

    def eof_received(self) -> None:
        """Handle the end of the client's data."""
        self._websocket.receive_eof()
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the session out, however it ended."""
        if self._counted:
            self._end()

    def _answer(self, request: Request) -> None:
        response = self._counts() if request.path == "/sessions" else self._websocket.accept(request)
        self._websocket.send_response(response)
        if response.status_code == 101:
            self._counted = True
            self._begin(request)
            self._websocket.send_text(self._address.encode())

    def _begin(self, request: Request) -> None:
        self._sessions[self._address] += 1

    def _end(self) -> None:
        self._sessions[self._address] -= 1

    def _counts(self) -> Response:
        response = self._websocket.reject(200, json.dumps(self._sessions))
        del response.headers["Content-Type"]
        response.headers["Content-Type"] = "application/json"
        return response

    def _flush(self) -> None:
        assert self._transport is not None
        for data in self._websocket.data_to_send():
            if data:
                self._transport.write(data)
            else:
                self._transport.close()  # after all data is written


async def serve(count: int) -> None:
    """Serve `count` pools until standard input closes or SIGTERM arrives."""
    raise_fd_limit()
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, over.set)
    sessions: dict[str, int] = {}
    servers = []
    for _ in range(count):
        listener = socket.create_server((_HOST, 0), backlog=_BACKLOG)
        address = str(Address(_HOST, listener.getsockname()[1]))
        sessions[address] = 0
        servers.append(await loop.create_server(partial(PoolSession, address, sessions), sock=listener))
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    print(json.dumps({"ports": ports}), flush=True)
    threading.Thread(target=_wait_for_end_of_input, args=(loop, over), daemon=True).start()
    await over.wait()


def _wait_for_end_of_input(loop: asyncio.AbstractEventLoop, over: asyncio.Event) -> None:
    """Block in a thread: standard input may be a file that an event loop cannot watch."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    loop.call_soon_threadsafe(over.set)


@asynccontextmanager
async def embedded_pools(count: int) -> AsyncIterator[tuple[Address, ...]]:
    """Start `count` pools in a process that ends with the block; yield their addresses."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "evenly.live.demo.pools", "--count", str(count)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C reaches only the parent, which ends this process
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), _TIMEOUT_S)
        if not line:
            raise RuntimeError(f"The pools' process ended with exit code {await process.wait()}.")
        yield tuple(Address(_HOST, port) for port in json.loads(line)["ports"])
    finally:
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _TIMEOUT_S)
        except TimeoutError:
            process.kill()
            await process.wait()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the pools."""
    parser = argparse.ArgumentParser(description="WebSocket servers that only hold sessions, in one process.")
    parser.add_argument("--count", type=int, default=20, help="number of pools (default: 20)")
    asyncio.run(serve(parser.parse_args(arguments).count))


if __name__ == "__main__":
    main()
