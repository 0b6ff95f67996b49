"""Exact simulation of finite systems: Numba kernels, and a slow reference that drives `evenly.core`.

Never imports `evenly.theory`: their agreement is evidence only as long as neither uses the other's code. The names
below load when first used; their types are in `__init__.pyi`.
"""

from evenly.lazy import front_door

_HOMES = {
    "evenly.sim.comparison": "Comparison",
    "evenly.sim.result": "Result",
    "evenly.sim.run": "compare simulate with_policies",
    "evenly.sim.scenario": "Scenario",
    "evenly.sim.trajectory": "Trajectory",
    "evenly.workload.demand": "Phase",
}
_ROOMS = ("coupling", "reference", "scenario", "simulation")

__getattr__, __dir__, __all__ = front_door(__name__, _HOMES, _ROOMS)
