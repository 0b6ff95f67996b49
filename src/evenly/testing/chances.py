"""A policy with a memory: chances of pools that joined alike, averaged over all choices made before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product

from evenly.testing.paths import Paths, TooManyError
from evenly.testing.subject import SAME_CHANCE, Subject

_STARTS = ((0, 0, 0), (0, 0, 1), (1, 1, 0), (4, 4, 4), (0, 0, 0, 0, 0))  # tasks of the pools that are compared
_ARRIVALS = (1, 2, 3)  # the last is compared
_PATHS = 3_000  # of choices that are followed for one order of joining


def check_chances(subject: Subject) -> None:
    """Compare the chances of pools that joined with the same tasks, for every order of joining."""
    for start, leaves in product(_STARTS, (False, True)):
        if subject.capacity is not None and max(start) > subject.capacity:
            continue
        for arrivals in _ARRIVALS:
            reference: dict[int, Fraction] = {}
            try:
                for order in sorted(set(permutations(start))):
                    chances = _chances(subject, order, arrivals, leaves)
                    _compare(subject, order, arrivals, leaves, chances, reference)
            except TooManyError:
                break  # more choices than can be followed; fewer arrivals were compared


def _calls(order: Sequence[int], leaves: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the calls that set up the pools; one of them may leave again."""
    yield from (("join", (pool, count)) for pool, count in enumerate(order))
    if leaves:
        yield "join", (len(order), 0)
        yield "leave", (len(order),)


def _chances(subject: Subject, order: Sequence[int], arrivals: int, leaves: bool) -> list[Fraction]:
    """Return each pool's exact chance of the last of some arrivals; before it, the first task departs again."""
    found = [Fraction(0)] * len(order)
    paths = Paths(_PATHS)
    going = True
    while going:
        policy = subject.make()
        for method, arguments in _calls(order, leaves):
            getattr(policy, method)(*arguments)
        picks = [policy.arrive(paths) for _ in range(arrivals - 1)]
        if picks and picks[0] is not None:
            policy.depart(picks[0])
        last = policy.arrive(paths)
        if last is not None:
            found[last] += paths.chance
        going = paths.next_path()
    return found


def _compare(
    subject: Subject,
    order: Sequence[int],
    arrivals: int,
    leaves: bool,
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
        calls = [
            f"policy.{method}({', '.join(map(str, arguments))})" for method, arguments in _calls(order, leaves)
        ]
        raise subject.error(SAME_CHANCE, [f"policy = {subject.call}", *calls, told])
