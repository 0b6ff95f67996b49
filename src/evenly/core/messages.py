"""What dispatcher and pools say to each other, and the count of it.

Messages only; when they are sent is the pool's business (`pool.py`), what they change is the dispatcher's
(`dispatcher.py`).
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

PoolId: TypeAlias = Hashable


class Color(Enum):
    """The two kinds of token: green for fewer than `threshold` tasks, yellow for at most `threshold`.

    Paper: Sec. 2.1.
    """

    GREEN = "green"
    YELLOW = "yellow"


@dataclass(frozen=True, slots=True)
class TokenMessage:
    """Pool to dispatcher: hold a token of this color for me, under the threshold of this epoch.

    Paper: Sec. 2.1. Departs: the epoch is ours; it tells the messages of an old threshold apart.
    """

    pool: PoolId
    color: Color
    epoch: int


@dataclass(frozen=True, slots=True)
class ThresholdNotice:
    """Dispatcher to pools: this is the threshold from now on. Every change starts a new epoch."""

    threshold: int
    epoch: int


@dataclass(slots=True)
class MessageCount:
    """How many messages were sent so far, by reason.

    `green` and `yellow` are those of the paper, at most two a task. `resync` are those that rebuild tokens
    after a threshold change, or announce the tokens of a pool that joins. `other` is what policies without
    tokens send.

    Paper: Sec. 2.1.
    """

    green: int = 0
    yellow: int = 0
    resync: int = 0
    other: int = 0

    def count(self, color: Color) -> None:
        """Count one message that a task gave rise to."""
        if color is Color.GREEN:
            self.green += 1
        else:
            self.yellow += 1
