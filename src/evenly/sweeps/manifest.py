"""The manifest of a sweep's folder: what is in it, and whether another sweep may write there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenly.errors import InputError
from evenly.files import path_text, read_text
from evenly.inputs import shown
from evenly.sweeps.axes import defaults, written_form
from evenly.sweeps.grid import Group
from evenly.sweeps.identity import content_digest
from evenly.sweeps.point import Plan

FORMAT = 1
MANIFEST = "sweep.json"
_MAX_BYTES = 10**8  # a list of values is at most a million long
_SHOWN_VALUES = 6


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a folder, checked; None if there is none."""
    path = folder / MANIFEST
    if not path.exists():
        return None
    try:
        manifest = json.loads(read_text(path, _MAX_BYTES))
        known = int(manifest["format"]), str(manifest["version"]), dict(manifest["options"])
        int(manifest["points"]), list(manifest["values"]), list(manifest["zip"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InputError(f"{path_text(path)} is not the manifest of a sweep.") from None
    if known[0] > FORMAT:
        raise InputError(
            f"{path_text(folder)} was written by evenly {known[1]}, whose format this version does not know: "
            "update evenly, or give --out another folder."
        )
    return dict(manifest)


def describe(plan: Plan, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the manifest of a plan: format, version, the values of all options, and which are zipped.

    `contents` has a digest of each own policy's source, and of each file with numbers. `ever` has the values of
    options in all sweeps of the folder, whose manifest was `before`.
    """
    options: dict[str, list[Any]] = {
        "until": [plan.until and str(plan.until)],
        "engine": ["gpu" if plan.gpu else None],
    }
    contents: dict[str, str] = {}
    for group in plan.grid.groups:
        for place, name in enumerate(group.names):
            found = list(dict.fromkeys(row[place] for row in group.rows))
            options[name] = [written_form(name, value) for value in found]
            digests = {str(written_form(name, value)): content_digest(name, value) for value in found}
            contents |= {value: digest for value, digest in digests.items() if digest}
    given = {name: values for name, values in options.items() if values != [None]}
    return {
        "format": FORMAT,
        "version": plan.version,
        "points": len(plan.grid),
        "values": list(plan.values),
        "options": given,
        "ever": given if before is None else _united(_ever(before), given),
        "zip": [_zipped(group) for group in plan.grid.groups if len(group.names) > 1],
        "contents": contents,
    }


def _ever(manifest: Mapping[str, Any]) -> dict[str, list[Any]]:
    return dict(manifest.get("ever", manifest["options"]))


def _united(old: Mapping[str, list[Any]], new: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return all values of each option. An option that one of them does not have has its default there."""
    names = [*new, *(name for name in old if name not in new)]
    return {name: list(dict.fromkeys([*_values(old, name), *_values(new, name)])) for name in names}


def _values(options: Mapping[str, list[Any]], name: str) -> list[Any]:
    return options.get(name, [written_form(name, defaults().get(name))])


def _zipped(group: Group) -> dict[str, Any]:
    rows = [
        [written_form(name, value) for name, value in zip(group.names, row, strict=True)] for row in group.rows
    ]
    return {"names": list(group.names), "rows": rows}


def check_same(folder: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Reject the folder of another sweep: one that has no point in common with this one."""
    if _version(old["version"]) > _version(new["version"]):
        raise InputError(
            f"{path_text(folder)} was written by evenly {old['version']}, which is newer than this version, "
            f"{new['version']}: update evenly, or give --out another folder."
        )
    for name, digest in new["contents"].items():
        if old.get("contents", {}).get(name, digest) != digest:
            raise InputError(
                f"{path_text(folder)} holds another sweep: {name} has changed since. Give --out another folder."
            )
    ever = _ever(old)
    for name in sorted({*ever, *new["options"]}):
        before, now = _values(ever, name), _values(new["options"], name)
        if set(map(str, before)).isdisjoint(map(str, now)):
            raise InputError(
                f"{path_text(folder)} holds another sweep, of {old['points']} points with {name} "
                f"{_listed(before)}. "
                f"This one has {name} {_listed(now)}, and so no point in common: give --out another folder."
            )


def _listed(given: Sequence[Any]) -> str:
    shown_ = ", ".join("not given" if value is None else f"{value}" for value in given[:_SHOWN_VALUES])
    return shown(shown_).strip("'\"") + (", ..." if len(given) > _SHOWN_VALUES else "")


def _version(text: object) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", str(text))[:4])
