"""The JSON of the API: requests, answers and errors. The routes validate with these, and OpenAPI shows them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.config import JsonDict

from evenly.live.session_id import MAX_POOL_NAME

MAX_BODY = 64 * 1024  # bytes
MAX_EXCLUDED = 100  # pools
MAX_COUNT = 100  # sessions in one request
KEY_PATTERN = r"^[!-~]{1,200}$"  # of an Idempotency-Key

SESSION_EXAMPLE: JsonDict = {
    "id": "game-7.AAAAAQAAAAAp3R0mZJbq5mM5N4Xq",
    "pool": "game-7",
    "address": "wss://game-7.example:8443",
    "expires_in": 10.0,
    "expires_at": "2026-03-14T09:26:53.589Z",
    "color": "green",
    "threshold": 12,
}


class PickRequest(BaseModel):
    """What to pick."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, json_schema_extra={"examples": [{"exclude": ["game-3"]}]}
    )

    exclude: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=MAX_POOL_NAME)], ...],
        Field(max_length=MAX_EXCLUDED, description="Pools to avoid, such as those that a client could not reach."),
    ] = ()
    count: Annotated[
        int | None,
        Field(ge=1, le=MAX_COUNT, description="Pick this many places, all or none. The answer is a list then."),
    ] = None


class SessionView(BaseModel):
    """A place for a session."""

    model_config = ConfigDict(json_schema_extra={"examples": [SESSION_EXAMPLE]})

    id: Annotated[
        str,
        Field(description="Session id. Show it to the pool as query parameter or header `evenly-session`."),
    ]
    pool: Annotated[str, Field(description="Name of the pool.")]
    address: Annotated[str, Field(description="URL of the pool: go there.")]
    expires_in: Annotated[
        float, Field(ge=0, description="Seconds that are left until the place is given to others.")
    ]
    expires_at: Annotated[
        str, Field(description="The same as a time: RFC 3339, UTC.", json_schema_extra={"format": "date-time"})
    ]
    color: Annotated[
        Literal["green", "yellow"] | None,
        Field(description="Token used; null if no pool had one: all have more sessions than the threshold."),
    ]
    threshold: Annotated[int, Field(ge=0, description="Threshold at the pick, in sessions per pool.")]


class SessionsView(BaseModel):
    """Places for several sessions."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"sessions": [SESSION_EXAMPLE]}]})

    sessions: Annotated[list[SessionView], Field(description="One place per session.")]


class Code(StrEnum):
    """What went wrong, for programs."""

    NO_POOLS = "no_pools"
    ALL_FULL_OR_DRAINING = "all_full_or_draining"
    STORE_UNAVAILABLE = "store_unavailable"
    NOT_READY = "not_ready"
    KEY_REUSED = "key_reused"
    INVALID_REQUEST = "invalid_request"
    UNAUTHORIZED = "unauthorized"
    FOREIGN_PAGE = "foreign_page"
    WRONG_HOST = "wrong_host"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"
    UPGRADE_REQUIRED = "upgrade_required"
    FAULT = "fault"


STATUS = {
    Code.NO_POOLS: 503,
    Code.ALL_FULL_OR_DRAINING: 503,
    Code.STORE_UNAVAILABLE: 503,
    Code.NOT_READY: 503,
    Code.KEY_REUSED: 422,
    Code.INVALID_REQUEST: 422,
    Code.UNAUTHORIZED: 401,
    Code.FOREIGN_PAGE: 403,
    Code.WRONG_HOST: 421,
    Code.NOT_FOUND: 404,
    Code.METHOD_NOT_ALLOWED: 405,
    Code.TOO_LARGE: 413,
    Code.TOO_MANY: 429,
    Code.UPGRADE_REQUIRED: 426,
    Code.FAULT: 500,
}


class ErrorView(BaseModel):
    """The reason why a request was rejected."""

    code: Annotated[Code, Field(description="What went wrong, for programs.")]
    detail: Annotated[str, Field(description="The same in one sentence, for people.")]


def first_fault(error: ValidationError) -> str:
    """Put the first validation error into one sentence."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"Invalid {place or 'body'}: {first['msg']}."
