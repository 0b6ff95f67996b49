"""The processes of the demo: two sets of pools, a picker, and one Envoy with a listener for each balancer."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.admin_token import read_token
from evenly.live.demo.plan import POOLS
from evenly.live.demo.pools import embedded_pools
from evenly.live.envoy.bootstrap import envoy_config
from evenly.live.envoy.names import PICKER
from evenly.live.envoy.process import EnvoyProcess, find_envoy
from evenly.live.gateway.picker_process import PickerProcess
from evenly.live.gateway.resources import reserved_port

_HOST = "127.0.0.1"
_RIVAL = "least_request"


@dataclass(frozen=True)
class DemoStack:
    """Addresses of the running demo: the listener and the pools of each balancer, and the picker's admin port."""

    evenly: Address
    rival: Address
    pools: tuple[Address, ...]
    rival_pools: tuple[Address, ...]
    admin: Address

    @property
    def dashboard(self) -> str:
        """The address to open in a browser."""
        return f"http://{self.admin}/"


@asynccontextmanager
async def demo_stack() -> AsyncIterator[DemoStack]:
    """Start all processes, and end them with the block. They log to a file, so that the screen stays clean."""
    find_envoy()
    read_token(Address(_HOST, 0), None, os.environ)  # the picker would reject a bad one later
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evenly-demo-")))
        log = stack.enter_context((folder / "log").open("w+b"))
        pools = await stack.enter_async_context(embedded_pools(POOLS))
        rival_pools = await stack.enter_async_context(embedded_pools(POOLS))
        options = [f"--pool={pool}" for pool in pools]
        picker = PickerProcess(["--listen", f"{_HOST}:0", "--admin", f"{_HOST}:0", *options], log)
        stack.push_async_callback(picker.stop)
        await picker.start()
        if not await picker.wait_ready():
            raise InputError(f"The picker did not start: {_last_line(log)}")
        evenly, rival, envoy_admin = (stack.enter_context(reserved_port(Address(_HOST, 0))) for _ in range(3))
        config = demo_config(evenly, rival, picker.ready.listen, rival_pools, envoy_admin)
        envoy = EnvoyProcess(config, folder, log)
        stack.push_async_callback(envoy.stop)
        await envoy.start()
        if not await envoy.wait_ready():
            raise InputError(f"Envoy did not start: {_last_line(log)}")
        yield DemoStack(evenly, rival, pools, rival_pools, picker.ready.admin)


def demo_config(
    evenly: Address, rival: Address, picker: Address, rival_pools: Sequence[Address], admin: Address
) -> dict[str, Any]:
    """Return the config of an Envoy that follows the picker. A second listener differs only in its balancer."""
    config = envoy_config(listen=evenly, picker=picker, pools=None, admin=admin, health_path=None)
    other = envoy_config(listen=rival, picker=picker, pools=rival_pools, admin=admin, health_path=None)
    static = other["static_resources"]
    listener, cluster = static["listeners"][0], static["clusters"][0]
    listener["name"] = cluster["name"] = cluster["load_assignment"]["cluster_name"] = _RIVAL
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    manager["stat_prefix"] = _RIVAL
    manager["http_filters"] = [each for each in manager["http_filters"] if each["name"] != PICKER]
    for route in manager["route_config"]["virtual_hosts"][0]["routes"]:
        route["route"]["cluster"] = _RIVAL
    [policy] = cluster["load_balancing_policy"]["policies"]
    cluster["load_balancing_policy"] = policy["typed_extension_config"]["typed_config"]["fallback_policy"]
    config["static_resources"]["listeners"].append(listener)
    config["static_resources"]["clusters"].append(cluster)
    return config


def _last_line(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it gave no reason."
