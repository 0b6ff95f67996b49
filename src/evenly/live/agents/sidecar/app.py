"""The HTTP API of the sidecar, as plain ASGI: a begin and an end are on the path of every session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qs

from evenly.inputs import shown
from evenly.live.addresses import Address
from evenly.live.agents.agent import Agent, PoolFullError, Session
from evenly.live.agents.lifespan import Message, Receive, Scope, Send

MAX_SESSIONS = 1_000_000  # begun with /begin
MAX_NAME = 200  # characters of a session's name
MAX_LEASE = 1000  # characters
MAX_BODY = 8192  # bytes
_BODY_TIMEOUT_S = 5.0
_JSON = [(b"content-type", b"application/json")]
_LINES = [(b"content-type", b"application/x-ndjson"), (b"cache-control", b"no-store")]

Values = dict[str, Any]


class _RequestError(Exception):
    """A request that is answered with this status and sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class SidecarApp:
    """Begins and ends sessions of an agent. `stop` ends the connections that are held open.

    With `checked`, the pool gets no sessions until `server_is` says that its server is there.
    """

    def __init__(self, agent: Agent, *, checked: bool = False) -> None:
        self._agent = agent
        self._drained = False  # by a request
        self._server: bool | None = False if checked else None
        if checked:
            agent.drain()
        self._sessions: dict[str, Session] = {}  # begun with /begin, by the caller's name for them
        self._stopping = asyncio.Event()
        self._answers: dict[str, dict[str, Callable[[Values], Values]]] = {
            "/begin": {"POST": self._begin},
            "/end": {"POST": self._end},
            "/drain": {"POST": self._drain},
            "/undrain": {"POST": self._undrain},
            "/state": {"GET": self._state},
            "/healthz": {"GET": lambda _: {"status": "ok"}},
        }

    def stop(self) -> None:
        """End the responses that are held open."""
        self._stopping.set()

    def server_is(self, there: bool) -> None:
        """Take the pool out of service while its server is not there."""
        self._server = there
        self._apply()

    def _apply(self) -> None:
        wanted = self._drained or self._server is False
        if wanted and not self._agent.draining:
            self._agent.drain()
        elif self._agent.draining and not wanted:
            self._agent.undrain()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        try:
            _check_access(_headers(scope))
            if scope["path"] == "/session":
                await self._hold(await _values(scope, receive, ("GET", "POST")), receive, send)
                return
            methods = self._answers.get(scope["path"])
            if methods is None:
                paths = ", ".join(["/session", *self._answers])
                raise _RequestError(404, f"There is no {shown(scope['path'])}. The paths are {paths}.")
            values = await _values(scope, receive, tuple(methods))
            await _answer(send, 200, methods[scope["method"]](values))
        except _RequestError as error:
            await _answer(send, error.status, {"detail": str(error)})
        except PoolFullError as error:
            await _answer(send, 503, {"detail": str(error)})

    async def _hold(self, values: Values, receive: Receive, send: Send) -> None:
        """Count a session until the client closes the connection, or is killed."""
        _check_keys(values, "lease")
        session = self._agent.begin(_lease(values))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _LINES})
            line = json.dumps({"sessions": self._agent.sessions}).encode() + b"\n"
            await send({"type": "http.response.body", "body": line, "more_body": True})
            tasks = [asyncio.create_task(_disconnected(receive)), asyncio.create_task(self._stopped())]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            session.end()
        await send({"type": "http.response.body"})

    async def _stopped(self) -> None:
        await self._stopping.wait()

    def _begin(self, values: Values) -> Values:
        _check_keys(values, "session", "lease")
        name, lease = _name(values), _lease(values)
        if name not in self._sessions:
            if len(self._sessions) >= MAX_SESSIONS:
                raise _RequestError(503, f"There can be at most {MAX_SESSIONS} sessions.")
            self._sessions[name] = self._agent.begin(lease)
        return {"sessions": self._agent.sessions}

    def _end(self, values: Values) -> Values:
        _check_keys(values, "session")
        session = self._sessions.pop(_name(values), None)
        if session is not None:
            session.end()
        return {"sessions": self._agent.sessions}

    def _drain(self, values: Values) -> Values:
        _check_keys(values)
        self._drained = True
        self._apply()
        return {"draining": True}

    def _undrain(self, values: Values) -> Values:
        _check_keys(values)
        self._drained = False
        self._apply()
        return {"draining": self._agent.draining}

    def _state(self, values: Values) -> Values:
        agent = self._agent
        sent = asdict(agent.sent)
        del sent["other"]  # of other policies
        return {
            "pool": agent.pool,
            "address": agent.address,
            "capacity": agent.capacity,
            "sessions": agent.sessions,
            "draining": agent.draining,
            "server": None if self._server is None else "up" if self._server else "down",
            "dispatcher": agent.dispatcher,
            "threshold": agent.threshold,
            "messages": sent,
            "dropped": agent.dropped,
        }


