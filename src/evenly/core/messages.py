"""The messages between dispatcher and pools, and their count.

The pool decides when to send one (`pool.py`), the dispatcher what it changes (`dispatcher.py`).
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from evenly.core.checks import MAX_COUNT
from evenly.errors import InputError
from evenly.inputs import shown, whole_number

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

    Paper: Sec. 2.1. Departs: the epoch is ours; it identifies messages about an old threshold.
    """

    pool: PoolId
    color: Color
    epoch: int


@dataclass(frozen=True, slots=True)
class ThresholdNotice:
    """Dispatcher to pools: this is the threshold from now on. Every change starts a new epoch."""

    threshold: int
    epoch: int

    def __post_init__(self) -> None:
        """Check the numbers. A token message is checked when it is received: it is made for every task."""
        for name in ("threshold", "epoch"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), 0, MAX_COUNT))


@dataclass(slots=True)
class MessageCount:
    """The number of messages sent so far, by reason.

    `green` and `yellow` are the paper's, at most two per task. `resync` messages rebuild tokens after a threshold
    change, or announce the tokens of a pool that joins. `other` counts the messages of policies without tokens.

    Paper: Sec. 2.1.
    """

    green: int = 0
    yellow: int = 0
    resync: int = 0
    other: int = 0

    def count(self, color: Color) -> None:
        """Count one message that a task caused."""
        if color is Color.GREEN:
            self.green += 1
        elif color is Color.YELLOW:
            self.yellow += 1
        else:
            raise InputError(f"color must be a Color, not {shown(color)}.")
