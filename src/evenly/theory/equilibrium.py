"""Equilibria in the large-system limit, under a fixed threshold or another policy.

Under too large a threshold, the number of tasks in a pool is Poisson, conditioned on being at most the threshold.
Under too small a one, it is Poisson, conditioned on being above the threshold. In both cases the rate of the
Poisson law follows from the mean number of tasks, which is the load. An optimal threshold balances the load. Other
policies are in `other_policies`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from evenly.errors import InputError
from evenly.frames import Tabular
from evenly.inputs import accept_other_names, shown
from evenly.policies import DEFAULT, LIMIT, POLICIES, check_parameters, find_policy
from evenly.theory.balance import FloatArray, balanced_occupancy, exactly, optimal_thresholds
from evenly.theory.inputs import checked_threshold, positive_load
from evenly.theory.other_policies import (
    checked_sample_size,
    jsq_fixed_point,
    power_of_d_fixed_point,
    random_fixed_point,
)
from evenly.theory.poisson import NO_LIMIT, likely_levels, normalised, poisson_weights, rate_with_mean
from evenly.theory.wording import short_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = ("large", "small", "balanced")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Equilibrium(Tabular):
    """A stationary occupancy in the large-system limit.

    `kind` classifies the threshold for this load: large, small or, if it is optimal, balanced. `theta` is
    the fraction of pools at a large threshold, or of those more than one above a small one. `offered` is the
    rate at which tasks arrive at a pool below a large threshold, `birth_rate` the rate at which they arrive at
    any pool above a small one; service has unit rate. `truncation` bounds the fraction of pools beyond the
    last level. All of these are None under other policies. Arrays begin at level 0.
    """

    policy: str
    load: float
    threshold: int | None = None
    sample_size: int | None = None
    kind: str | None = None
    theta: float | None = None
    occupancy: FloatArray
    pools_with_exactly: FloatArray
    offered: float | None = None
    birth_rate: float | None = None
    truncation: float | None = None

    @property
    def mean_tasks(self) -> float:
        """Tasks per pool."""
        return float(self.occupancy[1:].sum())

    @property
    def spread(self) -> float:
        """Standard deviation of the number of tasks over the pools."""
        away = np.arange(len(self.pools_with_exactly)) - self.mean_tasks
        return sqrt(float(away**2 @ self.pools_with_exactly))

    def columns(self) -> Mapping[str, Any]:
        """Return one row per number of tasks: the fractions of pools with exactly and with at least that many."""
        return {
            "tasks": np.arange(len(self.occupancy)),
            "pools_with_exactly": self.pools_with_exactly,
            "occupancy": self.occupancy,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the result ready for JSON: the object that `evenly equilibrium --json` prints."""
        return {
            "policy": self.policy,
            "choices": self.sample_size,
            "load": self.load,
            "threshold": self.threshold,
            "kind": self.kind,
            "theta": self.theta,
            "mean_tasks": self.mean_tasks,
            "pools_with_exactly": self.pools_with_exactly.tolist(),
            "occupancy": self.occupancy.tolist(),
            "offered": self.offered,
            "birth_rate": self.birth_rate,
            "truncation": self.truncation,
        }

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the share of pools with each number of tasks, beside that of a balanced load."""
        from evenly.plots import bars, equilibrium, style

        axes = style.axes_or_new(ax)
        shares, balanced, name = self._bars()
        if bars.Bars(axes).later:  # the title belongs to an earlier result
            name = f"{name}, load {self.load:.12g}, large-system limit"
        equilibrium.draw_shares(axes, shares, balanced, name)
        bars.title_once(axes, self._title())
        axes.legend(loc="best", fontsize=9)
        return axes

    def plot_panels(self, *, figure: Figure | None = None) -> Figure:
        """Draw the same with the legend below it: the picture that `evenly equilibrium --plot` saves."""
        from evenly.plots import equilibrium, style

        figure = style.figure_or_new(figure, 6.4, 4.0)
        equilibrium.draw_panels(figure, *self._bars(), self._title())
        return figure

    def _bars(self) -> tuple[FloatArray, FloatArray, str]:
        """Return the shares of pools, those of a balanced load at the same levels, and the policy's name."""
        balanced = exactly(balanced_occupancy(self.load, max(len(self.occupancy), ceil(self.load) + 1)))
        padded = np.pad(self.pools_with_exactly, (0, len(balanced) - len(self.pools_with_exactly)))
        return padded, balanced, self.name

    @property
    def name(self) -> str:
        """The policy with its parameter."""
        return POLICIES[self.policy].label(threshold=self.threshold, sample_size=self.sample_size)

    def _title(self) -> str:
        return f"load {self.load:.12g}, large-system limit: where pools settle"

    def _headline(self) -> str:
        name = short_label(self.policy, threshold=self.threshold, sample_size=self.sample_size)
        found = {"large": "too large, ", "small": "too small, ", "balanced": "optimal, "}.get(self.kind or "", "")
        theta = "" if self.theta is None else f"theta {self.theta:.4f}, "
        return f"{name}, load {self.load:.12g}: {found}{theta}spread {self.spread:.3f}"

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("tasks per pool", f"{self.mean_tasks:.6f}")]
        if self.offered is not None:
            rows.append(("offered traffic", f"{self.offered:.6f} to pools below the threshold"))
        if self.birth_rate is not None:
            rows.append(("sent at random", f"{self.birth_rate:.6f} per pool, out of {self.load:.12g}"))
        return rows


