"""How stable is the threshold that a finite system learns?

The paper shows that the learned threshold comes to rest at the optimum in the large-system limit. With fewer
it leaves the optimum again and again: here is how often, for how long, and what that costs in messages.

For each level, one chain divides the time between the threshold at that level and all lower ones
(`chain`). Together they give the law of the threshold. Where it is `reliable`, its shares were seen to
be off by up to 0.004 of all time in all, and rates by up to 2 %, against exact laws of three to ten pools and
simulations of ten with a small alpha; against simulations of more pools, by half a per cent or less than these can
tell. A share below 0.01 can be off by a tenth of itself.
"""

from evenly.theory.stability.predict import predict_stability, stable_pools
from evenly.theory.stability.result import Stability

__all__ = ["Stability", "predict_stability", "stable_pools"]
