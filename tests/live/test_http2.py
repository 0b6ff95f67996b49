"""The wire, with two independent peers: gRPC's own client, and the h2 library for what that client never does."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from struct import pack
from typing import TYPE_CHECKING

import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest

from evenly.live.wire.frames import CONTINUATION, DATA, GOAWAY, HEADERS, PING, SETTINGS, frame, framed
from evenly.live.wire.header_blocks import Fields
from evenly.live.wire.http2 import Connection
from evenly.live.wire.streams import Handler, Stream
from tests.live.processes import PATIENCE

if TYPE_CHECKING:
    import grpc

    Talk = Callable[..., grpc.Call]

PATH = "/test.Echo/Talk"


@dataclass
class Log:
    """What the server's streams received."""

    messages: list[bytes] = field(default_factory=list)
    ended: int = 0
    open: int = 0
    connections: list[Connection] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, PATIENCE)


class Echo:
    """Sends every message back."""

    def __init__(self, stream: Stream, log: Log) -> None:
        self._stream = stream
        self._log = log
        with log.changed:
            log.open += 1
            log.changed.notify_all()

    def message(self, message: bytes) -> None:
        with self._log.changed:
            self._log.messages.append(message)
            self._log.changed.notify_all()
        self._stream.send(framed(message))

    def ended(self) -> None:
        with self._log.changed:
            self._log.ended += 1
            self._log.open -= 1
            self._log.changed.notify_all()


@contextmanager
def serving() -> Iterator[tuple[int, Log]]:
    """Run a server in its own thread."""
    log = Log()

    def route(stream: Stream, request: Fields) -> Handler | None:
        return Echo(stream, log) if request[b":path"] == PATH.encode() else None

    def connect() -> Connection:
        log.connections.append(Connection(route))
        return log.connections[-1]

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    listening = loop.create_server(connect, "127.0.0.1", 0)
    server = asyncio.run_coroutine_threadsafe(listening, loop).result(PATIENCE)

    async def stop() -> None:
        server.close()
        for connection in log.connections:
            connection.close()
        await asyncio.sleep(0.01)  # transports close in the next round

    try:
        yield server.sockets[0].getsockname()[1], log
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def client(port: int) -> Iterator[Talk]:
    import grpc

    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel.stream_stream(PATH, None, None)


def test_a_real_client_gets_every_message_back_and_a_clean_end() -> None:
    import grpc

    with serving() as (port, log), client(port) as talk:
        sent = [b"", b"one", b"x" * 5000, b"y" * 15_000]
        call = talk(iter(sent), timeout=PATIENCE)
        assert list(call) == sent
        assert call.code() is grpc.StatusCode.OK
        log.wait_for(lambda: log.ended == 1 and log.open == 0)
        assert log.messages == sent


def test_a_message_in_many_frames_arrives_whole() -> None:
    with serving() as (port, log), client(port) as talk:
        large = bytes(range(256)) * 2**12  # a megabyte: many frames, and more than a window
        call = talk(iter([large]), timeout=PATIENCE)
        log.wait_for(lambda: len(log.messages) == 1)
        assert log.messages == [large]
        call.cancel()
        log.wait_for(lambda: log.ended == 1)


@pytest.mark.full
def test_many_streams_at_once() -> None:
    def once(number: int) -> bool:
        message = f"session {number}".encode()
        return list(talk(iter([message]), timeout=PATIENCE)) == [message]

    with serving() as (port, log), client(port) as talk, ThreadPoolExecutor(16) as threads:
        assert all(threads.map(once, range(2000)))
        log.wait_for(lambda: log.ended == 2000 and log.open == 0)


def test_a_stream_that_is_cancelled_or_disconnected_ends_once() -> None:
    with serving() as (port, log):
        hold = threading.Event()

        def one_and_wait() -> Iterator[bytes]:
            yield b"hello"
            hold.wait(PATIENCE)

        with client(port) as talk:
            first, second = talk(one_and_wait()), talk(one_and_wait())
            assert (next(first), next(second)) == (b"hello", b"hello")
            first.cancel()
            log.wait_for(lambda: log.ended == 1 and log.open == 1)
        hold.set()  # the channel is closed: the other stream went with its connection
        log.wait_for(lambda: log.ended == 2 and log.open == 0)


