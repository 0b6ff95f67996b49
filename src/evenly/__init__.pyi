"""What type checkers see of `evenly`; a test compares it with the names that load at run time."""

from evenly import advice as advice
from evenly import core as core
from evenly import errors as errors
from evenly import frames as frames
from evenly import live as live
from evenly import logs as logs
from evenly import paper as paper
from evenly import plots as plots
from evenly import policies as policies
from evenly import sim as sim
from evenly import sweeps as sweeps
from evenly import testing as testing
from evenly import theory as theory
from evenly import whatif as whatif
from evenly import workload as workload
from evenly.advice import Advice as Advice
from evenly.advice import TuneReport as TuneReport
from evenly.advice import recommend_alpha as recommend_alpha
from evenly.advice import tune as tune
from evenly.errors import InputError as InputError
from evenly.frames import Table as Table
from evenly.logs import SessionLog as SessionLog
from evenly.logs import read_log as read_log
from evenly.sim import Comparison as Comparison
from evenly.sim import Result as Result
from evenly.sim import Scenario as Scenario
from evenly.sim import Trajectory as Trajectory
from evenly.sim import compare as compare
from evenly.sim import simulate as simulate
from evenly.sim import with_policies as with_policies
from evenly.sim.coupling import CoupledRun as CoupledRun
from evenly.sim.coupling import couple_with_jsq as couple_with_jsq
from evenly.sim.coupling import simulate_sizes as simulate_sizes
from evenly.sweeps import SweepResult as SweepResult
from evenly.sweeps import sweep as sweep
from evenly.theory import DiffusionLimit as DiffusionLimit
from evenly.theory import Equilibrium as Equilibrium
from evenly.theory import ExactLaw as ExactLaw
from evenly.theory import FluidPath as FluidPath
from evenly.theory import Settling as Settling
from evenly.theory import Stability as Stability
from evenly.theory import predict_diffusion as predict_diffusion
from evenly.theory import predict_equilibrium as predict_equilibrium
from evenly.theory import predict_fluid as predict_fluid
from evenly.theory import predict_settling as predict_settling
from evenly.theory import predict_stability as predict_stability
from evenly.theory import settle_time_bound as settle_time_bound
from evenly.theory import solve_exact as solve_exact
from evenly.theory import stable_pools as stable_pools
from evenly.whatif import WhatIf as WhatIf
from evenly.whatif import replay_log as replay_log
from evenly.workload import Phase as Phase

__version__: str
__all__: list[str]
