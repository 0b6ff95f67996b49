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
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from evenly.errors import InputError
from evenly.files import check_writable
from evenly.live.addresses import Address, resolve
from evenly.live.admin.app import admin_app
from evenly.live.admin.auth import read_token
from evenly.live.admin.schema import EnvoyView
from evenly.live.admin.server import serve_admin
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.latency import Latency
from evenly.live.envoy.eds import Endpoints
from evenly.live.envoy.fleet import Envoys
from evenly.live.log import Log
from evenly.live.picker.alpha_updates import Advisor
from evenly.live.picker.ready import Ready
from evenly.live.picker.routes import Picker
from evenly.live.picker.settings_watch import Fingerprint, SettingsFile, fingerprint, resolved
from evenly.live.picker.state_file import KnownPool, Memory, recall, remember
from evenly.live.processes import raise_fd_limit
from evenly.live.settings import Settings, make_policy, read_settings
from evenly.live.signals import DRAIN_SIGNAL, on_signals
from evenly.live.wire.http2 import Connection

_TICK = 0.1
_HEARING = 5.0  # seconds in which all Envoys have told what is open
_BACKLOG = 4096
_MOST_CONNECTIONS = 4096
_WRITE = 0.5  # seconds between two looks at whether memory has to be written


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
        files: int,
        seen: Fingerprint | None,
    ) -> None:
        self.log = log
        self._most_connections = min(_MOST_CONNECTIONS, files // 2)
        self._settings = settings
        self._given = given
        self._config = config
        self._seen = seen
        self._state: Path | None = None  # nothing is written before all pools are there
        self._remembered: Memory | None = None
        self.parting = False
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
        connection = Connection(self.picker.route, welcome=len(self._connections) < self._most_connections)
        self._connections.add(connection)
        return connection

    def clockwork(self) -> list[Coroutine[Any, Any, None]]:
        """What goes on all the time."""
        work = [self._regularly(_TICK, self._tick), self._regularly(_WRITE, self._save)]
        if self._config is not None:
            file = SettingsFile(self._config, self._seen, self._given, self.balancer, self.log)
            work.append(file.follow(self._settings, self._use))
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

    @property
    def ready(self) -> bool:
        """Whether new sessions are welcome."""
        return not self.parting and any(pool.available for pool in self.balancer.pools)

    async def close(self) -> None:
        """Part from the Envoys, whose sessions go on without us."""
        self.picker.stopping = True
        for connection in list(self._connections):
            connection.abort()
        await self.envoys.close()
        self._save()

    def _use(self, settings: Settings) -> None:
        self._settings = settings

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


def _endpoint(pool: KnownPool) -> Address:
    """Where the pool is; where it was, if that is known and its name is not just now."""
    try:
        return resolve(pool.address)
    except InputError:
        if pool.endpoint is None:
            raise
        return pool.endpoint


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


def _words(context: dict[str, Any]) -> str:
    """What the event loop complains of."""
    return f"{context.get('message', '')}: {context.get('exception')!r}"


async def serve(
    given: Mapping[str, Any], config: Path | None, state: Path | None, *, ready_json: bool = False
) -> None:
    """Run a picker until it is told to stop. The ready line is JSON if `ready_json`, else a sentence."""
    stop = asyncio.Event()
    on_signals(stop.set)
    files = raise_fd_limit()
    log = Log(sys.stderr)
    asyncio.get_running_loop().set_exception_handler(lambda _, context: log.event("fault", error=_words(context)))
    if state is not None:
        check_writable(state)
    memory = None if state is None else recall(state)
    seen = None if config is None else fingerprint(config)
    settings = _settings(given, config, memory, log)
    token = read_token(settings.admin, settings.admin_token_file, os.environ)
    with listening_socket(settings.listen) as grpc, listening_socket(settings.admin) as admin:
        service = Service(
            settings, given=given, config=config, state=state, memory=memory, log=log, files=files, seen=seen
        )
        asyncio.get_running_loop().add_signal_handler(DRAIN_SIGNAL, setattr, service, "parting", True)
        bound = Address(settings.admin.host, admin.getsockname()[1])
        app = admin_app(
            balancer=service.balancer,
            latency=service.picker.latency,
            envoys=service.envoy_views,
            token=token,
            bound=bound,
            resolve=resolved,
            ready=lambda: service.ready,
        )
        server = await asyncio.get_running_loop().create_server(service.connection, sock=grpc, backlog=_BACKLOG)
        async with server, serve_admin(app, admin), _running(service.clockwork(), log):
            ready = Ready(
                listen=Address(settings.listen.host, grpc.getsockname()[1]),
                admin=bound,
                pools=len(service.balancer.pools),
                policy=settings.policy,
            )
            print(ready.to_json() if ready_json else ready.sentence(), flush=True)
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
