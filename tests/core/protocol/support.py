"""Shared by the tests of the protocol: pools and a dispatcher connected by a channel that the test controls."""

from dataclasses import dataclass, field
from typing import Any

from evenly.core import Choose, LearningRule
from evenly.core.protocol import DispatcherPeer, Pick, PoolPeer, ToDispatcher, ToPool
from tests.core.support import first

LEASE, SILENCE, MEMORY = 10.0, 30.0, 20.0


def peer(threshold: int = 2, alpha: str | None = None, **options: Any) -> DispatcherPeer:  # noqa: ANN401
    """Return a dispatcher without pools, in term 1."""
    rule = None if alpha is None else LearningRule(alpha)
    options = {"term": 1, "lease": LEASE, "silence": SILENCE, "memory": MEMORY, **options}
    return DispatcherPeer(threshold, rule, **options)


@dataclass
class Net:
    """A dispatcher and its pools. Messages arrive at once unless the test keeps them."""

    dispatcher: DispatcherPeer
    now: float = 0.0
    pools: dict[object, PoolPeer] = field(default_factory=dict)
    sessions: int = 0

    def start(
        self, pool: object, tasks: int = 0, *, incarnation: int = 1, capacity: int | None = None
    ) -> PoolPeer:
        """Start a pool that has tasks, and let it join."""
        made = self.pools[pool] = PoolPeer(pool, incarnation=incarnation, capacity=capacity)
        for number in range(tasks):
            made.begin(("old", number))
        self.deliver(made.heartbeat())
        return made

    def deliver(self, message: ToDispatcher | None) -> None:
        """Deliver a message of a pool, and the reply if there is one."""
        reply = None if message is None else self.dispatcher.receive(self.now, message)
        if message is not None and reply is not None:
            self.pools[message.report.pool].receive(reply)

    def pick(self, choose: Choose = first, key: object = None) -> Pick:
        """Pick a pool; the client is on the way."""
        picked = self.dispatcher.pick(self.now, choose, key)
        assert picked is not None
        return picked

    def arrive(self, pick: Pick) -> ToDispatcher | None:
        """Let the client arrive, and return what the pool sends."""
        self.sessions += 1
        return self.pools[pick.pool].begin(self.sessions, pick.ticket, pick.threshold)

    def land(self, pick: Pick) -> None:
        """Let the client arrive, and the pool say so with its next heartbeat."""
        assert self.arrive(pick) is None
        self.deliver(self.pools[pick.pool].heartbeat())

    def estimate(self, pool: object) -> int:
        return self.dispatcher.estimate(pool)


def net(*tasks: int, threshold: int = 2, alpha: str | None = None, **options: Any) -> Net:  # noqa: ANN401
    """Return a dispatcher with the pools a, b, ..., which have these tasks."""
    made = Net(peer(threshold, alpha, **options))
    for pool, count in zip("abcdefgh", tasks, strict=False):
        made.start(pool, count)
    return made


def forget(message: ToDispatcher | ToPool | None) -> None:
    """Lose a message."""
