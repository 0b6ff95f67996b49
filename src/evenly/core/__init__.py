"""The paper's two roles, dispatcher and pool, as plain state machines, and the baseline policies.

This package holds the rules: which pool gets a task, which messages are sent, how the threshold is learned. They
decide and return. The caller carries the messages and supplies the random choices.

It must not contain a clock, a random number generator, an await, a socket or numpy. Standard library only.
"""

from evenly.core.baselines import JoinShortestQueue, PowerOfD, RandomRouting, RoundRobin, StaleReports
from evenly.core.dispatcher import Dispatcher
from evenly.core.learning import LearningRule
from evenly.core.make import make_policy
from evenly.core.messages import Color, MessageCount, PoolId, Report
from evenly.core.policy import Policy
from evenly.core.pool import Pool
from evenly.core.poolset import PoolSet
from evenly.core.randomness import Choose
from evenly.core.returning import takes_back
from evenly.core.sized_baselines import GreedyUtility, SizedPolicy, WeightedLeast, WeightedRoundRobin
from evenly.core.threshold import ThresholdPolicy
from evenly.core.token_baselines import JoinBelowThreshold, JoinIdleQueue, Pull
from evenly.core.utility_threshold import UtilityThreshold

__all__ = [
    "Choose",
    "Color",
    "Dispatcher",
    "GreedyUtility",
    "JoinBelowThreshold",
    "JoinIdleQueue",
    "JoinShortestQueue",
    "LearningRule",
    "MessageCount",
    "Policy",
    "Pool",
    "PoolId",
    "PoolSet",
    "PowerOfD",
    "Pull",
    "RandomRouting",
    "Report",
    "RoundRobin",
    "SizedPolicy",
    "StaleReports",
    "ThresholdPolicy",
    "UtilityThreshold",
    "WeightedLeast",
    "WeightedRoundRobin",
    "make_policy",
    "takes_back",
]
