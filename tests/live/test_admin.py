"""The admin port on a real socket: its state, changes to pools, and rejected requests."""

from __future__ import annotations

import asyncio
import html
import json
import random
import re
import shlex
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from evenly.core import LearningRule, ThresholdPolicy
from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.admin.balancer_source import BalancerSource
from evenly.live.admin.schema import STATE_EXAMPLE, EnvoyView, PoolView, Readiness, StateView, Status, StoreView
from evenly.live.admin_token import read_token
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.latency import Latency
from evenly.live.balancer.pool import LivePool
from evenly.live.dashboard.feed import Feed
from evenly.live.log import Log
from evenly.live.timing import Timing

TOKEN = "a-token-of-many-characters"
PATIENCE = 60.0
ENVOYS = [EnvoyView(admin="127.0.0.1:9901", reachable=True, sessions=3, unknown_pools=["127.0.0.1:9002"])]


class Port(httpx.Client):
    """A client of an admin port, and the balancer behind it."""

    def __init__(self, address: Address, balancer: Balancer, token: str | None) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        super().__init__(base_url=f"http://{address}", headers=headers, timeout=PATIENCE, trust_env=False)
        self.address = address
        self.balancer = balancer
        self.ready = True
        self.store: StoreView | None = None
        self.fails = ""  # the pool whose health checks fail at once
        self.log = Log(None)
        self.feed = Feed(BalancerSource(balancer, list), self.log)

    def add(self, address: str) -> httpx.Response:
        return self.post("/pools", json={"address": address})

    async def checked(self, pool: LivePool) -> None:
        if str(pool.address) == self.fails:
            self.balancer.set_failing(pool, "down")

    def states(self) -> dict[str, str]:
        return {pool["address"]: pool["state"] for pool in self.get("/state").json()["pools"]}


def balancer(pools: int = 2) -> Balancer:
    made = Balancer(
        ThresholdPolicy(0, LearningRule("0.6")),
        name="threshold",
        choose=random.Random(1).choice,
        clock=time.monotonic,
        slow_start=1000.0,
        report=lambda event, /, **facts: None,
    )
    for number in range(pools):
        made.set_well(
            made.add(Address("127.0.0.1", 9001 + number), Address("127.0.0.1", 9001 + number), slowly=False)
        )
    return made


async def resolve(address: Address) -> Address:
    if address.host.endswith(".invalid"):
        raise InputError(f"The host of {address} is not known.")
    return Address("192.0.2.1", address.port) if address.host == "pool.example" else address


@contextmanager
def admin_port(token: str | None = None) -> Iterator[Port]:
    """Run an admin port in its own event loop, one request at a time."""
    from evenly.live.admin.app import admin_app
    from evenly.live.admin.server import serve_admin

    sock = socket.create_server(("127.0.0.1", 0))
    address = Address("127.0.0.1", sock.getsockname()[1])
    port = Port(address, balancer(), token)
    app = admin_app(
        balancer=port.balancer,
        latency=Latency(),
        envoys=lambda: ENVOYS,
        token=token,
        bound=address,
        resolve=resolve,
        ready=lambda: port.ready,
        publish=lambda: None,
        checked=port.checked,
        feed=port.feed,
        store=lambda: port.store,
    )
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with serve_admin(app, sock):
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.Runner(loop_factory=lambda: loop).run(serve()))
    thread.start()
    try:
        with port:
            yield port
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE)
        loop.close()
        assert not thread.is_alive()


@pytest.fixture
def port() -> Iterator[Port]:
    with admin_port() as made:
        yield made


@pytest.fixture
def guarded() -> Iterator[Port]:
    with admin_port(TOKEN) as made:
        yield made


def refused(answer: httpx.Response, status: int) -> str:
    """Check that a request was rejected; return the reason, which is one sentence."""
    assert answer.status_code == status, answer.text
    detail = answer.json()["detail"]
    assert isinstance(detail, str)
    assert detail.endswith(".")
    return detail


