"""The exact chances of pools in small systems: every sequence of choices is followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from typing import TypeVar

from evenly.testing.subject import PolicyError, Subject, size_of

T = TypeVar("T")

_STARTS = ((0, 0, 0), (0, 0, 1), (1, 1, 0), (2, 2, 2))  # tasks of the pools whose chances are compared
_ARRIVALS = 3  # whose chances are compared
_PATHS = 20_000  # of choices that are followed for one start


def check_chances(subject: Subject) -> None:
    """Compare the chances of pools that joined with the same tasks, for every order of joining."""
    for start in _STARTS:
        if subject.capacity is not None and max(start) > subject.capacity:
            continue
        for arrivals in range(1, _ARRIVALS + 1):
            reference: dict[int, Fraction] = {}
            try:
                for order in sorted(set(permutations(start))):
                    chances = _chances(subject, order, arrivals)
                    _compare_chances(subject, order, arrivals, chances, reference)
            except _TooManyError:
                break  # more choices than can be followed; fewer arrivals were compared


class _TooManyError(Exception):
    """There are more paths than can be followed."""


@dataclass
class _Paths:
    """Follows every sequence of choices in turn, with its probability."""

    path: list[tuple[int, int]] = field(default_factory=list)  # the choice and the number of candidates
    depth: int = 0
    followed: int = 0

    def __call__(self, candidates: Sequence[T], /) -> T:
        if self.depth == len(self.path):
            self.path.append((0, size_of(candidates)))
        index, _ = self.path[self.depth]
        self.depth += 1
        return candidates[index]

    @property
    def chance(self) -> Fraction:
        """The probability of the choices so far."""
        product = Fraction(1)
        for _, size in self.path[: self.depth]:
            product /= size
        return product

    def next_path(self) -> bool:
        """Go to the next sequence; return False after the last."""
        self.depth = 0
        self.followed += 1
        if self.followed > _PATHS:
            raise _TooManyError
        while self.path:
            index, size = self.path.pop()
            if index + 1 < size:
                self.path.append((index + 1, size))
                return True
        return False


def _chances(subject: Subject, tasks: Sequence[int], arrivals: int) -> list[Fraction]:
    """Return each pool's exact chance of the last of some arrivals; before it, the first task departs again."""
    found = [Fraction(0)] * len(tasks)
    paths = _Paths()
    going = True
    while going:
        policy = subject.make()
        for pool, count in enumerate(tasks):
            policy.join(pool, count)
        picks = [policy.arrive(paths) for _ in range(arrivals - 1)]
        if picks and picks[0] is not None:
            policy.depart(picks[0])
        last = policy.arrive(paths)
        if last is not None:
            found[last] += paths.chance
        going = paths.next_path()
    return found


def _compare_chances(
    subject: Subject,
    order: Sequence[int],
    arrivals: int,
    chances: Sequence[Fraction],
    reference: dict[int, Fraction],
) -> None:
    """Reject a chance that differs from that of another pool with the same tasks, here or in another order."""
    for pool, tasks in enumerate(order):
        expected = reference.setdefault(tasks, chances[pool])
        if expected == chances[pool]:
            continue
        which = f"task {arrivals}, after the first has departed" if arrivals > 1 else "the first task"
        told = f"# chances of {which}: {', '.join(map(str, chances))}"
        if expected not in [chances[each] for each in range(len(order)) if order[each] == tasks]:
            told += f"; {expected} for a pool with {tasks} tasks if they join in another order"
        calls = [f"policy = {subject.call}"]
        calls += [f"policy.join({each}, {count})" for each, count in enumerate(order)]
        error = subject.error("pools with the same tasks have the same chance", [*calls, told])
        raise PolicyError(f"{error}\nIf pools are meant to differ, call check_policy with uniform=False.")
