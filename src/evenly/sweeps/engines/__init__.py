"""Engines: they only map jobs to outcomes. What a job is, and what becomes of a lost one, is decided elsewhere."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from evenly.sweeps.point import Row

NAMES = ("local", "ray", "gpu")


class Job(NamedTuple):
    """Points to run, for about `seconds`."""

    number: int
    indices: list[int]
    seconds: float


class Outcome(NamedTuple):
    """What became of a job: rows, and the points that are left. `lost` says why the process that ran it died.

    `device_seconds` is how long a GPU worked on it.
    """

    number: int
    rows: list[Row]
    left: list[int]
    lost: str | None = None
    device_seconds: float = 0.0


class Engine(Protocol):
    """Runs jobs somewhere. A job should take `batch_s` seconds, or have `batch_points` points if that is given."""

    batch_s: float
    batch_points: int | None

    @property
    def slots(self) -> int:
        """How many jobs to keep in flight."""
        ...

    def submit(self, job: Job) -> None:
        """Start a job."""
        ...

    def collect(self, timeout: float) -> list[Outcome]:
        """Wait up to `timeout` seconds, and return the outcomes of the jobs that ended."""
        ...

    def close(self) -> None:
        """Stop everything, at once."""
        ...
