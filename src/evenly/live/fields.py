"""Checks of settings that several files of settings share."""

from __future__ import annotations

from pathlib import Path

from pydantic import BeforeValidator

from evenly.errors import InputError
from evenly.inputs import shown


def file_field(name: str) -> BeforeValidator:
    """Return the check of a file's name, or None."""

    def check(value: object) -> object:
        if value is not None and not (isinstance(value, str | Path) and str(value)):
            raise InputError(f"{name} must be the name of a file, not {shown(value)}.")
        return value

    return BeforeValidator(check)
