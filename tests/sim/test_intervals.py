"""The 95 % intervals: of samples with known laws, and where there are none.

Counts of successes are binomial; the bounds below have a false-alarm rate of 1e-7 each. How often the intervals of
simulated systems hold the truth takes many runs: tests/sim/test_coverage.py, in a tier of its own.
"""

import math
from typing import Any

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.sim import Scenario, simulate
from evenly.sim.intervals import COLUMNS, PART_TASKS, PARTS, Parts, half_width, part_count
from evenly.sim.run import _default_batches
from evenly.sim.tally import FloatArray, averages
from evenly.workload import parse_service

RARE = 1e-7
LOAD = 2.0


def test_half_widths_are_student_s() -> None:
    from scipy.stats import t

    samples = [1.0, 2.5, 2.0, 4.0, 3.25]
    low, high = t.interval(0.95, 4, loc=np.mean(samples), scale=np.std(samples, ddof=1) / math.sqrt(5))
    assert half_width(samples) == pytest.approx((high - low) / 2, rel=1e-12)
    assert half_width([0.0, 1.0]) == pytest.approx(12.706204736432095 / 2, rel=1e-9)  # from a printed table


def parts_of(values: FloatArray, growth: FloatArray | None = None, without_token: float = 0.0) -> Parts:
    """Return parts of length one with one arrival each; all averages are of `values`, one row per replication."""
    totals = np.repeat(values[:, :, None], len(COLUMNS), axis=2)
    totals[:, :, COLUMNS.index("time")] = totals[:, :, COLUMNS.index("arrivals")] = 1.0
    totals[:, :, COLUMNS.index("without_token")] = without_token
    totals[:, :, COLUMNS.index("growth")] = np.zeros_like(values) if growth is None else growth
    return Parts(totals, {})


def misses(samples: FloatArray, truth: float, name: str = "spread", growth: FloatArray | None = None) -> int:
    """Count the intervals that do not hold the truth. Each sample has one row per replication."""
    count = 0
    for place, values in enumerate(samples):
        parts = parts_of(values, None if growth is None else growth[place])
        width = parts.half_widths([name], 0.05)[name]
        count += not abs(float(values.mean()) - truth) <= width
    return count


def moving(noise: FloatArray, correlation: float) -> FloatArray:
    """Return the stationary autoregressive process of the noise along the last axis."""
    values = np.empty_like(noise)
    values[..., 0] = noise[..., 0] / math.sqrt(1 - correlation**2)
    for place in range(1, noise.shape[-1]):
        values[..., place] = correlation * values[..., place - 1] + noise[..., place]
    return values


SERIES = 3000


def assert_covered(missed: int) -> None:
    """Assert a number of misses that is not rare if 93 to 97 % of the intervals hold the truth."""
    from scipy.stats import binom

    assert binom.ppf(RARE, SERIES, 0.03) <= missed <= binom.isf(RARE, SERIES, 0.07)


# One run, as in `simulate`, with the strongest correlation; the other shapes and correlations in `make full`.
CORRELATED = [
    pytest.param(shape, correlation, marks=[] if kept else pytest.mark.full)
    for shape, correlation, kept in [
        ((1, 50), 0.0, False),
        ((1, 50), 0.6, True),
        ((2, 50), 0.3, False),
        ((8, 8), 0.6, True),
        ((60, 1), 0.0, True),
    ]
]


@pytest.mark.parametrize(("shape", "correlation"), CORRELATED)
def test_correlated_parts_are_covered(shape: tuple[int, int], correlation: float) -> None:
    noise = np.random.default_rng(1).standard_normal((SERIES, *shape))
    assert_covered(misses(moving(noise, correlation), 0.0))


@pytest.mark.parametrize("shape", [(1, 50), pytest.param((8, 8), marks=pytest.mark.full)])
def test_skewed_parts_are_covered(shape: tuple[int, int]) -> None:
    noise = np.random.default_rng(2).exponential(size=(SERIES, *shape))
    assert_covered(misses(noise, 1.0))


