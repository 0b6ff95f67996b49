"""The admin port: look at the balancer, change its pools, and ask whether it is well."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.metadata import version
from typing import Annotated, Any

import uvicorn
from fastapi import APIRouter, FastAPI, HTTPException, Path, Security
from fastapi.exceptions import RequestValidationError
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.security import HTTPBearer
from uvicorn.protocols.http.h11_impl import H11Protocol

from evenly.errors import InputError
from evenly.live.addresses import Address, check_pools, parse_address
from evenly.live.admin.docs import docs_page
from evenly.live.admin.guard import Guard
from evenly.live.admin.metrics import CONTENT_TYPE, metrics_text
from evenly.live.admin.schema import (
    STATE_EXAMPLE,
    EnvoyView,
    NewPool,
    PoolView,
    Problem,
    StateView,
    Status,
    pool_view,
    state_view,
)
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.latency import Latency

_MOST_CONNECTIONS = 256
_PATIENCE = 5.0  # seconds until the first request is there
_ABOUT = """Look at the balancer, change its pools while it runs, and ask whether it is well.
A request that is refused is answered with {"detail": "why, in one sentence"}."""

Responses = dict[int | str, dict[str, Any]]
PoolPath = Annotated[str, Path(description="The pool, HOST:PORT.", max_length=300, examples=["127.0.0.1:9001"])]


def admin_app(
    *,
    balancer: Balancer,
    latency: Latency,
    envoys: Callable[[], list[EnvoyView]],
    token: str | None,
    bound: Address,
    resolve: Callable[[Address], Awaitable[Address]],
    ready: Callable[[], bool],
) -> FastAPI:
    """The application. `bound` is where it can be reached; `resolve` gives an address by number."""
    app = FastAPI(title="evenly", description=_ABOUT, version=version("evenly"), docs_url=None, redoc_url=None)
    # The guard asks for the token; the scheme is for the OpenAPI page.
    scheme = [] if token is None else [Security(HTTPBearer(auto_error=False, description="The admin token."))]
    app.include_router(_looking(balancer, latency, envoys), tags=["Look"], dependencies=scheme)
    app.include_router(_changing(balancer, resolve), tags=["Change the pools"], dependencies=scheme)
    app.include_router(_probing(ready), tags=["Ask whether it is well"])
    app.add_exception_handler(RequestValidationError, _in_one_sentence)
    app.add_middleware(Guard, token=token)

    @app.get("/", include_in_schema=False)
    async def front() -> RedirectResponse:
        return RedirectResponse("/docs")

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        page = docs_page(app.openapi(), _reached_at(request, bound), with_token=token is not None)
        return HTMLResponse(
            page, headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        )

    return app


@asynccontextmanager
async def serve_admin(app: FastAPI, sock: socket.socket) -> AsyncIterator[None]:
    """Serve on a listening socket as long as the block runs; close it then, at the latest a second later."""
    config = uvicorn.Config(
        app,
        http=_PromptProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        yield
    finally:
        server.should_exit = True
        await serving


class _PromptProtocol(H11Protocol):
    """Parts from clients that connect and ask nothing: enough of them would keep all others out."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give the client its time."""
        super().connection_made(transport)
        self._patience = self.loop.call_later(_PATIENCE, self._part)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._patience.cancel()
        super().connection_lost(exc)

    def _part(self) -> None:
        if self.cycle is None and not self.transport.is_closing():  # no request has come
            self.transport.close()


