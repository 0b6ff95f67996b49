"""Output of a command: one JSON object and nothing else, or text and the names of the files written."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import typer

from evenly.cli.inputs import picture_path
from evenly.files import check_writable
from evenly.inputs import true_or_false


@contextmanager
def foreign_output_apart() -> Iterator[None]:
    """Send to stderr what a policy of the user's own prints: stdout is for the result.

    Enter it before a progress bar, which replaces stdout as well, and puts back what it found.
    """
    with redirect_stdout(sys.stderr):
        yield


def plot_path(values: Mapping[str, Any]) -> Path | None:
    """Return the path given with --plot, or None. Fails before the work if it cannot be written."""
    path = picture_path(values.get("plot"))
    if path is not None:
        check_writable(path)
    return path


def wants_json(values: Mapping[str, Any]) -> bool:
    """Return True if --json was given."""
    return true_or_false("json", values.get("json", False))


def emit(
    to_json: Callable[[], Mapping[str, Any]], show: Callable[[], None], *, as_json: bool, files: list[Path | None]
) -> None:
    """Print the object that `to_json` returns, or call `show` to print text and then name the files written.

    Only one of the two is called: the JSON of a large result takes time and memory to build.
    """
    if as_json:
        typer.echo(json.dumps(to_json(), allow_nan=False))
        return
    show()
    for path in files:
        if path is not None:
            typer.echo(f"wrote {path}")