# --- inspect ---------------------------------------------------------------------------------------------------


def test_the_state_is_the_balancers(port: Port) -> None:
    for _ in range(5):
        port.balancer.open()
    port.balancer.set_unpicked(port.balancer.pools[0], 2)
    port.balancer.set_elsewhere(port.balancer.pools[0], 3)

    state = port.get("/state").json()

    serving = {"state": "serving", "weight": 1.0, "source": ""}
    assert state == {
        "policy": "threshold",
        "alpha": 0.6,
        "threshold": port.balancer.threshold,
        "pools": [
            {"address": "127.0.0.1:9001", "sessions": 7, "unpicked": 2, "elsewhere": 3, **serving},
            {"address": "127.0.0.1:9002", "sessions": 3, "unpicked": 0, "elsewhere": 0, **serving},
        ],
        "classes": [{"weight": 1.0, "pools": 2, "threshold": port.balancer.threshold}],
        "sessions": 10,
        "tokens": dict(zip(("green", "yellow"), port.balancer.tokens or (), strict=True)),
        "messages": asdict(port.balancer.messages),
        "picks": {"yellow": 5},
        "unpicked_sessions": 2,
        "moved_sessions": 0,
        "envoys": [
            {"admin": "127.0.0.1:9901", "reachable": True, "sessions": 3, "unknown_pools": ["127.0.0.1:9002"]}
        ],
        "store": None,
        "discovery": [],
        "changes_survive": False,
    }


def test_probes_tell_alive_from_ready(port: Port) -> None:
    assert port.get("/healthz").json() == {"status": "alive"}
    assert port.get("/readyz").json() == {"status": "ready"}
    port.ready = False
    assert port.get("/healthz").status_code == 200
    refused(port.get("/readyz"), 503)


# --- pools -----------------------------------------------------------------------------------------------------


def test_the_answer_to_a_new_pool_waits_for_its_health_checks(port: Port) -> None:
    port.fails = "127.0.0.1:9003"
    assert port.add(port.fails).json()["state"] == "failing"


def test_a_pool_is_added_drained_undrained_and_removed(port: Port) -> None:
    name = "127.0.0.1:9003"
    added = port.add(name)
    assert (added.status_code, added.json()) == (
        201,
        {
            "address": name,
            "sessions": 0,
            "unpicked": 0,
            "elsewhere": 0,
            "state": "checking",
            "weight": 1.0,
            "source": "",
        },
    )
    port.balancer.adopt(Address("127.0.0.1", 9003))

    for change, state in (("drain", "draining"), ("undrain", "warming")):
        answer = port.post(f"/pools/{name}/{change}")
        assert (answer.status_code, answer.json()["state"], port.states()[name]) == (200, state, state)
    answer = port.delete(f"/pools/{name}")
    assert (answer.status_code, answer.json()["state"], port.states()[name]) == (200, "leaving", "leaving")
    assert port.add(name).json()["sessions"] == 1  # it comes back with what it has

    assert port.delete("/pools/127.0.0.1:9001").json()["state"] == "leaving"
    assert list(port.states()) == ["127.0.0.1:9002", name]


def test_a_name_is_resolved(port: Port) -> None:
    assert port.add("pool.example:80").json()["address"] == "pool.example:80"
    pool = port.balancer.pool_at(Address("192.0.2.1", 80))
    assert pool is not None
    assert pool.address == Address("pool.example", 80)
    assert "missing.invalid" in refused(port.add("missing.invalid:80"), 422)


def test_an_ipv6_pool_can_be_named_in_a_path(port: Port) -> None:
    port.add("[2001:db8::1]:80")

    for path in ("/pools/[2001:db8::1]:80/drain", "/pools/%5B2001:db8::1%5D:80/drain"):
        assert port.post(path).json()["address"] == "[2001:db8::1]:80"