def _headers(scope: Scope) -> dict[bytes, str]:
    return {name: value.decode("latin-1") for name, value in scope["headers"]}


def _check_access(headers: dict[bytes, str]) -> None:
    """Reject requests that a web page has made: all others come from this machine, since the port is loopback."""
    host = headers.get(b"host", "")
    name = host[: host.find("]")].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    if not Address(name.lower(), 0).loopback:
        # DNS rebinding: a web page can make its own name resolve to 127.0.0.1.
        raise _RequestError(421, f"The host must be a loopback address or localhost, not {shown(host)}.")
    if b"origin" in headers or headers.get(b"sec-fetch-site", "none") != "none":
        raise _RequestError(403, "Web pages may not call an agent.")


async def _values(scope: Scope, receive: Receive, methods: tuple[str, ...]) -> Values:
    """Return the values of a request: from the JSON body of a POST, from the query of a GET."""
    method = scope["method"]
    if method not in methods:
        raise _RequestError(405, f"{scope['path']} takes {' and '.join(methods)}, not {shown(method)}.")
    if method == "GET":
        try:
            found = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=10)
        except ValueError:
            raise _RequestError(400, "A query may have at most 10 values.") from None
        return {name: values[-1] for name, values in found.items()}
    body = await _body(receive)
    if not body:
        return {}
    kind = _headers(scope).get(b"content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # which an HTML form cannot send
        raise _RequestError(415, f"The body must be application/json, not {shown(kind)}.")
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise _RequestError(400, "The body must be a JSON object.")
    return values


async def _body(receive: Receive) -> bytes:
    body = b""
    try:
        async with asyncio.timeout(_BODY_TIMEOUT_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _RequestError(400, "The client is gone.")  # which will not read this
                body += bytes(message.get("body", b""))
                if len(body) > MAX_BODY:
                    raise _RequestError(413, f"The body must be at most {MAX_BODY} bytes.")
                if not message.get("more_body", False):
                    return body
    except TimeoutError:
        raise _RequestError(408, f"The body must arrive within {_BODY_TIMEOUT_S:g} seconds.") from None


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _check_keys(values: Values, *known: str) -> None:
    unknown = next((name for name in values if name not in known), None)
    if unknown is not None:
        raise _RequestError(400, f"Unknown key {shown(unknown)}: known are {', '.join(known) or 'none'}.")


def _name(values: Values) -> str:
    name = values.get("session")
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME:
        raise _RequestError(400, f"session must be a text of 1 to {MAX_NAME} characters, not {shown(name)}.")
    return name


def _lease(values: Values) -> str | None:
    lease = values.get("lease")
    if lease is not None and not (isinstance(lease, str) and len(lease) <= MAX_LEASE):
        raise _RequestError(400, f"lease must be a session id or null, not {shown(lease)}.")
    return lease or None


async def _answer(send: Send, status: int, values: Values) -> None:
    body = json.dumps(values).encode()
    headers = [*_JSON, (b"content-length", b"%d" % len(body))]
    if status == 503:
        headers.append((b"retry-after", b"1"))
    if status in (408, 413):  # what is left of the body must not be taken for the next request
        headers.append((b"connection", b"close"))
    start: Message = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})
