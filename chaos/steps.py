"""The list of steps: each is a function with a name, an attack or a fault, and its own expectations."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from chaos.field import Field

Act = Callable[[Field, random.Random], Awaitable[None]]


@dataclass(frozen=True)
class Step:
    """A step. `act` attacks and states what it expects; the runner checks what every step must leave intact."""

    name: str
    about: str
    act: Act


STEPS: dict[str, Step] = {}


def step(act: Act) -> Act:
    """Add a function to the steps, by its name with dashes and the first line of its docstring."""
    name = act.__name__.replace("_", "-")
    about = (act.__doc__ or "").partition("\n")[0]
    STEPS[name] = Step(name, about, act)
    return act


def all_steps() -> dict[str, Step]:
    """Return all steps by name. The modules that define them are loaded here, since they need `step`."""
    from chaos import faults, floods, requests, settings  # noqa: F401, PLC0415

    return STEPS
