"""From options and scenario file to what the simulator takes."""

from __future__ import annotations

import contextlib
import tomllib
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly.errors import InputError
from evenly.policies import DEFAULT, PARAMETERS, POLICIES, check_parameters, find_policy

if TYPE_CHECKING:
    from evenly.sim import Scenario

_RUN_KEYS = ("replications", "seed", "batches", "steady_state")
_PARAMETERS = {"steady_state": "mean_holding_times"}  # of `simulate`, where the option has another name
_PREDICTION_KEYS = ("points",)
_OUTPUT_KEYS = ("plot", "save", "json")
PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Request:
    """Scenarios, how to run them and what to do with the results."""

    scenarios: list[Scenario]
    run: dict[str, Any]
    plot: Path | None
    save: Path | None
    json: bool


def read_request(given: dict[str, Any], default_policies: str | None = None) -> Request:
    """The request made by the options given and, where they say nothing, the scenario file.

    Keys of the file that the command has no use for are left alone, so that one file serves all commands.
    """
    values = read_values(given, default_policies)
    policies = values.pop("policies")
    if default_policies is not None:
        values.pop("save", None)
    if "pools" not in values:
        raise InputError("Say how many pools there are: --pools N.")
    request = Request(
        scenarios=_scenarios(values, policies),
        run={_PARAMETERS.get(key, key): _checked_run(key, values[key]) for key in _RUN_KEYS if key in values},
        plot=picture_path(values.get("plot")),
        save=_path("save", values.get("save"), (".npz",)),
        json=flag("json", values.get("json", False)),
    )
    _check_targets(request)
    return request


def _scenarios(values: dict[str, Any], policies: list[str]) -> list[Scenario]:
    """One scenario per policy, each with the parameters that it takes; one that none takes is refused."""
    from evenly.sim import Scenario

    infos = [find_policy(policy) for policy in policies]
    check_parameters(policies, values)
    keys = [key for key in scenario_keys() if key in values and key != "policy"]
    return [
        Scenario(
            policy=info.name,
            **{key: values[key] for key in keys if key not in PARAMETERS or key in info.parameters},
        )
        for info in infos
    ]


def read_values(given: dict[str, Any], default_policies: str | None = None) -> dict[str, Any]:
    """The options given and the values of the scenario file, which give way to them.

    `policies` is the list of the policies asked for: one, or several in a comparison with `default_policies`. A
    parameter of the file that none of them takes is left out, since one file serves several policies and commands.
    """
    given = {name: value for name, value in given.items() if value is not None}
    path = given.pop("scenario", None)
    file = _read_file(path) if path else {}
    values = {**file, **given}
    compared = _split(values.get("policies", default_policies or DEFAULT))
    values["policies"] = [values.get("policy", DEFAULT)] if default_policies is None else compared
    for name in PARAMETERS:
        if name not in given and not any(name in POLICIES[each].parameters for each in _known(values["policies"])):
            values.pop(name, None)
    if "load" in given and "schedule" not in given:
        values.pop("schedule", None)
    elif "schedule" in given and "load" not in given:
        values.pop("load", None)
    return values


def _known(names: list[object]) -> list[str]:
    return [name for name in names if isinstance(name, str) and name in POLICIES]


def scenario_keys() -> list[str]:
    """The names of what makes a scenario."""
    from evenly.sim import Scenario

    return [field.name for field in fields(Scenario)]


def _check_targets(request: Request) -> None:
    """Fail before the work, not after it."""
    from evenly.files import check_writable

    for path in (request.plot, request.save):
        if path is not None:
            check_writable(path)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a TOML file: {error}.") from None
    from evenly.sim.scenario import OLD_NAMES

    known = [*scenario_keys(), "policies", *_RUN_KEYS, *_PREDICTION_KEYS, *_OUTPUT_KEYS]
    values: dict[str, Any] = {}
    for written, value in raw.items():
        key = OLD_NAMES.get(written.replace("-", "_"), written.replace("-", "_"))
        _check_key(path, key, known)
        if key in values:
            raise InputError(f"{path} has the key {key!r} twice, in two spellings.")
        values[key] = value
    if isinstance(values.get("schedule"), list):
        values["schedule"] = [_phase(path, phase) for phase in values["schedule"]]
    return values


def _phase(path: Path, phase: object) -> object:
    from evenly.workload.demand import Phase

    if not isinstance(phase, dict):
        raise InputError(f"{path}: each phase of the schedule is a table with start and load, not {phase!r}.")
    names = [field.name for field in fields(Phase)]
    for key in phase:
        _check_key(path, key, names)
    for key in ("start", "load"):
        if key not in phase:
            raise InputError(f"{path}: a phase of the schedule has no {key}.")
    return Phase(**{key: _phase_number(path, key, value) for key, value in phase.items()})


def _phase_number(path: Path, key: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # a whole number beyond all floats
            return float(value)
    raise InputError(f"{path}: a phase's {key} must be a number, not {value!r}.")


def _check_key(path: Path, key: str, known: list[str]) -> None:
    if key in known:
        return
    nearest = get_close_matches(key, known, n=1, cutoff=0.0)[0]
    raise InputError(f"{path}: there is no key {key!r}; did you mean {nearest!r}?")


def _split(names: object) -> list[str]:
    """Names from "a,b" or from a list."""
    parts = names.split(",") if isinstance(names, str) else names
    if not isinstance(parts, list) or not all(isinstance(name, str) for name in parts):
        raise InputError(f"policies must be names with commas between them, or a list of names, not {names!r}.")
    policies = [name.strip() for name in parts if name.strip()]
    if not policies:
        raise InputError("Name at least one policy to compare.")
    return policies


def _checked_run(key: str, value: object) -> object:
    if key == "steady_state":
        return flag(key, value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{key} must be a whole number, not {value!r}.")
    return value


def flag(key: str, value: object) -> bool:
    """The value, if it is true or false."""
    if not isinstance(value, bool):
        raise InputError(f"{key} must be true or false, not {value!r}.")
    return value


def picture_path(value: object) -> Path | None:
    """Where a picture goes, in a format that can be drawn."""
    return _path("plot", value, PICTURES)


def _path(key: str, value: object, endings: tuple[str, ...]) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str | Path) or Path(value).suffix not in endings:
        raise InputError(f"{key} must name a file that ends in {' or '.join(endings)}, not {str(value)!r}.")
    return Path(value)
