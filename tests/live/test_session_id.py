"""Session ids: what the dispatcher signs, and what an agent accepts."""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly.errors import InputError
from evenly.live.session_id import MAX_POOL_NAME, SessionId, check_pool_name, read, sign, verify
from evenly.live.signing import KEY_BYTES, new_key

KEY = bytes(range(KEY_BYTES))
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}", fullmatch=True)
TICKETS = st.integers(0, 2**63 - 2)
THRESHOLDS = st.integers(0, 10**12)


@given(NAMES, TICKETS, THRESHOLDS)
def test_an_id_names_a_ticket_and_a_threshold(pool: str, ticket: int, threshold: int) -> None:
    text = sign(KEY, pool, ticket, threshold)
    assert verify([KEY], text) == read(text) == SessionId(pool, ticket, threshold)
    assert verify([new_key(), KEY], text) == SessionId(pool, ticket, threshold)
    assert verify([new_key()], text) is None
    assert verify([], text) is None


def test_the_signature_is_the_documented_one() -> None:
    """BLAKE2s with the key, over the ticket as eight bytes, the threshold as six, and the name."""
    pool, _, tail = sign(KEY, "game-7", 2**40 + 1, 300).rpartition(".")
    number = (2**40 + 1).to_bytes(8, "big") + (300).to_bytes(6, "big")
    assert pool == "game-7"
    assert (
        urlsafe_b64decode(tail) == number + hashlib.blake2s(number + b"game-7", key=KEY, digest_size=13).digest()
    )


@given(NAMES, TICKETS, st.data())
def test_a_changed_id_is_not_accepted(pool: str, ticket: int, data: st.DataObject) -> None:
    text = sign(KEY, pool, ticket, 5)
    place = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from("Aa0._:-~/?é"))
    changed = text[:place] + letter + text[place + 1 :]
    assert (verify([KEY], changed) is None) == (changed != text)
    assert verify([KEY], text + letter) is None
    assert verify([KEY], text[:place]) is None


@given(st.text(max_size=150))
def test_any_text_is_an_id_or_not(text: str) -> None:
    assert verify([KEY], text) is None
    read(text)


def test_numbers_beyond_the_protocol_make_no_id() -> None:
    for ticket, threshold in ((2**63 - 1, 0), (0, 10**12 + 1)):
        numbers = ticket.to_bytes(8, "big") + threshold.to_bytes(6, "big")
        signature = hashlib.blake2s(numbers + b"a", key=KEY, digest_size=13).digest()
        assert verify([KEY], f"a.{urlsafe_b64encode(numbers + signature).decode()}") is None


def test_names_of_pools_are_checked() -> None:
    rows: list[object] = ["", "-a", ".a", "a b", "a/b", "a?b", "é", "a" * (MAX_POOL_NAME + 1), None, 5, "a\n"]
    for name in rows:
        with pytest.raises(InputError, match="name of a pool must be"):
            check_pool_name(name)


def test_usual_names_are_accepted() -> None:
    for name in ["a", "game-7", "10.0.0.5:7000", "eu.west_1", "a" * MAX_POOL_NAME]:
        assert check_pool_name(name) == name
