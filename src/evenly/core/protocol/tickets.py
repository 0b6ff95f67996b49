"""Sets of ticket numbers, kept as ranges: tickets are numbered in a row, and nearly all of them arrive."""

from bisect import bisect_right

from evenly.core.checks import MAX_NUMBER
from evenly.errors import InputError
from evenly.inputs import shown

MAX_RANGES = 64

Ranges = tuple[tuple[int, int], ...]
"""Pairs of a first and a last number, ascending and apart."""


class Tickets:
    """The numbers of the tickets that have arrived at a pool.

    There are at most `MAX_RANGES` ranges. When there would be more, the lowest is forgotten. Earlier messages have
    most likely reported it. If not, its places stay taken until their leases end, which errs on the safe side.
    """

    __slots__ = ("_firsts", "_lasts")

    def __init__(self, ranges: Ranges = ()) -> None:
        self._firsts = [first for first, _ in ranges]
        self._lasts = [last for _, last in ranges]

    @property
    def ranges(self) -> Ranges:
        """The numbers, as ranges."""
        return tuple(zip(self._firsts, self._lasts, strict=True))

    def __contains__(self, ticket: int) -> bool:
        place = bisect_right(self._firsts, ticket)
        return place > 0 and ticket <= self._lasts[place - 1]

    def add(self, ticket: int) -> None:
        """Add a number."""
        if ticket in self:
            return
        place = bisect_right(self._firsts, ticket)
        after_range = place > 0 and self._lasts[place - 1] == ticket - 1
        before_range = place < len(self._firsts) and self._firsts[place] == ticket + 1
        if after_range and before_range:
            self._lasts[place - 1] = self._lasts.pop(place)
            del self._firsts[place]
        elif after_range:
            self._lasts[place - 1] = ticket
        elif before_range:
            self._firsts[place] = ticket
        else:
            self._firsts.insert(place, ticket)
            self._lasts.insert(place, ticket)
            if len(self._firsts) > MAX_RANGES:
                del self._firsts[0], self._lasts[0]

    def forget_below(self, ticket: int) -> None:
        """Remove all numbers below this one."""
        whole = bisect_right(self._lasts, ticket - 1)
        del self._firsts[:whole], self._lasts[:whole]
        if self._firsts and self._firsts[0] < ticket:
            self._firsts[0] = ticket


def check_ranges(ranges: Ranges) -> None:
    """Raise InputError if these are not the ranges of a `Tickets`."""
    if not isinstance(ranges, tuple) or len(ranges) > MAX_RANGES or not _ascending(ranges):
        raise InputError(
            f"arrived must be at most {MAX_RANGES} ranges of whole numbers, ascending and apart, "
            f"not {shown(ranges)}."
        )


def _ascending(ranges: tuple[object, ...]) -> bool:
    end = -2  # of the range before
    for pair in ranges:
        if not isinstance(pair, tuple) or [type(number) for number in pair] != [int, int]:
            return False
        first, last = pair
        if not end + 1 < first <= last <= MAX_NUMBER:
            return False
        end = last
    return True
