"""Real processes export what the table says, and Debian's Prometheus fires an alert when a pool dies.

The gateway runs with the command line of its systemd unit, and tells a socket like systemd's when it is ready.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import Request, urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.deploy.documented import DEPLOY, table
from tests.deploy.units import NotifySocket, command
from tests.live.discovery.dns_server import DnsServer
from tests.live.dispatcher.rig import Dispatcher, fleet
from tests.live.processes import PATIENCE, Process, ask, eventually, free_port
from tests.live.rig import Picker, PoolProcess
from tests.live.stores import running_store
from tests.needs import needs

pytestmark = pytest.mark.full


TOKEN = "a-token-for-the-admin-port"


@dataclass(frozen=True)
class Watched:
    """A gateway with two pools, in front of a store, and where it is."""

    gateway: Process
    said: NotifySocket
    admin: int
    pools: list[PoolProcess]
    folder: Path

    def metrics(self) -> str:
        request = Request(f"http://127.0.0.1:{self.admin}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        with urlopen(request, timeout=PATIENCE) as answer:
            return str(answer.read().decode())


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    with running_store("valkey") as made:
        yield made.url


@pytest.fixture(scope="module")
def dns() -> Iterator[DnsServer]:
    """A DNS server that lists the address of the first pool only, so that it adds no pool."""
    with TemporaryDirectory() as folder, DnsServer(Path(folder)) as server:
        server.publish("web.test. 1 A 127.0.0.1")
        yield server


@pytest.fixture(scope="module")
def watched(store: str, dns: DnsServer) -> Iterator[Watched]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        pools = [stack.enter_context(PoolProcess()) for _ in range(2)]
        for pool in pools:
            pool.wait()
        port, admin = free_port(), free_port()
        (folder / "admin-token").write_text(TOKEN)
        (folder / "gateway.toml").write_text(
            f'listen = "127.0.0.1:{port}"\nadmin = "127.0.0.1:{admin}"\nstore = "{store}"\nalpha = "0.5"\n'
            f'pool = ["{pools[0].address}", "{pools[1].address}=2", "dns://web.test.:{pools[0].port}"]\n'
            "slow_start = 0\ndrain_timeout = 0\n"
            f'resolver = "127.0.0.1:{dns.port}"\nsticky = "cookie"\n'
            # More options that turn metrics on belong here.
        )
        said = NotifySocket(folder)
        stack.callback(said.close)
        gateway = Process(
            *("env", f"NOTIFY_SOCKET={said.path}"),
            *command(DEPLOY / "systemd" / "evenly-gateway.service", folder, folder),
        )
        stack.enter_context(gateway)
        assert said.next() == "READY=1"
        yield Watched(gateway, said, admin, pools, folder)


@pytest.fixture(scope="module")
def dispatcher(store: str) -> Iterator[Dispatcher]:
    with fleet(f"--store={store}") as (made, _):
        made.post("not an object")  # an error, so that there is a sample
        yield made


def check(letter: str, text: str) -> None:
    """Compare the text of /metrics with the rows that name this process."""
    documented = {name: metric for name, metric in table().items() if letter in metric.labels}
    exported = {
        family.name + ("_total" if family.type == "counter" else ""): family
        for family in text_string_to_metric_families(text)
    }
    assert set(exported) == set(documented)
    for name, family in exported.items():
        assert family.type == documented[name].kind, name
        assert family.samples, name
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == documented[name].labels[letter], name


def test_a_gateway_exports_what_the_table_says(watched: Watched) -> None:
    check("G", watched.metrics())


def test_a_picker_exports_what_the_table_says(store: str, dns: DnsServer) -> None:
    pools = ("--pool=127.0.0.1:9", "--pool=127.0.0.2:9=2", "--pool=dns://web.test.:9")
    more = (f"--resolver=127.0.0.1:{dns.port}", "--sticky=cookie")
    with Picker(*pools, *more, f"--store={store}", "--fleet=other", "--alpha=0.5") as picker:
        picker.wait()
        check("P", ask(picker.admin, "/metrics")[1])


def test_a_dispatcher_exports_what_the_table_says(dispatcher: Dispatcher) -> None:
    check("D", dispatcher.admin("GET", "/metrics").text)


class Prometheus(Process):
    """Debian's Prometheus with our config and rules, in a hurry."""

    def __init__(self, folder: Path, target: str) -> None:
        self.port = free_port()
        config = (DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8")
        assert config.count("15s") == 2
        assert '"gateway:8081"' in config
        (folder / "prometheus.yml").write_text(config.replace("15s", "200ms").replace("gateway:8081", target))
        (folder / "admin.token").write_text(TOKEN)
        lines = (DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8").splitlines()
        hurried = ["        for: 0s" if line.startswith("        for: ") else line for line in lines]
        (folder / "alerts.yml").write_text("\n".join(hurried))
        super().__init__(
            *(needs("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"),
            *(f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"),
        )

    def ready(self) -> bool:
        try:
            return ask(self.port, "/-/ready")[0] == 200
        except OSError:
            return False

    def firing(self) -> list[dict[str, Any]]:
        status, body = ask(self.port, "/api/v1/alerts")
        assert status == 200, body
        return [each for each in json.loads(body)["data"]["alerts"] if each["state"] == "firing"]


def test_a_killed_pool_fires_its_alert_until_it_is_back(watched: Watched, tmp_path: Path) -> None:
    with Prometheus(tmp_path, f"127.0.0.1:{watched.admin}") as prometheus:
        eventually(prometheus.ready, bool)
        names = eventually(lambda: _scraped(prometheus), lambda found: "evenly_pool_state" in found)
        assert names & {"evenly_pick_seconds_bucket", "evenly_restarts_total"}
        eventually(lambda: _named(prometheus, "EvenlyPoolFailing"), lambda found: not found)

        watched.pools[0].kill()
        (alert,) = eventually(lambda: _named(prometheus, "EvenlyPoolFailing"), bool)
        assert alert["labels"]["pool"] == watched.pools[0].address
        assert alert["annotations"]["runbook"]
        watched.pools[1].kill()
        eventually(lambda: _named(prometheus, "EvenlyNoPoolServing"), bool)

        for pool in watched.pools:
            pool.start()
        eventually(prometheus.firing, lambda found: not found)


def _scraped(prometheus: Prometheus) -> set[str]:
    return set(json.loads(ask(prometheus.port, "/api/v1/label/__name__/values")[1])["data"])


def _named(prometheus: Prometheus, name: str) -> list[dict[str, Any]]:
    return [each for each in prometheus.firing() if each["labels"]["alertname"] == name]


def test_restarts_are_counted_across_restarts_of_the_picker(watched: Watched) -> None:
    def restarts() -> dict[str, float]:
        try:
            families = text_string_to_metric_families(watched.metrics())
        except OSError:  # it is being restarted
            return {}
        samples = next(family.samples for family in families if family.name == "evenly_restarts")
        return {sample.labels["process"]: sample.value for sample in samples}

    before = restarts()
    assert before.keys() == {"envoy", "picker"}
    children = Path(f"/proc/{watched.gateway.pid}/task/{watched.gateway.pid}/children").read_text().split()
    names = {int(child): Path(f"/proc/{child}/cmdline").read_text() for child in children}
    os.kill(next(child for child, line in names.items() if "\0picker\0" in line), signal.SIGKILL)
    eventually(restarts, lambda found: found == {**before, "picker": before["picker"] + 1})


def test_a_gateway_tells_when_it_stops(watched: Watched) -> None:
    watched.gateway.send(signal.SIGTERM)
    assert watched.said.next() == "STOPPING=1", "and the picker's second start was not reported as ready"
    assert watched.gateway.kill(signal.SIGCONT) == 0, "which only waits: it has its signal"
    watched.gateway.start()  # for tests that come later
    assert watched.said.next() == "READY=1"
