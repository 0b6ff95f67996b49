"""Former names of the fields of a scenario, which are still accepted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from typing import Any, TypeVar

from evenly.errors import InputError

OLD_NAMES = {"choices": "sample_size", "initial": "initial_tasks"}  # still accepted, here and in scenario files

_Class = TypeVar("_Class")


def accept_old_names(scenario: type[_Class]) -> type[_Class]:
    """Let the constructor accept the former names of fields."""
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
        new = OLD_NAMES.get(name, name)
        if new in renamed:
            raise InputError(f"Give {new} once: {name} is its old name.")
        renamed[new] = value
    return renamed
