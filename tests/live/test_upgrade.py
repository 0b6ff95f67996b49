"""A gateway that takes over from a running one: real processes, real Envoys, traffic that never stops."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from chaos.upgrade import Plan, run
from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.envoy.listen_socket import ListenSocket
from evenly.live.gateway.take_over import ask, meeting_point
from tests.live.clients import Session
from tests.live.processes import PATIENCE, eventually
from tests.live.processes import ask as request
from tests.live.rig import Gateway
from tests.live.test_gateway import children, events, exit_code, gateway

OTHER_USER = 65534
TAKE_AND_DIE = """
import os, signal, sys
from evenly.live.addresses import parse_address
from evenly.live.gateway.take_over import ask
assert ask(parse_address(sys.argv[1])) is not None
os.kill(os.getpid(), signal.SIGKILL)
"""
ASK_AS_OTHER = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
    client.connect("\\0" + sys.argv[1])
    try:
        client.send(b"take over")
        print(client.recv(1000))
    except ConnectionError:
        print(b"")
"""


def said(started: Gateway, event: str) -> list[dict[str, Any]]:
    return [line for line in events(started) if line["event"] == event]


def successor(old: Gateway, *options: str) -> Gateway:
    """Return a gateway, not started yet, that takes over from another with the same options."""
    new = Gateway()
    new.port, new.admin = old.port, old.admin
    new.command = (*old.command, "--take-over", *options)
    return new


def take_over(old: Gateway, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a gateway that is expected to end by itself."""
    command = (*old.command, "--take-over", *options)
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)


@pytest.mark.long
def test_nothing_is_lost_when_a_gateway_is_replaced_under_load(tmp_path: Path) -> None:
    """The first gateway has sessions when the third begins. Both count for balance, and both end by themselves."""
    plan = Plan(pools=4, sessions=100, rate=50, persistent=5, upgrades=2, seconds=0.5)
    outcome = asyncio.run(run(plan, tmp_path))
    assert outcome.failed == []
    assert outcome.lost == []
    assert outcome.exit_codes == [0, 0]
    assert outcome.requests > 0
    assert outcome.websockets > 0
    assert outcome.on_persistent > 0
    assert outcome.echoes > 0
    assert all(count >= plan.sessions for count in outcome.elsewhere)
    # Two pools had lost their 25 sessions each. A gateway that did not know the others would leave them 25 behind.
    # One that knows them makes all pools equal, but for the short requests that are open meanwhile.
    assert all(spread < plan.sessions / plan.pools / 2 for spread in outcome.spreads)
    logs = [(tmp_path / f"gateway-{number}.log").read_text() for number in range(3)]
    assert ['"nothing to take over"' in log for log in logs] == [True, False, False]
    assert ['"took over"' in log for log in logs] == [False, True, True]
    assert ['"gateway stopped"' in log for log in logs] == [True, True, False]


@pytest.mark.full
def test_the_new_gateway_knows_the_pools_and_serves_the_admin_port() -> None:
    with gateway("--drain-timeout", "86400") as (old, pools), ExitStack() as stack:
        session = Session(old.port).wait()
        stack.callback(session.abort)
        drained = next(pool for pool in pools if pool.address != session.pool)
        assert request(old.admin, f"/pools/{drained.address}/drain", "POST")[0] == 200
        new = stack.enter_context(successor(old))
        new.wait()
        states = {pool["address"]: pool for pool in new.state()["pools"]}
        assert states[drained.address]["state"] == "draining"
        assert (states[session.pool]["elsewhere"], states[session.pool]["sessions"]) == (1, 1)
        os.kill(children(old.pid)["picker"], signal.SIGKILL)  # the next one leaves the admin port alone
        eventually(lambda: said(old, "picker is back"), bool)
        for _ in range(20):
            assert sum(pool["elsewhere"] for pool in new.state()["pools"]) == 1
        with closing(Session(new.port).wait()) as other:
            session.echo()
            assert other.pool == session.pool
        session.close()
        assert exit_code(old) == 0
        eventually(new.state, lambda state: state["sessions"] == 0)
        with closing(Session(new.port).wait()) as other:
            other.echo()


@pytest.mark.full
def test_a_take_over_that_fails_changes_nothing() -> None:
    with gateway() as (old, _), closing(Session(old.port).wait()) as session:
        listen = Address("127.0.0.1", old.port)
        bad = take_over(old, "--alpha", "7")
        assert (bad.returncode, bad.stderr.count("\n")) == (2, 1)
        assert not said(old, "take-over begins")

        died = subprocess.run([sys.executable, "-c", TAKE_AND_DIE, str(listen)], check=False, timeout=PATIENCE)
        assert died.returncode == -signal.SIGKILL
        eventually(lambda: said(old, "take-over given up"), lambda lines: len(lines) == 1)

        first = ask(listen)
        assert first is not None
        with first.connection, first.listen, first.admin:
            second = take_over(old)
            assert second.returncode == 2
            assert second.stderr.startswith(f"evenly: Process {os.getpid()} is already taking over")
        eventually(lambda: said(old, "take-over given up"), lambda lines: len(lines) == 2)

        if os.geteuid() == 0:
            name = meeting_point(listen).removeprefix("\0")
            command = [sys.executable, "-I", "-S", "-c", ASK_AS_OTHER, name, str(OTHER_USER)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
            assert done.stdout == "b''\n"
        session.echo()
        assert old.state()["sessions"] == 1
        with closing(Session(old.port).wait()) as other:
            other.echo()


def test_nothing_is_taken_over_at_port_0_or_from_another_program() -> None:
    with pytest.raises(InputError, match="needs the port of the running gateway"):
        ask(Address("127.0.0.1", 0))
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address(*server.getsockname())
        assert ask(address) is None
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
            stranger.bind(meeting_point(address))
            stranger.listen()
            answer(stranger, json.dumps({"folders": []}).encode(), address, "does not hand over")
            answer(stranger, b"\xff", address, "does not hand over")
            answer(stranger, b"[]", address, "does not hand over")


def answer(stranger: socket.socket, message: bytes, address: Address, expected: str) -> None:
    """Answer the next question with this message, and expect that it is not accepted."""
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(ask, address)
        connection, _ = stranger.accept()
        with connection:
            assert connection.recv(100) == b"take over"
            connection.send(message)
            with pytest.raises(InputError, match=expected):
                asked.result(PATIENCE)


@pytest.mark.parametrize(("prints", "expected"), [("12.104", "has version 12"), ("no", "does not print")])
def test_an_envoy_with_another_hot_restart_is_refused(tmp_path: Path, prints: str, expected: str) -> None:
    program = tmp_path / "envoy"
    program.write_text(f"#!/bin/sh\necho {prints}\n")
    program.chmod(0o700)
    with socket.socket() as sock, pytest.raises(InputError, match=expected):
        ListenSocket(sock, tmp_path, program)
