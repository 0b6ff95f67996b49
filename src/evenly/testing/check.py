"""`check_policy`: all rules, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from evenly.errors import InputError
from evenly.inputs import shown, true_or_false, whole_number
from evenly.own_policy import check_class, takes_capacity
from evenly.testing.chances import check_chances
from evenly.testing.elsewhere import check_elsewhere
from evenly.testing.histories import check_histories, first_fault
from evenly.testing.states import States
from evenly.testing.subject import Subject

_CAPACITY = 2  # for a class that takes one


def check_policy(
    policy: Callable[..., Any], *, uniform: bool = True, memory: bool = False, capacity: int | None = None
) -> None:
    """Raise PolicyError if the policy breaks a rule that simulations rely on.

    policy: the class, or a function that returns a new policy.
    uniform: whether pools in the same state must have the same chance of a task (default: True). False suits a
        policy that takes pools in turn, or by their names. Chances are then not compared at all.
    memory: whether the policy remembers more than the tasks of each pool, such as the last pick or a threshold
        that it learns (default: False). True compares fewer chances: see below.
    capacity: tasks that fit into a pool, if the policy knows a limit (default: no limit; a class whose constructor
        takes a `capacity` is also checked with 2). A policy that loses tasks on purpose needs one.

    The rules: joins, leaves, arrivals and departures may come in any order and raise nothing. A task goes to a
    pool that is there, or is lost; without pools it is lost, and only then unless there is a capacity. The same
    choices lead to the same pools, in every process, so that all randomness is the caller's; and two policies
    share nothing. If the policy has `tasks`, a function or a dictionary, it counts the tasks of each pool. A
    policy that knows the capacity sends no task to a full pool.

    Without a memory, the chances of the next task depend on the tasks of the pools alone: after any history, they
    are those of pools that have just joined with the same tasks. With a memory, they depend on the history, so
    that departures cannot be checked. Pools that joined with the same tasks must then have the same chances,
    averaged over all choices before.
    """
    uniform, memory = true_or_false("uniform", uniform), true_or_false("memory", memory)
    if capacity is not None:
        capacity = whole_number("capacity", capacity, 1, 1000)
    if not callable(policy):
        raise InputError(f"policy must be a class, or a function that returns a policy, not {shown(policy)}.")
    limits = [capacity]
    if isinstance(policy, type):
        check_class(policy)
        limits += [_CAPACITY] if capacity is None and takes_capacity(policy) else []
    for limit in limits:
        subject = Subject(policy, limit)
        check_histories(subject, partial(first_fault, subject))
        if uniform and not memory:
            check_histories(subject, States(subject).fault)
    if uniform and memory:
        check_chances(Subject(policy, capacity))
    check_elsewhere(Subject(policy, capacity))