@pytest.mark.parametrize("shape", [(2, 50), (4, 1)])
def test_a_trend_that_all_replications_share_changes_no_interval(shape: tuple[int, int]) -> None:
    values = np.random.default_rng(3).standard_normal(shape)
    trend = np.linspace(0, 100, shape[1])
    (plain,), (bent,) = (
        parts_of(each).half_widths(["spread"], 0.05).values() for each in (values, values + trend)
    )
    assert bent == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("shape", [(1, 50), pytest.param((8, 8), marks=pytest.mark.full)])
def test_what_flows_from_part_to_part_counts_once(shape: tuple[int, int]) -> None:
    """Each part pays for the growth of the number of tasks: over a run, only its two ends are left."""
    rng = np.random.default_rng(4)
    tasks = rng.poisson(100, size=(SERIES, shape[0], shape[1] + 1)).astype(float)
    growth = np.diff(tasks, axis=-1)
    own = rng.standard_normal(growth.shape)
    values = 100 + own - growth
    assert_covered(misses(values, 100.0, "messages_per_task", growth))


@pytest.mark.parametrize("shape", [(1, 50), (8, 8)])
def test_few_events_have_no_interval_and_many_are_covered(shape: tuple[int, int]) -> None:
    from scipy.stats import binom

    rng = np.random.default_rng(5)
    for mean, told in ((0.0, 0.0), (1.5, 0.0), (40.0, 1.0)):
        counts = rng.poisson(mean / math.prod(shape), size=(1000, *shape)).astype(float)
        widths = [parts_of(values).half_widths(["lost_share"], 0.05)["lost_share"] for values in counts]
        share = float(np.isfinite(widths).mean())
        assert abs(share - told) < 0.03, mean  # now and then, few events look like many
        assert not np.isin(0.0, widths)
    held = np.abs(counts.mean(axis=(1, 2)) - 40 / math.prod(shape)) <= widths
    assert binom.ppf(RARE, 1000, 0.93) <= int(held.sum()) <= binom.isf(RARE, 1000, 0.985)  # counts are discrete


def test_one_visit_to_another_level_is_too_little_to_tell() -> None:
    places = np.random.default_rng(6).permutation(50)
    for visits, known in ((0, False), (1, False), (30, True)):
        values = np.full((1, 50), 6.0)
        values[0, places[:visits]] = 6.5
        parts = Parts(parts_of(values).totals, {"max_tasks": 6})
        assert np.isfinite(parts.half_widths(["max_tasks"], 0.05)["max_tasks"]) == known


def test_conf_int_is_mean_and_half_width() -> None:
    result = simulate(Scenario(pools=6, load=2.4, alpha=0.8, capacity=5, horizon=30.0), replications=7)
    table = result.conf_int(0.9)
    assert list(table) == ["quantity", "mean", "low", "high"]
    assert dict(zip(table["quantity"], table["mean"], strict=True)) == result.scalars()
    widths = result.half_widths(0.9)
    assert widths.keys() == {
        "mean_tasks", "max_tasks", "spread", "imbalance", "messages_per_task", "resync_per_task", "lost_share",
        "threshold",
    }  # fmt: skip
    for name, mean, low, high in zip(*(table[column] for column in table), strict=True):
        assert (low, high) == pytest.approx((mean - widths[name], mean + widths[name]), nan_ok=True)
    assert widths["spread"] < result.half_widths(0.95)["spread"] < result.half_widths(0.999)["spread"]


@pytest.mark.parametrize(
    ("parameters", "certain"),
    [
        ({"alpha": 0.9}, {"lost_share"}),
        ({"threshold": 2}, {"lost_share", "threshold", "resync_per_task"}),
        ({"threshold": 2, "capacity": 9}, {"threshold", "resync_per_task"}),
        ({"policy": "jsq"}, {"lost_share", "resync_per_task"}),
        ({"policy": "power-of-d"}, {"lost_share", "resync_per_task", "messages_per_task"}),
        ({"policy": "pull", "capacity": 4}, {"resync_per_task"}),
    ],
)
def test_only_numbers_that_are_not_random_have_no_width(parameters: dict[str, Any], certain: set[str]) -> None:
    scenario = Scenario(pools=20, load=2.5, horizon=220.0, warmup=20.0, **parameters)
    for replications in (1, 3):
        result = simulate(scenario, replications=replications)
        assert {name for name, width in result.half_widths().items() if width == 0} == certain
    for name in certain:  # what is certain is the same in every sample
        assert len(set(result.samples[name].tolist())) == 1, name


