"""A real admin port on a real balancer, whose sessions start and end without a network, at any number of pools."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from evenly.core import LearningRule, ThresholdPolicy
from evenly.live.addresses import Address
from evenly.live.admin.balancer_source import BalancerSource
from evenly.live.background import repeat, running
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.latency import Latency
from evenly.live.balancer.session import Session
from evenly.live.dashboard.feed import Feed
from evenly.live.dashboard.source import Part
from evenly.live.log import Log
from evenly.live.picker.event_log import EventLog

_STEP_S = 0.05


async def _same(address: Address) -> Address:
    return address


def _parts() -> list[Part]:
    envoy = Part(kind="Envoy", name="127.0.0.1:9901", reachable=True, age=4200.0, heard=0.2, sessions=512)
    return [envoy, Part(kind="Envoy", name="127.0.0.1:9902", reachable=False, age=300.0, heard=42.0, sessions=0)]


@dataclass
class BalancerPort:
    """The port, and what goes on behind it: `rate` sessions per second end, and as many start."""

    pools: int
    load: float
    rate: float = 0.0
    token: str | None = None
    seed: int = 1
    url: str = ""
    sessions: list[Session] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log = Log(None)
        events = EventLog(self.log)
        self._random = random.Random(self.seed)
        self.balancer = Balancer(
            ThresholdPolicy(int(self.load), LearningRule("0.9")),
            name="threshold",
            choose=self._random.choice,
            clock=time.monotonic,
            slow_start=1.0,
            report=events.write,
        )
        for number in range(self.pools):
            address = Address(f"10.0.{number // 250}.{number % 250 + 1}", 8080)
            self.balancer.set_well(self.balancer.add(address, address, slowly=False))
        for _ in range(round(self.pools * self.load)):
            self._open()
        self.feed = Feed(BalancerSource(self.balancer, _parts), self.log)

    @contextmanager
    def serving(self) -> Iterator[BalancerPort]:
        """Serve while the block runs, in a thread."""
        with socket.create_server(("127.0.0.1", 0)) as sock:
            address = Address("127.0.0.1", sock.getsockname()[1])
            self.url = f"http://{address}/"
            loop, stop = asyncio.new_event_loop(), asyncio.Event()
            thread = threading.Thread(
                target=lambda: asyncio.Runner(loop_factory=lambda: loop).run(self._serve(sock, address, stop))
            )
            thread.start()
            try:
                yield self
            finally:
                loop.call_soon_threadsafe(stop.set)
                thread.join()
                loop.close()

    async def _serve(self, sock: socket.socket, address: Address, stop: asyncio.Event) -> None:
        from evenly.live.admin.app import admin_app
        from evenly.live.admin.server import serve_admin

        app = admin_app(
            balancer=self.balancer,
            latency=Latency(),
            envoys=list,
            token=self.token,
            bound=address,
            resolve=_same,
            ready=lambda: True,
            publish=lambda: None,
            feed=self.feed,
        )
        async with (
            serve_admin(app, sock),
            running([self.feed.run(), repeat(self._step, _STEP_S, self.log)], self.log),
        ):
            await stop.wait()
            self.feed.close()

    def turn_over(self) -> None:
        """End a session, and start one."""
        if self.sessions:
            self._end()
        self._open()

    def _step(self) -> None:
        for _ in range(round(self.rate * _STEP_S)):
            self.turn_over()
        self.balancer.tick()

    def _open(self) -> None:
        session = self.balancer.open()
        if session is not None:
            self.sessions.append(session)

    def _end(self) -> None:
        at = self._random.randrange(len(self.sessions))
        self.sessions[at], self.sessions[-1] = self.sessions[-1], self.sessions[at]
        self.sessions.pop().close()
