"""evenly keeps long-lived concurrent work evenly spread over many servers, without being told the load.

Names and rooms (`evenly.theory`, `evenly.paper`, ...) load what they need when first used, so `import evenly` is
quick. The types of all names are in `__init__.pyi`.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "evenly.advice": "Advice TuneReport recommend_alpha tune",
    "evenly.errors": "InputError",
    "evenly.frames": "Table",
    "evenly.sim": "Comparison Result Scenario Trajectory compare simulate with_policies",
    "evenly.sim.coupling": "couple_with_jsq simulate_sizes",
    "evenly.theory": (
        "DiffusionLimit Equilibrium ExactLaw FluidPath Settling Stability predict_diffusion "
        "predict_equilibrium predict_fluid predict_settling predict_stability settle_time_bound "
        "solve_exact stable_pools"
    ),
    "evenly.workload": "Phase",
}
_ROOMS = ("advice", "core", "paper", "plots", "policies", "sim", "theory", "workload")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605  (names are listed once)


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return import_module(f"evenly.{name}")
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'evenly' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS, "__version__"])
