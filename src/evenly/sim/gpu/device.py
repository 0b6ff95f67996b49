"""Run points on the GPU: compile the chain with NVRTC, launch it once, fetch the sums."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.sim.gpu.points import SOURCE, SUMS, as_points, levels
from evenly.sim.scenario import Scenario

_THREADS = 256  # per block, as in kernel.cu
_POLL_S = 0.001
_TICKS = 2.0**24  # per unit of time at a threshold, as in kernel.cu


@dataclass(frozen=True)
class Launch:
    """What the replications recorded: one row per point, one column per replication.

    `threshold_time` has the time at each threshold, over all replications of a point. `seconds` is the time on the
    device, without compilation and copies.
    """

    sums: NDArray[Any]
    threshold_time: NDArray[np.float64]
    seconds: float


def launch(scenarios: Sequence[Scenario], seeds: Sequence[int], replications: int, *, imbalance: bool) -> Launch:
    """Simulate all scenarios at once, with `replications` replications each."""
    cupy = _cupy()
    size = levels(scenarios)
    points = as_points(scenarios, size)
    blocks = -(-replications // _THREADS)
    sums = cupy.zeros(len(points) * replications * SUMS.itemsize, cupy.uint8)
    times = cupy.zeros((len(points), size), cupy.uint64)
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    arguments = (
        cupy.asarray(points.view(np.uint8)),
        cupy.asarray(np.array(seeds, np.uint64)),
        np.int32(replications),
        np.int32(blocks),
        sums,
        times,
    )
    kernel = _kernel(size, imbalance)
    begin.record()
    kernel((len(points) * blocks,), (_THREADS,), arguments)
    end.record()
    while not end.done:  # not end.synchronize(): Ctrl-C would have to wait
        time.sleep(_POLL_S)
    rows = sums.get().view(SUMS).reshape(len(points), replications)
    return Launch(rows, times.get() / _TICKS, cupy.cuda.get_elapsed_time(begin, end) / 1000)


def check_device() -> None:
    """Raise InputError if CuPy or a GPU is missing."""
    _cupy()


@cache
def _kernel(size: int, imbalance: bool) -> Any:  # noqa: ANN401  (CuPy has no types)
    """Compile the chain. CuPy keeps the result on disk."""
    code = (SOURCE / "kernel.cu").read_text(encoding="utf-8")
    code = code.replace('#include "chain.h"', (SOURCE / "chain.h").read_text(encoding="utf-8"))
    options = ["-std=c++17", f"-DEVENLY_LEVELS={size}", *(["-DEVENLY_IMBALANCE"] if imbalance else [])]
    return _cupy().RawModule(code=code, options=tuple(options)).get_function("run_points")


@cache
def _cupy() -> Any:  # noqa: ANN401
    """Return CuPy, or raise InputError if it or a GPU is missing."""
    try:
        import cupy
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise
        raise InputError(
            "The engine gpu needs an NVIDIA GPU and CuPy, which is not installed: run pip install '.[gpu]' in a "
            "checkout of evenly."
        ) from None
    try:
        found = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        found = 0
    if not found:
        raise InputError("The engine gpu needs an NVIDIA GPU, and there is none here.")
    return cupy
