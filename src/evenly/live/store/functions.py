"""The store's functions as Python sees them: their text, names, keys and arguments.

Numbers beyond 2^53 travel as text of 19 digits, since Lua cannot count that far. `fleet.lua` says what each
function takes and returns.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from importlib.resources import files

from evenly.core import LearningRule
from evenly.core.protocol import ToDispatcher
from evenly.errors import InputError
from evenly.live.store.base import FleetSettings, Orders
from evenly.live.store.link import Argument

LIBRARY = "evenly_2"  # a change of the functions or of the data needs the next number
KEYS = ("fleet", "hot", "cold", "ranked", "orders", "open", "expiring", "answers", "order", "places")
_MAX_DENOMINATOR = 10**9  # times 10,000 pools stays below 2^53
_MAX_KEY = 128  # bytes of a request key that are kept as they are


def library() -> str:
    """Return the text of the library, to load into the store."""
    return f"#!lua name={LIBRARY}\n" + files("evenly.live.store").joinpath("fleet.lua").read_text("utf-8")


def keys_of(fleet: str) -> tuple[str, ...]:
    """Return the keys of a fleet. The name in braces puts them on one node of a cluster."""
    return tuple(f"evenly:2:{{{fleet}}}:{key}" for key in KEYS)


def padded(number: int) -> str:
    """Return a number below 2^63 as the store keeps it."""
    return f"{number:019d}"


def check_alpha(alpha: str) -> Fraction:
    """Return alpha, or raise InputError if the store cannot decide on it in whole numbers."""
    value = LearningRule(alpha).alpha
    if value.denominator > _MAX_DENOMINATOR:
        raise InputError(f"alpha must have at most 9 decimal places with a shared store, not {alpha}.")
    return value


def microseconds(seconds: float) -> int:
    """Return a time as the store counts it."""
    return round(seconds * 1_000_000)


def common_arguments(settings: FleetSettings, now: int | None = None) -> tuple[Argument, ...]:
    """Return what all functions take; `now` in microseconds, the store's own time if None."""
    alpha = check_alpha(settings.alpha)
    return (
        "" if now is None else now,
        microseconds(settings.lease),
        microseconds(settings.silence),
        microseconds(settings.memory),
        alpha.numerator,
        alpha.denominator,
    )


def pick_arguments(count: int, exclude: frozenset[str], key: str | None, seed: int) -> list[Argument]:
    """Return what a pick takes, except for random numbers: those may follow, the seed makes more."""
    names = [_bytes(name) for name in sorted(exclude)]
    request = "" if key is None else f"{count} {_digest(json.dumps(sorted(exclude)).encode())}"
    return [count, b"" if key is None else request_key(key), request, seed, len(names), *names]


def request_key(key: str) -> bytes:
    """Return a request key as the store keeps it: never empty, never long."""
    text = b"=" + _bytes(key)
    return text if len(text) <= _MAX_KEY else b"#" + _digest(text).encode()


def message_arguments(message: ToDispatcher) -> list[Argument]:
    """Return what a message of a pool's agent says. It must have been checked."""
    report = message.report
    return [
        str(report.pool),
        message.kind.value,
        padded(message.incarnation),
        padded(message.sequence),
        report.tasks,
        padded(message.version),
        len(message.arrived),
        *(padded(ticket) for each in message.arrived for ticket in each),
    ]


def order_arguments(orders: Orders) -> list[Argument]:
    """Return what the orders that are known say."""
    return [word for pool, order in orders.items() for word in (pool, padded(order.version), int(order.drained))]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=20).hexdigest()
