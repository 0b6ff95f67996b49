"""Saved results and tables: a saved result reads back unchanged, and bad files are rejected in one sentence."""

import io
import json
import os
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.sim import Phase, Result, Scenario, Trajectory, simulate

SAVED: dict[str, dict[str, Any]] = {
    "learning": {"load": 2.3, "alpha": 0.57},
    "learning, decimal": {"load": 2.3, "alpha": Decimal("0.75"), "threshold": 3},
    "fixed": {"load": 2.3, "capacity": 4, "initial": 1.5},
    "jsq": {"policy": "jsq", "load": 2.3, "initial": (3, 0, 1, 2, 0, 0, 1, 1)},
    "power": {"policy": "power-of-d", "load": 2.3, "choices": 3},
    "text schedule": {"policy": "jiq", "schedule": "0:2,3:0,5:4~1/3"},
    "schedule": {"policy": "pull", "capacity": 6, "schedule": [Phase(0, 1 / 3), Phase(0.1 + 0.2, 3, 1.5, 7.0)]},
}


def simulated(name: str, **more: Any) -> Result:  # noqa: ANN401
    options = {"replications": 2, "points": 5, "seed": 3, **more}
    return simulate(Scenario(pools=8, horizon=12.0, warmup=1.0, **SAVED[name]), **options)


@pytest.mark.parametrize("name", SAVED)
def test_a_result_reads_back_as_it_was_written(name: str, tmp_path: Path) -> None:
    result = simulated(name)
    result.save(tmp_path / "result.npz")
    again = Result.read(tmp_path / "result.npz")
    assert again == result
    assert again.to_dict() == result.to_dict()
    assert again.scenario.phases == result.scenario.phases
    assert again.scenario.tasks_at_start().tolist() == result.scenario.tasks_at_start().tolist()
    assert again.scenario.rule is None or again.scenario.rule.alpha == result.scenario.rule.alpha  # type: ignore[union-attr]
    assert again.endings == result.endings
    for one, two in zip(result.trajectories, again.trajectories, strict=True):
        for field in fields(Trajectory):
            before, after = getattr(one, field.name), getattr(two, field.name)
            if isinstance(before, np.ndarray):
                assert after.dtype == before.dtype
                assert after.tolist() == before.tolist()
            else:
                assert after == before


def test_a_result_with_batches_and_no_trajectory_reads_back_too(tmp_path: Path) -> None:
    scenario = Scenario(pools=7, load=1.4, alpha="0.7", horizon=45.0, warmup=5.0)
    result = simulate(scenario, seed=5, batches=4, mean_holding_times=True)
    result.save(str(tmp_path / "result.npz"))
    again = Result.read(str(tmp_path / "result.npz"))
    assert again.to_dict() == result.to_dict()
    assert again == result
    assert again.half_widths()
    assert again.trajectories == ()


def test_what_was_read_simulates_to_the_same(tmp_path: Path) -> None:
    for name in SAVED:
        result = simulated(name)
        result.save(tmp_path / "result.npz")
        scenario = Result.read(tmp_path / "result.npz").scenario
        assert simulate(scenario, replications=2, seed=3, points=5).window.gap == result.window.gap


def test_the_report_is_plain_json() -> None:
    for name in SAVED:
        report = simulated(name).to_dict()
        assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_the_report_has_the_promised_keys() -> None:
    report = simulated("learning").to_dict()
    promised = (
        "policy pools load horizon warmup seed replications events seconds mean_tasks pools_with_exactly "
        "task_share max_tasks threshold messages imbalance ci95"
    )
    assert set(promised.split()) <= report.keys()
    assert {"mean", "distribution"} <= report["max_tasks"].keys()
    assert {"initial", "final", "mean", "time_at", "changes", "settled_at"} == report["threshold"].keys()
    assert {"green", "yellow", "resync", "tasks", "per_task"} <= report["messages"].keys()
    assert simulated("jsq").to_dict()["threshold"] is None


# --- files that cannot be written or read ------------------------------------------------------------------


def test_a_missing_directory_is_named_and_nothing_is_left_behind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no directory .*missing"):
        simulated("fixed").save(tmp_path / "missing" / "result.npz")
    assert list(tmp_path.iterdir()) == []


def test_another_ending_is_rejected_and_nothing_is_left_behind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.npz, not .*result\.txt"):
        simulated("fixed").save(tmp_path / "result.txt")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "result.npz").mkdir()
    with pytest.raises(InputError, match="it is a directory"):
        simulated("fixed").save(tmp_path / "result.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["result.npz"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "result.npz"
    simulated("fixed").save(target)
    before = target.read_bytes()

    def full_disk(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez_compressed", full_disk)
    with pytest.raises(OSError, match="no space left"):
        simulated("jsq").save(target)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]


def archive(**arrays: Any) -> bytes:  # noqa: ANN401
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def array_alone() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.zeros(3))
    return stream.getvalue()


def meta(value: object) -> bytes:
    return archive(meta=np.array(json.dumps(value)))


