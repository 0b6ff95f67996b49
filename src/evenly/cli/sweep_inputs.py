"""Merge options and scenario file into a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly.cli.inputs import drop_rivals, import_from_here, picture_path, read_file
from evenly.errors import InputError
from evenly.files import check_writable
from evenly.inputs import shown, true_or_false
from evenly.policies import DEFAULT, PARAMETERS, find_policy, is_own

if TYPE_CHECKING:
    from evenly.sweeps.engine_maker import EngineMaker
    from evenly.sweeps.point import Plan

DEFAULT_OUT = "evenly-sweep"
_PICTURE = ("value", "x", "y", "facet")


@dataclass(frozen=True)
class SweepRequest:
    """The sweep, how to run it and what to make of it."""

    plan: Plan
    out: Path
    make_engine: EngineMaker
    fail_fast: bool
    dry_run: bool
    plot: Path | None
    picture: dict[str, str | None]
    json: bool


def read_sweep(given: dict[str, Any]) -> SweepRequest:
    """Return the sweep that the options in `given` ask for and, for options not given, the scenario file."""
    from evenly.sweeps.engine_maker import engine_maker
    from evenly.sweeps.manifest import describe
    from evenly.sweeps.picture import read_picture
    from evenly.sweeps.planning import make_plan

    given = {name: value for name, value in given.items() if value is not None}
    path = given.pop("scenario", None)
    values = {**(read_file(path) if path else {}), **given}
    drop_rivals(values, given)
    _drop_unused_parameters(values, given)
    if "pools" not in values and "sizes" not in values:
        raise InputError("Give the number of pools: --pools N.")
    picture: dict[str, str | None] = {name: _text(name, values) for name in _PICTURE}
    plot = picture_path(values.get("plot"))
    if plot is None and any(name in given for name in _PICTURE):
        raise InputError("--x, --y, --value and --facet are about a plot: give --plot FILE too.")
    make_engine = engine_maker(values.get("engine", "local"), values.get("workers"), values.get("ray_address"))
    recorded = values.get("values", picture["value"])
    request = SweepRequest(
        plan=make_plan(values, values.get("zip"), recorded, values.get("until"), gpu=make_engine.gpu),
        out=Path(_text("out", values) or DEFAULT_OUT),
        make_engine=make_engine,
        fail_fast=true_or_false("fail_fast", values.get("fail_fast", False)),
        dry_run=true_or_false("dry_run", values.get("dry_run", False)),
        plot=plot,
        picture=picture,
        json=true_or_false("json", values.get("json", False)),
    )
    if plot is not None:
        read_picture(describe(request.plan), **picture)
        check_writable(plot)
    return request


def _drop_unused_parameters(values: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Remove parameters of the file that no policy takes, and let Python find policies in the current folder."""
    from evenly.sweeps.axes import read_axis

    policies = read_axis("policy", values.get("policy", DEFAULT))
    if any(map(is_own, policies)):
        import_from_here()
    infos = [find_policy(policy, own=True) for policy in policies]
    for name in PARAMETERS:
        if name not in given and not any(name in info.parameters for info in infos):
            values.pop(name, None)


def _text(name: str, values: Mapping[str, Any]) -> str | None:
    text = values.get(name)
    if text is not None and (not isinstance(text, str) or not text.strip()):
        raise InputError(f"{name} must be a text, not {shown(text)}.")
    return text
