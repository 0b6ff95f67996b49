"""Histories of joins, leaves, arrivals and departures in any order, and the rules that they must not break."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from typing import Any, TypeVar

from evenly.core import Choose
from evenly.inputs import shown
from evenly.own_policy import FAILURES, METHODS
from evenly.testing.subject import PolicyError, Subject, size_of

T = TypeVar("T")

_SEED = 1
_HISTORIES = 200
_LONGEST = 40  # events of a history
_KINDS = ("arrive", "arrive", "arrive", "depart", "depart", "join", "leave")


def check_histories(subject: Subject) -> None:
    """Play histories, the shortest first; raise PolicyError for the shortest part of one that breaks a rule."""
    before = random.getstate()
    for history in _histories():
        fault = _fault(subject, history)
        if random.getstate() != before:  # first: with randomness of its own, a policy may break any rule
            raise PolicyError(
                f'{subject.name} breaks the rule "all randomness comes from choose": it uses the module random.'
            )
        if fault:
            raise _shortened(subject, history)


@dataclass(frozen=True)
class _Event:
    """An event of a history. `number` selects the pool, or the choice, among those possible at that moment."""

    kind: str
    number: int


@dataclass
class _Choice:
    """A choice by number, from a sequence that goes on with every call."""

    chance: random.Random

    def __call__(self, candidates: Sequence[T], /) -> T:
        return candidates[self.chance.randrange(size_of(candidates))]


class _BrokenError(Exception):
    """A rule that the history breaks, where it breaks it."""


@dataclass
class _Player:
    """Plays a history on a new policy, next to a count of its own, and writes down the calls."""

    subject: Subject
    calls: list[str] = field(default_factory=list)
    picks: list[object] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)
    joined: int = 0

    def play(self, history: Sequence[_Event]) -> Iterator[None]:
        """Play one event at a time."""
        self.calls.append(f"policy = {self.subject.call}")
        policy = self._guarded(self.subject.make)
        for method in METHODS:
            if not callable(getattr(policy, method, None)):
                raise _BrokenError(f"it has the methods {', '.join(METHODS)}")
        for event in history:
            self._step(policy, event)
            self._compare(policy)
            yield

    def _step(self, policy: Any, event: _Event) -> None:  # noqa: ANN401
        members = sorted(self.counts)
        busy = [pool for pool in members if self.counts[pool]]
        if event.kind == "join":
            back = [pool for pool in range(self.joined) if pool not in self.counts]
            pool = back[0] if back and event.number % 2 else self.joined
            self.joined = max(self.joined, pool + 1)
            most = 2 if self.subject.capacity is None else min(2, self.subject.capacity)
            self.counts[pool] = event.number % (most + 1)
            self._call(policy, "join", pool, self.counts[pool])
        elif event.kind == "leave" and members:
            pool = members[event.number % len(members)]
            del self.counts[pool]
            self._call(policy, "leave", pool)
        elif event.kind == "depart" and busy:
            pool = busy[event.number % len(busy)]
            self.counts[pool] -= 1
            self._call(policy, "depart", pool)
        elif event.kind == "arrive":
            self._arrive(policy, _Choice(random.Random(event.number)))

    def _arrive(self, policy: Any, choose: Choose) -> None:  # noqa: ANN401
        picked = self._call(policy, "arrive", choose)
        self.calls[-1] += f"  # {shown(picked)}"
        self.picks.append(picked)
        if picked is None:
            return
        if isinstance(picked, bool) or not _is_member(picked, self.counts):
            rule = "a task goes to a pool that has joined and not left, or is lost (None)"
            raise _BrokenError(rule if self.counts else "without pools, a task is lost (None)")
        self.counts[picked] += 1  # type: ignore[index]
        if self.subject.capacity is not None and self.counts[picked] > self.subject.capacity:  # type: ignore[index]
            raise _BrokenError(f"no task goes to a full pool, here of capacity {self.subject.capacity}")

    def _call(self, policy: Any, method: str, *arguments: Any) -> object:  # noqa: ANN401
        given = "choose" if method == "arrive" else ", ".join(map(str, arguments))
        self.calls.append(f"policy.{method}({given})")
        return self._guarded(getattr(policy, method), *arguments)

    def _guarded(self, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
        try:
            return function(*arguments)
        except FAILURES as error:
            self.calls[-1] += f"  # {type(error).__name__}: {error}"
            raise _BrokenError("no event raises an error") from error

    def _compare(self, policy: Any) -> None:  # noqa: ANN401
        """Compare the policy's own counts, if it shows them."""
        found = getattr(policy, "tasks", None)
        if not callable(found) and not isinstance(found, Mapping):
            return
        for pool, count in self.counts.items():
            self.calls.append(f"policy.tasks({pool})" if callable(found) else f"policy.tasks[{pool}]")
            value = self._guarded(found if callable(found) else found.__getitem__, pool)
            self.calls[-1] += f"  # {shown(value)}"
            if value != count:
                raise _BrokenError(f"tasks counts the tasks of each pool, here {count}")
            self.calls.pop()


