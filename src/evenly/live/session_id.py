"""Session ids: the name of a place in a pool, signed by the dispatcher, checked by the pool's agent.

A client gets an id with its pick and shows it to the pool. It says which ticket the client holds, so that the
agent can report the ticket as arrived, and carries the threshold to the pool. The signature keeps clients from
giving away the places of others.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import NamedTuple

from evenly.core.checks import MAX_COUNT, MAX_NUMBER
from evenly.errors import InputError
from evenly.inputs import shown
from evenly.live.signing import signature

MAX_POOL_NAME = 100  # characters
QUERY_PARAMETER = "evenly-session"  # a client's id, in the URL of the pool
HEADER = "evenly-session"  # the same, as a header
_POOL_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._:-]{{0,{MAX_POOL_NAME - 1}}}")
_TICKET_BYTES, _THRESHOLD_BYTES, _SIGNATURE_BYTES = 8, 6, 13
_TAIL = 36  # characters of base64 for ticket, threshold and signature


class SessionId(NamedTuple):
    """What an id says: a ticket of a pool, and the threshold after that pick."""

    pool: str
    ticket: int
    threshold: int


def check_pool_name(name: object) -> str:
    """Return a name that a pool can have in the fleet."""
    if not (isinstance(name, str) and _POOL_NAME.fullmatch(name)):
        raise InputError(
            f"The name of a pool must be up to {MAX_POOL_NAME} letters, digits, dots, hyphens, colons and "
            f"underscores, beginning with a letter or digit, not {shown(name)}."
        )
    return name


def sign(key: bytes, pool: str, ticket: int, threshold: int) -> str:
    """Return the id of a ticket, such as `game-7.AAAAAQAAAAA...`: safe in URLs, headers and logs."""
    numbers = ticket.to_bytes(_TICKET_BYTES) + threshold.to_bytes(_THRESHOLD_BYTES)
    return f"{pool}.{urlsafe_b64encode(numbers + _signature(key, pool, numbers)).decode()}"


def read(text: str) -> SessionId | None:
    """Return what an id says, without checking the signature; None if it is no id."""
    pool, _, tail = text.rpartition(".")
    if len(tail) != _TAIL or not _POOL_NAME.fullmatch(pool):
        return None
    try:
        numbers = urlsafe_b64decode(tail)
    except ValueError:  # letters that base64 does not have
        return None
    end = _TICKET_BYTES + _THRESHOLD_BYTES
    return SessionId(pool, int.from_bytes(numbers[:_TICKET_BYTES]), int.from_bytes(numbers[_TICKET_BYTES:end]))


def verify(keys: Iterable[bytes], text: str) -> SessionId | None:
    """Return what an id says, None if it was not signed with one of the keys."""
    named = read(text)
    if named is None or named.ticket >= MAX_NUMBER or named.threshold > MAX_COUNT:
        return None
    if any(hmac.compare_digest(sign(key, *named).encode(), text.encode()) for key in keys):
        return named
    return None


def _signature(key: bytes, pool: str, numbers: bytes) -> bytes:
    return signature(key, numbers + pool.encode(), size=_SIGNATURE_BYTES)
