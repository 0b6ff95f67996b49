"""How fast a picker is: session starts a second, processor time for each, and the time that it adds to a request.

Load generator, Envoy, pools and picker share the cores of one machine, so the rate that comes through tells what
they cost together. The picker's own share is its processor time for each session; what a whole core reaches is
also tried, by a client that tells the picker of sessions as Envoy does, and costs less.
"""

from __future__ import annotations

import asyncio
import copy
import json
import math
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import rivals
from bench.measure import Figure
from evenly.live.addresses import Address
from evenly.live.envoy.config import envoy_config
from evenly.live.picker import ext_proc
from evenly.live.wire import frames
from evenly.live.wire.protobuf import field, struct

POOLS = 20
GOAL = 5000  # session starts a second
PACE = GOAL / 2
CONNECTIONS = 64


@dataclass(frozen=True)
class Rig:
    """A picker behind a real Envoy, whose pools answer at once; `plain` is the same Envoy without the picker."""

    processes: rivals.Processes
    picker: rivals.Process
    picks_at: Address
    gateway: Address
    plain: Address
    envoy_admin: Address

    def picker_seconds(self) -> float:
        """Processor time that the picker has used."""
        return rivals.cpu_seconds(self.picker.number)

    def unpicked(self) -> int:
        """Requests that Envoy let pass because the picker did not answer in time, so far."""
        return self._stat("ext_proc.failure_mode_allowed")

    def wait(self) -> None:
        """Until the pools are known to be well: their first check may have come before they listened."""
        self.processes.wait()
        for _ in rivals.tries("Envoy's health checks of the pools fail"):
            if self._stat("cluster.pools.membership_healthy") == POOLS:
                return

    def _stat(self, name: str) -> int:
        answer = rivals.fetch(f"http://{self.envoy_admin}/stats?filter={name}$")
        if not answer:
            raise RuntimeError(f"Envoy does not tell its statistic {name}")
        return sum(int(line.rpartition(":")[2]) for line in answer.splitlines())


@contextmanager
def started(folder: Path, *, naive: bool = False) -> Iterator[Rig]:
    """Start all of it, and stop it with the block."""
    gateway, plain, envoy_admin, listen, admin, *pools = rivals.free_addresses(5 + POOLS)
    config = envoy_config(listen=gateway, picker=listen, pools=pools, admin=envoy_admin, health_path=None)
    listeners = config["static_resources"]["listeners"]
    listeners.append(without_picker(listeners[0], plain))
    listeners.extend(rivals.answering(pool) for pool in pools)
    if naive:
        config["static_resources"]["clusters"][1].pop("health_checks")  # it has no health service
    with rivals.Processes() as processes:
        picker = rivals.naive_picker(listen, pools) if naive else rivals.evenly_picker(listen, admin, pools)
        processes.add(picker)
        processes.add(rivals.envoy(config, folder, concurrency=2))
        yield Rig(processes, picker, listen, gateway, plain, envoy_admin)


def without_picker(listener: rivals.Config, address: Address) -> rivals.Config:
    """The same listener elsewhere, without the filter that asks the picker: the cluster's fallback chooses."""
    made = copy.deepcopy(listener)
    made["name"] = "plain"
    made["address"]["socket_address"]["port_value"] = address.port
    manager = made["filter_chains"][0]["filters"][0]["typed_config"]
    manager["http_filters"] = [entry for entry in manager["http_filters"] if "ext_proc" not in json.dumps(entry)]
    return made


# --- as many as come through ----------------------------------------------------------------------------------


class Flood:
    """What came through, round by round: starts a second, and the picker's processor time for each."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.costs: list[float] = []

    def add(self, starts: float, seconds: float, cpu: float) -> None:
        """Note a round."""
        self.rates.append(starts / seconds)
        self.costs.append(cpu / starts)

    def figures(self, name: str, goal: float | None = None) -> list[Figure]:
        """Lines of the table."""
        cost = statistics.median(self.costs)
        return [
            Figure(f"{name}: starts through Envoy, all on these cores", statistics.median(self.rates), "/s"),
            Figure(f"{name}: processor time of the picker for a session", cost * 1e6, "µs"),
            Figure(f"{name}: starts by that time on a whole core", 1 / cost if cost else math.inf, "/s", goal),
        ]


def wrk(program: str, address: Address, seconds: float) -> int:
    """Requests that were answered well."""
    options = ["-c", str(CONNECTIONS), "-t", "1", "-d", f"{max(round(seconds), 1)}s"]
    command = [program, *options, f"http://{address}/"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"(\d+) requests in", said)
    if found is None or "Non-2xx" in said:
        raise RuntimeError(f"wrk says: {said}")
    return int(found[1])


def floods(ours: Rig, theirs: Rig, rounds: int, seconds: float) -> list[Figure]:
    """All that comes through, for evenly's picker, the naive one and none, in turn."""
    program = shutil.which("wrk")
    if program is None:
        return [Figure("starts through Envoy", math.nan, "wrk is not installed")]
    evenly, naive, plain = Flood(), Flood(), []
    for _ in range(rounds):
        for rig, flood in ((ours, evenly), (theirs, naive)):
            before, missed, began = rig.picker_seconds(), rig.unpicked(), time.perf_counter()
            answered = wrk(program, rig.gateway, seconds)
            took, cpu = time.perf_counter() - began, rig.picker_seconds() - before
            flood.add(answered - (rig.unpicked() - missed), took, cpu)
        began = time.perf_counter()
        plain.append(wrk(program, ours.plain, seconds) / (time.perf_counter() - began))
    return [
        *evenly.figures("evenly", GOAL),
        *naive.figures("naive grpc.aio picker"),
        Figure("no picker: requests through Envoy", statistics.median(plain), "/s"),
    ]


