"""A GPU: many points in one launch, one thread per replication."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from evenly.sim.gpu.device import Launch, launch
from evenly.sim.gpu.readings import Reading
from evenly.sweeps.engines import Job, Outcome
from evenly.sweeps.gpu_values import needs_imbalance, take
from evenly.sweeps.point import Plan, Row, failed_row, scenario_of

_MAX_THREADS = 2**23  # of one launch: thirty times what an H200 runs at once, and a gigabyte of sums
_OVERFLOW = "A pool had more tasks than the GPU has room for."

Launcher = Callable[..., Launch]


class GpuEngine:
    """Runs the points of a job together."""

    batch_s = 0.0
    batch_points: int | None = 10**5
    slots = 1

    def __init__(self, plan: Plan, launcher: Launcher = launch) -> None:
        self._plan, self._launch = plan, launcher
        self._jobs: list[Job] = []

    def submit(self, job: Job) -> None:
        """Keep the job until `collect`."""
        self._jobs.append(job)

    def collect(self, timeout: float) -> list[Outcome]:
        """Run as much of a job as one launch holds: points with equally many replications."""
        job = self._jobs.pop()
        runs = self._plan.grid.values(job.indices[0])["replications"]
        alike = [index for index in job.indices if self._plan.grid.values(index)["replications"] == runs]
        chosen = alike[: max(_MAX_THREADS // runs, 1)]
        running = {*chosen}
        left = [index for index in job.indices if index not in running]
        rows, seconds = self._run(chosen, runs)
        return [Outcome(job.number, rows, left, device_seconds=seconds)]

    def close(self) -> None:
        """Do nothing: no launch is on its way."""

    def _run(self, indices: Sequence[int], replications: int) -> tuple[list[Row], float]:
        started = time.perf_counter()
        scenarios = [scenario_of(self._plan.grid.values(index)) for index in indices]
        seeds = self._plan.seeds(np.array(indices, np.int64))
        imbalance = needs_imbalance(self._plan.values)
        done = self._launch(scenarios, seeds, replications, imbalance=imbalance)
        each = (time.perf_counter() - started) / len(indices)
        rows = [
            self._row(index, Reading(scenario, done.sums[place], done.threshold_time[place]), each)
            for place, (index, scenario) in enumerate(zip(indices, scenarios, strict=True))
        ]
        return rows, done.seconds

    def _row(self, index: int, reading: Reading, seconds: float) -> Row:
        if reading.overflowed:
            return failed_row(self._plan, index, _OVERFLOW, seconds)
        taken = take(reading, self._plan.values)
        return Row(index, None, reading.events, reading.replications, taken, seconds)
