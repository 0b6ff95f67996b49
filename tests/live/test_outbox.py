"""Flow control and limits on their own: what is sent, what waits, and what is too much."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from evenly.live.wire.frames import DATA, MAX_FRAME, MAX_WINDOW, WORD, Code, ProtocolError, frame, framed
from evenly.live.wire.outbox import MAX_WAITING, Outbox
from evenly.live.wire.streams import Stream
from tests.live.sent_items import SentItems

NAME, CONNECTION = b"\0\0\0\1", b"\0\0\0\0"


def new_stream(window: int, name: bytes = NAME) -> Stream:
    """Return a stream whose response headers are already sent."""
    stream = Stream(SentItems(), name, window)
    stream.opening()
    return stream


def sent(outbox: Outbox) -> list[bytes]:
    frames = outbox.ready.copy()
    outbox.ready.clear()
    return frames


def data(payload: bytes) -> bytes:
    return frame(DATA, 0, NAME, payload)


def test_a_window_of_one_byte_lets_one_byte_pass() -> None:
    outbox, stream = Outbox(), new_stream(1)
    outbox.send(stream, b"abc")
    assert sent(outbox) == [data(b"a")]
    outbox.grow(NAME, 1, stream)
    assert sent(outbox) == [data(b"b")]
    outbox.grow(NAME, 9, stream)
    assert sent(outbox) == [data(b"c")]
    outbox.send(stream, b"next")  # nothing waits any more
    assert sent(outbox) == [data(b"next")]


def test_the_window_of_the_connection_is_shared_by_its_streams() -> None:
    outbox, first, second = Outbox(), new_stream(MAX_WINDOW), new_stream(MAX_WINDOW, b"\0\0\0\3")
    outbox.send(first, bytes(65_534))
    assert sum(map(len, sent(outbox))) == 65_534 + 4 * 9  # four frames
    outbox.send(second, b"xy")
    outbox.send(first, b"z")
    assert sent(outbox) == [frame(DATA, 0, second.name, b"x")]
    outbox.grow(CONNECTION, 2, None)
    assert sent(outbox) == [frame(DATA, 0, second.name, b"y"), data(b"z")]


def test_a_message_is_split_into_the_largest_frames_allowed() -> None:
    outbox = Outbox()
    outbox.send(new_stream(MAX_WINDOW), bytes(MAX_FRAME + 1))
    assert sent(outbox) == [data(bytes(MAX_FRAME)), data(b"\0")]


@pytest.mark.slow
def test_as_much_may_wait_as_before_once_responses_have_been_sent() -> None:
    outbox, stream, half = Outbox(), new_stream(0), bytes(MAX_WAITING // 2)
    outbox.grow(CONNECTION, 2**30, None)
    for _ in range(3):
        outbox.send(stream, half)
        outbox.grow(NAME, 10, stream)  # the rest waits
        outbox.grow(NAME, len(half) - 10, stream)
    sent(outbox)
    outbox.send(stream, half)
    with pytest.raises(ProtocolError) as raised:
        outbox.send(stream, half)  # both and their overhead are more than the limit
    assert raised.value.code is Code.ENHANCE_YOUR_CALM


def test_waiting_responses_may_take_exactly_the_limit() -> None:
    """A message counts 100 bytes more than its length, trailers count 100."""
    for free in (100, 99):
        outbox, stream = Outbox(), new_stream(0)
        outbox.send(stream, bytes(2**24 - 100 - free))
        with nullcontext() if free == 100 else pytest.raises(ProtocolError):
            outbox.send(stream, 0)


def test_a_window_may_reach_its_maximum_and_no_more() -> None:
    outbox, stream = Outbox(), new_stream(MAX_WINDOW - 1)
    outbox.grow(NAME, 1, stream)
    for grown, name in ((stream, NAME), (None, CONNECTION)):
        with pytest.raises(ProtocolError) as raised:
            outbox.grow(name, MAX_WINDOW, grown)
        assert raised.value.code is Code.FLOW_CONTROL_ERROR


def test_a_new_initial_window_shifts_the_windows_of_open_and_of_waiting_streams() -> None:
    outbox, idle, waiting = Outbox(), new_stream(65_535, b"\0\0\0\3"), new_stream(0)
    outbox.send(waiting, b"abc")  # half closed: no longer among the open streams
    outbox.resize(65_537, {idle.name: idle})
    assert (outbox.first_window, idle.window) == (65_537, 65_537)
    assert sent(outbox) == [data(b"ab")]


class Messages:
    """A handler that keeps what it receives."""

    def __init__(self) -> None:
        self.received: list[bytes] = []

    def message(self, message: bytes) -> None:
        self.received.append(message)

    def ended(self) -> None:
        pass


def test_a_message_may_take_4_mib_with_its_prefix_and_no_more() -> None:
    stream, handler = new_stream(0), Messages()
    stream.handler = handler
    largest = bytes(2**22 - 5)
    stream.take(framed(largest))
    assert handler.received == [largest]
    with pytest.raises(ProtocolError) as raised:
        stream.take(b"\0" + WORD.pack(2**22 - 4))
    assert raised.value.code is Code.PROTOCOL_ERROR
