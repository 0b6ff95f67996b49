"""Randomness is an argument: the caller of a policy supplies the uniform choice.

Nothing in this layer draws a random number of its own, so a run is repeated by repeating its choices.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Choose(Protocol):
    """Pick one candidate uniformly at random; `random.Random(seed).choice` is one such function."""

    def __call__(self, candidates: Sequence[T], /) -> T:
        """Return one of the candidates; there is always at least one."""
        ...
