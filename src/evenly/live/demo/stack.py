"""The processes of the demo: pools, a picker, and Envoys with a listener for each of the two balancers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.admin_token import read_token
from evenly.live.demo.plan import ENVOYS, POOLS, RIVAL, SELECTION_METHOD
from evenly.live.demo.pools import embedded_pools
from evenly.live.envoy.bootstrap import envoy_config
from evenly.live.envoy.bootstrap_clusters import EXTENSIONS, Json, typed
from evenly.live.envoy.names import PICKER
from evenly.live.envoy.process import EnvoyProcess, find_envoy
from evenly.live.gateway.picker_process import PickerProcess
from evenly.live.gateway.resources import reserved_port
from evenly.live.processes import last_line

_ANY_PORT = Address("127.0.0.1", 0)


@dataclass(frozen=True)
class DemoStack:
    """Addresses of the running demo: one listener per Envoy and the pools of each balancer, and the admin port."""

    evenly: tuple[Address, ...]
    rival: tuple[Address, ...]
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
    read_token(_ANY_PORT, None, os.environ)  # the picker would reject a bad one later
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evenly-demo-")))
        log = stack.enter_context((folder / "log").open("w+b"))
        pools = await stack.enter_async_context(embedded_pools(2 * POOLS))
        pools, rival_pools = pools[:POOLS], pools[POOLS:]
        options = [f"--pool={pool}" for pool in pools]
        picker = PickerProcess(["--listen", str(_ANY_PORT), "--admin", str(_ANY_PORT), *options], log)
        stack.push_async_callback(picker.stop)
        await picker.start()
        if not await picker.wait_ready():
            raise InputError(f"The picker did not start: {last_line(log)}")
        evenly, rival, admin = (
            tuple(stack.enter_context(reserved_port(_ANY_PORT)) for _ in range(ENVOYS)) for _ in range(3)
        )
        envoys = []
        for number in range(ENVOYS):
            config = demo_config(evenly[number], rival[number], picker.ready.listen, rival_pools, admin[number])
            home = folder / f"envoy-{number}"
            home.mkdir()
            envoy = EnvoyProcess(config, home, log, threads=1)
            stack.push_async_callback(envoy.stop)
            await envoy.start()
            envoys.append(envoy)
        for envoy in envoys:
            if not await envoy.wait_ready():
                raise InputError(f"Envoy did not start: {last_line(log)}")
        yield DemoStack(evenly, rival, pools, rival_pools, picker.ready.admin)


def demo_config(
    evenly: Address, rival: Address, picker: Address, rival_pools: Sequence[Address], admin: Address
) -> Json:
    """Return the config of an Envoy that follows the picker. A second listener differs only in its balancer."""
    config = envoy_config(listen=evenly, picker=picker, pools=None, admin=admin)
    other = envoy_config(listen=rival, picker=picker, pools=rival_pools, admin=admin)["static_resources"]
    listener, cluster = other["listeners"][0], other["clusters"][0]
    listener["name"] = cluster["name"] = cluster["load_assignment"]["cluster_name"] = RIVAL
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    manager["stat_prefix"] = RIVAL
    manager["http_filters"] = [each for each in manager["http_filters"] if each["name"] != PICKER]
    for route in manager["route_config"]["virtual_hosts"][0]["routes"]:
        route["route"]["cluster"] = RIVAL
    kind = f"{EXTENSIONS}.load_balancing_policies.least_request.v3.LeastRequest"
    policy = typed(RIVAL, kind, selection_method=SELECTION_METHOD)
    cluster["load_balancing_policy"] = {"policies": [{"typed_extension_config": policy}]}
    config["static_resources"]["listeners"].append(listener)
    config["static_resources"]["clusters"].append(cluster)
    return config
