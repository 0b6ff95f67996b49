"""Demand over time: phases of constant load or of a smooth wave around it.

Simulations and predictions share it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, pairwise

from evenly.errors import InputError
from evenly.inputs import finite_number, is_listing, number_from, positive_number, shown

MAX_LOAD = 10**6
MAX_PHASES = 10_000
SHORTEST_PERIOD = 1e-100  # below it, the angle of the sine overflows
_TOO_MANY = f"A schedule must have at most {MAX_PHASES:,} phases."


@dataclass(frozen=True)
class Phase:
    """From `start` on, the load per pool is load + amplitude * sin(2 pi (t - start) / period)."""

    start: float
    load: float
    amplitude: float = 0.0
    period: float = 1.0

    def __post_init__(self) -> None:
        self._keep("start", finite_number("A phase's start", self.start))
        self._keep("load", number_from("A phase's load", self.load, 0, MAX_LOAD))
        amplitude = number_from("A wave's amplitude", self.amplitude, 0)
        if amplitude > self.load:
            raise InputError(f"A wave's amplitude must be at most the load {self.load:g}, not {amplitude:g}.")
        self._keep("amplitude", amplitude)
        period = positive_number("A wave's period", self.period)
        self._keep("period", number_from("A wave's period", period, SHORTEST_PERIOD))

    def _keep(self, name: str, value: float) -> None:
        """Set a field to its checked value, a plain float."""
        object.__setattr__(self, name, value)

    def load_at(self, time: float) -> float:
        """Return the offered load per pool at a time in this phase."""
        return self.load + self.amplitude * math.sin(2 * math.pi * (time - self.start) / self.period)

    def __str__(self) -> str:
        wave = f"~{self.amplitude:.12g}/{self.period:.12g}" if self.amplitude else ""
        return f"{self.start:.12g}:{self.load:.12g}{wave}"


def parse_schedule(text: str) -> tuple[Phase, ...]:
    """Return the phases of a text such as "0:5.5,20:10"; "33:8~2/6" swings by 2 around 8 with period 6."""
    if text.count(",") >= MAX_PHASES:
        raise InputError(_TOO_MANY)
    return check_schedule(_parse_phase(part) for part in text.split(","))


def check_schedule(phases: Iterable[Phase]) -> tuple[Phase, ...]:
    """Return the phases as a tuple, or raise InputError unless they begin at time 0 and follow each other."""
    if not is_listing(phases):
        raise InputError(_not_a_schedule(phases))
    schedule = tuple(islice(phases, MAX_PHASES + 1))
    if len(schedule) > MAX_PHASES:
        raise InputError(_TOO_MANY)
    if not all(isinstance(phase, Phase) for phase in schedule):
        raise InputError(_not_a_schedule(phases))
    if not schedule or schedule[0].start != 0:
        raise InputError("A schedule must begin at time 0, as in 0:5.5,20:10.")
    for earlier, later in pairwise(phase.start for phase in schedule):
        if later <= earlier:
            raise InputError(f"A schedule's times must increase, not go from {earlier:g} to {later:g}.")
    return schedule


def _not_a_schedule(given: object) -> str:
    return f"A schedule is a text such as 0:5.5,20:10 or a list of phases, not {shown(given)}."


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
            f"A schedule lists time:load or time:load~amplitude/period, as in 0:5.5,20:10~1/4, not {shown(text)}."
        ) from None
