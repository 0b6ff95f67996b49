"""A pool of its own size: its green and yellow thresholds can coincide."""

from __future__ import annotations

from dataclasses import dataclass

from evenly.core.checks import MAX_COUNT, nothing_to_depart
from evenly.core.messages import Color, Report, ThresholdNotice
from evenly.core.pool import Pool
from evenly.inputs import whole_number


@dataclass(frozen=True, slots=True)
class SizedNotice(ThresholdNotice):
    """Dispatcher to pools of one size: green below `threshold` tasks, yellow below `upper`."""

    upper: int

    def __post_init__(self) -> None:
        ThresholdNotice.__post_init__(self)
        low = self.threshold
        object.__setattr__(self, "upper", whole_number("upper", self.upper, low, min(low + 1, MAX_COUNT)))


class SizedPool(Pool):
    """A pool that is sent two thresholds. If `upper` is one more than `threshold`, it behaves as the paper's."""

    __slots__ = ()

    def depart(self) -> Report | None:
        """Finish a task. If the pool turns green or yellow by this, announce it."""
        if self.tasks == 0:
            raise nothing_to_depart(self.pool_id)
        self.tasks -= 1
        lower, upper = _bounds(self._notice)
        if self.tasks == lower - 1:
            return self._report(Color.GREEN)
        return self._report(Color.YELLOW) if lower <= self.tasks == upper - 1 else None

    def rethreshold(self, notice: ThresholdNotice) -> Report | None:
        """Adopt the thresholds and return the answer; None if the notice is late and a newer one came first.

        The dispatcher knows that a pool with a token is green at higher thresholds. At lower ones, it knows that a
        green pool is yellow at most one task lower, and still green if `threshold` has not changed.
        """
        if notice.epoch <= self._notice.epoch:
            return None
        (old_lower, old_upper), (lower, upper) = _bounds(self._notice), _bounds(notice)
        self._notice = notice
        if (lower, upper) > (old_lower, old_upper):
            known = self.tasks < old_upper
        elif lower == old_lower:
            known = self.tasks < lower and upper < old_upper
        else:
            known = self.tasks == lower == old_lower - 1
        return self._report(None if known else self._token)

    @property
    def _token(self) -> Color | None:
        lower, upper = _bounds(self._notice)
        return Color.GREEN if self.tasks < lower else Color.YELLOW if self.tasks < upper else None


def _bounds(notice: ThresholdNotice) -> tuple[int, int]:
    return notice.threshold, notice.upper if isinstance(notice, SizedNotice) else notice.threshold + 1
