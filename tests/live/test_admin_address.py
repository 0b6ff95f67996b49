"""Announced admin addresses: those that a picker accepts, and Unix sockets that it opens."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.envoy.admin_address import AdminSocket, announcement, parse_announcement
from evenly.live.envoy.admin_client import Host, fetch_hosts
from tests.live.processes import PATIENCE
from tests.live.test_fleet import POOL, AdminPort


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder with a short path, as Unix sockets need."""
    with TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


def test_a_unix_socket_is_announced_by_its_name(folder: Path) -> None:
    admin = AdminSocket(folder / "envoy.sock")
    assert str(admin) == f"unix:{folder}/envoy.sock"
    assert announcement(admin) == "unix:envoy.sock"
    for peer in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        assert parse_announcement("unix:envoy.sock", peer, admin) == admin
    assert announcement(Address("10.0.0.1", 9901)) == "10.0.0.1:9901"


def test_the_picker_of_a_gateway_accepts_its_own_envoy_only(folder: Path) -> None:
    for announced in ["unix:", "unix:/etc/x.sock", "unix:../envoy.sock", "127.0.0.1:9901", "é"]:
        with pytest.raises(InputError, match="only the Envoy of that gateway"):
            parse_announcement(announced, "127.0.0.1", AdminSocket(folder / "envoy.sock"))


def test_a_unix_socket_is_accepted_from_this_machine_and_by_the_picker_of_a_gateway_only(folder: Path) -> None:
    with pytest.raises(InputError, match="only the Envoy of that gateway"):
        parse_announcement("unix:envoy.sock", "10.0.0.7", AdminSocket(folder / "envoy.sock"))
    with pytest.raises(InputError, match="only the picker of a gateway"):
        parse_announcement("unix:envoy.sock", "127.0.0.1", None)


class UnixPort(AdminPort):
    """An admin interface on a Unix socket."""

    def __init__(self, path: Path, mode: int = 0o600) -> None:
        super().__init__()
        self.path = path
        self._mode = mode

    async def start(self) -> None:
        self.server = await asyncio.start_unix_server(self._serve, self.path)
        self.path.chmod(self._mode)


def fetched(port: UnixPort, path: Path) -> dict[Address, Host]:
    async def ask() -> dict[Address, Host]:
        await port.start()
        try:
            return await fetch_hosts(AdminSocket(path), PATIENCE)
        finally:
            await port.stop()

    return asyncio.run(ask())


def test_hosts_are_fetched_from_a_private_socket(folder: Path) -> None:
    port = UnixPort(folder / "envoy.sock")
    port.show(3)
    assert fetched(port, port.path) == {POOL: Host(3, failing=False)}


@pytest.mark.parametrize("mode", [0o660, 0o602])
def test_a_socket_that_other_users_can_open_is_not_opened(mode: int, folder: Path) -> None:
    port = UnixPort(folder / "envoy.sock", mode)
    with pytest.raises(PermissionError, match="can be opened by other users"):
        fetched(port, port.path)
    assert port.requests == []


def test_neither_links_nor_files_are_opened(folder: Path) -> None:
    link, port = folder / "link", UnixPort(folder / "envoy.sock")
    link.symlink_to(port.path)
    with pytest.raises(PermissionError, match="is not a socket"):
        fetched(port, link)
    assert port.requests == []
    (folder / "file").touch(mode=0o600)
    with pytest.raises(PermissionError, match="is not a socket"):
        AdminSocket(folder / "file").check_private()
    with pytest.raises(FileNotFoundError):
        AdminSocket(folder / "nothing").check_private()


def test_a_socket_of_another_user_is_not_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only root could give the socket away, so here we become another user."""
    path = folder / "envoy.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
    path.chmod(0o600)
    AdminSocket(path).check_private()
    another = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: another)
    with pytest.raises(PermissionError, match="can be opened by other users"):
        AdminSocket(path).check_private()