def test_an_unknown_method_is_unimplemented() -> None:
    import grpc

    with serving() as (port, _), grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        with pytest.raises(grpc.RpcError) as error:
            channel.unary_unary("/test.Echo/Other", None, None)(b"", timeout=PATIENCE)
        assert error.value.code() is grpc.StatusCode.UNIMPLEMENTED


class Peer:
    """A client on the h2 library. `raw` sends bytes that the library would never send."""

    def __init__(self, port: int, window: int = 65_535) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.wire = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.wire.initiate_connection()
        self.wire.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.flush()

    def flush(self) -> None:
        self.raw(self.wire.data_to_send())

    def raw(self, data: bytes) -> None:
        self._socket.sendall(data)

    def hurry(self) -> None:
        """Wait at most a second for anything."""
        self._socket.settimeout(1.0)

    def open(self, stream: int) -> None:
        head = {":method": "POST", ":path": PATH, ":scheme": "http", ":authority": "x", "te": "trailers"}
        self.wire.send_headers(stream, list(head.items()))
        self.flush()

    def send(self, stream: int, message: bytes, padding: int | None = None, *, last: bool = False) -> None:
        self.wire.send_data(stream, framed(message), end_stream=last, pad_length=padding)
        self.flush()

    def read_until(self, end: bytes) -> bytes:
        """Return the received bytes up to and including `end`."""
        received = b""
        while not received.endswith(end):
            received += self._socket.recv(2**16)
        return received

    def events(self) -> Iterator[h2.events.Event]:
        """Yield events until the connection ends or is reset."""
        with suppress(ConnectionResetError):
            while data := self._socket.recv(2**16):
                yield from self.wire.receive_data(data)
                with suppress(OSError):
                    self.flush()

    def wait_for(self, kind: type[h2.events.Event]) -> h2.events.Event:
        return next(event for event in self.events() if isinstance(event, kind))

    def close(self) -> None:
        self._socket.close()


def test_a_peer_learns_our_limits_first() -> None:
    with serving() as (port, _):
        peer = Peer(port)
        until_ping(peer)
        limits = peer.wire.remote_settings
        assert (limits.max_concurrent_streams, limits.max_header_list_size) == (10**6, 2**16)
        peer.close()


def test_a_vanished_machine_is_noticed_within_30_seconds() -> None:
    with serving() as (port, log):
        peer = Peer(port)
        until_ping(peer)
        ours = log.connections[0]._transport.get_extra_info("socket")
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        limits = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}
        for name, value in limits.items():
            if hasattr(socket, name):  # not on every platform
                assert ours.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) == value
        peer.close()


def test_responses_are_sent_as_far_as_the_peers_window_allows() -> None:
    with serving() as (port, log):
        peer = Peer(port, window=4)
        peer.open(1)
        peer.send(1, b"abcdefgh")
        log.wait_for(lambda: log.messages == [b"abcdefgh"])
        assert until_ping(peer) == {1: framed(b"abcdefgh")[:4]}
        peer.wire.increment_flow_control_window(100, 1)
        assert until_ping(peer) == {1: framed(b"abcdefgh")[4:]}
        peer.close()


def until_ping(peer: Peer) -> dict[int, bytes]:
    """Return the data of each stream that arrives before the ACK of a ping."""
    peer.wire.ping(b"12345678")
    peer.flush()
    found: dict[int, bytes] = {}
    for event in peer.events():
        if isinstance(event, h2.events.DataReceived):
            found[event.stream_id] = found.get(event.stream_id, b"") + (event.data or b"")
        if isinstance(event, h2.events.PingAckReceived):
            break
    return found


def test_a_stream_without_a_window_does_not_block_others() -> None:
    with serving() as (port, log):
        peer = Peer(port, window=0)
        peer.open(1)
        peer.open(3)
        peer.send(1, b"first")
        peer.send(3, b"second")
        log.wait_for(lambda: len(log.messages) == 2)
        peer.wire.increment_flow_control_window(100, 3)
        assert until_ping(peer) == {3: framed(b"second")}
        peer.wire.increment_flow_control_window(100, 1)
        assert until_ping(peer) == {1: framed(b"first")}
        peer.close()


