"""`check_policy`: all rules, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evenly.errors import InputError
from evenly.inputs import shown, true_or_false, whole_number
from evenly.own_policy import check_class, takes_capacity
from evenly.testing.chances import check_chances
from evenly.testing.histories import check_histories
from evenly.testing.subject import Subject

_CAPACITY = 2  # for a class that takes one


def check_policy(policy: Callable[..., Any], *, uniform: bool = True, capacity: int | None = None) -> None:
    """Raise PolicyError if the policy breaks a rule that simulations rely on.

    policy: the class, or a function that returns a new policy.
    uniform: whether pools in the same state must have the same chance of a task (default: True). False suits a
        policy that takes pools in turn, or by their names.
    capacity: tasks that fit into a pool, if the policy knows a limit (default: no limit; a class whose constructor
        takes a `capacity` is also checked with 2).

    The rules: joins, leaves, arrivals and departures may come in any order and raise nothing. A task goes to a
    pool that is there, or is lost; without pools it is lost. The same choices lead to the same pools, so that all
    randomness is the caller's, and two policies share nothing. If the policy has `tasks`, a function or a
    dictionary, it counts the tasks of each pool. A policy that knows the capacity sends no task to a full pool.
    """
    uniform = true_or_false("uniform", uniform)
    if capacity is not None:
        capacity = whole_number("capacity", capacity, 1, 1000)
    if not callable(policy):
        raise InputError(f"policy must be a class, or a function that returns a policy, not {shown(policy)}.")
    limits = [capacity]
    if isinstance(policy, type):
        check_class(policy)
        limits += [_CAPACITY] if capacity is None and takes_capacity(policy) else []
    for limit in limits:
        check_histories(Subject(policy, limit))
    if uniform:
        check_chances(Subject(policy, capacity))
