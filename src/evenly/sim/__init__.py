"""Exact simulation of finite systems: Numba kernels, and a slow reference that drives `evenly.core`.

Never imports `evenly.theory`: their agreement is evidence only while they are apart.
"""

from evenly.sim.result import Result, Trajectory
from evenly.sim.run import compare, simulate, with_policies
from evenly.sim.scenario import Scenario
from evenly.workload.demand import Phase

__all__ = ["Phase", "Result", "Scenario", "Trajectory", "compare", "simulate", "with_policies"]
