"""The first frames on an agent's connection: the agent's hello and the dispatcher's welcome."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from evenly.core.checks import MAX_NUMBER, check_capacity
from evenly.core.protocol.codec import VERSION
from evenly.errors import InputError
from evenly.inputs import number_from, shown, whole_number
from evenly.live.pool_url import check_pool_url
from evenly.live.session_id import check_pool_name

MAX_SECONDS = 1e9
_FIELDS = {"type", "version", "pool", "incarnation", "address", "capacity"}


@dataclass(frozen=True, slots=True)
class Hello:
    """An agent's introduction: its pool, which start of it this is, where clients reach it, and how many sessions
    it can hold.
    """

    pool: str
    incarnation: int
    address: str
    capacity: int | None


def read_hello(values: dict[str, Any]) -> Hello:
    """Read a hello from a JSON object. Unknown fields are rejected: they would be ignored silently."""
    if values.get("type") != "hello" or not values.keys() <= _FIELDS:
        raise InputError(f"An agent's first message must be a hello, not {shown(values)}.")
    version = values.get("version")
    if version != VERSION:
        older = type(version) is int and version < VERSION
        what = "evenly where the agent runs" if older else "this dispatcher"
        raise InputError(f"The version of a hello must be {VERSION}, not {shown(version)}: upgrade {what}.")
    return Hello(
        check_pool_name(values.get("pool")),
        whole_number("incarnation", values.get("incarnation"), 0, MAX_NUMBER),
        check_pool_url(values.get("address")),
        check_capacity(values.get("capacity")),
    )


def welcome(heartbeat: float, key: bytes, *, record: bool = False) -> str:
    """Return the dispatcher's answer: the heartbeat interval in seconds, and the key of session ids.

    With `record`, it asks to be told of sessions that end.
    """
    values = {"type": "welcome", "heartbeat": heartbeat, "key": key.hex()}
    return json.dumps({**values, "record": True} if record else values, separators=(",", ":"))


def read_ended(values: dict[str, Any]) -> tuple[list[tuple[float, float]], int]:
    """Read the sessions that have ended: seconds since the end and duration of each, and how many are lost."""
    sessions = values.get("sessions")
    if not isinstance(sessions, list) or not all(isinstance(each, list) and len(each) == 2 for each in sessions):
        raise InputError(f"The sessions that have ended must be a list of pairs, not {shown(sessions)}.")
    times = [
        (number_from("ago", ago, 0, MAX_SECONDS), number_from("duration", duration, 0, MAX_SECONDS))
        for ago, duration in sessions
    ]
    return times, whole_number("lost", values.get("lost", 0), 0, MAX_NUMBER)
