"""evenly keeps long-lived concurrent work evenly spread over many servers, without being told the load.

The names below load what they need when first used, so that `import evenly` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenly.advice.alpha import Advice, recommend_alpha
    from evenly.errors import InputError
    from evenly.sim import Comparison, Result, Scenario, Trajectory, compare, simulate, with_policies
    from evenly.sim.coupling.jsq import couple_with_jsq
    from evenly.sim.coupling.sizes import simulate_sizes
    from evenly.theory.equilibrium import Equilibrium, equilibrium
    from evenly.theory.exact.law import ExactLaw, exact_law
    from evenly.theory.fluid.path import FluidPath, fluid
    from evenly.theory.other_policies import peer_fixed_point
    from evenly.theory.stability.predict import Stability, predict_stability, stable_pools
    from evenly.theory.tuning import Expectations, expectations, settle_time_bound
    from evenly.workload.demand import Phase

__version__ = "0.1.0"

_HOMES = {
    "Advice": "evenly.advice.alpha",
    "Comparison": "evenly.sim",
    "Equilibrium": "evenly.theory.equilibrium",
    "ExactLaw": "evenly.theory.exact.law",
    "Expectations": "evenly.theory.tuning",
    "FluidPath": "evenly.theory.fluid.path",
    "InputError": "evenly.errors",
    "Phase": "evenly.workload.demand",
    "Result": "evenly.sim",
    "Scenario": "evenly.sim",
    "Stability": "evenly.theory.stability.predict",
    "Trajectory": "evenly.sim",
    "compare": "evenly.sim",
    "couple_with_jsq": "evenly.sim.coupling.jsq",
    "equilibrium": "evenly.theory.equilibrium",
    "exact_law": "evenly.theory.exact.law",
    "expectations": "evenly.theory.tuning",
    "fluid": "evenly.theory.fluid.path",
    "peer_fixed_point": "evenly.theory.other_policies",
    "predict_stability": "evenly.theory.stability.predict",
    "recommend_alpha": "evenly.advice.alpha",
    "settle_time_bound": "evenly.theory.tuning",
    "simulate": "evenly.sim",
    "simulate_sizes": "evenly.sim.coupling.sizes",
    "stable_pools": "evenly.theory.stability.predict",
    "with_policies": "evenly.sim",
}

__all__ = [
    "Advice",
    "Comparison",
    "Equilibrium",
    "ExactLaw",
    "Expectations",
    "FluidPath",
    "InputError",
    "Phase",
    "Result",
    "Scenario",
    "Stability",
    "Trajectory",
    "compare",
    "couple_with_jsq",
    "equilibrium",
    "exact_law",
    "expectations",
    "fluid",
    "peer_fixed_point",
    "predict_stability",
    "recommend_alpha",
    "settle_time_bound",
    "simulate",
    "simulate_sizes",
    "stable_pools",
    "with_policies",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'evenly' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
