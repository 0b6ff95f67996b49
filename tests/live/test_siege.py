"""A gateway under attack: streams, silent connections and large bodies cost no innocent client its session."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.live.attackers import is_answered, is_closed, statuses, streams
from tests.live.clients import Session, SessionFailedError, sessions
from tests.live.processes import PATIENCE, ask, eventually
from tests.live.rig import Gateway, PoolProcess
from tests.live.test_gateway import children, events, pool_servers

_REQUEST = b"GET / HTTP/1.1\r\nhost: pools\r\n\r\n"
_HTTP2_SILENCE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # and empty SETTINGS


@contextmanager
def besieged(files: int, pools: int = 2) -> Iterator[tuple[Gateway, list[PoolProcess]]]:
    """Run a gateway that may open `files` files."""
    with pool_servers(pools) as servers:
        gateway = Gateway(*(word for server in servers for word in ("--pool", server.address)), "--alpha", "0.5")
        gateway.command = ("/bin/sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *gateway.command)
        with gateway:
            gateway.wait()
            yield gateway, servers


def metric(gateway: Gateway, name: str) -> int:
    found = re.search(rf"^{name} (\S+)$", ask(gateway.admin, "/metrics")[1], re.MULTILINE)
    return 0 if found is None else int(float(found[1]))


def logged(gateway: Gateway, name: str) -> list[dict[str, Any]]:
    return [event for event in events(gateway) if event["event"] == name]


def can_start(port: int) -> bool:
    try:
        Session(port).wait().close()
    except (OSError, SessionFailedError):
        return False
    return True


@pytest.mark.parametrize("picker", ["alive", pytest.param("frozen", marks=pytest.mark.full)])
def test_surplus_streams_get_503_and_no_session_is_lost(picker: str) -> None:
    """1,300 requests that never end, at a gateway with 1,200 files. All are answered or reach a pool."""
    with besieged(files=1200) as (gateway, pools), sessions(gateway.port, 20) as innocent:
        family = children(gateway.pid)
        if picker == "frozen":
            os.kill(family["picker"], signal.SIGSTOP)
        with streams(gateway.port, 1300) as attackers:
            eventually(
                lambda: (statuses(attackers), sum(pool.sessions for pool in pools)),
                lambda seen: seen[0].total() + seen[1] == 1300 + len(innocent),
            )
            answers = statuses(attackers)
            assert set(answers) == {503}
            for session in innocent:
                session.echo()
            os.kill(family["picker"], signal.SIGCONT)
            eventually(lambda: metric(gateway, "evenly_refused_requests_total"), lambda n: n == answers[503])
            assert '"refusing":true' in ask(gateway.admin, "/readyz")[1]
            assert sum(line["requests"] for line in logged(gateway, "clients refused")) > 0
        eventually(lambda: can_start(gateway.port), bool)
        for session in innocent:
            session.echo()
        assert children(gateway.pid) == family


@pytest.mark.full
def test_idle_connections_to_pools_leave_room_for_others() -> None:
    """Requests that end leave idle connections to the pools. POSTs then take connections of their own."""
    with besieged(files=1200) as (gateway, pools), sessions(gateway.port, 20) as innocent, ExitStack() as stack:
        family = children(gateway.pid)
        (limits,) = logged(gateway, "limits")
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port), PATIENCE))
            for _ in range(limits["clients"] - len(innocent))
        ]

        def begun() -> int:
            return sum(map(is_answered, clients)) + sum(pool.sessions for pool in pools) - len(innocent)

        for request in (b"GET /?seconds=4", b"POST /?seconds=3600"):
            for number, client in enumerate(clients):
                client.sendall(request + b" HTTP/1.1\r\nhost: pools\r\ncontent-length: 0\r\n\r\n")
                if number % 50 == 0:  # more at once would be refused
                    eventually(begun, lambda count: count > number)  # noqa: B023
            eventually(begun, lambda count: count == len(clients))
            if request.startswith(b"GET"):
                assert {client.recv(2**16)[:12] for client in clients} == {b"HTTP/1.1 200"}
        assert len(list(Path(f"/proc/{family['envoy']}/fd").iterdir())) < 1200
        for session in innocent:
            session.echo()
        assert children(gateway.pid) == family


@pytest.mark.full
def test_posts_leave_no_connections_behind() -> None:
    """Not even at pools that ignore `Connection: close`."""
    with besieged(files=1200) as (gateway, _):
        files = Path(f"/proc/{children(gateway.pid)['envoy']}/fd")
        before = len(list(files.iterdir()))  # several for each processor
        connection = HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE)
        for _ in range(300):
            connection.request("POST", "/")
            answer = connection.getresponse()
            assert (answer.status, bool(answer.read())) == (200, True)
        assert len(list(files.iterdir())) < before + 100
        connection.close()


@pytest.mark.full
def test_posts_that_are_reset_leave_few_connections_behind() -> None:
    """A reset while the connection to the pool opens leaves it idle. These connections have a limit, too."""
    with besieged(files=1200) as (gateway, _), sessions(gateway.port, 10) as innocent:
        family = children(gateway.pid)
        end = time.monotonic() + 8
        with ThreadPoolExecutor(10) as attackers:
            for number in range(10):
                attackers.submit(reset_posts, gateway.port, 0.015 + 0.0015 * number, end)
        assert children(gateway.pid) == family
        for session in innocent:
            session.echo()


def reset_posts(port: int, wait: float, end: float) -> None:
    """Send POSTs over HTTP/2 until the time `end`, and reset each after `wait` seconds."""
    path = b"/?seconds=3600"
    post = bytes([0x83, 0x86, 0x04, len(path)]) + path + bytes([0x01, 5]) + b"pools"
    cancel = (8).to_bytes(4, "big")
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
            client.sendall(_HTTP2_SILENCE)
            for first in range(1, 10**5, 40):
                streams = range(first, first + 40, 2)
                client.sendall(b"".join(_frame(1, 5, stream, post) for stream in streams))
                time.sleep(wait)
                client.sendall(b"".join(_frame(3, 0, stream, cancel) for stream in streams))
                time.sleep(0.005)
                if time.monotonic() >= end or is_closed(client):
                    break


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


@pytest.mark.full
def test_an_innocent_client_may_send_100_requests_at_once() -> None:
    """Each waits for a connection to a pool at the same time."""
    with besieged(files=1200) as (gateway, pools), streams(gateway.port, 100) as clients:
        eventually(lambda: sum(pool.sessions for pool in pools), lambda open_: open_ == 100)
        assert not statuses(clients)
        assert len(clients) == 1


@pytest.mark.full
def test_slow_senders_are_disconnected() -> None:
    """Whatever part of a request they sent. Sessions that say nothing stay."""
    parts = [b"", b"G", b"GET / HTTP/1.1\r\n", _REQUEST[:-2], _HTTP2_SILENCE[:5]]
    with besieged(files=1200) as (gateway, _), sessions(gateway.port, 2) as quiet, ExitStack() as stack:
        clients = [socket.create_connection(("127.0.0.1", gateway.port), PATIENCE) for _ in parts]
        for client, part in zip(clients, parts, strict=True):
            stack.enter_context(client).sendall(part)
        eventually(lambda: [is_closed(client) for client in clients], all)
        eventually(lambda: metric(gateway, "evenly_silent_clients_total"), lambda n: n == len(parts))
        for session in quiet:
            session.echo()


@pytest.mark.long
@pytest.mark.parametrize(
    "openings", [[b""], pytest.param([_REQUEST, _HTTP2_SILENCE], marks=pytest.mark.full)], ids=["silent", "idle"]
)
def test_idle_connections_lock_no_client_out(openings: list[bytes]) -> None:
    """They take every place, and the gateway says so. Then they lose some of them."""
    with besieged(files=800) as (gateway, _), sessions(gateway.port, 5) as innocent, ExitStack() as stack:
        for opening in 200 * openings:
            try:
                client = stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port), PATIENCE))
                client.sendall(opening)
            except ConnectionError:  # refused already
                continue
        eventually(lambda: metric(gateway, "evenly_refused_clients_total"), lambda n: n > 0)
        assert '"refusing":true' in ask(gateway.admin, "/readyz")[1]
        eventually(lambda: can_start(gateway.port), bool)
        for session in innocent:
            session.echo()
        assert sum(line["clients"] for line in logged(gateway, "clients refused")) > 0


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    return 1024 * int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])


@pytest.mark.full
def test_waiting_requests_with_a_body_cost_little_memory() -> None:
    """150 bodies of 1 MB, at pools that do not answer: Envoy keeps at most its budget for retries."""
    posts, body = 150, bytes(10**6)
    with besieged(files=20_000) as (gateway, pools), ExitStack() as stack:
        envoy = children(gateway.pid)["envoy"]
        before = resident(envoy)
        for _ in range(posts):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port), PATIENCE))
            head = f"POST /?seconds=3600 HTTP/1.1\r\nhost: pools\r\ncontent-length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
        eventually(lambda: sum(pool.sessions for pool in pools), lambda open_: open_ == posts)
        assert resident(envoy) - before < posts * 300_000
        [limits] = logged(gateway, "limits")
        assert limits["retry_body"] * limits["sessions"] <= 2**29


class _Upload(BaseHTTPRequestHandler):
    """Answers a POST with the hash of its body."""

    def do_POST(self) -> None:
        digest = sha256(self.rfile.read(int(self.headers["content-length"]))).hexdigest().encode()
        self.send_response(200)
        self.send_header("content-length", str(len(digest)))
        self.end_headers()
        self.wfile.write(digest)


def test_a_large_body_arrives_whole() -> None:
    body = os.urandom(5_000_000)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Upload) as pool:
        threading.Thread(target=pool.serve_forever, daemon=True).start()
        with Gateway("--pool", f"127.0.0.1:{pool.server_port}", "--alpha", "0.5") as gateway:
            gateway.wait()
            connection = HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE)
            connection.request("POST", "/", body)
            assert connection.getresponse().read().decode() == sha256(body).hexdigest()
            connection.close()
        pool.shutdown()
