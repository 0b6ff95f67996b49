"""The routes of the admin port: inspect the balancer, change its pools, check its health."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, HTTPException, Path, Security
from fastapi.exceptions import RequestValidationError
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.security import HTTPBearer

from evenly.errors import InputError
from evenly.live.addresses import Address, check_pools, parse_address
from evenly.live.admin.auth import Guard
from evenly.live.admin.docs import docs_page
from evenly.live.admin.metrics import CONTENT_TYPE, metrics_text
from evenly.live.admin.schema import (
    STATE_EXAMPLE,
    EnvoyView,
    NewPool,
    PoolView,
    Problem,
    Readiness,
    StateView,
    Status,
    StoreView,
    pool_view,
    state_view,
)
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.latency import Latency

_ABOUT = """Inspect the balancer, change its pools while it runs, and check its health.
A rejected request is answered with {"detail": "the reason, in one sentence"}."""

Responses = dict[int | str, dict[str, Any]]
PoolPath = Annotated[
    str, Path(description="Address of the pool, HOST:PORT.", max_length=300, examples=["127.0.0.1:9001"])
]


def admin_app(
    *,
    balancer: Balancer,
    latency: Latency,
    envoys: Callable[[], list[EnvoyView]],
    token: str | None,
    bound: Address,
    resolve: Callable[[Address], Awaitable[Address]],
    ready: Callable[[], bool],
    publish: Callable[[], None],
    store: Callable[[], StoreView | None] = lambda: None,
) -> FastAPI:
    """Return the application. `bound` is the address it serves on; `resolve` looks a host name up.

    `publish` is called after each change of a pool, before the answer: an acknowledged change survives a crash.
    """
    app = FastAPI(title="evenly", description=_ABOUT, version=version("evenly"), docs_url=None, redoc_url=None)
    # The guard checks the token; the scheme only documents it in OpenAPI.
    scheme = [] if token is None else [Security(HTTPBearer(auto_error=False, description="The admin token."))]
    app.include_router(_inspect_routes(balancer, latency, envoys, store), tags=["Inspect"], dependencies=scheme)
    app.include_router(_pool_routes(balancer, resolve, publish), tags=["Pools"], dependencies=scheme)
    app.include_router(_health_routes(ready, store), tags=["Health"])
    app.add_exception_handler(RequestValidationError, _invalid_request)
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


def _inspect_routes(
    balancer: Balancer,
    latency: Latency,
    envoys: Callable[[], list[EnvoyView]],
    store: Callable[[], StoreView | None],
) -> APIRouter:
    router = APIRouter()

    @router.get("/state", summary="The whole state as JSON", responses=_answer(STATE_EXAMPLE))
    async def state() -> StateView:
        """Policy, threshold, pools and their sessions, tokens, messages, and the connected Envoys."""
        return state_view(balancer, envoys(), store())

    sample = 'evenly_threshold 5.0\nevenly_pool_sessions{pool="127.0.0.1:9001"} 6.0'
    answer = _answer(sample, "text/plain")

    @router.get("/metrics", summary="Metrics for Prometheus", response_class=Response, responses=answer)
    async def metrics() -> Response:
        """Sessions, threshold, tokens, picks, messages, and a histogram of pick latency."""
        return Response(metrics_text(balancer, latency, store()), media_type=CONTENT_TYPE)

    return router


def _pool_routes(
    balancer: Balancer, resolve: Callable[[Address], Awaitable[Address]], publish: Callable[[], None]
) -> APIRouter:
    router = APIRouter(prefix="/pools", responses=_problem(422, "The address is not valid."))
    unknown = _problem(404, "There is no such pool.")
    there = _problem(409, "The pool already exists.")

    @router.post("", summary="Add a pool", status_code=201, responses=_pool_answer("warming", 0, 201) | there)
    async def add(pool: NewPool) -> PoolView:
        """The pool fills slowly at first (slow start). A leaving pool is added again with its open sessions."""
        with _refusing(422):
            address = _pool_address(pool.address)
            endpoint = await resolve(address)
        with _refusing(409):
            added = balancer.add(address, endpoint)
        publish()
        return pool_view(added)

    answers = _pool_answer("draining", 6) | unknown

    @router.post("/{address}/drain", summary="Drain a pool", responses=answers)
    async def drain(address: PoolPath) -> PoolView:
        """The pool gets no new sessions. Its open sessions continue."""
        return changed(address, balancer.drain)

    answers = _pool_answer("warming", 2) | unknown

    @router.post("/{address}/undrain", summary="Undrain a pool", responses=answers)
    async def undrain(address: PoolPath) -> PoolView:
        """The pool gets new sessions again. It fills slowly at first (slow start)."""
        return changed(address, balancer.undrain)

    answers = _pool_answer("leaving", 6) | unknown

    @router.delete("/{address}", summary="Remove a pool", responses=answers)
    async def remove(address: PoolPath) -> PoolView:
        """The pool gets no new sessions, and is gone when its last session ends."""
        return changed(address, balancer.remove)

    def changed(text: str, change: Callable[[Address], None]) -> PoolView:
        with _refusing(422):
            address = _pool_address(text)
        with _refusing(404):
            pool = balancer.pool(address)
        change(address)
        publish()
        return pool_view(pool)

    return router


def _health_routes(ready: Callable[[], bool], store: Callable[[], StoreView | None]) -> APIRouter:
    router = APIRouter()

    @router.get("/healthz", summary="Liveness probe", responses=_answer({"status": "alive"}))
    async def healthz() -> Status:
        """200 while the process runs. Needs no token."""
        return Status(status="alive")

    answers = _answer({"status": "ready", "store": "available"}) | _problem(503, "Not ready.")

    @router.get("/readyz", summary="Readiness probe", responses=answers, response_model_exclude_none=True)
    async def readyz() -> Readiness:
        """200 while new sessions can be placed, also without the shared store. Needs no token."""
        if not ready():
            raise HTTPException(503, "Not accepting sessions: the gateway is draining, or no pool can be picked.")
        seen = store()
        return Readiness(
            status="ready", store=None if seen is None else "available" if seen.available else "unavailable"
        )

    return router


def _answer(example: object, kind: str = "application/json", status: int = 200) -> Responses:
    return {status: {"description": "OK", "content": {kind: {"example": example}}}}


def _pool_answer(state: str, sessions: int, status: int = 200) -> Responses:
    view = {"address": "127.0.0.1:9001", "sessions": sessions, "unpicked": 0, "elsewhere": 0, "state": state}
    return _answer(view, status=status)


def _problem(status: int, description: str) -> Responses:
    return {status: {"model": Problem, "description": description}}


@contextmanager
def _refusing(status: int) -> Iterator[None]:
    """Answer an InputError with this status."""
    try:
        yield
    except InputError as error:
        raise HTTPException(status, str(error)) from None


def _pool_address(text: str) -> Address:
    address = parse_address(text)
    check_pools([address])
    return address


async def _invalid_request(request: Request, error: Exception) -> Response:
    """Report the first validation error in one sentence."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return JSONResponse({"detail": f"Invalid {place}: {first['msg']}."}, 422)


def _reached_at(request: Request, bound: Address) -> str:
    """Return the address that the reader used, if it is valid: 0.0.0.0 would be of no use in an example."""
    try:
        return str(parse_address(request.headers.get("host", "")))
    except InputError:
        return str(bound)
