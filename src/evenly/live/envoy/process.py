"""Envoy as a process of ours: found, started, asked, drained and stopped."""

from __future__ import annotations

import asyncio
import http.client
import json
from asyncio.subprocess import Process
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.envoy.bootstrap import STAT_PREFIX
from evenly.live.envoy.bootstrap_clusters import Json
from evenly.live.processes import end_child, start_child

_LOG_FORMAT = '{"time":"%Y-%m-%dT%T.%e%z","event":"envoy says","level":"%l","message":"%j"}'
_QUIET = "ext_proc:error"  # else a line for each session while the picker is away, which is known anyway
_OPEN_SESSIONS = f"http.{STAT_PREFIX}.downstream_rq_active"
ADMIN_PATHS = ("/ready", "/stats", "/healthcheck/fail", "/drain_listeners")  # that are asked here
_TIMEOUT = 1.0
_LOOK_AGAIN = 0.02


def find_envoy() -> Path:
    """Where Envoy's program is."""
    package = find_spec("envoy")
    for folder in (package.submodule_search_locations or []) if package else []:
        program = Path(folder) / "_bin" / "envoy"
        if program.is_file():
            return program
    raise InputError("Envoy is not installed: install evenly with its extra `live`.")


class EnvoyProcess:
    """One Envoy, from its config on. It can be started again after its end."""

    name = "envoy"

    def __init__(self, config: Json, folder: Path, log: IO[bytes] | None = None) -> None:
        self._log = log
        self._program = find_envoy()
        self._file = folder / "envoy.json"
        self._file.write_text(json.dumps(config), encoding="utf-8")
        where = config["admin"]["address"]["socket_address"]
        self._admin = Address(where["address"], where["port_value"])
        self._process: Process | None = None

    @property
    def running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start it; it is not ready yet."""
        self._process = await start_child(
            *(str(self._program), "-c", str(self._file), "--disable-hot-restart"),
            *("--log-level", "warning", "--component-log-level", _QUIET, "--log-format", _LOG_FORMAT),
            stderr=self._log,
        )

    async def ready(self) -> bool:
        """Wait until it takes clients; False if it ends instead."""
        while self.running:
            if await self._ask("GET", "/ready") is not None:
                return True
            await asyncio.sleep(_LOOK_AGAIN)
        return False

    async def ended(self) -> int:
        """Wait for its end; its exit code."""
        assert self._process is not None
        return await self._process.wait()

    async def open_sessions(self) -> int | None:
        """How many requests and WebSocket sessions are open; None if it does not answer."""
        answer = await self._ask("GET", f"/stats?format=json&filter=^{_OPEN_SESSIONS}$")
        if answer is None:
            return None
        return sum(int(entry["value"]) for entry in json.loads(answer)["stats"])

    async def stop_listening(self) -> None:
        """Refuse new connections, and close those that are kept alive after their next answer. Sessions go on."""
        await self._ask("POST", "/healthcheck/fail")
        await self._ask("POST", "/drain_listeners")

    async def stop(self) -> None:
        """End it, and with it the sessions that are still open."""
        if self._process is not None:
            await end_child(self._process)

    async def _ask(self, method: str, path: str) -> bytes | None:
        return await asyncio.to_thread(_request, self._admin, method, path)


def _request(admin: Address, method: str, path: str) -> bytes | None:
    """The body of a good answer; None for any other and for none."""
    connection = http.client.HTTPConnection(admin.host, admin.port, timeout=_TIMEOUT)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return body if answer.status == http.client.OK else None
