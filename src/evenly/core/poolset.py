"""An ordered set with constant-time add, discard and positional access.

Uniform choice needs a sequence, tokens need a set: this is both. The order is part of the contract, because
compiled kernels reproduce it to make the same choices: `add` appends, and `discard` moves the last item into
the gap.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T", bound=Hashable)


class PoolSet(Sequence[T], Generic[T]):
    """A set of pools or tokens that can be indexed. The operations define the order."""

    __slots__ = ("_items", "_position")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items: list[T] = []
        self._position: dict[T, int] = {}
        for item in items:
            self.add(item)

    def add(self, item: T) -> None:
        """Append the item, unless it is in the set already."""
        if item not in self._position:
            self._position[item] = len(self._items)
            self._items.append(item)

    def discard(self, item: T) -> None:
        """Remove the item, if it is in the set, and move the last one into its place."""
        hole = self._position.pop(item, None)
        if hole is None:
            return
        last = self._items.pop()
        if hole < len(self._items):
            self._items[hole] = last
            self._position[last] = hole

    def exchange(self, item: T, position: int) -> None:
        """Swap the item with the one at `position`."""
        old = self._position[item]
        other = self._items[position]
        self._items[old], self._items[position] = other, item
        self._position[other], self._position[item] = old, position

    def without(self, items: Iterable[T]) -> "Prefix[T]":
        """Return a view of all items but these, which move to the end; those that are not in the set do not count.

        The order that follows depends on the order of the set, not on that of `items`.
        """
        left = len(self._items)
        for place in sorted((self._position[item] for item in items if item in self._position), reverse=True):
            left -= 1
            self.exchange(self._items[place], left)
        return self.prefix(left)

    def prefix(self, length: int) -> "Prefix[T]":
        """Return a view of the first `length` items, not a copy."""
        return Prefix(self._items, self._position, length)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, item: object) -> bool:
        try:
            return item in self._position
        except TypeError:  # not hashable, so not in the set
            return False

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __repr__(self) -> str:
        return f"PoolSet({self._items!r})"


class Prefix(Sequence[T], Generic[T]):
    """A view of the first items of a set. It follows changes of their order."""

    __slots__ = ("_items", "_length", "_position")

    def __init__(self, items: list[T], position: dict[T, int], length: int) -> None:
        self._items = items
        self._position = position
        self._length = min(length, len(items))

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        positions = range(self._length)[index]
        if isinstance(positions, range):
            return [self._items[position] for position in positions]
        return self._items[positions]

    def __len__(self) -> int:
        return self._length

    def __contains__(self, item: object) -> bool:
        try:
            return self._position.get(item, self._length) < self._length  # type: ignore[arg-type]
        except TypeError:  # not hashable, so not in the set
            return False
