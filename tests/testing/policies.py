"""Policies with and without faults. They are in a module of their own, which another process can import."""

import random
from typing import Any, ClassVar

from evenly.core import Choose, JoinShortestQueue, RandomRouting


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


class Shortest:
    """JSQ with counts of its own, which it does not show."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def join(self, pool: int, tasks: int) -> None:
        self._counts[pool] = tasks

    def leave(self, pool: int) -> None:
        del self._counts[pool]

    def arrive(self, choose: Choose) -> int | None:
        if not self._counts:
            return None
        pool = self.pick([pool for pool in self._counts if self._counts[pool] == self.least], choose)
        self._counts[pool] += 1
        return pool

    @property
    def least(self) -> int:
        return min(self._counts.values())

    def pick(self, candidates: list[int], choose: Choose) -> int:
        return choose(candidates)

    def depart(self, pool: int) -> None:
        self._counts[pool] -= 1


class Limited(Shortest):
    """It must be told a capacity, which may be None."""

    def __init__(self, capacity: int | None) -> None:
        super().__init__()
        self._most = capacity

    def arrive(self, choose: Choose) -> int | None:
        return super().arrive(choose) if self._counts and self.least != self._most else None


class ForgetsHiddenDepartures(Shortest):
    def depart(self, pool: int) -> None: ...


class ForgetsEmptying(Shortest):
    def depart(self, pool: int) -> None:
        self._counts[pool] = max(self._counts[pool] - 1, 1)


class IgnoresHiddenTasks(Shortest):
    def join(self, pool: int, tasks: int) -> None:
        self._counts[pool] = 0

    def depart(self, pool: int) -> None:
        self._counts[pool] = max(self._counts[pool] - 1, 0)


class BiasedAfterLeave(Shortest):
    left = False

    def leave(self, pool: int) -> None:
        super().leave(pool)
        self.left = True

    def pick(self, candidates: list[int], choose: Choose) -> int:
        return candidates[0] if self.left else choose(candidates)


class RemembersWhoLeft(Shortest):
    def __init__(self) -> None:
        super().__init__()
        self.old: dict[int, int] = {}

    def leave(self, pool: int) -> None:
        self.old[pool] = self._counts.pop(pool)

    def join(self, pool: int, tasks: int) -> None:
        self._counts[pool] = self.old.get(pool, tasks)


class FirstThree(Shortest):
    def pick(self, candidates: list[int], choose: Choose) -> int:
        return choose(candidates[:3])


class BiasedWhenBusy(Shortest):
    def pick(self, candidates: list[int], choose: Choose) -> int:
        return choose(candidates) if self.least < 3 else candidates[0]


class LosesWhenBusy(Shortest):
    def arrive(self, choose: Choose) -> int | None:
        return None if self._counts and self.least >= 5 else super().arrive(choose)


class HashOrder(Shortest):
    def pick(self, candidates: list[int], choose: Choose) -> int:
        return int(choose(list({str(pool) for pool in candidates})))


class _Server:
    def __init__(self, pool: int) -> None:
        self.pool = pool


class AddressOrder(Shortest):
    """A set of objects has an order that depends on their addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.servers: dict[int, _Server] = {}

    def join(self, pool: int, tasks: int) -> None:
        super().join(pool, tasks)
        self.servers[pool] = _Server(pool)

    def pick(self, candidates: list[int], choose: Choose) -> int:
        return choose(list({self.servers[pool] for pool in candidates})).pool
