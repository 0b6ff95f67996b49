"""Shared by the tests of core: the list of all policies, and choices that record their candidates."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from evenly.core import (
    Choose,
    Color,
    GreedyUtility,
    JoinBelowThreshold,
    JoinIdleQueue,
    JoinShortestQueue,
    LearningRule,
    Policy,
    PoolId,
    PowerOfD,
    Pull,
    RandomRouting,
    Report,
    RoundRobin,
    StaleReports,
    ThresholdPolicy,
    UtilityThreshold,
    WeightedLeast,
    WeightedRoundRobin,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Case:
    """A policy of the contract suite, and its capacity."""

    name: str
    make: Callable[[], Policy]
    capacity: int | None

    def __str__(self) -> str:
        return self.name if self.capacity is None else f"{self.name}-capacity-{self.capacity}"


def _cases() -> list[Case]:
    makers: dict[str, Callable[[int | None], Policy]] = {
        "threshold": lambda capacity: ThresholdPolicy(2, None, capacity),
        "threshold-zero": lambda capacity: ThresholdPolicy(0, None, capacity),
        "threshold-learning": lambda capacity: ThresholdPolicy(1, LearningRule("0.6"), capacity),
        "jsq": JoinShortestQueue,
        "power-of-2": lambda capacity: PowerOfD(2, capacity),
        "power-of-9": lambda capacity: PowerOfD(9, capacity),
        "random": RandomRouting,
        "round-robin": RoundRobin,
        "jiq": JoinIdleQueue,
        "jbt": lambda capacity: JoinBelowThreshold(3, capacity),
        "stale-reports": StaleReports,
    }
    limited = {"threshold", "threshold-learning", "jsq", "power-of-2", "round-robin", "jbt"}
    cases = [
        Case(name, lambda make=make, capacity=capacity: make(capacity), capacity)  # type: ignore[misc]
        for name, make in makers.items()
        for capacity in (None, 3)
        if capacity is None or name in limited
    ]
    sized: dict[str, Callable[[], Policy]] = {
        "greedy-utility": GreedyUtility,
        "threshold-utility": lambda: UtilityThreshold(2),
        "threshold-utility-learning": lambda: UtilityThreshold(1, LearningRule("0.6"), "sqrt"),
        "weighted-least": WeightedLeast,
        "weighted-round-robin": WeightedRoundRobin,
    }
    cases += [Case(name, make, None) for name, make in sized.items()]
    return [*cases, Case("pull", lambda: Pull(3), 3), Case("pull", lambda: Pull(1), 1)]


CASES = _cases()
KINDS = list({type(case.make()): case for case in reversed(CASES)}.values())  # one of each class
# One of each class that keeps the members itself; the others inherit the checks of events from one of these.
MEMBERS = [case for case in CASES if str(case) in ("threshold", "jsq", "threshold-utility", "greedy-utility")]


@dataclass
class Watched:
    """A choice by index that records its candidates."""

    index: int = 0
    seen: list[list[Any]] = field(default_factory=list)

    def __call__(self, candidates: Sequence[T], /) -> T:
        assert len(candidates) > 0
        self.seen.append(list(candidates))
        return candidates[self.index % len(candidates)]


def choice(seed: int) -> Choose:
    """Return a uniform choice with its own generator."""
    return random.Random(seed).choice


def first(candidates: Sequence[T], /) -> T:
    return candidates[0]


def filled(policy: Policy, tasks: Sequence[int]) -> None:
    """Add pools 0, 1, ... with these tasks."""
    for pool, count in enumerate(tasks):
        policy.join(pool, count)


def loads(policy: Policy) -> dict[PoolId, int]:
    """Return the tasks of every member."""
    return {pool: policy.tasks(pool) for pool in policy.pools}


def ordered(pools: Iterable[PoolId]) -> list[Any]:
    """Return the pools sorted, for comparisons in which order does not matter."""
    return sorted(cast("Iterable[Any]", pools))


def report(pool: PoolId, tasks: int, color: Color | None = None) -> Report:
    return Report(pool, tasks, color)


def green(pool: PoolId, tasks: int) -> Report:
    return Report(pool, tasks, Color.GREEN)


def yellow(pool: PoolId, tasks: int) -> Report:
    return Report(pool, tasks, Color.YELLOW)
