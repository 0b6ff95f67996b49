"""The protocol's messages as JSON. `docs/reference/protocol.md` describes them for agents in other languages.

It must not decide anything: a message that is well formed is returned, any other is an InputError.
"""

import json
from typing import Any

from evenly.core.messages import Color, PoolId, Report
from evenly.core.protocol.messages import Kind, ToDispatcher, ToPool
from evenly.errors import InputError
from evenly.inputs import shown

VERSION = 2  # of the messages, and of what an agent says in its hello
MAX_MESSAGE = 8192  # characters; 64 ranges of two long numbers are about 2,700
_COLORS = {color.value: color for color in Color} | {None: None}
_KINDS = {kind.value: kind for kind in Kind}


def encode_to_dispatcher(message: ToDispatcher) -> str:
    """Return a pool's message as JSON, without the name of the pool: the connection has it."""
    report = message.report
    return json.dumps(
        {
            "kind": message.kind.value,
            "incarnation": message.incarnation,
            "sequence": message.sequence,
            "tasks": report.tasks,
            "color": None if report.color is None else report.color.value,
            "version": message.version,
            "arrived": message.arrived,
        },
        separators=(",", ":"),
    )


def decode_to_dispatcher(pool: PoolId, text: str) -> ToDispatcher:
    """Read a message that this pool sent."""
    values = read_object(text)
    try:
        message = ToDispatcher(
            _KINDS[values["kind"]],
            values["incarnation"],
            values["sequence"],
            Report(pool, values["tasks"], _COLORS[values["color"]]),
            values["version"],
            tuple((first, last) for first, last in values["arrived"]),
        )
    except (KeyError, TypeError, ValueError):
        raise InputError(f"A pool's message must have all fields of the protocol, not {shown(text)}.") from None
    message.check()
    return message


def encode_to_pool(message: ToPool) -> str:
    """Return a dispatcher's message as JSON."""
    return (
        f'{{"threshold":{message.threshold},"version":{message.version},"oldest_ticket":{message.oldest_ticket}}}'
    )


def decode_to_pool(values: dict[str, Any]) -> ToPool:
    """Read a dispatcher's message from a JSON object. `PoolPeer.receive` checks the numbers."""
    try:
        return ToPool(values["threshold"], values["version"], values["oldest_ticket"])
    except KeyError:
        raise InputError(f"A dispatcher's message must have all fields, not {shown(values)}.") from None


def read_object(text: str) -> dict[str, Any]:
    """Read a JSON object of at most `MAX_MESSAGE` characters."""
    try:
        values = json.loads(text) if len(text) <= MAX_MESSAGE else None
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InputError(f"A message must be a JSON object of up to {MAX_MESSAGE} characters, not {shown(text)}.")
    return values
