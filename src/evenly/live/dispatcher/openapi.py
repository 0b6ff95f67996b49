"""The OpenAPI document of the API. FastAPI makes it from these declarations; `app.py` handles the requests."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Header, Path, Response, Security
from fastapi.security import HTTPBearer
from pydantic import BaseModel, Field

from evenly.live.dispatcher.answers import RETRY_AFTER_S
from evenly.live.dispatcher.models import (
    KEY_PATTERN,
    SESSION_EXAMPLE,
    STATUS,
    Code,
    ErrorView,
    PickRequest,
    SessionsView,
    SessionView,
)

_ABOUT = f"""Place sessions in pools, give places back, and connect the pools' agents.
Errors are answered with {{"code": "for programs", "detail": "one sentence for people"}}.
Every 503 and 429 has the header Retry-After, {RETRY_AFTER_S} second."""

_MEANING = {
    Code.NO_POOLS: "no agent has connected, or all pools have gone.",
    Code.ALL_FULL_OR_DRAINING: "there are pools, but all are full, draining, leaving or excluded.",
    Code.STORE_UNAVAILABLE: "the store cannot be reached, and no pool is known without it.",
    Code.NOT_READY: "no session can be placed now.",
    Code.KEY_REUSED: "the Idempotency-Key was used for a request with another body.",
    Code.INVALID_REQUEST: "a parameter or the body is not valid.",
    Code.UNAUTHORIZED: "the token is missing or wrong.",
    Code.FOREIGN_PAGE: "without a token, web pages of other sites are rejected.",
    Code.WRONG_HOST: "without a token, the Host must be loopback.",
    Code.TOO_LARGE: "the body has more than 64 KiB.",
    Code.TOO_MANY: "more places are held than the dispatcher keeps; wait until leases end.",
    Code.UPGRADE_REQUIRED: "the request is no WebSocket handshake.",
    Code.METHOD_NOT_ALLOWED: "the path has another method.",
    Code.FAULT: "the dispatcher has a fault; its log says more.",
}
_ACCESS = (Code.UNAUTHORIZED, Code.FOREIGN_PAGE, Code.WRONG_HOST, Code.METHOD_NOT_ALLOWED, Code.FAULT)
_PLACING = (Code.NO_POOLS, Code.ALL_FULL_OR_DRAINING, Code.STORE_UNAVAILABLE, Code.TOO_MANY)

Responses = dict[int | str, dict[str, Any]]
PATHS = "path:path"


class Health(BaseModel):
    """The dispatcher's health."""

    status: Annotated[str, Field(description="`alive` or `ready`.")]


class Readiness(Health):
    """The dispatcher's health, and that of its store."""

    store: Annotated[
        str | None,
        Field(description="The shared store, if any: `available`, or `unavailable` while picks continue."),
    ] = None


def openapi_document(*, with_token: bool) -> dict[str, Any]:
    """Return the document. `with_token`: clients need a token."""
    app = FastAPI(title="evenly", description=_ABOUT, version=version("evenly"))
    scheme = [Security(HTTPBearer(auto_error=False, description="The client token."))] if with_token else []
    app.include_router(_session_routes(), tags=["Sessions"], dependencies=scheme)
    app.include_router(_agent_routes(), tags=["Agents"], dependencies=scheme)
    app.include_router(_health_routes(), tags=["Health"])
    document = app.openapi()
    for path in document["paths"].values():
        for operation in path.values():
            _drop_fastapi_error(operation)
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    return document


