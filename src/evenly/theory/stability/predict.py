"""The prediction: one chain per level, combined into the long-run distribution of the threshold."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from math import ceil, floor, fsum, inf

from evenly.errors import InputError
from evenly.inputs import accept_other_names, positive_number
from evenly.theory.balance import optimal_thresholds
from evenly.theory.inputs import exact_alpha, plain_alpha, positive_load
from evenly.theory.persistence import full_share
from evenly.theory.stability.chain import LevelChain, highest_level, never_falls, solve_level
from evenly.theory.stability.missing import extra_when_short
from evenly.theory.stability.result import Stability
from evenly.theory.stability.states import Fleet
from evenly.theory.tuning import check_alpha_for_pools

MAX_POOLS = 10**6
MAX_LOAD = 1000  # with few pools, the levels in reach grow with its root
MAX_TASKS = 10**7  # pools times load: time grows with its root
MAX_SEARCHED_LOAD, MAX_SEARCHED_TASKS = 100, 5 * 10**4  # the same, when many predictions are needed
MAX_LACKING = 0.4  # share of short pools that may lack several tasks, on average over falls
NEGLIGIBLE = 1e-12  # a smaller share of the time counts as never


@accept_other_names
def predict_stability(*, pools: int, load: float, alpha: float | str | Decimal) -> Stability:
    """Predict the long-run law of the learned threshold in a system of `pools` pools.

    The threshold rises from k - 1 to k at an arrival that finds at most one pool below k, and falls back at one
    that finds pools - floor(alpha * pools) of them. In between, the number of tasks that pools lack below k is a
    chain, together with the number of pools above k, whatever the threshold as long as it is at most k.

    Paper: Sec. 4.1, Props 2 and 3, Thms 3 and 4. Departs: the paper only treats the large-system limit,
    where the threshold comes to rest (Thm 6).
    """
    check_alpha_for_pools(alpha, pools)
    alpha, pools = plain_alpha(alpha), int(pools)
    load = positive_load(load)
    for name, value, most in (
        ("pools", pools, MAX_POOLS),
        ("load", load, MAX_LOAD),
        ("pools times load", pools * load, MAX_TASKS),
    ):
        if value > most:
            raise InputError(f"{name} must be at most {most} for a prediction, not {value:.12g}.")
    alpha_of_pools = exact_alpha(alpha) * pools
    rests_at = _rests_above(load, exact_alpha(alpha))
    return _combined(Fleet(pools, load, pools - floor(alpha_of_pools)), float(alpha), rests_at)


def _combined(fleet: Fleet, alpha: float, rests_at: int | None) -> Stability:
    """Combine the chains of all levels: each splits the time that is left between its level and all lower ones."""
    left = 1.0
    share: dict[int, float] = {}
    changes: dict[int, float] = {}  # rate of falls from the level, which is that of rises to it
    resync_rate = 0.0
    chain: LevelChain | None = None
    accurate = True
    for level in range(highest_level(fleet), 0, -1):
        if never_falls(fleet, level):
            share[level], left = left, 0.0
            break
        chain = solve_level(fleet, level, chain)
        share[level], changes[level] = left * chain.share_high, left * chain.fall_rate
        resync_rate += changes[level] * chain.messages
        accurate = accurate and (chain.accurate or left * min(chain.share_low, chain.share_high) < NEGLIGIBLE)
        left *= chain.share_low
        if left < NEGLIGIBLE:
            break
    else:
        share[0] = left
    optimal = optimal_thresholds(fleet.load)
    above = fsum(part for level, part in share.items() if level > optimal[-1])
    below = fsum(part for level, part in share.items() if level < optimal[0])
    leaving = changes.get(optimal[-1] + 1, 0.0) + changes.get(optimal[0], 0.0)
    seen = leaving > NEGLIGIBLE
    return Stability(
        pools=fleet.pools,
        load=fleet.load,
        alpha=alpha,
        optimum=floor(fleet.load),
        threshold_share={level: part for level, part in sorted(share.items()) if part >= NEGLIGIBLE},
        share_above=above,
        share_below=below,
        time_between_excursions=1 / leaving if seen else inf,
        excursion_length=(above + below) / leaving if seen else 0.0,
        change_rate=2 * fsum(changes.values()),
        resync_per_task=resync_rate / fleet.arrivals,
        also_rests_at=rests_at,
        reliable=accurate and _lacking_at_falls(fleet, changes) <= MAX_LACKING,
    )


def _lacking_at_falls(fleet: Fleet, falls: dict[int, float]) -> float:
    """Return the share of short pools that lack several tasks when the threshold falls, on average."""
    total = fsum(falls.values())
    if total < NEGLIGIBLE:
        return 0.0
    lacking = {level: extra_when_short(fleet.arrivals, level, fleet.cut)[1] for level in falls}
    return fsum(rate * lacking[level] for level, rate in falls.items()) / total


def most_searched(load: float) -> int:
    """Return the most pools that `stable_pools` tries (0 at too large a load): its predictions must be quick."""
    return 0 if positive_load(load) > MAX_SEARCHED_LOAD else min(MAX_POOLS, floor(MAX_SEARCHED_TASKS / load))


@accept_other_names
def stable_pools(*, load: float, alpha: float | str | Decimal, share: float = 0.01) -> int | None:
    """Find the fewest pools at and above which the threshold is off the optimum at most `share` of the time.

    None if no number of pools up to `most_searched(load)` is enough. No number is if, in the equilibrium of the
    threshold just above the optimum, at least a fraction alpha of the pools is at that threshold: then it is also
    at rest in the limit.

    The share jumps whenever one more pool must be short before the threshold falls. So the jumps are searched
    first, at both ends of the intervals between them, and then the interval before the first good one.

    Paper: Cor. 2, Ex. 1. Departs: the condition of Cor. 2, load / (floor(load) + 1) < alpha, suffices for the
    optimum to be the only threshold at rest; the equilibrium of Ex. 1 decides it.
    """
    load = positive_load(load)
    short = 1 - exact_alpha(alpha)
    share = positive_number("share", share, 1)
    if share == 1:
        raise InputError("share must be below 1, not 1.")
    most = most_searched(load)
    if most * short <= 1 or _rests_above(load, exact_alpha(alpha)) is not None:
        return None

    @cache
    def off(pools: int) -> float:
        return predict_stability(pools=pools, load=load, alpha=alpha).share_off

    def first(cut: int) -> int:
        return floor((cut - 1) / short) + 1

    def good(cut: int) -> bool:
        return all(off(min(pools, most)) <= share for pools in (first(cut), first(cut + 1) - 1))

    low, high = 1, 2
    while not good(high):
        if first(high + 1) > most:
            return None
        low, high = high, min(2 * high, ceil(most * short))
    low, high = _bisect(good, low, high)
    if low == 1 or off(first(high) - 1) > share:
        return first(high)
    return _bisect(lambda pools: off(pools) <= share, first(low), first(high) - 1)[1]


def _bisect(good: Callable[[int], bool], low: int, high: int) -> tuple[int, int]:
    """Return neighbours of which the higher is good and the lower is not, or is where the search began."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return low, high


def _rests_above(load: float, alpha: Fraction) -> int | None:
    """Return the threshold just above the optimum if it is at rest in the large-system limit."""
    level = optimal_thresholds(load)[-1] + 1
    return level if full_share(load, level) >= alpha else None
