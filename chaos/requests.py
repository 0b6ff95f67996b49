"""Steps with requests that are malformed, forged or foreign, and with pools that answer in unusual ways."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

from chaos.field import SETTLE_S, Field
from chaos.gateway import ENVOY
from chaos.http import NO_ANSWER, Answer, exchange, exchange_reading_on, fetch, read_answer, request
from chaos.processes import listening_paths, listening_ports
from chaos.steps import step
from evenly.live.addresses import Address

# Requests that are wrong or rare, and the statuses that are right for each.
ODD_REQUESTS: dict[str, tuple[bytes, set[int]]] = {
    "HTTP/1.0": (b"GET / HTTP/1.0\r\nhost: pools\r\n\r\n", {200}),
    "HTTP/1.0 without a host": (b"GET / HTTP/1.0\r\n\r\n", {200, 400}),
    "HTTP/1.1 without a host": (b"GET / HTTP/1.1\r\n\r\n", {400}),
    "a malformed request line": (b"GET\r\n\r\n", {400}),
    "a malformed header": (b"GET / HTTP/1.1\r\nhost: pools\r\nbad header\r\n\r\n", {400}),
    "two lengths": (
        b"POST / HTTP/1.1\r\nhost: pools\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
        {400},
    ),
    "a header of 100 kB": (b"GET / HTTP/1.1\r\nhost: pools\r\nx: " + b"x" * 100_000 + b"\r\n\r\n", {431}),
    "200 headers": (b"GET / HTTP/1.1\r\nhost: pools\r\n" + b"x: y\r\n" * 200 + b"\r\n", {431}),
    "OPTIONS *": (b"OPTIONS * HTTP/1.1\r\nhost: pools\r\nconnection: close\r\n\r\n", {200, 204}),
}
_FORBIDDEN = {400, 401, 403, 421}


@step
async def odd_requests(field: Field, chance: random.Random) -> None:
    """HTTP/1.0, malformed and oversized requests: each gets a proper answer."""
    names = list(ODD_REQUESTS)
    chance.shuffle(names)
    for name in names:
        sent, right = ODD_REQUESTS[name]
        answers = await asyncio.gather(*(exchange(field.gateway.listen, sent) for _ in range(3)))
        wrong = [answer for answer in answers if answer.status not in right]
        field.expect(not wrong, f"{name}: {_shown(wrong)}, not {' or '.join(map(str, sorted(right)))}")


@step
async def half_closed_clients(field: Field, chance: random.Random) -> None:
    """Clients close their side after the request. Envoy may take them for gone, but must not wait for them.

    Envoy cannot tell such a client from one that has vanished, so an answer is welcome but not required.
    """
    answers = await asyncio.gather(
        *(
            exchange(field.gateway.listen, request("GET", path), half_close=True)
            for path in ("/", "/hang")
            for _ in range(chance.randint(10, 40))
        )
    )
    field.note(answered=sum(answer.status == 200 for answer in answers))
    hanging = sum(answer.text == NO_ANSWER for answer in answers)
    field.expect(hanging == 0, f"{hanging} of {len(answers)} connections stay open")


@step
async def forged_headers(field: Field, chance: random.Random) -> None:
    """Clients forge the headers and the addresses that choose a pool."""
    visitors = 0

    async def trap(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal visitors
        visitors += 1
        writer.transport.abort()

    decoy = await asyncio.start_server(trap, "127.0.0.1", 0)
    drained = str(chance.choice(field.pools).address)
    await admin_accepts(field, "POST", f"/pools/{drained}/drain")
    served: Counter[str] = Counter()
    try:
        for target in (f"127.0.0.1:{decoy.sockets[0].getsockname()[1]}", drained):
            for answer in await asyncio.gather(
                *(exchange(field.gateway.listen, _forged(target)) for _ in range(20))
            ):
                served[answer.text if answer.status == 200 else _shown([answer])] += 1
    finally:
        decoy.close()
        await decoy.wait_closed()
        await admin_accepts(field, "POST", f"/pools/{drained}/undrain")
    others = {str(pool.address) for pool in field.pools} - {drained}
    field.expect(visitors == 0, f"{visitors} requests reached a server that is no pool")
    field.expect(served[drained] == 0, f"{served[drained]} requests reached the draining pool that they named")
    wrong = sorted(set(served) - others - {drained})
    field.expect(not wrong, f"other answers than those of pools: {', '.join(wrong)}")


def _forged(target: str) -> bytes:
    """Return a request that names a server wherever a gateway might look for one."""
    return request(
        "GET",
        "/",
        x_gateway_destination_endpoint=target,
        x_evenly_envoy=target,
        x_envoy_original_dst_host=target,
        x_envoy_retry_on="5xx",
        x_envoy_max_retries="100",
        x_forwarded_host=target,
    )


@step
async def foreign_admin_requests(field: Field, chance: random.Random) -> None:
    """Web pages of other sites try to change pools over the admin port."""
    admin = field.gateway.admin
    victim = chance.choice(field.pools).address
    ours = str(admin)
    callers = [
        {"host": "evil.com"},
        {"host": "[::1]evil.com"},
        {"host": f"127.0.0.1.evil.com:{admin.port}"},
        {"host": ours, "origin": "http://evil.com"},
        {"host": ours, "origin": "null"},
    ]
    chance.shuffle(callers)
    for caller in callers:
        for method, path in (
            ("DELETE", f"/pools/{victim}"),
            ("POST", f"/pools/{victim}/drain"),
            ("GET", "/state"),
        ):
            answer = await exchange(admin, request(method, path, b"", **caller))
            field.expect(
                answer.status in _FORBIDDEN, f"{method} {path.split('/')[1]} with {caller} got {_shown([answer])}"
            )
    state = await field.gateway.state()
    states = {} if state is None else {pool["address"]: pool["state"] for pool in state["pools"]}
    field.expect(states.get(str(victim)) not in (None, "draining"), "a foreign request changed a pool")


@step
async def envoy_admin_attacked(field: Field, chance: random.Random) -> None:
    """A local user finds Envoy's own admin port and tells it to stop listening."""
    envoy = field.gateway.pids().get(ENVOY)
    ports = sorted(listening_ports(envoy) - {field.gateway.listen.port}) if envoy else []
    sockets = listening_paths(envoy) if envoy else set()
    field.note(ports=len(ports))
    for socket in sockets:
        field.expect(not socket.stat().st_mode & 0o077, f"other users may open {socket.name}")
    for port in ports:
        for path in ("/drain_listeners", "/healthcheck/fail", "/quitquitquit"):
            forged = request("POST", path, host="evil.com", origin="http://evil.com")
            answer = await exchange(Address("127.0.0.1", port), forged)
            field.expect(answer.status != 200, f"Envoy obeyed POST {path} of a foreign page")
    seconds = await field.served_again(SETTLE_S)
    field.expect(seconds is not None, "the gateway is deaf")
    if seconds is None:
        field.expect(await field.gateway.ready() != 200, "the gateway is deaf while /readyz is 200")


