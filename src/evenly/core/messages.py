"""The messages between dispatcher and pools, and their count.

The pool decides when to send one (`pool.py`), the dispatcher what it changes (`dispatcher.py`).
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from evenly.core.checks import MAX_COUNT, MAX_EPOCH
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
class Report:
    """Pool to dispatcher: I have this many tasks, and I know of the threshold changes up to this epoch.

    `color` is the token that the report brings; None if the dispatcher can do without, as in an acknowledgement.

    Paper: Sec. 2.1. Departs: the paper's message is the color alone. A number of tasks means the same under every
    threshold, so that a report is never out of date because the threshold has changed meanwhile.
    """

    pool: PoolId
    tasks: int
    epoch: int
    color: Color | None

    def check(self) -> None:
        """Raise InputError if no pool can have sent this. For the receiver: a report is made for every task."""
        tasks, epoch, color = self.tasks, self.epoch, self.color
        if type(tasks) is not int or not 0 <= tasks <= MAX_COUNT:
            whole_number(f"tasks of pool {shown(self.pool)}", tasks, 0, MAX_COUNT)
        if type(epoch) is not int or not 0 <= epoch <= MAX_EPOCH:
            whole_number(f"epoch of pool {shown(self.pool)}", epoch, 0, MAX_EPOCH)
        if color is not None and not isinstance(color, Color):
            raise InputError(f"color must be a Color or None, not {shown(color)}.")


@dataclass(frozen=True, slots=True)
class ThresholdNotice:
    """Dispatcher to pools: this is the threshold from now on. Every change starts a new epoch."""

    threshold: int
    epoch: int

    def __post_init__(self) -> None:
        """Check the numbers."""
        object.__setattr__(self, "threshold", whole_number("threshold", self.threshold, 0, MAX_COUNT))
        object.__setattr__(self, "epoch", whole_number("epoch", self.epoch, 0, MAX_EPOCH))


@dataclass(slots=True)
class MessageCount:
    """The number of messages sent so far, by reason.

    `green` and `yellow` are the paper's, at most two per task. `resync` counts the answers to a threshold change,
    and the first reports of pools, that bring a token which the dispatcher lacks; `acknowledgements` counts those
    that bring none. `other` counts the messages of policies without tokens.

    Paper: Sec. 2.1.
    """

    green: int = 0
    yellow: int = 0
    resync: int = 0
    acknowledgements: int = 0
    other: int = 0

    def count(self, color: Color) -> None:
        """Count one message that a task caused."""
        if color is Color.GREEN:
            self.green += 1
        elif color is Color.YELLOW:
            self.yellow += 1
        else:
            raise InputError(f"color must be a Color, not {shown(color)}.")

    def count_answer(self, report: Report) -> None:
        """Count the answer to a threshold change, or the first report of a pool."""
        if report.color is None:
            self.acknowledgements += 1
        else:
            self.resync += 1