def changed(saved: bytes, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> bytes:
    """Return a saved file with its arrays or its description changed."""
    with np.load(io.BytesIO(saved)) as stored:
        arrays = dict(stored)
    described = json.loads(str(arrays.pop("meta")))
    change(arrays, described)
    return archive(**arrays, meta=np.array(json.dumps(described)))


def scrambled(saved: bytes) -> bytes:
    half = len(saved) // 2
    return saved[: half - 40] + bytes(80) + saved[half + 40 :]


def set_array(name: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:  # noqa: ANN401
    return lambda arrays, _: arrays.update({name: value})


def endless_array(saved: bytes) -> bytes:
    """Return a header that announces 8 TB, and 24 bytes of data."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as zipped:
        zipped.writestr("meta.npy", array_alone().replace(b"(3,), }" + b" " * 12, b"(1000000000000,), }"))
    assert b"1000000000000" in stream.getvalue()
    return stream.getvalue()


GARBAGE: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda saved: b"",
    "a broken archive": lambda saved: b"PK\x03\x04" + bytes(100),
    "a scrambled file": scrambled,
    "pickled objects": lambda saved: archive(meta=np.array([{}], dtype=object)),
    "a description that is no JSON": lambda saved: archive(meta=np.array("{")),
    "nothing but a format": lambda saved: meta({"format": 5}),
    "a schedule of numbers": lambda saved: changed(saved, lambda _, data: data["scenario"].update(schedule=[1])),
    "deeply nested JSON": lambda saved: archive(meta=np.array("[" * 10**5)),
    "endless digits": lambda saved: archive(meta=np.array('{"format": ' + "9" * 10**5 + "}")),
    "no sample": lambda saved: changed(saved, lambda _, data: data.update(samples=0, replications=0)),
    "fewer samples than replications": lambda saved: changed(saved, lambda _, data: data.update(samples=1)),
    "endless samples": lambda saved: changed(
        saved, lambda _, data: data.update(samples=10**12, replications=10**12)
    ),
    "a sample of the wrong shape": lambda saved: changed(saved, set_array("sample.0.at_least", np.zeros((2, 2)))),
    "a sample that is not finite": lambda saved: changed(saved, set_array("sample.0.spread", np.array(np.nan))),
    "a sample of no length": lambda saved: changed(saved, set_array("sample.0.time", np.array(0.0))),
    "a trajectory cut short": lambda saved: changed(saved, set_array("trajectory.0.imbalance", np.zeros(2))),
    "a threshold beyond memory": lambda saved: changed(
        saved, set_array("trajectory.0.threshold", np.full(5, 2**62))
    ),
    "an array without end": endless_array,
    "endings of text": lambda saved: changed(saved, lambda _, data: data.update(endings=["x"])),
    "an impossible scenario": lambda saved: changed(saved, lambda _, data: data["scenario"].update(pools=-1)),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_a_file_that_is_not_a_result_is_rejected_in_one_sentence(kind: str, tmp_path: Path) -> None:
    target = tmp_path / "result.npz"
    simulated("learning").save(target)
    target.write_bytes(GARBAGE[kind](target.read_bytes()))
    with pytest.raises(InputError) as error:
        Result.read(target)
    assert "\n" not in str(error.value)


def test_a_file_that_unpacks_to_gigabytes_is_rejected_unread(tmp_path: Path) -> None:
    target = tmp_path / "bomb.npz"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("meta.npy", bytes(2**20))
        zipped.infolist()[0].file_size = 1025 * 2**20  # as its directory says of a member of that many zeros
    tracemalloc.start()
    with pytest.raises(InputError, match="unpacks to 1074790400 bytes, more than 1073741824"):
        Result.read(target)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


def test_a_pickle_does_not_run(tmp_path: Path) -> None:
    target = tmp_path / "result.npz"

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "ran",)

    target.write_bytes(archive(meta=np.array(Bomb(), dtype=object)))
    with pytest.raises(InputError, match="is not a saved result"):
        Result.read(target)
    assert not (tmp_path / "ran").exists()


def test_devices_and_pipes_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(InputError, match="not a regular file"):
            Result.read(path)


@pytest.mark.parametrize("path", [None, "a\0b"], ids=str)
def test_a_path_of_the_wrong_type_is_rejected(path: Any) -> None:  # noqa: ANN401
    with pytest.raises(InputError):
        Result.read(path)
    with pytest.raises(InputError):
        simulated("fixed").save(path)


@pytest.mark.parametrize("number", [3, 99])
def test_a_file_of_another_format_is_named_with_both_formats(number: int, tmp_path: Path) -> None:
    target = tmp_path / "result.npz"
    target.write_bytes(meta({"format": number}))
    with pytest.raises(InputError, match=rf"result\.npz .* its format is {number}, not 5\. Simulate"):
        Result.read(target)


@pytest.mark.parametrize("name", ["absent.npz", "."])
def test_a_file_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Cannot read .*: (no such file|is a directory)"):
        Result.read(tmp_path / name)


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(pools=5, load=2.0, alpha="0.570", horizon=2.0),
        Scenario(pools=3, schedule="0:2,1:3~1/2", initial_tasks=[1, 2, 3], horizon=2.0),
    ],
)
def test_the_scenario_survives_the_file(scenario: Scenario, tmp_path: Path) -> None:
    simulate(scenario).save(tmp_path / "x.npz")
    assert Result.read(tmp_path / "x.npz").scenario == scenario


def test_numbers_of_numpy_are_numbers() -> None:
    plain = Scenario(pools=3, load=2.0, threshold=1, initial_tasks=[1, 2, 3], horizon=4.0)
    theirs = Scenario(
        pools=np.int64(3),  # type: ignore[arg-type]
        load=np.float64(2.0),
        threshold=np.int32(1),  # type: ignore[arg-type]
        initial_tasks=np.array([1, 2, 3]),
        horizon=np.float32(4.0),  # type: ignore[arg-type]
    )
    assert theirs == plain
    assert json.dumps(simulate(theirs).to_dict()["pools"]) == "3"
