"""Run the points of a plan that are missing: cut them into jobs, keep the engine busy, keep what comes back."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evenly.errors import PointFailedError
from evenly.sweeps.axes import written_form
from evenly.sweeps.engines import Engine, Job, Outcome
from evenly.sweeps.folder import Folder
from evenly.sweeps.identity import Lanes, is_among
from evenly.sweeps.point import Plan, Row, failed_row
from evenly.sweeps.progress import Pace, Progress, Status

_CHUNK = 4096  # points whose identities are compared at a time
_WAKE_UP = 0.2  # seconds between looks at the clock
_ATTEMPTS = 3  # to run a point whose process dies
_MAX_BATCH = 5000


def missing_points(plan: Plan, known: Lanes) -> Iterator[int]:
    """Yield the points that are not done, in the order in which they should run."""
    order = plan.grid.order()
    while chunk := list(itertools.islice(order, _CHUNK)):
        indices = np.array(chunk, np.int64)
        yield from indices[~is_among(plan.identities(indices), known)].tolist() if len(known) else chunk


def count_missing(plan: Plan, known: Lanes) -> int:
    """Return how many points are not done."""
    if not len(known):
        return len(plan.grid)
    total = len(plan.grid)
    chunks = (np.arange(start, min(start + _CHUNK, total)) for start in range(0, total, _CHUNK))
    return sum(int((~is_among(plan.identities(chunk), known)).sum()) for chunk in chunks)


@dataclass
class Schedule:
    """The points of a plan on their way through an engine into a folder."""

    plan: Plan
    folder: Folder
    engine: Engine
    fail_fast: bool = False
    progress: Progress | None = None

    def run(self, known: Lanes) -> Status:
        """Run all points that are not known; return how it went."""
        self._left = count_missing(self.plan, known)
        self._reused = len(self.plan.grid) - self._left
        self._new = missing_points(self.plan, known)
        self._again: deque[list[int]] = deque()
        self._flying: dict[int, Job] = {}
        self._deaths: Counter[int] = Counter()
        self._done = self._failed = 0
        self._per_point = self._device_seconds = 0.0
        self._pace = Pace()
        numbers = itertools.count()
        while self._left:
            while len(self._flying) < self.engine.slots and (indices := self._next_batch()):
                job = Job(next(numbers), indices, self.engine.batch_s)
                self._flying[job.number] = job
                self.engine.submit(job)
            assert self._flying, "points are left, but none is on its way"
            for outcome in self.engine.collect(_WAKE_UP):
                self._take(outcome)
            self.folder.tick()
            self._report()
        self.folder.flush()
        self.folder.merge()
        return self._status()

    def _next_batch(self) -> list[int]:
        size = int(self.engine.batch_s / self._per_point) if self._per_point else 1
        fair = self._left // (2 * self.engine.slots)  # at the end, small jobs keep all processes busy
        size = self.engine.batch_points or max(min(size, fair, _MAX_BATCH), 1)
        if not self._again:
            return list(itertools.islice(self._new, size))
        indices = self._again.popleft()
        if len(indices) > size:
            self._again.appendleft(indices[size:])
        return indices[:size]

    def _take(self, outcome: Outcome) -> None:
        job = self._flying.pop(outcome.number)
        if outcome.lost is not None:
            self._take_lost(job, outcome.lost)
            return
        self._device_seconds += outcome.device_seconds
        if outcome.left:
            self._again.appendleft(outcome.left)
        if outcome.rows:
            self._per_point = sum(row.seconds for row in outcome.rows) / len(outcome.rows)
            self._keep(outcome.rows)

    def _take_lost(self, job: Job, reason: str) -> None:
        """Run the points of a lost job again, one by one: a point that kills its process is found that way."""
        for index in job.indices:
            self._deaths[index] += 1
            if self._deaths[index] < _ATTEMPTS:
                self._again.append([index])
                continue
            error = f"{reason}, {_ATTEMPTS} times; perhaps memory ran out."
            self._keep([failed_row(self.plan, index, error)])

    def _keep(self, rows: list[Row]) -> None:
        self.folder.add(rows)
        self._left -= len(rows)
        self._done += len(rows)
        failed = [row for row in rows if row.error is not None]
        self._failed += len(failed)
        if failed and self.fail_fast:
            raise PointFailedError(
                f"The point {point_text(self.plan, failed[0].number)} failed: {failed[0].error}"
            )

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(self._status())

    def _status(self) -> Status:
        seconds = self._pace.seconds_left(self._done, self._left)
        return Status(len(self.plan.grid), self._reused, self._done, self._failed, seconds, self._device_seconds)


def point_text(plan: Plan, index: int) -> str:
    """Return what sets a point apart, in words: the options that vary, with their values there."""
    given = plan.grid.values(index)
    varied = [name for name in plan.grid.axes if given.get(name) is not None] or ["policy"]
    return ", ".join(f"{name} {written_form(name, given[name])}" for name in varied)
