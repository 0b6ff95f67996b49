"""The live balancer in real processes: pools, a picker and Envoys. All end with the block that uses them."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import TracebackType
from typing import Any, Self

from evenly.live.addresses import parse_address
from evenly.live.envoy.bootstrap import envoy_config
from evenly.live.picker.ready import Ready
from evenly.live.sticky_rule import StickyRule
from tests.live.patient import wait_longer
from tests.live.processes import PATIENCE, Process, ask, eventually, free_port

READY = '{"listen"'  # how a ready line begins; lines of the log begin with the time
_POOL_SERVER = Path(__file__).with_name("pool_server.py")
_PATIENT = Path(__file__).with_name("patient.py")


class PoolProcess:
    """A pool server, see `pool_server.py`. `tls` are a certificate, its key, and authorities for mutual TLS."""

    def __init__(self, *tls: Path) -> None:
        self._tls = [*map(str, tls)]
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Start it. `wait` and the first `say` wait until it is ready."""
        command = [sys.executable, "-I", "-S", str(_POOL_SERVER), str(self.port), *self._tls]
        self._process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def wait(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def say(self, command: str) -> int:
        """Send a command; return the number of open sessions."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    @property
    def sessions(self) -> int:
        """The number of requests that the pool serves now, 0 if it is dead."""
        return 0 if self._process is None else self.say("sessions")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


class Picker(Process):
    """`evenly picker`, on the same ports at every start. See `patient.py` for one that is patient."""

    def __init__(self, *options: str, patient: bool = False) -> None:
        self.port, self.admin = free_port(), free_port()
        evenly = ("-P", str(_PATIENT)) if patient else ("-m", "evenly")
        super().__init__(
            *(sys.executable, *evenly, "picker", "--listen", f"127.0.0.1:{self.port}"),
            *("--admin", f"127.0.0.1:{self.admin}", "--ready-json", *options),
        )
        self._starts = 0

    def wait(self) -> float:
        """Wait until it is ready; the time when that was seen."""
        ready = Ready.from_json(self.ready_line(self._starts, READY))
        assert (ready.listen.port, ready.admin.port) == (self.port, self.admin)
        self._starts += 1
        return time.monotonic()

    def state(self) -> dict[str, Any]:
        status, body = ask(self.admin, "/state")
        assert status == 200, body
        state: dict[str, Any] = json.loads(body)
        return state


class Gateway(Picker):
    """`evenly gateway`: `port` takes the clients. See `patient.py` for one that is patient."""

    def __init__(self, *options: str, patient: bool = False) -> None:
        super().__init__(*options, patient=patient)
        self.command = tuple("gateway" if word == "picker" else word for word in self.command)


class Envoy(Process):
    """An Envoy for a picker, with the config that evenly generates."""

    def __init__(
        self,
        picker: Picker,
        pools: list[str] | None = None,
        health_path: str | None = None,
        patient: bool = False,
        change: Callable[[dict[str, Any]], None] = lambda config: None,
        sticky: StickyRule | None = None,
    ) -> None:
        self.port, self.admin = free_port(), free_port()
        listen, upstream, admin = (
            parse_address(f"127.0.0.1:{port}") for port in (self.port, picker.port, self.admin)
        )
        known = None if pools is None else [parse_address(pool) for pool in pools]
        config = envoy_config(
            listen=listen, picker=upstream, pools=known, admin=admin, health_path=health_path, sticky=sticky
        )
        if patient:
            wait_longer(config)
        change(config)
        with NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump(config, file)
        self._config = Path(file.name)
        package = find_spec("envoy")
        assert package is not None
        assert package.origin is not None
        binary = Path(package.origin).with_name("_bin") / "envoy"
        options = ("--disable-hot-restart", "--concurrency", "2", "--log-level", "warning")
        super().__init__(str(binary), "-c", file.name, *options)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._config.unlink()

    def wait(self) -> None:
        """Wait until it accepts clients, and picker and pools pass its health checks."""

        def healthy(cluster: str) -> bool:
            members, well = (self.gauge(f"cluster.{cluster}.membership_{kind}") for kind in ("total", "healthy"))
            return members == well > 0

        def ready() -> bool:
            with suppress(OSError, http.client.HTTPException):
                return ask(self.admin, "/ready")[0] == 200 and healthy("picker") and healthy("pools")
            return False

        eventually(ready, bool)

    def pools(self) -> set[str]:
        """Return the pools that it can send to."""
        clusters = json.loads(ask(self.admin, "/clusters?format=json")[1])["cluster_statuses"]
        hosts = (
            host for cluster in clusters if cluster["name"] == "pools" for host in cluster.get("host_statuses", [])
        )
        sockets = (host["address"]["socket_address"] for host in hosts)
        return {f"{socket['address']}:{socket['port_value']}" for socket in sockets}

    def gauge(self, name: str) -> int:
        """Return one of Envoy's own statistics."""
        found = re.search(
            rf"^{re.escape(name)}: (\d+)$", ask(self.admin, f"/stats?filter={name}")[1], re.MULTILINE
        )
        assert found is not None, f"Envoy does not know {name}."
        return int(found[1])


@dataclass(frozen=True)
class Rig:
    """Pools, a picker and the Envoys in front."""

    pools: list[PoolProcess]
    picker: Picker
    envoys: list[Envoy]

    @property
    def port(self) -> int:
        """The port for clients."""
        return self.envoys[0].port

    def pool(self, address: str) -> PoolProcess:
        return next(pool for pool in self.pools if pool.address == address)

    def counts(self) -> dict[str, int]:
        """Return the sessions of each pool as the picker counts them."""
        return {pool["address"]: pool["sessions"] for pool in self.picker.state()["pools"]}

    def states(self) -> dict[str, str]:
        return {pool["address"]: pool["state"] for pool in self.picker.state()["pools"]}

    def truth(self) -> dict[str, int]:
        """Return the sessions of each pool as the pools count them."""
        return {pool.address: pool.sessions for pool in self.pools}

    def unpicked(self) -> int:
        """Return the number of sessions that the picker did not place or did not follow to their end."""
        return int(self.picker.state()["unpicked_sessions"])

    def settled(self, sessions: int | None = None, seconds: float = PATIENCE) -> dict[str, int]:
        """Wait until the picker's counts equal the pools' own, with `sessions` in total if given. Return them."""
        counts, _ = eventually(
            lambda: (self.counts(), self.truth()),
            lambda seen: seen[0] == seen[1] and sessions in {None, sum(seen[0].values())},
            seconds,
        )
        return counts


@contextmanager
def rig(
    pools: int,
    *options: str,
    envoys: int = 1,
    health_path: str | None = None,
    static: bool = False,
    patient: bool = True,
) -> Iterator[Rig]:
    """Start everything at once and wait until it works. Envoys follow the picker's pools unless `static`.

    A patient Envoy does not mistake a busy machine for a dead picker or pool. It notices a closed port at once,
    but a frozen process only after `PATIENCE`.

    Without --policy in the options the policy is threshold, with a given alpha, so that none is computed.
    """
    with ExitStack() as stack:
        servers = [stack.enter_context(PoolProcess()) for _ in range(pools)]
        addresses = [server.address for server in servers]
        policy = () if "--policy" in options else ("--alpha", "0.6")
        picker = Picker(*policy, *options, *(word for address in addresses for word in ("--pool", address)))
        stack.enter_context(picker)
        known = addresses if static else None
        fronts = [stack.enter_context(Envoy(picker, known, health_path, patient)) for _ in range(envoys)]
        for server in servers:
            server.wait()
        picker.wait()
        for envoy in fronts:
            envoy.wait()
        built = Rig(servers, picker, fronts)
        seen = {f"127.0.0.1:{envoy.admin}" for envoy in fronts}
        eventually(picker.state, lambda state: seen == {e["admin"] for e in state["envoys"] if e["reachable"]})
        eventually(built.states, lambda states: "checking" not in states.values())
        yield built
