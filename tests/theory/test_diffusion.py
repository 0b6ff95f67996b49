"""The two diffusion limits against closed forms, the paper's equations, and chains that tend to them.

The chain on the lattice and the two Euler schemes below are written from the paper, with its regulator and without
the running supremum that the package uses. Statistical bounds are for false-alarm rates of 1e-9 each.
"""

from functools import cache
from itertools import pairwise
from math import exp, log, pi, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.integrate import solve_ivp
from scipy.sparse.linalg import splu, spsolve

from evenly.errors import InputError
from evenly.theory.diffusion import whole_law as reflected_law
from evenly.theory.diffusion.fractional import OrnsteinUhlenbeck, ornstein_uhlenbeck
from evenly.theory.diffusion.whole import Reflected, reflected
from evenly.theory.diffusion.whole_law import Marginal, StationarySummary, stationary_summary
from tests import distributions as stats
from tests.sim.support import FALSE_ALARM, assert_mean

Array = NDArray[np.float64]


# --- the limit for a fractional load -------------------------------------------------------------------------


def test_moments_solve_their_differential_equations() -> None:
    process, start = ornstein_uhlenbeck(2.3), 1.7
    times = [0.1, 0.9, 3.0]
    solution = solve_ivp(
        lambda _, m: [-m[0], -2 * m[1] + 2 * 2.3], (0, 3), [start, 0], t_eval=times, rtol=1e-10, atol=1e-12
    )
    assert_allclose([process.mean(start, time) for time in times], solution.y[0], rtol=1e-7)
    assert_allclose([process.variance(time) for time in times], solution.y[1], rtol=1e-7)
    assert process.variance(0) == 0
    assert process.variance(50) == pytest.approx(process.stationary_variance, rel=1e-12)
    assert process.covariance(0) == process.stationary_variance == 2.3
    # From a stationary start, it is the covariance of the start and the conditional mean.
    assert process.covariance(-0.7) == process.covariance(0.7) == pytest.approx(2.3 * process.mean(1, 0.7))


def test_the_law_agrees_with_a_large_exact_system() -> None:
    # Of the initial pools * load tasks a binomial number is left, and a Poisson number of new ones.
    pools, load, time = 10**6, 2.5, 0.8
    started, stay = round(pools * load), exp(-time)
    process = ornstein_uhlenbeck(load)
    exact_variance = started * stay * (1 - stay) + started * (1 - stay)
    assert process.variance(time) == pytest.approx(exact_variance / pools, rel=1e-12)
    stayed = np.arange(int(stats.binom.ppf(1e-12, started, stay)), int(stats.binom.isf(1e-12, started, stay)))
    weights = stats.binom.pmf(stayed, started, stay)
    for value in (-2.0, -0.5, 0.0, 0.3, 1.9):
        most = started + np.floor(value * sqrt(pools))
        exact = weights @ stats.poisson.cdf(most - stayed, started * (1 - stay))
        assert float(process.cdf(value, time=time)) == pytest.approx(exact, abs=1e-3)


def test_the_start_does_not_matter_in_the_long_run() -> None:
    process = ornstein_uhlenbeck(0.4)
    values = np.linspace(-2, 2, 9)
    assert_allclose(process.cdf(values), stats.norm.cdf(values, scale=sqrt(0.4)), rtol=1e-12)
    assert_allclose(process.cdf(values, time=40, start=3), process.cdf(values), atol=1e-12)
    assert_allclose(process.cdf([0.9, 1.0, 1.1], time=0, start=1.0), [0, 1, 1])
    assert process.cdf(1.1, time=0.5, start=1.0) > process.cdf(1.1, time=0.5, start=1.4)


@pytest.mark.parametrize("start", [None, 1.5])
def test_paths_have_the_covariance_of_the_process(start: float | None) -> None:
    process, times = ornstein_uhlenbeck(2.5), [0.2, 0.3, 1.5, 4.0]
    paths = process.sample_path(times, np.random.default_rng(5), start=start, paths=100_000)
    for place, time in enumerate(times):
        mean = 0.0 if start is None else start * exp(-time)
        assert_mean(paths[:, place], mean, f"mean at {time}")
        for later in range(place, len(times)):
            lag = times[later] - time
            grown = 1.0 if start is None else 1 - exp(-2 * time)
            other = 0.0 if start is None else start * exp(-times[later])
            products = (paths[:, place] - mean) * (paths[:, later] - other)
            assert_mean(products, 2.5 * grown * exp(-lag), f"covariance at {time} and {times[later]}")
    first = np.sort(paths[:, 0])
    assert_kolmogorov(first, process.cdf(first, time=None if start is None else 0.2, start=1.5))


