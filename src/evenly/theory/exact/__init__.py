"""The exact stationary distribution of a small system.

`law` has the result and the entry point, `chain` states and events, `solve` the balance equations, `inputs` the
checks.
"""

from evenly.theory.exact.law import ExactLaw, exact_law

__all__ = ["ExactLaw", "exact_law"]
