"""The plan of the demo: its size, the loads, what evenly is compared with, and the measured time windows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from evenly.inputs import number_from, whole_number
from evenly.workload.demand import Phase
from evenly.workload.trace import Visit, draw_visits, endless_visits

POOLS = 20
ENVOYS = 2
RIVAL = "least_request"  # Envoy's own policy, in the same Envoys
SELECTION_METHOD = "FULL_SCAN"  # of the rival; its default compares two random pools, which is less even
LOADS = (5.5, 10.5, 2.5)
MEAN_STAY = 2.0  # seconds
SECONDS = 54.0
MIN_SECONDS = 6.0
MAX_SECONDS = 3600.0


def best_threshold(load: float) -> int:
    """Return the threshold that balances a load best: the load rounded down. Paper: Sec. 2.2."""
    return math.floor(load)


@dataclass(frozen=True, slots=True)
class Window:
    """The measured end of a phase. Its beginning is the transition from one load to the next."""

    load: float
    begin: float
    end: float

    @property
    def optimum(self) -> int:
        """The threshold that balances this load best."""
        return best_threshold(self.load)


@dataclass(frozen=True, slots=True)
class Plan:
    """The three loads one after another, each for a third of `seconds`."""

    seconds: float = SECONDS
    seed: int = 1

    def __post_init__(self) -> None:
        number_from("seconds", self.seconds, MIN_SECONDS, MAX_SECONDS)
        whole_number("seed", self.seed, 0, 2**64 - 1)

    @property
    def schedule(self) -> tuple[Phase, ...]:
        """The loads and their starts."""
        return tuple(Phase(place * self._phase_seconds, load) for place, load in enumerate(LOADS))

    @property
    def windows(self) -> tuple[Window, ...]:
        """The last two thirds of each phase. At full length this leaves out three mean stays, 6 s."""
        length = self._phase_seconds
        return tuple(
            Window(load, (place + 1 / 3) * length, (place + 1) * length) for place, load in enumerate(LOADS)
        )

    def load_at(self, time: float) -> float:
        """Return the offered load at a time."""
        place = int(time * len(LOADS) / self.seconds)
        return LOADS[min(max(place, 0), len(LOADS) - 1)]

    def visits(self) -> tuple[Visit, ...]:
        """Draw the traffic. Sessions that would last longer end with the plan."""
        drawn = draw_visits(
            pools=POOLS,
            schedule=self.schedule,
            horizon=len(LOADS) * self._phase_seconds,
            mean_stay=MEAN_STAY,
            seed=self.seed,
        )
        return tuple(Visit(visit.start, min(visit.stay, self.seconds - visit.start)) for visit in drawn)

    def endless_visits(self) -> Iterator[Visit]:
        """Draw traffic at the first load, without an end."""
        return endless_visits(pools=POOLS, load=LOADS[0], mean_stay=MEAN_STAY, seed=self.seed)

    @property
    def _phase_seconds(self) -> float:
        return self.seconds / len(LOADS)
