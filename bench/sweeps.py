"""Sweeps: points per second and overhead per point, resume at a million points, and the gain of a second core."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.measure import Figure
from bench.sweep_overhead import overhead, timed
from evenly.sweeps.folder import Folder
from evenly.sweeps.planning import make_plan
from evenly.sweeps.point import Plan, Row
from evenly.sweeps.schedule import count_missing

ROOT = Path(__file__).parents[1]
RAY = ROOT / ".venv-ray" / "bin" / "python"
PEAK_MEMORY = """
import resource
import numpy as np
from bench.sweeps import million
from evenly.sweeps.schedule import missing_points
million(30)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
plan = million({size})
for index in missing_points(plan, np.zeros((0, 2), np.uint64)):
    pass
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
_TOY = 0.1
LARGE: dict[str, Any] = {"pools": 500, "alpha": 0.97, "load": "5.05:10.5:0.05", "horizon": 100}


def million(size: int) -> Plan:
    """Return a plan of `size` times `size` points."""
    return make_plan({"pools": 10, "alpha": f"0.0001:{0.0001 * size:.4f}:0.0001",
                      "load": f"0.01:{0.01 * size:.2f}:0.01", "horizon": 1}, values="spread")  # fmt: skip


def written(folder: Path, plan: Plan) -> None:
    """Write all points of a plan as if they had been run: what they say does not matter here."""
    home = Folder(folder, plan)
    for start in range(0, len(plan.grid), 20_000):
        stop = min(start + 20_000, len(plan.grid))
        home.add([Row(index, None, 100, 1, [0.5, None], 0.0) for index in range(start, stop)])
        home.flush()
    home.merge()
    home.close()


def resume(scale: float) -> list[Figure]:
    """Measure how long it takes to plan a million points, and to find out that all of them are done."""
    size = 1000 if scale >= 1 else 30
    started = time.perf_counter()
    plan = million(size)
    planned = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as out:
        written(Path(out), plan)
        files = [path.stat().st_size for path in Path(out).glob("*.parquet")]
        started = time.perf_counter()
        home = Folder(Path(out), plan)
        left = count_missing(plan, home.done())
        seconds = time.perf_counter() - started
        home.close()
    assert left == 0
    memory = float(
        subprocess.run(
            [sys.executable, "-c", PEAK_MEMORY.format(size=size)],
            check=True,
            capture_output=True,
            text=True,
            cwd=ROOT,
        ).stdout
    )
    points = f"{size * size:,} points"
    return [
        Figure(f"{points}: plan", planned, "s", 10, at_least=False),
        Figure(f"{points}: memory to plan them and to go through all", memory, "MB"),
        Figure(f"{points}: resume when all are done", seconds, "s", 10, at_least=False),
        Figure(f"{points}: files", len(files), ""),
        Figure(f"{points}: size", sum(files) / 1e6, "MB"),
    ]


def two_cores(rounds: int, scale: float) -> list[Figure]:
    """Compare two processes with one."""
    count = max(int(60 * scale), 4)
    plan = make_plan({**LARGE, "load": f"5.05:{5.05 + 0.01 * (count - 1):.2f}:0.01"}, values="spread")
    ratios = [timed(plan, "local", 1)[0] / timed(plan, "local", 2)[0] for _ in range(max(rounds // 3, 1))]
    return [Figure("local, two processes / one", statistics.median(ratios), "times", 1.8)]


def on_ray(scale: float) -> list[Figure]:
    """Measure Ray in the environment that has it."""
    if not RAY.exists() or scale < _TOY:  # it takes ten seconds to start
        return []
    command = [str(RAY), "-W", "ignore", "-m", "bench.sweep_overhead", "ray", str(scale)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    return [Figure(*each) for each in json.loads(done.stdout.splitlines()[-1])]


def sweeps(rounds: int, scale: float) -> Iterator[Figure]:
    """Yield the figures of sweeps, as they are measured."""
    yield from (Figure(*each) for workers in (1, 2) for each in overhead(scale, "local", workers))
    yield from on_ray(scale)
    yield from two_cores(rounds, scale)
    yield from resume(scale)