def test_parts_are_long_enough_and_enough() -> None:
    assert [part_count(length, 1) for length in (199.9, 200.0, 1e6)] == [1, 50, 50]
    assert [part_count(1e6, runs) for runs in (2, 3, 8, 51, 1000)] == [50, 25, 8, 1, 1]
    assert [part_count(length, 2) for length in (1.0, 79.9, 80.0, 100.0)] == [1, 1, 20, 25]
    assert [part_count(length, 8) for length in (8.0, 11.9, 12.0)] == [1, 1, 3]


def test_a_schedule_has_intervals_from_replications_only() -> None:
    """Batches of one run would differ by more than chance."""
    scenario = Scenario(pools=10, schedule="0:2~1/24", horizon=400.0)
    assert simulate(scenario).half_widths() == {}
    assert math.isfinite(simulate(scenario, replications=3).half_widths()["spread"])


def test_conf_int_is_not_a_number_where_one_sample_cannot_tell() -> None:
    table = simulate(Scenario(pools=5, load=2.0, alpha=0.9, horizon=30.0)).conf_int()
    assert np.isfinite(table["mean"]).all()
    assert np.isnan(table["low"]).all()
    assert np.isnan(table["high"]).all()
    assert "threshold" in table["quantity"]
    assert None not in table.to_pandas().to_numpy()


def test_a_level_outside_0_to_1_is_rejected() -> None:
    result = simulate(Scenario(pools=5, load=2.0, horizon=3.0))
    for level in (0, 1, 95, math.nan):
        with pytest.raises(InputError, match="level must be a number strictly between 0 and 1"):
            result.conf_int(level)


def test_a_single_long_run_has_fifty_batches() -> None:
    result = simulate(Scenario(pools=5, load=2.0, horizon=210.0, warmup=10.0))
    assert (result.batches, len(result.samples)) == (50, 50)
    assert result.half_widths()
    assert "threshold" not in simulate(Scenario(policy="jsq", pools=5, load=2.0, horizon=210.0)).to_dict()["ci95"]


@pytest.mark.full
@pytest.mark.parametrize(("replications", "length"), [(1, 200.0), (10, 10.0)])
def test_the_estimated_variance_is_that_of_the_infinite_server_queue(replications: int, length: float) -> None:
    """The variance of a time average over `length` has a closed form. Half of the estimates must be below it.

    Their relative deviation is about 40 %, so that the median of 400 is known within 2.5 %: five deviations are
    13 %.
    """
    scenario = Scenario(policy="random", pools=10, load=LOAD, horizon=20 + length, warmup=20.0)
    exact = 2 * LOAD / 10 / length * (1 - (1 - math.exp(-length)) / length) / replications
    found = []
    for seed in range(400):
        result = simulate(scenario, seed=seed, replications=replications, workers=1)
        parts = Parts(result.parts, {})
        residuals = parts._residuals(parts._column("mean_tasks"), parts._column("time"))
        found.append(parts._error(residuals).variance / (replications * length) ** 2)
    assert float(np.median(found)) == pytest.approx(exact, rel=0.13)


@pytest.mark.parametrize(
    "name",
    [
        "exponential",
        "lognormal:cv=4",
        "pareto:shape=1.5,ratio=1000",
        *(
            pytest.param(law, marks=pytest.mark.full)
            for law in (
                "erlang:stages=3",
                "hyperexponential:cv=4",
                "coxian:means=0.5/4,next=0.2",
                "weibull:shape=0.3",
            )
        ),
    ],
)
def test_parts_outlast_the_correlations_of_every_law(name: str) -> None:
    """The variance that correlations of neighboring parts suggest is that of the whole run, to a few percent.

    For the number of tasks, whose correlation at lag t is 1 - E[min(S, t)], both follow from the law.
    """
    from tests.workload.laws import counterpart

    part = PART_TASKS * parse_service(name).memory
    times = np.append(0.0, np.geomspace(1e-8, 1.0, 20_000) * PARTS * part)
    survival, steps = counterpart(name).sf(times), np.diff(times)
    correlation = 1 - np.append(0.0, np.cumsum(steps * (survival[1:] + survival[:-1]) / 2))

    def variance(length: float) -> float:
        heights = np.maximum(1 - times / length, 0.0) * correlation
        return float(steps @ (heights[1:] + heights[:-1])) / length

    neighbors = 2 * variance(2 * part) / variance(part) - 1
    suggested = variance(part) * (1 + neighbors) / (1 - neighbors) / PARTS
    assert 0.97 < math.sqrt(suggested / variance(PARTS * part)) < 1.06


