"""Every sequence of choices in turn, each with its exact probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from evenly.testing.subject import size_of

T = TypeVar("T")


class TooManyError(Exception):
    """There are more paths than may be followed."""


@dataclass
class Paths:
    """A choice that takes another path of candidates each time, at most `most` paths."""

    most: int
    path: list[tuple[int, int]] = field(default_factory=list)  # the choice and the number of candidates
    depth: int = 0
    followed: int = 0

    def __call__(self, candidates: Sequence[T], /) -> T:
        """Return the candidate on this path."""
        if self.depth == len(self.path):
            self.path.append((0, size_of(candidates)))
        index, _ = self.path[self.depth]
        self.depth += 1
        return candidates[index]

    @property
    def chance(self) -> Fraction:
        """The probability of the choices so far."""
        product = 1
        for _, size in self.path[: self.depth]:
            product *= size
        return Fraction(1, product)

    def next_path(self) -> bool:
        """Go to the next path; return False after the last."""
        self.depth = 0
        self.followed += 1
        if self.followed > self.most:
            raise TooManyError
        while self.path:
            index, size = self.path.pop()
            if index + 1 < size:
                self.path.append((index + 1, size))
                return True
        return False
