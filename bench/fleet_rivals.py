"""What a dispatcher is compared with: a server with a constant answer, and a plain client of the store's function.

`python -m bench.fleet_rivals PORT` runs the server.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

import uvicorn
import uvloop
from redis.asyncio import Redis

from bench.processes import Process, free_addresses, listens
from evenly.core.protocol import PoolPeer
from evenly.live.addresses import Address
from evenly.live.dispatcher.models import SESSION_EXAMPLE, SessionView
from evenly.live.store import functions
from evenly.live.store.base import FleetSettings
from evenly.live.store.valkey import ValkeyStore
from evenly.live.store_url import parse_store_url

AT_ONCE = 64  # calls in one pipeline, the same number as there are clients
_FLEET = "naive"
_SETTINGS = FleetSettings(alpha="0.65", lease=0.1, silence=3600, memory=0.1, heartbeat=2.0)

Call = Callable[["Redis", list[list[object]]], Awaitable[object]]


def constant_server() -> tuple[Process, Address]:
    """Start a bare ASGI application on uvicorn, as a dispatcher has it, that answers a constant."""
    [address] = free_addresses(1)
    command = [sys.executable, "-m", "bench.fleet_rivals", str(address.port)]
    return Process(command, lambda: listens(address)), address


def serve_constant(port: int) -> None:
    """Answer every request with the same place."""
    body = SessionView.model_validate(SESSION_EXAMPLE).model_dump_json().encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]

    async def app(scope: object, receive: object, send: Callable[[object], Awaitable[None]]) -> None:
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    uvicorn.run(
        app,
        port=port,
        http="httptools",
        loop="uvloop",
        lifespan="off",
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
    )


async def _open_fleet(store: Address, pools: int) -> None:
    """Make a fleet whose pools never fall silent. Places that are not taken are free again after 0.1 s."""
    opened = ValkeyStore(_SETTINGS, parse_store_url(f"redis://{store}"), fleet=_FLEET)
    await opened.open()
    for number in range(pools):
        await opened.register(f"pool-{number}", incarnation=1, address="ws://127.0.0.1:1", capacity=None)
        await opened.receive(PoolPeer(f"pool-{number}", incarnation=1).heartbeat())
    await opened.close()


async def _one_by_one(client: Redis, calls: list[list[object]]) -> None:
    for call in calls:
        await client.execute_command("FCALL", *call)  # type: ignore[no-untyped-call]


async def _pipelined(client: Redis, calls: list[list[object]]) -> None:
    async with client.pipeline(transaction=False) as pipeline:
        for call in calls:
            pipeline.execute_command("FCALL", *call)
        await pipeline.execute()


async def _picks(store: Address, pools: int, seconds: float, send: Call) -> tuple[int, float]:
    await _open_fleet(store, pools)
    keys = functions.keys_of(_FLEET)
    fixed = [f"{functions.LIBRARY}_pick", len(keys), *keys, *functions.common_arguments(_SETTINGS)]
    client = Redis(host=store.host, port=store.port)
    picks, end, began = 0, time.perf_counter() + seconds, time.thread_time()
    while time.perf_counter() < end:
        seeds = range(picks, picks + AT_ONCE)
        await send(client, [[*fixed, *functions.pick_arguments(1, frozenset(), None, seed)] for seed in seeds])
        picks += AT_ONCE
    used = time.thread_time() - began
    await client.aclose()
    return picks, used


def naive_picks(store: Address, pools: int, seconds: float, *, pipelined: bool) -> tuple[int, float]:
    """Return the picks of a plain client in `seconds`, and the processor time that it used.

    Sessions are not counted. It runs in the calling thread, in an event loop of its own.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_picks(store, pools, seconds, _pipelined if pipelined else _one_by_one))


if __name__ == "__main__":
    serve_constant(int(sys.argv[1]))