def variance_times_length(*, mean_holding_times: bool, replications: int, length: float) -> float:
    scenario = Scenario(policy="random", pools=1, load=0.2, horizon=length + 20, warmup=20.0)
    result = simulate(scenario, seed=9, replications=replications, mean_holding_times=mean_holding_times)
    values = [averages(sample, 1).mean_tasks for sample in result.windows]
    return float(np.var(values, ddof=1)) * length


def test_mean_holding_times_lower_the_variance_as_much_as_theory_says() -> None:
    """For a CTMC with law p and rates q, sum p f g turns into sum p f g - sum p f^2 / (2q), twice.

    Here f = g = x - 0.2 in the infinite-server queue, with q = 0.2 + x: 0.4 turns into 0.122.
    """
    from scipy.stats import chi2

    replications, length = 500, 2000.0
    law = [math.exp(-0.2) * 0.2**x / math.factorial(x) for x in range(30)]
    usual = 2 * 0.2
    lowered = usual - sum(chance * (x - 0.2) ** 2 / (0.2 + x) for x, chance in enumerate(law))
    assert lowered == pytest.approx(0.122, abs=0.001)
    freedom = replications - 1
    least, most = (float(chi2.ppf(chance, freedom)) / freedom for chance in (RARE / 2, 1 - RARE / 2))
    # Samples are slightly skewed and the window is finite: allow five per cent more.
    for truth, mean_holding_times in ((usual, False), (lowered, True)):
        found = variance_times_length(
            mean_holding_times=mean_holding_times, replications=replications, length=length
        )
        assert truth * least * 0.95 < found < truth * most * 1.05
    assert lowered * most * 1.05 < usual * least * 0.95


def test_batches_that_are_too_short_give_no_interval() -> None:
    scenario = Scenario(policy="random", pools=5, load=2.0, horizon=100.0)
    assert [bool(simulate(scenario, batches=count).half_widths()) for count in (10, 11, 25, 26)] == [
        True,
        False,
        True,
        False,
    ]
    for interval, known in ((1.0, True), (5.0, False)):  # rare reports make pools fill in turn, again and again
        slow = Scenario(policy="stale-reports", pools=5, load=2.0, horizon=200.0, report_interval=interval)
        assert bool(simulate(slow).half_widths()) == known


@pytest.mark.parametrize(("length", "batches"), [(49.9, 0), (50.0, 5), (80.0, 8), (199.9, 19), (200.0, 50)])
def test_a_shorter_run_has_a_few_long_batches(length: float, batches: int) -> None:
    result = simulate(Scenario(policy="jsq", pools=5, load=2.5, horizon=10 + length, warmup=10.0))
    assert result.batches == batches
    assert bool(result.half_widths()) == (batches > 0)
    assert math.isfinite(result.half_widths().get("spread", 0.0))


def test_a_run_with_hundreds_of_thousands_of_levels_has_fewer_batches() -> None:
    for load, batches in ((600.0, 50), (600_000.0, 41), (900_000.0, 27)):
        scenario = Scenario(policy="random", pools=1, load=load, horizon=200.0)
        assert _default_batches(scenario, 200.0) == batches


def test_messages_of_a_system_without_arrivals_are_not_per_task() -> None:
    result = simulate(
        Scenario(policy="jsq", pools=5, schedule="0:0", initial_tasks=5, horizon=20.0), replications=3
    )
    assert result.messages_per_task == 0
    assert math.isnan(result.half_widths()["messages_per_task"])
    assert str(result)
