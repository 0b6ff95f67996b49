"""The exact stationary distribution of a small system.

`law` has the result and the entry point, `chain` states and events, `solve` the balance equations, `averages` what
follows from them, `inputs` the checks.
"""

from evenly.theory.exact.law import ExactLaw, solve_exact

__all__ = ["ExactLaw", "solve_exact"]
