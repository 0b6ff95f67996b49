"""Demand over time: phases of constant load or of a smooth wave around it.

Simulations and predictions share it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from evenly.errors import InputError

MAX_LOAD = 10**6


@dataclass(frozen=True)
class Phase:
    """From `start` on, the load per pool is load + amplitude * sin(2 pi (t - start) / period)."""

    start: float
    load: float
    amplitude: float = 0.0
    period: float = 1.0

    def __post_init__(self) -> None:
        for name in ("start", "load", "amplitude", "period"):
            if not math.isfinite(getattr(self, name)):
                raise InputError(f"A phase's {name} must be a finite number, not {getattr(self, name)}.")
        if not 0 <= self.load <= MAX_LOAD:
            raise InputError(f"The load must lie between 0 and {MAX_LOAD}, not {self.load:g}.")
        if not 0 <= self.amplitude <= self.load:
            raise InputError(
                f"A wave's amplitude must lie between 0 and the load {self.load:g}, not {self.amplitude:g}."
            )
        if self.period <= 0:
            raise InputError(f"A wave's period must be positive, not {self.period:g}.")

    def load_at(self, time: float) -> float:
        """Offered load per pool at a time in this phase."""
        return self.load + self.amplitude * math.sin(2 * math.pi * (time - self.start) / self.period)

    def __str__(self) -> str:
        wave = f"~{self.amplitude:.12g}/{self.period:.12g}" if self.amplitude else ""
        return f"{self.start:.12g}:{self.load:.12g}{wave}"


def parse_schedule(text: str) -> tuple[Phase, ...]:
    """Phases from "0:5.5,20:10,30:3"; "33:8~2/6" swings by 2 around 8 with period 6."""
    return check_schedule(_parse_phase(part) for part in text.split(","))


def check_schedule(phases: Iterable[Phase]) -> tuple[Phase, ...]:
    """The phases, if they begin at time 0 and follow each other."""
    schedule = tuple(phases)
    starts = [phase.start for phase in schedule]
    if not starts or starts[0] != 0:
        raise InputError("A schedule must begin at time 0, as in 0:5.5,20:10.")
    if any(later <= earlier for earlier, later in pairwise(starts)):
        raise InputError(f"A schedule's times must increase, not {', '.join(f'{s:g}' for s in starts)}.")
    return schedule


def _parse_phase(text: str) -> Phase:
    try:
        start, _, demand = text.partition(":")
        load, _, wave = demand.partition("~")
        if not wave:
            return Phase(float(start), float(load))
        amplitude, _, period = wave.partition("/")
        return Phase(float(start), float(load), float(amplitude), float(period))
    except InputError:
        raise
    except ValueError:
        raise InputError(
            f"A schedule lists time:load or time:load~amplitude/period, as in 0:5.5,20:10~1/4, not {text!r}."
        ) from None
