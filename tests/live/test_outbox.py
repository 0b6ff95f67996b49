"""Flow control that no real client brings about: windows that shift or grow too far."""

from __future__ import annotations

import pytest

from evenly.live.wire.frames import DATA, MAX_WINDOW, Code, ProtocolError, frame
from evenly.live.wire.outbox import Outbox
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
