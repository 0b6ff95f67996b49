"""The picker as a process: its ports, its clockwork, and what happens when pools or settings change."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import socket
import sys
import time
import weakref
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from evenly.errors import InputError
from evenly.live.addresses import Address, resolve
from evenly.live.admin.app import admin_app, serve_admin
from evenly.live.admin.token import read_token
from evenly.live.admin.views import EnvoyView
from evenly.live.log import Log
from evenly.live.picker.advice import Advisor
from evenly.live.picker.balancer import Balancer
from evenly.live.picker.endpoints import Endpoints
from evenly.live.picker.envoys import Envoys
from evenly.live.picker.latency import Latency
from evenly.live.picker.memory import KnownPool, Memory, changes, recall, remember
from evenly.live.picker.services import Picker
from evenly.live.settings import Settings, make_policy, read_settings
from evenly.live.wire.http2 import Connection

_TICK = 0.1
_LOOK = 0.5  # how often the settings file is looked at, and memory written


class Service:
    """A balancer and all that keeps it informed."""

    def __init__(
        self, settings: Settings, given: Mapping[str, Any], config: Path | None, state: Path | None
    ) -> None:
        self.log = Log(sys.stderr)
        self._settings = settings
        self._given = given
        self._config = config
        self._state = state
        self._remembered: Memory | None = None
        memory = None if state is None else recall(state)
        policy = make_policy(settings, alpha=memory.alpha if memory else None)
        self.balancer = Balancer(
            policy,
            name=settings.policy,
            choose=random.Random().choice,
            clock=time.monotonic,
            slow_start=settings.slow_start,
            report=self._report,
        )
        self._discovery = Endpoints(lambda: self.balancer.pools, self.log)
        for pool in (
            memory.pools_now(settings.pool) if memory else [KnownPool(address=each) for each in settings.pool]
        ):
            self.balancer.add(pool.address, resolve(pool.address), slowly=False)
            if pool.draining:
                self.balancer.drain(pool.address)
        self.envoys = Envoys(self.balancer, self.log, time.monotonic)
        self.picker = Picker(self.balancer, self.envoys, self._discovery, Latency())
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()

    def connection(self) -> Connection:
        """For a new peer."""
        connection = Connection(self.picker.route)
        self._connections.add(connection)
        return connection

    def clockwork(self) -> list[Coroutine[Any, Any, None]]:
        """What goes on all the time."""
        work = [self._tick(), self._write_memory()]
        if self._config is not None:
            work.append(self._watch(self._config))
        if self._settings.policy == "threshold" and self._settings.alpha is None:
            work.append(Advisor(self.balancer, self._settings.load_max, self.log).run())
        return work

    def envoy_views(self) -> list[EnvoyView]:
        """For the admin port."""
        return [
            EnvoyView(
                admin=str(envoy.admin),
                reachable=envoy.hosts is not None,
                sessions=envoy.sessions,
                unknown_pools=[str(pool.address) for pool in self.envoys.unknown_pools(envoy)],
            )
            for envoy in self.envoys.all
        ]

    async def close(self) -> None:
        """Part from the Envoys, whose sessions go on without us."""
        self.picker.stopping = True
        for connection in list(self._connections):
            connection.close()
        await self.envoys.close()
        self._save()

    def _report(self, event: str, /, **facts: object) -> None:
        self.log.event(event, **facts)
        if event.startswith("pool "):
            self._discovery.push()
            self._save()

    async def _tick(self) -> None:
        while True:
            self.balancer.tick()
            self.log.catch_up()
            await asyncio.sleep(_TICK)

    async def _write_memory(self) -> None:
        while True:
            await asyncio.sleep(_LOOK)
            self._save()

    def _save(self) -> None:
        if self._state is None:
            return
        alpha = self.balancer.alpha
        memory = Memory(
            configured=list(self._settings.pool),
            pools=[
                KnownPool(address=pool.address, draining=pool.draining)
                for pool in self.balancer.pools
                if not pool.leaving
            ],
            alpha=None if alpha is None else str(alpha),
        )
        if memory != self._remembered:
            try:
                remember(self._state, memory)
                self._remembered = memory
            except (OSError, InputError) as error:
                self.log.event("state not written", reason=str(error))

    async def _watch(self, config: Path) -> None:
        """Heed changes of the settings file."""
        seen = _fingerprint(config)
        while True:
            await asyncio.sleep(_LOOK)
            now = _fingerprint(config)
            if now != seen:
                seen = now
                await self._reload(config)

    async def _reload(self, config: Path) -> None:
        try:
            new = read_settings(self._given, config)
            came, went = changes(self._settings.pool, new.pool)
            endpoints = [await _resolved(address) for address in came]
        except InputError as error:
            self.log.event("settings not used", reason=str(error))
            return
        for address, endpoint in zip(came, endpoints, strict=True):
            with suppress(InputError):  # somebody added it by hand already
                self.balancer.add(address, endpoint)
        for address in went:
            with suppress(InputError):  # somebody removed it by hand already
                self.balancer.remove(address)
        others = {key for key in Settings.model_fields if getattr(new, key) != getattr(self._settings, key)} - {
            "pool"
        }
        self._settings = self._settings.model_copy(update={"pool": new.pool})
        self.log.event(
            "settings read", added=[*map(str, came)], removed=[*map(str, went)], after_restart=sorted(others)
        )


def _fingerprint(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


async def _resolved(address: Address) -> Address:
    return await asyncio.get_running_loop().run_in_executor(None, resolve, address)


def listening_socket(address: Address) -> socket.socket:
    """A socket bound there, or one sentence that says why not."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=4096)
    except OSError as error:  # whose text repeats the address
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(f"Cannot listen on {address}: {reason.lower()}.") from None


async def serve(settings: Settings, given: Mapping[str, Any], config: Path | None, state: Path | None) -> None:
    """Run a picker until it is told to stop."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    token = read_token(settings.admin, settings.admin_token_file, os.environ)
    with listening_socket(settings.listen) as grpc, listening_socket(settings.admin) as admin:
        service = Service(settings, given, config, state)
        bound = Address(settings.admin.host, admin.getsockname()[1])
        app = admin_app(
            balancer=service.balancer,
            latency=service.picker.latency,
            envoys=service.envoy_views,
            token=token,
            bound=bound,
            resolve=_resolved,
            ready=lambda: any(pool.available for pool in service.balancer.pools),
        )
        loop = asyncio.get_running_loop()
        server = await loop.create_server(service.connection, sock=grpc)
        async with server, serve_admin(app, admin), _running(service.clockwork(), service.log):
            where = Address(settings.listen.host, grpc.getsockname()[1])
            pools = len(service.balancer.pools)
            print(
                f"evenly picker: listening on {where}, admin at http://{bound}, {pools} pools, "
                f"policy {settings.policy}",
                flush=True,
            )
            gc.freeze()  # what is there now stays: no need to look at it again and again
            await stop.wait()
            await service.close()


@asynccontextmanager
async def _running(work: list[Coroutine[Any, Any, None]], log: Log) -> AsyncIterator[None]:
    """Beside the picks, which go on even if some of this fails."""

    async def watched(each: Coroutine[Any, Any, None]) -> None:
        try:
            await each
        except Exception as error:
            log.event("fault", where=getattr(each, "__qualname__", ""), error=repr(error))

    tasks = [asyncio.get_running_loop().create_task(watched(each)) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