def _is_member(picked: object, counts: dict[int, int]) -> bool:
    try:
        return picked in counts
    except TypeError:  # not hashable
        return False


def _histories() -> Iterator[list[_Event]]:
    """Yield histories, the shortest first. Every other one begins with pools, as simulations do."""
    chance = random.Random(_SEED)
    for index in range(_HISTORIES):
        length = 1 + index * _LONGEST // _HISTORIES
        first = [_Event("join", 0)] * (index % 2 * chance.randint(1, 4))
        yield first + [_Event(chance.choice(_KINDS), chance.randrange(1000)) for _ in range(length)]


def _fault(subject: Subject, history: Sequence[_Event]) -> tuple[str, list[str]] | None:
    """Return the rule that the history breaks and the calls up to there, or None."""
    players = _Player(subject), _Player(subject)
    for player in players:
        try:
            for _ in player.play(history):
                pass
        except _BrokenError as error:
            return str(error), player.calls
    return _interference(subject, history, players[0], players[1])


def _interference(
    subject: Subject, history: Sequence[_Event], player: _Player, again: _Player
) -> tuple[str, list[str]] | None:
    """Return the fault if a second run differs, or if two policies that take turns get in each other's way."""
    if again.picks != player.picks:
        return "the same choices lead to the same pools", [*player.calls, "# again:", *again.calls]
    twins = _Player(subject), _Player(subject)
    try:
        for _ in zip(twins[0].play(history), twins[1].play(history), strict=True):
            pass
    except _BrokenError:
        pass
    if any(twin.picks != player.picks for twin in twins):
        return "two policies share nothing: each gets the same pools next to another one as alone", player.calls
    return None


def _simpler(history: list[_Event]) -> Iterator[list[_Event]]:
    """Yield the history without one event, without two, and with a smaller number in an event."""
    places = range(len(history))
    for left_out in chain(combinations(places, 1), combinations(places, 2)):
        yield [event for place, event in enumerate(history) if place not in left_out]
    for place, event in enumerate(history):
        for number in range(min(event.number, 4)):
            yield [*history[:place], replace(event, number=number), *history[place + 1 :]]


def _shortened(subject: Subject, history: list[_Event]) -> PolicyError:
    """Return the error for a simple history that breaks a rule, found from one that does, step by step."""
    simpler: list[_Event] | None = history
    while simpler is not None:
        history = simpler
        simpler = next((each for each in _simpler(history) if _fault(subject, each)), None)
    fault = _fault(subject, history)
    if fault is None:  # only by chance of its own does a policy break a rule once, and then not again
        fault = "the same choices lead to the same pools", [f"policy = {subject.call}"]
    return subject.error(*fault)
