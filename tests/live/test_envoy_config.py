"""The config that is printed, judged by Envoy itself."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from evenly.cli.main import main
from evenly.live.addresses import parse_address
from evenly.live.envoy.bootstrap import envoy_config
from evenly.live.envoy.bootstrap_clusters import Json
from evenly.live.envoy.limits import derive_limits
from evenly.live.envoy.process import find_envoy
from tests.live.clients import Session, SessionFailedError
from tests.live.processes import PATIENCE, Process, ask, eventually, free_port
from tests.live.rig import Picker, PoolProcess

SHAPES = [
    (),
    ("--pool", "127.0.0.1:9001", "--pool", "localhost:9002", "--pool", "[::1]:9003"),
    ("--health-path", "/healthz"),
    ("--picker", "localhost:4000"),
    ("--picker", "[::1]:4000", "--listen", "[::]:8080"),
    ("--envoy-admin", "10.0.0.1:9901"),
    ("--pool", "h2://127.0.0.1:9001", "--pool", "h2://localhost:9002=4", "--health-grpc", ""),
]


def printed(*options: str) -> dict[str, Any]:
    """Return what `evenly envoy-config` prints; later options override earlier ones."""
    command = [sys.executable, "-m", "evenly", "envoy-config", "--picker", "127.0.0.1:4000"]
    done = subprocess.run(
        [*command, "--listen", "127.0.0.1:8080", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    config: dict[str, Any] = json.loads(done.stdout)
    return config


class RunningEnvoy(Process):
    """An Envoy with a config."""

    def __init__(self, config: dict[str, Any], folder: Path) -> None:
        self.admin = config["admin"]["address"]["socket_address"]["port_value"]
        file = folder / f"envoy-{self.admin}.json"
        file.write_text(json.dumps(config), encoding="utf-8")
        super().__init__(str(find_envoy()), "-c", str(file), "--disable-hot-restart", "--log-level", "warning")

    def wait(self) -> None:
        eventually(self.ready, bool)

    def ready(self) -> bool:
        try:
            return ask(self.admin, "/ready")[0] == 200
        except OSError:
            return False


@contextmanager
def running(config: dict[str, Any], folder: Path) -> Iterator[RunningEnvoy]:
    with RunningEnvoy(config, folder) as envoy:
        envoy.wait()
        yield envoy


@pytest.fixture
def pool() -> Iterator[PoolProcess]:
    with PoolProcess() as server:
        server.wait()
        yield server


@pytest.mark.parametrize(
    "options",
    [*SHAPES[:2], *(pytest.param(shape, marks=pytest.mark.full) for shape in SHAPES[2:-1]), SHAPES[-1]],
    ids=" ".join,
)
def test_envoy_accepts_every_config(options: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "envoy.json"
    file.write_text(json.dumps(printed(*options)), encoding="utf-8")
    command = [str(find_envoy()), "--mode", "validate", "-c", str(file), "--log-level", "warning"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert "deprecated" not in done.stderr
    assert "limit" not in done.stderr


def test_bad_input_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[tuple[tuple[str, ...], str]] = [
        (("--envoy-admin", "0.0.0.0:9901"), "so 0.0.0.0:9901 must name a host and a port"),
        (("--envoy-admin", "127.0.0.1:0"), "so 127.0.0.1:0 must name a host and a port"),
        (
            ("--health-path", "healthz"),
            "characters without spaces, not 'healthz'.",
        ),
        (("--picker", "127.0.0.1:0"), "The port of the picker must be from 1 to 65535, not 0"),
        (("--pool", "dns://web:80"), "envoy-config takes fixed addresses only: leave out --pool 'dns://web:80'"),
        (("--pool", "127.0.0.1:1", "--pool", "127.0.0.1:1"), "Pool 127.0.0.1:1 is given twice"),
        (("--pool", "no-such-host.invalid:80"), "Cannot resolve the host of no-such-host.invalid:80"),
    ]
    for options, complaint in rows:
        assert main(["envoy-config", "--picker", "127.0.0.1:4000", "--listen", "127.0.0.1:8080", *options]) == 2
        assert complaint in capsys.readouterr().err


@pytest.mark.long
def test_the_printed_config_runs_with_and_without_the_picker(pool: PoolProcess, tmp_path: Path) -> None:
    """Envoy finds the picker by name and announces its admin port. When the picker dies, sessions continue.

    A pool named in a client's header is ignored.
    """
    listen, admin = free_port(), free_port()
    with Picker("--pool", pool.address, "--alpha", "0.5") as picker, PoolProcess() as other:
        picker.wait()
        other.wait()
        config = printed(
            *("--picker", f"localhost:{picker.port}", "--listen", f"127.0.0.1:{listen}"),
            *("--envoy-admin", f"127.0.0.1:{admin}", "--pool", pool.address, "--pool", other.address),
        )
        with running(config, tmp_path):
            eventually(
                lambda: [(envoy["admin"], envoy["reachable"]) for envoy in picker.state()["envoys"]],
                lambda envoys: envoys == [(f"127.0.0.1:{admin}", True)],
            )
            forged = {"x-gateway-destination-endpoint": other.address}
            assert {_served_by(listen, forged) for _ in range(30)} == {pool.address}
            session = Session(listen).wait()
            picker.kill()
            assert {_served_by(listen, forged) for _ in range(30)} == {pool.address, other.address}
            session.echo()
            session.close()


def _served_by(port: int, headers: dict[str, str]) -> str:
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        connection.request("GET", "/", headers=headers)
        return connection.getresponse().read().decode()


@pytest.mark.full
def test_sessions_do_not_wait_for_a_picker_whose_health_check_fails(pool: PoolProcess, tmp_path: Path) -> None:
    """The picker is frozen. Until its health check fails, a session waits for the message timeout."""
    listen, admin = free_port(), free_port()
    with Picker("--pool", pool.address, "--alpha", "0.5") as picker:
        picker.wait()
        config = printed(
            *("--picker", f"127.0.0.1:{picker.port}", "--listen", f"127.0.0.1:{listen}"),
            *("--envoy-admin", f"127.0.0.1:{admin}", "--pool", pool.address),
        )
        with running(config, tmp_path) as envoy:
            Session(listen).wait().close()
            picker.send(signal.SIGSTOP)
            Session(listen).wait().close()
            eventually(lambda: ask(envoy.admin, "/clusters")[1], lambda text: "/failed_active_hc" in text)
            waited = _message_timeouts(envoy.admin)
            for _ in range(50):
                assert _served_by(listen, {}) == pool.address
            assert _message_timeouts(envoy.admin) == waited
            picker.send(signal.SIGCONT)


def _message_timeouts(admin: int) -> int:
    """Return how many sessions have waited in vain for a pick."""
    [stat] = json.loads(ask(admin, "/stats?format=json&filter=ext_proc.message_timeouts$")[1])["stats"]
    return int(stat["value"])


def test_a_second_envoy_on_the_port_is_refused(tmp_path: Path) -> None:
    listen = free_port()
    configs = [
        printed(
            *("--listen", f"127.0.0.1:{listen}", "--envoy-admin", f"127.0.0.1:{free_port()}"),
            *("--pool", "127.0.0.1:9"),
        )
        for _ in range(2)
    ]
    with running(configs[0], tmp_path), RunningEnvoy(configs[1], tmp_path) as second:
        complaint = f"cannot bind '127.0.0.1:{listen}': Address already in use"
        eventually(second.output, lambda output: complaint in output)
        eventually(second.ready, lambda ready: not ready)


@pytest.mark.parametrize("admin", [pytest.param("10.0.0.1:9", marks=pytest.mark.full), "127.0.0.1:9"])
def test_the_admin_port_can_only_be_read(admin: str, tmp_path: Path) -> None:
    """On loopback too: every local user can open the port."""
    config = printed("--listen", f"127.0.0.1:{free_port()}", "--envoy-admin", admin, "--pool", "127.0.0.1:9")
    config["admin"]["address"]["socket_address"] = {"address": "127.0.0.1", "port_value": free_port()}
    with running(config, tmp_path) as envoy:
        assert ask(envoy.admin, "/clusters?format=json&filter=^pools$")[0] == 200
        for path in ("/stats", "/stats?format=json", "/stats/prometheus"):
            assert ask(envoy.admin, path)[0] == 200
        for path in ("/quitquitquit", "/drain_listeners", "/healthcheck/fail", "/stats/recentlookups/enable"):
            assert ask(envoy.admin, path, "POST")[0] == 403
        assert ask(envoy.admin, "/config_dump")[0] == 403
        assert envoy.ready()


def limited(listen: int, pool: PoolProcess, **limits: int) -> Json:
    """Return the config of an Envoy with one pool, no picker and these limits."""
    return envoy_config(
        listen=parse_address(f"127.0.0.1:{listen}"),
        picker=parse_address("127.0.0.1:9"),
        pools=[parse_address(pool.address)],
        admin=parse_address(f"127.0.0.1:{free_port()}"),
        health_path=None,
        limits=replace(derive_limits(), **limits),
    )


def test_clients_beyond_the_limit_are_turned_away(pool: PoolProcess, tmp_path: Path) -> None:
    """The connected clients are not affected."""
    listen = free_port()
    config = limited(listen, pool, clients=2)
    with running(config, tmp_path):
        sessions = [Session(listen).wait() for _ in range(2)]
        with socket.create_connection(("127.0.0.1", listen), PATIENCE) as third:
            third.settimeout(PATIENCE)
            assert third.recv(1) == b""
        for session in sessions:
            session.echo()
        sessions.pop().close()
        eventually(lambda: _takes_another(listen), bool)
        sessions.pop().close()


def _takes_another(port: int) -> bool:
    try:
        return ask(port, "/")[0] == 200
    except OSError:
        return False


@pytest.mark.full
def test_when_the_memory_is_used_up_only_new_requests_are_refused(pool: PoolProcess, tmp_path: Path) -> None:
    """Open sessions continue. When they have ended, there is room again."""
    listen = free_port()
    config = limited(listen, pool, heap=24 * 2**20)
    sessions: list[Session] = []

    def refuses() -> bool:
        try:
            sessions.append(Session(listen).wait())
        except SessionFailedError as error:
            assert "503" in str(error)
            return True
        return False

    with running(config, tmp_path):
        eventually(refuses, bool)
        eventually(lambda: ask(listen, "/"), lambda answer: answer == (503, "envoy overloaded"))
        assert len(sessions) > 10
        for session in sessions:
            session.echo()
            session.abort()
        eventually(lambda: ask(listen, "/")[0], lambda status: status == 200)
