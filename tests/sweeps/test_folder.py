"""The output folder: resumed, changed, locked, full, and refused if it belongs to something else."""

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenly import __version__
from evenly.errors import InputError, PointFailedError
from evenly.sweeps import folder as folders
from evenly.sweeps.engines import Job
from evenly.sweeps.folder import Folder, known_points, shards
from evenly.sweeps.planning import make_plan
from evenly.sweeps.point import run_point
from evenly.sweeps.result import SweepResult
from evenly.sweeps.schedule import Schedule
from tests.sweeps.support import InlineEngine, rows_of, run_inline, small_plan


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The rows of the small plan."""
    path = tmp_path_factory.mktemp("done") / "out"
    status, ran = run_inline(path, small_plan())
    assert (status.points, status.done, status.failed, len(ran)) == (6, 6, 0, 6)
    return rows_of(path)


def test_a_second_run_does_nothing(tmp_path: Path, done: list[dict[str, Any]]) -> None:
    run_inline(tmp_path, small_plan())
    before = {path: path.read_bytes() for path in shards(tmp_path)}
    status, ran = run_inline(tmp_path, small_plan())
    assert (status.reused, status.done, ran) == (6, 0, [])
    assert {path: path.read_bytes() for path in shards(tmp_path)} == before
    assert rows_of(tmp_path) == done


def test_files_have_a_column_for_each_option_and_value(tmp_path: Path) -> None:
    import polars as pl

    run_inline(tmp_path, small_plan())
    frame = pl.read_parquet(tmp_path / "*.parquet")
    assert {
        "point",
        "policy",
        "pools",
        "load",
        "alpha",
        "horizon",
        "seed",
        "spread",
        "spread_ci95",
        "version",
    } <= set(frame.columns)
    assert frame.schema["pools"] == frame.schema["replications"] == pl.Int64
    assert frame.schema["alpha"] == frame.schema["load"] == frame.schema["spread"] == pl.Float64
    assert frame.schema["threshold_share"] == pl.List(pl.Float64)
    assert frame["point"].n_unique() == len(frame) == 6
    assert frame["version"].unique().to_list() == [__version__]


def test_a_column_has_one_type_whatever_is_in_a_shard(tmp_path: Path) -> None:
    """Some shards have no alpha, and some no text among the delays."""
    import polars as pl

    plan = make_plan(
        {"policy": "jsq,threshold", "pools": 2, "load": 1, "alpha": 0.8, "horizon": 1, "delay": "0,exponential:1"}
    )
    folder = Folder(tmp_path, plan)
    for index in range(4):
        folder.add([run_point(plan, index)])
        folder.flush()
    folder.close()
    schemas = [pl.read_parquet_schema(path) for path in shards(tmp_path)]
    assert all(schema == schemas[0] for schema in schemas)
    assert schemas[0]["alpha"] == pl.Float64
    assert schemas[0]["delay"] == pl.String
    assert schemas[0]["batches"] == pl.Int64


@pytest.mark.parametrize("kept", [0, 3, 5])
def test_what_a_kill_leaves_is_finished_with_the_same_bits(
    kept: int, tmp_path: Path, done: list[dict[str, Any]]
) -> None:
    """A kill at any moment leaves some whole shards, and perhaps a part of another under its temporary name."""
    plan = small_plan()
    folder = Folder(tmp_path, plan)
    for index in range(kept):
        folder.add([run_point(plan, index)])
        folder.flush()
    folder.close()
    leftover = tmp_path / ".points-000009.parquet.tmp"
    leftover.write_bytes(b"PAR1 and then the power went")
    status, ran = run_inline(tmp_path, plan)
    assert (status.reused, sorted(ran)) == (kept, [*range(kept, 6)])
    assert rows_of(tmp_path) == done
    assert not leftover.exists()
    assert len(shards(tmp_path)) == 1


def test_a_kill_between_a_merge_and_its_cleaning_up_leaves_each_point_once(tmp_path: Path) -> None:
    run_inline(tmp_path, small_plan())
    (merged,) = shards(tmp_path)
    (tmp_path / "points-000077.parquet").write_bytes(merged.read_bytes())
    status, ran = run_inline(tmp_path, small_plan())
    assert (status.reused, ran, len(rows_of(tmp_path))) == (6, [], 6)


def test_a_changed_grid_reuses_what_it_can(tmp_path: Path, done: list[dict[str, Any]]) -> None:
    run_inline(tmp_path, small_plan(load="2.5", alpha="0.8,0.9"))
    status, ran = run_inline(tmp_path, small_plan())
    assert (status.reused, len(ran)) == (2, 4)
    assert rows_of(tmp_path) == done
    status, ran = run_inline(tmp_path, small_plan(alpha="0.9"))
    assert (status.reused, ran) == (2, [])
    assert [row for row in done if row["alpha"] == 0.9] == rows_of(tmp_path)


def test_more_values_are_computed_and_replace_the_old_rows(tmp_path: Path) -> None:
    run_inline(tmp_path, small_plan(values="spread"))
    status, ran = run_inline(tmp_path, small_plan(values="spread,max_tasks"))
    assert (status.reused, len(ran)) == (0, 6)
    rows = rows_of(tmp_path)
    assert len(rows) == 6
    assert all(row["max_tasks"] is not None for row in rows)
    status, ran = run_inline(tmp_path, small_plan(values="max_tasks"))
    assert (status.reused, ran) == (6, [])


def test_values_of_earlier_runs_are_kept(tmp_path: Path) -> None:
    for values in ("spread", "max_tasks"):
        run_inline(tmp_path, small_plan(values=values))
    status, ran = run_inline(tmp_path, small_plan(values="spread"))
    assert (status.reused, ran) == (6, [])
    assert all(row["spread"] is not None and row["max_tasks"] is not None for row in rows_of(tmp_path))
    status, _ = run_inline(tmp_path, small_plan(values="max_tasks,spread"))
    assert status.reused == 6


def test_a_part_of_the_grid_with_more_values_does_not_stand_for_the_rest(tmp_path: Path) -> None:
    run_inline(tmp_path, small_plan(values="spread"))
    run_inline(tmp_path, small_plan(values="spread,max_tasks", load="1.5"))
    status, ran = run_inline(tmp_path, small_plan(values="spread,max_tasks"))
    assert (status.reused, len(ran)) == (3, 3)
    assert all(row["max_tasks"] is not None for row in rows_of(tmp_path))


def test_a_grid_may_return_to_points_of_an_earlier_one(tmp_path: Path) -> None:
    for load in ("1.5,2.5", "2.5,3.5"):
        run_inline(tmp_path, small_plan(load=load))
    status, ran = run_inline(tmp_path, small_plan(load="1.5"))
    assert (status.reused, ran) == (3, [])


def test_an_option_that_an_older_folder_does_not_name_has_its_default(tmp_path: Path) -> None:
    run_inline(tmp_path, small_plan())
    manifest = json.loads((tmp_path / "sweep.json").read_text())
    for kept in ("options", "ever"):
        del manifest[kept]["sticky"]
    (tmp_path / "sweep.json").write_text(json.dumps(manifest))
    status, _ = run_inline(tmp_path, small_plan())
    assert status.reused == 6


def test_zipped_points_are_told_apart(tmp_path: Path) -> None:
    run_inline(tmp_path, small_plan(alpha="0.7,0.8,0.9", load="1.5,2.5,1.5"))
    status, ran = run_inline(tmp_path, small_plan(alpha="0.7,0.8,0.9", load="1.5,2.5,1.5", zipped="alpha,load"))
    assert (status.points, status.reused, ran) == (3, 3, [])
    found = [(row["alpha"], row["load"]) for row in rows_of(tmp_path)]
    assert sorted(found) == [(0.7, 1.5), (0.8, 2.5), (0.9, 1.5)]


def test_a_lost_job_is_run_again_point_by_point(tmp_path: Path, done: list[dict[str, Any]]) -> None:
    status, ran = run_inline(tmp_path, small_plan(), {2: 2, 4: 1})
    assert (status.done, status.failed, sorted(ran)) == (6, 0, [*range(6)])
    assert rows_of(tmp_path) == done


def test_a_point_that_kills_its_process_becomes_a_row_and_is_tried_again_later(
    tmp_path: Path, done: list[dict[str, Any]]
) -> None:
    deadly = {2: 99}
    status, ran = run_inline(tmp_path, small_plan(), deadly)
    assert deadly == {2: 99 - 3}
    assert (status.done, status.failed, sorted(ran)) == (6, 1, [0, 1, 3, 4, 5])
    (failed,) = (row for row in rows_of(tmp_path) if row["error"])
    assert failed["error"] == "Its process was killed by signal 9, 3 times; perhaps memory ran out."
    assert failed["spread"] is None
    assert (failed["load"], failed["alpha"]) == (1.5, 0.9)
    assert SweepResult.read(tmp_path).errors == [failed["error"]]
    status, ran = run_inline(tmp_path, small_plan())
    assert (status.reused, ran) == (5, [2])
    assert rows_of(tmp_path) == done


def test_points_that_a_job_does_not_get_to_run_later(tmp_path: Path, done: list[dict[str, Any]]) -> None:
    class Hurried(InlineEngine):
        """Has time for one point of each job, and gets three."""

        slots, batch_s = 1, 1e9

        def submit(self, job: Job) -> None:
            sizes.append(len(job.indices))
            super().submit(job._replace(seconds=0.0))

    sizes: list[int] = []
    plan = small_plan()
    folder, engine = Folder(tmp_path, plan), Hurried(plan)
    Schedule(plan, folder, engine).run(folder.done())
    folder.close()
    assert max(sizes) > 1
    assert sorted(engine.ran) == [*range(6)]
    assert rows_of(tmp_path) == done


def test_an_error_is_a_row_or_stops_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sometimes.py").write_text(
        "from evenly.core import JoinShortestQueue\n"
        "class Sometimes(JoinShortestQueue):\n"
        "    def arrive(self, choose):\n"
        "        if len(self.pools) == 6:\n"
        "            raise ValueError('six')\n"
        "        return super().arrive(choose)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    plan = small_plan(policy="sometimes:Sometimes", alpha=None, pools="5,6", load="1.5", horizon=1)
    status, _ = run_inline(tmp_path / "out", plan)
    assert (status.done, status.failed) == (2, 1)
    errors = {row["pools"]: row["error"] for row in rows_of(tmp_path / "out")}
    assert errors[5] is None
    assert "sometimes:Sometimes" in str(errors[6])
    with pytest.raises(PointFailedError, match=r"The point pools 6 failed: .*Sometimes"):
        run_inline(tmp_path / "other", plan, fail_fast=True)


def test_shards_are_merged_when_there_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: list[dict[str, Any]]
) -> None:
    monkeypatch.setattr(folders, "MANY_SHARDS", 3)
    plan = small_plan()
    folder = Folder(tmp_path, plan)
    for index in range(6):
        folder.add([run_point(plan, index)])
        folder.flush()
        assert len(shards(tmp_path)) < 3
    folder.close()
    assert rows_of(tmp_path) == done


def test_large_shards_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "LARGE_SHARD", 6)
    run_inline(tmp_path, small_plan())
    first = shards(tmp_path)
    run_inline(tmp_path, small_plan(seed="1,2"))
    assert shards(tmp_path)[0] == first[0]
    assert len(rows_of(tmp_path)) == 12


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A write beyond this size fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_loses_nothing(tmp_path: Path, done: list[dict[str, Any]]) -> None:
    plan = small_plan()
    folder = Folder(tmp_path, plan)
    folder.add([run_point(plan, index) for index in range(3)])
    folder.flush()
    folder.add([run_point(plan, 3)])
    with files_of_at_most(500), pytest.raises(InputError, match="make room, and run the same command again"):
        folder.flush()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".points")] == []
    folder.flush()  # the row still waits
    folder.close()
    status, ran = run_inline(tmp_path, plan)
    assert (status.reused, sorted(ran)) == (4, [4, 5])
    assert rows_of(tmp_path) == done


def test_a_merge_on_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    plan = small_plan()
    folder = Folder(tmp_path, plan)
    for index in range(2):
        folder.add([run_point(plan, index)])
        folder.flush()
    with files_of_at_most(500), pytest.raises(InputError, match=r"Cannot write .*too large"):
        folder.merge()
    folder.close()
    assert len(shards(tmp_path)) == len(rows_of(tmp_path)) == 2


def test_two_sweeps_cannot_share_a_folder_and_a_killed_one_releases_it(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from tests.sweeps.support import small_plan;"
        "from evenly.sweeps.folder import Folder; folder = Folder(Path(sys.argv[1]), small_plan());"
        "print('locked', flush=True); time.sleep(600)"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(InputError, match=rf"Another sweep writes into .* \(process {other.pid} on "):
            Folder(tmp_path, small_plan())
    finally:
        other.kill()
        other.wait()
        assert other.stdout is not None
        other.stdout.close()
    Folder(tmp_path, small_plan()).close()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pools": 6}, "holds another sweep, of 6 points with pools 5. This one has pools 6, and so no point in"),
        ({"load": "3.5"}, "with load 1.5, 2.5. This one has load 3.5"),
        ({"until": "spread < 1"}, "with until not given. This one has until spread < 1"),
    ],
)
def test_the_folder_of_another_sweep_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    Folder(tmp_path, small_plan()).close()
    for refuse in (Folder, known_points):
        with pytest.raises(InputError) as refusal:
            refuse(tmp_path, small_plan(**changes))
        assert message in str(refusal.value)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match=r"not the folder of a sweep: it holds 'thesis\.tex'"):
        Folder(tmp_path, small_plan())
    with pytest.raises(InputError, match=r"it has no sweep\.json"):
        SweepResult.read(tmp_path)
    with pytest.raises(InputError, match="Cannot write into"):
        Folder(tmp_path / "thesis.tex", small_plan())


@pytest.mark.parametrize("text", ["", "[]", '{"format": 1, "version": 1}', "[" * 10000])
def test_a_broken_manifest_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(InputError, match="is not the manifest of a sweep"):
        Folder(tmp_path, small_plan())


def test_a_broken_shard_is_named(tmp_path: Path) -> None:
    run_inline(tmp_path, small_plan())
    (shard,) = shards(tmp_path)
    shard.write_bytes(shard.read_bytes()[:-9])
    with pytest.raises(InputError, match=rf"Cannot read .*{shard.name}"):
        Folder(tmp_path, small_plan())
    with pytest.raises(InputError, match=rf"Cannot read .*{shard.name}"):
        SweepResult.read(tmp_path).rows()


def changed_manifest(path: Path, **changes: object) -> None:
    manifest = json.loads((path / "sweep.json").read_text())
    (path / "sweep.json").write_text(json.dumps({**manifest, **changes}))


@pytest.mark.parametrize("changes", [{"format": 2, "version": "0.1.0"}, {"version": "0.2.0"}, {"version": "10.0"}])
def test_a_folder_of_a_newer_version_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    Folder(tmp_path, small_plan()).close()
    changed_manifest(tmp_path, **changes)
    with pytest.raises(InputError, match=f"was written by evenly {changes['version']}, .*update evenly"):
        Folder(tmp_path, small_plan())


def test_the_points_of_an_older_version_are_set_aside(tmp_path: Path) -> None:
    old = replace(small_plan(), version="0.0.9")
    run_inline(tmp_path, old)
    status, ran = run_inline(tmp_path, small_plan())
    assert (status.reused, len(ran)) == (0, 6)
    assert {row["version"] for row in rows_of(tmp_path)} == {__version__}
    assert len(shards(tmp_path / "version-0.0.9")) == 1


def test_rows_appear_while_a_sweep_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "FLUSH_S", 0.0)
    plan = small_plan()
    folder = Folder(tmp_path, plan)
    result = SweepResult.read(tmp_path)
    assert len(result.rows()) == 0
    folder.add([run_point(plan, 0)])
    folder.tick()
    assert len(result.rows()) == 1
    assert "1 of 6 points" in repr(result)
    folder.close()