@accept_other_names
def predict_equilibrium(
    *,
    policy: str = DEFAULT,
    load: float,
    threshold: int | None = None,
    sample_size: int | None = None,
    kind: str | None = None,
) -> Equilibrium:
    """Predict where a policy settles in the large-system limit.

    The threshold is fixed, floor(load) if not given. `kind`, if given, must be the threshold's kind for this
    load: large, small or balanced. Power-of-d samples two pools if `sample_size` is not given.

    The mean of a Poisson law conditioned on a range of levels grows strictly with its rate, because its
    derivative by the logarithm of the rate is the variance. Hence theta is unique.

    Paper: Exs 1 and 2, eqs (4) and (5); Thm 2, Cor. 1. Departs: the paper shows that a theta exists, not
    that it is unique. At threshold 1 and a load below 1 the equilibrium of Ex. 1 is the balanced one.
    """
    find_policy(policy, LIMIT)
    check_parameters([policy], {"threshold": threshold, "sample_size": sample_size}, LIMIT)
    load = positive_load(load)
    if policy == DEFAULT:
        return _under_threshold(load, floor(load) if threshold is None else checked_threshold(threshold), kind)
    if kind is not None:
        raise InputError(f"kind is for policy {DEFAULT}, not {policy}.")
    if policy == "power-of-d":
        sample_size = 2 if sample_size is None else checked_sample_size(sample_size)
        occupancy = power_of_d_fixed_point(load=load, sample_size=sample_size)
    else:
        occupancy = jsq_fixed_point(load) if policy == "jsq" else random_fixed_point(load)
    return Equilibrium(
        policy=policy,
        load=load,
        sample_size=sample_size,
        occupancy=occupancy,
        pools_with_exactly=exactly(occupancy),
    )


def _under_threshold(load: float, threshold: int, kind: str | None) -> Equilibrium:
    found = threshold_kind(load, threshold)
    if kind is not None:
        _check_kind(kind, found, load, threshold)
    solve = {"large": _large, "small": _small, "balanced": _balanced}[found]
    with np.errstate(under="ignore"):  # numbers too small for a float are zero
        return solve(load, threshold)


def threshold_kind(load: float, threshold: int) -> str:
    """Classify a threshold for a load: large, small or, if it is optimal, balanced.

    Paper: Cor. 1.
    """
    threshold, best = checked_threshold(threshold), optimal_thresholds(load)
    if threshold in best:
        return "balanced"
    return "large" if threshold > best[-1] else "small"


def _check_kind(kind: str, found: str, load: float, threshold: int) -> None:
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}, not {shown(kind)}.")
    if kind == found:
        return
    verdict = "optimal" if found == "balanced" else f"too {found}"
    has = "the balanced one" if found == "balanced" else f"a {found}-threshold one"
    wanted = "the balanced one" if kind == "balanced" else f"a {kind}-threshold one"
    raise InputError(
        f"threshold {threshold} is {verdict} for load {load:.12g}: its equilibrium is {has}, not {wanted}."
    )


def _balanced(load: float, threshold: int) -> Equilibrium:
    """Paper: Thm 2."""
    occupancy = balanced_occupancy(load, ceil(load) + 1)
    return Equilibrium(
        policy="threshold",
        load=load,
        threshold=threshold,
        kind="balanced",
        occupancy=occupancy,
        pools_with_exactly=exactly(occupancy),
        truncation=0.0,
    )


def _large(load: float, threshold: int) -> Equilibrium:
    """Solve the Erlang loss system whose carried traffic is the load.

    Paper: Ex. 1, eq. (4).
    """
    # Mean tasks are a (1 - theta), theta being Erlang's B: a mean of `load` gives a = load / (1 - theta).
    # Free places are at most geometric with ratio threshold / a, hence threshold / (a - threshold) on average:
    # a pool has too many tasks at the rate `most`, and too few at a = load.
    most = threshold + threshold / (threshold - load)
    offered = rate_with_mean(load, 0, threshold, load, most)
    weights = poisson_weights(offered, 0, threshold)
    occupancy, shares = normalised(weights, 0)
    return Equilibrium(
        policy="threshold",
        load=load,
        threshold=threshold,
        kind="large",
        theta=float(occupancy[threshold]),
        occupancy=occupancy,
        pools_with_exactly=shares,
        offered=offered,
        truncation=0.0,
    )


def _small(load: float, threshold: int) -> Equilibrium:
    """Solve the birth-death process that never falls below one above the threshold.

    Paper: Ex. 2, eq. (5).
    """
    high = threshold + 1
    # Weights w(i) = b^i / i! from `high` on have i w(i) = b w(i - 1). Summed over i > high this says that mean
    # tasks are b + high (1 - theta), 1 - theta being the share at `high`. So a mean of `load` is the same as
    # b = load - high (1 - theta), under which eq. (5) states that the shares add up to 1.
    # Tasks above `high` are at most geometric with ratio b / (high + 1): a pool has too few tasks at the first
    # rate below, and too many at b = load.
    gap = load - high
    birth_rate = rate_with_mean(load, high, NO_LIMIT, (high + 1) * gap / (1 + gap), load)
    last = likely_levels(birth_rate, high)[1]
    occupancy, shares = normalised(poisson_weights(birth_rate, high, last), high)
    ratio = birth_rate / (last + 1)  # bounds the ratio of successive weights beyond the last level
    return Equilibrium(
        policy="threshold",
        load=load,
        threshold=threshold,
        kind="small",
        theta=float(occupancy[high + 1]),
        occupancy=occupancy,
        pools_with_exactly=shares,
        birth_rate=birth_rate,
        truncation=float(shares[-1]) * ratio / (1 - ratio),
    )
