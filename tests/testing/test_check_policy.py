"""`check_policy` accepts good policies, and names the rule that a bad one breaks, with a short example."""

import random
from typing import Any, ClassVar

import pytest

from evenly.core import Choose, JoinShortestQueue, PowerOfD, Pull, RandomRouting, RoundRobin
from evenly.errors import InputError
from evenly.testing import PolicyError, check_policy


class Memory:
    """Power of two with memory, as in the guide."""

    tasks: dict[int, int]

    def __init__(self) -> None:
        self.tasks, self.pools, self.best = {}, [], []  # type: ignore[var-annotated]

    def join(self, pool: int, tasks: int) -> None:
        self.tasks[pool] = tasks
        self.pools.append(pool)

    def leave(self, pool: int) -> None:
        del self.tasks[pool]
        self.pools.remove(pool)
        self.best = []

    def arrive(self, choose: Choose) -> Any:  # noqa: ANN401
        return self.place(self.pick(choose)) if self.pools else None

    def pick(self, choose: Choose) -> Any:  # noqa: ANN401
        return min([choose(self.pools), choose(self.pools), *self.best], key=self.tasks.__getitem__)

    def place(self, pool: int) -> int:
        self.tasks[pool] += 1
        self.best = [pool]
        return pool

    def depart(self, pool: int) -> None:
        self.tasks[pool] -= 1


class KeepsMemory(Memory):
    def leave(self, pool: int) -> None:
        del self.tasks[pool]
        self.pools.remove(pool)


class NeverForgets(Memory):
    def leave(self, pool: int) -> None: ...


class NoPools(Memory):
    def arrive(self, choose: Choose) -> int:
        return self.place(self.pick(choose))


class ForgetsDepartures(Memory):
    def depart(self, pool: int) -> None: ...


class IgnoresTasksAtJoin(Memory):
    def join(self, pool: int, tasks: int) -> None:
        super().join(pool, 0)


class FirstOfEquals(Memory):
    def pick(self, choose: Choose) -> int:
        return min(self.tasks, key=self.tasks.__getitem__)


class LowestName(Memory):
    def pick(self, choose: Choose) -> Any:  # noqa: ANN401
        return min(choose(self.pools), choose(self.pools), key=lambda pool: (self.tasks[pool], pool))


class LastToJoin(Memory):
    """Prefers, among pools with a task, the one that joined last. Others are alike."""

    def pick(self, choose: Choose) -> Any:  # noqa: ANN401
        busy = [pool for pool in self.pools if self.tasks[pool]]
        return busy[-1] if busy and self.tasks[self.pools[-1]] else choose(self.pools)


class OwnRandomness(Memory):
    def pick(self, choose: Choose) -> Any:  # noqa: ANN401
        return random.choice(self.pools)


class OwnGenerator(Memory):
    chance = random.Random(1)

    def pick(self, choose: Choose) -> Any:  # noqa: ANN401
        return self.chance.choice(self.pools)


class SpoilsRandomness(Memory):
    def pick(self, choose: Choose) -> Any:  # noqa: ANN401
        random.random()
        return super().pick(choose)


class SharedTurn(Memory):
    turn: ClassVar = [0]

    def pick(self, choose: Choose) -> Any:  # noqa: ANN401
        self.turn[0] += 1
        return self.pools[self.turn[0] % len(self.pools)]


class SharedTasks(Memory):
    everyone: ClassVar[dict[int, int]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.tasks = self.everyone


class ChoosesFromADict(Memory):
    def pick(self, choose: Choose) -> Any:  # noqa: ANN401
        return choose(self.tasks)  # type: ignore[arg-type]


class Unhashable(Memory):
    def arrive(self, choose: Choose) -> Any:  # noqa: ANN401
        return []


class OverflowsPools(RandomRouting):
    def arrive(self, choose: Choose) -> Any:  # noqa: ANN401
        self._capacity = None
        return super().arrive(choose)


class CountsTwice(JoinShortestQueue):
    def tasks(self, pool: object) -> int:
        return 2 * super().tasks(pool)


@pytest.mark.parametrize("policy", [Memory, JoinShortestQueue, RandomRouting])
def test_good_policies_pass(policy: type[Any]) -> None:
    check_policy(policy)


def test_a_function_may_make_the_policy() -> None:
    check_policy(lambda: PowerOfD(2))
    check_policy(lambda: Pull(3), capacity=3)
    check_policy(Pull, capacity=1)


def test_pools_may_be_taken_in_turn() -> None:
    with pytest.raises(PolicyError, match=r"the same chance.*\n(.*\n)*.*uniform=False"):
        check_policy(RoundRobin)
    check_policy(RoundRobin, uniform=False)


@pytest.mark.parametrize(
    ("policy", "rule", "lines"),
    [
        (KeepsMemory, "no event raises an error", 6),
        (NeverForgets, "without pools, a task is lost", 4),
        (NoPools, "no event raises an error", 2),
        (ForgetsDepartures, "tasks counts the tasks of each pool", 4),
        (IgnoresTasksAtJoin, "tasks counts the tasks of each pool", 3),
        (FirstOfEquals, "pools with the same tasks have the same chance", 6),
        (LowestName, "pools with the same tasks have the same chance", 6),
        (LastToJoin, "pools with the same tasks have the same chance", 6),
        (OwnRandomness, "all randomness comes from choose", 0),
        (SpoilsRandomness, "all randomness comes from choose", 0),
        (SharedTurn, "the same choices lead to the same pools", 10),
        (SharedTasks, "two policies share nothing", 6),
        (ChoosesFromADict, "no event raises an error", 3),
        (Unhashable, "without pools, a task is lost", 2),
        (OverflowsPools, "no task goes to a full pool", 3),
        (CountsTwice, "tasks counts the tasks of each pool", 4),
    ],
)
def test_a_broken_rule_is_named_with_a_short_example(policy: type[Any], rule: str, lines: int) -> None:
    with pytest.raises(PolicyError) as caught:
        check_policy(policy)
    told = str(caught.value)
    assert told.startswith(f'{policy.__name__} breaks the rule "{rule}')
    assert told.count("\n") <= lines
    if lines:
        assert f"policy = {policy.__name__}(" in told
    assert isinstance(caught.value, AssertionError)


def test_a_generator_of_its_own_is_found_out() -> None:
    with pytest.raises(PolicyError, match=r"the same choices lead to the same pools|two policies share nothing"):
        check_policy(OwnGenerator)


def test_an_example_is_minimal() -> None:
    with pytest.raises(PolicyError) as caught:
        check_policy(NeverForgets)
    assert str(caught.value).splitlines()[1:] == [
        "    policy = NeverForgets()",
        "    policy.join(0, 0)",
        "    policy.leave(0)",
        "    policy.arrive(choose)  # 0",
    ]


def test_bad_input_is_no_broken_rule() -> None:
    with pytest.raises(InputError, match="policy must be a class, or a function that returns a policy, not 3"):
        check_policy(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must have the methods"):
        check_policy(dict)
    with pytest.raises(InputError, match="its constructor needs sample_size"):
        check_policy(PowerOfD)
    with pytest.raises(InputError, match="uniform must be true or false"):
        check_policy(Memory, uniform="yes")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="capacity must be"):
        check_policy(Memory, capacity=0)
    with pytest.raises(PolicyError, match="it has the methods"):
        check_policy(lambda: 3)
