"""What the dispatcher was told, written down as plainly as possible, and what follows from it.

The book sees the same operations as the state machine, and derives from them by itself what the state must be.
It knows nothing of how the state machine works.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction

from evenly.core import Color, PoolId
from evenly.core.protocol import Kind, Pick, ToDispatcher
from tests.faults.network.setup import Setup
from tests.faults.network.world import require


@dataclass(frozen=True, slots=True)
class Told:
    """The newest message of a pool."""

    number: tuple[int, int]  # incarnation and sequence
    tasks: int
    heard: float
    left: bool


class Book:
    """The messages and picks of one dispatcher state, up to now."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._alpha = Fraction(setup.alpha)
        self._highest = 10**12 if setup.capacity is None else setup.capacity - 1
        self.now = 0.0
        self.threshold = setup.threshold
        self.told: dict[PoolId, Told] = {}
        self.open: dict[PoolId, dict[int, float]] = {}  # the tickets on the way, with the ends of their leases
        self.expired = 0
        self.drained: set[PoolId] = set()  # by the operator
        self._answers: dict[Hashable, tuple[float, Pick]] = {}  # by request key, with the time

    def members(self) -> list[PoolId]:
        """Return the pools that were heard of lately, have not left and are not drained."""
        silence = self._setup.silence
        return [
            pool
            for pool, told in self.told.items()
            if not told.left and told.heard + silence > self.now and pool not in self.drained
        ]

    def estimate(self, pool: PoolId) -> int:
        """Return the tasks of the newest report, and the picks on the way that it does not cover."""
        return self.told[pool].tasks + len(self.open.get(pool, ()))

    def full(self) -> set[PoolId]:
        """Return the members that have no room for another task, as far as the dispatcher can know."""
        capacity = self._setup.capacity if self._setup.known_capacity else None
        return (
            set()
            if capacity is None
            else {pool for pool, estimate in self.estimates().items() if estimate >= capacity}
        )

    def estimates(self) -> dict[PoolId, int]:
        """Return the estimates of all members."""
        return {pool: self.estimate(pool) for pool in self.members()}

    def tokens(self) -> tuple[int, int]:
        """Return the numbers of green and yellow tokens: of the pools that can take a task."""
        full = self.full()
        estimates = [estimate for pool, estimate in self.estimates().items() if pool not in full]
        green = sum(estimate < self.threshold for estimate in estimates)
        return green, sum(estimate <= self.threshold for estimate in estimates)

    def advance(self, now: float) -> None:
        """Let time pass: leases end, and pools fall silent."""
        self.now = now
        for tickets in self.open.values():
            for ticket in [ticket for ticket, expires in tickets.items() if expires <= now]:
                del tickets[ticket]
                self.expired += 1

    def receive(self, now: float, message: ToDispatcher, accepted: bool) -> None:
        """Write down a message. It counts unless a newer one came first.

        A pool that was silent for too long may be forgotten, so that it may start over with an old message.
        """
        self.advance(now)
        pool, number = message.report.pool, (message.incarnation, message.sequence)
        before = self.told.get(pool)
        newer = before is None or number > before.number
        silent = before is not None and before.heard + self._setup.silence <= now
        require(accepted or not newer, "a new message of {} was ignored: {}", pool, message)
        require(newer or silent or not accepted, "an old message of {} was taken for new: {}", pool, message)
        if not accepted:
            return
        left = message.kind is Kind.LEAVE
        self.told[pool] = Told(number, message.report.tasks, now, left)
        tickets = self.open.setdefault(pool, {})
        for ticket in list(tickets):
            if any(first <= ticket <= last for first, last in message.arrived):
                del tickets[ticket]

    def pick(self, now: float, key: Hashable, exclude: frozenset[PoolId], pick: Pick | None) -> bool:
        """Write down the answer to a request; return True if it was not a repetition.

        Check that it is the answer given before, or else a pool with the fewest tasks. Derive the threshold.
        """
        self.advance(now)
        time, answer = self._answers.get(key, (0.0, None))
        if answer is not None and time + self._setup.memory > now:
            require(pick == answer, "the same request {} got {}, then {}", key, answer, pick)
            return False
        full = self.full()
        able = {pool: estimate for pool, estimate in self.estimates().items() if pool not in full}
        left = {pool: estimate for pool, estimate in able.items() if pool not in exclude}
        if pick is None or not left:
            require(pick is None and not left, "{} was picked from {}", pick, left)
            return False
        fewest = min(left.values())
        require(left.get(pick.pool) == fewest, "{} has not the fewest tasks: {}", pick, left)
        above = fewest - self.threshold
        color = Color.GREEN if above < 0 else Color.YELLOW if above == 0 else None
        self._learn(len(able), *self.tokens())
        right = Pick(pick.pool, pick.ticket, now + self._setup.lease, color, self.threshold)
        require(pick == right, "{} should be {}", pick, right)
        self.open.setdefault(pick.pool, {})[pick.ticket] = pick.expires
        self._answers[key] = (now, pick)
        return True

    def release(self, now: float, pool: PoolId, ticket: int) -> None:
        """Write down that a client will not come."""
        self.advance(now)
        self.open.get(pool, {}).pop(ticket, None)

    def catch_up(self) -> None:
        """Write down that the dispatcher starts from the median of what pools with room for a task have."""
        full = self.full()
        able = sorted(estimate for pool, estimate in self.estimates().items() if pool not in full)
        if able:
            self.threshold = max(self.threshold, min(able[(len(able) - 1) // 2], self._highest))

    def drain(self, pool: PoolId) -> None:
        """Write down that the operator drains a pool."""
        self.drained.add(pool)

    def undrain(self, pool: PoolId) -> None:
        """Write down that the operator takes a drain back."""
        self.drained.discard(pool)

    def _learn(self, pools: int, green: int, yellow: int) -> None:
        """Move the threshold by the paper's rule."""
        step = int(yellow <= 1) - int(pools - green <= self._alpha * pools)
        if step and 0 <= self.threshold + step <= self._highest:
            self.threshold += step
