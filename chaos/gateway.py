"""`evenly gateway` as a process under siege: a limit on its files, its children, its admin port and its log."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from chaos.http import fetch
from chaos.processes import children, command_line, limited
from evenly.live.addresses import Address
from evenly.live.picker.ready import Ready

_START_S = 60.0
_STOP_S = 30.0
ENVOY, PICKER, SUPERVISOR = "envoy", "picker", "supervisor"


class GatewayError(Exception):
    """The gateway did not start."""


class Gateway:
    """A running gateway. Its settings file and its log are in `folder`."""

    def __init__(self, folder: Path, pools: Sequence[Address], *, files: int, drain_timeout: int = 1) -> None:
        self.files = files
        self.listen = self.admin = Address("127.0.0.1", 0)
        self._settings = folder / "gateway.toml"
        self._log = folder / "gateway.log"
        self._drain_timeout = drain_timeout
        self._process: subprocess.Popen[bytes] | None = None
        self.write_settings(pools)

    def write_settings(self, pools: Sequence[Address], *, more: str = "") -> None:
        """Replace the settings file, which the gateway watches. The file is never half written."""
        listed = ", ".join(f'"{pool}"' for pool in pools)
        new = self._settings.with_suffix(".new")
        # Alpha is fixed: a recommended one is computed in a process of its own and would blur the memory.
        text = f'listen = "127.0.0.1:0"\nadmin = "127.0.0.1:0"\nalpha = 0.65\nslow_start = 1\npool = [{listed}]\n'
        new.write_text(f"{text}drain_timeout = {self._drain_timeout}\n{more}", encoding="utf-8")
        new.replace(self._settings)

    async def start(self) -> None:
        """Start it and wait until it is ready."""
        command = [sys.executable, "-m", "evenly", "gateway", "--config", str(self._settings), "--ready-json"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                limited(self.files, command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(_START_S):
                line = await asyncio.to_thread(self._process.stdout.readline)
        except TimeoutError:
            line = b""
        if not line:
            raise GatewayError(f"The gateway did not start: {self.log_text().strip()[-500:]}")
        ready = Ready.from_json(line.decode())
        self.listen, self.admin = ready.listen, ready.admin

    async def stop(self) -> None:
        """End it: it drains for a second, since the sessions of a siege have no end."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            await asyncio.to_thread(self._process.wait, _STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def terminate(self) -> None:
        """Let it begin to drain."""
        assert self._process is not None
        self._process.terminate()

    def pids(self) -> dict[str, int]:
        """Return the processes that run now: the supervisor, the picker and Envoy."""
        if self._process is None:
            return {}
        found = {SUPERVISOR: self._process.pid}
        for name, pid in children(self._process.pid).items():
            words = command_line(pid)
            if name.startswith(ENVOY):
                found[ENVOY] = pid
            elif PICKER in words:
                found[PICKER] = pid
        return found

    def signal(self, part: str, number: signal.Signals) -> None:
        """Send a signal to Envoy or the picker; if it is dead at the moment, do nothing."""
        if (pid := self.pids().get(part)) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    async def state(self) -> dict[str, Any] | None:
        """Return `/state`, or None if the picker does not answer."""
        answer = await fetch(self.admin, "/state")
        if answer.status != 200:
            return None
        state: dict[str, Any] = json.loads(answer.text)
        return state

    async def ready(self) -> int:
        """Return the status of `/readyz`, 0 if the picker does not answer."""
        return (await fetch(self.admin, "/readyz")).status

    async def metrics(self, name: str) -> float | None:
        """Return the sum of all series whose names match a pattern, or None if there is none."""
        answer = await fetch(self.admin, "/metrics")
        found = re.findall(rf"^(?:{name})(?:{{[^\n]*}})? ([0-9.e+-]+)$", answer.text, re.MULTILINE)
        return sum(map(float, found)) if found else None

    def log_text(self, since: int = 0) -> str:
        """Return the log, from an offset in bytes on."""
        with self._log.open("rb") as log:
            log.seek(since)
            return log.read().decode(errors="replace")

    def log_size(self) -> int:
        """Return the length of the log in bytes."""
        return self._log.stat().st_size

    def events(self, since: int) -> list[dict[str, Any]]:
        """Return the lines of the log from an offset on. Lines that are no JSON, such as a crash, are left out."""
        found = []
        for line in self.log_text(since).splitlines():
            with suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict):
                    found.append(event)
        return found

    async def wait_for(self, part: str, seconds: float, *, other_than: int | None = None) -> bool:
        """Wait until a part runs, under another process id than the given one."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.pids().get(part, other_than) != other_than:
                return True
            await asyncio.sleep(0.05)
        return False
