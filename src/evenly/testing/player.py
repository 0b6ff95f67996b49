"""Plays a history of joins, leaves, arrivals and departures, and finds the first rule that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from evenly.core import Choose
from evenly.inputs import shown
from evenly.own_policy import FAILURES, METHODS, told
from evenly.testing.subject import Subject, size_of

T = TypeVar("T")


@dataclass(frozen=True)
class Event:
    """An event of a history. `number` selects the pool, its tasks, or the choices, among those possible then."""

    kind: str
    number: int


@dataclass
class Choice:
    """Choices that follow from a number: a linear congruential generator, which is quick to make."""

    number: int

    def __call__(self, candidates: Sequence[T], /) -> T:
        """Return one of the candidates."""
        self.number = (self.number * 1_103_515_245 + 12_345) % 2**31
        return candidates[(self.number >> 8) % size_of(candidates)]


class BrokenError(Exception):
    """A rule that the history breaks, where it breaks it."""


Step = tuple[str, tuple[int, ...]]  # a method and its arguments; those of arrive are the number of a choice


@dataclass
class Player:
    """Plays a history on a new policy, next to a count of its own, and writes down the calls."""

    subject: Subject
    calls: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    picks: list[object] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)
    joined: int = 0

    def play(self, history: Sequence[Event]) -> Iterator[None]:
        """Play one event at a time."""
        self.calls.append(f"policy = {self.subject.call}")
        policy = self._guarded(self.subject.make)
        for method in METHODS:
            if not callable(getattr(policy, method, None)):
                raise BrokenError(f"it has the methods {', '.join(METHODS)}")
        for event in history:
            self._step(policy, event)
            self._compare(policy)
            yield

    def _step(self, policy: Any, event: Event) -> None:  # noqa: ANN401
        members = sorted(self.counts)
        busy = [pool for pool in members if self.counts[pool]]
        if event.kind == "join":
            tasks, rejoins = divmod(event.number, 2)
            left = [pool for pool in range(self.joined) if pool not in self.counts]
            pool = left[0] if left and rejoins else self.joined
            self.joined = max(self.joined, pool + 1)
            self.counts[pool] = tasks if self.subject.capacity is None else min(tasks, self.subject.capacity)
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
            self.steps.append(("arrive", (event.number,)))
            self._arrive(policy, Choice(event.number))

    def _arrive(self, policy: Any, choose: Choose) -> None:  # noqa: ANN401
        self.calls.append("policy.arrive(choose)")
        picked = self._guarded(policy.arrive, choose)
        self.calls[-1] += f"  # {shown(picked)}"
        self.picks.append(picked)
        capacity = self.subject.capacity
        if picked is None and self.counts and capacity is None:
            raise BrokenError("without a capacity, no task is lost while there are pools")
        if picked is None:
            return
        if not is_member(picked, self.counts):
            rule = "a task goes to a pool that has joined and not left, or is lost (None)"
            raise BrokenError(rule if self.counts else "without pools, a task is lost (None)")
        self.counts[picked] += 1
        if capacity is not None and self.counts[picked] > capacity:
            raise BrokenError(f"no task goes to a full pool, here of capacity {capacity}")

    def _call(self, policy: Any, method: str, *arguments: int) -> None:  # noqa: ANN401
        self.calls.append(f"policy.{method}({', '.join(map(str, arguments))})")
        self.steps.append((method, arguments))
        self._guarded(getattr(policy, method), *arguments)

    def _guarded(self, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
        try:
            return function(*arguments)
        except FAILURES as error:
            self.calls[-1] += f"  # {told(error)}"
            raise BrokenError("no event raises an error") from error

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
                raise BrokenError(f"tasks counts the tasks of each pool, here {count}")
            self.calls.pop()


def is_member(picked: object, counts: Mapping[int, int]) -> bool:
    """Return True if the policy returned the name of a pool."""
    try:
        return not isinstance(picked, bool) and picked in counts
    except (TypeError, ValueError):  # not hashable, or an array
        return False


def repeated(subject: Subject, steps: Sequence[Step]) -> Any:  # noqa: ANN401
    """Return a new policy after the same calls."""
    policy = subject.make()
    for method, arguments in steps:
        if method == "arrive":
            policy.arrive(Choice(*arguments))
        else:
            getattr(policy, method)(*arguments)
    return policy
