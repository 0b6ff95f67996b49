"""What the tests of sweeps share: plans, and an engine in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenly.sweeps.engines import Job, Outcome
from evenly.sweeps.folder import Folder
from evenly.sweeps.planning import make_plan
from evenly.sweeps.point import Plan, run_batch
from evenly.sweeps.progress import Status
from evenly.sweeps.result import SweepResult
from evenly.sweeps.schedule import Schedule

SMALL: dict[str, Any] = {"pools": 5, "load": "1.5,2.5", "alpha": "0.7,0.8,0.9", "horizon": 5}


class InlineEngine:
    """Runs jobs in this process. A job with a point in `deadly` is lost, as often as that says; it counts down."""

    batch_s = 0.05
    batch_points: int | None = None
    slots = 3

    def __init__(self, plan: Plan, deadly: dict[int, int] | None = None) -> None:
        self._plan = plan
        self._jobs: list[Job] = []
        self._deadly = {} if deadly is None else deadly
        self.ran: list[int] = []  # every point, as often as it ran

    def submit(self, job: Job) -> None:
        self._jobs.append(job)

    def collect(self, timeout: float) -> list[Outcome]:
        assert timeout > 0
        return [self._run(self._jobs.pop())] if self._jobs else []

    def _run(self, job: Job) -> Outcome:
        for index in job.indices:
            if self._deadly.get(index, 0) > 0:
                self._deadly[index] -= 1
                return Outcome(job.number, [], job.indices, "Its process was killed by signal 9")
        rows, left = run_batch(self._plan, job.indices, job.seconds)
        self.ran += [row.number for row in rows]
        return Outcome(job.number, rows, left)

    def close(self) -> None:
        pass


def small_plan(**changes: Any) -> Plan:  # noqa: ANN401
    values = changes.pop("values", "spread,threshold_share")
    zipped, until = changes.pop("zipped", None), changes.pop("until", None)
    return make_plan({**SMALL, **changes}, zipped, values, until)


def run_inline(
    path: Path, plan: Plan, deadly: dict[int, int] | None = None, *, fail_fast: bool = False
) -> tuple[Status, list[int]]:
    """Run what is missing of a plan in a folder; return how it went and the points that ran."""
    folder = Folder(path, plan)
    engine = InlineEngine(plan, deadly)
    try:
        status = Schedule(plan, folder, engine, fail_fast).run(folder.done())
    finally:
        folder.flush()
        folder.close()
    return status, engine.ran


def rows_of(path: Path) -> list[dict[str, Any]]:
    return SweepResult.read(path).rows().to_dicts()
