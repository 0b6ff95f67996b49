"""The values that a sweep on a GPU can record, and which points it can run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evenly.errors import InputError
from evenly.sim import Scenario
from evenly.sim.gpu.points import why_not
from evenly.sweeps.values import VALUES, read_values

if TYPE_CHECKING:
    from evenly.sim.gpu.readings import Reading

_NAMES = {"mean_threshold": "threshold"}  # what a reading calls a value, where it is another name
DEFAULT = (
    "mean_tasks", "max_tasks", "spread", "messages_per_task", "resync_per_task", "mean_threshold", "change_rate",
)  # fmt: skip
_KNOWN = (*DEFAULT, "imbalance", "change_count", "without_token", "threshold_share")


def read_gpu_values(written: object) -> tuple[str, ...]:
    """Return the names of values, as `read_values`. The imbalance is costly, and so not among the default ones."""
    names = DEFAULT if written is None else read_values(written)
    for name in names:
        if name not in _KNOWN:
            raise InputError(f"The engine gpu does not record {name}; it knows {', '.join(_KNOWN)}.")
    return names


def check_gpu_scenario(scenario: Scenario) -> None:
    """Reject a scenario that the GPU cannot simulate."""
    reason = why_not(scenario)
    if reason is not None:
        raise InputError(f"The engine gpu cannot simulate {reason}.")


def needs_imbalance(names: Sequence[str]) -> bool:
    """Return whether the imbalance must be recorded."""
    return "imbalance" in names


def take(reading: Reading, names: Sequence[str]) -> list[Any]:
    """Return the values of a reading, each followed by its half-width if it has intervals."""
    found: list[Any] = []
    for name in names:
        known_as = _NAMES.get(name, name)
        found.append(reading.value(known_as))
        if VALUES[name].interval is not None:
            found.append(reading.half_width(known_as))
    return found
