"""How long picks wait while the picker answers its admin port: the longest wait, with and without requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench import straight
from bench.measure import Figure
from bench.processes import Process, Processes, evenly_picker, free_addresses
from evenly.live.addresses import Address

SIZES = 20, 1000  # pools; none of them is there, since the picker only chooses
PATHS = None, "/metrics", "/state", "/docs", "/openapi.json"
PACE = 1000.0  # picks per second: two in the time that a scrape may take
SCRAPES_PER_SECOND = 20.0


async def scrape(admin: Address, path: str) -> None:
    """Ask for a path again and again until cancelled, over one connection."""
    reader, writer = await asyncio.open_connection(*admin)
    try:
        while True:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {admin}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200 "):
                raise RuntimeError(head.decode())
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            await asyncio.sleep(1 / SCRAPES_PER_SECOND)
    finally:
        writer.close()


async def waits(picks: Address, admin: Address, path: str | None, seconds: float) -> list[float]:
    """Return how long the picks of one round waited, while a path was asked for."""
    scraping = None if path is None else asyncio.create_task(scrape(admin, path))
    try:
        return await straight.answer_times(picks, PACE, seconds)
    finally:
        if scraping is not None:
            if scraping.done():
                scraping.result()
            scraping.cancel()


@contextmanager
def pickers(sizes: Sequence[int]) -> Iterator[dict[int, tuple[Process, Address, Address]]]:
    """Start one picker per number of pools, all at once."""
    found = {}
    with Processes() as processes:
        for size in sizes:
            picks, admin = free_addresses(2)
            pools = [Address("127.0.0.1", 40_000 + number) for number in range(size)]
            found[size] = (processes.add(evenly_picker(picks, admin, pools)), picks, admin)
        processes.wait()
        yield found


def scrapes(rounds: int, scale: float) -> Iterator[Figure]:
    """Yield the longest wait in the calmest round. Every round has many requests, so that a block shows in each.

    A busy machine only adds to a wait, and rarely in all rounds.
    """
    seconds = max(0.4 * scale, 0.5)
    with pickers(SIZES) as found:
        time.sleep(1)  # the first seconds of a process are not typical
        for size, (_, picks, admin) in found.items():
            longest: dict[str | None, list[float]] = {path: [] for path in PATHS}
            for _ in range(rounds):
                for path in PATHS:  # in turn, so that a busy machine disturbs all alike
                    longest[path].append(1000 * max(asyncio.run(waits(picks, admin, path, seconds))))
            for path, waited in longest.items():
                reading = "no requests" if path is None else f"{path} {SCRAPES_PER_SECOND:g} times per second"
                yield Figure(f"{size:,} pools, {reading}", min(waited), "ms")