def test_paths_begin_at_the_start_and_are_reproducible() -> None:
    process = ornstein_uhlenbeck(1.5)
    one, two = (process.sample_path([0, 1], np.random.default_rng(8), start=-1.0, paths=3) for _ in range(2))
    assert_allclose(one, two)
    assert_allclose(one[:, 0], -1.0)
    assert np.unique(one[:, 1]).size == 3


def test_the_occupancy_of_a_number_of_pools() -> None:
    process = ornstein_uhlenbeck(2.25)
    assert process.occupancy_mean == pytest.approx(0.25)
    assert process.occupancy_deviation(900) == pytest.approx(1.5 / 30)


# --- a chain that tends to the limit for whole loads ---------------------------------------------------------


def lattice_generator(load: int, pools: int, reach: float) -> tuple[sparse.csc_array, int]:
    """Return rates between pairs (tasks missing below `load`, pools above it), up to `reach` deviations."""
    side = round(reach * sqrt(pools * load)) + 1
    missing, over = (grid.ravel() for grid in np.indices((side, side)))
    here = missing * side + over
    none = missing == 0
    moves = [
        (here - side, pools * load * ~none, ~none),  # an arrival fills a gap
        (here + 1, pools * load * none, over < side - 1),  # or finds no gap
        (here - 1, (load + 1.0) * over, over > 0),
        (here + side, np.maximum(load * (pools - over) - missing, 0.0), missing < side - 1),
    ]
    rows = np.concatenate([to[allowed] for to, _, allowed in moves])
    columns = np.concatenate([here[allowed] for _, _, allowed in moves])
    rates = np.concatenate([np.asarray(rate, float)[allowed] for _, rate, allowed in moves])
    inflow = sparse.csc_array((rates, (rows, columns)), shape=(side**2, side**2))
    return (inflow - sparse.diags_array(inflow.sum(axis=0))).tocsc(), side


@cache
def lattice_law(load: int, pools: int) -> Array:
    """Return the stationary law: one row per number of missing tasks, one column per number of fuller pools."""
    generator, side = lattice_generator(load, pools, 6.0)
    law = np.ones(side**2)
    law[1:] = spsolve(generator[1:, 1:], -generator[1:, [0]].toarray().ravel())
    return np.asarray((law / law.sum()).reshape(side, side))


def lattice_law_at(load: int, pools: int, time: float, steps: int = 80) -> Array:
    """Return the law at a time, from the balanced state, by Alexander's second-order rule, which is L-stable."""
    generator, side = lattice_generator(load, pools, 5.5)
    law = np.zeros(side**2)
    law[0] = 1.0
    step, weight = time / steps, 1 - sqrt(0.5)
    solver = splu((sparse.eye_array(side**2) - weight * step * generator).tocsc())
    for _ in range(steps):
        first = solver.solve(generator @ law)
        second = solver.solve(generator @ (law + (1 - weight) * step * first))
        law = law + step * ((1 - weight) * first + weight * second)
    return np.asarray(law.reshape(side, side))


def lattice_moments(law: Array, pools: int) -> Array:
    values = np.arange(law.shape[0]) / sqrt(pools)
    below, above = law.sum(axis=1), law.sum(axis=0)
    powers = [below @ values, above @ values, below @ values**2, above @ values**2, values @ law @ values]
    return np.array([*powers, law[0].sum() * sqrt(pools)])


def extrapolated(figures: list[Array]) -> Array:
    """Extrapolate from sizes that grow by a factor of four; errors are powers of 1 / sqrt(pools)."""
    for order in range(1, len(figures)):
        figures = [(2**order * fine - coarse) / (2**order - 1) for coarse, fine in pairwise(figures)]
    return figures[0]


@pytest.mark.parametrize("load", [1, 3])
def test_the_stationary_law_is_the_limit_of_a_chain(load: int) -> None:
    summary = summary_of(load)
    sizes = (64, 256, 1024)
    limit = extrapolated([lattice_moments(lattice_law(load, pools), pools) for pools in sizes])
    below, above = summary.below, summary.above
    moments = [below.mean, above.mean, second_moment(below), second_moment(above), joint_mean(summary)]
    assert_allclose(moments, limit[:5], rtol=2e-4)
    assert summary.saturated_share(1) == pytest.approx(limit[5], rel=1e-4)
    for marginal, axis in ((below, 1), (above, 0)):
        assert_limit_of_lattice(marginal, [lattice_law(load, pools).sum(axis=axis) for pools in sizes], sizes)


