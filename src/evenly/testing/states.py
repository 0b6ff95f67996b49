"""A policy without a memory: what it decides depends on the tasks of the pools, not on how they came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from evenly.own_policy import FAILURES, told
from evenly.testing.histories import Fault
from evenly.testing.paths import Paths, TooManyError
from evenly.testing.player import BrokenError, Event, Player, Step, is_member, repeated
from evenly.testing.subject import SAME_CHANCE, SAME_STATE, Subject

_EFFORT = 2500  # calls to find the chances after one history; all choices of the last arrival are followed

Chances = dict[int, Fraction]


class States:
    """Compares chances after a history with those of pools that have just joined with the same tasks.

    Those joined in the order of their tasks, under the names 0, 1, ..., so that names and order are compared too.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._known: dict[tuple[int, ...], Chances] = {}  # of new pools, by their tasks in increasing order

    def fault(self, history: list[Event]) -> Fault | None:
        """Return the fault if chances differ after the history."""
        player = Player(self._subject)
        try:
            for _ in player.play(history):
                pass
        except BrokenError as error:
            return str(error), player.calls
        tasks = tuple(sorted(player.counts.values()))
        if not tasks:
            return None
        joins: list[Step] = [("join", (pool, count)) for pool, count in enumerate(tasks)]
        try:
            if tasks not in self._known:
                self._known[tasks] = self._chances(joins, dict(enumerate(tasks)))
            found = self._chances(player.steps, player.counts)
        except TooManyError:
            return None
        except FAILURES as error:
            return "no event raises an error", [*player.calls, f"policy.arrive(choose)  # {told(error)}"]
        return self._difference(player, joins, found)

    def _chances(self, steps: Sequence[Step], counts: Mapping[int, int]) -> Chances:
        """Return the exact chance of each pool to get the next task."""
        found = dict.fromkeys(sorted(counts), Fraction(0))
        paths = Paths(_EFFORT // (len(steps) + 1))
        going = True
        while going:
            picked = repeated(self._subject, steps).arrive(paths)
            if is_member(picked, counts):
                found[picked] += paths.chance
            going = paths.next_path()
        return found

    def _difference(self, player: Player, joins: Sequence[Step], found: Chances) -> Fault | None:
        tasks = [count for _, (_, count) in joins]
        known = self._known[tuple(tasks)]
        calls = [
            f"policy = {self._subject.call}",
            *(f"policy.join({pool}, {count})" for _, (pool, count) in joins),
        ]
        expected: dict[int, Fraction] = {}
        for pool, count in enumerate(tasks):
            if expected.setdefault(count, known[pool]) != known[pool]:
                return SAME_CHANCE, [*calls, _told(known)]
        if all(chance == expected[player.counts[pool]] for pool, chance in found.items()):
            return None
        calls = ["# and of pools that join with the same tasks:", *calls, _told(known)]
        return SAME_STATE, [*player.calls, _told(found), *calls]


def _told(chances: Chances) -> str:
    parts = (f"{chance} for pool {pool}" for pool, chance in chances.items())
    return f"# chances of the next task: {', '.join(parts)}"
