"""Responses with a line per pool. Neither making nor sending them holds up the picks of the same event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from evenly.live.steps import in_steps

_CHUNK = 64 * 1024  # bytes to send at once


async def stepped_response(pieces: Iterable[str], media_type: str) -> Response:
    """Return a response whose text is made of these pieces, in steps. What comes before and after are others."""
    await asyncio.sleep(0)
    made = await in_steps(pieces)
    await asyncio.sleep(0)
    return _SteppedResponse("".join(made), media_type=media_type)


class _SteppedResponse(Response):
    """Is sent in chunks, as fast as the client reads them."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = memoryview(self.body)
        for begin in range(0, len(body), _CHUNK):
            chunk = bytes(body[begin : begin + _CHUNK])
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})
