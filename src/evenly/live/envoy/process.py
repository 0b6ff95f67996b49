"""Envoy as a child process: find, start, query, drain and stop it."""

from __future__ import annotations

import asyncio
import errno
import http.client
import json
from asyncio.subprocess import Process
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.envoy.admin_address import AdminAddress, AdminSocket, connect
from evenly.live.envoy.bootstrap import STAT_PREFIX
from evenly.live.envoy.bootstrap_clusters import Json
from evenly.live.envoy.listen_socket import ListenSocket
from evenly.live.processes import end_child, start_child

_LOG_FORMAT = '{"time":"%Y-%m-%dT%T.%e%z","event":"envoy says","level":"%l","message":"%j"}'
_QUIET = "ext_proc:error"  # else one line per session while the picker is down
_OPEN_SESSIONS = f"http.{STAT_PREFIX}.downstream_rq_active"
_OPEN_CONNECTIONS = f"http.{STAT_PREFIX}.downstream_cx_active"
_STOPPED_LISTENERS = "listener_manager.listener_stopped"
ADMIN_PATHS = ("/ready", "/stats", "/healthcheck/fail", "/drain_listeners")  # that this module requests
_TIMEOUT_S = 1.0
_READY_POLL_S = 0.02
_CANNOT_ASK = {errno.ENOENT, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


def find_envoy() -> Path:
    """Return the path of the Envoy executable."""
    package = find_spec("envoy")
    for folder in (package.submodule_search_locations or []) if package else []:
        program = Path(folder) / "_bin" / "envoy"
        if program.is_file():
            return program
    raise InputError("Envoy is not installed: run pip install '.[live]' in a checkout of evenly.")


class EnvoyProcess:
    """One Envoy with the given config. It can be restarted after it has ended.

    It listens on the socket `listen`, or makes its own without one. It has `threads` workers, or as many as it
    chooses.
    """

    name = "envoy"

    def __init__(
        self,
        config: Json,
        folder: Path,
        log: IO[bytes] | None = None,
        listen: ListenSocket | None = None,
        threads: int | None = None,
    ) -> None:
        self._log = log
        self._listen = listen
        self._threads = threads
        self._program = find_envoy()
        self._file = folder / "envoy.json"
        self._config = json.dumps(config)
        self._admin = _admin_of(config)
        self._process: Process | None = None
        self._ready = False

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.returncode is None

    @property
    def ready(self) -> bool:
        """Whether the process runs and has been ready since it started."""
        return self._ready and self.running

    async def start(self) -> None:
        """Start the process. It is not ready yet."""
        self._ready = False
        self._file.write_text(self._config, encoding="utf-8")  # each time: something may have removed it
        self._process = await start_child(
            *(str(self._program), "-c", str(self._file)),
            *(["--disable-hot-restart"] if self._listen is None else self._listen.offer()),
            *([] if self._threads is None else ["--concurrency", str(self._threads)]),
            *("--log-level", "warning", "--component-log-level", _QUIET, "--log-format", _LOG_FORMAT),
            stderr=self._log,
        )

    async def wait_ready(self) -> bool:
        """Wait until it accepts clients; return False if it ends first."""
        while self.running:
            if await self._request("GET", "/ready") is not None:
                self._ready = True
                return True
            await asyncio.sleep(_READY_POLL_S)
        return False

    async def wait_exit(self) -> int:
        """Wait for the process to end; return its exit code."""
        assert self._process is not None
        return await self._process.wait()

    async def responds(self) -> bool:
        """Return whether its main thread responds within a second; True if there is no way to ask it now.

        A program that cleans up /tmp may remove the socket, and the system may be out of file descriptors. Neither
        is the fault of this Envoy.
        """
        return await asyncio.to_thread(_responds, self._admin)

    async def open_sessions(self) -> int | None:
        """Return the number of open requests and WebSocket sessions, or None if Envoy does not respond."""
        return await self._statistic(_OPEN_SESSIONS)

    async def open_connections(self) -> int | None:
        """Return the number of clients' connections, busy or idle, or None if Envoy does not respond."""
        return await self._statistic(_OPEN_CONNECTIONS)

    async def stopped_listening(self) -> bool:
        """Return whether it has stopped listening, which it cannot undo; False if it does not respond."""
        return bool(await self._statistic(_STOPPED_LISTENERS))

    async def stop_listening(self) -> None:
        """Accept no new connections, and close idle ones after their next response. Open sessions continue."""
        await self._request("POST", "/healthcheck/fail")
        await self._request("POST", "/drain_listeners")
        if self._listen is not None:
            self._listen.release()

    async def _statistic(self, name: str) -> int | None:
        answer = await self._request("GET", f"/stats?format=json&filter=^{name}$")
        if answer is None:
            return None
        return sum(int(entry["value"]) for entry in json.loads(answer)["stats"])

    async def rejected_secrets(self) -> list[str]:
        """Return the names of the secrets that Envoy could not use since its start."""
        answer = await self._request("GET", r"/stats?format=json&filter=^sds\..*\.update_rejected$")
        entries = [] if answer is None else json.loads(answer)["stats"]
        return [entry["name"].split(".")[1] for entry in entries if int(entry["value"])]

    async def stop(self) -> None:
        """End the process and with it all open sessions."""
        if self._process is not None:
            await end_child(self._process)

    def kill(self) -> None:
        """End the process at once. Unlike `stop`, this also works if it hangs."""
        if self._process is not None and self.running:
            self._process.kill()

    async def _request(self, method: str, path: str) -> bytes | None:
        return await asyncio.to_thread(_body, self._admin, method, path)


def _admin_of(config: Json) -> AdminAddress:
    where = config["admin"]["address"]
    if "pipe" in where:
        return AdminSocket(Path(where["pipe"]["path"]))
    return Address(where["socket_address"]["address"], where["socket_address"]["port_value"])


def _body(admin: AdminAddress, method: str, path: str) -> bytes | None:
    """Send a request; return the body of a 200 response, else None."""
    try:
        status, body = _exchange(admin, method, path)
    except (OSError, http.client.HTTPException):
        return None
    return body if status == http.client.OK else None


def _responds(admin: AdminAddress) -> bool:
    try:
        _exchange(admin, "GET", "/ready")
    except OSError as error:
        return error.errno in _CANNOT_ASK
    except http.client.HTTPException:
        return False
    return True


def _exchange(admin: AdminAddress, method: str, path: str) -> tuple[int, bytes]:
    """Send a request; return the status and the body of the response."""
    connection = connect(admin, _TIMEOUT_S)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
