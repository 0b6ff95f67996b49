"""Stability of the threshold that a finite system learns.

The paper shows that the learned threshold comes to rest at the optimum in the large-system limit. With fewer
pools it keeps leaving the optimum. This package computes how often, for how long, and what that costs in messages.

For each level, one chain divides the time between the threshold at that level and all lower ones
(`chain`). Together they give the law of the threshold. Where it is `reliable`, in tests the total error of its
shares was at most 0.004, and that of rates at most 2 %, against exact laws of three to ten pools and simulations
of ten with a small alpha. Against simulations of more pools, the error was half a per cent, or less than the
simulation error. A share below 0.01 can be off by a tenth of itself.
"""

from evenly.theory.stability.predict import predict_stability, stable_pools
from evenly.theory.stability.result import Stability

__all__ = ["Stability", "predict_stability", "stable_pools"]
