"""The checks and errors that policies share, so that they read the same everywhere."""

from collections.abc import Hashable, Sequence
from typing import TypeVar

from evenly.core.randomness import Choose
from evenly.errors import InputError
from evenly.inputs import shown, whole_number

MAX_COUNT = 10**12  # tasks, pools, thresholds: far beyond any system, and far below the end of 64 bits
MAX_NUMBER = 2**63 - 1

T = TypeVar("T")


def check_capacity(capacity: int | None) -> int | None:
    """Return the capacity, or raise InputError unless a pool can hold a task; None means no limit."""
    return None if capacity is None else whole_number("capacity", capacity, 1, MAX_COUNT)


def check_tasks(pool: Hashable, tasks: int, capacity: int | None) -> int:
    """Return the number of tasks, or raise InputError unless the pool can hold them."""
    name = f"tasks of pool {shown(pool)}"
    if capacity is None:
        return whole_number(name, tasks, 0, MAX_COUNT)
    return whole_number(name, tasks, 0, capacity, why="the capacity")


def check_pool(pool: Hashable) -> None:
    """Raise InputError unless the value can name a pool. None cannot: it stands for a lost task."""
    try:
        hash(pool)
    except TypeError:
        pool = None
    if pool is None:
        raise InputError("A pool must be named by a hashable value other than None, such as a string.")


def chosen(choose: Choose, candidates: Sequence[T]) -> T:
    """Let the caller choose a candidate, and return it; raise InputError if it is not one."""
    try:
        picked = choose(candidates)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise  # from inside the function, which is the caller's business
        raise InputError(f"choose must be a function of the candidates, not {shown(choose)}.") from None
    if picked not in candidates:
        raise InputError(f"choose must return one of the candidates, not {shown(picked)}.")
    return picked


def already_member(pool: Hashable) -> InputError:
    """Return the error for joining twice."""
    return InputError(f"Pool {shown(pool)} is already a member; call leave before it joins again.")


def not_member(pool: object) -> InputError:
    """Return the error for an event at a pool that is not a member."""
    return InputError(f"Pool {shown(pool)} is not a member; call join first.")


def no_room(pool: Hashable, capacity: int | None) -> InputError:
    """Return the error for a task beyond the capacity."""
    return InputError(f"Pool {shown(pool)} cannot take a task: it is at its capacity of {capacity}.")


def nothing_to_depart(pool: Hashable) -> InputError:
    """Return the error for a departure from an empty pool."""
    return InputError(f"No task can depart from pool {shown(pool)}: it has none.")
