"""What type checkers see of `evenly.theory`; a test compares it with the names that load at run time."""

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
from evenly.theory.fluid.other_policies import power_of_d_fluid as power_of_d_fluid
from evenly.theory.fluid.other_policies import random_fluid as random_fluid
from evenly.theory.fluid.path import FluidPath as FluidPath
from evenly.theory.fluid.policy_path import PolicyPath as PolicyPath
from evenly.theory.fluid.predict import predict_fluid as predict_fluid
from evenly.theory.persistence import can_settle_above as can_settle_above
from evenly.theory.persistence import full_share_above as full_share_above
from evenly.theory.persistence import loads_settling_above as loads_settling_above
from evenly.theory.settling import Settling as Settling
from evenly.theory.settling import predict_settling as predict_settling
from evenly.theory.stability.predict import predict_stability as predict_stability
from evenly.theory.stability.predict import stable_pools as stable_pools
from evenly.theory.stability.result import Stability as Stability
from evenly.theory.tuning import alpha_min as alpha_min
from evenly.theory.tuning import is_optimal as is_optimal
from evenly.theory.tuning import settle_time_bound as settle_time_bound
from evenly.theory.tuning import settled_distance_bound as settled_distance_bound
from evenly.theory.tuning import settled_threshold as settled_threshold
from evenly.theory.tuning import suggested_alpha as suggested_alpha
from evenly.theory.utility import BestUtility as BestUtility
from evenly.theory.utility import predict_best_utility as predict_best_utility

__all__: list[str]
