"""Answers of the API as ASGI messages, and refusals that become such answers."""

from __future__ import annotations

from typing import NamedTuple

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.utils import ClientDisconnected

from evenly.live.dispatcher.models import MAX_BODY, STATUS, Code, ErrorView

Headers = list[tuple[bytes, bytes]]
JSON = (b"content-type", b"application/json")
_RETRY = {Code.NO_POOLS, Code.ALL_FULL_OR_DRAINING, Code.STORE_UNAVAILABLE, Code.NOT_READY, Code.TOO_MANY}
_CLOSING = {Code.TOO_LARGE}  # the rest of the body is not read
RETRY_AFTER_S = 1


class Answer(NamedTuple):
    """A response. Its length is added when it is sent."""

    status: int
    headers: Headers
    body: bytes = b""


class RefusalError(Exception):
    """A request that is rejected with this code."""

    def __init__(self, code: Code, detail: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(detail)
        self.code = code
        self.headers = headers

    def answer(self) -> Answer:
        """Return the response."""
        headers = [JSON, *self.headers]
        if self.code in _RETRY:
            headers.append((b"retry-after", str(RETRY_AFTER_S).encode()))
        if self.code in _CLOSING:
            headers.append((b"connection", b"close"))
        if self.code is Code.UNAUTHORIZED:
            headers.append((b"www-authenticate", b"Bearer"))
        body = ErrorView(code=self.code, detail=str(self)).model_dump_json().encode()
        return Answer(STATUS[self.code], headers, body)


async def send_answer(scope: Scope, send: Send, answer: Answer) -> None:
    """Send a response, to a request or in place of a WebSocket."""
    kind = "http.response" if scope["type"] == "http" else "websocket.http.response"
    headers = answer.headers
    if answer.status != 204:
        headers = [*headers, (b"content-length", str(len(answer.body)).encode())]
    await send({"type": f"{kind}.start", "status": answer.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": answer.body})


async def read_body(receive: Receive) -> bytes:
    """Return the body of a request of at most `MAX_BODY` bytes."""
    body, more = b"", True
    while more and len(body) <= MAX_BODY:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected  # no place must be taken for a client that has gone
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if len(body) > MAX_BODY:
        raise RefusalError(Code.TOO_LARGE, f"The body must be at most {MAX_BODY} bytes.")
    return body
