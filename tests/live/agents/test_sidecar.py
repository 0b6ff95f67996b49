"""`evenly agent` as a real process, with real clients that are killed."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from tests.live.agents.dispatcher import CALM_S, SmallDispatcher
from tests.live.agents.support import dispatcher_process, until, until_async
from tests.live.processes import PATIENCE, Process, ask, eventually, free_port

HOLDER = """
import http.client, sys
held = []
for _ in range(int(sys.argv[2])):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    connection.request("GET", "/session")
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    answer.readline()
    held.append((connection, answer))
print("holding", flush=True)
sys.stdin.read()
"""


class Sidecar(Process):
    """A sidecar and its port."""

    def __init__(self, *dispatchers: str, more: tuple[str, ...] = ()) -> None:
        options = [word for url in dispatchers for word in ("--dispatcher", url)]
        super().__init__(
            sys.executable, "-m", "evenly", "agent", "--pool", "game-1", "--address", "ws://127.0.0.1:7000",
            "--listen", "127.0.0.1:0", "--ready-json", *options, *more,
        )  # fmt: skip

    @property
    def port(self) -> int:
        return int(json.loads(self.ready_line(0, '{"listen"'))["listen"].rpartition(":")[2])

    def get(self, path: str = "/state") -> Any:  # noqa: ANN401
        status, body = ask(self.port, path)
        assert status == 200, body
        return json.loads(body)

    def post(self, path: str, **values: object) -> tuple[int, Any]:
        status, body = ask(self.port, path, "POST", values)
        return status, json.loads(body)


@contextmanager
def sidecar(*more: str) -> Iterator[Sidecar]:
    """Run a sidecar without a dispatcher."""
    with Sidecar(f"http://127.0.0.1:{free_port()}", more=more) as process:
        yield process


@contextmanager
def holder(port: int, count: int) -> Iterator[subprocess.Popen[str]]:
    """Run a server that holds a connection to the sidecar for each of its sessions."""
    command = [sys.executable, "-c", HOLDER, str(port), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "holding\n"
            yield process
        finally:
            process.kill()


def test_begin_and_end_are_idempotent_and_need_no_dispatcher() -> None:
    with sidecar() as agent:
        assert agent.post("/begin", session="a", lease=None) == (200, {"sessions": 1})
        assert agent.post("/begin", session="a") == (200, {"sessions": 1})
        assert agent.post("/begin", session="b", lease="no such lease") == (200, {"sessions": 2})
        assert agent.post("/end", session="a") == (200, {"sessions": 1})
        assert agent.post("/end", session="a") == (200, {"sessions": 1})
        assert agent.post("/end", session="never begun") == (200, {"sessions": 1})
        state = agent.get("/state")
        assert (state["sessions"], state["dispatcher"], state["threshold"]) == (1, None, 0)
        assert agent.get("/healthz") == {"status": "ok"}


def test_a_killed_server_leaks_no_held_session() -> None:
    with sidecar() as agent:
        with holder(agent.port, 20) as server:
            assert agent.get()["sessions"] == 20
            server.kill()  # as kill -9
            eventually(lambda: agent.get()["sessions"], lambda count: count == 0)
        connection = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=PATIENCE)
        body = json.dumps({"lease": "x"})
        connection.request("POST", "/session", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        assert json.loads(answer.readline()) == {"sessions": 1}
        assert agent.get()["sessions"] == 1
        answer.close()
        connection.close()
        eventually(lambda: agent.get()["sessions"], lambda count: count == 0)


@pytest.mark.full
def test_a_pool_whose_server_is_not_there_asks_for_no_sessions() -> None:
    """A dead server has no sessions. Without the check, it would look like the best choice."""
    port = free_port()
    with sidecar("--server", f"127.0.0.1:{port}") as agent:
        eventually(agent.get, lambda state: (state["server"], state["draining"]) == ("down", True))
        with socket.create_server(("127.0.0.1", port)):
            eventually(agent.get, lambda state: (state["server"], state["draining"]) == ("up", False))
            assert agent.post("/drain") == (200, {"draining": True})
        eventually(agent.get, lambda state: state["server"] == "down")
        assert agent.post("/undrain") == (200, {"draining": True})  # the server is still down
        with socket.create_server(("127.0.0.1", port)):
            eventually(agent.get, lambda state: (state["server"], state["draining"]) == ("up", False))
    with sidecar() as agent:
        assert (agent.get()["server"], agent.get()["draining"]) == (None, False)


def test_a_pipelined_request_ends_a_held_session() -> None:
    """The server behind uvicorn would read no further, and not notice the end of the connection."""
    with sidecar() as agent:
        request = b"GET /session HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
        with socket.create_connection(("127.0.0.1", agent.port), timeout=PATIENCE) as connection:
            connection.sendall(request)
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
            eventually(lambda: agent.get()["sessions"], lambda count: count == 1)
            connection.sendall(request)
            eventually(lambda: agent.get()["sessions"], lambda count: count == 0)


@pytest.mark.full
def test_endless_headers_take_no_memory() -> None:
    with sidecar() as agent:
        assert agent.get("/healthz") == {"status": "ok"}
        before = agent.memory()
        with socket.create_connection(("127.0.0.1", agent.port), timeout=PATIENCE) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
            connection.sendall(b"GET /healthz HTTP/1.1\r\n")
            lines = b"".join(b"a%d: x\r\n" % number for number in range(10_000))
            with suppress(OSError):
                for _ in range(200):
                    connection.sendall(lines)
        assert agent.memory() - before < 30_000_000


def test_tickets_and_refusals_reach_the_dispatcher() -> None:
    async def run() -> None:
        async with SmallDispatcher(heartbeat=CALM_S) as dispatcher:
            with Sidecar(dispatcher.url, more=("--capacity", "1")) as agent:

                async def expected() -> int:
                    pool = await dispatcher.pool("game-1")
                    return -1 if pool is None else pool.expected

                await until_async(expected, lambda count: count == 0)
                _, lease = await dispatcher.place()
                assert await asyncio.to_thread(agent.post, "/begin", session="a") == (200, {"sessions": 1})
                status, answer = await asyncio.to_thread(agent.post, "/begin", session="b", lease=lease)
                assert (status, "its capacity" in answer["detail"]) == (503, True)
                await until_async(expected, lambda count: count == 0)
                status, _ = await asyncio.to_thread(ask, agent.port, "/session")
                assert status == 503
                state = await asyncio.to_thread(agent.get)
                assert state["dispatcher"] == f"ws://127.0.0.1:{dispatcher.port}/v1/agents"
                assert state["messages"]["refusals"] == 1
                assert state["messages"]["heartbeats"] > 0
                assert await asyncio.to_thread(agent.post, "/drain") == (200, {"draining": True})
                assert (await asyncio.to_thread(agent.get))["draining"] is True
                assert await asyncio.to_thread(agent.post, "/undrain") == (200, {"draining": False})
                code = await asyncio.to_thread(agent.kill, signal.SIGTERM)
                assert code == 0
                await until(lambda: dispatcher.frames[-1]["kind"] == "leave")
                events = [json.loads(line) for line in agent.output().splitlines()[1:]]
                assert [each["event"] for each in events] == ["dispatcher connected", "stopped"]

    asyncio.run(run())


def test_a_sidecar_whose_dispatcher_dies_goes_on() -> None:
    with dispatcher_process() as (dispatcher, port), Sidecar(f"http://127.0.0.1:{port}") as agent:
        agent.post("/begin", session="a")
        eventually(lambda: ask(port, "/state")[1], lambda seen: seen == '{"game-1": 1}')
        dispatcher.kill()
        eventually(lambda: agent.get()["dispatcher"], lambda url: url is None)
        assert agent.post("/begin", session="b") == (200, {"sessions": 2})
        with Process(sys.executable, "-m", "tests.live.agents.dispatcher", "--port", str(port)):
            eventually(lambda: agent.get()["dispatcher"], lambda url: url is not None)
            eventually(lambda: ask(port, "/state")[1], lambda seen: seen == '{"game-1": 2}')


def test_a_sidecar_stops_at_once_although_connections_are_held() -> None:
    with sidecar() as agent, holder(agent.port, 3):
        assert agent.kill(signal.SIGINT) == 0
        assert "uvicorn" not in agent.output()
        assert "Traceback" not in agent.output()


LOOPBACK = "--listen must be a loopback address such as 127.0.0.1:4150"
BAD_REQUESTS: list[tuple[str, str, str, dict[str, str], int]] = [
    ("POST", "/begin", "", {}, 400),
    ("POST", "/begin", "{}", {}, 400),
    ("POST", "/begin", "[]", {}, 400),
    ("POST", "/begin", "{", {}, 400),
    ("POST", "/begin", "[" * 5000, {}, 400),
    ("POST", "/begin", '{"session": 1}', {}, 400),
    ("POST", "/begin", '{"session": ""}', {}, 400),
    ("POST", "/begin", json.dumps({"session": "x" * 201}), {}, 400),
    ("POST", "/begin", '{"session": "a", "lease": 1}', {}, 400),
    ("POST", "/begin", '{"session": "a", "Lease": "b"}', {}, 400),
    ("POST", "/begin", json.dumps({"session": "x" * 10_000}), {}, 413),
    ("POST", "/begin", '{"session": "a"}', {"content-type": "text/plain"}, 415),
    ("POST", "/begin", '{"session": "a"}', {"host": "evil.example"}, 421),
    ("POST", "/begin", '{"session": "a"}', {"origin": "http://127.0.0.1"}, 403),
    ("GET", "/session", "", {"sec-fetch-site": "cross-site"}, 403),
    ("GET", "/session?lease=" + "x" * 2000, "", {}, 400),
    ("GET", "/session?" + "&".join(f"{number}=1" for number in range(50)), "", {}, 400),
    ("POST", "/drain", '{"now": true}', {}, 400),
    ("GET", "/begin", "", {}, 405),
    ("DELETE", "/session", "", {}, 405),
    ("GET", "/no/such/path", "", {}, 404),
]


def test_bad_requests_are_refused_in_one_sentence() -> None:
    with sidecar() as agent:
        for method, path, body, headers, wanted in BAD_REQUESTS:
            connection = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=PATIENCE)
            kind = {"content-type": "application/json"} if body else {}
            connection.request(method, path, body or None, {**kind, **headers})
            answer = connection.getresponse()
            assert (answer.status, method, path[:40]) == (wanted, method, path[:40])
            assert json.loads(answer.read())["detail"].endswith(".")
            connection.close()
        for garbage in (
            b"\0\xff" * 100,
            b"GET /state\r\n\r\n",
            b"POST /begin HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        ):
            with socket.create_connection(("127.0.0.1", agent.port)) as client:
                client.sendall(garbage)
                client.shutdown(socket.SHUT_WR)
                while client.recv(1000):
                    pass
        state = agent.get()
        assert (state["sessions"], state["draining"]) == (0, False)
        assert "Traceback" not in agent.output()


def test_bad_options_are_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[tuple[list[str], str]] = [
        (["--listen", "0.0.0.0:4150"], f"{LOOPBACK}, not 0.0.0.0:4150."),
        (["--listen", "10.0.0.1:0"], f"{LOOPBACK}, not 10.0.0.1:0."),
        (["--listen", "4150"], "An address must be HOST:PORT with a port up to 65535, not '4150'."),
        (["--server", "127.0.0.1:0"], "The port of the server must be from 1 to 65535, not 0 as in"),
        (["--capacity", "x"], "--capacity must be a whole number from 1 to 1000000000000, not 'x'."),
        (["--token-file", "/does/not/exist"], "Cannot read /does/not/exist: no such file or directory."),
        (["--dispatcher", "127.0.0.1:4100"], "A dispatcher must be the URL of its API, such as"),
        (["--address", "nowhere"], "The address of a pool must be a URL such as"),
        (["--ca-file", "f.pem"], "--ca-file is for dispatchers with https://, not for"),
    ]
    for options, sentence in rows:
        from evenly.cli.main import main

        given = ["--pool", "a", "--address", "ws://127.0.0.1:1", "--dispatcher", "http://127.0.0.1:1"]
        assert main(["agent", *given, *options]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith(f"evenly: {sentence}")
        assert captured.err.count("\n") == 1
    assert main(["agent", *given[:4]]) == 2
    assert capsys.readouterr().err == "evenly: --dispatcher URL is required.\n"


def test_a_port_in_use_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    from evenly.cli.main import main

    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        given = ["--pool", "a", "--address", "ws://127.0.0.1:1", "--dispatcher", "http://127.0.0.1:1"]
        assert main(["agent", *given, "--listen", listen]) == 2
    assert capsys.readouterr().err == f"evenly: Cannot listen on {listen}: address already in use.\n"
