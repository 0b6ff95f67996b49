"""Service laws: how long tasks take. A law is a shape with mean 1; `service_rate` sets the mean.

Described here with the standard library alone. `evenly.sim.kernels.draws` samples a law by its recipe.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

from evenly.errors import InputError
from evenly.inputs import is_listing, number_from, shown, whole_number
from evenly.workload.number_file import MAX_NUMBERS, read_numbers
from evenly.workload.spelling import (
    Numbers,
    read_parameters,
    single,
    split_file,
    split_name,
    unknown_name,
    written,
)

MAX_CV = 100.0
MAX_STAGES = 1000
MAX_COXIAN_STAGES = 20
SHAPES = (0.1, 100.0)  # of Weibull and Pareto laws
MAX_RATIO = 1e12
_STAGE_MEANS = (1e-9, 1e9)  # of Coxian laws; only their proportions count
_TAIL_WEIGHT = 0.35
SHORTEST_MEAN = 1e-300  # of durations and of gaps, in their own unit: below it, their ratios lose digits
_WHAT = "service"


@dataclass(frozen=True)
class Recipe:
    """How to draw from a law with mean 1: the method, its numbers, the coefficient of variation, the third moment.

    The methods, with E a standard exponential and U a uniform on (0, 1):
    exponential: E. shifted a: 1 - a + a E. stages k: the sum of k exponentials with mean 1 / k.
    mixture p, a, b: a E with probability p, else b E.
    coxian m1, ..., mk, p1, ..., pk: exponential stages with these means; after stage i, the next follows with
    probability pi, and pk is 0. lognormal m, s: exp(m + s Z), Z standard normal. power a, b: b E^a.
    pareto a, b, c: c (1 - b U)^a. sample: a uniform choice among the values. replay: the values in their order.
    """

    method: str
    numbers: Numbers = ()
    cv: float = math.nan
    third: float = math.nan  # the mean of the cube


@dataclass(frozen=True)
class ServiceLaw:
    """A service law with mean 1: a name with parameters, or durations that were measured.

    Make one with `parse_service` or `empirical_law`. `values` are the durations of an empirical law in their own
    unit, and `source` is the file that they come from, as it is written.
    """

    name: str
    parameters: tuple[tuple[str, Numbers], ...] = ()
    source: str = ""
    values: Numbers = field(default=(), repr=False)

    def __post_init__(self) -> None:
        _ = self.recipe  # checks the parameters

    @cached_property
    def recipe(self) -> Recipe:
        """How to draw from it."""
        if self.name == "empirical":
            return _empirical(self.values)
        family, given = _family(self.name), dict(self.parameters)
        for key in family.needed:
            if key not in given:
                raise InputError(f"{_WHAT}: {self.name} needs {key}, as in {family.example}.")
        return family.make(given)

    @property
    def cv(self) -> float:
        """The coefficient of variation: standard deviation over mean; infinite for some Pareto laws."""
        return self.recipe.cv

    @property
    def memory(self) -> float:
        """Mean task times in which a system forgets its tasks; infinite for some Pareto laws.

        The correlation of the number of tasks over time is the chance that a task in progress stays that long. Its
        integral is the mean remaining time of such a task, E[S^2] / 2. Its tail is longer than that of an
        exponential with this mean if the remaining time varies more: E[S^3] / (3 E[S^2]) is the integral of the
        correlation weighted by its own time. Decision 19 says where the weights come from.
        """
        if math.isinf(self.recipe.third):
            return math.inf
        second = 1 + self.cv**2
        return max(second / 2, _TAIL_WEIGHT * self.recipe.third / (3 * second))

    @property
    def own_mean(self) -> float | None:
        """The mean of measured durations in their own unit; None for other laws."""
        return _mean(self.values) if self.values else None

    def __str__(self) -> str:
        if self.name == "empirical":
            return f"empirical:{self.source}" if self.source else f"empirical ({len(self.values)} durations)"
        return written(self.name, dict(self.parameters))


def parse_service(service: object) -> ServiceLaw:
    """Return the law of a text such as "lognormal:cv=4"; a law is returned as it is."""
    if isinstance(service, ServiceLaw):
        return service
    name, rest = split_name(_WHAT, service)
    if name == "empirical":
        path, column = split_file(_WHAT, name, rest)
        return ServiceLaw("empirical", source=rest, values=read_numbers(path, column))
    family = _family(name, service)
    found = read_parameters(_WHAT, family.example, rest, family.keys)
    return ServiceLaw(name, tuple((key, found[key]) for key in family.keys if key in found))


def empirical_law(durations: Iterable[float], source: str | Path = "") -> ServiceLaw:
    """Return the law of measured durations: a task takes one of them, each with the same probability.

    Their unit does not matter: the law is scaled to mean 1. `own_mean` is their mean in their own unit.
    """
    if not is_listing(durations):
        raise InputError(f"durations must be a list of numbers, not {shown(durations)}.")
    values = tuple(number_from("A duration", value, 0) for value in islice(durations, MAX_NUMBERS + 1))
    if not 0 < len(values) <= MAX_NUMBERS:
        raise InputError(f"durations must be 1 to {MAX_NUMBERS:,} numbers, not {'more' if values else 'none'}.")
    return ServiceLaw("empirical", source=str(source), values=values)


# --- the families -----------------------------------------------------------------------------------------------

_Given = Mapping[str, Numbers]


@dataclass(frozen=True)
class _Family:
    example: str
    make: Callable[[_Given], Recipe]
    keys: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()


def _exponential(given: _Given) -> Recipe:
    return Recipe("exponential", cv=1.0, third=6.0)


def _deterministic(given: _Given) -> Recipe:
    return Recipe("shifted", (0.0,), 0.0, 1.0)


def _erlang(given: _Given) -> Recipe:
    value = single(_WHAT, "erlang", "stages", given)
    whole = int(value) if value.is_integer() else value
    stages = whole_number(f"{_WHAT}: stages of erlang", whole, 1, MAX_STAGES)
    return Recipe("stages", (float(stages),), 1 / math.sqrt(stages), (1 + 1 / stages) * (1 + 2 / stages))


def balanced_means(cv: float) -> Recipe:
    """Return the mixture of two exponentials with mean 1, cv >= 1, and balanced means: p a = (1 - p) b = 1 / 2."""
    part = 0.5 * (1 + math.sqrt((cv * cv - 1) / (cv * cv + 1)))
    third = 0.75 * (1 / part**2 + 1 / (1 - part) ** 2)
    return Recipe("mixture", (part, 0.5 / part, 0.5 / (1 - part)), cv, third)


def _hyperexponential(given: _Given) -> Recipe:
    cv = single(_WHAT, "hyperexponential", "cv", given)
    if cv < 1:
        raise InputError(
            f"{_WHAT}: cv of hyperexponential must be a number from 1 to {MAX_CV:g}, not {cv:g}: a mixture of "
            "exponentials varies at least as much as one of them. Below 1, use erlang, lognormal or weibull."
        )
    return balanced_means(number_from(f"{_WHAT}: cv of hyperexponential", cv, 1, MAX_CV))


def _coxian(given: _Given) -> Recipe:
    means, onward = given["means"], given.get("next", ())
    if not 1 <= len(means) <= MAX_COXIAN_STAGES:
        raise InputError(f"{_WHAT}: coxian has 1 to {MAX_COXIAN_STAGES} means, not {len(means)}.")
    if len(onward) != len(means) - 1:
        raise InputError(
            f"{_WHAT}: coxian with {len(means)} means needs {len(means) - 1} numbers under next, "
            f"not {len(onward)}: the probabilities to go on after each stage but the last."
        )
    means = tuple(number_from(f"{_WHAT}: a mean of coxian", each, *_STAGE_MEANS) for each in means)
    chances = (*(number_from(f"{_WHAT}: a probability under next of coxian", each, 0, 1) for each in onward), 0.0)
    largest = max(means)
    mean = second = third = 0.0  # moments of what remains from a stage on, in units of the largest mean
    for stage, chance in zip(reversed(means), reversed(chances), strict=True):
        own = stage / largest
        third = 6 * own**3 + 6 * own**2 * chance * mean + 3 * own * chance * second + chance * third
        second = 2 * own * own + 2 * own * chance * mean + chance * second
        mean = own + chance * mean
    scaled = tuple(stage / largest / mean for stage in means)
    cv = math.sqrt(max(second / mean**2 - 1, 0.0))
    return Recipe("coxian", (*scaled, *chances), cv, third / mean**3)


def _lognormal(given: _Given) -> Recipe:
    cv = number_from(f"{_WHAT}: cv of lognormal", single(_WHAT, "lognormal", "cv", given), 1e-6, MAX_CV)
    variance = math.log1p(cv * cv)
    return Recipe("lognormal", (-variance / 2, math.sqrt(variance)), cv, (1 + cv * cv) ** 3)


def _weibull_cv(shape: float) -> float:
    return math.sqrt(math.expm1(math.lgamma(1 + 2 / shape) - 2 * math.lgamma(1 + 1 / shape)))


def _weibull(given: _Given) -> Recipe:
    if len(given) != 1:
        raise InputError(f"{_WHAT}: weibull needs shape or cv, as in weibull:shape=0.5 or weibull:cv=2.")
    if "shape" in given:
        shape = number_from(f"{_WHAT}: shape of weibull", single(_WHAT, "weibull", "shape", given), *SHAPES)
    else:
        least, most = math.ceil(1e6 * _weibull_cv(SHAPES[1])) / 1e6, MAX_CV
        shape = _weibull_shape(
            number_from(f"{_WHAT}: cv of weibull", single(_WHAT, "weibull", "cv", given), least, most)
        )
    third = math.exp(math.lgamma(1 + 3 / shape) - 3 * math.lgamma(1 + 1 / shape))
    return Recipe("power", (1 / shape, math.exp(-math.lgamma(1 + 1 / shape))), _weibull_cv(shape), third)


def _weibull_shape(cv: float) -> float:
    """Return the shape with this coefficient of variation, which falls as the shape grows."""
    low, high = (math.log(shape) for shape in SHAPES)
    for _ in range(200):
        middle = 0.5 * (low + high)
        if _weibull_cv(math.exp(middle)) > cv:
            low = middle
        else:
            high = middle
    return math.exp(0.5 * (low + high))


def _pareto_moment(shape: float, ratio: float, power: int) -> float:
    """Return the moment of a Pareto law on [1, ratio]."""
    if math.isinf(ratio) and shape <= power:
        return math.inf
    if shape == power:
        return shape * math.log(ratio) / -math.expm1(-shape * math.log(ratio))
    tail = math.expm1((power - shape) * math.log(ratio)) if math.isfinite(ratio) else -1.0
    whole = math.expm1(-shape * math.log(ratio)) if math.isfinite(ratio) else -1.0
    return shape * tail / ((shape - power) * whole)


def _pareto(given: _Given) -> Recipe:
    shape = number_from(f"{_WHAT}: shape of pareto", single(_WHAT, "pareto", "shape", given), *SHAPES)
    ratio = math.inf
    if "ratio" in given:
        ratio = number_from(f"{_WHAT}: ratio of pareto", single(_WHAT, "pareto", "ratio", given), 1.001, MAX_RATIO)
    elif shape <= 1:
        raise InputError(
            f"{_WHAT}: pareto with shape {shape:g} and no ratio has an infinite mean, so the load "
            f"would be infinite; give a shape above 1, or bound the tail, as in pareto:shape={shape:g},ratio=1000."
        )
    mean = _pareto_moment(shape, ratio, 1)
    cv = math.sqrt(max(_pareto_moment(shape, ratio, 2) / mean**2 - 1, 0.0))
    third = _pareto_moment(shape, ratio, 3) / mean**3
    whole = 1.0 if math.isinf(ratio) else -math.expm1(-shape * math.log(ratio))
    return Recipe("pareto", (-1 / shape, whole, 1 / mean), cv, third)


def _empirical(values: Numbers) -> Recipe:
    if not values or max(values) <= 0:
        raise InputError(f"{_WHAT}: empirical needs a duration above 0, since the mean must not be 0.")
    mean = _mean(values)
    if mean < SHORTEST_MEAN:
        raise InputError(f"{_WHAT}: empirical needs a mean of at least {SHORTEST_MEAN:g}, not {mean:g}.")
    second = math.fsum((value / mean - 1) ** 2 for value in values) / len(values)
    third = math.fsum((value / mean) ** 3 for value in values) / len(values)
    return Recipe("sample", cv=math.sqrt(second), third=third)


def _mean(values: Numbers) -> float:
    """Return the mean; the sum of large durations could overflow."""
    largest = max(values)
    return largest * (math.fsum(value / largest for value in values) / len(values))


_FAMILIES = {
    "exponential": _Family("exponential", _exponential),
    "deterministic": _Family("deterministic", _deterministic),
    "erlang": _Family("erlang:stages=3", _erlang, ("stages",), ("stages",)),
    "hyperexponential": _Family("hyperexponential:cv=4", _hyperexponential, ("cv",), ("cv",)),
    "coxian": _Family("coxian:means=0.5/4,next=0.2", _coxian, ("means", "next"), ("means",)),
    "lognormal": _Family("lognormal:cv=4", _lognormal, ("cv",), ("cv",)),
    "weibull": _Family("weibull:shape=0.5", _weibull, ("shape", "cv")),
    "pareto": _Family("pareto:shape=1.5,ratio=1000", _pareto, ("shape", "ratio"), ("shape",)),
}
NAMES = tuple(_FAMILIES)
EXAMPLES = (*(family.example for family in _FAMILIES.values()), "empirical:FILE")


def _family(name: str, written: object = None) -> _Family:
    """Return the family of a law, or raise InputError that shows the law as it was written."""
    if name not in _FAMILIES:
        raise unknown_name(_WHAT, name if written is None else written, EXAMPLES)
    return _FAMILIES[name]
