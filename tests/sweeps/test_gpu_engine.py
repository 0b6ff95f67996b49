"""Sweeps on the GPU's chain, which runs on this machine here: rows, intervals, identities, refusals."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evenly.errors import InputError
from evenly.sim import Scenario, simulate
from evenly.sim.gpu.device import Launch
from evenly.sweeps import sweep
from evenly.sweeps.engines.gpu import GpuEngine, Launcher
from evenly.sweeps.folder import Folder
from evenly.sweeps.gpu_values import DEFAULT
from evenly.sweeps.planning import make_plan
from evenly.sweeps.point import Plan
from evenly.sweeps.result import SweepResult
from evenly.sweeps.schedule import Schedule
from evenly.theory import solve_exact
from tests.sim.gpu.host import launch_here
from tests.sweeps.support import SMALL, run_inline, small_plan

ALL = [*DEFAULT, "imbalance", "change_count", "without_token", "threshold_share"]
SYSTEM = {"pools": [4], "load": [1.5], "horizon": [520.0], "warmup": [20.0], "replications": [64]}


def run_here(path: Path, plan: Plan, launcher: Launcher = launch_here) -> list[dict[str, Any]]:
    folder = Folder(path, plan)
    try:
        Schedule(plan, folder, GpuEngine(plan, launcher)).run(folder.done())
    finally:
        folder.close()
    return SweepResult.read(path).rows().to_dicts()


def test_rows_agree_with_exact_laws(tmp_path: Path) -> None:
    """Half-widths are 1.96 standard errors or more: three of them are missed with probability 4e-9."""
    rows = run_here(tmp_path, make_plan({**SYSTEM, "alpha": ["0.7"]}, values=ALL, gpu=True))
    law = solve_exact(pools=4, load=1.5, alpha="0.7")
    exact = {"mean_tasks": law.mean_tasks, "max_tasks": law.max_tasks, "spread": law.spread}
    for name, expected in (exact | {"mean_threshold": law.threshold or 0.0}).items():
        assert abs(rows[0][name] - expected) < 3 * rows[0][f"{name}_ci95"], name
        assert rows[0][f"{name}_ci95"] < 0.01 * expected
    assert rows[0]["replications"] == 64
    assert sum(rows[0]["threshold_share"]) == pytest.approx(1)
    assert rows[0]["change_rate"] == pytest.approx(rows[0]["change_count"] / (64 * 500), rel=1e-3)


@pytest.mark.parametrize(
    "system",
    [
        {"policy": "random", "service_rate": 2.0},
        {"policy": "power-of-d", "sample_size": 3},
        {"policy": "threshold", "threshold": 5},
        {"policy": "threshold", "alpha": "0.8", "service_rate": 0.5},
    ],
)
def test_rows_agree_with_the_cpu(tmp_path: Path, system: dict[str, Any]) -> None:
    """Both have intervals; their differences stay within three times the root of the sum of squares (4e-9)."""
    rate = system.get("service_rate", 1.0)
    shared = {"pools": 20, "load": 5.5, "horizon": 220 / rate, "warmup": 20 / rate, **system}
    given = {name: [value] for name, value in shared.items()}
    row = run_here(tmp_path, make_plan({**given, "replications": [32]}, values=ALL, gpu=True))[0]
    result = simulate(Scenario(**shared), replications=32, seed=5, workers=1)
    widths = result.half_widths()
    assert abs(row["events"] - result.events) < 12 * math.sqrt(
        result.events
    )  # sums of Poisson numbers: 6 deviations
    for name in ("mean_tasks", "max_tasks", "spread", "imbalance", "messages_per_task", "resync_per_task"):
        difference = abs(row[name] - result.scalars()[name])
        known = [each for each in (row[f"{name}_ci95"], widths.get(name)) if each is not None]
        assert difference <= 3 * math.hypot(*(each for each in known if not math.isnan(each))), name


class Counted:
    """Launches here, and keeps the number of points and of replications of each launch."""

    def __init__(self) -> None:
        self.sizes: list[tuple[int, int]] = []

    def __call__(
        self, scenarios: Sequence[Scenario], seeds: Sequence[int], runs: int, *, imbalance: bool
    ) -> Launch:
        self.sizes.append((len(scenarios), runs))
        return launch_here(scenarios, seeds, runs, imbalance=imbalance)


def test_points_of_a_launch_have_equally_many_replications(tmp_path: Path) -> None:
    launcher = Counted()
    given = {"pools": [*range(3, 23)], "load": [1.5], "horizon": [5.0], "warmup": [0.0], "replications": [2, 7]}
    run_here(tmp_path, make_plan(given, gpu=True), launcher)
    assert sorted(launcher.sizes) == [(20, 2), (20, 7)]


def test_all_points_are_one_launch_and_are_not_run_again(tmp_path: Path) -> None:
    launcher = Counted()
    given = {"pools": [3, 4], "load": [1.5, 2.5], "alpha": ["0.5", "0.9"], "horizon": [5.0], "replications": [3]}
    for _ in range(2):
        run_here(tmp_path, make_plan(given, gpu=True), launcher)
    assert launcher.sizes == [(8, 3)]


def test_the_folder_of_a_cpu_sweep_is_refused(tmp_path: Path) -> None:
    run_inline(tmp_path, small_plan(values=None))
    with pytest.raises(InputError, match="holds another sweep, of 6 points with engine not given"):
        Folder(tmp_path, make_plan(SMALL, gpu=True))


@pytest.mark.parametrize(
    ("over", "more", "sentence"),
    [
        ({"delay": [0.1]}, {}, "The engine gpu cannot simulate late messages"),
        ({"policy": ["jbt"]}, {}, "The engine gpu cannot simulate the policy jbt"),
        ({"pools": [5, 10**7]}, {}, "The engine gpu cannot simulate 10000000 pools at load 1.5"),
        ({"load": [1.5]}, {"until": "spread < 1%"}, "until is not for engine gpu: give replications"),
        (
            {"load": [1.5]},
            {"values": "task_share"},
            "The engine gpu does not record task_share; it knows mean_tasks",
        ),
        ({"load": [1.5]}, {"batches": 2}, "batches is not for engine gpu: its intervals come from replications"),
        ({"load": [1.5]}, {"workers": 2}, "workers is for engine local, not gpu"),
        ({"load": [1.5]}, {}, "The engine gpu needs an NVIDIA GPU"),
    ],
)
def test_what_it_cannot_do_is_refused_before_anything_runs(
    tmp_path: Path, over: dict[str, Any], more: dict[str, Any], sentence: str
) -> None:
    out = tmp_path / "out"
    with pytest.raises(InputError, match=sentence):
        sweep(Scenario(pools=5, load=1.5, horizon=5), over=over, engine="gpu", out=out, **more)
    assert not out.exists()
