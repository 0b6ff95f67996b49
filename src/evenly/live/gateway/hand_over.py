"""A new gateway takes over from the running one: the running side. `take_over.py` describes the protocol."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evenly.live.addresses import Address
from evenly.live.gateway.take_over import ASK, DRAINS, MAX_MESSAGE, READY, meeting_point, peer, send_with
from evenly.live.gateway_folder import GatewayFolder
from evenly.live.log import Log

_TIMEOUT_S = 5.0  # for the question of a gateway that has connected
_ADMIN_S = 5.0  # for the picker to leave the admin port
_POLL_S = 0.05
_BACKLOG = 8


@dataclass(frozen=True, kw_only=True)
class Estate:
    """What a gateway hands over: its folder and those of its predecessors, and its sockets."""

    folders: list[Path]
    listen: socket.socket
    admin: socket.socket
    admin_address: Address


class HandOver:
    """Waits for a gateway that takes over. `done` is set when it serves the clients and the admin port."""

    def __init__(self, listen: Address, estate: Estate, folder: GatewayFolder, log: Log) -> None:
        self._listen = listen
        self._estate = estate
        self._folder = folder
        self._log = log
        self._taker: int | None = None  # the process that is taking over
        self._tasks: set[asyncio.Task[None]] = set()
        self._meeting: socket.socket | None = None
        self.done = asyncio.Event()

    def open(self) -> None:
        """Start to wait. Without a place to wait, the gateway runs, and cannot be replaced."""
        meeting = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        try:
            meeting.bind(meeting_point(self._listen))
            meeting.listen(_BACKLOG)
        except OSError as error:
            meeting.close()
            self._log.event("no take-over possible", reason=str(error))
            return
        self._meeting = meeting
        self._start(self._accept(meeting))

    def close(self) -> None:
        """Wait no longer."""
        for task in list(self._tasks):
            task.cancel()
        if self._meeting is not None:
            self._meeting.close()
            self._meeting = None

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, meeting: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(meeting)
            connection.setblocking(False)
            self._start(self._serve(connection))

    async def _serve(self, connection: socket.socket) -> None:
        """Serve one gateway that wants to take over. An error ends only this attempt."""
        pid, user = peer(connection)
        with connection, suppress(OSError, TimeoutError):
            if user == os.geteuid() and await self._is_asked(connection):
                await self._hand_over(connection, pid)

    async def _is_asked(self, connection: socket.socket) -> bool:
        async with asyncio.timeout(_TIMEOUT_S):
            return await asyncio.get_running_loop().sock_recv(connection, MAX_MESSAGE) == ASK

    async def _hand_over(self, connection: socket.socket, pid: int) -> None:
        if self._taker is not None:
            reason = (
                f"Process {self._taker} is already taking over from the gateway at {self._listen}; wait for it."
            )
            send_with(connection, {"refused": reason}, [])
            return
        self._taker = pid
        try:
            self._log.event("take-over begins", pid=pid)
            estate = self._estate
            answer = {"folders": [*map(str, estate.folders)], "admin": str(estate.admin_address)}
            send_with(connection, answer, [estate.listen, estate.admin])
            heard = await asyncio.get_running_loop().sock_recv(connection, MAX_MESSAGE)
            if heard == READY:
                if self._meeting is not None:
                    self._meeting.close()  # the new gateway waits there now
                    self._meeting = None
                await self._leave_admin_port()
                self.done.set()
                connection.send(DRAINS)
            else:
                self._log.event("take-over given up", pid=pid)
        finally:
            self._taker = None

    async def _leave_admin_port(self) -> None:
        """Wait until the picker has left the admin port: then every answer there is the new gateway's."""
        self._folder.set_handed_over()
        with suppress(TimeoutError):  # a picker that hangs must not keep this gateway from draining
            async with asyncio.timeout(_ADMIN_S):
                while not self._folder.admin_left:
                    await asyncio.sleep(_POLL_S)
