"""The dispatcher process: its ports, its start and stop, and what runs beside the picks."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvloop

from evenly.live.addresses import Address
from evenly.live.admin.server import serve_admin, serving
from evenly.live.alpha_updates import Advisor
from evenly.live.background import Work, log_faults, repeat, running
from evenly.live.dashboard.feed import Feed
from evenly.live.dispatcher.access import Access
from evenly.live.dispatcher.admin import dispatcher_admin
from evenly.live.dispatcher.agents import Agents
from evenly.live.dispatcher.app import Api
from evenly.live.dispatcher.counters import Counters
from evenly.live.dispatcher.fleet import Fleet
from evenly.live.dispatcher.fleet_source import FleetSource
from evenly.live.dispatcher.hub import Hub
from evenly.live.dispatcher.pages import Pages
from evenly.live.dispatcher.protocol import MAX_CONNECTIONS, ApiServer
from evenly.live.dispatcher.sessions import Sessions
from evenly.live.dispatcher.settings import (
    DispatcherSettings,
    Tokens,
    read_dispatcher_settings,
    read_tokens,
)
from evenly.live.dispatcher.stores import EMBEDDED, OpenStore, open_store
from evenly.live.dispatcher.watch import Watch
from evenly.live.listening import listening_socket
from evenly.live.log import Log
from evenly.live.notify import READY, notify
from evenly.live.picker.ready import Ready
from evenly.live.processes import raise_fd_limit
from evenly.live.recorder import Recorder, recording
from evenly.live.signals import on_signals
from evenly.live.tls import POLL_S, followed_context, server_context

_TICKS_PER_HEARTBEAT = 8
_MAX_TICK_S = 0.25
_WATCH_S = 0.5
_SWEEP_S = 1.0
_REPORT_S = 1.0


class DispatcherServer:
    """The parts of a dispatcher, wired together. `bound` is the address of its API."""

    def __init__(
        self,
        settings: DispatcherSettings,
        tokens: Tokens,
        *,
        bound: Address,
        log: Log,
        max_connections: int,
        hub: Hub,
        counters: Counters,
        opened: OpenStore,
        recorder: Recorder | None = None,
    ) -> None:
        self._settings = settings
        self._recorder = recorder
        self._log = log
        tls = None if settings.tls is None else server_context(settings.tls)
        self._store = store = opened.store
        self.fleet = Fleet(name=settings.fleet, open_store=opened, hub=hub, counters=counters)
        shared = opened.kind != EMBEDDED
        self._agents = Agents(
            store, hub, counters, log, heartbeat=settings.heartbeat, shared=shared, recorder=recorder
        )
        self.watch = Watch(self.fleet, log)
        self.feed = Feed(FleetSource(self.fleet, self.watch), log)
        api = Api(
            sessions=Sessions(store, counters),
            agents=self._agents,
            pages=Pages(bound, with_token=tokens.client is not None, tls=tls is not None),
            clients=Access("client", tokens.client, anyone=settings.open_picks),
            agent_access=Access("agent", tokens.agent),
            counters=counters,
            why_not_ready=self.watch.why_not_ready,
            store_available=self.fleet.store_available,
            log=log,
        )
        self.api = ApiServer(api, tls, max_connections=max_connections)
        self.tls = tls

    def background(self) -> list[Work]:
        """Return the work to run beside the picks."""
        settings, log = self._settings, self._log
        tick = min(settings.heartbeat / _TICKS_PER_HEARTBEAT, _MAX_TICK_S)
        work = [
            repeat(self._store.tick, tick, log),
            repeat(self.watch.look, _WATCH_S, log),
            repeat(self._sweep, _SWEEP_S, log),
            self.feed.run(),
        ]
        presence = self.fleet.open_store.presence
        if presence is not None:
            work.append(presence.run())
        if self._recorder is not None:
            work.append(repeat(self._recorder.report, _REPORT_S, log))
        if self.tls is not None and settings.tls is not None:
            followed = followed_context("dispatcher", self.tls, settings.tls, log)
            work.append(repeat(followed.look, POLL_S, log))
        if settings.alpha is None:
            work.append(Advisor(lambda: self.watch.serving, self._use_alpha, settings.load_max, log).run())
        return work

    def _use_alpha(self, alpha: str, reason: str) -> None:
        self._store.use_alpha(alpha)
        self.watch.own_alpha = float(alpha), reason

    def _sweep(self) -> None:
        self.api.close_overdue()
        self.fleet.hub.close_silent(self._settings.silence)


class _UvicornLog(logging.Handler):
    """Writes what uvicorn complains about as faults, in the form of our log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.ERROR)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        error = record.exc_info[1] if record.exc_info else None
        self._log.event("fault", where="uvicorn", error=f"{record.getMessage().strip()} {error!r}")


def _take_uvicorn_log(log: Log) -> None:
    logger = logging.getLogger("uvicorn.error")
    logger.propagate = False
    logger.handlers = [_UvicornLog(log)]


async def serve(given: Mapping[str, Any], config: Path | None, *, ready_json: bool = False) -> None:
    """Run a dispatcher until a signal stops it. The ready line is JSON if `ready_json`, else a sentence."""
    files = raise_fd_limit()
    log = Log(sys.stderr)
    log_faults(log)
    settings = read_dispatcher_settings(given, config)
    tokens = read_tokens(settings, os.environ)
    stop = asyncio.Event()
    on_signals(stop.set)
    with (
        listening_socket(settings.listen) as listen,
        listening_socket(settings.admin) as admin,
        recording(settings.record, log) as recorder,
    ):
        bound = Address(settings.listen.host, listen.getsockname()[1])
        admin_bound = Address(settings.admin.host, admin.getsockname()[1])
        counters = Counters()
        hub = Hub()
        opened = await open_store(settings, log, admin_port=admin_bound.port)
        try:
            server = DispatcherServer(
                settings,
                tokens,
                bound=bound,
                log=log,
                max_connections=min(MAX_CONNECTIONS, files // 2),
                hub=hub,
                counters=counters,
                opened=opened,
                recorder=recorder,
            )
            _take_uvicorn_log(log)
            admin_app = dispatcher_admin(
                server.fleet, server.watch, token=tokens.admin, bound=admin_bound, log=log, feed=server.feed
            )
            admin_tls = None if settings.admin.loopback else server.tls
            async with (
                serving(server.api, listen),
                serve_admin(admin_app, admin, admin_tls),
                running(server.background(), log),
            ):
                ready = Ready(listen=bound, admin=admin_bound, pools=0, policy="threshold")
                scheme, admin_scheme = (f"http{'s' if tls else ''}://" for tls in (server.tls, admin_tls))
                sentence = f"evenly dispatcher: listening on {scheme}{bound}, admin at {admin_scheme}{admin_bound}"
                print(ready.to_json() if ready_json else sentence, flush=True)
                notify(READY)
                gc.freeze()  # long-lived objects need no further GC scans
                await stop.wait()
                server.feed.close()
                await server.watch.close()
        finally:
            await opened.close()


def run(given: Mapping[str, Any], config: Path | None, *, ready_json: bool = False) -> None:
    """Run a dispatcher in an event loop of its own."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(given, config, ready_json=ready_json))
