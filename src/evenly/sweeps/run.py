"""Run a grid of scenarios: `sweep`, in Python and behind `evenly sweep`."""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from evenly.errors import InputError
from evenly.inputs import check_function, true_or_false
from evenly.sim import Scenario
from evenly.sim.compiling import compile_kernels
from evenly.sweeps.engine_maker import EngineMaker, engine_maker
from evenly.sweeps.folder import Folder
from evenly.sweeps.planning import plan_over
from evenly.sweeps.point import Plan
from evenly.sweeps.progress import Progress, Status
from evenly.sweeps.result import SweepResult
from evenly.sweeps.schedule import Schedule, count_missing


def sweep(
    scenario: Scenario,
    *,
    over: Mapping[str, Any],
    zip: str | Sequence[str] | Sequence[Sequence[str]] | None = None,
    values: str | Sequence[str] | None = None,
    until: str | None = None,
    replications: int = 1,
    seed: int = 1,
    batches: int | None = None,
    mean_holding_times: bool = False,
    out: str | Path | None = None,
    engine: str = "local",
    workers: int | None = None,
    ray_address: str | None = None,
    fail_fast: bool = False,
    progress: Progress | None = None,
) -> SweepResult:
    """Simulate a scenario at every point of a grid. Points that are in the folder `out` already are not run again.

    scenario: what all points share.
    over: the options that vary, by name: fields of a scenario, replications, seed, batches or steady_state. Each
        has a list of values, or a text such as "0.5:0.99:0.01" (steps) or "10..10000/7" (ratios). Lists multiply.
    zip: options that vary together instead, as in "alpha,pools"; several groups as a list.
    values: names of `evenly.sweeps.values.VALUES` to record (default: the averages that are single numbers).
    until: add replications to each point until a half-width is small enough, as in "spread < 0.005" or
        "spread < 1%" (at least 4 replications, at most 4,096).
    replications, seed, batches, mean_holding_times: as in `simulate`, for each point. Its random numbers depend
        on its parameters and the seed alone: neither engine, workers nor order matter.
    out: folder of Parquet files, created if needed (default: a temporary one that lives as long as the result).
    engine: "local" for processes on this machine, "ray" or "gpu".
    workers: processes of the local engine (default: one per usable core).
    ray_address: Ray cluster to join, such as "auto" (default: start Ray on this machine).
    fail_fast: stop at the first point that fails (default: its error becomes its row).
    progress: called with a `Status` several times a second.
    """
    check_function("progress", progress)
    make_engine = engine_maker(engine, workers, ray_address)
    stops = true_or_false("fail_fast", fail_fast)
    runs = {"replications": replications, "seed": seed, "batches": batches, "steady_state": mean_holding_times}
    plan = plan_over(scenario, over, zip=zip, values=values, until=until, gpu=make_engine.gpu, **runs)
    folder = Path(tempfile.mkdtemp(prefix="evenly-sweep-")) if out is None else Path(out)
    result = run_plan(plan, folder, make_engine=make_engine, fail_fast=stops, progress=progress)
    if out is None:
        weakref.finalize(result, shutil.rmtree, folder, ignore_errors=True)
    return result


def run_plan(
    plan: Plan,
    path: Path,
    *,
    make_engine: EngineMaker,
    fail_fast: bool = False,
    progress: Progress | None = None,
) -> SweepResult:
    """Run what is missing of a plan in a folder, and return the result."""
    started = time.perf_counter()
    make_engine.check()
    folder = Folder(path, plan)
    try:
        status = _run_missing(plan, folder, make_engine, fail_fast, progress)
    finally:
        folder.close()
    return SweepResult(folder=path, status=status, seconds=time.perf_counter() - started)


def _run_missing(
    plan: Plan, folder: Folder, make_engine: EngineMaker, fail_fast: bool, progress: Progress | None
) -> Status:
    known = folder.done()
    if not count_missing(plan, known):
        return Status(len(plan.grid), len(plan.grid), 0, 0, 0.0)
    if not plan.gpu:
        compile_kernels(plan.samples)  # here, or load them from disk: not in many processes at once
    engine = make_engine(plan.sealed())
    try:
        status = Schedule(plan, folder, engine, fail_fast, progress).run(known)
    except BaseException:
        engine.close()
        with suppress(InputError):  # the error at hand says more than a full disk
            folder.flush()
        raise
    engine.close()
    return status