def test_a_half_closed_call_gets_its_response_when_there_is_a_window() -> None:
    with serving() as (port, log):
        peer = Peer(port, window=0)
        peer.open(1)
        peer.send(1, b"question", last=True)
        log.wait_for(lambda: log.ended == 1)
        peer.wire.increment_flow_control_window(100, 1)
        peer.flush()
        data = b""
        for event in peer.events():
            if isinstance(event, h2.events.DataReceived):
                data += event.data or b""
            if isinstance(event, h2.events.StreamEnded):
                break
        assert data == framed(b"question")
        peer.close()


def test_a_long_response_is_split_into_frames_that_a_peer_accepts() -> None:
    """h2 rejects frames beyond the default of 16,384 bytes."""
    message = bytes(range(256)) * 200
    with serving() as (port, log):
        peer = Peer(port, window=2**20)
        peer.wire.increment_flow_control_window(2**20)
        peer.open(1)
        for at in range(0, len(framed(message)), 2**14):
            peer.wire.send_data(1, framed(message)[at : at + 2**14])
            peer.flush()
        log.wait_for(lambda: log.messages == [message])
        assert until_ping(peer) == {1: framed(message)}
        peer.close()


def test_a_peer_that_keeps_sending_without_a_window_is_disconnected() -> None:
    with serving() as (port, log):
        peer = Peer(port, window=0)
        peer.open(1)
        message = framed(bytes(16_000))
        ended = False
        for _ in range(2000):  # 32 MB, twice what may wait
            try:
                peer.raw(frame(DATA, 0, b"\0\0\0\1", message))
            except OSError:
                ended = True
                break
        assert ended
        log.wait_for(lambda: log.ended == 1)
        assert len(log.messages) * len(message) <= 2**24 + len(message)
        peer.close()


def test_a_stream_that_is_reset_while_its_response_waits_leaves_nothing_behind() -> None:
    with serving() as (port, log):
        peer = Peer(port, window=4)
        peer.open(1)
        peer.send(1, b"abcdefgh", last=True)
        log.wait_for(lambda: log.ended == 1)
        outbox = log.connections[0]._outbox
        assert len(outbox._waiting) == 1
        peer.wire.reset_stream(1)
        peer.wire.ping(b"12345678")
        peer.flush()
        peer.wait_for(h2.events.PingAckReceived)
        assert (outbox._waiting, outbox._size) == ({}, 0)
        peer.close()


def test_padding_is_removed() -> None:
    with serving() as (port, log):
        peer = Peer(port)
        peer.open(1)
        peer.send(1, b"padded", padding=20)
        log.wait_for(lambda: log.messages == [b"padded"])
        peer.close()


def test_a_header_block_in_pieces() -> None:
    with serving() as (port, log):
        peer = Peer(port)
        block = peer.wire.encoder.encode([(":method", "POST"), (":path", PATH), (":scheme", "http")])
        name = pack(">I", 1)
        peer.raw(frame(HEADERS, 0, name, block[:5]) + frame(CONTINUATION, 0, name, block[5:9]))
        peer.raw(frame(CONTINUATION, 4, name, block[9:]))
        log.wait_for(lambda: log.open == 1)
        peer.close()
        log.wait_for(lambda: log.ended == 1)


def test_a_header_block_is_decoded_with_the_current_table() -> None:
    """The same byte, an index into the table, names one path before a new entry and another after it."""

    def literal(path: str) -> bytes:  # enters the table; the name is entry 4 of the static one
        return b"\x44" + bytes((len(path),)) + path.encode()

    newest = b"\xbe"  # entry 62, the first of the dynamic table
    with serving() as (port, log):
        peer = Peer(port)
        for number, block in ((1, literal(PATH)), (3, newest), (5, newest), (7, literal("/other")), (9, newest)):
            peer.raw(frame(HEADERS, 4, pack(">I", number), block))
        unknown = b"grpc-status" + b"\x0212"  # unimplemented
        received = peer.read_until(unknown)
        while received.count(unknown) < 2:
            received += peer.read_until(unknown)
        assert log.open == 3
        peer.close()


def test_bytes_may_arrive_one_at_a_time() -> None:
    with serving() as (port, log):
        peer = Peer(port)
        peer.wire.send_headers(1, [(":method", "POST"), (":path", PATH), (":scheme", "http"), (":authority", "x")])
        peer.wire.send_data(1, framed(b"slowly") + framed(b"but surely"), end_stream=True)
        for byte in peer.wire.data_to_send():
            peer.raw(bytes((byte,)))
        log.wait_for(lambda: log.ended == 1)
        assert log.messages == [b"slowly", b"but surely"]
        peer.close()


