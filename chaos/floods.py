"""Steps that send much: streams, connections, bodies, resets, scrapes."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter

from chaos import attackers
from chaos.field import SETTLE_S, Field, eventually, in_background
from chaos.http import fetch, read_answer
from chaos.http2 import Http2Client
from chaos.innocents import begin
from chaos.steps import step

# A connection without a request, or with half of one, is cut off after seconds. Clients must be served again while
# the attack is on; this leaves room for a slow machine.
SERVED_DURING_S = 40.0
HOLD_S = 3.0
_STREAMS_ALLOWED = 100  # per connection, at least, by any server; with more, the attack is stronger
# How a gateway counts and reports clients that it refuses for lack of room.
REFUSED_METRIC = "evenly_refused_clients_total"
_REFUSED_EVENT = "clients refused"
_STARTED_EVENT = "picker is back"  # a new picker may report at once


@step
async def hanging_streams(field: Field, chance: random.Random) -> None:
    """HTTP/2 clients open more hanging streams than Envoy has files for."""
    connections = field.size.files // _STREAMS_ALLOWED + chance.randint(4, 20)
    async with attackers.hanging_streams(field.gateway.listen, connections) as clients:

        async def unanswered() -> tuple[int, int]:
            return sum(client.hanging for client in clients), await field.hanging()

        (open_streams, at_pools), answered = await eventually(
            unanswered, lambda seen: seen[0] <= seen[1], SETTLE_S
        )
        await asyncio.sleep(HOLD_S)
        _note_streams(field, clients, at_pools)
        field.expect(answered, f"{open_streams - at_pools} streams got neither a pool nor an answer")


def _note_streams(field: Field, clients: list[Http2Client], at_pools: int) -> None:
    opened = sum(len(client.opened) for client in clients)
    answers = [status for client in clients for status in client.answers.values()]
    field.note(streams=opened, at_pools=at_pools, answered=len(answers))
    wrong = sorted(set(answers) - {503})
    field.expect(not wrong, f"streams beyond the limit got {wrong}, not 503")


@step
async def rapid_resets(field: Field, chance: random.Random) -> None:
    """HTTP/2 clients open thousands of streams and reset each at once."""
    clients, streams = chance.randint(4, 10), chance.choice((500, 1000, 2000))
    connections = await attackers.rapid_resets(field.gateway.listen, clients, streams)
    field.note(resets=clients * streams, connections=connections)


@step
async def reset_posts(field: Field, chance: random.Random) -> None:
    """HTTP/2 clients send POSTs and reset them just when Envoy has opened a connection for each."""
    field.note(posts=await attackers.reset_posts(field.gateway.listen, chance.randint(8, 12), 6.0, chance))


@step
async def short_posts(field: Field, chance: random.Random) -> None:
    """Clients send POSTs one after the other, at pools that do not close the connection after the response."""
    statuses = Counter[int]()

    async def client() -> None:
        reader, writer = await asyncio.open_connection(*field.gateway.listen)
        try:
            for _ in range(400):
                writer.write(b"POST / HTTP/1.1\r\nhost: pools\r\ncontent-length: 0\r\n\r\n")
                status = (await read_answer(reader)).status
                statuses[status] += 1
                if not status:  # the connection is closed
                    return
        finally:
            writer.transport.abort()

    await asyncio.gather(*(client() for _ in range(chance.randint(10, 15))))
    field.note(posts=statuses.total())
    failed = statuses.total() - statuses[200]
    field.expect(failed == 0, f"{failed} of {statuses.total()} POSTs failed: {dict(statuses)}")


@step
async def silent_connections(field: Field, chance: random.Random) -> None:
    """More connections than Envoy accepts are open and never send a byte."""
    before = await field.gateway.metrics(REFUSED_METRIC)
    async with attackers.silent_connections(field.gateway.listen, field.size.files) as writers:
        await _served_during(field)
        field.note(connections=len(writers))
    await _reported(field, before)


@step
async def slow_headers(field: Field, chance: random.Random) -> None:
    """More connections than Envoy accepts send one byte of a header now and then."""
    start = attackers.slow_headers()
    async with attackers.slow_connections(field.gateway.listen, field.size.files, start, chance) as writers:
        await _served_during(field)
        field.note(connections=len(writers))


async def _served_during(field: Field) -> None:
    """Expect that a new client is served while the attack is on."""
    seconds = await field.served_again(SERVED_DURING_S)
    if seconds is None:
        field.expect(False, f"no new client was served within {SERVED_DURING_S:g} s of the attack")
    else:
        field.note(served_after=round(seconds, 1))


async def _reported(field: Field, before: float | None) -> None:
    """Expect that refused clients are counted, and logged at most once a minute.

    If the gateway had room for all of them, there is nothing to report.
    """
    if not field.record.refusals:
        return

    async def grown() -> bool:
        now = await field.gateway.metrics(REFUSED_METRIC)
        return now is not None and now > (before or 0)

    _, counted = await eventually(grown, bool, SETTLE_S)
    field.expect(counted, "no metric counts the refused clients")
    events = Counter(event.get("event") for event in field.gateway.events(0))
    lines = events[_REFUSED_EVENT]
    most = 1 + (time.monotonic() - field.started) / 60 + events[_STARTED_EVENT]
    field.expect(lines > 0, "the log does not report refused clients")
    field.expect(lines <= most, f"{lines} lines of the log report refused clients, more than one per minute")


@step
async def slow_bodies(field: Field, chance: random.Random) -> None:
    """Hundreds of POSTs send one byte of their body now and then."""
    count = chance.randint(100, 300)
    start = attackers.slow_body(2**20)
    async with attackers.slow_connections(field.gateway.listen, count, start, chance) as writers:
        await asyncio.sleep(HOLD_S)
        field.note(connections=len(writers))
        await _served_during(field)


@step
async def waiting_posts(field: Field, chance: random.Random) -> None:
    """Hundreds of POSTs of 1 MB wait for an answer."""
    (limits,) = [event for event in field.gateway.events(0) if event.get("event") == "limits"][-1:]
    free = limits["sessions"] - field.size.innocents
    count = chance.randint(free * 3 // 4, free * 9 // 10)  # all free places would keep new clients out
    async with attackers.waiting_posts(field.gateway.listen, count, 10**6) as writers:
        await asyncio.sleep(HOLD_S)
        field.note(posts=len(writers), at_pools=await field.hanging())
        await _served_during(field)


@step
async def scrape_storm(field: Field, chance: random.Random) -> None:
    """Scrapers read /metrics and /state as fast as they can while sessions begin."""
    state = await field.gateway.state()
    end = time.monotonic() + 5
    scrapes = 0

    async def scrape() -> None:
        nonlocal scrapes
        while time.monotonic() < end:
            await fetch(field.gateway.admin, chance.choice(("/metrics", "/state")))
            scrapes += 1

    async with in_background(asyncio.gather(*(scrape() for _ in range(16)))):
        failed = 0
        while time.monotonic() < end:
            innocent, reason = await begin(field.gateway.listen, lambda *_: None)
            innocent.vanish()
            failed += bool(reason)
    field.note(scrapes=scrapes)
    field.expect(failed == 0, f"{failed} sessions did not begin")
    after = await field.gateway.state()
    if state is None or after is None:
        field.expect(False, "/state did not answer")
        return
    unpicked = after["unpicked_sessions"] - state["unpicked_sessions"]
    field.expect(unpicked == 0, f"Envoy placed {unpicked} sessions itself: the picker answered too late")


@step
async def vanishing_clients(field: Field, chance: random.Random) -> None:
    """Clients vanish before they have an answer, or with a session open."""
    count = chance.randint(200, 500)
    for _ in range(0, count, 20):
        opened = await asyncio.gather(*(begin(field.gateway.listen, lambda *_: None) for _ in range(20)))
        for innocent, _ in opened:
            innocent.vanish()
    async with attackers.slow_connections(
        field.gateway.listen, count, b"GET /hang HTTP/1.1\r\nhost: pools\r\n\r\n", chance
    ):
        pass
    field.note(clients=2 * count)
