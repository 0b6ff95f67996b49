"""Make a policy from its name."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import cast

from evenly.core.baselines import JoinShortestQueue, PowerOfD, RandomRouting, RoundRobin, StaleReports
from evenly.core.learning import LearningRule
from evenly.core.policy import Policy
from evenly.core.sized_baselines import GreedyUtility, WeightedLeast, WeightedRoundRobin
from evenly.core.threshold import ThresholdPolicy
from evenly.core.token_baselines import JoinBelowThreshold, JoinIdleQueue, Pull
from evenly.core.utility_threshold import UtilityThreshold
from evenly.errors import InputError
from evenly.policies import UTILITY, check_parameters, find_policy
from evenly.workload.pools import DEFAULT_UTILITY

DEFAULT_SAMPLE_SIZE = 2


def make_policy(
    name: str,
    *,
    threshold: int | None = None,
    alpha: float | str | Decimal | None = None,
    sample_size: int | None = None,
    capacity: int | None = None,
    utility: str | None = None,
) -> Policy:
    """Make the policy of this name, without pools yet.

    `threshold` is where the threshold policy starts (default: 0); without `alpha` it stays there. The policy jbt
    needs one. Power-of-d samples `sample_size` pools (default: 2). Pull needs a `capacity`. The policies for pools
    of different sizes take no capacity; `utility` is what two of them increase (default: log). A parameter that
    the policy does not take is rejected.
    """
    info = find_policy(name)
    check_parameters([name], {"threshold": threshold, "alpha": alpha, "sample_size": sample_size})
    if info.sized and capacity is not None:
        raise InputError(f"The policy {name} takes no capacity.")
    if utility is not None and not info.utility:
        raise InputError(f"utility is for policy {' or '.join(UTILITY)}, not {name}.")
    if info.needs_capacity and capacity is None:
        raise InputError(f"The policy {name} needs a capacity: it holds one token for each free slot.")
    if name == "jbt" and threshold is None:
        raise InputError("The policy jbt needs a threshold.")
    measure = DEFAULT_UTILITY if utility is None else utility
    rule = None if alpha is None else LearningRule(alpha)
    makers: dict[str, Callable[[], Policy]] = {
        "threshold": lambda: ThresholdPolicy(0 if threshold is None else threshold, rule, capacity),
        "jsq": lambda: JoinShortestQueue(capacity),
        "power-of-d": lambda: PowerOfD(DEFAULT_SAMPLE_SIZE if sample_size is None else sample_size, capacity),
        "random": lambda: RandomRouting(capacity),
        "round-robin": lambda: RoundRobin(capacity),
        "jiq": lambda: JoinIdleQueue(capacity),
        "jbt": lambda: JoinBelowThreshold(cast(int, threshold), capacity),
        "pull": lambda: Pull(cast(int, capacity)),
        "stale-reports": lambda: StaleReports(capacity),
        "greedy-utility": lambda: GreedyUtility(measure),
        "threshold-utility": lambda: UtilityThreshold(0 if threshold is None else threshold, rule, measure),
        "weighted-least": WeightedLeast,
        "weighted-round-robin": WeightedRoundRobin,
    }
    return makers[name]()
