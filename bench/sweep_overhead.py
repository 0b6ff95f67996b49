"""The overhead of a sweep's engine. Runs also in the environment of Ray, which has none of the other tools.

python -m bench.sweep_overhead ENGINE SCALE
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from evenly.sweeps.engine_maker import engine_maker
from evenly.sweeps.engines import Engine, Job
from evenly.sweeps.folder import Folder
from evenly.sweeps.planning import make_plan
from evenly.sweeps.point import Plan, run_point
from evenly.sweeps.progress import Status
from evenly.sweeps.schedule import Schedule

SMALL: dict[str, Any] = {"pools": 10, "alpha": 0.9, "horizon": 5}
Measured = tuple[str, float, str]  # what, value, unit


def timed(plan: Plan, name: str, workers: int | None) -> tuple[float, Status]:
    """Return the seconds that a plan takes on an engine that is warm, and how it went."""
    with tempfile.TemporaryDirectory() as out:
        engine = engine_maker(name, workers, None)(plan.sealed())
        folder = Folder(Path(out), plan)
        try:
            _warm(plan, engine)
            started = time.perf_counter()
            status = Schedule(plan, folder, engine).run(folder.done())
            return time.perf_counter() - started, status
        finally:
            folder.close()
            engine.close()


def _warm(plan: Plan, engine: Engine) -> None:
    """Wait until every process has started and has its kernel: each gets a job."""
    for number in range(engine.slots):
        engine.submit(Job(number, [0], 0.0))
    left = engine.slots
    while left:
        left -= len(engine.collect(60.0))
    assert len(plan.grid) > 0


def inline_rate(plan: Plan, count: int) -> float:
    """Return the points per second of one process that does nothing else."""
    run_point(plan, 0)
    started = time.perf_counter()
    for index in range(count):
        run_point(plan, index)
    return count / (time.perf_counter() - started)


def overhead(scale: float, name: str, workers: int | None) -> list[Measured]:
    """Compare an engine on small points with a plain loop in this process."""
    count = max(int(400 * scale), 20)
    plan = make_plan({**SMALL, "load": f"1.5:{1.5 + 0.0005 * (count - 1):.4f}:0.0005"}, values="spread")
    rates, alone = [], []
    for _ in range(3 if name == "local" else 1):
        alone.append(inline_rate(plan, count))
        seconds, status = timed(plan, name, workers)
        rates.append(status.done / seconds)
    processes = workers or os.cpu_count() or 1
    extra = processes / statistics.median(rates) - 1 / statistics.median(alone)
    where = f"{name}, {processes} process{'es' if processes > 1 else ''}"
    return [
        (f"{where}: small points", statistics.median(rates), "points/s"),
        (f"{where}: overhead per point, beyond a plain loop", 1e3 * extra, "ms"),
    ]


if __name__ == "__main__":
    print(json.dumps(overhead(float(sys.argv[2]), sys.argv[1], None)))
