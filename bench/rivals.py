"""The balancers that evenly meets: Envoy's own policies, HAProxy's leastconn, and a picker written with grpc.aio.

Gateways of one kind share a process, but each has a listener, a cluster and so counts of its own: what one of them
carries, the others do not see. Run as `python -m bench.rivals HOST:PORT POOL POOL` this is the naive picker.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import grpc

from evenly.live.addresses import Address, parse_address
from evenly.live.envoy.process import find_envoy
from evenly.live.picker.ext_proc import REQUEST_HEADERS, pick_answer

HOST = "127.0.0.1"
PATIENCE = 30.0  # seconds for a process to come up
MANY = 1_000_000
ALPHA = "0.65"  # what the picker finds for 20 pools by itself, in its first seconds and with a core of its own
HELLO = "hello"
_TYPE = "type.googleapis.com/envoy.extensions"
_ports = iter(random.sample(range(10_000, 32_000), 22_000))  # below those that the kernel gives to clients
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_TICKS = os.sysconf("SC_CLK_TCK")

Config = dict[str, Any]


class Front(NamedTuple):
    """A gateway of a rival's: where it listens, the policy as its own config calls it, and the pools."""

    listen: Address
    policy: str
    pools: Sequence[Address]


# --- processes ------------------------------------------------------------------------------------------------


def free_addresses(count: int) -> list[Address]:
    """Addresses that nobody listens on, none of them handed out before: whoever gets one may take its time."""
    found: list[Address] = []
    while len(found) < count:
        port = next(_ports)
        with suppress(OSError), socket.create_server((HOST, port)):
            found.append(Address(HOST, port))
    return found


def tries(complaint: str) -> Iterator[None]:
    """Try again for a while, and complain if that does not help."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        yield
        time.sleep(0.02)
    raise RuntimeError(complaint)


class Process:
    """A process that ends with the block, and must not end before. Several come up at the same time."""

    def __init__(self, command: Sequence[str], ready: Callable[[], bool]) -> None:
        self._ready = ready
        self._said = os.memfd_create("said")
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._said)

    @property
    def number(self) -> int:
        """The number of the process."""
        return self._process.pid

    def wait(self) -> None:
        """Until it is ready."""
        for _ in tries(f"{self._process.args!r} did not come up"):
            self.check()
            if self._ready():
                return

    def check(self) -> None:
        """That it is still there."""
        if self._process.poll() is not None:
            said = os.pread(self._said, 2**16, 0).decode(errors="replace")
            raise RuntimeError(f"{self._process.args!r} ended by itself: {said}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.check()
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._said)


class Processes(ExitStack):
    """Processes that come up together and end with the block."""

    def __init__(self) -> None:
        super().__init__()
        self._all: list[Process] = []

    def add(self, process: Process) -> Process:
        """Let it end with the block."""
        self._all.append(self.enter_context(process))
        return process

    def wait(self) -> None:
        """Until all of them are ready."""
        for process in self._all:
            process.wait()


def listens(address: Address) -> bool:
    """Whether somebody accepts connections there."""
    try:
        socket.create_connection(address, timeout=1).close()
    except OSError:
        return False
    return True


def fetch(url: str) -> str | None:
    """What a local HTTP server answers; None while it does not."""
    try:
        with _direct.open(url, timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return None


def cpu_seconds(process: int) -> float:
    """Processor time that a process has used, in user and kernel mode."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def busy_seconds() -> float:
    """Processor time that the whole machine has spent on work, over all cores."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / _TICKS  # all but idle and waiting for a disk


def evenly_picker(listen: Address, admin: Address, pools: Sequence[Address]) -> Process:
    """The picker that all this is about."""
    options = [option for pool in pools for option in ("--pool", str(pool))]
    start = [sys.executable, "-m", "evenly", "picker", "--listen", str(listen), "--admin", str(admin)]
    return Process([*start, "--alpha", ALPHA, *options], lambda: listens(listen))


# --- Envoy ----------------------------------------------------------------------------------------------------


def envoy(config: Config, folder: Path, *, concurrency: int = 1) -> Process:
    """Envoy with this config."""
    admin = config["admin"]["address"]["socket_address"]
    file = folder / f"envoy-{admin['port_value']}.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    options = ["--concurrency", str(concurrency), "-l", "error", "--disable-hot-restart"]
    url = f"http://{HOST}:{admin['port_value']}/ready"
    command = [str(find_envoy()), "-c", str(file), *options]
    return Process(command, lambda: (fetch(url) or "").startswith("LIVE"))


def plain_envoy(fronts: Sequence[Front], admin: Address) -> Config:
    """An Envoy that chooses by its own policies, a listener and a cluster for each gateway."""
    return {
        "admin": {"address": _socket(admin)},
        "static_resources": {
            "listeners": [
                listener(front.listen, {"cluster": str(front.listen), "timeout": "0s"}) for front in fronts
            ],
            "clusters": [_cluster(front) for front in fronts],
        },
    }


def _to_cluster(name: Address) -> Config:
    return {"cluster": str(name), "timeout": "0s"}


def listener(address: Address, route: Config) -> Config:
    """A listener without any picker: what comes goes along the route."""
    manager = {
        "@type": f"{_TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "plain",
        "stream_idle_timeout": "0s",
        "upgrade_configs": [{"upgrade_type": "websocket"}],
        "route_config": {
            "virtual_hosts": [
                {"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": route}]}
            ]
        },
        "http_filters": [{"name": "router", "typed_config": {"@type": f"{_TYPE}.filters.http.router.v3.Router"}}],
    }
    return {
        "name": str(address),
        "address": _socket(address),
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }


def answering(address: Address) -> Config:
    """A listener that is a pool itself: it answers at once, at next to no cost."""
    made = listener(address, {})
    manager = made["filter_chains"][0]["filters"][0]["typed_config"]
    answer = {"status": 200, "body": {"inline_string": HELLO}}
    manager["route_config"]["virtual_hosts"][0]["routes"] = [{"match": {"prefix": "/"}, "direct_response": answer}]
    return made


def _cluster(front: Front) -> Config:
    name = "".join(part.capitalize() for part in front.policy.split("_"))
    policy = {"@type": f"{_TYPE}.load_balancing_policies.{front.policy}.v3.{name}"}
    limits = dict.fromkeys(("max_connections", "max_pending_requests", "max_requests", "max_retries"), MANY)
    endpoints = [{"endpoint": {"address": _socket(pool)}} for pool in front.pools]
    return {
        "name": str(front.listen),
        "type": "STATIC",
        "circuit_breakers": {"thresholds": [limits]},
        "load_balancing_policy": {
            "policies": [{"typed_extension_config": {"name": front.policy, "typed_config": policy}}]
        },
        "load_assignment": {"cluster_name": str(front.listen), "endpoints": [{"lb_endpoints": endpoints}]},
    }


def _socket(address: Address) -> Config:
    return {"socket_address": {"address": address.host, "port_value": address.port}}


# --- HAProxy --------------------------------------------------------------------------------------------------


def haproxy_program() -> str | None:
    """Debian puts it where only root's shell looks."""
    return shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def haproxy(program: str, fronts: Sequence[Front], folder: Path) -> Process:
    """HAProxy with these gateways."""
    file = folder / "haproxy.cfg"
    file.write_text(haproxy_config(fronts), encoding="utf-8")
    command = [program, "-db", "-f", str(file)]
    return Process(command, lambda: all(listens(front.listen) for front in fronts))


