"""A policy is a small table of events, the same for the paper's policy and for its rivals."""

from collections.abc import Sequence
from typing import Protocol

from evenly.core.messages import MessageCount, PoolId
from evenly.core.randomness import Choose


class Policy(Protocol):
    """Where tasks go. Events at a pool that is not a member are refused with a ValueError that names it."""

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
        """Admit a pool, with the tasks it has already."""
        ...

    def leave(self, pool: PoolId) -> None:
        """Let a pool go; its tasks are forgotten."""
        ...

    def arrive(self, choose: Choose) -> PoolId | None:
        """Place a task and return its pool; None if it is lost, for want of pools or of room."""
        ...

    def record_arrival(self, pool: PoolId) -> None:
        """Count a task that came to the pool by another way than `arrive`."""
        ...

    def depart(self, pool: PoolId) -> None:
        """Finish one task of the pool."""
        ...
