"""Sets of ticket numbers, kept as ranges: tickets are numbered in a row, and nearly all of them arrive."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

from evenly.core.checks import MAX_EPOCH
from evenly.errors import InputError
from evenly.inputs import shown

MAX_RANGES = 64

Ranges = tuple[tuple[int, int], ...]
"""Pairs of a first and a last number, ascending and apart."""


class Tickets:
    """The numbers of the tickets that have arrived at a pool.

    There are at most `MAX_RANGES` ranges. When there would be more, the two lowest become one, as if the tickets
    between them had arrived: they are the oldest that are missing.
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
                del self._firsts[1], self._lasts[0]

    def forget_below(self, ticket: int) -> None:
        """Remove all numbers below this one."""
        whole = bisect_right(self._lasts, ticket - 1)
        del self._firsts[:whole], self._lasts[:whole]
        if self._firsts and self._firsts[0] < ticket:
            self._firsts[0] = ticket


def checked_ranges(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return the ranges that a message brings, or raise InputError if they are none."""
    try:
        pairs = tuple((first, last) for first, last in ranges)
        numbers = [number for pair in pairs for number in pair]
    except (TypeError, ValueError):
        pairs, numbers = (), [-1]
    right = all(type(number) is int and 0 <= number <= MAX_EPOCH for number in numbers) and all(
        first <= last for first, last in pairs
    )
    apart = right and all(low[1] + 1 < high[0] for low, high in pairwise(pairs))
    if not apart or len(pairs) > MAX_RANGES:
        raise InputError(
            f"arrived must be at most {MAX_RANGES} ranges of whole numbers, ascending and apart, "
            f"not {shown(ranges)}."
        )
    return pairs
