"""The choice is uniform among the eligible pools, whatever their order of joining, of events, or their load.

Every trial assigns the states to the pools in a new random permutation, so that no position is privileged, and
records the rank of the picked pool among the eligible ones: by order of joining, by order of the last event, and
by number of tasks. A chi-square test checks that the ranks are as frequent as under a uniform choice.

There are TESTS statistics in this file, each with a false-alarm rate of at most 1e-6 / TESTS, so the rate of all
together is below 1e-6 for a random seed. The seeds are fixed. Where the probabilities differ from trial to trial
(free slots under Pull), the sum of unequal multinomials varies less than the chi-square distribution assumes, so
the bound still holds.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TypeVar

import pytest

from evenly.core import (
    Choose,
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
    StaleReports,
    ThresholdPolicy,
    UtilityThreshold,
    WeightedLeast,
)
from tests import distributions as stats
from tests.tiers import rest_in_full

T = TypeVar("T")
TESTS = 50
TRIALS = 5000


def bound(cells: int) -> float:
    return float(stats.chi2.isf(1e-6 / TESTS, cells - 1))


def statistic(observed: Sequence[float], expected: Sequence[float]) -> float:
    return sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))


@dataclass(frozen=True)
class Scene:
    """A policy, the tasks of its pools, and the weight of a pool by its tasks: 0 if it is not eligible."""

    name: str
    make: Callable[[], Policy]
    tasks: list[int]
    weight: Callable[[int], float]

    def __str__(self) -> str:
        return self.name


class AtEveryDeparture(StaleReports):
    """Pools that report whenever a task departs."""

    def _departed(self, pool: PoolId, tasks: int) -> None:
        self.report(pool, tasks)


SCENES = [
    Scene("green", lambda: ThresholdPolicy(3), [0, 0, 1, 2, 2, 2, 3, 3, 4, 9], lambda tasks: tasks < 3),
    Scene("yellow", lambda: ThresholdPolicy(2), [2, 2, 2, 2, 2, 3, 3, 4, 5, 7], lambda tasks: tasks == 2),
    Scene("no-token", lambda: ThresholdPolicy(1), [2, 2, 2, 3, 3, 4, 5, 7], lambda tasks: 1),
    Scene(
        "green-learning",
        lambda: ThresholdPolicy(3, LearningRule("0.5")),
        [0, 1, 1, 2, 2, 3, 3, 4],
        lambda tasks: tasks < 3,
    ),
    Scene("jsq", JoinShortestQueue, [1, 1, 1, 1, 1, 2, 2, 3, 4, 4], lambda tasks: tasks == 1),
    Scene("stale-reports", AtEveryDeparture, [1, 1, 1, 1, 1, 2, 2, 3, 4, 4], lambda tasks: tasks == 1),
    Scene("power-of-3", lambda: PowerOfD(3), [2] * 8, lambda tasks: 1),
    Scene("random", RandomRouting, [0, 0, 1, 2, 3, 4, 5, 9], lambda tasks: 1),
    Scene("jiq", JoinIdleQueue, [0, 0, 0, 0, 0, 1, 2, 3], lambda tasks: tasks == 0),
    Scene("jbt", lambda: JoinBelowThreshold(3), [0, 0, 1, 1, 2, 2, 3, 4, 5], lambda tasks: tasks < 3),
    Scene("jbt-no-token", lambda: JoinBelowThreshold(2), [2, 2, 3, 4, 5, 6], lambda tasks: 1),
    Scene("greedy-utility", GreedyUtility, [1, 1, 1, 1, 1, 2, 2, 3, 4, 4], lambda tasks: tasks == 1),
    Scene("threshold-utility", lambda: UtilityThreshold(3), [0, 0, 1, 2, 2, 2, 3, 3, 4], lambda tasks: tasks < 3),
    Scene("weighted-least", WeightedLeast, [1, 1, 1, 1, 1, 2, 2, 3, 4, 4], lambda tasks: tasks == 1),
    Scene("pull", lambda: Pull(5), [0, 1, 2, 2, 3, 4, 5, 5], lambda tasks: 5 - tasks),
]
# These draw by the code of another scene: only in `make full`.
REPEATED = ("green-learning", "stale-reports", "random", "jbt", "jbt-no-token", "greedy-utility", "weighted-least")


@dataclass(frozen=True)
class Stage:
    """A policy in the state of a scene, with the orders of joining and of last events."""

    policy: Policy
    tasks: dict[PoolId, int]
    joined: list[PoolId]
    latest: list[PoolId]


def set_up(scene: Scene, rng: random.Random) -> Stage:
    """Add the pools in a random order, some with an extra task that departs later, in another order."""
    policy = scene.make()
    joined: list[PoolId] = list(range(len(scene.tasks)))
    rng.shuffle(joined)
    tasks = dict(zip(joined, rng.sample(scene.tasks, len(scene.tasks)), strict=True))
    room = 5 if isinstance(policy, Pull) else 99
    late = [pool for pool in joined if tasks[pool] < room and rng.random() < 0.5]
    for pool in joined:
        policy.join(pool, tasks[pool] + (pool in late))
    rng.shuffle(late)
    for pool in late:
        policy.depart(pool)
    return Stage(policy, tasks, joined, [pool for pool in joined if pool not in late] + late)


def largest_excess(scene: Scene, choose: Choose, rng: random.Random) -> float:
    """Return the largest of the three statistics, each as a multiple of its bound."""
    eligible = sum(scene.weight(tasks) > 0 for tasks in scene.tasks)
    observed = [[0.0] * eligible for _ in range(3)]
    expected = [[0.0] * eligible for _ in range(3)]
    for _ in range(TRIALS):
        stage = set_up(scene, rng)
        by_load = sorted(stage.joined, key=lambda pool: (stage.tasks[pool], rng.random()))
        orders = [
            [p for p in o if scene.weight(stage.tasks[p]) > 0] for o in (stage.joined, stage.latest, by_load)
        ]
        total = sum(scene.weight(tasks) for tasks in scene.tasks)
        picked = stage.policy.arrive(choose)
        for seen, due, order in zip(observed, expected, orders, strict=True):
            seen[order.index(picked)] += 1  # raises if the pool is not eligible
            for rank, pool in enumerate(order):
                due[rank] += scene.weight(stage.tasks[pool]) / total
    return max(statistic(o, e) for o, e in zip(observed, expected, strict=True)) / bound(eligible)


def test_the_false_alarm_rate_covers_every_statistic() -> None:
    assert 3 * len(SCENES) + 2 <= TESTS


@pytest.mark.parametrize(
    "scene",
    rest_in_full(sorted(SCENES, key=lambda scene: scene.name in REPEATED), len(SCENES) - len(REPEATED)),
    ids=str,
)
def test_choice_is_uniform(scene: Scene) -> None:
    assert largest_excess(scene, random.Random(11).choice, random.Random(12)) < 1


@pytest.mark.parametrize("scene", [s for s in SCENES if s.name in ("green", "power-of-3", "pull")], ids=str)
def test_a_choice_that_favors_the_last_candidate_is_detected(scene: Scene) -> None:
    rng = random.Random(13)

    def biased(candidates: Sequence[T], /) -> T:
        return candidates[max(rng.randrange(len(candidates)), rng.randrange(len(candidates)))]

    assert largest_excess(scene, biased, random.Random(14)) > 1


class FavorsTheNewest(RandomRouting):
    """A biased policy: one time in nine it takes the pool that joined last."""

    def _joined(self, pool: PoolId, tasks: int) -> None:
        self.newest = pool

    def _pick(self, choose: Choose) -> PoolId:
        return self.newest if choose(range(9)) == 0 else super()._pick(choose)


def test_a_policy_that_favors_the_newest_pool_is_detected() -> None:
    scene = Scene("newest", FavorsTheNewest, [0, 1, 2, 3, 4, 5], lambda tasks: 1)
    assert largest_excess(scene, random.Random(15).choice, random.Random(16)) > 1


def test_power_of_d_samples_every_ordered_pair_equally_often() -> None:
    # One long-lived policy: it never restores its order, which must not matter.
    policy, rng = PowerOfD(2), random.Random(17)
    for pool in range(5):
        policy.join(pool)
    pairs: Counter[tuple[object, ...]] = Counter()
    for _ in range(TRIALS * 2):
        sample: list[object] = []

        def choose(candidates: Sequence[T], /) -> T:
            sample.append(picked := rng.choice(candidates))  # noqa: B023
            return picked

        policy.arrive(choose)
        pairs[tuple(sample)] += 1
    cells = list(permutations(range(5), 2))
    assert set(pairs) == set(cells)
    due = sum(pairs.values()) / len(cells)
    assert statistic([pairs[cell] for cell in cells], [due] * len(cells)) < bound(len(cells))


def test_tokens_stay_uniform_after_threshold_changes() -> None:
    # After a rise, a fall and churn, the next green pick must be uniform over the green pools, by name.
    rng = random.Random(18)
    observed = [0.0] * 6
    for _ in range(TRIALS):
        policy = ThresholdPolicy(2, LearningRule("0.5"))
        names = rng.sample(range(10), 10)
        for name in names:
            policy.join(name, 3)
        policy.arrive(rng.choice)  # all above 2: up to 3
        for name in rng.sample(range(10), 10):
            while policy.tasks(name) > (1 if name < 6 else 3):
                policy.depart(name)
        picked = policy.arrive(rng.choice)  # six of ten below 3: down to 2 afterwards
        assert isinstance(picked, int)
        policy.depart(picked)
        assert policy.threshold == 2
        again = policy.arrive(rng.choice)
        assert isinstance(again, int)
        observed[again] += 1
    assert statistic(observed, [TRIALS / 6] * 6) < bound(6)
