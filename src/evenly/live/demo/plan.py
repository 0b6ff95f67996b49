"""What the demo plays: how many pools, which loads, and which stretches of time are measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from evenly.errors import InputError
from evenly.live.demo.trace import Phase, Visit, endless, trace

POOLS = 20
LOADS = (5.5, 10.5, 2.5)
MEAN_STAY = 2.0  # seconds
SECONDS = 54.0
LEAST_SECONDS = 6.0
MOST_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Window:
    """The measured end of a phase. What comes before in the phase is the way from one load to the next."""

    load: float
    begin: float
    end: float

    @property
    def optimum(self) -> int:
        """The threshold that balances this load best: the load rounded down. Paper: Sec. 2.2."""
        return math.floor(self.load)


@dataclass(frozen=True, slots=True)
class Plan:
    """Loads one after the other, for the same time each."""

    seconds: float = SECONDS
    seed: int = 1

    def __post_init__(self) -> None:
        if not LEAST_SECONDS <= self.seconds <= MOST_SECONDS:
            raise InputError(
                f"The traffic must last {LEAST_SECONDS:g} to {MOST_SECONDS:g} seconds, not {self.seconds:g}."
            )

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The loads and how long each lasts."""
        return tuple(Phase(load, self.seconds / len(LOADS)) for load in LOADS)

    @property
    def windows(self) -> tuple[Window, ...]:
        """The last two thirds of each phase: at full length it leaves out three mean stays, 6 s."""
        length = self.seconds / len(LOADS)
        return tuple(
            Window(load, (place + 1 / 3) * length, (place + 1) * length) for place, load in enumerate(LOADS)
        )

    def load_at(self, time: float) -> float:
        """The load that comes in at this time."""
        place = int(time * len(LOADS) / self.seconds)
        return LOADS[min(max(place, 0), len(LOADS) - 1)]

    def visits(self) -> tuple[Visit, ...]:
        """The traffic; who would stay longer leaves at the end."""
        drawn = trace(pools=POOLS, phases=self.phases, mean_stay=MEAN_STAY, seed=self.seed)
        return tuple(Visit(visit.start, min(visit.stay, self.seconds - visit.start)) for visit in drawn)

    def encore(self) -> Iterator[Visit]:
        """Traffic at the first load that goes on until somebody stops it."""
        return endless(pools=POOLS, load=LOADS[0], mean_stay=MEAN_STAY, seed=self.seed)
