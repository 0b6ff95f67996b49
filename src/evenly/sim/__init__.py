"""Exact simulation of finite systems: Numba kernels, and a slow reference that drives `evenly.core`.

Never imports `evenly.theory`: their agreement is evidence only as long as neither uses the other's code.
"""

from evenly.sim.comparison import Comparison
from evenly.sim.result import Result
from evenly.sim.run import compare, simulate, with_policies
from evenly.sim.scenario import Scenario
from evenly.sim.trajectory import Trajectory
from evenly.workload.demand import Phase

__all__ = ["Comparison", "Phase", "Result", "Scenario", "Trajectory", "compare", "simulate", "with_policies"]
