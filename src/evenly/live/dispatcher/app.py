"""The routes of the API port. Clients and agents are handled as raw ASGI, because every pick passes here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.utils import ClientDisconnected

from evenly.live.dispatcher.access import Access
from evenly.live.dispatcher.agents import Agents
from evenly.live.dispatcher.answers import JSON, Answer, RefusalError, read_body, send_answer
from evenly.live.dispatcher.counters import Counters
from evenly.live.dispatcher.models import Code
from evenly.live.dispatcher.pages import Pages
from evenly.live.dispatcher.sessions import Sessions
from evenly.live.log import Log

TRANSPORT = "evenly.transport"  # the key of a WebSocket's transport in its scope
_SESSIONS, _SESSION, _GO, _AGENTS = b"/v1/sessions", b"/v1/sessions/", b"/v1/go/", b"/v1/agents"
_CLIENTS = (_SESSIONS, _GO)  # where the paths of clients begin
_CROSS_ORIGIN = ((b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", b"retry-after"))
_PREFLIGHT = Answer(
    204,
    [
        (b"access-control-allow-methods", b"GET, POST, DELETE"),
        (b"access-control-allow-headers", b"authorization, content-type, idempotency-key"),
        (b"access-control-max-age", b"86400"),
    ],
)
_ALIVE = Answer(200, [JSON], b'{"status":"alive"}')
_READY = {
    None: Answer(200, [JSON], b'{"status":"ready"}'),
    True: Answer(200, [JSON], b'{"status":"ready","store":"available"}'),
    False: Answer(200, [JSON], b'{"status":"ready","store":"unavailable"}'),
}


class Api:
    """The ASGI application."""

    def __init__(
        self,
        *,
        sessions: Sessions,
        agents: Agents,
        pages: Pages,
        clients: Access,
        agent_access: Access,
        counters: Counters,
        why_not_ready: Callable[[], Awaitable[str | None]],
        store_available: Callable[[], bool | None],
        log: Log,
    ) -> None:
        self._sessions = sessions
        self._agents = agents
        self._pages = pages
        self._clients = clients
        self._agent_access = agent_access
        self._counters = counters
        self._why_not_ready = why_not_ready
        self._store_available = store_available
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request or a WebSocket."""
        try:
            if scope["type"] == "websocket":
                answer = await self._websocket(scope, receive, send)
            else:
                answer = await self._request(scope, receive)
        except RefusalError as refusal:
            self._counters.errors[refusal.code.value] += 1
            answer = refusal.answer()
        except ClientDisconnected:
            return
        except Exception as error:
            self._log.event("fault", where="api", error=repr(error))
            answer = RefusalError(Code.FAULT, "The dispatcher has a fault; its log says more.").answer()
        if answer is not None:
            if self._clients.cross_origin and _from_page(scope):
                answer = answer._replace(headers=[*answer.headers, *_CROSS_ORIGIN])
            await send_answer(scope, send, answer)

    async def _request(self, scope: Scope, receive: Receive) -> Answer:
        path: bytes = scope["raw_path"]
        headers = dict(scope["headers"])
        if scope["method"] == "OPTIONS" and self._clients.cross_origin and path.startswith(_CLIENTS):
            return _PREFLIGHT
        if path == _SESSIONS:
            _check_method(scope, "POST")
            self._clients.check(headers)
            return await self._sessions.pick(headers, await read_body(receive))
        if path.startswith(_SESSION):
            _check_method(scope, "DELETE")
            self._clients.check(headers)
            return await self._sessions.release(path[len(_SESSION) :].decode("latin-1"))
        if path.startswith(_GO):
            _check_method(scope, "GET")
            return await self._go(scope, headers)
        _check_method(scope, "GET")
        return await self._other(path, headers)

    async def _go(self, scope: Scope, headers: dict[bytes, bytes]) -> Answer:
        self._clients.check(headers, from_pages=True)
        return await self._sessions.go(
            scope["raw_path"][len(_GO) :], scope["query_string"], websocket=scope["type"] == "websocket"
        )

    async def _other(self, path: bytes, headers: dict[bytes, bytes]) -> Answer:
        if path == b"/healthz":
            return _ALIVE
        if path == b"/readyz":
            reason = await self._why_not_ready()
            if reason is not None:
                raise RefusalError(Code.NOT_READY, reason)
            return _READY[self._store_available()]
        if path == _AGENTS:
            raise RefusalError(
                Code.UPGRADE_REQUIRED, "Agents connect here with a WebSocket.", (b"upgrade", b"websocket")
            )
        page = self._pages.find(path, headers.get(b"host", b"").decode("latin-1"))
        if page is None:
            raise RefusalError(Code.NOT_FOUND, "There is nothing at this path; /docs lists what there is.")
        return page

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> Answer | None:
        """Handle a WebSocket; return an answer in place of one."""
        path: bytes = scope["raw_path"]
        headers = dict(scope["headers"])
        if path.startswith(_GO):
            return await self._go(scope, headers)
        if path != _AGENTS:
            raise RefusalError(Code.NOT_FOUND, "There is no WebSocket at this path; agents connect to /v1/agents.")
        self._agent_access.check(headers)
        await self._agents.serve(scope, receive, send, scope[TRANSPORT])
        return None


def _from_page(scope: Scope) -> bool:
    """Return whether a web page sends the request of a client."""
    return scope["raw_path"].startswith(_CLIENTS) and any(name == b"origin" for name, _ in scope["headers"])


def _check_method(scope: Scope, allowed: str) -> None:
    if scope["method"] != allowed:
        raise RefusalError(
            Code.METHOD_NOT_ALLOWED,
            f"The method must be {allowed}, not {scope['method']}.",
            (b"allow", allowed.encode()),
        )
