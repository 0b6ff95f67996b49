"""Merge options and scenario file into the arguments of the simulator."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from evenly.errors import InputError
from evenly.files import check_writable, path_text, read_toml
from evenly.inputs import OTHER_NAMES, finite_number, shown, true_or_false
from evenly.policies import DEFAULT, PARAMETERS, POLICIES, check_distinct, check_parameters, find_policy

if TYPE_CHECKING:
    from evenly.sim import Scenario

_RUN_KEYS = ("replications", "seed", "batches", "steady_state")
_PREDICTION_KEYS = ("points",)
_PREDICTED_WITHOUT = ("capacity", "sizes", "service", "arrivals", "delay", "sticky")
_OUTPUT_KEYS = ("plot", "save", "record", "json")
_SWEEP_KEYS = (
    "zip", "values", "until", "out", "engine", "workers", "ray_address", "fail_fast", "x", "y", "value", "facet",
)  # fmt: skip
_LONGEST_KEY = 40  # characters to compare with the known keys
PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Request:
    """The scenarios, how to run them and where the results go."""

    scenarios: list[Scenario]
    run: dict[str, Any]
    plot: Path | None
    save: Path | None
    record: Path | None
    json: bool


def read_request(
    given: dict[str, Any], default_policies: str | None = None, default_sized: str | None = None
) -> Request:
    """Return the request made by the options in `given` and, for options not given, by the scenario file.

    `default_sized` are the policies to compare by default if pools have sizes.
    Keys of the file that the command has no use for are ignored, so that one file serves all commands.
    """
    values = read_values(given, default_policies, default_sized)
    policies = values.pop("policies")
    if default_policies is not None:
        values.pop("save", None)
        values.pop("record", None)
    if "pools" not in values and "sizes" not in values:
        raise InputError("Give the number of pools: --pools N.")
    request = Request(
        scenarios=_scenarios(values, policies),
        run=_run(values),
        plot=picture_path(values.get("plot")),
        save=_path("save", values.get("save"), (".npz",)),
        record=_path("record", values.get("record"), None),
        json=true_or_false("json", values.get("json", False)),
    )
    _check_targets(request)
    return request


def _scenarios(values: dict[str, Any], policies: list[str]) -> list[Scenario]:
    """Return one scenario per policy, each with the parameters that it takes. Reject one that no policy takes."""
    from evenly.sim import Scenario

    infos = [find_policy(policy, own=True) for policy in policies]
    if any(info.own for info in infos):
        import_from_here()
    check_distinct(policies)
    check_parameters(policies, values)
    keys = [key for key in scenario_keys() if key in values and key != "policy"]
    return [
        Scenario(
            policy=info.name,
            **{key: values[key] for key in keys if key not in PARAMETERS or key in info.parameters},
        )
        for info in infos
    ]


def import_from_here() -> None:
    """Let Python find a policy in the current folder, as `python -m` does; a command on the PATH would not."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)


