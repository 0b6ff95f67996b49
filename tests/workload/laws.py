"""Service laws as SciPy has them: a second implementation, for tests."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.integrate import quad

from evenly.workload.service import ServiceLaw, parse_service
from tests import distributions as stats


class Coxian:
    """A Coxian law by its phase-type matrix: survival(t) = e_1' exp(T t) 1. All stages have different means."""

    def __init__(self, means: list[float], onward: list[float]) -> None:
        size = len(means)
        matrix = np.zeros((size, size))
        for stage, mean in enumerate(means):
            matrix[stage, stage] = -1 / mean
            if stage + 1 < size:
                matrix[stage, stage + 1] = onward[stage] / mean
        start = np.eye(size)[0]
        self._matrix = matrix * float(start @ np.linalg.solve(-matrix, np.ones(size)))  # scaled to mean 1
        self._rates, vectors = np.linalg.eig(self._matrix)
        self._weights = vectors[0] * np.linalg.solve(vectors, np.ones(size))

    def sf(self, times: Any) -> Any:  # noqa: ANN401
        return np.exp(np.multiply.outer(times, self._rates)) @ self._weights

    def cdf(self, times: Any) -> Any:  # noqa: ANN401
        return 1 - self.sf(times)


class Mixture:
    """The mixture of two exponentials with balanced means, from its definition."""

    def __init__(self, cv: float) -> None:
        part = (1 + math.sqrt((cv**2 - 1) / (cv**2 + 1))) / 2
        self._parts = [(part, 2 * part), (1 - part, 2 * (1 - part))]

    def sf(self, time: Any) -> Any:  # noqa: ANN401
        return sum(part * np.exp(-rate * time) for part, rate in self._parts)

    def cdf(self, times: Any) -> Any:  # noqa: ANN401
        return 1 - self.sf(times)


def counterpart(law: ServiceLaw | str) -> Any:  # noqa: ANN401, PLR0911  (one return per law; SciPy's are untyped)
    """Return an object with `cdf` and `sf` for a law with mean 1."""
    parsed = parse_service(law)
    given = dict(parsed.parameters)
    if parsed.name == "exponential":
        return stats.expon()
    if parsed.name == "erlang":
        return stats.gamma(given["stages"][0], scale=1 / given["stages"][0])
    if parsed.name == "hyperexponential":
        return Mixture(given["cv"][0])
    if parsed.name == "coxian":
        return Coxian(list(given["means"]), list(given.get("next", ())))
    if parsed.name == "lognormal":
        sigma = math.sqrt(math.log(1 + given["cv"][0] ** 2))
        return stats.lognorm(sigma, scale=math.exp(-(sigma**2) / 2))
    if parsed.name == "weibull":
        shape = given["shape"][0]
        return stats.weibull_min(shape, scale=1 / math.gamma(1 + 1 / shape))
    assert parsed.name == "pareto"
    shape = given["shape"][0]
    if "ratio" not in given:
        return stats.pareto(shape, scale=(shape - 1) / shape)
    plain = stats.truncpareto(shape, given["ratio"][0])
    return stats.truncpareto(shape, given["ratio"][0], scale=1 / plain.mean())


def mean_within(law: ServiceLaw | str, time: float) -> float:
    """Return E[min(S, time)], the integral of the survival function, for a law with mean 1."""
    parsed = parse_service(law)
    if parsed.name == "deterministic":
        return min(1.0, time)
    edges = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 37) * time])
    exact = counterpart(parsed)
    return math.fsum(quad(exact.sf, low, high)[0] for low, high in pairwise(edges))