class _Server(uvicorn.Server):
    """Leaves the signals to the process that it is only a part of."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def _looking(balancer: Balancer, latency: Latency, envoys: Callable[[], list[EnvoyView]]) -> APIRouter:
    router = APIRouter()

    @router.get("/state", summary="Everything, as JSON", responses=_answer(STATE_EXAMPLE))
    async def state() -> StateView:
        """Policy, threshold, pools and their sessions, tokens, messages and the Envoys that ask."""
        return state_view(balancer, envoys())

    figures = 'evenly_threshold 5.0\nevenly_pool_sessions{pool="127.0.0.1:9001"} 6.0'
    answer = _answer(figures, "text/plain")

    @router.get("/metrics", summary="Figures for Prometheus", response_class=Response, responses=answer)
    async def metrics() -> Response:
        """Sessions, threshold, tokens, picks, messages, and a histogram of how long picks take."""
        return Response(metrics_text(balancer, latency), media_type=CONTENT_TYPE)

    return router


def _changing(balancer: Balancer, resolve: Callable[[Address], Awaitable[Address]]) -> APIRouter:
    router = APIRouter(prefix="/pools", responses=_problem(422, "This is no address of a pool."))
    unknown = _problem(404, "There is no such pool.")
    there = _problem(409, "The pool is there already.")

    @router.post("", summary="Add a pool", status_code=201, responses=_pool_answer("warming", 0, 201) | there)
    async def add(pool: NewPool) -> PoolView:
        """It fills slowly at first. A pool that is leaving is admitted again, with its open sessions."""
        with _refusing(422):
            address = _pool_address(pool.address)
            endpoint = await resolve(address)
        with _refusing(409):
            return pool_view(balancer.add(address, endpoint))

    answers = _pool_answer("draining", 6) | unknown

    @router.post("/{address}/drain", summary="Give a pool no new sessions", responses=answers)
    async def drain(address: PoolPath) -> PoolView:
        """The open ones go on."""
        return changed(address, balancer.drain)

    answers = _pool_answer("warming", 2) | unknown

    @router.post("/{address}/undrain", summary="Give a pool sessions again", responses=answers)
    async def undrain(address: PoolPath) -> PoolView:
        """It fills slowly at first."""
        return changed(address, balancer.undrain)

    answers = _pool_answer("leaving", 6) | unknown

    @router.delete("/{address}", summary="Remove a pool", responses=answers)
    async def remove(address: PoolPath) -> PoolView:
        """It gets no new sessions, and is forgotten when its last one ends."""
        return changed(address, balancer.remove)

    def changed(text: str, change: Callable[[Address], None]) -> PoolView:
        with _refusing(422):
            address = _pool_address(text)
        with _refusing(404):
            pool = balancer.pool(address)
        change(address)
        return pool_view(pool)

    return router


def _probing(ready: Callable[[], bool]) -> APIRouter:
    router = APIRouter()

    @router.get("/healthz", summary="Is it alive?", responses=_answer({"status": "alive"}))
    async def healthz() -> Status:
        """Answers as long as the picker runs at all. Needs no token."""
        return Status(status="alive")

    answers = _answer({"status": "ready"}) | _problem(503, "It is not ready.")

    @router.get("/readyz", summary="Is it ready?", responses=answers)
    async def readyz() -> Status:
        """Whether the picker can pick. Needs no token."""
        if not ready():
            raise HTTPException(503, "No new sessions: the gateway drains, or every pool is failing or draining.")
        return Status(status="ready")

    return router


def _answer(example: object, kind: str = "application/json", status: int = 200) -> Responses:
    return {status: {"description": "It is done.", "content": {kind: {"example": example}}}}


def _pool_answer(state: str, sessions: int, status: int = 200) -> Responses:
    view = {"address": "127.0.0.1:9001", "sessions": sessions, "unpicked": 0, "state": state}
    return _answer(view, status=status)


def _problem(status: int, description: str) -> Responses:
    return {status: {"model": Problem, "description": description}}


@contextmanager
def _refusing(status: int) -> Iterator[None]:
    """Answer input that cannot be used with this status."""
    try:
        yield
    except InputError as error:
        raise HTTPException(status, str(error)) from None


def _pool_address(text: str) -> Address:
    address = parse_address(text)
    check_pools([address])
    return address


async def _in_one_sentence(request: Request, error: Exception) -> Response:
    """The first thing that is wrong with the request's form."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return JSONResponse({"detail": f"The request's {place} is not as it should be: {first['msg']}."}, 422)


def _reached_at(request: Request, bound: Address) -> str:
    """The address that the reader used, if it looks like one: behind 0.0.0.0 it is the one that works."""
    try:
        return str(parse_address(request.headers.get("host", "")))
    except InputError:
        return str(bound)