def _run(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `simulate`, which checks them; one of them has another name there."""
    run = {key: values[key] for key in _RUN_KEYS if key in values}
    if "steady_state" in run:
        run["mean_holding_times"] = true_or_false("steady_state", run.pop("steady_state"))
    return run


def read_values(
    given: dict[str, Any], default_policies: str | None = None, default_sized: str | None = None
) -> dict[str, Any]:
    """Return the options in `given` and, for those not given, the values of the scenario file.

    `policies` is the list of the policies to simulate: one, or several if there are `default_policies`. A
    parameter of the file that none of them takes is left out: one file serves several policies and commands.
    """
    given = {name: value for name, value in given.items() if value is not None}
    path = given.pop("scenario", None)
    file = read_file(path) if path else {}
    values = {**file, **given}
    drop_rivals(values, given)
    if "sizes" in values and default_sized is not None:
        default_policies = default_sized
    compared = split_names(values.get("policies", default_policies or DEFAULT))
    values["policies"] = [values.get("policy", DEFAULT)] if default_policies is None else compared
    for name in PARAMETERS:
        if name not in given and not any(name in POLICIES[each].parameters for each in _known(values["policies"])):
            values.pop(name, None)
    return values


def name_left_out(values: Mapping[str, Any], used: Sequence[str]) -> None:
    """Name on stderr the keys of a file that describe another system than the one that a prediction is for."""
    from evenly.sim import Scenario

    usual = {field.name: field.default for field in fields(Scenario)}
    ignored = [name for name in _PREDICTED_WITHOUT if values.get(name, usual[name]) != usual[name]]
    if names := ", ".join(name for name in ignored if name not in used):
        typer.echo(f"evenly: the prediction is for a system without {names}, which the file has.", err=True)


def drop_rivals(values: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Remove what a file says about something that the command line says in another way."""
    for name, rival in (("sizes", "pools"), ("load", "schedule"), ("schedule", "load")):
        if name in given and rival not in given:
            values.pop(rival, None)


def _known(names: list[object]) -> list[str]:
    return [name for name in names if isinstance(name, str) and name in POLICIES]


def scenario_keys() -> list[str]:
    """Return the names of the fields of a scenario."""
    from evenly.sim import Scenario

    return [field.name for field in fields(Scenario)]


def _check_targets(request: Request) -> None:
    """Fail before the work, not after it."""
    for path in (request.plot, request.save, request.record):
        if path is not None:
            check_writable(path)


def read_file(path: Path) -> dict[str, Any]:
    """Return the values of a scenario file by the names of their options."""
    raw = read_toml(path)
    known = [*scenario_keys(), "policies", *_RUN_KEYS, *_PREDICTION_KEYS, *_OUTPUT_KEYS, *_SWEEP_KEYS]
    values: dict[str, Any] = {}
    for written, value in raw.items():
        key = OTHER_NAMES.get(written.replace("-", "_"), written.replace("-", "_"))
        _check_key(path, key, known)
        if key in values:
            raise InputError(f"{path_text(path)} has the key {shown(key)} twice, in two spellings.")
        values[key] = value
    phases = values.get("schedule")
    if isinstance(phases, list) and not (
        phases and all(isinstance(each, str) for each in phases)
    ):  # texts: a sweep
        values["schedule"] = [_phase(path, phase) for phase in values["schedule"]]
    return values


def _phase(path: Path, phase: object) -> object:
    from evenly.workload.demand import Phase

    if not isinstance(phase, dict):
        raise InputError(
            f"{path_text(path)}: each phase of the schedule is a table with start and load, not {shown(phase)}."
        )
    names = [field.name for field in fields(Phase)]
    for key in phase:
        _check_key(path, key, names)
    for key in ("start", "load"):
        if key not in phase:
            raise InputError(f"{path_text(path)}: a phase of the schedule has no {key}.")
    return Phase(
        **{key: finite_number(f"{path_text(path)}: a phase's {key}", value) for key, value in phase.items()}
    )


def _check_key(path: Path, key: str, known: list[str]) -> None:
    if key in known:
        return
    nearest = get_close_matches(key[:_LONGEST_KEY], known, n=1, cutoff=0.0)[0]
    raise InputError(f"{path_text(path)}: there is no key {shown(key)}; did you mean {nearest!r}?")


def split_names(names: object) -> list[str]:
    """Return the names in "a,b" or in a list."""
    parts = names.split(",") if isinstance(names, str) else names
    if not isinstance(parts, list) or not all(isinstance(name, str) for name in parts):
        raise InputError(f"policies must be names separated by commas, or a list of names, not {shown(names)}.")
    policies = [name.strip() for name in parts]
    if not policies or not all(policies):
        raise InputError(f"policies must be names separated by commas, none of them empty, not {shown(names)}.")
    return policies


def picture_path(value: object) -> Path | None:
    """Return the path of a picture, or raise InputError unless its ending is a format that can be drawn."""
    return _path("plot", value, PICTURES)


def _path(key: str, value: object, endings: tuple[str, ...] | None) -> Path | None:
    """Return the path, or raise InputError unless it has one of the endings; None allows all."""
    if value is None:
        return None
    if endings is None:
        if not isinstance(value, str | Path) or not str(value).strip():
            raise InputError(f"{key} must name a file, not {shown(value)}.")
        return Path(value)
    if not isinstance(value, str | Path) or Path(value).suffix not in endings:
        raise InputError(f"{key} must name a file that ends in {' or '.join(endings)}, not {shown(str(value))}.")
    return Path(value)
