"""What a process shows of itself on the dashboard. The picker and the dispatcher each have a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Protocol

NO_TOKEN, YELLOW, GREEN = 0, 1, 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """The whole system in a few numbers.

    `starts` are the sessions placed since the start. `messages` are those of the pools by kind, empty where none
    travels: a picker counts the sessions itself. The spread is over the serving pools: those that drain
    or fail are not meant to be level with the others. `changes_survive` is whether a restart keeps added
    pools.
    """

    policy: str
    alpha: float | None
    threshold: int | None
    thresholds: Mapping[float, int | None]  # by weight, empty while all pools have the same
    sessions: int
    starts: int
    spread: float
    tokens: tuple[int, int] | None
    messages: Mapping[str, int]
    changes_survive: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Pools:
    """The pools, one list per column: a tuple per pool would keep the garbage collector busy.

    `names` are addresses or texts. `addresses` are where clients are sent, or the names that DNS lists pools
    under; empty where the names say it. `states` are positions in the source's own list of states, `tokens` the
    best token that the pool has out.
    """

    names: Sequence[object]
    addresses: Sequence[str]
    weights: Sequence[float]
    sessions: Sequence[int]
    states: Sequence[int]
    tokens: Sequence[int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Another process of the system: `age` seconds since it was first seen, `heard` since it was last heard."""

    kind: str
    name: str
    reachable: bool
    age: float | None = None
    heard: float | None = None
    sessions: int | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class About:
    """What never changes about a source.

    `states` are the words for the states of pools, `even_states` those in which pools are meant to be level, and
    `actions` what its admin port can do to them.
    """

    kind: str
    states: tuple[str, ...]
    even_states: tuple[str, ...]
    actions: tuple[str, ...]


class Source(Protocol):
    """A process that has a dashboard."""

    about: About

    def figures(self) -> Figures:
        """Return the figures of now."""
        ...

    def pools(self) -> Pools:
        """Return copies of the pools' figures."""
        ...

    def parts(self) -> list[Part]:
        """Return the other processes."""
        ...


def spread_of(sessions: Sequence[int]) -> float:
    """Return the standard deviation of the sessions over the pools, 0 without pools."""
    if not sessions:
        return 0.0
    count, total = len(sessions), sum(sessions)
    squares = sum([each * each for each in sessions])
    return sqrt(count * squares - total * total) / count  # whole numbers until here, so nothing cancels