def test_impossible_changes_are_rejected_with_a_reason(port: Port) -> None:
    assert "127.0.0.1:9001" in refused(port.add("127.0.0.1:9001"), 409)
    for text in ("nonsense", "host:99999", "host:0", "", "http://host:80"):
        assert repr(text) in refused(port.add(text), 422)
    refused(port.add("x" * 400 + ":80"), 422)
    for method, path in (("POST", "/drain"), ("POST", "/undrain"), ("DELETE", "")):
        assert "127.0.0.1:7777" in refused(port.request(method, f"/pools/127.0.0.1:7777{path}"), 404)
        assert "'nonsense'" in refused(port.request(method, f"/pools/nonsense{path}"), 422)
    assert port.states() == {"127.0.0.1:9001": "serving", "127.0.0.1:9002": "serving"}


def test_a_body_of_the_wrong_form_is_refused_in_one_sentence(port: Port) -> None:
    for body in [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"address": 1}',
        '{"address": "a:1", "weight": "heavy"}',
        '{"address": "a:1", "color": "red"}',
        "\xff",
        "[" * 60_000,
    ]:
        answer = port.post("/pools", content=body.encode("latin-1"), headers={"Content-Type": "application/json"})

        assert answer.status_code in {400, 422}
        detail = answer.json()["detail"]
        assert answer.status_code == 400 or re.fullmatch(r"Invalid body[\w.]*: .+\.", detail), detail
        assert len(port.states()) == 2


def test_unknown_paths_and_methods_are_answered(port: Port) -> None:
    assert port.get("/nothing").status_code == 404
    assert port.delete("/state").status_code == 405
    assert port.get("/pools/127.0.0.1:9001/drain").status_code == 405  # a link must not change anything


# --- rejected requests -----------------------------------------------------------------------------------------

PAGES = [("GET", "/"), ("GET", "/docs"), ("GET", "/openapi.json")]
SECRET = [
    ("GET", "/state"),
    ("GET", "/metrics"),
    ("POST", "/pools"),
    ("POST", "/pools/127.0.0.1:9001/drain"),
    ("POST", "/pools/127.0.0.1:9001/undrain"),
    ("DELETE", "/pools/127.0.0.1:9001"),
    ("GET", "/dashboard/events"),
    ("GET", "/nothing"),
]
EVERYTHING = PAGES + SECRET


def test_with_a_token_nothing_but_probes_and_pages_is_open(guarded: Port) -> None:
    wrong = [
        "",
        "Bearer",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer \u00e9",
    ]
    for method, path in SECRET:
        for given in wrong:
            answer = guarded.request(method, path, headers={b"Authorization": given.encode("latin-1")})
            refused(answer, 401)
            assert answer.headers["www-authenticate"] == "Bearer"
    del guarded.headers["authorization"]
    refused(guarded.get("/state"), 401)
    assert guarded.get("/healthz").status_code == guarded.get("/readyz").status_code == 200
    assert [pool.state for pool in guarded.balancer.pools] == ["serving", "serving"]


def test_a_browser_can_open_the_pages_although_it_sends_no_token(guarded: Port) -> None:
    """It sends these headers when its user types an address."""
    navigation = {"Accept": "text/html,*/*;q=0.8", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "none"}
    with httpx.Client(base_url=guarded.base_url, headers=navigation, timeout=PATIENCE, trust_env=False) as browser:
        assert 'href="docs"' in browser.get("/").text
        page = browser.get("/docs")
        assert "<h1" in page.text
        assert 'Authorization: Bearer $EVENLY_ADMIN_TOKEN"' in html.unescape(page.text)
        assert browser.get("/openapi.json").json()["paths"].keys() >= {"/state", "/pools"}
        refused(browser.get("/state"), 401)


