"""`python -m chaos.upgrade`: replace a gateway again and again, under load, and count what is lost.

WebSocket sessions stay open and echo. Short requests arrive at a steady rate, each on a connection of its own, and
every tenth opens and closes a WebSocket. Clients with a persistent connection send one request after the other.
After each upgrade the sessions of half of the pools end and begin again, at the new gateway. The exit code is 0 if
nothing failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from chaos.http import fetch
from chaos.innocents import Crowd, begin
from chaos.pools import Pool, pool_servers
from evenly.live.addresses import Address
from evenly.live.gateway.resources import reserved_port
from evenly.live.picker.ready import Ready
from evenly.live.processes import raise_fd_limit

_PATIENCE_S = 120.0
_REQUEST_TIMEOUT_S = 20.0
_POLL_S = 0.1
_WEBSOCKET_EVERY = 10  # every tenth short request opens a WebSocket
_MOVED = 0.5  # the part of the pools whose sessions begin again after an upgrade
_GET = b"GET / HTTP/1.1\r\nhost: pools\r\n\r\n"
_GET_ONCE = b"GET / HTTP/1.1\r\nhost: pools\r\nconnection: close\r\n\r\n"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much traffic there is: open sessions, short requests per second, persistent connections."""

    pools: int = 10
    sessions: int = 1000
    rate: float = 300.0
    persistent: int = 20
    upgrades: int = 3
    seconds: float = 3.0  # of traffic before, between and after the upgrades


@dataclass(kw_only=True)
class Outcome:
    """What became of the traffic. `spreads` has those of the open sessions after each upgrade."""

    requests: int = 0
    websockets: int = 0
    on_persistent: int = 0
    failed: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    echoes: int = 0
    take_over_s: list[float] = field(default_factory=list)
    elsewhere: list[int] = field(default_factory=list)  # sessions of older gateways, after each upgrade
    spreads: list[int] = field(default_factory=list)
    exit_codes: list[int | None] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether nothing was lost or refused, and every gateway but the last ended by itself."""
        return not self.failed and not self.lost and all(code == 0 for code in self.exit_codes)


class Generation:
    """One gateway of the sequence, with its log."""

    def __init__(self, folder: Path, number: int, listen: Address, admin: Address, pools: Sequence[Pool]) -> None:
        self.log = folder / f"gateway-{number}.log"
        self.command = [
            *(sys.executable, "-m", "evenly", "gateway", "--take-over", "--ready-json"),
            *("--listen", str(listen), "--admin", str(admin), "--alpha", "0.5", "--drain-timeout", "86400"),
            *(word for pool in pools for word in ("--pool", str(pool.address))),
        ]
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start it, and wait until it serves."""
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        assert self.process.stdout is not None
        line = await asyncio.to_thread(self.process.stdout.readline)
        if not line:
            raise RuntimeError(f"The gateway did not start: {self.log.read_text()[-1000:]}")
        Ready.from_json(line.decode())

    async def ended(self) -> int | None:
        """Wait until it has ended by itself; return its exit code, None if it has not."""
        assert self.process is not None
        with suppress(subprocess.TimeoutExpired):
            return await asyncio.to_thread(self.process.wait, _PATIENCE_S)
        return None

    def kill(self) -> None:
        """End it if it runs."""
        if self.process is not None:
            assert self.process.stdout is not None
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()


class Load:
    """The traffic: a crowd of open sessions, and clients that come and go."""

    def __init__(self, listen: Address, admin: Address, plan: Plan) -> None:
        self.crowd = Crowd(listen, plan.sessions)
        self.outcome = Outcome()
        self._listen = listen
        self._admin = admin
        self._plan = plan
        self._stopping = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Generate traffic while the block runs. Requests on the way are waited for."""
        crowd = asyncio.create_task(self.crowd.run())
        try:
            if not await self.crowd.wait(_PATIENCE_S):
                raise RuntimeError(f"Only {len(self.crowd.open)} of the sessions began.")
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._arrivals(tasks))
                for _ in range(self._plan.persistent):
                    tasks.create_task(self._persistent())
                yield
                self._stopping = True
            self.outcome.lost += [loss.reason for loss in self.crowd.lost]
            self.outcome.failed += [loss.reason for loss in self.crowd.refused]
            self.outcome.echoes = sum(innocent.echoes for innocent in self.crowd.open)
        finally:
            crowd.cancel()
            await asyncio.wait([crowd])
            self.crowd.leave()

    async def _arrivals(self, tasks: asyncio.TaskGroup) -> None:
        """Send requests at a steady rate, whether or not the earlier ones are answered."""
        loop, number = asyncio.get_running_loop(), 0
        began = loop.time()
        while not self._stopping:
            number += 1
            tasks.create_task(self._short(number))
            await asyncio.sleep(max(began + number / self._plan.rate - loop.time(), 0))

    async def _short(self, number: int) -> None:
        if number % _WEBSOCKET_EVERY == 0:
            session, reason = await begin(self._listen, lambda _, why: self.outcome.lost.append(why))
            if reason:
                self.outcome.failed.append(f"WebSocket: {reason}")
            else:
                self.outcome.websockets += 1
                session.leave()
            return
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                reader, writer = await asyncio.open_connection(*self._listen)
                writer.write(_GET_ONCE)
                answer = await reader.read()
                writer.close()
        except (OSError, TimeoutError) as error:
            self.outcome.failed.append(f"request: {error!r}")
            return
        self._judge(answer, "request")
        self.outcome.requests += 1

    def _judge(self, answer: bytes, kind: str) -> None:
        if not answer.startswith(b"HTTP/1.1 200 "):
            self.outcome.failed.append(f"{kind}: {answer[:60]!r}")

    async def _persistent(self) -> None:
        """Send requests on one connection until the gateway asks to close it, then open another."""
        while not self._stopping:
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    reader, writer = await asyncio.open_connection(*self._listen)
            except (OSError, TimeoutError) as error:
                self.outcome.failed.append(f"connection: {error!r}")
                continue
            try:
                while not self._stopping and await self._exchange(reader, writer):
                    await asyncio.sleep(random.uniform(0.05, 0.15))
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                self.outcome.failed.append(f"persistent connection: {error!r}")
            finally:
                writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Send one request; return whether the connection may carry another."""
        async with asyncio.timeout(_REQUEST_TIMEOUT_S):
            writer.write(_GET)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(length)
        self._judge(head.replace(b"http", b"HTTP", 1), "persistent request")
        self.outcome.on_persistent += 1
        return b"connection: close" not in head

    async def move(self) -> None:
        """End the sessions of some pools, and begin as many again when the new gateway knows that they ended.

        A gateway that did not know of the sessions left in the old one would spread the new ones over all pools.
        """
        pools = sorted({innocent.pool for innocent in self.crowd.open})
        emptied = pools[: int(_MOVED * len(pools))]
        moved = [innocent for innocent in self.crowd.open if innocent.pool in emptied]
        self.crowd.size -= len(moved)
        for innocent in moved:
            innocent.leave()
            self.crowd.open.discard(innocent)
        await _elsewhere(self._admin, lambda sessions: sessions == len(self.crowd.open))
        self.crowd.size += len(moved)
        await self.crowd.wait(_PATIENCE_S)

    def spread(self) -> int:
        """Return the open sessions of the crowd at the fullest pool minus those at the emptiest."""
        sessions = Counter(innocent.pool for innocent in self.crowd.open)
        fewest = min(sessions.values()) if len(sessions) == self._plan.pools else 0
        return max(sessions.values()) - fewest


