"""The picker process: its ports, its start and stop, and its reactions to changes of pools and settings."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import ssl
import sys
import time
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evenly.errors import InputError
from evenly.files import Fingerprint, check_writable, fingerprint
from evenly.live.addresses import Address, resolve
from evenly.live.admin.app import admin_app
from evenly.live.admin.balancer_source import BalancerSource
from evenly.live.admin.schema import EnvoyView, RefusedView, StoreView
from evenly.live.admin.server import serve_admin
from evenly.live.admin_token import read_token
from evenly.live.alpha_updates import Advisor
from evenly.live.background import Work, log_faults, repeat, running
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.events import BalancerEvent, PoolAdded, PoolEvent, PoolGone
from evenly.live.balancer.latency import Latency
from evenly.live.balancer.pool import LivePool
from evenly.live.dashboard.feed import Feed
from evenly.live.dashboard.source import Part
from evenly.live.envoy.admin_address import AdminSocket
from evenly.live.envoy.eds import Endpoints
from evenly.live.envoy.fleet import EnvoyFleet
from evenly.live.envoy.pick_stream import PickService
from evenly.live.envoy.sticky import Sticky
from evenly.live.gateway_folder import GatewayFolder
from evenly.live.listening import BACKLOG, listening_socket
from evenly.live.log import Log
from evenly.live.notify import READY, notify
from evenly.live.picker.admin_port import admin_socket, until_handed_over
from evenly.live.picker.background import StateSaver
from evenly.live.picker.discovered import discovery_parts, discovery_views, known_answers, make_discovery
from evenly.live.picker.event_log import EventLog
from evenly.live.picker.greetings import Greetings
from evenly.live.picker.predecessors import Predecessors
from evenly.live.picker.ready import Ready
from evenly.live.picker.routes import Router
from evenly.live.picker.settings_watch import SettingsFile, resolved
from evenly.live.picker.sharing import Sharing
from evenly.live.picker.state_file import KnownPool, PickerState, load
from evenly.live.processes import raise_fd_limit
from evenly.live.recorder import Recorder, recording
from evenly.live.settings import Settings, follows_weights, learns, new_policy, read_settings
from evenly.live.signals import on_signals
from evenly.live.signing import new_key, read_key
from evenly.live.tls import POLL_S, KeyPair, followed_context, server_context
from evenly.live.wire.http2 import Connection

_TICK_S = 0.1
_SAVE_S = 0.5
_REPORT_S = 1.0
_RESTART_GRACE_S = 5.0  # all Envoys have reported their open sessions by then
_FIRST_ANSWER_S = 3.0  # of DNS: after that, the picker starts without pools
_MAX_CONNECTIONS = 4096


class PickerServer:
    """A balancer and everything around it.

    `restored` is the state that an earlier picker left, and the file `state` is for the next one. `given` are the
    options that override the settings file `config`, which had the fingerprint `seen` when it was read. `files` is
    the limit on open files. `gateway` is the folder of the gateway that runs this picker, None if there is none.
    `recorder` gets the sessions that end. Other pickers of the same store show this one with its `admin_port`.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        given: Mapping[str, Any],
        config: Path | None,
        state: Path | None,
        restored: PickerState | None,
        log: Log,
        files: int,
        seen: Fingerprint | None,
        gateway: GatewayFolder | None = None,
        recorder: Recorder | None = None,
        admin_port: int = 0,
    ) -> None:
        self.log = log
        self._recorder = recorder
        self._gateway = gateway
        self._event_log = EventLog(log)
        self._adopt_events()  # before our own, which are later
        self.latency = Latency()
        self._max_connections = min(_MAX_CONNECTIONS, files // 2)
        self._settings = settings
        self._given = given
        self._config = config
        self._seen = seen
        self._lasting = state
        self._restored = restored is not None
        self._saver: StateSaver | None = None  # nothing is written before all pools are added
        self._scheduled_push: asyncio.Handle | None = None
        self._sharing: Sharing | None = None
        self._sticky = self._new_sticky()
        self._predecessors: Predecessors | None = None
        replaced = [] if gateway is None or settings.store is not None else gateway.predecessors
        self.balancer = Balancer(
            new_policy(settings, alpha=restored.alpha if restored else None),
            name=settings.policy,
            choose=random.Random().choice,
            clock=time.monotonic,
            slow_start=settings.slow_start,
            report=self._report,
            restart_grace=_RESTART_GRACE_S if restored else 0.0,
            counted=None if settings.store is None else self._counted,
            elsewhere=self._elsewhere if settings.store is not None or replaced else None,
            fresh=lambda: new_policy(settings),
            record=None if recorder is None else lambda pool, seconds: recorder.ended(pool.address, seconds),
        )
        if settings.store is not None:
            self._sharing = Sharing(settings.store, settings.fleet, self.balancer, self.log, admin_port=admin_port)
        elif replaced:  # with a store, their pickers share the counts there
            self._predecessors = Predecessors(replaced, self.balancer, self.log)
        self._greetings = Greetings(self.balancer, log)
        self.envoys = EnvoyFleet(
            self.balancer,
            self.log,
            time.monotonic,
            own=None if gateway is None else AdminSocket(gateway.admin_socket),
            unfit=self._greetings.greets,
        )
        kind = "picker" if gateway is None else "gateway"
        self.feed = Feed(BalancerSource(self.balancer, self.parts, kind, self.changes_survive), log)
        self._endpoints = Endpoints(lambda: self.balancer.pools, self.log)
        self._router = Router(PickService(self.balancer, self.latency, self._sticky), self.envoys, self._endpoints)
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._add_pools(
            restored.pools_now(settings.fixed)
            if restored
            else [KnownPool(address=pool.address, weight=pool.weight) for pool in settings.fixed]
        )
        self.discovery = make_discovery(self.balancer, log, settings, restored)
        self._use(settings)
        if self._state_files():
            self._saver = StateSaver(self._state_files, self._state, self._state_source, self.log)

    def connection(self) -> Connection:
        """Return the protocol for a new connection."""
        connection = Connection(self._router.route, welcome=len(self._connections) < self._max_connections)
        self._connections.add(connection)
        return connection

    def background(self) -> list[Work]:
        """Return the work to run beside the picks."""
        work = [repeat(self._tick, _TICK_S, self.log), repeat(self._save, _SAVE_S, self.log), self.feed.run()]
        if self._settings.protocol == "http":  # Envoy's own checks of others find a wrong protocol
            work.append(self._greetings.run())
        if self._config is not None:
            file = SettingsFile(self._config, self._seen, self._given, self.balancer, self.log)
            work.append(file.follow(self._settings, self._use))
        if learns(self._settings.policy) and self._settings.alpha is None:
            work.append(Advisor(self._sessions, self.balancer.set_alpha, self._settings.load_max, self.log).run())
        if self._sharing is not None:
            work.append(self._sharing.run())
        if self._predecessors is not None:
            work.append(self._predecessors.run())
        if self._recorder is not None:
            work.append(repeat(self._recorder.report, _REPORT_S, self.log))
        work.append(self.discovery.run())
        return work

    async def wait_known(self) -> None:
        """Wait a moment for the sessions of other pickers and the first answers of DNS: first picks need both."""
        if self._sharing is not None:
            await self._sharing.wait_known()
        await self.discovery.wait_asked(_FIRST_ANSWER_S)
        if self._predecessors is not None:
            await self._predecessors.wait_known()

    def store_view(self) -> StoreView | None:
        """Return the shared store as the admin port shows it."""
        return None if self._sharing is None else self._sharing.view()

    def returns(self) -> dict[str, int] | None:
        """Return what became of requests by their tokens; None if sessions are not sticky."""
        return None if self._sticky is None else {str(kind): count for kind, count in self._sticky.seen.items()}

    def envoy_views(self) -> Iterator[EnvoyView]:
        """Yield the Envoys as the admin port shows them, one by one: each compares its pools with ours."""
        for envoy in self.envoys.all:
            yield EnvoyView(
                admin=str(envoy.admin),
                reachable=envoy.hosts is not None,
                sessions=envoy.sessions,
                unknown_pools=[str(pool.address) for pool in self.envoys.unknown_pools(envoy)],
            )

    def parts(self) -> list[Part]:
        """Return the other processes as the dashboard shows them: the Envoys, and pickers that share the store."""
        now = time.monotonic()
        envoys = [
            Part(
                kind="Envoy",
                name="of this gateway" if isinstance(envoy.admin, AdminSocket) else str(envoy.admin),
                reachable=envoy.hosts is not None,
                age=now - envoy.seen,
                heard=now - envoy.answered,
                sessions=envoy.sessions,
                note=f"cannot reach {lost} of the pools"
                if (lost := len(self.envoys.unknown_pools(envoy)))
                else "",
            )
            for envoy in self.envoys.all
        ]
        others = [] if self._sharing is None else self._sharing.parts()
        return envoys + others + discovery_parts(self.discovery)

    def changes_survive(self) -> bool:
        """Return whether changes of pools at the admin port survive a restart, of the gateway if there is one."""
        failed = self._lasting is not None and self._saver is not None and self._saver.fails(self._lasting)
        return self._lasting is not None and not failed

    @property
    def ready(self) -> bool:
        """Whether new sessions can be placed, and the gateway, if there is one, accepts clients."""
        accepting = self._gateway is None or self._gateway.accepting
        return accepting and any(pool.available for pool in self.balancer.pools)

    def publish(self) -> None:
        """Push endpoints and save the state now, if a pool has changed since the last push."""
        if self._scheduled_push is not None:
            self._scheduled_push.cancel()
            self._scheduled_push = None
            self._endpoints.push()
            self._save()

    async def close(self) -> None:
        """Close the connections of the Envoys, whose sessions continue, and save the state."""
        self._tick()  # the last changes of the threshold, before sessions seem to end
        self._event_log.close()
        if self._recorder is not None:
            self._recorder.stopping()
        self.feed.close()
        self._router.stopping = True
        for connection in list(self._connections):
            connection.abort()
        await self.envoys.close()
        self._save()

    def _add_pools(self, pools: list[KnownPool]) -> None:
        weighs = follows_weights(self._settings.policy)  # else a weight set under an earlier policy has no effect
        for pool, endpoint in [(pool, _endpoint(pool)) for pool in pools]:  # all are resolved before any is added
            weight = pool.weight if weighs and not pool.leaving else 1.0
            try:
                self.balancer.add(pool.address, endpoint, weight=weight, slowly=False, source=pool.source)
            except InputError as error:  # an operator may have added it under another name
                if not self._restored:
                    raise
                self.log.event("pool not added", pool=str(pool.address), reason=str(error))
                continue
            if pool.draining:
                self.balancer.drain(pool.address)
            if pool.leaving:
                self.balancer.remove(pool.address)

    def _sessions(self) -> list[int]:
        """Return the open sessions of the pools that alpha is recommended for."""
        return [pool.sessions for pool in self.balancer.pools if not (pool.draining or pool.leaving)]

    def _use(self, settings: Settings) -> None:
        self._settings = settings
        self.discovery.use(settings.sources, [pool.address for pool in settings.fixed])

    def _new_sticky(self) -> Sticky | None:
        settings = self._settings
        if settings.sticky is None:
            return None
        if settings.sticky_key_file is not None:
            key = read_key(settings.sticky_key_file)
        else:
            key = new_key() if self._gateway is None else self._gateway.kept_key()
        return Sticky(settings.sticky, key=key, margin=settings.margin, pools=lambda: self.balancer.pools)

    def _report(self, event: BalancerEvent) -> None:
        self._event_log.write(event)
        if self._sticky is not None and isinstance(event, PoolAdded | PoolGone):
            self._sticky.pools_changed()
        if isinstance(event, PoolEvent) and self._scheduled_push is None:  # pools often change together: push once
            self._scheduled_push = asyncio.get_running_loop().call_soon(self.publish)

    def _counted(self, pool: LivePool) -> None:
        if self._sharing is not None:
            self._sharing.share(pool)

    def _elsewhere(self, endpoint: Address) -> int:
        others = self._sharing or self._predecessors
        return 0 if others is None else others.elsewhere(endpoint)

    def _tick(self) -> None:
        self.balancer.tick()
        self._event_log.catch_up()
        self._adopt_events()

    def _adopt_events(self) -> None:
        """Show what the gateway's supervisor has logged: Envoy died, Envoy is back, the gateway drains."""
        for line in () if self._gateway is None else self._gateway.new_events():
            self.log.adopt(line)

    def _save(self) -> None:
        if self._saver is not None:
            self._saver.save()

    def _state_files(self) -> list[Path]:
        """Return the files to keep the state in.

        A gateway's private file is for the next picker, also of a gateway that takes over. The lasting one is for
        the next gateway. While one takes over from another, only the one in charge writes that.
        """
        lasting = [] if self._lasting is None else [self._lasting]
        if self._gateway is None:
            return lasting
        return [self._gateway.state_file, *(lasting if self._gateway.owns_address else [])]

    def _state_source(self) -> object:
        """Return what the state is made of. Stages stand for draining and leaving."""
        pools = self.balancer.pools
        addresses = [(pool.address, pool.endpoint) for pool in pools]
        stages, weights = [pool.stage for pool in pools], [pool.weight for pool in pools]
        sources, by_hand = [pool.source for pool in pools], self.discovery.by_hand.holds
        answers = [each.servers for each in self.discovery.followed]
        return self._settings, self.balancer.alpha, addresses, stages, weights, sources, answers, by_hand

    def _state(self) -> PickerState:
        alpha = self.balancer.alpha
        return PickerState(
            settings=self._settings,
            pools=[
                KnownPool(
                    address=pool.address,
                    endpoint=pool.endpoint,
                    weight=pool.weight,
                    draining=pool.draining,
                    leaving=pool.leaving,
                    source=pool.source,
                )
                for pool in self.balancer.pools
            ],
            alpha=None if alpha is None else str(alpha),
            **known_answers(self.discovery),
        )


def _endpoint(pool: KnownPool) -> Address:
    """Resolve the address of the pool; fall back to its last endpoint if the name does not resolve now."""
    try:
        return resolve(pool.address)
    except InputError:
        if pool.endpoint is None:
            raise
        return pool.endpoint


def _settings(given: Mapping[str, Any], config: Path | None, restored: PickerState | None, log: Log) -> Settings:
    """Read the settings. If the settings file has become invalid since the last start, return those used then."""
    try:
        return read_settings(given, config)
    except InputError as error:
        if config is None or restored is None:
            raise
        log.event("settings not used", reason=str(error))
        return read_settings({**restored.settings.model_dump(mode="json", exclude_none=True), **given}, None)


def _following(name: str, context: ssl.SSLContext | None, pair: KeyPair | None, log: Log) -> list[Work]:
    """Return the work that follows a certificate, if there is one."""
    if context is None or pair is None:
        return []
    return [repeat(followed_context(name, context, pair, log).look, POLL_S, log)]


def _restored(
    state: Path | None, gateway: GatewayFolder | None, log: Log
) -> tuple[Path | None, PickerState | None]:
    """Return what an earlier picker left, and the file where it is.

    A file that a gateway of another version left need not be readable.
    """
    own = None if gateway is None else gateway.state_file
    for file in (own, state):
        if file is None or not file.exists():
            continue
        try:
            restored = load(file)
        except InputError as error:
            if gateway is None:
                raise
            log.event("state not used", reason=str(error))
        else:
            return file, restored
    return None, None


def _log_restored(file: Path, restored: PickerState, settings: Settings, log: Log) -> None:
    """Log what the operator did to pools before the restart: clients get 503 if no pool is left."""
    found = restored.by_operator(settings.fixed)
    refused = found.left == 0 and (found.drained or found.removed)
    level = "warning" if refused else "info"
    log.event("state read", file=str(file), drained=found.drained, removed=found.removed, level=level)


async def serve(
    given: Mapping[str, Any],
    config: Path | None,
    state: Path | None,
    *,
    gateway: GatewayFolder | None = None,
    ready_json: bool = False,
) -> None:
    """Run a picker until a signal stops it. The ready line is JSON if `ready_json`, else a sentence."""
    files = raise_fd_limit()
    log = Log(sys.stderr)
    log_faults(log)
    if state is not None and gateway is None:  # a gateway has checked it, and may go on without
        check_writable(state)
    file, restored = _restored(state, gateway, log)
    seen = None if config is None else fingerprint(config)
    settings = _settings(given, config, restored, log)
    if file is not None and restored is not None:
        _log_restored(file, restored, settings, log)
    token = read_token(settings.admin, settings.admin_token_file, os.environ)
    stop = asyncio.Event()
    on_signals(stop.set)  # after the reads: until here, a signal ends the process at once
    tls = None if gateway is not None or settings.tls is None else server_context(settings.tls, ["h2"])
    admin_tls = None if settings.admin_tls is None else server_context(settings.admin_tls)
    with (
        listening_socket(settings.listen) as grpc,
        admin_socket(settings.admin_choices, gateway) as admin,
        recording(settings.record, log) as recorder,
    ):
        bound = Address(settings.admin.host, admin.getsockname()[1])
        service = PickerServer(
            settings,
            given=given,
            config=config,
            state=state,
            restored=restored,
            log=log,
            files=files,
            seen=seen,
            gateway=gateway,
            recorder=recorder,
            admin_port=bound.port,
        )
        listening = Address(settings.listen.host, grpc.getsockname()[1])
        clients = None if gateway is None else gateway.listen
        service.discovery.own = [bound, listening, *([] if clients is None else [clients])]
        app = admin_app(
            balancer=service.balancer,
            latency=service.latency,
            envoys=service.envoy_views,
            token=token,
            bound=bound,
            resolve=resolved,
            ready=lambda: service.ready,
            publish=service.publish,
            by_hand=service.discovery.note,
            checked=service.envoys.wait_checked,
            changes_survive=service.changes_survive,
            feed=service.feed,
            store=service.store_view,
            returns=service.returns,
            discovery=lambda: discovery_views(service.discovery),
            refused=lambda: RefusedView(**asdict(service.envoys.refusals.total)),
            refusing=service.envoys.refusing,
            restarts=lambda: None if gateway is None else gateway.restarts,
        )
        loop = asyncio.get_running_loop()
        server = await loop.create_server(service.connection, sock=grpc, backlog=BACKLOG, ssl=tls)
        work = [
            *service.background(),
            *_following("picker", tls, settings.tls, log),
            *_following("admin", admin_tls, settings.admin_tls, log),
        ]
        async with server, until_handed_over(serve_admin(app, admin, admin_tls), gateway), running(work, log):
            await service.wait_known()
            ready = Ready(
                listen=listening,
                admin=bound,
                pools=len(service.balancer.pools),
                policy=service.balancer.name,
            )
            sentence = ready.sentence(admin_scheme="http://" if admin_tls is None else "https://")
            print(ready.to_json() if ready_json else sentence, flush=True)
            if gateway is None:  # else the gateway is ready later, when Envoy is
                notify(READY)
            gc.freeze()  # long-lived objects need no further GC scans
            await stop.wait()
            await service.close()
