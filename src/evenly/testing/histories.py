"""Histories of joins, leaves, arrivals and departures in any order, and the rules that they must not break."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations

from evenly.testing.player import BrokenError, Event, Player
from evenly.testing.subject import PolicyError, Subject

_SEED = 1
_HISTORIES = 200
_LONGEST = 40  # events of a history
_KINDS = ("arrive", "arrive", "arrive", "depart", "depart", "join", "leave")
_TASKS = (0, 0, 0, 6, 20)  # of the pools at first; those that join later have up to two more
_APART = "two policies share nothing, and id() decides nothing: each gets the same pools next to another as alone"

Fault = tuple[str, list[str]]  # the rule, and the calls that break it


def check_histories(subject: Subject, find: Callable[[list[Event]], Fault | None]) -> None:
    """Try histories, the shortest first; raise PolicyError for the shortest part of one with a fault."""
    before = random.getstate()
    for history in histories():
        found = find(history)
        if random.getstate() != before:  # first: with randomness of its own, a policy may break any rule
            raise PolicyError(
                f'{subject.name} breaks the rule "all randomness comes from choose": it uses the module random.'
            )
        if found:
            raise _shortened(subject, history, find)


def histories() -> Iterator[list[Event]]:
    """Yield histories, the shortest first. Every other one begins with pools, as simulations do."""
    chance = random.Random(_SEED)
    for index in range(_HISTORIES):
        length = 1 + index * _LONGEST // _HISTORIES
        tasks = 2 * _TASKS[index % len(_TASKS)]
        first = [Event("join", tasks)] * (index % 2 * chance.randint(1, 5))
        kinds = [chance.choice(_KINDS) for _ in range(length)]
        yield first + [
            Event(kind, tasks + chance.randrange(6) if kind == "join" else chance.randrange(1000))
            for kind in kinds
        ]


def first_fault(subject: Subject, history: Sequence[Event]) -> Fault | None:
    """Return the rule that the history breaks and the calls up to there, or None."""
    players = Player(subject), Player(subject)
    for player in players:
        if player is players[1]:
            _scatter()
        try:
            for _ in player.play(history):
                pass
        except BrokenError as error:
            return str(error), player.calls
    return _interference(subject, history, players[0], players[1])


class _Thing:
    """An object as large as many others."""


def _scatter() -> None:
    """Leave free memory in disorder, so that objects made from now on have addresses in another order."""
    things = [make() for make in (object, _Thing, lambda: bytes(20), lambda: bytes(40)) for _ in range(25)]
    random.Random(_SEED).shuffle(things)
    while things:
        things.pop()


def _interference(subject: Subject, history: Sequence[Event], player: Player, again: Player) -> Fault | None:
    """Return the fault if a second run differs, or if two policies that take turns get in each other's way."""
    if again.picks != player.picks:
        return "the same choices lead to the same pools", [*player.calls, "# again:", *again.calls]
    twins = Player(subject), Player(subject)
    try:
        for _ in zip(twins[0].play(history), twins[1].play(history), strict=True):
            pass
    except BrokenError:
        pass
    if any(twin.picks != player.picks for twin in twins):
        return _APART, player.calls
    return None


def _simpler(history: list[Event]) -> Iterator[list[Event]]:
    """Yield the history without one event, without two, and with smaller numbers."""
    places = range(len(history))
    for left_out in chain(combinations(places, 1), combinations(places, 2)):
        yield [event for place, event in enumerate(history) if place not in left_out]
    for place, event in enumerate(history):
        for number in range(min(event.number, 4)):
            yield [*history[:place], replace(event, number=number), *history[place + 1 :]]
    least = min((event.number // 2 for event in history if event.kind == "join"), default=0)  # tasks at a join
    if least:
        yield [replace(each, number=each.number - 2 * least * (each.kind == "join")) for each in history]


def _shortened(subject: Subject, history: list[Event], find: Callable[[list[Event]], Fault | None]) -> PolicyError:
    """Return the error for a simple history that breaks a rule, found from one that does, step by step."""
    simpler: list[Event] | None = history
    while simpler is not None:
        history = simpler
        simpler = next((each for each in _simpler(history) if find(each)), None)
    found = find(history)
    if found is None:  # only by chance of its own does a policy break a rule once, and then not again
        found = "the same choices lead to the same pools", [f"policy = {subject.call}"]
    return subject.error(*found)
