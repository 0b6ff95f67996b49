"""Processes on this machine: the same bits for any number of them, also if they or their parent are killed."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenly import Scenario, SweepResult, sweep
from evenly.core import JoinShortestQueue
from evenly.errors import InputError
from evenly.sweeps.folder import Folder, shards
from evenly.sweeps.planning import make_plan, plan_over
from tests.sweeps.support import rows_of, run_inline

ROOT = Path(__file__).parents[2]
GRID: dict[str, Any] = {
    "policy": "threshold,jsq",
    "pools": 20,
    "alpha": "0.8,0.9",
    "load": "1.5:4.5:0.1",
    "horizon": 50,
}
DRIVER = """
import sys
from evenly.sweeps import folder
folder.FLUSH_S = 0.0  # so that there is something on the disk early
from evenly.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
KILLER = """
import os, signal
from pathlib import Path
from evenly.core import JoinShortestQueue

class Killer(JoinShortestQueue):
    \"\"\"Kills its process once: as an out-of-memory killer would.\"\"\"

    def arrive(self, choose):
        if not Path({flag!r}).exists():
            Path({flag!r}).{mark}()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().arrive(choose)
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The rows of the grid, run in this process."""
    path = tmp_path_factory.mktemp("plain")
    run_inline(path, make_plan(GRID))
    return rows_of(path)


def until(happens: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + 120
    while not happens():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def children(parent: int) -> list[int]:
    """Return the processes that a process has started, as the kernel lists them."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.long
@pytest.mark.parametrize("kill", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.full)])
def test_a_killed_sweep_is_resumed_with_the_same_bits(
    kill: signal.Signals, tmp_path: Path, plain: list[dict[str, Any]]
) -> None:
    words = [word for name, value in GRID.items() for word in (f"--{name}", str(value))]
    out = tmp_path / "out"
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, "sweep", *words, "--out", str(out), "--workers", "2"],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(lambda: out.is_dir() and shards(out), "the first shard")
        workers = children(driver.pid)
        driver.send_signal(kill)
        code = driver.wait(60)
    finally:
        driver.kill()
        driver.wait()
    assert code in (-signal.SIGKILL, 130, 0)  # a quick machine may have finished
    until(lambda: not [pid for pid in workers if Path(f"/proc/{pid}").exists()], "the workers end")
    before = len(rows_of(out))
    assert before > 0
    status, ran = run_inline(out, make_plan(GRID))
    assert (status.reused, len(ran)) == (before, len(plain) - before)
    assert rows_of(out) == plain


@pytest.mark.full
def test_a_killed_worker_is_replaced_and_classes_travel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: list[dict[str, Any]]
) -> None:
    class Local(JoinShortestQueue):
        """A class that no other process can import."""

    (tmp_path / "killer.py").write_text(KILLER.format(flag=str(tmp_path / "killed"), mark="touch"))
    monkeypatch.syspath_prepend(tmp_path)
    seen: list[float] = []
    base = Scenario(policy="jsq", pools=20, load=1.5, horizon=50)
    over = {"policy": ["threshold", "jsq", "killer:Killer", Local], "alpha": [0.8, 0.9], "load": "1.5:4.5:0.1"}
    result = sweep(base, over=over, workers=1, progress=lambda status: seen.append(status.fraction))
    assert (tmp_path / "killed").exists()
    assert result.status is not None
    assert (result.status.done, result.status.failed) == (5 * 31, 0)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    rows = result.rows().to_dicts()
    names = {str(row["policy"]) for row in rows}
    assert any("Local" in name for name in names)
    kept = [row for row in rows if row["policy"] in ("threshold", "jsq")]
    assert kept == [{name: row[name] for name in kept[0]} for row in plain]
    assert {row["error"] for row in rows} == {None}


@pytest.mark.full
def test_workers_that_cannot_work_are_not_replaced_forever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy that always kills its process: each point is tried three times, and the sweep ends."""
    (tmp_path / "always.py").write_text(
        KILLER.format(flag="/nowhere/at/all", mark="absolute").replace("Killer", "Always")
    )
    monkeypatch.syspath_prepend(tmp_path)
    result = sweep(Scenario(policy="always:Always", pools=2, load=1), over={"load": [1.5]}, workers=1)
    assert result.errors == ["Its process was killed by signal 9, 3 times; perhaps memory ran out."]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"engine": "cpu"}, "engine must be one of local, ray, gpu, not 'cpu'."),
        ({"engine": "ray", "workers": 2}, "workers is for engine local, not ray"),
        ({"ray_address": "auto"}, "ray_address is for engine ray, not local."),
        ({"engine": "ray", "ray_address": ""}, "ray_address must be an address"),
        ({"fail_fast": 1}, "fail_fast must be true or false"),
        ({"over": 3}, "over must be a mapping"),
        ({"over": {"lod": [1]}}, "no option 'lod'; did you mean 'load'"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"over": {"load": [1.5]}, "out": tmp_path / "out", **change}
    with pytest.raises(InputError) as refusal:
        sweep(Scenario(pools=2, load=1), **arguments)
    assert message in str(refusal.value)
    assert not (tmp_path / "out").exists()


def test_a_base_scenario_gives_way_to_what_varies(tmp_path: Path) -> None:
    """A schedule replaces the base's load, and sizes its pools; a policy drops what it does not take."""
    base = Scenario(pools=5, load=2.5, alpha=0.9, horizon=2)
    cases: list[dict[str, Any]] = [
        {"schedule": "0:1.5;0:2.5,1:3"},
        {"sizes": "3*1,2*2;4*1", "policy": "threshold-utility"},
        {"policy": "jsq,threshold"},
        {"initial_tasks": [0.0, (1, 2, 3, 0, 0)]},
        {"service": "deterministic;lognormal:cv=2", "alpha": 0.8},
    ]
    for place, over in enumerate(cases):
        plan = plan_over(base, over)
        assert len(plan.grid) == 2
        status, _ = run_inline(tmp_path / str(place), plan)
        assert (status.done, status.failed) == (2, 0)


def test_a_finished_sweep_starts_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"pools": 2, "load": "1,2", "horizon": 1})
    Folder(tmp_path, plan).close()
    run_inline(tmp_path, plan)
    monkeypatch.setattr(subprocess, "Popen", None)
    result = sweep(Scenario(pools=2, load=1, horizon=1), over={"load": [1, 2]}, out=tmp_path)
    assert isinstance(result, SweepResult)
    assert result.status is not None
    assert result.status.reused == 2
