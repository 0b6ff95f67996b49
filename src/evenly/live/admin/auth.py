"""Access to the admin port: which requests are rejected.

With a token, every request but the probes must carry it. Without one, only this machine may call, and no web page
of another site.
"""

from __future__ import annotations

import hmac

from fastapi import HTTPException
from fastapi.requests import Request
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenly.live.addresses import Address

PUBLIC_PATHS = frozenset({"/healthz", "/readyz"})  # probes carry no token, and their answers are no secret
MAX_BODY = 64 * 1024  # bytes


class Guard:
    """ASGI middleware that rejects requests without access, and bodies larger than `MAX_BODY`."""

    def __init__(self, app: ASGIApp, *, token: str | None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        request = Request(scope)
        # Not request.url.path: some versions of starlette build the URL from the Host header.
        refusal = None if scope["path"] in PUBLIC_PATHS else self._refusal(request)
        if refusal is None:
            await self._app(scope, _limited(receive), send)
        else:
            await refusal(scope, receive, send)

    def _refusal(self, request: Request) -> JSONResponse | None:
        host = request.headers.get("host", "")
        if self._token is not None and not self._has_token(request):
            return _refuse(401, "The request needs the header 'Authorization: Bearer TOKEN' with the admin token.")
        if self._token is None and not _is_loopback(host):
            # DNS rebinding: a web page can make its own name resolve to 127.0.0.1 and then read the answers.
            return _refuse(421, f"Without a token the host must be a loopback address or localhost, not {host!r}.")
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return _refuse(403, f"Pages from {origin!r} may not call the admin port.")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if _has_body(request) and kind != "application/json":  # which an HTML form cannot send
            return _refuse(415, f"The body must be application/json, not {kind!r}.")
        return None

    def _has_token(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        assert self._token is not None
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token.encode())


def _refuse(status: int, reason: str) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse({"detail": reason}, status, headers)


def _is_loopback(host: str) -> bool:
    name = host[: host.find("]")].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    return Address(name.lower(), 0).loopback


def _has_body(request: Request) -> bool:
    return request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers


def _limited(receive: Receive) -> Receive:
    left = MAX_BODY

    async def receive_limited() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise HTTPException(413, f"The body must be at most {MAX_BODY} bytes.")
        return message

    return receive_limited
