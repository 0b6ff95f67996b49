"""Arrival processes: when tasks come. One rule combines each of them with the load.

A process is described in operational time, in which arrivals come at rate 1. The clock of that time runs at
pools * load(t) * service_rate, so that a load and a schedule mean the same for every process. Bursts multiply the
speed of the clock, and their lengths are in mean task times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise

from evenly.errors import InputError
from evenly.inputs import is_listing, number_from, shown
from evenly.workload.number_file import MAX_NUMBERS, read_numbers
from evenly.workload.service import MAX_CV, NAMES, SHORTEST_MEAN, Recipe, balanced_means, parse_service
from evenly.workload.spelling import (
    Numbers,
    read_parameters,
    single,
    split_file,
    split_name,
    unknown_name,
    written,
)

MAX_BURST_RATIO = 1e6
BURST_LENGTHS = (1e-6, 1e6)  # in mean task times
EXAMPLES = (
    "poisson",
    "renewal:cv=2",
    "renewal:erlang:stages=3",
    "bursty:ratio=10,share=0.1,length=2",
    "recorded:FILE",
)
_WHAT = "arrivals"
_BURSTY = {"ratio": (1.0, MAX_BURST_RATIO), "share": (1e-6, 1 - 1e-6), "length": BURST_LENGTHS}
_HAS = {"poisson": "", "renewal": "law", "bursty": "burst", "recorded": "times"}  # what describes each process


@dataclass(frozen=True)
class Burst:
    """A rate that switches between two values, with exponential times in between (a Markov-modulated process).

    ratio: the rate in a burst over the rate outside. share: the fraction of time in bursts. length: the mean
    length of a burst, in mean task times.
    """

    ratio: float
    share: float
    length: float

    def __post_init__(self) -> None:
        for name, bounds in _BURSTY.items():
            value = number_from(f"{_WHAT}: {name} of bursty", getattr(self, name), *bounds)
            object.__setattr__(self, name, value)

    @property
    def factors(self) -> tuple[float, float]:
        """The rates outside and in a burst, relative to the mean rate."""
        outside = 1 / (1 - self.share + self.share * self.ratio)
        return outside, outside * self.ratio

    @property
    def memory(self) -> float:
        """The time in which correlations of the rate fall to 1 / e, in mean task times."""
        return self.length * (1 - self.share)

    @property
    def lengths(self) -> tuple[float, float]:
        """The mean times outside and in a burst, in mean task times."""
        return self.length * (1 - self.share) / self.share, self.length


@dataclass(frozen=True)
class ArrivalProcess:
    """An arrival process. Make one with `parse_arrivals` or `recorded_arrivals`.

    law: the gaps of a renewal process: "cv=2", or a service law. burst: for bursty arrivals. `times` are the
    arrival times of a recording in their own unit, and `source` is its file, as it is written.
    """

    name: str
    law: str = ""
    burst: Burst | None = None
    source: str = ""
    times: Numbers = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if self.name not in _HAS:
            raise unknown_name(_WHAT, self.name, EXAMPLES)
        for part in ("law", "burst", "times"):
            if bool(getattr(self, part)) != (part == _HAS[self.name]):
                verb = "has no" if getattr(self, part) else "needs"
                raise InputError(f"{_WHAT}: {self.name} {verb} {part}. Make processes with parse_arrivals.")
        if self.times:
            _check_times(self.times)
        _ = self.gaps  # checks the law

    @cached_property
    def gaps(self) -> Recipe:
        """How to draw the times between two arrivals, in operational time."""
        if self.name == "recorded":
            return Recipe("replay")
        if self.name != "renewal":
            return Recipe("exponential", cv=1.0)
        if self.law.startswith("cv="):
            return _gaps_of_cv(self.law)
        return parse_service(self.law).recipe

    @property
    def own_rate(self) -> float | None:
        """The mean rate of a recording, in arrivals per unit of its own time; None for other processes."""
        return (len(self.times) - 1) / (self.times[-1] - self.times[0]) if self.times else None

    def __str__(self) -> str:
        if self.burst is not None:
            return written("bursty", {key: (getattr(self.burst, key),) for key in _BURSTY})
        if self.name == "recorded":
            return f"recorded:{self.source}" if self.source else f"recorded ({len(self.times)} arrivals)"
        return f"renewal:{self.law}" if self.name == "renewal" else self.name


def parse_arrivals(arrivals: object) -> ArrivalProcess:
    """Return the process of a text such as "renewal:cv=2"; a process is returned as it is."""
    if isinstance(arrivals, ArrivalProcess):
        return arrivals
    name, rest = split_name(_WHAT, arrivals)
    if name == "poisson" and not rest:
        return ArrivalProcess("poisson")
    if name == "renewal":
        return ArrivalProcess("renewal", law=_checked_gaps(rest))
    if name == "bursty":
        return ArrivalProcess("bursty", burst=_burst(rest))
    if name == "recorded":
        path, column = split_file(_WHAT, name, rest)
        return _recorded(read_numbers(path, column), rest)
    raise unknown_name(_WHAT, arrivals, EXAMPLES)


def recorded_arrivals(times: Iterable[float], source: str = "") -> ArrivalProcess:
    """Return the process that repeats recorded arrival times: the gaps between them, in their order.

    Their unit does not matter: the gaps are scaled to the load. After the last, the first gap follows again.
    """
    if not is_listing(times):
        raise InputError(f"times must be a list of numbers, not {shown(times)}.")
    values = tuple(number_from("An arrival time", value, 0) for value in islice(times, MAX_NUMBERS + 1))
    if len(values) > MAX_NUMBERS:
        raise InputError(f"times must be at most {MAX_NUMBERS:,} numbers.")
    return _recorded(values, source)


def _recorded(times: Numbers, source: str) -> ArrivalProcess:
    _check_times(times)  # also that there are any
    return ArrivalProcess("recorded", source=source, times=times)


def _check_times(times: Numbers) -> None:
    if len(times) < 2 or times[0] == times[-1]:
        raise InputError(f"{_WHAT}: recorded needs two different times at least: their rate would be infinite.")
    for earlier, later in pairwise(times):
        if later < earlier:
            raise InputError(f"{_WHAT}: recorded times must not decrease, as from {earlier:g} to {later:g}.")
    gap = (times[-1] - times[0]) / (len(times) - 1)
    if gap < SHORTEST_MEAN:
        raise InputError(f"{_WHAT}: recorded needs a mean gap of at least {SHORTEST_MEAN:g}, not {gap:g}.")


def _checked_gaps(text: str) -> str:
    """Return the gaps of a renewal process in their one spelling."""
    if text.startswith("cv="):
        return f"cv={_gaps_of_cv(text).cv:.12g}"
    if text.partition(":")[0] not in NAMES:
        raise InputError(
            f"{_WHAT}: renewal needs cv or a service law for the gaps, as in renewal:cv=2 or "
            f"renewal:erlang:stages=3, not {shown(text)}."
        )
    try:
        return str(parse_service(text))
    except InputError as error:
        raise InputError(f"{_WHAT}: {str(error).removeprefix('service: ')}") from None


def _gaps_of_cv(text: str) -> Recipe:
    """Return gaps with mean 1 and this coefficient of variation.

    Above 1, a mixture of two exponentials with balanced means; up to 1, a constant plus an exponential. Both are
    the usual two-moment fits (W. Whitt, Approximating a point process by a renewal process, 1982).
    """
    found = read_parameters(_WHAT, "renewal:cv=2", text, ("cv",))
    cv = number_from(f"{_WHAT}: cv of renewal", single(_WHAT, "renewal", "cv", found), 0, MAX_CV)
    return balanced_means(cv) if cv > 1 else Recipe("shifted", (cv,), cv)


def _burst(text: str) -> Burst:
    example = EXAMPLES[3]
    found = read_parameters(_WHAT, example, text, _BURSTY)
    for key in _BURSTY:
        if key not in found:
            raise InputError(f"{_WHAT}: bursty needs {key}, as in {example}.")
    return Burst(*(single(_WHAT, "bursty", key, found) for key in _BURSTY))
