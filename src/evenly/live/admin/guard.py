"""Who may use the admin port: those with the token or, where there is none, this machine and no web page."""

from __future__ import annotations

import hmac

from fastapi import HTTPException
from fastapi.requests import Request
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenly.live.addresses import Address

OPEN_TO_ALL = frozenset({"/healthz", "/readyz"})  # probes carry no token, and what they learn is no secret
LARGEST_BODY = 64 * 1024


class Guard:
    """Answers what must not reach the application, and lets no body grow beyond `LARGEST_BODY`."""

    def __init__(self, app: ASGIApp, *, token: str | None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        request = Request(scope)
        # The URL's path would do, but some versions make the URL from the Host header.
        refusal = None if scope["path"] in OPEN_TO_ALL else self._refusal(request)
        if refusal is None:
            await self._app(scope, _limited(receive), send)
        else:
            await refusal(scope, receive, send)

    def _refusal(self, request: Request) -> JSONResponse | None:
        host = request.headers.get("host", "")
        if self._token is not None and not self._has_token(request):
            return _refuse(401, "This needs the header 'Authorization: Bearer TOKEN' with the admin token.")
        if self._token is None and not _names_this_machine(host):
            # A web page can make its own name lead to 127.0.0.1, and then read what it likes here.
            return _refuse(421, f"Without a token the host must be a loopback address or localhost, not {host!r}.")
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return _refuse(403, f"Pages of {origin!r} may not call this.")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if _has_body(request) and kind != "application/json":  # what a form of a web page cannot send
            return _refuse(415, f"The body must be application/json, not {kind!r}.")
        return None

    def _has_token(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        assert self._token is not None
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token.encode())


def _refuse(status: int, reason: str) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse({"detail": reason}, status, headers)


def _names_this_machine(host: str) -> bool:
    name = host[: host.find("]")].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    return Address(name.lower(), 0).loopback


def _has_body(request: Request) -> bool:
    return request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers


def _limited(receive: Receive) -> Receive:
    left = LARGEST_BODY

    async def receive_a_little() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise HTTPException(413, f"The body must be at most {LARGEST_BODY} bytes.")
        return message

    return receive_a_little
