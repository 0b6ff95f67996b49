"""Pool servers, each in a process of its own that can be killed, frozen and started again on its port."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from evenly.live.addresses import Address
from evenly.live.gateway.resources import reserved_port

_SERVER = Path(__file__).with_name("pool_server.py")
_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Numbers:
    """What a pool counts: sessions open now, requests that it never answers, requests since its start."""

    sessions: int = 0
    hanging: int = 0
    served: int = 0


class Pool:
    """One pool server, see `pool_server.py`."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Start it, and wait until it serves."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_SERVER), str(self.address.port)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,  # Ctrl-C reaches only this program, which ends the pools
        )
        assert self._process.stdout is not None
        async with asyncio.timeout(_TIMEOUT_S):
            if await self._process.stdout.readline() != b"ready\n":
                raise RuntimeError(f"The pool {self.address} did not start.")

    async def ask(self, command: str = "count") -> Numbers:
        """Send a command and return the pool's numbers: zeros if it is dead."""
        if self._process is None:
            return Numbers()
        assert self._process.stdin is not None and self._process.stdout is not None
        async with self._turn, asyncio.timeout(_TIMEOUT_S):
            self._process.stdin.write(f"{command}\n".encode())
            return Numbers(**json.loads(await self._process.stdout.readline()))

    async def kill(self) -> None:
        """End it and all its sessions."""
        if self._process is not None:
            self._process.kill()
            await self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Stop it until `thaw`."""
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it continue."""
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


@asynccontextmanager
async def pool_servers(count: int) -> AsyncIterator[list[Pool]]:
    """Start pools on ports that stay theirs, and end them with the block."""
    async with AsyncExitStack() as stack:
        pools = []
        for _ in range(count):
            pool = Pool(stack.enter_context(reserved_port(Address("127.0.0.1", 0))))
            stack.push_async_callback(pool.kill)
            pools.append(pool)
        await asyncio.gather(*(pool.start() for pool in pools))
        yield pools
