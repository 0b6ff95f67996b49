"""The counts of other pickers after any messages and reads, and what is accepted from a store."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from evenly.live.addresses import MAX_POOLS, Address
from evenly.live.store.peers import MAX_COUNTS, MAX_PEERS, Peers
from evenly.live.store.picker_messages import Message, decode_hash, decode_message

ONE, TWO = Address("127.0.0.1", 1), Address("127.0.0.1", 2)
PICKER, OTHER = "a" * 32, "b" * 32


class Told:
    """Peers, and the last count that they reported for each endpoint."""

    def __init__(self) -> None:
        self.counts: dict[Address, int] = {}
        self.peers = Peers(self.counts.__setitem__)

    def message(self, sequence: int, **values: int) -> bool:
        counts = {ONE if name == "one" else TWO: count for name, count in values.items()}
        return self.peers.receive(Message(picker=PICKER, sequence=sequence, counts=counts), 0.0)


def test_messages_in_order_are_taken_in_and_a_gap_is_reported() -> None:
    told = Told()
    assert not told.message(1, one=1)  # unknown: its hash must be read
    assert told.peers.replace(PICKER, 1, {ONE: 1}, 0.0)
    assert told.message(1, one=9)  # in the hash already
    assert told.message(2, one=2, two=5)
    assert told.counts == {ONE: 2, TWO: 5}
    assert not told.message(4, one=7)
    assert told.counts == {ONE: 2, TWO: 5}
    assert told.peers.replace(PICKER, 4, {ONE: 7}, 0.0)
    assert told.counts == {ONE: 7, TWO: 0}
    assert told.peers.replace(PICKER, 3, {ONE: 1}, 0.0)  # an older state than the messages brought
    assert told.counts == {ONE: 7, TWO: 0}


def test_the_counts_of_all_are_added_and_go_with_their_picker() -> None:
    told = Told()
    told.peers.replace(PICKER, 1, {ONE: 3, TWO: 1}, 10.0)
    told.peers.replace(OTHER, 1, {ONE: 4}, 20.0)
    assert (told.peers.sessions(ONE), told.peers.sessions(TWO)) == (7, 1)
    told.peers.hear(PICKER, 5.0)
    assert told.peers.forget_silent(10.0) == []  # what was heard last counts
    assert told.peers.forget_silent(15.0) == [PICKER]
    assert (told.counts, len(told.peers)) == ({ONE: 4, TWO: 0}, 1)
    assert told.peers.receive(Message(picker=OTHER, sequence=1, gone=True), 30.0)
    assert told.counts == {ONE: 0, TWO: 0}
    assert told.peers.ids == []


def test_there_is_room_for_some_pickers_and_some_counts() -> None:
    peers = Peers(lambda endpoint, count: None)
    many = {Address(f"10.0.{i // 250}.{i % 250}", 80): 1 for i in range(MAX_POOLS)}
    fitting = MAX_COUNTS // MAX_POOLS
    taken = [peers.replace(f"{number:032x}", 1, many, 0.0) for number in range(fitting + 1)]
    assert taken == [True] * fitting + [False]
    peers.forget("0" * 32)
    assert peers.replace(PICKER, 1, many, 0.0)
    few = Peers(lambda endpoint, count: None)
    taken = [few.replace(f"{number:032x}", 1, {}, 0.0) for number in range(MAX_PEERS + 1)]
    assert taken == [True] * MAX_PEERS + [False]


def test_a_message_with_a_wrong_value_is_ignored() -> None:
    rows: list[dict[str, object]] = [
        {"picker": None},
        {"picker": "A" * 32},
        {"sequence": 0},
        {"sequence": 1.5},
        {"sequence": True},
        {"sequence": 2**53 + 1},
        {"counts": []},
        {"counts": {"127.0.0.1:1": -1}},
        {"counts": {"127.0.0.1:1": 10**9 + 1}},
        {"counts": {"127.0.0.1:1": True}},
        {"counts": {"127.0.0.1": 1}},
        {"gone": 1},
    ]
    for change in rows:
        good = {"picker": PICKER, "sequence": 1, "counts": {"127.0.0.1:1": 1}}
        assert decode_message(json.dumps(good).encode()) is not None
        assert decode_message(json.dumps(good | change).encode()) is None


@given(st.binary(max_size=40) | st.sampled_from([b"[" * 10**5, b" " * 1_000_001, b"{}", b"null"]))
def test_any_bytes_are_no_message(data: bytes) -> None:
    assert decode_message(data) is None
    assert decode_hash({b"sequence": data, b"127.0.0.1:1": b"1"}) is None or data.isdigit()
    assert decode_hash({b"sequence": b"1", b"127.0.0.1:1": data}) is None or data.isdigit()
    assert decode_hash({b"sequence": b"1", data: b"1"}) is None or data == b"sequence" or b":" in data


def test_a_message_is_a_sign_of_life() -> None:
    told = Told()
    told.peers.replace(PICKER, 1, {ONE: 3}, 10.0)
    told.peers.receive(Message(picker=PICKER, sequence=1), 20.0)
    assert told.peers.forget_silent(15.0) == []
