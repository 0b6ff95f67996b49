"""Access to the admin port: which requests are rejected.

With a token, every request must carry it, except probes and the documentation. Without one, only this machine may
call. In both cases, no web page of another site may.
"""

from __future__ import annotations

from fastapi import HTTPException
from fastapi.requests import Request
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenly.live.access import has_token, is_foreign, is_loopback_host

PROBES = frozenset({"/healthz", "/readyz"})  # probes carry no token, and their answers are no secret
PAGES = frozenset({"/", "/docs", "/openapi.json"})  # a browser cannot send the token, and these have no state
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
        refusal = None if scope["path"] in PROBES else self._refusal(request, scope["path"])
        if refusal is None:
            await self._app(scope, _limited(receive), send)
        else:
            await refusal(scope, receive, send)

    def _refusal(self, request: Request, path: str) -> JSONResponse | None:
        host = request.headers.get("host", "")
        if not (self._token is None or path in PAGES or has_token(_authorization(request), self._token)):
            return _refuse(401, "The request needs the header 'Authorization: Bearer TOKEN' with the admin token.")
        if self._token is None and not is_loopback_host(host):
            return _refuse(421, f"Without a token the host must be a loopback address or localhost, not {host!r}.")
        origin = request.headers.get("origin")
        if is_foreign(origin, host):
            return _refuse(403, f"Pages from {origin!r} may not call the admin port.")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if _has_body(request) and kind != "application/json":  # which an HTML form cannot send
            return _refuse(415, f"The body must be application/json, not {kind!r}.")
        return None


def _refuse(status: int, reason: str) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse({"detail": reason}, status, headers)


def _authorization(request: Request) -> str:
    return request.headers.get("authorization", "")


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
