"""The balancers that evenly is compared with: Envoy's own policies, HAProxy's leastconn, and a grpc.aio picker.

Gateways of one kind share a process, but each has its own listener, cluster and counts: no gateway sees the
sessions of another. `python -m bench.rivals HOST:PORT POOL POOL` runs the naive picker.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import grpc

from bench.processes import Config, Process, listens
from evenly.live.addresses import Address, parse_address
from evenly.live.envoy.ext_proc import GO_ON, REQUEST_HEADERS, pick_answer
from evenly.live.wire.frames import OK, OPENING, trailers

MANY = 1_000_000
_TYPE = "type.googleapis.com/envoy.extensions"


class Front(NamedTuple):
    """A gateway of a rival: its address, its policy as its config names it, and its pools."""

    listen: Address
    policy: str
    pools: Sequence[Address]


# --- Envoy ----------------------------------------------------------------------------------------------------


def plain_envoy(fronts: Sequence[Front], admin: Address) -> Config:
    """Return the config of an Envoy with its own policies, and a listener and a cluster for each gateway."""
    return {
        "admin": {"address": _socket(admin)},
        "static_resources": {
            "listeners": [
                listener(front.listen, {"cluster": str(front.listen), "timeout": "0s"}) for front in fronts
            ],
            "clusters": [_cluster(front) for front in fronts],
        },
    }


def listener(address: Address, route: Config) -> Config:
    """Describe a listener without a picker: all requests take the route."""
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


def answering_pools(pools: Sequence[Address], admin: Address) -> Config:
    """Return the config of an Envoy that acts as the pools: each answers immediately, at almost no cost."""
    return {
        "admin": {"address": _socket(admin)},
        "static_resources": {"listeners": [_answering(pool) for pool in pools]},
    }


def _answering(address: Address) -> Config:
    made = listener(address, {})
    manager = made["filter_chains"][0]["filters"][0]["typed_config"]
    answer = {"status": 200, "body": {"inline_string": "hello"}}
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
    """Return the path of HAProxy, or None. Debian installs it outside of a user's PATH."""
    return shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def haproxy(program: str, fronts: Sequence[Front], folder: Path) -> Process:
    """Start HAProxy with these gateways."""
    file = folder / "haproxy.cfg"
    file.write_text(haproxy_config(fronts), encoding="utf-8")
    command = [program, "-db", "-f", str(file)]
    return Process(command, lambda: all(listens(front.listen) for front in fronts))


def haproxy_config(fronts: Sequence[Front]) -> str:
    """Return a config with a front end and a back end per gateway. WebSocket sessions may be idle for an hour."""
    lines = ["global", "  maxconn 8000", "  nbthread 1", "defaults", "  mode http", "  timeout connect 5s"]
    lines += ["  timeout client 1m", "  timeout server 1m", "  timeout tunnel 1h"]
    for front in fronts:
        port = front.listen.port
        lines += [f"frontend f{port}", f"  bind {front.listen}", f"  default_backend b{port}"]
        lines += [f"backend b{port}", f"  balance {front.policy}"]
        lines += [f"  server s{pool.port} {pool}" for pool in front.pools]
    return "\n".join(lines) + "\n"


# --- a naive picker -------------------------------------------------------------------------------------------


def naive_picker(listen: Address, pools: Sequence[Address]) -> Process:
    """Start this module as a process."""
    command = [sys.executable, "-m", "bench.rivals", str(listen), *map(str, pools)]
    return Process(command, lambda: listens(listen))


def echo_picker(program: Path, listen: Address, pools: Sequence[Address]) -> Process:
    """Start the picker in C++ that decides nothing: it answers with the bytes that ours would send."""
    answers = [OPENING, trailers(OK), GO_ON, *map(pick_answer, pools)]
    return Process([str(program), str(listen.port), *(each.hex() for each in answers)], lambda: listens(listen))


class _Call(Protocol):
    """The part of grpc.aio's call object that is used here."""

    async def read(self) -> bytes: ...

    async def write(self, message: bytes) -> None: ...


async def serve_naive_picker(listen: str, pools: Sequence[Address]) -> None:
    """Answer each new session with a pool: prepared messages, and one coroutine per stream."""
    picks = itertools.cycle([pick_answer(pool)[5:] for pool in pools])

    async def process(_: object, context: _Call) -> None:
        while (message := await context.read()) is not grpc.aio.EOF:
            # Every other message gets an empty response, whose field number is one lower.
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