def haproxy_config(fronts: Sequence[Front]) -> str:
    """A front end and a back end for each gateway; WebSocket sessions may be quiet for an hour."""
    lines = ["global", "  maxconn 8000", "  nbthread 1", "defaults", "  mode http", "  timeout connect 5s"]
    lines += ["  timeout client 1m", "  timeout server 1m", "  timeout tunnel 1h"]
    for front in fronts:
        port = front.listen.port
        lines += [f"frontend f{port}", f"  bind {front.listen}", f"  default_backend b{port}"]
        lines += [f"backend b{port}", f"  balance {front.policy}"]
        lines += [f"  server s{pool.port} {pool}" for pool in front.pools]
    return "\n".join(lines) + "\n"


# --- a picker as one would write it first ---------------------------------------------------------------------


def naive_picker(listen: Address, pools: Sequence[Address]) -> Process:
    """It runs in a process of its own, as this module."""
    command = [sys.executable, "-m", "bench.rivals", str(listen), *map(str, pools)]
    return Process(command, lambda: listens(listen))


class _Call(Protocol):
    """What grpc.aio hands to a handler, as far as it matters here."""

    async def read(self) -> bytes: ...

    async def write(self, message: bytes) -> None: ...


async def serve_naive_picker(listen: str, pools: Sequence[Address]) -> None:
    """Answer each new session with a pool, on grpc.aio: messages ready made, a coroutine for each stream."""
    picks = itertools.cycle([pick_answer(pool)[5:] for pool in pools])

    async def process(_: object, context: _Call) -> None:
        while (message := await context.read()) is not grpc.aio.EOF:
            # Whatever else comes is answered by an empty field of the number before its own.
            await context.write(next(picks) if message[0] == REQUEST_HEADERS else bytes((message[0] - 8, 0)))

    service = "envoy.service.ext_proc.v3.ExternalProcessor"
    handlers = {"Process": grpc.stream_stream_rpc_method_handler(process)}
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    server.add_insecure_port(listen)
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve_naive_picker(sys.argv[1], [parse_address(pool) for pool in sys.argv[2:]]))