def assert_limit_of_lattice(marginal: Marginal, laws: list[Array], sizes: tuple[int, ...]) -> None:
    """Check that distribution functions, halfway between lattice steps, tend to that of the marginal."""
    for value in (0.5, 1.0, 1.5, 2.5):
        chances = []
        for law, pools in zip(laws, sizes, strict=True):
            place = round(value * sqrt(pools))
            chances.append(np.array([law[:place].sum() + law[place] / 2]))
        assert float(marginal.cdf(value)) == pytest.approx(float(extrapolated(chances)[0]), abs=1e-4)


# --- the stationary law --------------------------------------------------------------------------------------


summary_of = cache(stationary_summary)


def joint_mean(summary: StationarySummary) -> float:
    below, above = summary.below, summary.above
    return summary.correlation * below.deviation * above.deviation + below.mean * above.mean


def second_moment(marginal: Marginal) -> float:
    return marginal.variance + marginal.mean**2


LOADS = [1, 2, 3, 10, 100, 10**5]


@pytest.mark.parametrize("load", LOADS)
def test_the_stationary_moments_satisfy_their_identities(load: int) -> None:
    # From Ito's formula for Q + Z, Q^2, Z^2 and QZ, where the push acts only at Z = 0.
    summary = summary_of(load)
    below, above = summary.below, summary.above
    assert below.mean == pytest.approx(above.mean, rel=1e-6)
    assert (load - second_moment(below)) / load == pytest.approx(joint_mean(summary), abs=2e-6 * load)
    assert second_moment(above) / (load + 2) == pytest.approx(joint_mean(summary), abs=2e-6 * load)
    assert summary.residual < 1e-6
    # The push balances the fading, and is the density at the boundary times half the variance of the noise.
    assert summary.regulator_rate == pytest.approx((load + 1) * above.mean)
    assert float(below.density(0.0)) * load == pytest.approx(summary.regulator_rate, rel=5e-3)


@pytest.mark.parametrize("load", LOADS)
def test_the_marginals_agree_with_their_own_moments(load: int) -> None:
    summary = summary_of(load)
    for marginal in (summary.below, summary.above):
        grid = np.geomspace(1e-9, 8, 100_001) * sqrt(load)
        tail = 1 - marginal.cdf(grid)
        assert np.trapezoid(tail, grid) == pytest.approx(marginal.mean, rel=1e-5)
        assert np.trapezoid(2 * grid * tail, grid) == pytest.approx(second_moment(marginal), rel=3e-5)
        lowest, highest = marginal.quantile(0.6), marginal.quantile(0.95)
        inside = np.geomspace(lowest, highest, 10_001)
        assert np.trapezoid(marginal.density(inside), inside) == pytest.approx(0.35, abs=1e-5)
        assert float(marginal.cdf(highest)) == pytest.approx(0.95, abs=1e-9)
        assert_allclose(marginal.cdf([-1.0, 0.0, 1e9]), [0, 0, 1], atol=1e-9)
        assert_allclose(marginal.density([-1.0, 1e9]), 0)


