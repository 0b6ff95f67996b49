"""evenly keeps long-lived concurrent work evenly spread over many servers, without being told the load.

The names below load what they need when first used, so that `import evenly` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenly.errors import InputError
    from evenly.sim import Phase, Result, Scenario, Trajectory, compare, simulate, with_policies
    from evenly.theory.exact import ExactLaw, exact_law

__version__ = "0.1.0"

_HOMES = {
    "ExactLaw": "evenly.theory.exact",
    "InputError": "evenly.errors",
    "Phase": "evenly.sim",
    "Result": "evenly.sim",
    "Scenario": "evenly.sim",
    "Trajectory": "evenly.sim",
    "compare": "evenly.sim",
    "exact_law": "evenly.theory.exact",
    "simulate": "evenly.sim",
    "with_policies": "evenly.sim",
}

__all__ = [
    "ExactLaw",
    "InputError",
    "Phase",
    "Result",
    "Scenario",
    "Trajectory",
    "compare",
    "exact_law",
    "simulate",
    "with_policies",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'evenly' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
