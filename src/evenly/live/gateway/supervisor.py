"""The gateway's supervisor: it starts the picker and Envoy, restarts either if it dies, and drains on shutdown.

Sessions live in Envoy, so the picker may die at any time. The picker keeps its state in a file of a private
folder, and all ports stay the same, so that picker and Envoy find each other again. A second file keeps the state
for the next start of the gateway, see `lasting_state.py`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Any, Protocol

from evenly.errors import InputError
from evenly.files import check_regular
from evenly.live.addresses import Address, check_distinct, check_no_loop, resolve
from evenly.live.admin_token import read_token
from evenly.live.background import repeat
from evenly.live.envoy.admin_address import AdminSocket
from evenly.live.envoy.bootstrap import envoy_config
from evenly.live.envoy.listen_socket import ListenSocket
from evenly.live.envoy.process import ADMIN_PATHS, EnvoyProcess, find_envoy
from evenly.live.gateway.envoy_watch import EnvoyWatch
from evenly.live.gateway.hand_over import Estate, HandOver
from evenly.live.gateway.lasting_state import check_state_file, lasting_file
from evenly.live.gateway.picker_process import PickerProcess
from evenly.live.gateway.resources import (
    bound_to,
    machine_limits,
    private_folder,
    reserved_admin,
    reserved_port,
    reserved_socket,
)
from evenly.live.gateway.secrets import GatewaySecrets, check_secrets
from evenly.live.gateway.take_over import Predecessor, find
from evenly.live.gateway_folder import GatewayFolder
from evenly.live.log import Log
from evenly.live.notify import READY, STOPPING, notify
from evenly.live.recorder import check_record
from evenly.live.settings import Settings
from evenly.live.signals import on_signals
from evenly.live.signing import read_key
from evenly.live.timing import Timing
from evenly.live.tls import POLL_S, KeyPair

_LOOPBACK = Address("127.0.0.1", 0)
_FIRST_RETRY_S, _MAX_RETRY_S = 0.1, 5.0
_DRAIN_POLL_S = 0.1
_DRAIN_LOG_S, _HANDED_OVER_LOG_S = 1.0, 60.0
_BAD_INPUT, _FAILED = 2, 1
# Settings that are not the picker's. It speaks to Envoy without TLS, on a loopback port.
_GATEWAY_ONLY = frozenset({"drain_timeout", "health_path", "health_grpc", "take_over", "tls_cert", "tls_key"}) | {
    f"pool_{name}" for name in ("ca", "cert", "key", "sni")
}


class Child(Protocol):
    """A process that the supervisor keeps running."""

    name: str

    async def start(self) -> None:
        """Start the process."""

    async def wait_ready(self) -> bool:
        """Wait until the process serves; return False if it ends first."""

    async def wait_exit(self) -> int:
        """Wait for the process to end; return its exit code."""

    async def stop(self) -> None:
        """End the process if it runs."""


class Gateway:
    """The supervisor of one picker and one Envoy. `schemes` are those of its two ports, for the ready line."""

    def __init__(
        self,
        *,
        listen: Address,
        picker: PickerProcess,
        envoy: EnvoyProcess,
        folder: GatewayFolder,
        drain_timeout: float,
        log: Log,
        hand_over: HandOver,
        secrets: GatewaySecrets,
        schemes: tuple[str, str] = ("http://", "http://"),
        predecessor: Predecessor | None = None,
        ready_json: bool = False,
        timing: Timing | None = None,
    ) -> None:
        self._timing = timing or Timing()
        self._secrets = secrets
        self._schemes = schemes
        self._listen = listen
        self._picker = picker
        self._envoy = envoy
        self._folder = folder
        self._drain_timeout = drain_timeout
        self._log = log
        self._hand_over = hand_over
        self._predecessor = predecessor
        self._ready_json = ready_json
        self._stop = asyncio.Event()
        self._stop_now = asyncio.Event()
        self._keepers: dict[str, asyncio.Task[None]] = {}
        self._watch = EnvoyWatch(envoy, folder, log, self._timing)

    async def run(self) -> int:
        """Serve until a signal arrives and the sessions have ended; return the exit code."""
        on_signals(self._signalled)
        try:
            code = await self._begin_unless_stopped()
            if self._envoy.name in self._keepers:  # it serves
                await self._wait_for_stop()
                await self._drain()
            return code
        finally:
            await self._end()

    def _signalled(self) -> None:
        """Drain on the first signal, stop at once on the second."""
        (self._stop_now if self._stop.is_set() else self._stop).set()

    async def _wait_for_stop(self) -> None:
        """Wait for a signal, or for a gateway that has taken over."""
        reasons = {asyncio.ensure_future(event.wait()) for event in (self._stop, self._hand_over.done)}
        await asyncio.wait(reasons, return_when=asyncio.FIRST_COMPLETED)
        for reason in reasons:
            reason.cancel()
        self._hand_over.close()

    async def _begin_unless_stopped(self) -> int:
        beginning = asyncio.ensure_future(self._begin())
        stop = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({beginning, stop}, return_when=asyncio.FIRST_COMPLETED)
        for task in (beginning, stop):
            task.cancel()
        await asyncio.wait({beginning, stop})
        return 0 if beginning.cancelled() else beginning.result()

    async def _begin(self) -> int:
        """Start the picker, then Envoy, and print the ready line.

        Return an exit code other than 0 if a child ends at once. It has printed the reason.
        """
        for child in (self._picker, self._envoy):
            await child.start()
            if not await child.wait_ready():
                code = await child.wait_exit()
                return _BAD_INPUT if code == _BAD_INPUT else _FAILED
            self._keepers[child.name] = asyncio.ensure_future(self._keep(child))
        self._secrets.check_accepted(await self._envoy.rejected_secrets())
        self._folder.set_accepting(True)
        self._keepers["watch"] = asyncio.ensure_future(repeat(self._watch.probe, self._timing.probe_s, self._log))
        self._keepers["secrets"] = asyncio.ensure_future(repeat(self._secrets.look, POLL_S, self._log))
        if self._predecessor is not None:
            await self._predecessor.drain(self._log)
            self._folder.set_taking_over(False)
        self._hand_over.open()
        ready = replace(self._picker.ready, listen=self._listen)
        scheme, admin = self._schemes
        sentence = ready.sentence(program="evenly gateway", scheme=scheme, admin_scheme=admin)
        line = ready.to_json() if self._ready_json else sentence
        print(line, flush=True)
        notify(READY)
        return 0

    async def _keep(self, child: Child) -> None:
        """Restart a child whenever it dies, with longer pauses if it keeps dying."""
        loop = asyncio.get_running_loop()
        wait = _FIRST_RETRY_S
        while True:
            began = loop.time()
            code = await child.wait_exit()
            if child is self._envoy:
                self._folder.set_accepting(False)  # until the watch finds it well again
            self._folder.count_restart(child.name)
            self._log.event(f"{child.name} died", code=code)
            if loop.time() - began > _MAX_RETRY_S:
                wait = _FIRST_RETRY_S
            await asyncio.sleep(wait)
            wait = min(2 * wait, _MAX_RETRY_S)
            try:
                await child.start()
                back = await child.wait_ready()
            except (OSError, InputError) as error:  # no memory or no processes left; an unknown ready line
                self._log.event(f"{child.name} cannot start", reason=str(error))
            else:
                if back:
                    self._log.event(f"{child.name} is back")

    async def _drain(self) -> None:
        """Accept no new clients, and wait for open sessions to end, up to the drain timeout.

        After a hand-over there is no hurry: it waits for all of them, and for idle connections too. A client may
        be about to send a request, and the request after that goes to the other gateway.
        """
        loop = asyncio.get_running_loop()
        handed_over = self._hand_over.done.is_set()
        remaining = self._envoy.open_connections if handed_over else self._envoy.open_sessions
        log_every = _HANDED_OVER_LOG_S if handed_over else _DRAIN_LOG_S
        self._keepers[self._envoy.name].cancel()  # a restarted Envoy would listen again
        self._keepers["watch"].cancel()  # and so would one that is killed because it does not
        timeout = None if handed_over else self._drain_timeout
        deadline = inf if timeout is None else loop.time() + timeout
        notify(STOPPING)
        self._log.event("draining", seconds=timeout, handed_over=handed_over)
        self._folder.set_accepting(False)  # a picker that is restarted meanwhile knows it from its start
        await self._envoy.stop_listening()
        logged = -inf
        while self._envoy.running and not self._stop_now.is_set():
            sessions = await remaining()
            if sessions == 0 or loop.time() >= deadline:
                break
            if loop.time() >= logged + log_every:
                logged = loop.time()
                left = None if timeout is None else round(deadline - logged, 1)
                self._log.event("sessions open", sessions=sessions, seconds_left=left)
            await asyncio.sleep(_DRAIN_POLL_S)

    async def _end(self) -> None:
        """Stop Envoy first: while it has sessions it needs the picker."""
        for keeper in self._keepers.values():
            keeper.cancel()
        if self._keepers:
            await asyncio.wait(self._keepers.values())
        cut = await self._envoy.open_sessions() if self._envoy.running else 0
        await self._envoy.stop()
        await self._picker.stop()
        if self._keepers:
            self._log.event("gateway stopped", sessions_cut=cut, level="warning" if cut else "info")


def run(
    settings: Settings,
    given: Mapping[str, Any],
    config: Path | None,
    *,
    state_file: Path | None = None,
    ready_json: bool = False,
) -> int:
    """Run a gateway until it is told to stop; return the exit code.

    The picker gets the options and the config file as they were given, because it watches the file itself. Changes
    at the admin port are kept in `state_file`, or in a file of the default.
    """
    _check(settings)
    if state_file is not None:
        check_state_file(state_file)
    log = Log(sys.stderr)
    with ExitStack() as stack:
        before = find(settings, log)
        if before is not None:
            stack.callback(before.connection.close)  # if this gateway cannot start, the other continues
        listen_socket = stack.enter_context(reserved_socket(settings.listen) if before is None else before.listen)
        listen = bound_to(listen_socket)
        if before is not None:
            stack.callback(before.admin.close)
        if before is not None and before.shares_admin(settings):
            admin_socket = before.admin
        else:
            admin_socket = stack.enter_context(reserved_admin(settings.admin_choices))
        admin = bound_to(admin_socket)
        check_distinct({"listen": listen, "admin": admin})
        picker = stack.enter_context(reserved_port(_LOOPBACK))
        folder = GatewayFolder(stack.enter_context(private_folder()))
        log = Log(sys.stderr, copy=folder.note)
        folder.set_listen(listen)
        if before is not None:
            before.pass_on(folder)
        secrets = GatewaySecrets(settings, folder.path, os.environ, log)
        limits = machine_limits(pools=len(settings.fixed), names=len(settings.sources))
        log.event("limits", **asdict(limits))
        bootstrap = envoy_config(
            listen=listen,
            picker=picker,
            pools=None,
            admin=AdminSocket(folder.admin_socket),
            protocol=secrets.protocol,
            tls=secrets.listener,
            limits=limits,
            sticky=settings.sticky,
        )
        bootstrap["admin"]["allow_paths"] = [{"prefix": path} for path in (*ADMIN_PATHS, "/clusters")]
        values = {**given, "listen": picker, "admin": admin, "gateway_folder": folder.path}
        lasting = lasting_file(state_file, resolve(settings.listen), os.environ, log)
        if lasting is not None:
            values["state_file"] = lasting
        for_envoy = stack.enter_context(closing(ListenSocket(listen_socket, folder.path, find_envoy())))
        estate = Estate(
            folders=[folder.path, *folder.predecessors],
            listen=listen_socket,
            admin=admin_socket,
            admin_address=admin,
        )
        gateway = Gateway(
            listen=listen,
            picker=PickerProcess(_picker_options(values, config)),
            envoy=EnvoyProcess(bootstrap, folder.path, listen=for_envoy, threads=limits.threads),
            folder=folder,
            drain_timeout=settings.drain_timeout,
            log=log,
            secrets=secrets,
            schemes=(_scheme(settings.tls), _scheme(settings.admin_tls)),
            hand_over=HandOver(listen, estate, folder, log),
            predecessor=before,
            ready_json=ready_json,
        )
        return asyncio.run(gateway.run())


def _scheme(tls: KeyPair | None) -> str:
    return "http://" if tls is None else "https://"


def _check(settings: Settings) -> None:
    """Reject what the picker would reject, before any process is started."""
    find_envoy()
    if settings.admin_token_file is not None:
        check_regular(settings.admin_token_file)  # a restarted picker reads it again
    read_token(settings.admin, settings.admin_token_file, os.environ)
    if settings.sticky_key_file is not None:
        check_regular(settings.sticky_key_file)  # and this one too
        read_key(settings.sticky_key_file)
    if settings.record is not None:
        check_record(settings.record)
    check_secrets(settings, os.environ)
    endpoints: dict[Address, Address] = {}
    for pool in (configured.address for configured in settings.fixed):
        other = endpoints.setdefault(resolve(pool), pool)
        if other != pool:
            raise InputError(f"Pools {other} and {pool} are the same server.")
    check_no_loop(resolve(settings.listen), endpoints)


def _picker_options(values: Mapping[str, Any], config: Path | None) -> list[str]:
    """Return the picker's command line: the gateway's options without those for Envoy and clients."""
    words = [] if config is None else ["--config", str(config)]
    for name, value in values.items():
        if name not in _GATEWAY_ONLY:
            for one in value if isinstance(value, list) else [value]:
                words += [f"--{name.replace('_', '-')}", str(one)]
    return words
