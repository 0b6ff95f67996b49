"""From options and scenario file to what the simulator takes."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly.errors import InputError

if TYPE_CHECKING:
    from evenly.sim import Scenario

_RUN_KEYS = ("replications", "seed", "batches", "steady_state")
_OUTPUT_KEYS = ("plot", "save", "json")
PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Request:
    """A scenario, how to run it and what to do with the result."""

    scenario: Scenario
    policies: list[str]
    run: dict[str, Any]
    plot: Path | None
    save: Path | None
    json: bool


def read_request(given: dict[str, Any], default_policies: str = "") -> Request:
    """The request made by the options given and, where they say nothing, the scenario file."""
    from evenly.sim import Scenario

    given = {name: value for name, value in given.items() if value is not None}
    path = given.pop("scenario", None)
    scenario_keys = [field.name for field in fields(Scenario)]
    known = [*scenario_keys, "policies", *_RUN_KEYS, *_OUTPUT_KEYS]
    values = {**(_read_file(path, known) if path else {}), **given}
    if "load" in given and "schedule" not in given:
        values.pop("schedule", None)
    elif "schedule" in given and "load" not in given:
        values.pop("load", None)
    if "pools" not in values:
        raise InputError("Say how many pools there are: --pools N.")
    request = Request(
        scenario=Scenario(**{key: values[key] for key in scenario_keys if key in values}),
        policies=_split(values.get("policies", default_policies)),
        run={key: _checked_run(key, values[key]) for key in _RUN_KEYS if key in values},
        plot=_path("plot", values.get("plot"), PICTURES),
        save=_path("save", values.get("save"), (".npz",)),
        json=_flag("json", values.get("json", False)),
    )
    _check_targets(request)
    return request


def _check_targets(request: Request) -> None:
    """Fail before the work, not after it."""
    from evenly.files import check_writable

    for path in (request.plot, request.save):
        if path is not None:
            check_writable(path)


def _read_file(path: Path, known: list[str]) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a TOML file: {error}.") from None
    values = {key.replace("-", "_"): value for key, value in values.items()}
    for key in values:
        _check_key(path, key, known)
    if isinstance(values.get("schedule"), list):
        values["schedule"] = [_phase(path, phase) for phase in values["schedule"]]
    return values


def _phase(path: Path, phase: object) -> object:
    from evenly.sim import Phase

    if not isinstance(phase, dict):
        raise InputError(f"{path}: each phase of the schedule is a table with start and load, not {phase!r}.")
    names = [field.name for field in fields(Phase)]
    for key in phase:
        _check_key(path, key, names)
    for key in ("start", "load"):
        if key not in phase:
            raise InputError(f"{path}: a phase of the schedule has no {key}.")
    for key, value in phase.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{path}: a phase's {key} must be a number, not {value!r}.")
    return Phase(**{key: float(value) for key, value in phase.items()})


def _check_key(path: Path, key: str, known: list[str]) -> None:
    if key in known:
        return
    near = get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"the keys are {', '.join(known)}."
    raise InputError(f"{path}: there is no key {key!r}; {hint}")


def _split(names: object) -> list[str]:
    """Names from "a,b" or from a list."""
    parts = names.split(",") if isinstance(names, str) else names
    if not isinstance(parts, list) or not all(isinstance(name, str) for name in parts):
        raise InputError(f"policies must be names with commas between them, or a list of names, not {names!r}.")
    return [name.strip() for name in parts if name.strip()]


def _checked_run(key: str, value: object) -> object:
    if key == "steady_state":
        return _flag(key, value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{key} must be a whole number, not {value!r}.")
    return value


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{key} must be true or false, not {value!r}.")
    return value


def _path(key: str, value: object, endings: tuple[str, ...]) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str | Path) or Path(value).suffix.lower() not in endings:
        raise InputError(f"{key} must name a file that ends in {' or '.join(endings)}, not {str(value)!r}.")
    return Path(value)
