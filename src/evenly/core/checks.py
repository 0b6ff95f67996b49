"""The refusals that policies share, so that they read the same everywhere."""

from evenly.core.messages import PoolId
from evenly.errors import InputError


def check_capacity(capacity: int | None) -> None:
    """Refuse a pool that could not hold a single task; None stands for no limit."""
    if capacity is not None and capacity < 1:
        raise InputError(f"The capacity of a pool must be at least 1, not {capacity}.")


def check_tasks(pool: PoolId, tasks: int, capacity: int | None) -> None:
    """Refuse a number of tasks that the pool cannot hold."""
    if tasks < 0:
        raise InputError(f"Pool {pool!r} cannot have {tasks} tasks; give 0 or more.")
    if capacity is not None and tasks > capacity:
        raise InputError(f"Pool {pool!r} cannot have {tasks} tasks; its capacity is {capacity}.")


def already_member(pool: PoolId) -> ValueError:
    """Return the error for joining twice."""
    return ValueError(f"Pool {pool!r} has joined already; let it leave before it joins again.")


def not_member(pool: PoolId) -> ValueError:
    """Return the error for an event at a pool that is not there."""
    return ValueError(f"Pool {pool!r} is not a member; let it join first.")


def no_room(pool: PoolId, capacity: int | None) -> ValueError:
    """Return the error for one task too many."""
    return ValueError(f"Pool {pool!r} cannot take a task; its {capacity} places are taken.")


def nothing_to_depart(pool: PoolId) -> ValueError:
    """Return the error for a departure from an empty pool."""
    return ValueError(f"No task can depart from pool {pool!r}; it has none.")
