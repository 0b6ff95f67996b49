"""Picks and releases over HTTP, and the redirect to a picked pool."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import unquote

from pydantic import ValidationError

from evenly.core.protocol import KeyReusedError, TooManyPicksError
from evenly.live.dispatcher.answers import JSON, Answer, RefusalError
from evenly.live.dispatcher.counters import Counters
from evenly.live.dispatcher.models import KEY_PATTERN, Code, PickRequest, SessionsView, SessionView, first_fault
from evenly.live.pool_url import redirect_target
from evenly.live.session_id import read, sign, verify
from evenly.live.store.base import (
    AllUnavailableError,
    NoPoolsError,
    Placement,
    Store,
    StoreUnavailableError,
)

_KEY = re.compile(KEY_PATTERN.encode())
_DEFAULT = PickRequest()
_NOTHING = Answer(204, [])
_NO_STORE = (b"cache-control", b"no-store")


class Sessions:
    """The routes of clients."""

    def __init__(self, store: Store, counters: Counters) -> None:
        self._store = store
        self._counters = counters

    async def pick(self, headers: Mapping[bytes, bytes], body: bytes) -> Answer:
        """Answer POST /v1/sessions."""
        start = time.perf_counter()
        key = headers.get(b"idempotency-key")
        if key is not None and not _KEY.fullmatch(key):
            raise RefusalError(
                Code.INVALID_REQUEST, "Idempotency-Key must be 1 to 200 visible ASCII characters without spaces."
            )
        try:
            request = PickRequest.model_validate_json(body) if body else _DEFAULT
        except ValidationError as error:
            raise RefusalError(Code.INVALID_REQUEST, first_fault(error)) from None
        places = await self._place(request.count or 1, request.exclude, None if key is None else key.decode())
        views = self._views(places)
        answer = views[0] if request.count is None else SessionsView(sessions=views)
        self._counters.latency.observe(time.perf_counter() - start)
        return Answer(201, [JSON, _NO_STORE], answer.model_dump_json().encode())

    async def release(self, session: str) -> Answer:
        """Answer DELETE /v1/sessions/{id}.

        An id with a wrong signature is answered like one that has expired: after a restart with new keys, honest
        clients hold such ids too. It changes nothing.
        """
        session = unquote(session)
        if read(session) is None:
            raise RefusalError(Code.INVALID_REQUEST, "This is not the id of a session.")
        known = verify((self._store.key,), session)
        if known is not None:
            try:
                await self._store.release(known.pool, known.ticket)
            except StoreUnavailableError:
                raise _unavailable() from None
        return _NOTHING

    async def go(self, path: bytes, query: bytes, *, websocket: bool) -> Answer:
        """Answer GET /v1/go/{path}."""
        start = time.perf_counter()
        (place,) = await self._place(1, (), None)
        session = sign(self._store.key, place.pool, place.ticket, place.threshold)
        target = redirect_target(place.address, path, query, session, websocket=websocket)
        if target is None:
            await self._store.release(place.pool, place.ticket)
            raise RefusalError(Code.INVALID_REQUEST, "The path and the query must be visible ASCII characters.")
        self._counters.latency.observe(time.perf_counter() - start)
        return Answer(307, [(b"location", target), _NO_STORE])

    async def _place(self, count: int, exclude: Sequence[str], key: str | None) -> tuple[Placement, ...]:
        try:
            places = await self._store.place(count=count, exclude=frozenset(exclude), key=key)
        except NoPoolsError:
            raise RefusalError(Code.NO_POOLS, "No pool has connected, or all have gone.") from None
        except AllUnavailableError:
            raise RefusalError(
                Code.ALL_FULL_OR_DRAINING, "There are pools, but all are full, draining, leaving or excluded."
            ) from None
        except StoreUnavailableError:
            raise _unavailable() from None
        except TooManyPicksError as error:
            raise RefusalError(Code.TOO_MANY, str(error)) from None
        except KeyReusedError:
            raise RefusalError(
                Code.KEY_REUSED, "This Idempotency-Key was used for a request with another body."
            ) from None
        picks = self._counters.picks
        for place in places:
            picks["any" if place.color is None else place.color.value] += 1
        return places

    def _views(self, places: Sequence[Placement]) -> list[SessionView]:
        key, now = self._store.key, time.time()
        return [
            SessionView(
                id=sign(key, place.pool, place.ticket, place.threshold),
                pool=place.pool,
                address=place.address,
                expires_in=round(place.expires_in, 3),
                expires_at=_rfc3339(now + place.expires_in),
                color=None if place.color is None else place.color.value,
                threshold=place.threshold,
            )
            for place in places
        ]


def _rfc3339(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _unavailable() -> RefusalError:
    return RefusalError(Code.STORE_UNAVAILABLE, "The store cannot be reached, and no pool is known without it.")