@step
async def stale_keep_alive(field: Field, chance: random.Random) -> None:
    """Pools close idle connections just as Envoy sends the next request on them."""
    idle = chance.uniform(0.02, 0.06)
    await asyncio.gather(*(pool.ask(f"idle {idle}") for pool in field.pools))
    statuses: Counter[int] = Counter()

    async def client(waits: list[float]) -> None:
        reader, writer = await asyncio.open_connection(*field.gateway.listen)
        try:
            for wait in waits:
                writer.write(b"GET / HTTP/1.1\r\nhost: pools\r\n\r\n")
                statuses[(await read_answer(reader)).status] += 1
                await asyncio.sleep(wait)
        finally:
            writer.transport.abort()

    try:
        waits = [[chance.uniform(0.9, 1.1) * idle for _ in range(100)] for _ in range(30)]
        await asyncio.gather(*(client(each) for each in waits))
    finally:
        await asyncio.gather(*(pool.ask("idle 0") for pool in field.pools))
    field.note(requests=statuses.total())
    failed = statuses.total() - statuses[200]
    field.expect(failed == 0, f"{failed} of {statuses.total()} requests failed: {dict(statuses)}")


@step
async def early_answers(field: Field, chance: random.Random) -> None:
    """Pools answer 413 and close before the body has come.

    If a pool resets the connection while the body is on its way, the answer may be lost in the network. It never
    is if the client asks first, or if the pool reads on.
    """
    body = bytes(chance.randint(2, 4) * 10**6)
    head = request("POST", "/early", content_length=str(len(body)), expect="100-continue")
    asks_first = head.replace(b"content-length: 0\r\n", b"")
    for name, sent in (("asked first", asks_first), ("sent all", request("POST", "/early/polite", body))):
        answers = await asyncio.gather(*(exchange_reading_on(field.gateway.listen, sent) for _ in range(10)))
        wrong = [answer for answer in answers if answer.status != 413]
        field.expect(not wrong, f"{len(wrong)} of {len(answers)} that {name} got {_shown(wrong)}, not 413")


def _shown(answers: list[Answer]) -> str:
    return ", ".join(sorted({str(answer.status) if answer.status else answer.text for answer in answers}))


async def admin_accepts(field: Field, method: str, path: str, body: bytes = b"") -> None:
    """Send a request of the operator, and expect that it succeeds."""
    answer = await fetch(field.gateway.admin, path, method, body)
    field.expect(200 <= answer.status < 300, f"{method} {path} got {_shown([answer])}")
