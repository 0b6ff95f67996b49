"""A supervisor learns that a process is ready, and one that cannot be reached changes nothing."""

from __future__ import annotations

import os
import socket
from tempfile import TemporaryDirectory

import pytest

from evenly.live.notify import READY, notify
from tests.live.processes import PATIENCE


@pytest.mark.parametrize("kind", ["file", "name"])
def test_a_state_arrives_as_one_datagram(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        TemporaryDirectory(dir="/tmp") as folder,  # a Unix socket's path has at most 107 characters
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor,
    ):
        name = f"{folder}/socket" if kind == "file" else f"@evenly-test-{os.getpid()}"
        supervisor.bind(name.replace("@", "\0", 1) if kind == "name" else name)
        supervisor.settimeout(PATIENCE)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        notify(READY)
        assert supervisor.recv(100) == b"READY=1"


def test_a_socket_that_cannot_be_used_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ["", "/nowhere/socket", "/" + 200 * "x", "relative", "vsock:2:1", "@", "/tmp"]:
        monkeypatch.setenv("NOTIFY_SOCKET", value)
        notify(READY)
        monkeypatch.delenv("NOTIFY_SOCKET")
        notify(READY)
