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
class Report:
    """Pool to dispatcher: I have this many tasks.

    `color` is the token that the report brings, None if there is none.

    Paper: Sec. 2.1. Departs: the paper's message is the color alone. A number of tasks means the same under every
    threshold, so a report does not go out of date when the threshold changes.
    """

    pool: PoolId
    tasks: int
    color: Color | None

    def check(self) -> None:
        """Raise InputError if no pool can have sent this. For the receiver: a report is made for every task."""
        tasks, color = self.tasks, self.color
        if type(tasks) is not int or not 0 <= tasks <= MAX_COUNT:
            whole_number(f"tasks of pool {shown(self.pool)}", tasks, 0, MAX_COUNT)
        if color is not None and not isinstance(color, Color):
            raise InputError(f"color must be a Color or None, not {shown(color)}.")


@dataclass(slots=True)
class MessageCount:
    """The number of messages sent so far, by reason.

    `green` and `yellow` are the paper's, at most two per task. `resync` counts the tokens that the dispatcher
    lacks when a pool joins or the threshold changes. `other` counts the messages of policies without tokens.

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
