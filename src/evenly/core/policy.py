"""The events that every policy handles: the paper's policy and the baselines."""

from collections.abc import Sequence
from typing import Protocol

from evenly.core.messages import MessageCount, PoolId
from evenly.core.randomness import Choose


class Policy(Protocol):
    """A policy decides where tasks go. An event at a pool that is not a member raises an InputError naming it."""

    @property
    def messages(self) -> MessageCount:
        """The messages sent so far."""
        ...

    @property
    def pools(self) -> Sequence[PoolId]:
        """The members, in no particular order."""
        ...

    def tasks(self, pool: PoolId) -> int:
        """Return the number of tasks in the pool."""
        ...

    def join(self, pool: PoolId, tasks: int = 0) -> None:
        """Add a pool that has `tasks` tasks already."""
        ...

    def leave(self, pool: PoolId) -> None:
        """Remove a pool; its tasks are forgotten."""
        ...

    def arrive(self, choose: Choose) -> PoolId | None:
        """Place a task and return its pool, or None if there is no pool or no room, so that the task is lost."""
        ...

    def record_arrival(self, pool: PoolId) -> None:
        """Count a task that reached the pool without `arrive`."""
        ...

    def depart(self, pool: PoolId) -> None:
        """Finish one task of the pool."""
        ...
