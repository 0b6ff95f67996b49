"""Other names of the fields of a scenario that are accepted: former ones, and rho, as papers call the load."""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from typing import Any, TypeVar

from evenly.errors import InputError

OTHER_NAMES = {"choices": "sample_size", "initial": "initial_tasks", "rho": "load"}  # also in files and sweeps

_Class = TypeVar("_Class")


def accept_other_names(scenario: type[_Class]) -> type[_Class]:
    """Let the constructor accept the other names of fields."""
    init: Any = scenario.__init__

    @wraps(init)
    def renaming(self: _Class, **values: object) -> None:
        init(self, **with_new_names(values))

    scenario.__init__ = renaming  # type: ignore[assignment]  # mypy keeps the signature of the dataclass
    return scenario


def with_new_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values under the current names; reject a name given in both spellings."""
    renamed: dict[str, Any] = {}
    for name, value in values.items():
        new = OTHER_NAMES.get(name, name)
        if new in renamed:
            raise InputError(f"Give {new} once: {name} is another name of it.")
        renamed[new] = value
    return renamed
