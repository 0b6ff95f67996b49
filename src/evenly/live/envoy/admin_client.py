"""A client of Envoy's admin interface: the open requests and the health of each host."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from evenly.live.addresses import Address, parse_address
from evenly.live.envoy.admin_address import AdminAddress, AdminSocket
from evenly.live.envoy.names import CLUSTER, ONCE

if TYPE_CHECKING:
    import socket

_PATH = "/clusters?format=json&filter=" + quote(f"^({CLUSTER}|{ONCE})$")
_MAX_BYTES = 2**26
_MAX_ACTIVE = 10**6


class BadResponseError(Exception):
    """A response that does not look like Envoy's."""


@dataclass(frozen=True, slots=True)
class Host:
    """A pool as one Envoy sees it, and why it fails."""

    active: int
    failing: bool
    why: str = ""


_NOT_KNOWN = Host(0, True, "Envoy does not have it yet")


async def fetch_hosts(admin: AdminAddress, seconds: float) -> dict[Address, Host]:
    """Fetch the hosts of the pools' cluster.

    Raises OSError if Envoy cannot be reached or does not respond within `seconds`, and BadResponseError if the
    response cannot be parsed.
    """
    return parse_hosts(await fetch(admin, _PATH, seconds))


async def fetch(admin: AdminAddress, path: str, seconds: float) -> bytes:
    """Fetch the body of a response. Raises what `fetch_hosts` raises."""
    async with asyncio.timeout(seconds):
        reader, writer = await _open(admin)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join([piece async for piece in _pieces(reader)])
        finally:
            writer.close()
    return _body(answer)


async def _open(admin: AdminAddress) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect. A Unix socket is checked each time: an Envoy that restarts makes a new one."""
    if isinstance(admin, AdminSocket):
        admin.check_private()
        return await asyncio.open_unix_connection(admin.path)
    return await asyncio.open_connection(admin.host, admin.port)


async def _pieces(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    size = 0
    while piece := await reader.read(2**16):
        size += len(piece)
        if size > _MAX_BYTES:
            raise BadResponseError(f"more than {_MAX_BYTES} bytes")
        yield piece


class _Received:
    """A received response, as the file-like socket that the standard library's parser wants."""

    def __init__(self, answer: bytes) -> None:
        self._file = io.BytesIO(answer)

    def makefile(self, mode: str) -> io.BytesIO:
        """Return the response as a file."""
        return self._file


def _body(answer: bytes) -> bytes:
    response = http.client.HTTPResponse(cast("socket.socket", _Received(answer)))
    try:
        response.begin()
        return response.read()
    except (http.client.HTTPException, ValueError) as error:
        raise BadResponseError(f"{type(error).__name__}: {error}") from None


def parse_hosts(answer: bytes) -> dict[Address, Host]:
    """Parse the body of a response to `/clusters?format=json`."""
    try:
        statuses = json.loads(answer).get("cluster_statuses", [])
        clusters = {each["name"]: _hosts(each) for each in statuses if each["name"] in (CLUSTER, ONCE)}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise BadResponseError(f"{type(error).__name__}: {error}") from None
    hosts, once = clusters.get(CLUSTER, {}), clusters.get(ONCE)
    if once is None:
        return hosts
    return {at: _of_both(host, once.get(at, _NOT_KNOWN)) for at, host in hosts.items()}


def _of_both(host: Host, once: Host) -> Host:
    """Return a pool of which there are two views, for two kinds of requests. It must be able to serve both."""
    return Host(host.active + once.active, host.failing or once.failing, host.why or once.why)


def _hosts(cluster: dict[str, Any]) -> dict[Address, Host]:
    return {
        _address(host): _host(host)
        for host in cluster.get("host_statuses", [])
        if "socket_address" in host["address"]
    }


def _address(host: dict[str, Any]) -> Address:
    found = host["address"]["socket_address"]
    return parse_address(str(Address(found["address"], found["port_value"])))


def _host(host: dict[str, Any]) -> Host:
    active = next((int(stat.get("value", 0)) for stat in host.get("stats", []) if stat["name"] == "rq_active"), 0)
    if not 0 <= active <= _MAX_ACTIVE:
        raise BadResponseError(f"{active} open requests")
    health = host.get("health_status", {})
    why = ""
    if health.get("failed_active_health_check"):
        why = "health check timed out" if health.get("active_hc_timeout") else "health check failed"
    elif health.get("failed_outlier_check"):
        why = "ejected as an outlier"
    return Host(active, bool(why), why)
