"""The plan of the demo: its loads, when parts are killed and started again, and the measured time windows."""

from __future__ import annotations

from dataclasses import dataclass

from evenly.inputs import number_from, whole_number
from evenly.live.demo.plan import MAX_SECONDS, MEAN_STAY, POOLS, Window
from evenly.workload.demand import Phase
from evenly.workload.trace import Visit, draw_visits

LOADS = (5.5, 10.5)
DISPATCHERS = 2
SECONDS = 60.0
MIN_SECONDS = 12.0
KILLED_DISPATCHER = 0
KILLED_POOLS = (4, 13)
REPORT_INTERVAL_S = 1.0  # of the stale reports that the run is compared with

# Shares of the whole time. At full length, each window begins at least three mean stays after the last change.
_STEP = 0.3
_KILL, _RESTART = 0.5, 0.6
_WINDOWS = ((0, 0.1, _STEP), (1, 0.4, _KILL), (1, 0.75, 1.0))


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """Load 5.5, then 10.5. Halfway a dispatcher and two pools are killed, and come back after a tenth."""

    seconds: float = SECONDS
    seed: int = 1

    def __post_init__(self) -> None:
        number_from("seconds", self.seconds, MIN_SECONDS, MAX_SECONDS)
        whole_number("seed", self.seed, 0, 2**64 - 1)

    @property
    def kill_at(self) -> float:
        """When parts are killed, in seconds since the beginning."""
        return _KILL * self.seconds

    @property
    def restart_at(self) -> float:
        """When they are started again."""
        return _RESTART * self.seconds

    @property
    def windows(self) -> tuple[Window, ...]:
        """The measured times: at the first load, at the second before the kills, and after the restarts."""
        return tuple(
            Window(LOADS[load], begin * self.seconds, end * self.seconds) for load, begin, end in _WINDOWS
        )

    def load_at(self, time: float) -> float:
        """Return the offered load at a time."""
        return LOADS[time >= _STEP * self.seconds]

    def visits(self) -> tuple[Visit, ...]:
        """Draw the traffic."""
        return draw_visits(
            pools=POOLS,
            schedule=[Phase(0, LOADS[0]), Phase(_STEP * self.seconds, LOADS[1])],
            horizon=self.seconds,
            mean_stay=MEAN_STAY,
            seed=self.seed,
        )
