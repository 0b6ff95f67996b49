"""The dashboard on the admin port: its page, its files, logins, and the stream of what happens.

The routes below `/dashboard` are for the page of the same release. They are no contract, so the schema of the port
does not have them.
"""

from __future__ import annotations

import asyncio
import hmac

from fastapi import APIRouter, HTTPException
from fastapi.requests import Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import Receive, Scope, Send

from evenly.live.access import bearer
from evenly.live.admin.auth import EVENTS_PATH, LOGIN_PATH, LOGOUT_PATH, cookie_name, is_from_page
from evenly.live.dashboard.feed import MAX_READERS, Feed, Reader, TooManyReadersError
from evenly.live.dashboard.login import KEPT_S, GrantKind, Logins
from evenly.web.assets import PREFIX, SECURITY_HEADERS, Page

_PRIVATE = {**SECURITY_HEADERS, "Cache-Control": "no-store"}


class Login(BaseModel):
    """What the login form sends: the admin token, and whether the browser should stay logged in."""

    model_config = ConfigDict(extra="forbid")

    token: str = Field(max_length=4096)
    keep: bool = False


def dashboard_routes(feed: Feed, *, token: str | None, port: int) -> APIRouter:
    """Return the routes. `port` is the port that they are served on, since cookies do not know ports."""
    router = APIRouter(include_in_schema=False)
    page = Page("dashboard")
    page.get("")  # reads all files now: later, picks would wait
    logins = None if token is None else Logins(token)

    @router.get("/")
    async def front(request: Request) -> Response:
        return _file(page, "", request)

    @router.get(f"/{PREFIX}{{path:path}}")
    async def file(path: str, request: Request) -> Response:
        return _file(page, f"{PREFIX}{path}", request)

    @router.get(EVENTS_PATH)
    async def events(request: Request) -> Response:
        if not is_from_page(request):
            raise HTTPException(403, "The stream is for the dashboard of this port only.")
        seconds = None if logins is None else _seconds_left(request, logins, cookie_name(port))
        try:
            return _Stream(feed, feed.subscribe(), guarded=token is not None, seconds=seconds)
        except TooManyReadersError:
            raise HTTPException(503, f"There are {MAX_READERS} open dashboards already; close one.") from None

    if token is not None and logins is not None:
        _add_logins(router, token, logins, cookie_name(port))
    return router


def _add_logins(router: APIRouter, token: str, logins: Logins, cookie: str) -> None:
    @router.post(LOGIN_PATH)
    async def login(form: Login, request: Request) -> Response:
        if not hmac.compare_digest(form.token.strip().encode(), token.encode()):
            raise HTTPException(403, "This is not the admin token.")
        if not form.keep:
            return JSONResponse({"grant": logins.grant(GrantKind.TAB)}, headers=_PRIVATE)
        answer = JSONResponse({"grant": None}, headers=_PRIVATE)
        answer.set_cookie(
            cookie,
            logins.grant(GrantKind.COOKIE),
            max_age=KEPT_S,
            httponly=True,
            samesite="strict",
            secure=request.scope["scheme"] == "https",
        )
        return answer

    @router.post(LOGOUT_PATH)
    async def logout() -> Response:
        answer = JSONResponse({}, headers=_PRIVATE)
        answer.delete_cookie(cookie, httponly=True, samesite="strict")
        return answer


def _seconds_left(request: Request, logins: Logins, cookie: str) -> float | None:
    """Return how long the login lasts that a request was accepted with; None for the token itself."""
    tab = logins.seconds_left(bearer(request.headers.get("authorization", "")), GrantKind.TAB)
    kept = logins.seconds_left(request.cookies.get(cookie, ""), GrantKind.COOKIE)
    return max(tab, kept) or None


def _file(page: Page, path: str, request: Request) -> Response:
    asset = page.get(path)
    if asset is None:
        raise HTTPException(404, "There is no such file.")
    if asset.is_known_to(request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=dict(asset.headers))
    return Response(asset.body, headers=dict(asset.headers))


class _Stream(Response):
    """Sends what a reader gets, until its client leaves, the feed ends it or `seconds` have passed."""

    def __init__(self, feed: Feed, reader: Reader, *, guarded: bool, seconds: float | None) -> None:
        super().__init__(headers={**_PRIVATE, "Content-Type": "text/event-stream"})
        if guarded:  # so the page offers to log out
            self.headers["X-Evenly-Guarded"] = "1"
        del self.headers["content-length"]
        self._feed = feed
        self._reader = reader
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        leaving = asyncio.create_task(self._wait_for_leave(receive))
        loop = asyncio.get_running_loop()
        over = None if self._seconds is None else loop.call_later(self._seconds, self._reader.end)
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for text in self._reader.messages():
                await send({"type": "http.response.body", "body": text, "more_body": True})
            if not leaving.done():
                await send({"type": "http.response.body", "body": b""})
        finally:
            self._feed.unsubscribe(self._reader)
            leaving.cancel()
            if over is not None:
                over.cancel()

    async def _wait_for_leave(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._reader.end()