NAME = pack(">I", 1)
OFFENCES = {
    "a frame too large": b"\0\x40\x01" + b"\0" * 6 + b"x" * 16385,
    "a push from a client": frame(5, 4, NAME, pack(">I", 2)),
    "a frame inside a header block": frame(HEADERS, 0, NAME, b"\x82") + frame(PING, 0, b"\0" * 4, b"12345678"),
    "a continuation without a header block": frame(CONTINUATION, 4, NAME, b"\x82"),
    "a header block that cannot be decoded": frame(HEADERS, 4, NAME, b"\xff\xff\xff\xff\xff\xff"),
    "a stream of an even number": frame(HEADERS, 4, pack(">I", 2), b"\x82\x86\x84"),
    "more padding than there is": frame(HEADERS, 12, NAME, b"\x09\x82"),
    "a window that grows by nothing": frame(8, 0, b"\0" * 4, pack(">I", 0)),
    "a ping of another length": frame(PING, 0, b"\0" * 4, b"1234567"),
    "half a setting": frame(SETTINGS, 0, b"\0" * 4, b"\0\4\0"),
    "a window too large": frame(SETTINGS, 0, b"\0" * 4, b"\0\4\xff\xff\xff\xff"),
    "a message too large": frame(HEADERS, 4, NAME, b"\x04" + bytes((len(PATH),)) + PATH.encode())
    + frame(DATA, 0, NAME, b"\0" + pack(">I", 2**22)),
    "headers without end": frame(HEADERS, 0, NAME, b"\0") + frame(CONTINUATION, 0, NAME, b"\0" * 16000) * 5,
}


@pytest.mark.parametrize("offence", OFFENCES)
def test_a_peer_that_violates_the_protocol_is_disconnected_and_others_stay(offence: str) -> None:
    with serving() as (port, log):
        good, bad = Peer(port), Peer(port)
        good.open(1)
        log.wait_for(lambda: log.open == 1)
        bad.raw(OFFENCES[offence])
        # The connection ends. Its GOAWAY can get lost if the peer has sent more.
        for event in bad.events():
            assert not isinstance(event, h2.events.ConnectionTerminated) or event.error_code != 0
        good.send(1, b"still here")
        data = good.wait_for(h2.events.DataReceived)
        assert isinstance(data, h2.events.DataReceived)
        assert data.data == framed(b"still here")
        good.close()
        bad.close()


def test_other_protocols_are_rejected() -> None:
    with serving() as (port, _), socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        received, farewell = b"", frame(GOAWAY, 0, b"\0" * 4, pack(">II", 0, 1))  # a protocol error
        with suppress(ConnectionResetError):
            while more := connection.recv(2**16):  # a server that waits for more would time out here
                received += more
        assert received.endswith(farewell)


def test_a_peer_that_does_not_read_is_not_read_from() -> None:
    """Its requests stay in its own buffers: the server stops reading until the peer reads again."""
    with serving() as (port, log):
        peer = Peer(port, window=2**31 - 1)
        peer.wire.increment_flow_control_window(2**30)
        peer.flush()
        peer.open(1)
        question = frame(DATA, 0, NAME, framed(b"z" * 10_000))
        peer.hurry()
        sent = 0
        with suppress(TimeoutError):
            while sent < 10_000:
                peer.raw(question)
                sent += 1
        assert sent < 10_000
        assert len(log.messages) < 10_000
        peer.close()
        log.wait_for(lambda: log.ended == 1)


def test_a_peer_that_sends_much_gets_its_windows_back() -> None:
    """We extend a window by what was received: a stream's beyond half of it, the connection's beyond 1 MiB."""
    with serving() as (port, _):
        peer = Peer(port, window=2**30)
        peer.wire.increment_flow_control_window(2**30)
        until_ping(peer)
        peer.open(1)
        used = {}
        for count in range(1, 132):
            peer.wire.send_data(1, framed(bytes(2**14 - 5)))
            until_ping(peer)
            of_connection = 65_535 + 2**30 - peer.wire.outbound_flow_control_window
            used[count] = (2**20 - peer.wire.local_flow_control_window(1), of_connection)
        peer.close()
    assert used == {count: (count % 33 * 2**14, count % 65 * 2**14) for count in range(1, 132)}
