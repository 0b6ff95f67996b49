"""Access to the admin port: which requests are rejected.

With a token, every request must carry it, except probes, the documentation and the files of the dashboard. The
dashboard carries a grant instead, see `dashboard/login.py`. Without a token, only this machine may call. In both
cases, no web page of another site may.
"""

from __future__ import annotations

from fastapi import HTTPException
from fastapi.requests import Request
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenly.live.access import bearer, has_token, is_foreign, is_loopback_host
from evenly.live.dashboard.login import GrantKind, Logins
from evenly.web.assets import PREFIX

EVENTS_PATH, LOGIN_PATH, LOGOUT_PATH = "/dashboard/events", "/dashboard/login", "/dashboard/logout"
PAGE_HEADER = "x-evenly-dashboard"  # which pages of other sites cannot send without our consent
PROBES = frozenset({"/healthz", "/readyz"})  # probes carry no token, and their answers are no secret
# A browser that opens a page cannot send the token. These have no state; the login checks the token itself.
PAGES = frozenset({"/", "/docs", "/openapi.json", LOGIN_PATH, LOGOUT_PATH})
FILES = f"/{PREFIX}"
MAX_BODY = 64 * 1024  # bytes


class Guard:
    """ASGI middleware that rejects requests without access, and bodies larger than `MAX_BODY`.

    `port` is the port that it guards.
    """

    def __init__(self, app: ASGIApp, *, token: str | None, port: int) -> None:
        self._app = app
        self._token = token
        self._logins = None if token is None else Logins(token)
        self._cookie = cookie_name(port)

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
        if not (path in PAGES or path.startswith(FILES) or self._is_known(request)):
            return _refuse(401, "The request needs the header 'Authorization: Bearer TOKEN' with the admin token.")
        if self._token is None and not is_loopback_host(host):
            return _refuse(421, f"Without a token the host must be a loopback address or localhost, not {host!r}.")
        origin = request.headers.get("origin")
        site = "none" if path in PAGES and _is_visit(request) else request.headers.get("sec-fetch-site", "none")
        if is_foreign(origin, host, site):
            others = "of other sites" if origin is None else f"from {origin!r}"
            return _refuse(403, f"Pages {others} may not call the admin port.")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if _has_body(request) and kind != "application/json":  # which an HTML form cannot send
            return _refuse(415, f"The body must be application/json, not {kind!r}.")
        return None

    def _is_known(self, request: Request) -> bool:
        """Return whether the request carries the token, or the grant of a login.

        A cookie counts only together with the header of our page: browsers send it along with requests that pages
        of other ports of this host make.
        """
        if self._token is None or self._logins is None:
            return True
        authorization = request.headers.get("authorization", "")
        if has_token(authorization, self._token) or self._logins.accepts(bearer(authorization), GrantKind.TAB):
            return True
        cookie = request.cookies.get(self._cookie, "")
        return is_from_page(request) and self._logins.accepts(cookie, GrantKind.COOKIE)


def _is_visit(request: Request) -> bool:
    """Return whether the user follows a link, of any site, and will see the answer as a page of its own."""
    headers = request.headers
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")


def is_from_page(request: Request) -> bool:
    """Return whether our own page sends the request: no other site can set this header."""
    return PAGE_HEADER in request.headers


def cookie_name(port: int) -> str:
    """Return the name of the cookie. It has the port: browsers share cookies between all ports of a host."""
    return f"evenly_admin_{port}"


def _refuse(status: int, reason: str) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse({"detail": reason}, status, headers)


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
