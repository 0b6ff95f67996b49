"""Results in .npz files: saved whole, and read back from this version's format and the one before.

A file holds one array per field of each `Tally` and `Trajectory`, named by the field, and the rest as JSON.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.files import atomic_write
from evenly.policies import PARAMETERS, find_policy
from evenly.sim.result import Result
from evenly.sim.scenario import Scenario, with_new_names
from evenly.sim.tally import Tally
from evenly.sim.trajectory import Ending, Trajectory
from evenly.workload.demand import Phase

FORMAT = 2
_FIRST_NAMES = {
    "lost_tasks": "lost",
    "without_token": "unguided",
    "change_count": "changes",
}  # of arrays in format 1
_FIRST_META = {"mean_holding_times": "steady_state"}  # of the description in format 1
_RUN = ("seed", "replications", "batches", "mean_holding_times", "seconds", "events")
_NO_ARRAYS = ("scenario", "seed", "replication")  # fields of a trajectory that the description holds
_DAMAGE = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    EOFError,
    NotImplementedError,
)  # what garbage can raise

Arrays = dict[str, NDArray[Any]]


def save(result: Result, path: str | Path) -> None:
    """Write the result to an .npz file, whole or not at all."""
    target = Path(path)
    if target.suffix != ".npz":
        raise InputError(f"A result is saved to a file that ends in .npz, not {target.name}.")
    arrays: Arrays = {}
    for index, window in enumerate(result.windows):
        arrays |= _arrays(f"sample.{index}", window)
    for index, trajectory in enumerate(result.trajectories):
        arrays |= _arrays(f"trajectory.{index}", trajectory)
    arrays["meta"] = np.array(json.dumps(_meta(result)))
    with atomic_write(target) as temporary:
        np.savez_compressed(temporary, allow_pickle=False, **arrays)


def load(path: str | Path) -> Result:
    """Read a result from a file; refuse in one sentence what is no result."""
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            data = {name: stored[name] for name in stored.files}
        return _result(data)
    except InputError as error:
        raise InputError(f"{path} is not a result that this version can read: {error}") from None
    except OSError as error:
        raise InputError(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from None
    except (*_DAMAGE, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path} is not a saved result, or damaged ({type(error).__name__}).") from None


def _meta(result: Result) -> dict[str, Any]:
    scenario = {f.name: getattr(result.scenario, f.name) for f in fields(Scenario)}
    if not isinstance(result.scenario.schedule, str | None):
        scenario["schedule"] = [asdict(phase) for phase in result.scenario.phases]
    return {
        "format": FORMAT,
        "scenario": scenario,
        **{name: getattr(result, name) for name in _RUN},
        "endings": [asdict(ending) for ending in result.endings],
        "samples": len(result.windows),
        "trajectories": len(result.trajectories),
    }


def _result(data: Arrays) -> Result:
    meta = json.loads(str(data["meta"]))
    if meta["format"] not in (1, FORMAT):
        raise InputError(f"its format is {meta['format']}, not 1 or {FORMAT}.")
    first = meta["format"] == 1
    names, run_names = (_FIRST_NAMES, _FIRST_META) if first else ({}, {})
    scenario = _scenario(meta["scenario"], drop=first)
    run = {name: meta[run_names.get(name, name)] for name in _RUN}
    return Result(
        scenario=scenario,
        **run,
        windows=tuple(Tally(**_read(Tally, data, f"sample.{index}", names)) for index in range(meta["samples"])),
        endings=tuple(Ending(**ending) for ending in meta["endings"]),
        trajectories=tuple(
            Trajectory(
                scenario=scenario,
                seed=meta["seed"],
                replication=index,
                **_read(Trajectory, data, f"trajectory.{index}", names),
            )
            for index in range(meta["trajectories"])
        ),
    )


def _scenario(values: dict[str, Any], *, drop: bool) -> Scenario:
    """A scenario from its description; `drop` leaves out parameters that the policy ignored in format 1."""
    if isinstance(values["schedule"], list):
        values["schedule"] = [Phase(**phase) for phase in values["schedule"]]
    scenario = with_new_names(values)
    if drop:
        takes = find_policy(scenario["policy"]).parameters
        scenario |= {name: None for name in PARAMETERS if name not in takes}
    return Scenario(**scenario)


def _arrays(prefix: str, item: Tally | Trajectory) -> Arrays:
    names = [f.name for f in fields(item) if f.name not in _NO_ARRAYS]
    return {f"{prefix}.{name}": np.asarray(getattr(item, name)) for name in names}


def _read(kind: type[Any], data: Arrays, prefix: str, names: dict[str, str]) -> dict[str, Any]:
    """The fields of a dataclass back from their arrays; single numbers become plain ones."""
    wanted = [f.name for f in fields(kind) if f.name not in _NO_ARRAYS]
    values = {name: data[f"{prefix}.{names.get(name, name)}"] for name in wanted}
    return {name: value.item() if value.ndim == 0 else value for name, value in values.items()}