# --- at a constant rate ---------------------------------------------------------------------------------------


async def at_pace(seconds: float, send: Callable[[], None], times: list[float]) -> list[float]:
    """Send at the pace, whatever comes back: a server that stalls does not slow its clients down.

    Returns the times of the answers, which gather in `times`; what gets none took for ever.
    """
    began, sent = time.perf_counter(), 0
    while sent < int(PACE * seconds):
        due = int((time.perf_counter() - began) * PACE) + 1
        for _ in range(sent, due):
            send()
        sent = due
        await asyncio.sleep(began + sent / PACE - time.perf_counter())
    deadline = time.perf_counter() + 5
    while len(times) < sent and time.perf_counter() < deadline:
        await asyncio.sleep(0.01)
    return times + [math.inf] * (sent - len(times))


class Requests:
    """HTTP/1.1 requests over connections that stay open; the time of each from its turn to its answer."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self._idle: list[RequestConnection] = []
        self._waiting: deque[float] = deque()

    @asynccontextmanager
    async def connected(self, address: Address) -> AsyncIterator[None]:
        """Open the connections, and close them with the block."""
        loop = asyncio.get_running_loop()
        opened = [
            await loop.create_connection(lambda: RequestConnection(self), address.host, address.port)
            for _ in range(CONNECTIONS)
        ]
        try:
            yield
        finally:
            for transport, _ in opened:
                transport.close()

    def send(self) -> None:
        """Send a request on the connection that was used last, or let it wait for one."""
        turn = time.perf_counter()
        if self._idle:
            self._idle.pop().ask(turn)
        else:
            self._waiting.append(turn)

    def free(self, connection: RequestConnection) -> None:
        """A connection can take the next request."""
        if self._waiting:
            connection.ask(self._waiting.popleft())
        else:
            self._idle.append(connection)


class RequestConnection(asyncio.Protocol):
    """One of those connections."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._turn = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready for the first request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._requests.free(self)

    def ask(self, turn: float) -> None:
        """Send a request whose turn came at this time."""
        self._turn = turn
        self._transport.write(b"GET / HTTP/1.1\r\nHost: bench\r\n\r\n")

    def data_received(self, data: bytes) -> None:
        """Note the time of a whole answer."""
        if data.endswith(rivals.HELLO.encode()):
            self._requests.times.append(time.perf_counter() - self._turn)
            self._requests.free(self)


