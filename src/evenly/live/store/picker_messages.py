"""What pickers share through a store: names of keys, messages and hashes. Everything read is checked here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenly.errors import InputError
from evenly.live.addresses import MAX_POOLS, Address, parse_address

SEQUENCE = b"sequence"  # the field of a hash with its version; endpoints have a colon
MAX_SEQUENCE = 2**53
MAX_SESSIONS = 10**9  # of one picker at one pool
_MAX_BYTES = 1_000_000  # of a message; 10,000 pools need less than half of it
_ID = re.compile(r"[0-9a-f]{32}")
_NUMBER = re.compile(rb"[0-9]{1,16}")

Counts = dict[Address, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """The keys of a fleet. All have one hash tag, so that a cluster keeps them together."""

    fleet: str

    @property
    def registry(self) -> str:
        """The sorted set of picker ids, by the store's time of their last renewal."""
        return f"evenly:{{{self.fleet}}}:registry"

    @property
    def channel(self) -> str:
        """The channel of changes."""
        return f"evenly:{{{self.fleet}}}:pickers"

    def counts(self, picker: str) -> str:
        """Return the key of the hash with a picker's open sessions: endpoint to count, and its sequence number."""
        return f"evenly:{{{self.fleet}}}:picker:{picker}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """A picker's sessions changed to `counts` by the change number `sequence`.

    Without counts, it says that the picker is at this number. `gone` says that the picker has stopped.
    """

    picker: str
    sequence: int
    counts: Counts | None = None
    gone: bool = False

    def encode(self) -> bytes:
        """Return the message as JSON."""
        values: dict[str, object] = {"picker": self.picker, "sequence": self.sequence}
        if self.counts is not None:
            values["counts"] = {str(endpoint): count for endpoint, count in self.counts.items()}
        if self.gone:
            values["gone"] = True
        return json.dumps(values, separators=(",", ":")).encode()


def decode_message(data: object) -> Message | None:
    """Read a message; None if it is not valid."""
    if not isinstance(data, bytes) or len(data) > _MAX_BYTES:
        return None
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    picker, sequence, gone = values.get("picker"), values.get("sequence"), values.get("gone", False)
    given = values.get("counts")
    counts = None if given is None else _counts(given)
    if not is_picker(picker) or type(sequence) is not int or not 0 < sequence <= MAX_SEQUENCE:
        return None
    if not isinstance(gone, bool) or (given is not None and counts is None):
        return None
    return Message(picker=str(picker), sequence=sequence, counts=counts, gone=gone)


def is_picker(name: object) -> bool:
    """Return whether this can be the id of a picker."""
    return isinstance(name, str) and _ID.fullmatch(name) is not None


def decode_number(value: object, highest: int) -> int | None:
    """Read a count or a sequence number of a hash; None if it is not valid."""
    if not isinstance(value, bytes) or _NUMBER.fullmatch(value) is None or int(value) > highest:
        return None
    return int(value)


def decode_hash(fields: Mapping[bytes, bytes]) -> tuple[int, Counts] | None:
    """Read the hash of a picker: its sequence number and its counts; None if any of it is not valid."""
    sequence = decode_number(fields.get(SEQUENCE), MAX_SEQUENCE)
    if sequence is None or len(fields) > MAX_POOLS + 1:
        return None
    counts: Counts = {}
    for name, value in fields.items():
        if name != SEQUENCE:
            endpoint, count = _endpoint(name.decode("latin-1")), decode_number(value, MAX_SESSIONS)
            if endpoint is None or count is None:
                return None
            counts[endpoint] = count
    return sequence, counts


def encode_hash(sequence: int, counts: Mapping[Address, int]) -> dict[Any, Any]:
    """Return the fields of a picker's hash: those that `decode_hash` reads."""
    fields: dict[Any, Any] = {str(endpoint): count for endpoint, count in counts.items()}
    fields[SEQUENCE] = sequence
    return fields


def _counts(given: object) -> Counts | None:
    if not isinstance(given, dict) or len(given) > MAX_POOLS:
        return None
    counts: Counts = {}
    for name, count in given.items():
        endpoint = _endpoint(name)
        if endpoint is None or type(count) is not int or not 0 <= count <= MAX_SESSIONS:
            return None
        counts[endpoint] = count
    return counts


def _endpoint(text: str) -> Address | None:
    try:
        return parse_address(text)
    except InputError:
        return None
