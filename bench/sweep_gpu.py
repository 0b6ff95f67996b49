"""Sweeps on a GPU: events per second of device time, without compilation."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.measure import Figure
from evenly.errors import InputError
from evenly.sim.gpu.device import check_device
from evenly.sweeps.engine_maker import engine_maker
from evenly.sweeps.gpu_values import DEFAULT
from evenly.sweeps.planning import make_plan
from evenly.sweeps.run import run_plan

LOADS = (5.5, 10.5)
MAP: dict[str, Any] = {
    "pools": 500, "alpha": "0.5:0.99:0.01", "load": "0.5:12.75:0.25", "horizon": 320, "warmup": 20,
    "replications": 480,
}  # fmt: skip
OTHERS = ({"policy": "jsq"}, {"policy": "power-of-d"}, {"policy": "random"})


def totals(given: dict[str, Any], values: Sequence[str] | None = None) -> dict[str, Any]:
    """Run a sweep in a folder that is thrown away; return its totals."""
    with tempfile.TemporaryDirectory() as out:
        plan = make_plan(given, values=values, gpu=True)
        return run_plan(plan, Path(out), make_engine=engine_maker("gpu", None, None)).to_dict()


def speed(load: float, values: Sequence[str] | None = None, **more: Any) -> float:  # noqa: ANN401
    """Return events per second at a load, from a start near the equilibrium."""
    learned = {} if more else {"alpha": "0.97", "threshold": int(load)}
    given = {
        "pools": 500, "load": load, "initial_tasks": load, "horizon": 170, "warmup": 20, **learned, **more,
        "replications": 100_000 if not more else 10_000, "seed": "1:10:1",
    }  # fmt: skip
    found = totals(given, values)
    return float(found["events"] / found["device_seconds"])


def on_gpu() -> Iterator[Figure]:
    """Yield the figures of the engine gpu; nothing if there is no GPU, so that the page keeps those it has."""
    try:
        check_device()
    except InputError:
        return
    for load in LOADS:
        yield Figure(f"gpu, threshold, load {load}: default values", speed(load) / 1e9, "G events/s", 300)
    yield Figure(
        "gpu, threshold, load 10.5: and the imbalance", speed(10.5, [*DEFAULT, "imbalance"]) / 1e9, "G events/s"
    )
    for policy in OTHERS:
        yield Figure(f"gpu, {policy['policy']}, load 10.5", speed(10.5, **policy) / 1e9, "G events/s")
    found = totals(MAP)
    yield Figure("gpu, map of 50 x 50 points: events per point", found["events"] / 2500 / 1e9, "G events")
    yield Figure("gpu, map of 50 x 50 points: whole sweep", found["seconds"], "s", 30, at_least=False)
