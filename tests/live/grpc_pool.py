"""A pool that is a real gRPC server, grpcio's, and clients for it. Messages are plain bytes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

import grpc

from evenly.live.tls import KeyPair
from tests.live.processes import free_port

SERVICE = "test.Echo"
HEALTH = "grpc.health.v1.Health"
SERVING, NOT_SERVING = 1, 2
TRAILER = "x-served-by"


class GrpcPool(grpc.GenericRpcHandler):  # type: ignore[misc]
    """A server with one service: `Say` (unary), `Count` (a stream from the server), `Chat` (both ways), `Fail`.

    It has gRPC's health service if `health` is the name of the service that is asked about. Every call ends with a
    trailer that has the address of the pool.
    """

    def __init__(
        self, *, health: str | None = None, credentials: grpc.ServerCredentials | None = None, port: int = 0
    ) -> None:
        self.port = port or free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.status = SERVING
        self.calls = 0  # open now
        self._health = health
        self._lock = threading.Lock()
        self._server = grpc.server(ThreadPoolExecutor(32), handlers=(self,), options=[("grpc.so_reuseport", 0)])
        if credentials is None:
            self._server.add_insecure_port(self.address)
        else:
            self._server.add_secure_port(self.address, credentials)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop(None).wait()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """Return the handler of a call."""
        handlers = {
            f"/{SERVICE}/Say": grpc.unary_unary_rpc_method_handler(self._say),
            f"/{SERVICE}/Count": grpc.unary_stream_rpc_method_handler(self._count),
            f"/{SERVICE}/Chat": grpc.stream_stream_rpc_method_handler(self._chat),
            f"/{SERVICE}/Fail": grpc.unary_unary_rpc_method_handler(self._fail),
        }
        if self._health is not None:
            handlers[f"/{HEALTH}/Check"] = grpc.unary_unary_rpc_method_handler(self._check)
        return handlers.get(details.method)

    def _begin(self, context: grpc.ServicerContext) -> None:
        with self._lock:
            self.calls += 1
        context.add_callback(self._end)
        context.set_trailing_metadata([(TRAILER, self.address)])

    def _end(self) -> None:
        with self._lock:
            self.calls -= 1

    def _say(self, message: bytes, context: grpc.ServicerContext) -> bytes:
        self._begin(context)
        return message

    def _count(self, message: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        self._begin(context)
        for number in range(int(message)):
            yield b"%d" % number

    def _chat(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        self._begin(context)
        yield from messages

    def _fail(self, message: bytes, context: grpc.ServicerContext) -> bytes:
        self._begin(context)
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, message.decode())
        raise AssertionError

    def _check(self, message: bytes, context: grpc.ServicerContext) -> bytes:
        asked = message[2:].decode() if message else ""  # the request has one field, the name
        if asked != self._health:
            context.abort(grpc.StatusCode.NOT_FOUND, asked)
        return bytes([1 << 3, self.status])


def server_credentials(pair: KeyPair) -> grpc.ServerCredentials:
    """Return credentials that show this certificate."""
    return grpc.ssl_server_credentials([(pair.key.read_bytes(), pair.cert.read_bytes())])


def method(channel: grpc.Channel, name: str, kind: str = "unary_unary") -> Any:  # noqa: ANN401  (grpcio has no types)
    """Return a method of the service, for calls."""
    return getattr(channel, kind)(f"/{SERVICE}/{name}")
