"""Mathematical predictions: the large-system limit, and the exact law of small systems.

Never imports `evenly.core` or `evenly.sim`: agreement with them is evidence only because no code is shared.
The names below load when first used; their types are in `__init__.pyi`.
"""

from evenly.lazy import front_door

_HOMES = {
    "evenly.theory.balance": "balanced_occupancy exactly optimal_thresholds",
    "evenly.theory.diffusion.fractional": "OrnsteinUhlenbeck ornstein_uhlenbeck",
    "evenly.theory.diffusion.limit": "predict_diffusion",
    "evenly.theory.diffusion.result": "DiffusionLimit",
    "evenly.theory.diffusion.whole": "Reflected ReflectedPaths reflected",
    "evenly.theory.diffusion.whole_law": "StationarySummary stationary_summary",
    "evenly.theory.equilibrium": "Equilibrium predict_equilibrium threshold_kind",
    "evenly.theory.exact.law": "ExactLaw solve_exact",
    "evenly.theory.fluid.mass": "mass_after tail_mass_bound total_mass",
    "evenly.theory.fluid.path": "FluidPath",
    "evenly.theory.fluid.predict": "predict_fluid",
    "evenly.theory.fluid.other_policies": "power_of_d_fluid random_fluid",
    "evenly.theory.fluid.policy_path": "PolicyPath",
    "evenly.theory.persistence": "can_settle_above full_share_above loads_settling_above",
    "evenly.theory.settling": "Settling predict_settling",
    "evenly.theory.stability.predict": "predict_stability stable_pools",
    "evenly.theory.stability.result": "Stability",
    "evenly.theory.tuning": (
        "alpha_min is_optimal settle_time_bound settled_distance_bound settled_threshold suggested_alpha"
    ),
    "evenly.theory.utility": "BestUtility predict_best_utility",
}

__getattr__, __dir__, __all__ = front_door(__name__, _HOMES)
