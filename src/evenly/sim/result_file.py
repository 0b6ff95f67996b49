"""Results in .npz files: saved whole, and read back from the current format.

A file holds one array per field of each `Tally` and `Trajectory`, named by the field, and the rest as JSON. Of a
policy of the user's own it holds the name, module:Class: reading a file runs no code.
"""

from __future__ import annotations

import json
import stat
import zipfile
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.files import atomic_write, path_text
from evenly.inputs import number_from, positive_number, shown, true_or_false, whole_number
from evenly.sim.intervals import COLUMNS
from evenly.sim.law_file import described_laws, law_arrays, laws_of
from evenly.sim.result import Result
from evenly.sim.scenario import Scenario
from evenly.sim.tally import Tally
from evenly.sim.trajectory import Ending, Trajectory
from evenly.workload.demand import Phase

FORMAT = 5
_RUN = ("seed", "replications", "batches", "mean_holding_times", "seconds", "events")
_NO_ARRAYS = ("scenario", "seed", "replication")  # fields of a trajectory that the description holds
MAX_BYTES = 2**30  # of all arrays, uncompressed: a small file can hold endless zeros
_MAX_THRESHOLD = 10**7

Arrays = dict[str, NDArray[Any]]


def save(result: Result, path: str | Path) -> None:
    """Write the result to an .npz file, atomically."""
    target = Path(path) if isinstance(path, str | Path) else Path()
    if target.suffix != ".npz":
        raise InputError(f"A result is saved to a file that ends in .npz, not {shown(target.name or path)}.")
    arrays: Arrays = {}
    for index, window in enumerate(result.windows):
        arrays |= _arrays(f"sample.{index}", window)
    for index, trajectory in enumerate(result.trajectories):
        arrays |= _arrays(f"trajectory.{index}", trajectory)
    arrays["parts"] = result.parts
    arrays |= law_arrays(result.scenario)
    arrays["meta"] = np.array(json.dumps(_meta(result)))
    with atomic_write(target) as temporary:
        np.savez_compressed(temporary, allow_pickle=False, **arrays)


def read(path: str | Path) -> Result:
    """Return the result in a file, or raise InputError if it holds none."""
    try:
        return _result(_read_arrays(Path(path)))
    except InputError as error:
        raise InputError(f"{path_text(path)} is not a result that this version can read: {error}") from None
    except OSError as error:
        raise InputError(f"Cannot read {path_text(path)}: {(error.strerror or str(error)).lower()}.") from None
    except Exception:  # garbage can raise almost anything, in zipfile, in NumPy and here
        raise InputError(f"{path_text(path)} is not a saved result, or it is damaged.") from None


