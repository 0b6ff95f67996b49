"""Placing a session among some of the pools, by the rules of the policy that balances all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evenly.core import Choose, Policy, SizedPolicy, ThresholdPolicy, UtilityThreshold
from evenly.live.balancer.pool import LivePool


class _AllBut:
    """All pools but some."""

    def __init__(self, pools: Sequence[LivePool]) -> None:
        self._pools = frozenset(pools)

    def __contains__(self, pool: object) -> bool:
        return pool not in self._pools


def join(policy: Policy, pool: LivePool, sessions: int) -> None:
    """Let a pool with these sessions join a policy, with its weight if the policy uses weights."""
    if isinstance(policy, UtilityThreshold | SizedPolicy):
        policy.join(pool, sessions, pool.weight)
    else:
        policy.join(pool, sessions)


def arrive_among(
    policy: Policy, members: Sequence[LivePool], choose: Choose, fresh: Callable[[], Policy] | None
) -> LivePool:
    """Place a task at one of these members, of which there is at least one.

    A policy with tokens prefers green ones, then yellow ones, of these members. Any other policy decides as it
    would without the other pools: `fresh` makes one that has no pools yet.
    """
    if isinstance(policy, ThresholdPolicy):
        pool = policy.arrive(choose, _AllBut(members))
    else:
        assert fresh is not None, "without `fresh`, only a policy with a threshold can pick among some pools"
        narrowed = fresh()
        for member in members:
            join(narrowed, member, member.sessions)
        pool = narrowed.arrive(choose)
        policy.record_arrival(pool)
    assert isinstance(pool, LivePool)
    return pool


def token_among(policy: ThresholdPolicy, members: Sequence[LivePool]) -> str:
    """Return the color of the token that a task for one of these members will use, or "any"."""
    held = {"green": policy.dispatcher.green, "yellow": policy.dispatcher.yellow}
    return next((color for color, tokens in held.items() if any(pool in tokens for pool in members)), "any")
