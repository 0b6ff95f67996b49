"""One connection to the store that many callers share: what they ask at the same time goes in one write.

It must not know what is asked.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, cast

from hiredis import pack_command
from redis.asyncio import Connection, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    NoPermissionError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)

from evenly.live.store.base import StoreUnavailableError
from evenly.live.store_url import StoreUrl

_CLOSED = "The store has been closed."
MAX_WAITING = 10_000  # calls
_MAX_BATCH = 1_000  # calls in one write
_REFUSED = "The store rejected the user name or the password."
_REFUSALS = (AuthenticationError, AuthorizationError, NoPermissionError)
_ELSEWHERE = (ReadOnlyError, MasterDownError, ClusterDownError, MovedError)  # ask through a new connection

Argument = bytes | str | int | float
Execute = Callable[[bytes], Awaitable[object]]
"""Sends a packed command and returns the reply; a ResponseError is raised."""


def pack(*arguments: Argument) -> bytes:
    """Return a command as bytes."""
    return cast(bytes, pack_command(arguments))  # type: ignore[arg-type]  # its types allow one argument only


class Template:
    """The beginning of a command that is sent often, packed once."""

    def __init__(self, *arguments: Argument) -> None:
        self._count = len(arguments)
        self._packed = pack(*arguments).partition(b"\r\n")[2]

    def fill(self, *arguments: Argument) -> bytes:
        """Return the command with these arguments at its end."""
        if not arguments:
            return b"*%d\r\n%b" % (self._count, self._packed)
        _, _, rest = pack(*arguments).partition(b"\r\n")
        return b"*%d\r\n%b%b" % (self._count + len(arguments), self._packed, rest)


class StoreRefusedError(StoreUnavailableError):
    """The store can be reached, but not with this user name and password."""


def new_connection(address: StoreUrl, timeout: float) -> Connection:
    """Return a connection that is not open yet. The caller limits how long it waits for replies."""
    options: dict[str, Any] = {
        "host": address.host,
        "port": address.port,
        "db": address.database,
        "username": address.username,
        "password": address.password,
        "socket_connect_timeout": timeout,
        "socket_keepalive": True,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
    }
    if not address.tls:
        return Connection(**options)
    # SSL_CERT_FILE can name a CA of one's own.
    return SSLConnection(**options, ssl_cert_reqs="required", ssl_check_hostname=True)


async def connect(connection: Connection) -> None:
    """Open a connection. Raise StoreUnavailableError with one sentence if that fails."""
    try:
        await connection.connect()  # type: ignore[no-untyped-call]
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # redis-py may swallow it
            raise asyncio.CancelledError
    except (RedisError, OSError) as error:
        await drop(connection)
        if isinstance(error, _REFUSALS):
            raise StoreRefusedError(_REFUSED) from error
        raise StoreUnavailableError(f"The store cannot be reached: {error}") from error
    except BaseException:  # it took too long
        await drop(connection)
        raise


async def drop(connection: Connection) -> None:
    """Close a connection at once, whatever its state."""
    writer: asyncio.StreamWriter | None = connection._writer
    with contextlib.suppress(RedisError, OSError):
        await connection.disconnect(nowait=True)
    if writer is not None:
        writer.transport.abort()  # with TLS, the socket would stay open until the store says goodbye


class Link:
    """A connection with an outbox. `greet` is called on every new connection, before anything else is sent.

    Every call ends within `timeout` seconds of its turn. When one fails, so do those that wait behind it: they
    would only fail later. The next call tries a new connection.
    """

    def __init__(self, address: StoreUrl, greet: Callable[[Execute], Awaitable[None]], timeout: float) -> None:
        self._address = address
        self._greet = greet
        self._timeout = timeout
        self._connection: Connection | None = None
        self._outbox: list[tuple[bytes, asyncio.Future[object]]] = []
        self._wake = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None
        self._closed = False

    def submit(self, command: bytes) -> asyncio.Future[object]:
        """Send a packed command with the next write. The reply is the result; ResponseError may be one."""
        if self._closed:
            raise StoreUnavailableError(_CLOSED)
        if len(self._outbox) >= MAX_WAITING:
            raise StoreUnavailableError(f"More than {MAX_WAITING} calls wait for the store.")
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._outbox.append((command, future))
        self._wake.set()
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._run())
        return future

    async def close(self) -> None:
        """Close the connection. Calls that wait fail, and so do later ones."""
        self._closed = True
        if self._writer is not None:
            self._writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writer
            self._writer = None
        await self._disconnect()
        self._fail(StoreUnavailableError(_CLOSED), self._outbox)
        self._outbox = []

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            batch, self._outbox = self._outbox[:_MAX_BATCH], self._outbox[_MAX_BATCH:]
            if not self._outbox:
                self._wake.clear()
            try:
                await self._exchange(batch)
            except BaseException as error:
                waiting, self._outbox = batch + self._outbox, []
                self._wake.clear()
                await self._disconnect()
                self._fail(_as_unavailable(error), waiting)
                if not isinstance(error, Exception):
                    raise

    async def _exchange(self, batch: list[tuple[bytes, asyncio.Future[object]]]) -> None:
        """Send the batch and hand out the replies. A connection that broke while idle is replaced once."""
        commands = [command for command, _ in batch]
        for idle in (self._connection is not None, False):
            try:
                async with asyncio.timeout(self._timeout):
                    connection = await self._connected()
                    await connection.send_packed_command(commands, check_health=False)
                    first = await read(connection)
                break
            except TimeoutError:
                raise
            except (RedisError, OSError):
                await self._disconnect()
                if not idle:
                    raise
        replies = [first]
        async with asyncio.timeout(self._timeout):
            while len(replies) < len(batch):
                replies.append(await read(connection))
        for (_, future), reply in zip(batch, replies, strict=True):
            if not future.done():
                future.set_result(reply)
        if any(isinstance(reply, _ELSEWHERE) for reply in replies):
            await self._disconnect()

    async def _connected(self) -> Connection:
        if self._connection is None:
            connection = new_connection(self._address, self._timeout)
            await connect(connection)
            self._connection = connection

            async def execute(command: bytes) -> object:
                await connection.send_packed_command([command], check_health=False)
                reply = await read(connection)
                if isinstance(reply, ResponseError):
                    raise reply
                return reply

            try:
                await execute(pack("PING"))  # a server that wants a password rejects this in a clear way
                await self._greet(execute)
            except _REFUSALS as error:
                raise StoreRefusedError(_REFUSED) from error
        return self._connection

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await drop(connection)

    @staticmethod
    def _fail(error: StoreUnavailableError, waiting: list[tuple[bytes, asyncio.Future[object]]]) -> None:
        for _, future in waiting:
            if not future.done():
                future.set_exception(error)


async def read(connection: Connection) -> object:
    """Return the next reply, which may be a ResponseError. The caller drops a connection that fails."""
    try:
        return await connection.read_response(disable_decoding=True, disconnect_on_error=False)
    except ResponseError as error:
        return error


def _as_unavailable(error: BaseException) -> StoreUnavailableError:
    if isinstance(error, StoreUnavailableError):
        return error
    if isinstance(error, TimeoutError):
        return StoreUnavailableError("The store does not answer in time.")
    return StoreUnavailableError(f"The store cannot be used: {error}")