@pytest.mark.parametrize("load", [1, 10, 10**5])
def test_a_finer_grid_changes_results_within_the_stated_error(load: int, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = summary_of(load)
    monkeypatch.setattr(reflected_law, "CELLS", 2 * reflected_law.CELLS)
    finer = stationary_summary(load)
    values = np.geomspace(1e-3, 5, 500) * sqrt(load)
    for one, two in ((summary.below, finer.below), (summary.above, finer.above)):
        assert one.mean == pytest.approx(two.mean, rel=5e-7)
        assert_allclose(one.cdf(values), two.cdf(values), atol=1e-5)


def test_at_a_large_load_only_the_total_matters() -> None:
    # The push fades immediately, so Q and Z are the positive and the negative part of the total.
    load = 10**5
    summary, root = summary_of(load), sqrt(load)
    assert summary.above.mean == pytest.approx(root / sqrt(2 * pi), rel=1e-3)
    assert summary.above.variance == pytest.approx(load * (0.5 - 0.5 / pi), rel=1e-3)
    assert_allclose(summary.above.cdf([0.5 * root, 2 * root]), stats.norm.cdf([0.5, 2]), atol=1e-4)
    assert_allclose(summary.below.cdf([0.5 * root, 2 * root]), stats.norm.cdf([0.5, 2]), atol=1e-2)


def test_near_zero_the_pushed_level_follows_a_power_law() -> None:
    # The total stays negative for a time u with probability of order exp(-u), and exp(-(load + 1) u) of Q is left.
    for load in (1, 3):
        above = summary_of(load).above
        small = np.array([1e-7, 1e-5])
        ratio = np.diff(np.log(above.cdf(small)))[0] / np.diff(np.log(small))[0]
        assert ratio == pytest.approx(1 / (load + 1), rel=0.02)


def test_the_summary_for_a_number_of_pools_and_as_json() -> None:
    summary = summary_of(3)
    occupancy = summary.occupancy(400)
    assert occupancy[3] == pytest.approx((1 - summary.below.mean / 20, summary.below.deviation / 20))
    assert occupancy[4] == pytest.approx((summary.above.mean / 20, summary.above.deviation / 20))
    assert summary.saturated_share(400) == pytest.approx(summary.regulator_rate / 60)
    facts = summary.to_dict()
    assert list(facts["below"]["quantiles"]) == ["0.05", "0.25", "0.5", "0.75", "0.95"]
    assert facts["above"]["quantiles"]["0.5"] == summary.above.quantile(0.5)


# --- the paper's equations, step by step ---------------------------------------------------------------------


def euler(
    load: int, step: float, time: float, start: ArrayLike, paths: int, seed: int, *, project: bool = False
) -> tuple[Array, Array]:
    """Step through Theorem 4 with the drift frozen; the bridge's minimum pushes, or only its end (`project`)."""
    rng = np.random.default_rng(seed)
    below = np.full(paths, np.asarray(start)[0], float)
    above = np.tile(np.asarray(start, float)[1:], (paths, 1))
    rates = load + 1 + np.arange(above.shape[1])
    deviation = sqrt(2 * load * step)
    for _ in range(round(time / step)):
        change = deviation * rng.standard_normal(paths) - step * (below + load * above[:, 0])
        spread = 0.0 if project else 2 * deviation**2 * rng.standard_exponential(paths)
        lowest = (change - np.sqrt(change**2 + spread)) / 2
        push = np.maximum(0.0, -(below + lowest))
        below = below + change + push
        next_level = np.pad(above[:, 1:], ((0, 0), (0, 1)))
        above = above - step * rates * (above - next_level)
        above[:, 0] += push
    return below, above


def assert_kolmogorov(samples: Array, chances: Array, slack: float = 0.0) -> None:
    """Check the distance to a distribution function by the Dvoretzky-Kiefer-Wolfowitz bound."""
    ranks = np.arange(samples.size + 1) / samples.size
    distance = max((chances - ranks[:-1]).max(), (ranks[1:] - chances).max())
    assert distance <= sqrt(log(2 / FALSE_ALARM) / (2 * samples.size)) + slack


def test_paths_from_a_start_with_many_levels_follow_the_paper() -> None:
    load, start, time, paths = 2, [0.6, 2.0, 1.1, 0.4], 0.6, 60_000
    ours = reflected(load, 5).sample_path([time], np.random.default_rng(11), start=start, paths=paths)
    below, above = euler(load, 0.005, time, start, paths, 12)
    # The error of the frozen drift is proportional to the step.
    assert_means_agree(ours.below[:, 0], below, slack=0.005)
    assert_means_agree(ours.below[:, 0] ** 2, below**2, slack=0.02)
    for level in range(3):
        assert_means_agree(ours.above[:, 0, level], above[:, level], slack=0.01)
    assert_means_agree(ours.above[:, 0, 0] ** 2, above[:, 0] ** 2, slack=0.03)
    assert_means_agree(ours.above[:, 0, 0] * ours.below[:, 0], above[:, 0] * below, slack=0.02)
    # The levels without a push are deterministic, and the mean of the total fades like exp(-t).
    solution = solve_ivp(
        lambda _, q: [-4 * (q[0] - q[1]), -5 * q[1]], (0, time), start[2:], rtol=1e-10, atol=1e-12
    )
    assert_allclose(ours.above[:, 0, 1:], np.tile(solution.y[:, -1], (paths, 1)), rtol=1e-7)
    assert_mean(ours.total[:, 0], (sum(start[1:]) - start[0]) * exp(-time))
    assert_mean((ours.total[:, 0] - ours.total.mean()) ** 2, load * (1 - exp(-2 * time)))
    assert ours.below.min() >= 0


def assert_means_agree(one: Array, two: Array, slack: float) -> None:
    error = sqrt(one.var() / one.size + two.var() / two.size)
    assert abs(one.mean() - two.mean()) <= stats.norm.isf(FALSE_ALARM / 2) * error + slack


@cache
def transient_means() -> tuple[float, float]:
    """Return E[Z] = E[Q] and E[Q^2] at time 1, from the balanced state at load 3."""
    sizes = (25, 100, 400)
    limit = extrapolated([lattice_moments(lattice_law_at(3, pools, 1.0), pools) for pools in sizes])
    assert limit[0] == pytest.approx(limit[1], abs=1e-3)  # the total has mean 0
    assert limit[2] + limit[3] - 2 * limit[4] == pytest.approx(3 * (1 - exp(-2)), rel=2e-3)
    return float((limit[0] + limit[1]) / 2), float(limit[3])


REFERENCE_ERROR = 5e-4  # of the extrapolated means, which leave out the third power of 1 / sqrt(pools)


def pushed_mean(step: float, paths: int, seed: int) -> tuple[float, float]:
    """Return E[Q] at time 1 and load 3 as sampled by `sample_path`, and a bound on its statistical error.

    The positive part of the total, whose mean is known, is a control variate that removes most of the noise.
    """
    deviation = sqrt(3 * (1 - exp(-2)))
    parts = [
        reflected(3).sample_path([1.0], np.random.default_rng([seed, part]), start=[0, 0], paths=10**5, step=step)
        for part in range(paths // 10**5)
    ]
    rest = np.concatenate([part.above[:, 0, 0] - np.maximum(part.total[:, 0], 0) for part in parts])
    noise = stats.norm.isf(FALSE_ALARM / 2) * rest.std() / sqrt(paths)
    return float(rest.mean()) + deviation / sqrt(2 * pi), float(noise)


@pytest.mark.full
def test_the_error_of_a_step_is_second_order_and_of_one_sign() -> None:
    truth, _ = transient_means()
    errors = {}
    for step in (0.25, 0.125, 0.0625):
        mean, noise = pushed_mean(step, 10**6, 21)
        errors[step] = truth - mean
        assert -noise - REFERENCE_ERROR < errors[step] < truth * 3 * 5 * step**2 / 8 + noise + REFERENCE_ERROR
    # 0.0368 and 0.0116, each with noise below 0.0017; order one would only halve the error.
    assert errors[0.125] < errors[0.25] / 2.5
    mean, noise = pushed_mean(0.0125, 10**5, 22)
    assert mean == pytest.approx(truth, abs=noise + REFERENCE_ERROR)


@pytest.mark.full
def test_projecting_at_the_end_of_a_step_is_much_worse() -> None:
    truth, square = transient_means()
    paths = 2 * 10**5
    for step in (0.1, 0.05, 0.025):
        mean, noise = pushed_mean(step, paths, 31)
        _, bridged = euler(3, step, 1.0, [0, 0], paths, 32)
        _, projected = euler(3, step, 1.0, [0, 0], paths, 33, project=True)
        chance = stats.norm.isf(FALSE_ALARM / 2) * sqrt(square / paths)
        assert abs(bridged.mean() - truth) < 0.2 * step + chance + REFERENCE_ERROR
        # Of order one half: projection misses the excursions within a step.
        assert truth - projected.mean() > 0.5 * sqrt(step)
        assert abs(truth - mean) < 0.1 * (truth - projected.mean()) + noise
        assert truth - projected.mean() > 5 * abs(bridged.mean() - truth)


@pytest.mark.parametrize("load", [1, 3])
def test_stationary_paths_have_the_stationary_law(load: int) -> None:
    summary = summary_of(load)
    run = reflected(load).sample_path([0.0, 0.5], np.random.default_rng(41), paths=40_000)
    for place in range(2):
        below, above = np.sort(run.below[:, place]), np.sort(run.above[:, place, 0])
        assert_kolmogorov(below, summary.below.cdf(below), slack=1e-3)  # for the error of the steps
        assert_kolmogorov(above, summary.above.cdf(above), slack=1e-3)
        total = np.sort(run.total[:, place])
        assert_kolmogorov(total, stats.norm.cdf(total, scale=sqrt(load)))
        assert_mean(run.above[:, place, 0] * run.below[:, place], joint_mean(summary), slack=2e-3)
    assert_mean(run.total[:, 0] * run.total[:, 1], load * exp(-0.5))


def test_the_joint_law_does_not_depend_on_the_other_times() -> None:
    # The joint law at two times does not depend on the times in between.
    few = reflected(2).sample_path([0.5, 1.0], np.random.default_rng(51), start=[0.5, 0.2], paths=100_000)
    many = reflected(2).sample_path(
        np.linspace(0.1, 1.0, 10), np.random.default_rng(52), start=[0.5, 0.2], paths=100_000
    )
    for place, index in ((0, 4), (1, 9)):
        assert_means_agree(few.below[:, place], many.below[:, index], slack=1e-3)
        assert_means_agree(few.above[:, place, 0], many.above[:, index, 0], slack=1e-3)
    products = (few.below[:, 0] * few.above[:, 1, 0], many.below[:, 4] * many.above[:, 9, 0])
    assert_means_agree(*products, slack=2e-3)


def test_reflected_paths_begin_at_the_start_and_are_reproducible() -> None:
    rows = np.array([[0.3, 2.0, 1.0], [0.0, 1.0, 0.0]])
    run = reflected(3, 5).sample_path([0.0, 0.1], np.random.default_rng(1), start=rows, paths=2)
    assert_allclose(run.below[:, 0], rows[:, 0])
    assert_allclose(run.above[:, 0], rows[:, 1:])
    again = reflected(3, 5).sample_path([0.0, 0.1], np.random.default_rng(1), start=rows, paths=2)
    assert_allclose(run.below, again.below)
    assert reflected(3) == Reflected(3, 4)
    assert reflected(3).total == OrnsteinUhlenbeck(3.0)


# --- bad input -----------------------------------------------------------------------------------------------


def sampled(**options: object) -> object:
    arguments = {"times": [1.0], "start": [0, 0], "paths": 2, **options}
    return reflected(3).sample_path(rng=np.random.default_rng(1), **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ornstein_uhlenbeck(3), ["reflected", "3", "Theorem 4"]),
        (lambda: ornstein_uhlenbeck(-1), ["load", "-1"]),
        (lambda: reflected(2.5), ["Ornstein-Uhlenbeck", "2.5", "Theorem 3"]),
        (lambda: stationary_summary(2.5), ["Ornstein-Uhlenbeck", "2.5"]),
        (lambda: reflected(0), ["load", "0"]),
        (lambda: reflected(3, 3), ["levels", "4", "3"]),
        (lambda: ornstein_uhlenbeck(1.5).variance(-1), ["time", "-1"]),
        (lambda: ornstein_uhlenbeck(1.5).occupancy_deviation(0), ["pools", "0"]),
        (lambda: ornstein_uhlenbeck(1.5).sample_path([], np.random.default_rng(1)), ["times"]),
        (lambda: ornstein_uhlenbeck(1.5).sample_path([1, 1], np.random.default_rng(1)), ["increase"]),
        (lambda: ornstein_uhlenbeck(1.5).sample_path([-1, 1], np.random.default_rng(1)), ["begin at 0"]),
        (lambda: ornstein_uhlenbeck(1.5).sample_path([1], np.random.default_rng(1), paths=0), ["paths", "0"]),
        (lambda: sampled(start=[0, 0, 0]), ["start", "2 numbers"]),
        (lambda: sampled(start=[-0.1, 0]), ["start", "negative"]),
        (lambda: reflected(3, 5).sample_path([1], np.random.default_rng(1), start=[0, 1, 2]), ["not increase"]),
        (lambda: sampled(step=0), ["step", "0"]),
        (lambda: sampled(times=[1e9]), ["steps", "1000000"]),
        (lambda: sampled(paths=10**8), ["paths times", "100000000"]),
        (lambda: summary_of(3).above.quantile(1.0), ["probability", "1.0"]),
        (lambda: summary_of(3).occupancy(0), ["pools", "0"]),
    ],
)
def test_bad_input_is_rejected_in_one_sentence(call: object, words: list[str]) -> None:
    assert callable(call)
    with pytest.raises(InputError) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
    assert str(caught.value).endswith(".")
