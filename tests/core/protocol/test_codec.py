"""The messages as JSON: what is written can be read, and nothing else gets in."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly.core import Color, Report
from evenly.core.checks import MAX_COUNT, MAX_NUMBER
from evenly.core.protocol import Kind, Tickets, ToDispatcher, ToPool
from evenly.core.protocol.codec import (
    MAX_MESSAGE,
    decode_to_dispatcher,
    decode_to_pool,
    encode_to_dispatcher,
    encode_to_pool,
    read_object,
)
from evenly.core.protocol.tickets import MAX_RANGES
from evenly.errors import InputError

NUMBERS = st.integers(0, MAX_NUMBER)


@st.composite
def reports(draw: st.DrawFn) -> ToDispatcher:
    tickets = Tickets()
    for number in draw(st.lists(NUMBERS, max_size=5)):
        tickets.add(number)
    report = Report("a", draw(st.integers(0, MAX_COUNT)), draw(st.sampled_from([*Color, None])))
    kind, sequence = draw(st.sampled_from(Kind)), draw(st.integers(1, MAX_NUMBER))
    return ToDispatcher(kind, draw(NUMBERS), sequence, report, draw(NUMBERS), tickets.ranges)


@given(reports())
def test_a_pools_message_comes_back(message: ToDispatcher) -> None:
    text = encode_to_dispatcher(message)
    assert decode_to_dispatcher("a", text) == message
    assert set(json.loads(text)) == {"kind", "incarnation", "sequence", "tasks", "color", "version", "arrived"}


@given(st.integers(0, MAX_COUNT), NUMBERS, NUMBERS)
def test_a_dispatchers_message_comes_back(threshold: int, version: int, oldest: int) -> None:
    message = ToPool(threshold, version, oldest)
    assert decode_to_pool(read_object(encode_to_pool(message))) == message


def test_the_longest_message_fits() -> None:
    ranges = tuple((MAX_NUMBER - 4 * number, MAX_NUMBER - 4 * number + 1) for number in range(MAX_RANGES, 0, -1))
    report = Report("a", MAX_COUNT, Color.YELLOW)
    text = encode_to_dispatcher(ToDispatcher(Kind.HEARTBEAT, MAX_NUMBER, MAX_NUMBER, report, MAX_NUMBER, ranges))
    assert len(text) < MAX_MESSAGE / 2
    assert decode_to_dispatcher("a", text).arrived == ranges


GOOD = {
    "kind": "token", "incarnation": 1, "sequence": 1, "tasks": 0, "color": None, "version": 0, "arrived": [],
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "hello"}, {"kind": []}, {"incarnation": -1}, {"sequence": 0}, {"tasks": 10**12 + 1},
        {"version": 2**63}, {"color": "red"}, {"color": {}}, {"arrived": None}, {"arrived": [[2, 1]]},
        {"arrived": [1]}, {"arrived": [[1, 2, 3]]}, {"arrived": "12"},
    ],
)  # fmt: skip
def test_a_message_that_no_pool_can_have_sent_is_rejected(change: dict[str, object]) -> None:
    decode_to_dispatcher("a", json.dumps(GOOD))
    with pytest.raises(InputError):
        decode_to_dispatcher("a", json.dumps(GOOD | change))


def test_every_field_is_needed() -> None:
    for missing in GOOD:
        with pytest.raises(InputError, match="all fields"):
            decode_to_dispatcher("a", json.dumps({key: value for key, value in GOOD.items() if key != missing}))


def test_text_that_is_no_object_is_rejected() -> None:
    too_long = '"' + "x" * MAX_MESSAGE + '"'
    for text in ("", "null", "[]", "1", "{", '{"a":1', "[" * 5000, '{"a":' * 1000, too_long, "nan"):
        with pytest.raises(InputError, match="must be a JSON object"):
            read_object(text)


def test_every_field_of_a_dispatchers_message_is_needed() -> None:
    good: dict[str, object] = {"threshold": 1, "version": 1, "oldest_ticket": 0}
    assert decode_to_pool(good) == ToPool(1, 1, 0)
    for missing in good:
        with pytest.raises(InputError, match="all fields"):
            decode_to_pool({key: value for key, value in good.items() if key != missing})


@given(st.text(max_size=200))
def test_any_text_is_read_or_rejected(text: str) -> None:
    try:
        decode_to_dispatcher("a", text)
    except InputError as error:
        assert "\n" not in str(error)
