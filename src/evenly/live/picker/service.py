"""The picker as a process: its ports, its clockwork, and what happens when pools or settings change."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import socket
import sys
import time
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any

from evenly.errors import InputError
from evenly.files import check_writable
from evenly.live.addresses import Address, resolve
from evenly.live.admin.app import admin_app, serve_admin
from evenly.live.admin.token import read_token
from evenly.live.admin.views import EnvoyView
from evenly.live.children import allow_files, on_signals
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
_AGAIN = 10.0  # and how soon one that could not be used is tried again
_HEARING = 5.0  # seconds in which all Envoys have told what is open
_BACKLOG = 4096
_MOST_CONNECTIONS = 4096
_LOOK = 0.5  # how often the settings file is looked at, and memory written


class Service:
    """A balancer and all that keeps it informed. `memory` is what an earlier picker left in the file `state`."""

    def __init__(
        self,
        settings: Settings,
        *,
        given: Mapping[str, Any],
        config: Path | None,
        state: Path | None,
        memory: Memory | None,
        log: Log,
    ) -> None:
        self.log = log
        self._settings = settings
        self._given = given
        self._config = config
        self._state: Path | None = None  # nothing is written before all pools are there
        self._remembered: Memory | None = None
        self._publishing = False
        self._complaint = ""
        self.balancer = Balancer(
            make_policy(settings, alpha=memory.alpha if memory else None),
            name=settings.policy,
            choose=random.Random().choice,
            clock=time.monotonic,
            slow_start=settings.slow_start,
            report=self._report,
            hearing=_HEARING if memory else 0.0,
        )
        self._discovery = Endpoints(lambda: self.balancer.pools, self.log)
        self.envoys = Envoys(self.balancer, self.log, time.monotonic)
        self.picker = Picker(self.balancer, self.envoys, self._discovery, Latency())
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        pools = memory.pools_now(settings.pool) if memory else [KnownPool(address=each) for each in settings.pool]
        for pool, endpoint in [(pool, _endpoint(pool)) for pool in pools]:
            self.balancer.add(pool.address, endpoint, slowly=False)
            if pool.draining:
                self.balancer.drain(pool.address)
            if pool.leaving:
                self.balancer.remove(pool.address)
        self._state = state

    def connection(self) -> Connection:
        """For a new peer."""
        connection = Connection(self.picker.route, welcome=len(self._connections) < _MOST_CONNECTIONS)
        self._connections.add(connection)
        return connection

    def clockwork(self) -> list[Coroutine[Any, Any, None]]:
        """What goes on all the time."""
        work = [self._regularly(_TICK, self._tick), self._regularly(_LOOK, self._save)]
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
            connection.abort()
        await self.envoys.close()
        self._save()

    def _report(self, event: str, /, **facts: object) -> None:
        self.log.event(event, **facts)
        if event.startswith("pool ") and not self._publishing:  # many pools often change together: say it once
            self._publishing = True
            asyncio.get_running_loop().call_soon(self._publish)

    def _publish(self) -> None:
        self._publishing = False
        self._discovery.push()
        self._save()

    async def _regularly(self, seconds: float, act: Callable[[], None]) -> None:
        """Whatever happens: a fault is told, and the next turn comes."""
        while True:
            await asyncio.sleep(seconds)
            try:
                act()
            except Exception as error:
                self.log.event("fault", where=act.__qualname__, error=repr(error))

    def _tick(self) -> None:
        self.balancer.tick()
        self.log.catch_up()

    def _save(self) -> None:
        if self._state is None:
            return
        alpha = self.balancer.alpha
        memory = Memory(
            settings=self._settings,
            pools=[
                KnownPool(
                    address=pool.address, endpoint=pool.endpoint, draining=pool.draining, leaving=pool.leaving
                )
                for pool in self.balancer.pools
            ],
            alpha=None if alpha is None else str(alpha),
        )
        if memory != self._remembered:
            try:
                remember(self._state, memory)
                self._remembered = memory
            except (OSError, InputError) as error:
                if str(error) != self._complaint:
                    self.log.event("state not written", reason=str(error))
                self._complaint = str(error)

    async def _watch(self, config: Path) -> None:
        """Heed changes of the settings file. One that could not be used is tried again: names may come."""
        seen, again = _fingerprint(config), inf
        while True:
            await asyncio.sleep(_LOOK)
            now = _fingerprint(config)
            if now != seen or time.monotonic() > again:
                seen = now
                again = inf if await self._reload(config) else time.monotonic() + _AGAIN

    async def _reload(self, config: Path) -> bool:
        """Whether all that the file says is so now."""
        try:
            new = read_settings(self._given, config)
            came, went = changes(self._settings.pool, new.pool)
            endpoints = {address: await _resolved(address) for address in came}
        except Exception as error:  # a bad file, in any way that one can be bad
            self.log.event("settings not used", reason=f"{type(error).__name__}: {error}")
            return False
        for address in went:  # first: a pool may come back under another name
            with suppress(InputError):  # somebody removed it by hand already
                self.balancer.remove(address)
        refused = {address for address in came if not self._added(address, endpoints[address])}
        others = {key for key in Settings.model_fields if getattr(new, key) != getattr(self._settings, key)}
        pools = tuple(address for address in new.pool if address not in refused)
        self._settings = self._settings.model_copy(update={"pool": pools})
        self.log.event(
            "settings read",
            added=[str(address) for address in came if address not in refused],
            removed=[*map(str, went)],
            after_restart=sorted(others - {"pool"}),
        )
        return not refused

    def _added(self, address: Address, endpoint: Address) -> bool:
        known = {pool.address for pool in self.balancer.pools if not pool.leaving}
        if address in known:  # somebody added it by hand already
            return True
        try:
            self.balancer.add(address, endpoint)
        except InputError as error:
            self.log.event("pool not added", pool=str(address), reason=str(error))
            return False
        return True


def _fingerprint(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _endpoint(pool: KnownPool) -> Address:
    """Where the pool is; where it was, if that is known and its name is not just now."""
    try:
        return resolve(pool.address)
    except InputError:
        if pool.endpoint is None:
            raise
        return pool.endpoint


async def _resolved(address: Address) -> Address:
    return await asyncio.get_running_loop().run_in_executor(None, resolve, address)


def listening_socket(address: Address) -> socket.socket:
    """A socket bound there, or one sentence that says why not."""
    address = resolve(address)
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server(address, family=family, backlog=_BACKLOG)
    except OSError as error:  # whose text repeats the address
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(f"Cannot listen on {address}: {reason.lower()}.") from None


def _settings(given: Mapping[str, Any], config: Path | None, memory: Memory | None, log: Log) -> Settings:
    """What was asked for; with a config file that went bad since the last start, what was in use then."""
    try:
        return read_settings(given, config)
    except InputError as error:
        if config is None or memory is None:
            raise
        log.event("settings not used", reason=str(error))
        return read_settings({**memory.settings.model_dump(mode="json", exclude_none=True), **given}, None)


async def serve(given: Mapping[str, Any], config: Path | None, state: Path | None) -> None:
    """Run a picker until it is told to stop."""
    stop = asyncio.Event()
    on_signals(stop.set)
    allow_files()
    log = Log(sys.stderr)
    if state is not None:
        check_writable(state)
    memory = None if state is None else recall(state)
    settings = _settings(given, config, memory, log)
    token = read_token(settings.admin, settings.admin_token_file, os.environ)
    with listening_socket(settings.listen) as grpc, listening_socket(settings.admin) as admin:
        service = Service(settings, given=given, config=config, state=state, memory=memory, log=log)
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
        server = await asyncio.get_running_loop().create_server(service.connection, sock=grpc, backlog=_BACKLOG)
        async with server, serve_admin(app, admin), _running(service.clockwork(), log):
            where = Address(settings.listen.host, grpc.getsockname()[1])
            about = f"{len(service.balancer.pools)} pools, policy {settings.policy}"
            print(f"evenly picker: listening on {where}, admin at http://{bound}, {about}", flush=True)
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
