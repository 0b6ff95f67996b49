"""Who may call: tokens, hosts and origins on loopback, TLS with a CA, and starts that are refused."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from evenly.live.dispatcher.protocol import ApiServer
from evenly.live.timing import Timing
from tests.live.dispatcher.rig import Agents, Dispatcher, fleet, make_certificates, refused
from tests.live.processes import PATIENCE, eventually

AGENT, CLIENT, ADMIN = "agent-token-0123456789", "client-token-0123456789", "admin-token-0123456789"


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tokens")
    files = {name: folder / name for name in ("agent", "client", "admin")}
    for name, token in (("agent", AGENT), ("client", CLIENT), ("admin", ADMIN)):
        files[name].write_text(f"{token}\n")
    return files


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def plain() -> Iterator[Dispatcher]:
    with Dispatcher() as made:
        yield made


def handshake(dispatcher: Dispatcher, **headers: str) -> int:
    """Return the status of a WebSocket handshake at the agents' path."""

    async def play() -> int:
        try:
            async with connect(dispatcher.agents_url, proxy=None, additional_headers=headers):
                return 101
        except InvalidStatus as error:
            return error.response.status_code

    return asyncio.run(play())


def test_loopback_names_are_accepted_without_a_token(plain: Dispatcher) -> None:
    for host in ["localhost:80", "127.0.0.2", "[::1]:99"]:
        with plain.client() as client:
            assert client.post("/v1/sessions", headers={"Host": host}).json()["code"] == "no_pools"


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1:80@evil.example"])
def test_names_of_others_are_rejected_without_a_token(plain: Dispatcher, name: str) -> None:
    """A web page can make its own name resolve to 127.0.0.1."""
    evil = {"Host": name}
    with plain.client() as client:
        answers = [
            client.post("/v1/sessions", headers=evil),
            client.delete("/v1/sessions/x", headers=evil),
            client.get("/v1/go/x", headers=evil),
        ]
        assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(421, "wrong_host")] * 3
        assert client.get("/healthz", headers=evil).status_code == 200
    assert handshake(plain, Host=name) == 421
    assert plain.admin("GET", "/state", headers=evil).status_code == 421


def test_pages_of_others_are_rejected_without_a_token(plain: Dispatcher) -> None:
    origin = {"Origin": "http://evil.example"}
    with plain.client() as client:
        answers = [client.post("/v1/sessions", headers=origin), client.delete("/v1/sessions/x", headers=origin)]
        assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(403, "foreign_page")] * 2
        own = {"Origin": plain.url}
        assert client.post("/v1/sessions", headers=own).json()["code"] == "no_pools"
        assert client.get("/v1/go/x", headers=origin).json()["code"] == "no_pools"  # a link may lead here
    assert handshake(plain, Origin="http://evil.example") == 403
    assert handshake(plain, Origin=plain.url) == 101


def test_tokens_are_required_where_they_are_set(tokens: dict[str, Path]) -> None:
    options = (
        f"--agent-token-file={tokens['agent']}",
        f"--client-token-file={tokens['client']}",
        f"--admin-token-file={tokens['admin']}",
    )
    with Dispatcher(*options) as dispatcher, Agents(dispatcher.agents_url, token=AGENT) as agents:
        for headers in ({}, {"Authorization": f"Bearer {CLIENT}"}, {"Authorization": f"Basic {AGENT}"}):
            assert handshake(dispatcher, **headers) == 401
        agents.start("a")
        for token in ("", AGENT, CLIENT[:-1], CLIENT + "x"):
            with dispatcher.client(token) as client:
                answers = [
                    client.post("/v1/sessions"),
                    client.delete("/v1/sessions/x"),
                    client.get("/v1/go/x"),
                ]
            assert [answer.status_code for answer in answers] == [401] * 3
            assert all(answer.headers["www-authenticate"] == "Bearer" for answer in answers)
            assert all(answer.json()["code"] == "unauthorized" for answer in answers)
        with dispatcher.client(CLIENT) as client:
            eventually(lambda: client.post("/v1/sessions").status_code, lambda status: status == 201)
            assert client.post("/v1/sessions", headers={"Host": "any.example"}).status_code == 201
            eventually(lambda: client.get("/readyz").status_code, lambda status: status == 200)
            assert client.get("/docs").text.count("$EVENLY_CLIENT_TOKEN") >= 3
        assert dispatcher.admin("GET", "/state").status_code == 401
        for path in ("/docs", "/openapi.json"):  # a browser cannot send a token
            assert dispatcher.admin("GET", path).status_code == 200
            assert dispatcher.admin("GET", path, headers={"Origin": "http://evil.example"}).status_code == 403
        for secret in (AGENT, CLIENT, ADMIN):
            assert secret not in dispatcher.output()


