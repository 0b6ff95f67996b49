"""Check a policy of your own: the rules that every policy of `evenly.core` follows.

`check_policy(MyPolicy)` tries histories of joins, leaves, arrivals and departures, the shortest first. It follows
all choices of an arrival, so the probabilities that it compares are exact. It needs the standard library only.
"""

from evenly.testing.check import check_policy
from evenly.testing.subject import PolicyError

__all__ = ["PolicyError", "check_policy"]
