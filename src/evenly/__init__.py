"""evenly keeps long-lived concurrent work evenly spread over many servers, without being told the load.

Names and rooms (`evenly.theory`, `evenly.paper`, ...) load what they need when first used, so `import evenly` is
quick. The types of all names are in `__init__.pyi`.
"""

from evenly.lazy import front_door

__version__ = "0.1.0"

_HOMES = {
    "evenly.advice": "Advice TuneReport recommend_alpha tune",
    "evenly.errors": "InputError",
    "evenly.frames": "Table",
    "evenly.sim": "Comparison Result Scenario Trajectory compare simulate with_policies",
    "evenly.sim.coupling": "CoupledRun couple_with_jsq simulate_sizes",
    "evenly.sweeps": "SweepResult sweep",
    "evenly.theory": (
        "DiffusionLimit Equilibrium ExactLaw FluidPath Settling Stability predict_diffusion "
        "predict_equilibrium predict_fluid predict_settling predict_stability settle_time_bound "
        "solve_exact stable_pools"
    ),
    "evenly.logs": "SessionLog read_log",
    "evenly.whatif": "WhatIf replay_log",
    "evenly.workload": "Phase",
}
_ROOMS = (
    *("advice", "core", "errors", "frames", "live", "logs", "paper"),
    *("plots", "policies", "sim", "sweeps", "testing", "theory", "whatif", "workload"),
)

__getattr__, __dir__, __all__ = front_door(__name__, _HOMES, _ROOMS)
