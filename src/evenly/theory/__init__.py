"""Predictions by mathematics: the large-system limit, and the exact law of small systems.

Never imports `evenly.core` or `evenly.sim`: agreement is evidence only while they are apart. The names below load
what they need when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenly.theory.balance import balanced_occupancy as balanced_occupancy
    from evenly.theory.balance import exactly as exactly
    from evenly.theory.balance import optimal_thresholds as optimal_thresholds
    from evenly.theory.diffusion.fractional import OrnsteinUhlenbeck as OrnsteinUhlenbeck
    from evenly.theory.diffusion.fractional import ornstein_uhlenbeck as ornstein_uhlenbeck
    from evenly.theory.diffusion.limit import predict_diffusion as predict_diffusion
    from evenly.theory.diffusion.result import DiffusionLimit as DiffusionLimit
    from evenly.theory.diffusion.whole import Reflected as Reflected
    from evenly.theory.diffusion.whole import ReflectedPaths as ReflectedPaths
    from evenly.theory.diffusion.whole import reflected as reflected
    from evenly.theory.diffusion.whole_law import StationarySummary as StationarySummary
    from evenly.theory.diffusion.whole_law import stationary_summary as stationary_summary
    from evenly.theory.equilibrium import Equilibrium as Equilibrium
    from evenly.theory.equilibrium import predict_equilibrium as predict_equilibrium
    from evenly.theory.equilibrium import threshold_kind as threshold_kind
    from evenly.theory.exact.law import ExactLaw as ExactLaw
    from evenly.theory.exact.law import solve_exact as solve_exact
    from evenly.theory.fluid.mass import mass_after as mass_after
    from evenly.theory.fluid.mass import tail_mass_bound as tail_mass_bound
    from evenly.theory.fluid.mass import total_mass as total_mass
    from evenly.theory.fluid.mass import unfilled_from as unfilled_from
    from evenly.theory.fluid.path import FluidPath as FluidPath
    from evenly.theory.fluid.predict import predict_fluid as predict_fluid
    from evenly.theory.other_policies import power_of_d_fluid as power_of_d_fluid
    from evenly.theory.other_policies import random_fluid as random_fluid
    from evenly.theory.policy_path import PolicyPath as PolicyPath
    from evenly.theory.settling import Settling as Settling
    from evenly.theory.settling import predict_settling as predict_settling
    from evenly.theory.stability.predict import predict_stability as predict_stability
    from evenly.theory.stability.predict import stable_pools as stable_pools
    from evenly.theory.stability.result import Stability as Stability
    from evenly.theory.tuning import alpha_min as alpha_min
    from evenly.theory.tuning import is_optimal as is_optimal
    from evenly.theory.tuning import settle_time_bound as settle_time_bound
    from evenly.theory.tuning import settled_threshold as settled_threshold
    from evenly.theory.tuning import suggested_alpha as suggested_alpha

_HOMES = {
    "balance": "balanced_occupancy exactly optimal_thresholds",
    "diffusion.fractional": "OrnsteinUhlenbeck ornstein_uhlenbeck",
    "diffusion.limit": "predict_diffusion",
    "diffusion.result": "DiffusionLimit",
    "diffusion.whole": "Reflected ReflectedPaths reflected",
    "diffusion.whole_law": "StationarySummary stationary_summary",
    "equilibrium": "Equilibrium predict_equilibrium threshold_kind",
    "exact.law": "ExactLaw solve_exact",
    "fluid.mass": "mass_after tail_mass_bound total_mass unfilled_from",
    "fluid.path": "FluidPath",
    "fluid.predict": "predict_fluid",
    "other_policies": "power_of_d_fluid random_fluid",
    "policy_path": "PolicyPath",
    "settling": "Settling predict_settling",
    "stability.predict": "predict_stability stable_pools",
    "stability.result": "Stability",
    "tuning": "alpha_min is_optimal settle_time_bound settled_threshold suggested_alpha",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605  (names are listed once)


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