def _session_routes() -> APIRouter:
    router = APIRouter()

    @router.post(
        "/v1/sessions",
        summary="Pick a pool for a session",
        status_code=201,
        response_model=SessionView | SessionsView,
        responses=_answer(201, SESSION_EXAMPLE)
        | _errors(*_PLACING, Code.KEY_REUSED, Code.INVALID_REQUEST, Code.TOO_LARGE, *_ACCESS),
    )
    async def pick(
        body: PickRequest | None = None,
        idempotency_key: Annotated[
            str | None,
            Header(
                pattern=KEY_PATTERN,
                description="1 to 200 visible ASCII characters. A repeated request with the same key gets the "
                "same answer while its lease lasts.",
            ),
        ] = None,
    ) -> None:
        """The body may be empty. With `count`, the answer is `{"sessions": [...]}`, one place for each.

        The place is kept until it expires. A client that comes later is served too, but was not expected.
        """

    @router.delete(
        "/v1/sessions/{id}",
        summary="Give a place back",
        status_code=204,
        responses=_empty(204, "The place is free, or it was already.")
        | _errors(Code.INVALID_REQUEST, Code.STORE_UNAVAILABLE, *_ACCESS),
    )
    async def release(
        id: Annotated[str, Path(description="Session id.", examples=[SESSION_EXAMPLE["id"]])],
    ) -> None:
        """For a client that will not go to the pool. Repeat it as often as you like.

        An id that has expired, that was used, or that this fleet did not sign is answered with 204 and changes
        nothing. Text that is not in the form of an id is rejected. A session that has begun is not ended.
        """

    @router.get(
        "/v1/go/{path}",
        summary="Pick a pool and redirect to it",
        status_code=307,
        response_class=Response,
        responses=_empty(307, "Location: the pool's URL with path, query and evenly-session=ID.")
        | _errors(*_PLACING, Code.INVALID_REQUEST, Code.UNAUTHORIZED, Code.WRONG_HOST, Code.METHOD_NOT_ALLOWED),
    )
    async def go(
        path: Annotated[str, Path(description="Any path; it may have slashes.", examples=["room/7?team=red"])],
    ) -> None:
        """Path and query stay as they are, byte by byte, and `evenly-session=ID` is appended to the query.

        A WebSocket handshake is redirected to ws:// or wss://, other requests to http:// or https://. Browsers
        do not follow redirects of WebSockets; use POST /v1/sessions there.
        """

    return router


def _agent_routes() -> APIRouter:
    router = APIRouter()

    @router.get(
        "/v1/agents",
        summary="Connect an agent (WebSocket)",
        status_code=101,
        response_class=Response,
        responses=_empty(101, "Switching to WebSocket.")
        | _errors(Code.UPGRADE_REQUIRED, Code.UNAUTHORIZED, Code.FOREIGN_PAGE, Code.WRONG_HOST),
    )
    async def agents() -> None:
        """Agents speak the protocol in text frames, one JSON object each. Needs the agent token."""

    return router


def _health_routes() -> APIRouter:
    router = APIRouter()

    @router.get(
        "/healthz", summary="Liveness probe", response_model=Health, responses=_answer(200, {"status": "alive"})
    )
    async def healthz() -> None:
        """200 while the process runs. Needs no token."""

    @router.get(
        "/readyz",
        summary="Readiness probe",
        response_model=Readiness,
        responses=_answer(200, {"status": "ready", "store": "available"}) | _errors(Code.NOT_READY),
    )
    async def readyz() -> None:
        """200 while new sessions can be placed, also without the shared store. Needs no token."""

    return router


def _answer(status: int, example: object) -> Responses:
    return {status: {"description": "OK", "content": {"application/json": {"example": example}}}}


def _empty(status: int, description: str) -> Responses:
    return {status: {"description": description}}


def _errors(*codes: Code) -> Responses:
    """Describe errors by status; several codes can share one."""
    found: Responses = {}
    for code in codes:
        entry = found.setdefault(STATUS[code], {"model": ErrorView, "description": ""})
        entry["description"] = f"{entry['description']} `{code.value}`: {_MEANING[code]}".strip()
    return found


def _drop_fastapi_error(operation: dict[str, Any]) -> None:
    """Remove the error that FastAPI documents for every operation with parameters, unless it is ours."""
    answer = operation["responses"].get("422")
    if answer is not None and "ErrorView" not in str(answer):
        del operation["responses"]["422"]
