"""The sessions of gateways that were replaced, read from admin sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from evenly.live.gateway_folder import GatewayFolder
from evenly.live.log import Log
from evenly.live.picker.predecessors import Predecessors
from tests.live.processes import PATIENCE
from tests.live.test_admin_address import UnixPort
from tests.live.test_balancer import Scene
from tests.live.test_fleet import POOL


def test_the_sessions_are_known_when_every_gateway_has_answered() -> None:
    """The admin socket of the second one is not there at first."""

    async def play(folders: list[Path]) -> None:
        scene = Scene("threshold")
        pool = scene.balancer.add(POOL, POOL, slowly=False)
        one, other = (UnixPort(GatewayFolder(folder).admin_socket) for folder in folders)
        one.show(30)
        other.show(12)
        predecessors = Predecessors(folders, scene.balancer, Log(None))
        await one.start()
        running = asyncio.create_task(predecessors.run())
        while pool.elsewhere == 0:
            await asyncio.sleep(0.01)
        waiting = asyncio.create_task(predecessors.wait_known(PATIENCE))
        await other.start()
        await waiting
        assert (pool.elsewhere, scene.balancer.threshold) == (42, 42)
        running.cancel()
        await asyncio.wait([running])
        for port in (one, other):
            await port.stop()

    with TemporaryDirectory(dir="/tmp") as one, TemporaryDirectory(dir="/tmp") as other:
        asyncio.run(asyncio.wait_for(play([Path(one), Path(other)]), 2 * PATIENCE))
