"""The answer of a command: one JSON object and nothing else, or text and the names of the files written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer

from evenly.cli.inputs import flag, picture_path
from evenly.files import check_writable


def wanted_picture(values: Mapping[str, Any]) -> Path | None:
    """Where a picture goes, if one is wanted and can be written; checked before the work."""
    path = picture_path(values.get("plot"))
    if path is not None:
        check_writable(path)
    return path


def wants_json(values: Mapping[str, Any]) -> bool:
    """Whether JSON was asked for."""
    return flag("json", values.get("json", False))


def deliver(
    facts: Mapping[str, Any], show: Callable[[], None], *, as_json: bool, files: list[Path | None]
) -> None:
    """Print the facts as JSON, or let `show` print them for people."""
    if as_json:
        typer.echo(json.dumps(facts, allow_nan=False))
        return
    show()
    for path in files:
        if path is not None:
            typer.echo(f"wrote {path}")
