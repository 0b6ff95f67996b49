"""How long a message takes, in mean task times: always the same time, or an exponential time for each message."""

from __future__ import annotations

from dataclasses import dataclass

from evenly.errors import InputError
from evenly.inputs import number_from, plain_number, shown, true_or_false

MAX_DELAY = 1000.0
_EXPONENTIAL = "exponential:"


@dataclass(frozen=True)
class Delay:
    """The time that a message takes: `mean`, or exponential with that mean."""

    mean: float
    exponential: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", number_from("A delay's mean", self.mean, 0, MAX_DELAY))
        object.__setattr__(self, "exponential", true_or_false("exponential", self.exponential))

    @property
    def written(self) -> float | str:
        """The delay as a scenario takes it: a number, or a text if it is exponential."""
        return str(self) if self.exponential else self.mean

    def __str__(self) -> str:
        return f"{_EXPONENTIAL if self.exponential else ''}{self.mean:.12g}"


def parse_delay(delay: object) -> Delay:
    """Return the delay of a number such as 0.01 or a text such as "0.01" or "exponential:0.01"."""
    if isinstance(delay, Delay):
        return delay
    number: object = delay
    exponential = False
    if isinstance(delay, str):
        exponential = delay.startswith(_EXPONENTIAL)
        written = delay.removeprefix(_EXPONENTIAL)
        number = plain_number(written)
    try:
        return Delay(number, exponential)  # type: ignore[arg-type]
    except InputError:
        raise InputError(
            f"delay must be a number from 0 to {MAX_DELAY:g}, or exponential: and such a number, "
            f"not {shown(delay)}."
        ) from None
