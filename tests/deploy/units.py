"""The systemd units: their command lines, and how a test runs one without systemd."""

from __future__ import annotations

import shlex
import socket
import sys
from configparser import RawConfigParser
from pathlib import Path

from tests.deploy.documented import DEPLOY
from tests.live.processes import PATIENCE

FILES = sorted((DEPLOY / "systemd").glob("*.service"))
PROGRAM = "/opt/evenly/bin/evenly"


class _Unit(RawConfigParser):
    """A unit file: keys keep their case, and the last of several equal keys wins."""

    def __init__(self, file: Path) -> None:
        super().__init__(strict=False, delimiters=("=",), comment_prefixes=("#",), interpolation=None)
        self.read(file, encoding="utf-8")

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def service(file: Path) -> dict[str, str]:
    """Return the section Service."""
    return dict(_Unit(file)["Service"])


def words(file: Path) -> list[str]:
    """Return the words after the program in ExecStart."""
    program, *rest = shlex.split(service(file)["ExecStart"])
    assert program == PROGRAM
    return rest


def command(file: Path, etc: Path, credentials: Path) -> list[str]:
    """Return ExecStart for a machine whose /etc/evenly and whose folder of credentials are these."""
    placed = [word.replace("/etc/evenly", str(etc)).replace("%d", str(credentials)) for word in words(file)]
    assert not any("%" in word for word in placed)
    return [sys.executable, "-m", "evenly", *placed]


class NotifySocket:
    """The socket on which systemd waits for READY=1."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "notify"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(self.path))
        self._socket.settimeout(PATIENCE)

    def next(self) -> str:
        """Wait for the next message."""
        return self._socket.recv(4096).decode()

    def close(self) -> None:
        self._socket.close()
