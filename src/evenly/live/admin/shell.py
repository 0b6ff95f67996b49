"""What every admin port has: its guard, its documentation page, its health probes, and the form of its answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI, HTTPException, Security
from fastapi.exceptions import RequestValidationError
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.security import HTTPBearer

from evenly.errors import InputError
from evenly.live.addresses import Address, parse_address
from evenly.live.admin.auth import Guard
from evenly.live.admin.dashboard import dashboard_routes
from evenly.live.admin.docs import DocsPage, Port
from evenly.live.admin.schema import Problem, Readiness, Status
from evenly.live.admin_token import TOKEN_VARIABLE
from evenly.live.dashboard.feed import Feed

Responses = dict[int | str, dict[str, Any]]
DOCS_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def admin_shell(
    *,
    about: str,
    token: str | None,
    bound: Address,
    routers: Mapping[str, APIRouter],
    why_not_ready: Callable[[], Awaitable[str | None]],
    store_available: Callable[[], bool | None],
    feed: Feed,
    refusing: Callable[[], bool] = lambda: False,
) -> FastAPI:
    """Return the application with these routers by tag, health probes, and a dashboard that shows `feed`.

    `bound` is the address it serves on. `why_not_ready` returns a sentence, or None while new sessions are placed.
    `store_available` returns None if there is no shared store. `refusing` returns whether clients are refused.
    """
    app = FastAPI(title="evenly", description=about, version=version("evenly"), openapi_url=None)
    # The guard checks the token; the scheme only documents it in OpenAPI.
    scheme = [] if token is None else [Security(HTTPBearer(auto_error=False, description="The admin token."))]
    for tag, router in routers.items():
        app.include_router(router, tags=[tag], dependencies=scheme)
    app.include_router(_health_routes(why_not_ready, store_available, refusing), tags=["Health"])
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.include_router(dashboard_routes(feed, token=token, port=bound.port))
    app.add_middleware(Guard, token=token, port=bound.port)

    _add_pages(app, bound, None if token is None else "admin")
    return app


def _add_pages(app: FastAPI, bound: Address, token: str | None) -> None:
    """Add the pages for people and tools. They are made here: that takes time, in which picks would wait later."""
    schema = app.openapi()
    document = JSONResponse(schema)
    page = DocsPage(schema, Port("admin port", token, TOKEN_VARIABLE))

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> JSONResponse:
        return document

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        shown = page.at(reached_at(request.headers.get("host", ""), bound), request.scope["scheme"])
        return HTMLResponse(shown, headers={"Content-Security-Policy": DOCS_POLICY})


def _health_routes(
    why_not_ready: Callable[[], Awaitable[str | None]],
    store_available: Callable[[], bool | None],
    refusing: Callable[[], bool],
) -> APIRouter:
    router = APIRouter()

    @router.get("/healthz", summary="Liveness probe", responses=answer({"status": "alive"}))
    async def healthz() -> Status:
        """200 while the process runs. Needs no token."""
        return Status(status="alive")

    answers = answer({"status": "ready", "store": "available", "refusing": True}) | problem(503, "Not ready.")

    @router.get("/readyz", summary="Readiness probe", responses=answers, response_model_exclude_none=True)
    async def readyz() -> Readiness:
        """200 while new sessions can be placed, also without the shared store. Needs no token."""
        reason = await why_not_ready()
        if reason is not None:
            raise HTTPException(503, reason)
        available = store_available()
        return Readiness(
            status="ready",
            store=None if available is None else "available" if available else "unavailable",
            refusing=refusing() or None,
        )

    return router


def answer(example: object, kind: str = "application/json", status: int = 200) -> Responses:
    """Describe a successful answer by an example."""
    return {status: {"description": "OK", "content": {kind: {"example": example}}}}


def problem(status: int, description: str) -> Responses:
    """Describe a rejection."""
    return {status: {"model": Problem, "description": description}}


@contextmanager
def refusing(status: int) -> Iterator[None]:
    """Answer an InputError with this status."""
    try:
        yield
    except InputError as error:
        raise HTTPException(status, str(error)) from None


def reached_at(host: str, bound: Address) -> Address:
    """Return the address that the reader used, if it is valid: 0.0.0.0 would be of no use in an example."""
    try:
        return parse_address(host)
    except InputError:
        return bound


async def _invalid_request(request: Request, error: Exception) -> Response:
    """Report the first validation error in one sentence."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return JSONResponse({"detail": f"Invalid {place}: {first['msg']}."}, 422)