async def run(plan: Plan, folder: Path) -> Outcome:
    """Replace a gateway `plan.upgrades` times under load."""
    async with AsyncExitStack() as stack:
        pools = await stack.enter_async_context(pool_servers(plan.pools))
        listen, admin = (stack.enter_context(reserved_port(Address("127.0.0.1", 0))) for _ in range(2))
        generations = [Generation(folder, i, listen, admin, pools) for i in range(plan.upgrades + 1)]
        for generation in generations:
            stack.callback(generation.kill)
        await generations[0].start()
        load = Load(listen, admin, plan)
        async with load.running():
            await asyncio.sleep(plan.seconds)
            for generation in generations[1:]:
                began = time.monotonic()
                await generation.start()
                load.outcome.take_over_s.append(time.monotonic() - began)
                counted = await _elsewhere(admin, lambda sessions: sessions >= plan.sessions)
                load.outcome.elsewhere.append(counted)
                await load.move()
                load.outcome.spreads.append(load.spread())
                await asyncio.sleep(plan.seconds)
        for generation in generations[:-1]:  # their last sessions have ended
            load.outcome.exit_codes.append(await generation.ended())
        return load.outcome


async def _elsewhere(admin: Address, wanted: Callable[[int], bool]) -> int:
    """Return the sessions of older gateways that the newest counts. Wait until it counts as many as wanted."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        answer = await fetch(admin, "/state")
        sessions: int = sum(pool["elsewhere"] for pool in json.loads(answer.text)["pools"])
        if wanted(sessions) or time.monotonic() > deadline:
            return sessions
        await asyncio.sleep(_POLL_S)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it and print the outcome; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m chaos.upgrade", description=__doc__)
    usual = Plan()
    parser.add_argument("--pools", type=int, default=usual.pools)
    parser.add_argument("--sessions", type=int, default=usual.sessions, help="open WebSockets")
    parser.add_argument("--rate", type=float, default=usual.rate, help="short requests per second")
    parser.add_argument("--persistent", type=int, default=usual.persistent, help="clients that keep a connection")
    parser.add_argument("--upgrades", type=int, default=usual.upgrades)
    parser.add_argument("--seconds", type=float, default=usual.seconds, help="traffic between upgrades")
    plan = Plan(**vars(parser.parse_args(arguments)))
    raise_fd_limit()
    with TemporaryDirectory() as folder:
        outcome = asyncio.run(run(plan, Path(folder)))
    print(f"{plan.upgrades} upgrades with {plan.sessions} open WebSockets, {outcome.echoes} echoes")
    print(f"WebSockets lost: {len(outcome.lost)} {outcome.lost[:3] or ''}")
    print(
        f"requests: {outcome.requests} short, {outcome.on_persistent} on persistent connections, "
        f"{outcome.websockets} short WebSockets; failed: {len(outcome.failed)} {outcome.failed[:3] or ''}"
    )
    print(f"seconds until the new gateway served: {', '.join(f'{s:.1f}' for s in outcome.take_over_s)}")
    print(f"sessions of older gateways that the new one counted: {', '.join(map(str, outcome.elsewhere))}")
    print(f"fullest minus emptiest pool after each upgrade: {', '.join(map(str, outcome.spreads))}")
    print(f"exit codes of the older gateways: {', '.join(map(str, outcome.exit_codes))}")
    return 0 if outcome.passed else 1


if __name__ == "__main__":
    sys.exit(main())