class Sessions(asyncio.Protocol):
    """Sessions straight to a picker, as Envoy tells of them: headers, answer, headers, answer, reset."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.again = False  # whether a session that is over is followed by another
        self._turns: dict[bytes, float] = {}
        self._next = 1
        self._rest = b""
        self._served: dict[bytes, bytes] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say hello, with room for all answers to come."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        room = frames.frame(frames.WINDOW_UPDATE, 0, frames.NO_STREAM, frames.WORD.pack(2**30))
        transport.write(frames.PREFACE + frames.frame(frames.SETTINGS, 0, frames.NO_STREAM, b"") + room)

    def send(self) -> None:
        """Begin a session."""
        name = frames.WORD.pack(self._next)
        self._next += 2
        self._turns[name] = time.perf_counter()
        opening = frames.frame(frames.HEADERS, frames.END_HEADERS, name, _OPENING)
        self._transport.write(opening + frames.frame(frames.DATA, 0, name, _REQUEST))

    def data_received(self, data: bytes) -> None:
        """Act on the answers."""
        data, at = self._rest + data, 0
        out = []
        while len(data) - at >= 9:
            after = at + 9 + (frames.WORD.unpack_from(data, at)[0] >> 8)
            if after > len(data):
                break
            if data[at + 3] == frames.DATA:
                out.append(self._answered(data[at + 5 : at + 9], data[at + 9 : after]))
            at = after
        self._rest = data[at:]
        self._transport.write(b"".join(out))

    def _answered(self, name: bytes, answer: bytes) -> bytes:
        turn = self._turns.pop(name, None)
        if turn is None:  # the second answer: the session is over
            if self.again:
                self.send()
            return frames.frame(frames.RST_STREAM, 0, name, frames.WORD.pack(2))
        self.times.append(time.perf_counter() - turn)
        pool = answer[answer.rindex(rivals.HOST.encode()) :]
        if pool not in self._served:
            self._served[pool] = _response(pool.decode())
        return frames.frame(frames.DATA, 0, name, self._served[pool])


def _literal(name: bytes, value: bytes) -> bytes:
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


def _response(pool: str) -> bytes:
    """Headers of a response, with the pool that served."""
    told = struct(dict.fromkeys((ext_proc.PICKED, ext_proc.SERVED), pool))
    namespace = field(1, ext_proc.NAMESPACE) + field(2, told)
    return frames.framed(field(3, field(1, b"")) + field(8, field(1, namespace)))


_OPENING = b"\x83\x86" + b"".join(  # POST, http
    _literal(name, value)
    for name, value in (
        (b":path", ext_proc.PATH),
        (b":authority", b"picker"),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
    )
)
_REQUEST = frames.framed(field(2, field(1, field(1, field(1, ":method") + field(3, "GET"))) + field(3, 1)))


async def straight_flood(picker: Address, seconds: float) -> int:
    """As many sessions as a picker takes from one client, many at a time."""
    loop = asyncio.get_running_loop()
    transport, sessions = await loop.create_connection(Sessions, picker.host, picker.port)
    sessions.again = True
    for _ in range(CONNECTIONS):
        sessions.send()
    await asyncio.sleep(seconds)
    transport.close()
    return len(sessions.times)


async def straight_answers(picker: Address, seconds: float) -> list[float]:
    """Times of the picker's own answers at the pace."""
    loop = asyncio.get_running_loop()
    transport, sessions = await loop.create_connection(Sessions, picker.host, picker.port)
    times = await at_pace(seconds, sessions.send, sessions.times)
    transport.close()
    return times


async def answers(gateway: Address, seconds: float) -> list[float]:
    """Times of requests through a gateway at the pace."""
    requests = Requests()
    async with requests.connected(gateway):
        return await at_pace(seconds, requests.send, requests.times)


def straight(rig: Rig, rounds: int, seconds: float) -> list[Figure]:
    """The picker by itself: all that it takes, and its answers at the pace."""
    flood, times = Flood(), []
    for _ in range(rounds):
        before = rig.picker_seconds()
        starts = asyncio.run(straight_flood(rig.picks_at, seconds))
        flood.add(starts, seconds, rig.picker_seconds() - before)
        times.append(asyncio.run(straight_answers(rig.picks_at, seconds)))
    busy = statistics.median(rate * cost for rate, cost in zip(flood.rates, flood.costs, strict=True))
    unit = f"/s, {busy:.0%} of a core busy"
    return [
        Figure("evenly: starts straight at the picker", statistics.median(flood.rates), unit, GOAL),
        Figure(f"evenly: the picker's answers at {PACE:,.0f} starts/s, p50", _middle(times, 50), "ms"),
        Figure(f"evenly: the picker's answers at {PACE:,.0f} starts/s, p99", _middle(times, 99), "ms"),
    ]


def added_time(rig: Rig, rounds: int, seconds: float) -> list[Figure]:
    """What a request through the picker takes beyond one through the same Envoy without it, in turn."""
    with_picker, without = [], []
    for _ in range(rounds):
        with_picker.append(asyncio.run(answers(rig.gateway, seconds)))
        without.append(asyncio.run(answers(rig.plain, seconds)))
    figures = []
    for percent, goal in ((50, None), (99, 5.0)):
        pairs = zip(with_picker, without, strict=True)
        added = statistics.median(percentile(one, percent) - percentile(other, percent) for one, other in pairs)
        figures += [
            Figure(f"no picker: {PACE:,.0f} requests/s, p{percent}", _middle(without, percent), "ms"),
            Figure(f"evenly: {PACE:,.0f} starts/s, p{percent}", _middle(with_picker, percent), "ms"),
            Figure(f"evenly: time added at that rate, p{percent}", added, "ms", goal, at_least=False),
        ]
    return figures


def speed(rounds: int, scale: float) -> Iterator[Figure]:
    """All the figures of this module."""
    seconds = max(0.4 * scale, 0.2)
    with (
        tempfile.TemporaryDirectory() as folder,
        started(Path(folder)) as ours,
        started(Path(folder), naive=True) as naive,
    ):
        ours.wait()
        naive.wait()
        time.sleep(1)  # the picker hears from Envoy how the pools are
        yield from floods(ours, naive, rounds, seconds)
        yield from straight(ours, rounds, seconds)
        yield from added_time(ours, rounds, seconds)


def _middle(rounds: list[list[float]], percent: int) -> float:
    return statistics.median(percentile(times, percent) for times in rounds)


def percentile(times: list[float], percent: int) -> float:
    """In milliseconds."""
    return 1000 * sorted(times)[len(times) * percent // 100]
