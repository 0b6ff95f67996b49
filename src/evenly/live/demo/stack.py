"""The processes of the demo: two sets of pools, a picker, and one Envoy with a way in for each balancer."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from evenly.errors import InputError
from evenly.live.addresses import Address, parse_address
from evenly.live.demo.plan import POOLS
from evenly.live.demo.pools import embedded_pools
from evenly.live.envoy.bootstrap import envoy_config
from evenly.live.envoy.process import EnvoyProcess
from evenly.live.gateway.supervisor import PickerProcess

_HOST = "127.0.0.1"
_RIVAL = "least_request"


@dataclass(frozen=True)
class Stage:
    """Where everything is: the ways in, the pools behind each, and the picker's admin port."""

    evenly: Address
    rival: Address
    pools: tuple[Address, ...]
    rival_pools: tuple[Address, ...]
    admin: Address


@asynccontextmanager
async def raised_stage() -> AsyncIterator[Stage]:
    """Start all processes, and end them with the block. What they log goes to a file, away from the picture."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evenly-demo-")))
        log = stack.enter_context((folder / "log").open("w+b"))
        pools = await stack.enter_async_context(embedded_pools(POOLS))
        rival_pools = await stack.enter_async_context(embedded_pools(POOLS))
        options = [f"--pool={pool}" for pool in pools]
        picker = PickerProcess(["--listen", f"{_HOST}:0", "--admin", f"{_HOST}:0", *options], log)
        stack.push_async_callback(picker.stop)
        await picker.start()
        if not await picker.ready():
            raise InputError(f"The picker did not start: {_last_line(log)}")
        where, admin = _read_ready_line(picker.said)
        evenly, rival, envoy_admin = _free_addresses(3)
        config = demo_config(evenly, rival, where, rival_pools, envoy_admin)
        envoy = EnvoyProcess(config, folder, log)
        stack.push_async_callback(envoy.stop)
        await envoy.start()
        if not await envoy.ready():
            raise InputError(f"Envoy did not start: {_last_line(log)}")
        yield Stage(evenly, rival, pools, rival_pools, admin)


def demo_config(
    evenly: Address, rival: Address, picker: Address, rival_pools: Sequence[Address], admin: Address
) -> dict[str, Any]:
    """An Envoy that follows the picker, with a second listener that is the same but for the balancer."""
    config = envoy_config(listen=evenly, picker=picker, pools=None, admin=admin, health_path=None)
    other = envoy_config(listen=rival, picker=picker, pools=rival_pools, admin=admin, health_path=None)
    static = other["static_resources"]
    listener, cluster = static["listeners"][0], static["clusters"][0]
    listener["name"] = cluster["name"] = cluster["load_assignment"]["cluster_name"] = _RIVAL
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    manager["stat_prefix"] = _RIVAL
    manager["http_filters"] = manager["http_filters"][-1:]  # the router alone: nobody is asked
    for route in manager["route_config"]["virtual_hosts"][0]["routes"]:
        route["route"]["cluster"] = _RIVAL
    [policy] = cluster["load_balancing_policy"]["policies"]
    cluster["load_balancing_policy"] = policy["typed_extension_config"]["typed_config"]["fallback_policy"]
    config["static_resources"]["listeners"].append(listener)
    config["static_resources"]["clusters"].append(cluster)
    return config


def _read_ready_line(line: str) -> tuple[Address, Address]:
    """Where the picker listens, and its admin port, from the line by which it says that it is ready."""
    words = line.replace(",", "").split()
    admin = next(word for word in words if word.startswith("http://"))
    return parse_address(words[words.index("on") + 1]), parse_address(admin.removeprefix("http://"))


def _free_addresses(count: int) -> list[Address]:
    with ExitStack() as stack:
        held = [stack.enter_context(socket.create_server((_HOST, 0))) for _ in range(count)]
        return [Address(_HOST, each.getsockname()[1]) for each in held]


def _last_line(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it does not say why."
