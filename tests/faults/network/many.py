"""Many schedules, on several cores."""

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat

from tests.faults.network.run import MODES, Outcome, run_schedule
from tests.faults.network.system import Peers

_CHUNK = 50  # schedules per task of a process


@dataclass(kw_only=True)
class Tally:
    """What happened in many schedules: their number by mode, events, faults by kind, and those that failed."""

    schedules: Counter[str] = field(default_factory=Counter)
    events: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    failures: list[Outcome] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Add the schedules of another tally."""
        self.schedules += other.schedules
        self.events += other.events
        self.faults += other.faults
        self.failures += other.failures

    def __str__(self) -> str:
        modes = ", ".join(f"{count:,} {mode}" for mode, count in sorted(self.schedules.items(), reverse=True))
        faults = "\n".join(f"{count:>12,}  {kind}" for kind, count in sorted(self.faults.items()))
        return (
            f"{faults}\n{self.schedules.total():,} schedules ({modes}), {self.events:,} events, "
            f"{len(self.failures)} failures"
        )


def mode_of(seed: int) -> str:
    """Return the mode in which a seed runs by default: the modes take turns."""
    return MODES[seed % len(MODES)]


def run_seeds(seeds: Iterable[int], mode: str | None = None, peers: Peers | None = None) -> Tally:
    """Run the schedules of these seeds in one process."""
    tally = Tally()
    for seed in seeds:
        outcome = run_schedule(seed, mode or mode_of(seed), peers=peers)
        tally.schedules[outcome.mode] += 1
        tally.events += outcome.events
        tally.faults += outcome.faults
        if outcome.failure is not None:
            tally.failures.append(outcome)
    return tally


def run_many(
    first: int, schedules: int, *, jobs: int = 1, mode: str | None = None, peers: Peers | None = None
) -> Iterator[Tally]:
    """Run the schedules of `schedules` seeds from `first` on, in `jobs` processes; yield tallies in order."""
    end = first + schedules
    chunks = [range(start, min(start + _CHUNK, end)) for start in range(first, end, _CHUNK)]
    if jobs == 1:
        yield from map(run_seeds, chunks, repeat(mode), repeat(peers))
        return
    with ProcessPoolExecutor(jobs) as processes:
        yield from processes.map(run_seeds, chunks, repeat(mode), repeat(peers))