def test_a_path_that_only_looks_like_a_page_needs_the_token(guarded: Port) -> None:
    def status(path: bytes) -> int:
        return status_for(guarded.address, b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert status(b"/docs") == 200
    for path in (b"/docs/", b"//docs", b"/docs/../state", b"/DOCS", b"/docs;/state", b"/state?/docs", b"/docs%2F"):
        assert status(path) == 401, path


def test_pages_of_others_may_not_read_the_open_pages_either(guarded: Port) -> None:
    del guarded.headers["authorization"]
    for method, path in PAGES:
        refused(guarded.request(method, path, headers={"Origin": "http://evil.example"}), 403)
        refused(guarded.request("POST", path, content=b"x=1"), 415)


def test_without_a_token_a_foreign_name_is_refused(port: Port) -> None:
    for host in [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "[",
        "",
        "@",
        "[::1]evil.example",
        "127.0.0.1:80@evil.example",
    ]:
        for method, path in EVERYTHING:
            refused(port.request(method, path, headers={"Host": host}), 421)
        assert port.get("/healthz", headers={"Host": host}).status_code == 200
        assert port.states() == {"127.0.0.1:9001": "serving", "127.0.0.1:9002": "serving"}


def status_for(address: Address, request: bytes) -> int:
    """Send a request byte by byte as it is; return the status of its answer."""
    with socket.create_connection(address, PATIENCE) as client:
        client.sendall(request)
        return int(client.recv(1000).split()[1])


def test_pages_of_others_may_not_call(port: Port) -> None:
    for origin in ["http://evil.example", "null", "", "http://127.0.0.1:1", "http://["]:
        for method, path in EVERYTHING:
            refused(port.request(method, path, headers={"Origin": origin}), 403)
        assert port.states()["127.0.0.1:9001"] == "serving"


def test_pages_of_others_may_not_show_an_answer_but_may_link_to_the_pages(port: Port) -> None:
    """Browsers send no `Origin` for an image, a script, a frame or a link."""
    image = {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    frame = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
    link = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    for site in ("cross-site", "same-site"):
        of_another = {"Sec-Fetch-Site": site}
        for method, path in EVERYTHING:
            for kind in (image, frame):
                said = refused(port.request(method, path, headers=of_another | kind), 403)
                assert said == "Pages of other sites may not call the admin port."
        assert port.get("/healthz", headers=of_another | image).status_code == 200
        assert {port.get(path, headers=of_another | link).status_code for _, path in PAGES} == {200}
        refused(port.get("/state", headers=of_another | link), 403)
    assert port.get("/state", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_what_an_html_form_can_send_is_rejected(port: Port) -> None:
    body = json.dumps({"address": "127.0.0.1:9003"}).encode()
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]:
        refused(port.post("/pools", content=body, headers={"Content-Type": kind}), 415)
        refused(port.post("/pools", content=iter([body]), headers={"Content-Type": kind}), 415)
    good = {"Content-Type": "application/json; charset=utf-8"}
    assert port.post("/pools", content=body, headers=good).status_code == 201


def in_pieces(body: bytes) -> Iterator[bytes]:
    """Yield the body in pieces, slowly, so that they arrive one by one."""
    for begin in range(0, len(body), 20_000):
        yield body[begin : begin + 20_000]
        time.sleep(0.05)


def test_large_bodies_are_rejected(port: Port) -> None:
    kind = {"Content-Type": "application/json"}
    padded = json.dumps({"address": "127.0.0.1:9003"}).encode() + b" " * 65_536

    refused(port.post("/pools", content=padded, headers=kind), 413)
    refused(port.post("/pools", content=in_pieces(padded), headers=kind), 413)
    assert port.post("/pools", content=padded[:60_000], headers=kind).status_code == 201


# --- the page --------------------------------------------------------------------------------------------------


def operations(port: Port) -> list[tuple[str, str, dict[str, Any]]]:
    paths = port.get("/openapi.json").json()["paths"]
    return [(method.upper(), path, each) for path, methods in paths.items() for method, each in methods.items()]


def test_the_page_needs_nothing_from_elsewhere_and_names_every_operation(port: Port) -> None:
    answer = port.get("/docs")
    page = answer.text

    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert set(re.findall(r"\b(?!dns|srv)\w+://[^/\s<]*", page)) == {f"http://{port.address}"}
    assert not re.search(r"<script|<img|<link|@import|url\(|\bsrc=", page)
    assert len(operations(port)) == 9
    for method, path, described in operations(port):
        assert f"{method}</b> <code>{path}</code> <small>{described['summary']}" in page
        for parameter in described.get("parameters", []):
            assert parameter["description"] in page


def commands(page: str) -> list[list[str]]:
    """Return the examples, split into words as a shell does."""
    return [
        shlex.split(html.unescape(text).replace("\\\n", ""))
        for text in re.findall(r"<pre>(curl .*?)</pre>", page, re.DOTALL)
    ]


def carry_out(port: Port, command: list[str]) -> httpx.Response:
    """Send the request that curl would send."""
    method, url, headers, body = "GET", "", {}, None
    words = iter(command[1:])
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "-H":
            name, value = next(words).split(": ", 1)
            headers[name] = value.replace("$EVENLY_ADMIN_TOKEN", TOKEN)
        elif word == "-d":
            body = next(words)
        else:
            url = word
    return httpx.request(method, url, headers=headers, content=body, timeout=PATIENCE, trust_env=False)


def test_the_examples_of_the_page_work() -> None:
    with admin_port(TOKEN) as port:
        port.delete("/pools/127.0.0.1:9001")  # for the example that adds it
        page = port.get("/docs").text

        answers = [carry_out(port, command) for command in commands(page)]

    assert [answer.status_code for answer in answers] == [200, 200, 201, *[200] * 6]
    assert all(answer.request.url.host == "127.0.0.1" for answer in answers)
    assert "EVENLY_ADMIN_TOKEN" in page


def test_the_page_shows_the_address_that_the_reader_used(guarded: Port) -> None:
    assert (
        "curl http://admin.example:4001/state" in guarded.get("/docs", headers={"Host": "admin.example:4001"}).text
    )
    odd = guarded.get("/docs", headers={"Host": "x';reboot;'<b>"}).text
    assert "reboot" not in odd
    assert f"curl http://{guarded.address}/state" in odd


MODELS: dict[str, type[BaseModel]] = {
    "StateView": StateView,
    "PoolView": PoolView,
    "Status": Status,
    "Readiness": Readiness,
}


def test_the_examples_have_the_form_of_the_answers(port: Port) -> None:
    for method, path, described in operations(port):
        assert described["summary"]
        assert described["description"]
        ((_, answer),) = [item for item in described["responses"].items() if item[0].startswith("2")]
        if path == "/metrics":
            continue
        content = answer["content"]["application/json"]
        model = MODELS[content["schema"]["$ref"].rsplit("/")[-1]]
        shown = model.model_validate(content["example"]).model_dump(mode="json")
        assert shown == content["example"]
        if "{address}" in path or method == "POST":
            assert "422" in described["responses"]
    assert set(STATE_EXAMPLE) == set(StateView.model_fields)


def test_the_schema_documents_the_token(guarded: Port, port: Port) -> None:
    for method, path, described in operations(guarded):
        assert ("security" in described) == (path not in {"/healthz", "/readyz"}), (method, path)
    assert all("security" not in described for _, _, described in operations(port))


# --- the server ------------------------------------------------------------------------------------------------


def serve_and(body: Callable[[Address], None], timing: Timing | None = None) -> None:
    """Call `body` in a thread while an admin port runs in the main thread's loop, and end the port in time."""
    from evenly.live.admin.app import admin_app
    from evenly.live.admin.server import serve_admin

    async def run() -> None:
        sock = socket.create_server(("127.0.0.1", 0))
        address = Address("127.0.0.1", sock.getsockname()[1])

        async def never(address: Address) -> Address:
            await asyncio.Event().wait()
            return address

        app = admin_app(
            balancer=balancer(),
            latency=Latency(),
            envoys=list,
            token=None,
            bound=address,
            resolve=never,
            ready=lambda: True,
            publish=lambda: None,
            feed=Feed(BalancerSource(balancer(), list), Log(None)),
        )
        async with asyncio.timeout(PATIENCE), serve_admin(app, sock, timing=timing):
            await asyncio.to_thread(body, address)
        with pytest.raises(OSError):
            await asyncio.to_thread(socket.create_connection, address, PATIENCE)

    asyncio.run(run())


def test_signal_handlers_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGTERM)
    during: list[object] = []

    def look(address: Address) -> None:
        httpx.get(f"http://{address}/healthz", trust_env=False).raise_for_status()
        during.append(signal.getsignal(signal.SIGTERM))

    serve_and(look)
    assert [*during, signal.getsignal(signal.SIGTERM)] == [before, before]


def test_clients_that_linger_do_not_delay_the_end() -> None:
    """One is idle, one has sent half a request, and one waits for an answer that never comes."""
    with ExitStack() as stack:

        def connect(address: Address) -> None:
            client = stack.enter_context(httpx.Client(trust_env=False))
            client.get(f"http://{address}/healthz").raise_for_status()
            order = (
                b"POST /pools HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
            )
            halves = [order, order + b"99\r\n\r\n{", order + b'18\r\n\r\n{"address": "a:1"}']
            for half in halves:
                stack.enter_context(socket.create_connection(address, PATIENCE)).sendall(half)
            client.get(f"http://{address}/healthz").raise_for_status()

        serve_and(connect)  # within its timeout, although the clients stay


def test_a_client_that_sends_no_request_is_disconnected() -> None:
    def wait(address: Address) -> None:
        with socket.create_connection(address, PATIENCE) as client:
            client.sendall(b"GET /heal")
            assert client.recv(1000) == b""

    serve_and(wait, Timing(first_request_s=0.05))


def test_garbage_is_answered_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    def send(address: Address) -> None:
        for garbage in (b"\x16\x03\x01 hello\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"GET /state HTTP/1.0\r\n\r\n"):
            with socket.create_connection(address, PATIENCE) as client:
                client.sendall(garbage)
                assert client.recv(1000).split(b"\r\n")[0].split()[1] in {b"400", b"421"}
        httpx.get(f"http://{address}/healthz", trust_env=False).raise_for_status()

    serve_and(send)
    assert caplog.records == []


# --- the token -------------------------------------------------------------------------------------------------

LOOPBACK, OUTSIDE = Address("127.0.0.1", 4001), Address("0.0.0.0", 4001)


def test_the_token_comes_from_the_file_or_else_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"  {TOKEN}\n")

    assert read_token(OUTSIDE, file, {"EVENLY_ADMIN_TOKEN": "x" * 16}) == TOKEN
    assert read_token(OUTSIDE, None, {"EVENLY_ADMIN_TOKEN": "x" * 16}) == "x" * 16
    assert read_token(LOOPBACK, None, {}) is None
    assert read_token(LOOPBACK, None, {"EVENLY_ADMIN_TOKEN": ""}) is None


def test_beyond_loopback_a_token_is_required() -> None:
    for host in ["0.0.0.0", "::", "10.0.0.1", "admin.example"]:
        for environment in ({}, {"EVENLY_ADMIN_TOKEN": ""}):
            with pytest.raises(InputError, match="--admin-token-file"):
                read_token(Address(host, 4001), None, environment)


def test_a_bad_token_is_rejected_and_not_shown(tmp_path: Path) -> None:
    for text in [b"", b" \n", b"x" * 15, b"two words of a token", b"x" * 16 + b"\ny", b"x" * 16 + b"\xc3\xa9"]:
        file = tmp_path / "token"
        file.write_bytes(text)

        for admin in (LOOPBACK, OUTSIDE):
            with pytest.raises(InputError) as refusal:
                read_token(admin, file, {})
            assert str(file) in str(refusal.value)
            assert "xxx" not in str(refusal.value)
