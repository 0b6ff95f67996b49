"""The field of a siege: a gateway, its pools and the innocents; and what a step expects and breaks on purpose."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from chaos.gateway import ENVOY, Gateway
from chaos.innocents import Crowd, Loss, crowd, try_once
from chaos.pools import Numbers, Pool, pool_servers
from chaos.processes import Usage, usage

_SAMPLE_S = 0.2
_POLL_S = 0.1
SETTLE_S = 20.0  # for counts to match and for clients to be served again; milliseconds on an idle machine
START_S = 60.0
LASTS_S = 0.5  # counts are right if they are after this time too

T = TypeVar("T")


@dataclass(frozen=True)
class Size:
    """How large a siege is."""

    pools: int = 20
    innocents: int = 500
    files: int = 4000


class Field:
    """A gateway under siege."""

    def __init__(self, gateway: Gateway, pools: list[Pool], people: Crowd, size: Size) -> None:
        self.gateway = gateway
        self.pools = pools
        self.people = people
        self.size = size
        self.started = time.monotonic()
        self.record = Record(0, frozenset())

    # --- what a step may say ----------------------------------------------------------------------------------

    def expect(self, holds: bool, otherwise: str) -> None:
        """Record a problem unless something holds."""
        if not holds:
            self.record.problems.append(otherwise)

    def note(self, **facts: object) -> None:
        """Record facts about the step for the report."""
        self.record.facts.update(facts)

    def forgive(self, pools: Iterable[Pool]) -> None:
        """Let the sessions of these pools end: the step kills them."""
        self.record.forgiven |= {str(pool.address) for pool in pools}

    def forgive_envoy(self) -> None:
        """Let all sessions that are open now end: the step kills Envoy."""
        self.record.envoy_killed = True
        self.record.lost_before = len(self.people.lost)
        self.record.open_before = len(self.people.open)

    # --- what is true -----------------------------------------------------------------------------------------

    async def numbers(self) -> dict[str, Numbers]:
        """Return what each pool counts."""
        found = await asyncio.gather(*(pool.ask() for pool in self.pools))
        return {str(pool.address): each for pool, each in zip(self.pools, found, strict=True)}

    async def hanging(self) -> int:
        """Return the number of requests that the pools never answer."""
        return sum(each.hanging for each in (await self.numbers()).values())

    async def counts(self) -> dict[str, int] | None:
        """Return the sessions of each pool as the picker counts them, or None without an answer."""
        state = await self.gateway.state()
        return None if state is None else {pool["address"]: pool["sessions"] for pool in state["pools"]}

    async def served_again(self, seconds: float) -> float | None:
        """Try new sessions until one is served. Return the seconds that it took, or None after `seconds`."""
        began = time.monotonic()
        while (now := time.monotonic()) < began + seconds:
            reason = await try_once(self.gateway.listen)
            if not reason:
                return now - began
            self.record.refusals.append(reason)
            await asyncio.sleep(_POLL_S)
        return None

    async def mismatch(self) -> dict[str, tuple[int | None, int]]:
        """Return the pools for which the picker's count and the pool's own differ: both numbers."""
        counts, truth = await asyncio.gather(self.counts(), self.numbers())
        if counts is None:
            return {"no answer from /state": (None, 0)}
        return {
            pool: (counts.get(pool), each.sessions)
            for pool, each in truth.items()
            if counts.get(pool, 0) != each.sessions
        }

    async def lasting_mismatch(self) -> dict[str, tuple[int | None, int]]:
        """Return the same, looking twice: counts that are right for a moment may be on their way."""
        wrong = await self.mismatch()
        if not wrong:
            await asyncio.sleep(LASTS_S)
            wrong = await self.mismatch()
        return wrong

    async def run_sampler(self) -> None:
        """Record the peaks of memory and files, until cancelled."""
        while True:
            for part, pid in self.gateway.pids().items():
                self.record.peaks[part] = self.record.peaks.get(part, Usage()).most(usage(pid))
            await asyncio.sleep(_SAMPLE_S)

    def losses(self) -> list[Loss]:
        """Return the innocents that the step lost and may not lose."""
        lost = self.people.lost[self.record.lost_before + self.record.open_before :]
        return [loss for loss in lost if loss.pool not in self.record.forgiven]

    def begin(self) -> None:
        """Begin the record of a step."""
        envoy = self.gateway.pids().get(ENVOY)
        self.record = Record(len(self.people.lost), frozenset() if envoy is None else frozenset({envoy}))
        self.record.refused_before = len(self.people.refused)
        self.record.log_before = self.gateway.log_size()


@dataclass
class Record:
    """What happens during a step."""

    lost_before: int
    envoys: frozenset[int]  # process ids at the beginning
    refused_before: int = 0
    log_before: int = 0
    envoy_killed: bool = False
    open_before: int = 0  # innocents that ended with Envoy: the first that were lost
    forgiven: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)
    peaks: dict[str, Usage] = field(default_factory=dict)


async def eventually(
    look: Callable[[], Awaitable[T]], wanted: Callable[[T], bool], seconds: float
) -> tuple[T, bool]:
    """Call `look` until `wanted` accepts its result. Return the last result and whether it was accepted."""
    deadline = time.monotonic() + seconds
    while True:
        last = time.monotonic() > deadline
        seen = await look()
        if wanted(seen) or last:
            return seen, wanted(seen)
        await asyncio.sleep(_POLL_S)


@asynccontextmanager
async def field_of(size: Size) -> AsyncIterator[Field]:
    """Start pools, a gateway and innocents, and wait until all innocents are served. All end with the block."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="evenly-chaos-")))
        pools = await stack.enter_async_context(pool_servers(size.pools))
        gateway = Gateway(folder, [pool.address for pool in pools], files=size.files)
        stack.push_async_callback(gateway.stop)
        await gateway.start()
        people = await stack.enter_async_context(crowd(gateway.listen, size.innocents))
        ground = Field(gateway, pools, people, size)
        if not await people.wait(START_S):
            why = people.refused[-1].reason if people.refused else "no reason"
            raise RuntimeError(f"Only {len(people.open)} of {size.innocents} innocents were served: {why}.")
        yield ground


@asynccontextmanager
async def in_background(work: Awaitable[object]) -> AsyncIterator[None]:
    """Do something during the block. An error in it is raised at the end."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        finished = task.done()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        if finished:
            task.result()
