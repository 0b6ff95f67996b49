"""The 95 % intervals: their formula and their coverage.

Counts of successes are binomial; the bounds below have a false-alarm rate of 1e-7 each.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom, chi2, t

from evenly.errors import InputError
from evenly.sim import Result, Scenario, simulate
from evenly.sim.intervals import batch_count, half_width
from evenly.sim.tally import averages

RARE = 1e-7
LOAD = 2.0


def covers(result: Result) -> bool:
    return abs(result.mean_tasks - LOAD) <= result.half_widths()["mean_tasks"]


def test_half_widths_are_student_s() -> None:
    samples = [1.0, 2.5, 2.0, 4.0, 3.25]
    low, high = t.interval(0.95, 4, loc=np.mean(samples), scale=np.std(samples, ddof=1) / math.sqrt(5))
    assert half_width(samples) == pytest.approx((high - low) / 2, rel=1e-12)
    assert half_width([0.0, 1.0]) == pytest.approx(12.706204736432095 / 2, rel=1e-9)  # from a printed table


def test_every_mean_has_its_interval_from_the_samples() -> None:
    result = simulate(Scenario(pools=6, load=2.4, alpha=0.8, capacity=5, horizon=30.0), replications=7)
    rows = [averages(sample, 6).scalars() for sample in result.windows]
    assert result.half_widths().keys() == {
        "mean_tasks", "max_tasks", "spread", "imbalance", "messages_per_task", "resync_per_task", "lost_share",
        "threshold",
    }  # fmt: skip
    for name, width in result.half_widths().items():
        values = [row[name] for row in rows]
        assert width == pytest.approx(t.isf(0.025, 6) * np.std(values, ddof=1) / math.sqrt(7), rel=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_conf_int_is_the_t_interval_of_the_samples(level: float) -> None:
    result = simulate(Scenario(pools=6, load=2.4, alpha=0.8, capacity=5, horizon=30.0), replications=7)
    table = result.conf_int(level)
    assert list(table) == ["quantity", "mean", "low", "high"]
    assert dict(zip(table["quantity"], table["mean"], strict=True)) == result.scalars()
    for name, low, high in zip(table["quantity"], table["low"], table["high"], strict=True):
        values = result.samples[name]
        middle, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(7)
        expected = t.interval(level, 6, loc=middle, scale=error) if error > 0 else (middle, middle)
        # Windows are of one length, so the mean of the samples is the mean; shares per task weigh arrivals.
        shift = result.scalars()[name] - middle
        assert (low - shift, high - shift) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert np.allclose(table["low"] + table["high"], 2 * table["mean"])


def test_conf_int_is_not_a_number_where_one_sample_cannot_tell() -> None:
    table = simulate(Scenario(pools=5, load=2.0, alpha=0.9, horizon=30.0)).conf_int()
    assert np.isfinite(table["mean"]).all()
    assert np.isnan(table["low"]).all()
    assert np.isnan(table["high"]).all()
    assert "threshold" in table["quantity"]
    assert None not in table.to_pandas().to_numpy()


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, math.nan])
def test_a_level_outside_0_to_1_is_rejected(level: float) -> None:
    with pytest.raises(InputError, match="level must be a number strictly between 0 and 1"):
        simulate(Scenario(pools=5, load=2.0, horizon=3.0)).conf_int(level)


def test_a_single_short_run_has_no_interval() -> None:
    assert simulate(Scenario(pools=5, load=2.0, horizon=199.0)).half_widths() == {}
    assert simulate(Scenario(pools=5, load=2.0, horizon=400.0), batches=0).half_widths() == {}


def test_a_single_long_run_has_twenty_batches() -> None:
    result = simulate(Scenario(pools=5, load=2.0, horizon=210.0, warmup=10.0))
    assert (result.batches, len(result.samples)) == (20, 20)
    assert result.half_widths()
    assert "threshold" not in simulate(Scenario(policy="jsq", pools=5, load=2.0, horizon=210.0)).to_dict()["ci95"]


def test_batches_are_counted_in_mean_task_times() -> None:
    assert [batch_count(length, 1.0) for length in (199.9, 200.0, 1e6)] == [0, 20, 20]
    assert [batch_count(length, 4.0) for length in (49.9, 50.0)] == [0, 20]


@pytest.mark.slow
def test_intervals_from_replications_hold_the_truth_95_times_in_100() -> None:
    # Ten time averages over ten task times, each of about twenty tasks: close to normal, so that the true
    # coverage is 95 % within half a point, and 94 to 96 % for sure.
    scenario = Scenario(policy="random", pools=10, load=LOAD, horizon=30.0, warmup=20.0)
    runs = 600
    held = sum(covers(simulate(scenario, seed=seed, replications=10, workers=1)) for seed in range(runs))
    assert binom.ppf(RARE, runs, 0.94) <= held <= binom.isf(RARE, runs, 0.96)


@pytest.mark.slow
def test_intervals_from_batches_hold_the_truth_nearly_as_often() -> None:
    # Batches of ten task times are correlated: the variance of the mean is (1 - 1/200) / (1 - 1/10) = 1.106
    # times what they suggest, so that Student's 2.093 stands for 1.99 deviations, held 93.9 % of the time.
    scenario = Scenario(policy="random", pools=10, load=LOAD, horizon=220.0, warmup=20.0)
    runs = 1000
    held = sum(covers(simulate(scenario, seed=seed, workers=1)) for seed in range(runs))
    assert binom.ppf(RARE, runs, 0.925) <= held <= binom.isf(RARE, runs, 0.955)


def variance_times_length(*, mean_holding_times: bool, replications: int, length: float) -> float:
    scenario = Scenario(policy="random", pools=1, load=0.2, horizon=length + 20, warmup=20.0)
    result = simulate(scenario, seed=9, replications=replications, mean_holding_times=mean_holding_times)
    values = [averages(sample, 1).mean_tasks for sample in result.windows]
    return float(np.var(values, ddof=1)) * length


@pytest.mark.slow
def test_mean_holding_times_lower_the_variance_as_much_as_theory_says() -> None:
    """For a CTMC with law p and rates q, sum p f g turns into sum p f g - sum p f^2 / (2q), twice.

    Here f = g = x - 0.2 in the infinite-server queue, with q = 0.2 + x: 0.4 turns into 0.122.
    """
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
    assert simulate(scenario, batches=10).half_widths()
    assert simulate(scenario, batches=20).half_widths() == {}
