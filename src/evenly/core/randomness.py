"""Randomness is an argument: the caller of a policy supplies the uniform choice.

Nothing in this package draws a random number, so repeating the choices repeats the run.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Choose(Protocol):
    """A function that picks one candidate uniformly at random, such as `random.Random(seed).choice`."""

    def __call__(self, candidates: Sequence[T], /) -> T:
        """Return one of the candidates. There is always at least one."""
        ...
