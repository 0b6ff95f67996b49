"""The redirect to a picked pool: paths and queries stay as they are, and only registered pools are targets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import connect

from evenly.errors import InputError
from evenly.live.pool_url import check_pool_url, parse_pool_url, redirect_target
from tests.live.dispatcher.rig import Agents, Dispatcher, fleet
from tests.live.processes import PATIENCE

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

Fleet = tuple[Dispatcher, Agents]
ID = "p.AAAA"


@pytest.fixture(scope="module")
def shared() -> Iterator[Fleet]:
    with fleet(pools=("a",)) as made:
        yield made


def raw(dispatcher: Dispatcher, target: bytes, *headers: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """Send a request line byte by byte as given; return the status line and the headers."""
    with socket.create_connection(("127.0.0.1", dispatcher.listen), PATIENCE) as connection:
        lines = (b"GET " + target + b" HTTP/1.1", b"host: 127.0.0.1", b"connection: close", *headers)
        connection.sendall(b"\r\n".join(lines) + b"\r\n\r\n")
        with connection.makefile("rb") as answer:
            status, *rest = answer.read().partition(b"\r\n\r\n")[0].split(b"\r\n")
    return status, {name.lower(): value for name, _, value in (line.partition(b": ") for line in rest)}


def test_path_and_query_stay_as_they_are(shared: Fleet) -> None:
    dispatcher, _ = shared
    for target, wanted in [
        (b"", b"/?"),
        (b"room/7?", b"/room/7?"),
        (b"a?x=&x=2&y&=&&x=%20+", b"/a?x=&x=2&y&=&&x=%20+&"),
        (b"%2e%2F%c3%A9/%00?%26=%3D", b"/%2e%2F%c3%A9/%00?%26=%3D&"),
        (b"http://evil.example/", b"/http://evil.example/?"),
        (b"a?evenly-session=old&x=1&evenly-session=older", b"/a?x=1&"),
        (b"a?not-evenly-session=1", b"/a?not-evenly-session=1&"),
        (b"%0d%0aset-cookie:%20x=1", b"/%0d%0aset-cookie:%20x=1?"),
    ]:
        status, headers = raw(dispatcher, b"/v1/go/" + target)
        assert status == b"HTTP/1.1 307 Temporary Redirect"
        start, _, session = headers[b"location"].rpartition(b"evenly-session=")
        assert start == b"http://a.example:9000" + wanted
        assert session.startswith(b"a.")
        assert headers[b"cache-control"] == b"no-store"
        assert b"set-cookie" not in headers


def test_bytes_that_may_not_stand_in_a_header_are_rejected_and_take_no_place(shared: Fleet) -> None:
    dispatcher, _ = shared
    before = dispatcher.state()["expected"]
    for target in [b"\xc3\xa9", b"a?\xff", b"a\x01b"]:
        status, headers = raw(dispatcher, b"/v1/go/" + target)
        assert status.split()[1] in (b"400", b"422")
        assert b"location" not in headers
    assert dispatcher.state()["expected"] <= before


@pytest.mark.long
def test_a_websocket_client_follows_to_the_pool_with_its_id() -> None:
    """To a pool whose address is http: the redirect of a handshake names ws."""
    from websockets.asyncio.server import serve

    async def play(scheme: str) -> tuple[str, str]:
        paths = list[str]()

        async def handle(connection: ServerConnection) -> None:
            assert connection.request is not None
            paths.append(connection.request.path)
            await connection.send("served")

        async with serve(handle, "127.0.0.1", 0) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            address = f"{scheme}://127.0.0.1:{port}/base/"
            await asyncio.to_thread(agents.start, scheme, address=address)
            await asyncio.to_thread(dispatcher.wait_for, lambda state: state["pools"])
            url = f"ws://127.0.0.1:{dispatcher.listen}/v1/go/room/7?team=red"
            async with connect(url, proxy=None) as client:
                text = await client.recv()
        await asyncio.to_thread(agents.stop, scheme)
        await asyncio.to_thread(dispatcher.wait_for, lambda state: not state["pools"])
        (path,) = paths
        return path, str(text)

    with Dispatcher("--lease=1") as dispatcher, Agents(dispatcher.agents_url) as agents:
        for scheme in ("http", "ws"):
            path, text = asyncio.run(play(scheme))
            assert path.startswith(f"/base/room/7?team=red&evenly-session={scheme}.")
            assert text == "served"
        assert dispatcher.events("fault") == []


def test_urls_of_pools() -> None:
    rows: list[tuple[str, tuple[str, str, str]]] = [
        ("http://h", ("http", "h", "")),
        ("ws://h:1/", ("ws", "h:1", "")),
        ("wss://[::1]:8443/a/b/", ("wss", "[::1]:8443", "/a/b")),
        ("https://[::1]", ("https", "[::1]", "")),
        ("https://10.0.0.1/a%20b", ("https", "10.0.0.1", "/a%20b")),
    ]
    for text, wanted in rows:
        assert tuple(parse_pool_url(text)) == wanted


def test_other_addresses_are_rejected() -> None:
    rows: list[object] = [
        "",
        "h:1",
        "ftp://h",
        "javascript://h",
        "HTTP://h",
        "http://",
        "http:///x",
        "http://h:0",
        "http://h:65536",
        "http://user@h",
        "http://h/?q",
        "http://h/#f",
        "http://h\\x",
        "http://h/\r\nset-cookie: x",
        "http://h/ x",
        "http://h/é",
        "http://h\n",
        "http://256.1.1.1",
        "http://h/" + "x" * 500,
        None,
        7,
    ]
    for text in rows:
        with pytest.raises(InputError, match=r"must be a URL such as"):
            check_pool_url(text)


@given(path=st.binary(max_size=40), query=st.binary(max_size=40), websocket=st.booleans())
def test_no_request_leads_elsewhere(path: bytes, query: bytes, websocket: bool) -> None:
    target = redirect_target("https://pool.example:8443/base", path, query, ID, websocket=websocket)
    if target is None:
        assert any(not 33 <= byte <= 126 for byte in path + query)
        return
    scheme = b"wss" if websocket else b"https"
    assert target.startswith(scheme + b"://pool.example:8443/base/" + path + b"?")
    assert target.endswith(b"evenly-session=" + ID.encode())
    assert all(33 <= byte <= 126 for byte in target)