def _read_arrays(file: Path) -> Arrays:
    """Return all arrays of a file by name. Pickled objects, which could run code, are not read."""
    mode = file.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(0, "is a directory")
    if not stat.S_ISREG(mode):  # a pipe or a device could keep us waiting
        raise OSError(0, "not a regular file")
    with zipfile.ZipFile(file) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > MAX_BYTES:  # zipfile reads no more than these sizes
        raise InputError(f"it unpacks to {size} bytes, more than {MAX_BYTES}.")
    with np.load(file, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _meta(result: Result) -> dict[str, Any]:
    scenario = {f.name: getattr(result.scenario, f.name) for f in fields(Scenario)}
    scenario["policy"] = result.scenario.info.name
    if not isinstance(result.scenario.schedule, str | None):
        scenario["schedule"] = [asdict(phase) for phase in result.scenario.phases]
    scenario |= described_laws(result.scenario)
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
    if meta["format"] != FORMAT:
        raise InputError(f"its format is {shown(meta['format'])}, not {FORMAT}. Simulate the scenario again.")
    scenario = _scenario(meta["scenario"] | laws_of(meta["scenario"], data))
    run = _checked_run(meta, most=len(data))
    samples = run["replications"] * max(run["batches"], 1)
    if meta["samples"] != samples:
        raise InputError(f"it has {shown(meta['samples'])} samples, not {samples}.")
    recorded = whole_number("the number of trajectories", meta["trajectories"], 0, run["replications"])
    windows = tuple(_tally(data, index) for index in range(samples))
    return Result(
        scenario=scenario,
        **run,
        windows=windows,
        parts=_parts(data["parts"], run["replications"]),
        endings=tuple(_ending(**ending) for ending in meta["endings"]),
        trajectories=tuple(
            _trajectory(data, index, scenario=scenario, seed=run["seed"]) for index in range(recorded)
        ),
    )


def _checked_run(run: dict[str, Any], *, most: int) -> dict[str, Any]:
    """Return how the scenario was run; each replication or batch has arrays, `most` in all."""
    return {
        "seed": whole_number("seed", run["seed"], 0, 2**64 - 1),
        "replications": whole_number("replications", run["replications"], 1, most),
        "batches": whole_number("batches", run["batches"], 0, most),
        "mean_holding_times": true_or_false("mean_holding_times", run["mean_holding_times"]),
        "seconds": number_from("seconds", run["seconds"], 0),
        "events": whole_number("events", run["events"], 0, 2**63 - 1),
    }


def _tally(data: Arrays, index: int) -> Tally:
    tally = Tally(**_read(Tally, data, f"sample.{index}"))
    positive_number("the time of a sample", tally.time)
    return tally


def _parts(parts: NDArray[Any], replications: int) -> NDArray[np.float64]:
    """Return the totals behind the intervals, checked."""
    if parts.dtype != np.float64 or parts.ndim != 3 or 0 in parts.shape or not np.isfinite(parts).all():
        raise InputError("its array parts has the wrong type or shape, or an entry that is not finite.")
    if (parts.shape[0], parts.shape[2]) != (replications, len(COLUMNS)):
        raise InputError("its array parts does not fit the replications.")
    return parts


def _ending(threshold: int, since: float) -> Ending:
    return Ending(whole_number("a threshold", threshold, 0, _MAX_THRESHOLD), number_from("a time", since, 0))


def _trajectory(data: Arrays, index: int, *, scenario: Scenario, seed: int) -> Trajectory:
    values = _read(Trajectory, data, f"trajectory.{index}")
    changes = {values[name].size for name in ("change_times", "change_thresholds")}
    points = {value.shape[0] for name, value in values.items() if not name.startswith("change_")}
    if len(changes) > 1 or len(points) > 1 or values["times"].size < 2:
        raise InputError("the lengths of its arrays do not agree.")
    for threshold in (values["threshold"].min(), values["threshold"].max()):
        whole_number("a threshold", threshold, -1, _MAX_THRESHOLD)
    return Trajectory(scenario=scenario, seed=seed, replication=index, **values)


def _scenario(values: dict[str, Any]) -> Scenario:
    if isinstance(values["schedule"], list):
        values["schedule"] = [Phase(**phase) for phase in values["schedule"]]
    return Scenario(**values)


def _arrays(prefix: str, item: Tally | Trajectory) -> Arrays:
    names = [f.name for f in fields(item) if f.name not in _NO_ARRAYS]
    return {f"{prefix}.{name}": np.asarray(getattr(item, name)) for name in names}


def _read(kind: type[Any], data: Arrays, prefix: str) -> dict[str, Any]:
    """Return the fields of a dataclass from their arrays, checked; single numbers become plain ones."""
    values: dict[str, Any] = {}
    for each in fields(kind):
        if each.name in _NO_ARRAYS:
            continue
        array = data[f"{prefix}.{each.name}"]
        whole = "int" in str(each.type)
        number = each.type in ("int", "float")
        dimensions = 0 if number else 2 if each.name == "pools_at_least" else 1
        if array.dtype != (np.int64 if whole else np.float64) or array.ndim != dimensions:
            raise InputError(f"its array {each.name} has the wrong type or shape.")
        if array.size == 0 and each.name in ("at_least", "max_time"):
            raise InputError(f"its array {each.name} is empty.")
        if not np.isfinite(array).all():
            raise InputError(f"its array {each.name} has an entry that is not finite.")
        values[each.name] = array.item() if number else array
    return values
