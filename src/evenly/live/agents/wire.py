"""The frames between agent and dispatcher that are not of the protocol: hello and welcome."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from evenly.core.protocol.codec import VERSION
from evenly.errors import InputError
from evenly.inputs import number_from, shown
from evenly.live.signing import KEY_BYTES

MIN_HEARTBEAT_S, MAX_HEARTBEAT_S = 0.01, 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Welcome:
    """The dispatcher's first frame: seconds between heartbeats, the key that signs session ids, and whether it
    records sessions that have ended.
    """

    heartbeat: float
    key: bytes = field(repr=False)
    record: bool = False


def hello(pool: str, incarnation: int, address: str, capacity: int | None) -> str:
    """Return an agent's first frame."""
    return json.dumps(
        {
            "type": "hello",
            "version": VERSION,
            "pool": pool,
            "incarnation": incarnation,
            "address": address,
            "capacity": capacity,
        }
    )


def read_welcome(values: dict[str, Any]) -> Welcome:
    """Read a welcome from a JSON object. An error message never contains the key."""
    key = values.get("key")
    try:
        secret = bytes.fromhex(key) if isinstance(key, str) else b""
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise InputError(f"The key of a welcome must be {KEY_BYTES} bytes in hexadecimal, not {_kind(key)}.")
    heartbeat = number_from("heartbeat", values.get("heartbeat"), MIN_HEARTBEAT_S, MAX_HEARTBEAT_S)
    return Welcome(heartbeat=heartbeat, key=secret, record=values.get("record") is True)


def _kind(key: object) -> str:
    return f"a text of {len(key)} characters" if isinstance(key, str) else shown(key)
