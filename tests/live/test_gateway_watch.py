"""A gateway accepts new clients, or reports that it does not: Envoy's admin socket, the watch, readiness."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from evenly.live.envoy.admin_address import AdminSocket, connect
from evenly.live.timing import Timing
from tests.live.clients import Session, SessionFailedError
from tests.live.processes import PATIENCE, ask, eventually
from tests.live.rig import Gateway
from tests.live.test_gateway import children, events, exit_code, gateway, refused

OTHER_USER = 65534
CONNECT = """
import os, socket, sys
number = int(sys.argv[2])
os.setgroups([]), os.setresgid(number, number, number), os.setresuid(number, number, number)
socket.socket(socket.AF_UNIX).connect(sys.argv[1])
"""
FEW_FILES = "1200"  # enough for a gateway with few connections
LISTENING = "0A"  # the state of a socket in /proc/net/tcp


def admin_socket(started: Gateway) -> Path:
    """Return the admin socket of a gateway's Envoy, which the picker has found."""
    state = eventually(started.state, lambda state: [envoy["reachable"] for envoy in state["envoys"]] == [True])
    kind, _, path = state["envoys"][0]["admin"].partition(":")
    assert kind == "unix", state["envoys"]
    return Path(path)


def stop_listening(started: Gateway) -> None:
    """Tell Envoy to stop listening, as only its owner can."""
    connection = connect(AdminSocket(admin_socket(started)), PATIENCE)
    try:
        connection.request("POST", "/drain_listeners")
        assert connection.getresponse().status == 200
    finally:
        connection.close()


def said(started: Gateway, event: str) -> list[dict[str, object]]:
    return [line for line in events(started) if line["event"] == event]


def is_served(started: Gateway) -> bool:
    try:
        Session(started.port).wait().close()
    except (OSError, SessionFailedError):
        return False
    return True


def readiness(started: Gateway) -> int:
    """Return the status of /readyz; 0 if nothing answers."""
    try:
        return ask(started.admin, "/readyz")[0]
    except (OSError, HTTPException):
        return 0


@contextmanager
def polled_readiness(started: Gateway) -> Iterator[list[int]]:
    """Ask /readyz without a pause while the block runs. Yield the answers."""
    answers: list[int] = []
    over = threading.Event()

    def poll() -> None:
        while not over.wait(0.001):
            answers.append(readiness(started))

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield answers
    finally:
        over.set()
        thread.join()


def listening_ports(pid: int) -> set[int]:
    """Return the TCP ports on which a process listens."""
    sockets = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        try:
            sockets.add(str(file.readlink()))
        except OSError:  # closed meanwhile
            continue
    lines = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    own = (line for line in lines if line[3] == LISTENING and f"socket:[{line[9]}]" in sockets)
    return {int(line[1].rpartition(":")[2], 16) for line in own}


def test_only_the_owner_reaches_envoys_admin_interface() -> None:
    with gateway() as (started, _):
        path = admin_socket(started)
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert path.stat().st_uid == path.parent.stat().st_uid == os.geteuid()
        assert listening_ports(children(started.pid)["envoy"]) == {started.port}
        if os.geteuid() == 0:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", CONNECT, str(path), str(OTHER_USER)],
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
            )
            assert "PermissionError" in done.stderr


@pytest.mark.long
def test_a_gateway_that_stopped_listening_is_repaired() -> None:
    with gateway() as (started, _):
        stop_listening(started)
        eventually(lambda: said(started, "envoy is back"), bool)
        assert is_served(started)
        assert [line["reason"] for line in said(started, "envoy killed")] == ["not listening"]
        assert len(said(started, "envoy died")) == 1
        eventually(lambda: readiness(started), lambda status: status == 200)
        eventually(started.state, lambda state: state["envoys"][0]["reachable"])


@pytest.mark.full
def test_a_gateway_whose_envoy_hangs_is_not_ready_and_is_repaired() -> None:
    with gateway() as (started, _):
        assert readiness(started) == 200
        os.kill(children(started.pid)["envoy"], signal.SIGSTOP)
        eventually(lambda: readiness(started), lambda status: status == 503)
        eventually(lambda: said(started, "envoy is back"), bool)
        assert is_served(started)
        eventually(lambda: readiness(started), lambda status: status == 200)
        assert [line["reason"] for line in said(started, "envoy killed")] == ["not responding"]


@pytest.mark.full
def test_an_envoy_whose_admin_socket_was_removed_is_left_alone() -> None:
    """A program that cleans up /tmp may do that. Killing Envoy would end every session."""
    with gateway() as (started, _), closing(Session(started.port).wait()) as session:
        admin_socket(started).unlink()
        time.sleep(8 * Timing().probe_s)
        session.echo()
        assert not said(started, "envoy killed")


@pytest.mark.full
def test_a_gateway_with_all_connections_in_use_is_left_alone() -> None:
    """It refuses further clients, but it listens: a restart would end all sessions for nothing."""
    with gateway(files=FEW_FILES) as (started, _), ExitStack() as stack:
        opened: list[Session] = []
        with suppress(OSError, SessionFailedError):
            while len(opened) < int(FEW_FILES):
                session = Session(started.port)
                stack.callback(session.abort)
                opened.append(session.wait())
        assert 0 < len(opened) < int(FEW_FILES)
        time.sleep(3 * Timing().probe_s)  # for some probes; on a slow machine there are fewer
        assert readiness(started) == 200
        for session in opened[:-1]:
            session.echo()
        assert not said(started, "envoy killed")


@pytest.mark.full
def test_a_draining_gateway_is_never_ready_even_if_its_picker_dies() -> None:
    with gateway("--drain-timeout", "86400") as (started, _):
        session = Session(started.port).wait()
        assert readiness(started) == 200
        started.send(signal.SIGTERM)
        eventually(lambda: refused(started.port), bool)
        assert readiness(started) == 503
        with polled_readiness(started) as answers:
            os.kill(children(started.pid)["picker"], signal.SIGKILL)
            eventually(lambda: said(started, "picker is back"), bool)
            seen = len(answers)
            eventually(lambda: answers[seen:], lambda new: len(new) - new.count(0) >= 5)
            session.echo()
            session.close()
            assert exit_code(started) == 0
        assert set(answers) <= {0, 503}


def test_no_other_envoy_can_announce_itself_to_a_gateways_picker() -> None:
    """Every local user can reach the picker's port. A forged Envoy could report that all pools fail."""
    import grpc

    with gateway() as (started, _), socket.create_server(("127.0.0.1", 0)) as forged:
        admin_socket(started)
        words = Path(f"/proc/{children(started.pid)['picker']}/cmdline").read_text().split("\0")
        announced = f"127.0.0.1:{forged.getsockname()[1]}"
        with grpc.insecure_channel(words[words.index("--listen") + 1]) as channel:
            check = channel.unary_unary("/grpc.health.v1.Health/Check")
            check(b"", metadata=[("x-evenly-envoy", announced)], timeout=PATIENCE)
        (line,) = eventually(lambda: said(started, "envoy not believed"), bool)
        assert line["announced"] == announced
        assert [envoy["admin"].partition(":")[0] for envoy in started.state()["envoys"]] == ["unix"]