def test_open_picks_need_no_token_and_come_from_anywhere() -> None:
    with Dispatcher("--open-picks") as dispatcher, dispatcher.client() as client:
        headers = {"Host": "any.example", "Origin": "http://other.example"}
        assert client.post("/v1/sessions", headers=headers).json()["code"] == "no_pools"
        assert handshake(dispatcher, Host="any.example") == 421  # agents are no clients


def test_a_tls_handshake_without_end_is_cut_off(certificates: tuple[Path, Path, Path]) -> None:
    """With a short limit, instead of 10 seconds; that of asyncio is a minute. No application is reached."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*certificates[1:])
    server = ApiServer(None, tls, max_connections=1, timing=Timing(tls_handshake_s=0.05))  # type: ignore[arg-type]

    async def play() -> bytes:
        with socket.create_server(("127.0.0.1", 0)) as sock:
            await server.startup([sock])
            reader, writer = await asyncio.open_connection(*sock.getsockname())
            async with asyncio.timeout(PATIENCE / 2):
                found = await reader.read()
            writer.close()
            server.servers[0].close()
        return found

    assert asyncio.run(play()) == b""


def test_tls_with_a_ca_of_the_fleet(tokens: dict[str, Path], certificates: tuple[Path, Path, Path]) -> None:
    """On all addresses, with every protection that is required there."""
    ca, cert, key = certificates
    trusting = ssl.create_default_context(cafile=str(ca))
    options = (
        f"--tls-cert={cert}",
        f"--tls-key={key}",
        f"--agent-token-file={tokens['agent']}",
        f"--client-token-file={tokens['client']}",
        f"--admin-token-file={tokens['admin']}",
    )
    with Dispatcher(*options, scheme="https") as dispatcher:
        dispatcher.kill()
        dispatcher.command = tuple(
            option.replace("--listen=127.0.0.1", "--listen=0.0.0.0").replace(
                "--admin=127.0.0.1", "--admin=0.0.0.0"
            )
            for option in dispatcher.command
        )
        dispatcher.start()
        with httpx.Client(timeout=PATIENCE, trust_env=False, verify=trusting) as browser:
            login = f"https://127.0.0.1:{dispatcher.admin_port}/dashboard/login"
            cookie = browser.post(login, json={"token": ADMIN, "keep": True}).headers["set-cookie"]
            assert {"HttpOnly", "SameSite=strict", "Secure"} <= set(cookie.split("; "))
        with Agents(dispatcher.agents_url, token=AGENT, tls=trusting) as agents:
            agents.start("a")
            with dispatcher.client(CLIENT, trusting) as client:
                eventually(lambda: client.post("/v1/sessions").status_code, lambda status: status == 201)
                location = client.get("/v1/go/x").headers["location"]
                assert location.startswith("http://a.example:9000/x?evenly-session=a.")
                assert "https://127.0.0.1" in client.get("/docs").text
        with dispatcher.client(CLIENT) as client, pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY"):
            client.post("/v1/sessions")
        with socket.create_connection(("127.0.0.1", dispatcher.listen), PATIENCE) as plaintext:
            plaintext.sendall(b"POST /v1/sessions HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            assert b"201" not in plaintext.recv(4096)
        old = ssl.create_default_context(cafile=str(ca))
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with dispatcher.client(CLIENT, old) as client:
            assert client.get("/healthz").status_code == 200
        assert CLIENT not in dispatcher.output()


def test_unprotected_addresses_are_refused(
    tokens: dict[str, Path], certificates: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    """With one sentence that names all that is missing."""
    _, cert, key = certificates
    tls = (f"--tls-cert={cert}", f"--tls-key={key}")
    everywhere = "--listen=0.0.0.0:0"
    sentence = refused(everywhere)
    assert "0.0.0.0:0 can be reached from other machines" in sentence
    for missing in ("--tls-cert and --tls-key", "--agent-token-file", "--client-token-file", "--open-picks"):
        assert missing in sentence
    assert "127.0.0.1:0" in sentence
    sentence = refused(everywhere, *tls, "--open-picks")
    assert "--agent-token-file" in sentence
    assert "--tls-cert" not in sentence
    assert "--client-token-file" not in sentence
    sentence = refused(everywhere, *tls, environment={"EVENLY_AGENT_TOKEN": AGENT})
    assert "--client-token-file" in sentence
    assert "--agent-token-file" not in sentence
    sentence = refused("--listen=127.0.0.1:0", "--admin=0.0.0.0:0", environment={"EVENLY_ADMIN_TOKEN": ADMIN})
    assert "admin address 0.0.0.0:0" in sentence
    assert "--admin-token-file" in refused("--listen=127.0.0.1:0", "--admin=0.0.0.0:0", *tls)


def test_bad_tokens_and_certificates_are_refused(
    tokens: dict[str, Path], certificates: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    _, cert, key = certificates
    listen = "--listen=127.0.0.1:0"
    short = refused(listen, environment={"EVENLY_CLIENT_TOKEN": "secret"})
    assert "The client token from EVENLY_CLIENT_TOKEN must be 16 to 4096" in short
    assert "secret" not in short
    assert "not both" in refused(listen, "--open-picks", f"--client-token-file={tokens['client']}")
    assert "together" in refused(listen, f"--tls-cert={cert}")
    assert "Cannot use the certificate" in refused(listen, f"--tls-cert={key}", f"--tls-key={cert}")
    nothing = tmp_path / "nothing.pem"
    assert "no such file" in refused(listen, f"--tls-cert={nothing}", f"--tls-key={nothing}")


@pytest.mark.full
def test_pages_of_other_sites_may_pick_where_nothing_else_protects() -> None:
    """With open picks, or with a token, which no browser adds by itself. Not on loopback without either."""
    page = {"Origin": "https://game.example"}
    asked = {**page, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "idempotency-key"}
    with Dispatcher("--open-picks") as dispatcher, Agents(dispatcher.agents_url) as agents:
        agents.start("a")
        with dispatcher.client() as client:
            allowed = client.options("/v1/sessions", headers=asked)
            assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (204, "*")
            assert "idempotency-key" in allowed.headers["access-control-allow-headers"]
            eventually(lambda: client.post("/v1/sessions").status_code, lambda status: status == 201)
            for answer in (
                client.post("/v1/sessions", headers=page),
                client.post("/v1/sessions", headers=page, json={"count": 0}),
                client.get("/v1/go/play", headers=page),
            ):
                assert answer.headers["access-control-allow-origin"] == "*"
            assert "access-control-allow-origin" not in client.post("/v1/sessions").headers
            assert "access-control-allow-origin" not in client.get("/readyz", headers=page).headers
    with fleet(pools=("a",)) as (dispatcher, _), dispatcher.client() as client:
        assert client.options("/v1/sessions", headers=asked).status_code == 405
        answer = client.post("/v1/sessions", headers=page)
        assert (answer.status_code, answer.headers.get("access-control-allow-origin")) == (403, None)
