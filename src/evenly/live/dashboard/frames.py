"""The stream's messages as JSON. They are made in pieces: with thousands of pools, picks must not wait for them.

A pool is one number: its sessions, state and token together. A frame has the numbers that changed, as position and
number in turn. All frames of a tick are the same for all readers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from math import isfinite

from evenly.live.dashboard.source import Figures, Part, Pools
from evenly.live.log import Line

TOKEN_STEPS, STATE_STEPS = 4, 16  # number = (sessions * STATE_STEPS + state) * TOKEN_STEPS + token
_MAX_TEXT = 400  # characters of a fact in the event log
_MAX_EXACT = 2**53  # numbers beyond are not exact in a browser: epochs are
_AT_ONCE = 64  # pools in one piece


def pool_numbers(pools: Pools) -> Iterator[int]:
    """Yield one number per pool."""
    for sessions, state, token in zip(pools.sessions, pools.states, pools.tokens, strict=True):
        yield (sessions * STATE_STEPS + state) * TOKEN_STEPS + token


def changes(before: Sequence[int], now: Sequence[int]) -> list[int]:
    """Return position and number of each pool that changed, in turn. Both sequences have the same pools."""
    return [
        each
        for position, (old, new) in enumerate(zip(before, now, strict=True))
        if old != new
        for each in (position, new)
    ]


def figures_json(figures: Figures) -> dict[str, object]:
    """Return the figures as the page gets them."""
    return {
        "policy": figures.policy,
        "alpha": figures.alpha,
        "threshold": figures.threshold,
        "thresholds": {str(weight): threshold for weight, threshold in figures.thresholds.items()},
        "sessions": figures.sessions,
        "starts": figures.starts,
        "spread": round(figures.spread, 4),
        "tokens": figures.tokens,
        "messages": figures.messages,
        "changesSurvive": figures.changes_survive,
    }


def members_pieces(pools: Pools) -> Iterator[str]:
    """Yield names, addresses and weights of the pools, with the comma before them."""
    addresses = pools.addresses or None
    weights = None if len(set(pools.weights)) <= 1 else pools.weights
    yield ',"names":['
    for begin in range(0, len(pools.names), _AT_ONCE):
        names = [str(name) for name in pools.names[begin : begin + _AT_ONCE]]
        yield ("," if begin else "") + dump(names)[1:-1]
    yield f'],"addresses":{dump(addresses)},"weights":{dump(weights)}'


def list_pieces(key: str, items: Iterable[object]) -> Iterator[str]:
    """Yield a list with its key and the comma before it, one piece per item."""
    before = f',"{key}":['
    empty = before
    for item in items:
        yield before + dump(item)
        before = ","
    yield f"{empty}]" if before == empty else "]"


def part_json(part: Part) -> dict[str, object]:
    """Return another process as the page gets it."""
    return {key: round(value, 1) if isinstance(value, float) else value for key, value in asdict(part).items()}


def line_json(line: Line) -> list[object]:
    """Return a line of the log as the page gets it: its number, its time, its name and its facts."""
    return [line.number, round(line.time, 3), line.name, {key: _fact(value) for key, value in line.facts.items()}]


def dump(value: object) -> str:
    """Return compact JSON."""
    return json.dumps(value, separators=(",", ":"), default=_plain)


def message(event: str, pieces: Iterable[str]) -> bytes:
    """Return an event of the stream."""
    return f"event: {event}\ndata: {''.join(pieces)}\n\n".encode()


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _fact(value: object) -> object:
    if isinstance(value, int) and abs(value) > _MAX_EXACT:
        return str(value)
    if isinstance(value, bool | int) or value is None:
        return value
    if isinstance(value, float) and isfinite(value):  # JSON has no other numbers
        return value
    return str(value)[:_MAX_TEXT]
