"""From options and scenario file to what the simulator takes."""

from __future__ import annotations

import contextlib
import tomllib
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly.errors import InputError

if TYPE_CHECKING:
    from evenly.sim import Scenario

_RUN_KEYS = ("replications", "seed", "batches", "steady_state")
_PREDICTION_KEYS = ("points",)
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


def read_request(given: dict[str, Any], default_policies: str | None = None) -> Request:
    """The request made by the options given and, where they say nothing, the scenario file.

    Keys of the file that the command has no use for are left alone, so that one file serves all commands.
    """
    from evenly.sim import Scenario

    values = read_values(given)
    policies = _split(values.get("policies", default_policies or values.get("policy", "threshold")))
    if default_policies is not None:  # a comparison
        values["policy"] = policies[0]
        values.pop("save", None)
    if "pools" not in values:
        raise InputError("Say how many pools there are: --pools N.")
    request = Request(
        scenario=Scenario(**{key: values[key] for key in scenario_keys() if key in values}),
        policies=policies,
        run={key: _checked_run(key, values[key]) for key in _RUN_KEYS if key in values},
        plot=picture_path(values.get("plot")),
        save=_path("save", values.get("save"), (".npz",)),
        json=flag("json", values.get("json", False)),
    )
    _check_targets(request)
    return request


def read_values(given: dict[str, Any]) -> dict[str, Any]:
    """The options given and the values of the scenario file, which give way to them."""
    given = {name: value for name, value in given.items() if value is not None}
    path = given.pop("scenario", None)
    values = {**(_read_file(path) if path else {}), **given}
    if "load" in given and "schedule" not in given:
        values.pop("schedule", None)
    elif "schedule" in given and "load" not in given:
        values.pop("load", None)
    return values


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
    known = [*scenario_keys(), "policies", *_RUN_KEYS, *_PREDICTION_KEYS, *_OUTPUT_KEYS]
    values: dict[str, Any] = {}
    for written, value in raw.items():
        key = written.replace("-", "_")
        _check_key(path, key, known)
        if key in values:
            raise InputError(f"{path} has the key {key!r} twice, with - and with _.")
        values[key] = value
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
