"""Flow control that no real client brings about: windows that are shared, shift or grow too far."""

from __future__ import annotations

import pytest

from evenly.live.wire.frames import DATA, MAX_FRAME, MAX_WINDOW, Code, ProtocolError, frame
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


def test_the_window_of_the_connection_is_shared_by_its_streams() -> None:
    outbox, first, second = Outbox(), new_stream(MAX_WINDOW), new_stream(MAX_WINDOW, b"\0\0\0\3")
    outbox.send(first, bytes(65_534))
    assert sum(map(len, sent(outbox))) == 65_534 + 4 * 9  # four frames
    outbox.send(second, b"xy")
    assert sent(outbox) == [frame(DATA, 0, second.name, b"x")]
    outbox.grow(CONNECTION, 1, None)
    assert sent(outbox) == [frame(DATA, 0, second.name, b"y")]


def test_responses_that_were_sent_no_longer_count_as_waiting() -> None:
    outbox, stream, message = Outbox(), new_stream(0), bytes(MAX_FRAME)
    outbox.grow(CONNECTION, 2**30, None)
    for _ in range(2 * MAX_WAITING // MAX_FRAME):
        outbox.send(stream, message)
        outbox.grow(NAME, MAX_FRAME, stream)
        assert len(sent(outbox)) == 1


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
