"""The watch over Envoy, with an Envoy that behaves as the test decides, and a real port."""

from __future__ import annotations

import asyncio
import io
import json
import socket
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest

from evenly.errors import InputError
from evenly.live.envoy.process import EnvoyProcess
from evenly.live.gateway.envoy_watch import EnvoyWatch
from evenly.live.gateway.resources import private_folder
from evenly.live.gateway_folder import GatewayFolder
from evenly.live.log import Log
from evenly.live.timing import Timing


class FakeEnvoy:
    """An Envoy that is ready and responds, until the test says otherwise. `kills` counts its ends."""

    def __init__(self) -> None:
        self.ready = True
        self.response = True
        self.listens = True
        self.kills = 0

    async def responds(self) -> bool:
        return self.response

    async def stopped_listening(self) -> bool:
        return not self.listens

    def kill(self) -> None:
        self.kills += 1


class Scene:
    """A watch, its Envoy and its folder."""

    def __init__(self, folder: Path) -> None:
        self.envoy = FakeEnvoy()
        self.folder = GatewayFolder(folder)
        self.lines = io.StringIO()
        self._watch = EnvoyWatch(cast("EnvoyProcess", self.envoy), self.folder, Log(self.lines), Timing())

    def accepting(self, probes: int) -> list[bool]:
        """Probe, and return what the picker reads after each probe."""

        async def probe() -> list[bool]:
            found = []
            for _ in range(probes):
                await self._watch.probe()
                found.append(self.folder.accepting)
            return found

        return asyncio.run(probe())

    def events(self) -> list[tuple[str, str | None]]:
        lines = [json.loads(line) for line in self.lines.getvalue().splitlines()]
        return [(line["event"], line.get("reason")) for line in lines]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_an_envoy_that_listens_and_responds_is_left_alone(scene: Scene) -> None:
    assert scene.accepting(3) == [True] * 3
    assert (scene.envoy.kills, scene.events()) == (0, [])


def test_an_envoy_that_does_not_listen_is_killed_at_once(scene: Scene) -> None:
    assert scene.accepting(1) == [True]
    scene.envoy.listens = False
    assert scene.accepting(1) == [False]
    assert (scene.envoy.kills, scene.events()) == (1, [("envoy killed", "not listening")])


def test_an_envoy_that_does_not_respond_is_not_ready_and_killed_later(scene: Scene) -> None:
    scene.folder.set_accepting(True)
    scene.envoy.response = False
    assert scene.accepting(5) == [True, False, False, False, False]
    assert (scene.envoy.kills, scene.events()) == (0, [("envoy silent", None)])
    assert scene.accepting(1) == [False]
    assert (scene.envoy.kills, scene.events()[1:]) == (1, [("envoy killed", "not responding")])


def test_an_envoy_that_responds_again_is_ready_again(scene: Scene) -> None:
    scene.folder.set_accepting(True)
    for silent, events in ((1, []), (5, ["envoy silent", "envoy responds"])):
        scene.envoy.response = False
        scene.accepting(silent)
        scene.envoy.response = True
        assert scene.accepting(1) == [True]
        assert [event for event, _ in scene.events()] == events
    assert scene.envoy.kills == 0


def test_an_envoy_that_is_dead_or_starting_is_left_to_the_supervisor(scene: Scene) -> None:
    scene.envoy.listens = False
    scene.envoy.ready = False
    for scene.envoy.response in (True, False):
        assert scene.accepting(10) == [False] * 10
    assert (scene.envoy.kills, scene.events()) == (0, [])


def test_the_private_folder_has_room_for_a_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in /tmp if the path of TMPDIR is too long, or not UTF-8, which Envoy's config must be."""
    for parent, kept in [("short", True), ("n" * 80, False), ("\udcff", False)]:
        with TemporaryDirectory(dir="/tmp") as base:
            temporary = Path(base, parent)
            temporary.mkdir()
            monkeypatch.setattr("tempfile.tempdir", str(temporary))
            with private_folder() as folder:
                assert folder.parent == (temporary if kept else Path("/tmp"))
                assert folder.stat().st_mode & 0o777 == 0o700
                with socket.socket(socket.AF_UNIX) as admin:
                    admin.bind(str(GatewayFolder(folder).admin_socket))
            assert not folder.exists()


def test_a_private_folder_needs_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    with pytest.raises(InputError, match=r"Cannot make a folder in /nowhere: no such file or directory\."):
        private_folder().__enter__()
