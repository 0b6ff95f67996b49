"""The predicted stability of a learned threshold against simulations of the whole policy.

Every comparison has a false-alarm rate of 1e-9, from Student's law over 48 replications (below 1e-6 where few
excursions make them skewed). Beyond that, half a percent is allowed for what the prediction
leaves out: simulations of 2e8 tasks each have not shown more. Few pools with a small alpha have other tolerances.
"""

from pathlib import Path

import numpy as np
import pytest

from evenly import Scenario, simulate
from evenly.theory.stability.predict import predict_stability
from evenly.theory.stability.result import ROUGH_PART, ROUGH_SHARE
from examples.stability import NAMES, QUICK_CASES, main, simulated
from tests.sim.support import assert_mean
from tests.tiers import rest_in_full

MODEL_ERROR = 0.005
NOT_RARE = 1e-3  # samples of rarer events are far from normal
TASKS = 2e7
FEW_POOLS_SHARE, FEW_POOLS_PART = 0.004, 0.025  # absolute; relative

# The paper's system of Figure 3 at its sizes and beyond; both sides of the optimum; many tasks per pool; few
# pools; a whole load; a load that breaks the condition of Cor. 2; one beyond the size where `extra` is kept.
SYSTEMS = [
    (2.9, "0.97", 100),
    (2.9, "0.97", 500),
    (5.1, "0.9", 100),
    (2.9, "0.85", 10),
    (3.0, "0.9", 12),
    (4.5, "0.3", 40),
    (2.9, "0.97", 400),
    (2.9, "0.97", 1000),
    (2.9, "0.97", 2000),
    (5.5, "0.93", 50),
    (5.1, "0.9", 500),
    (10.5, "0.96", 200),
    (2.9, "0.92", 1000),
]


@pytest.mark.parametrize(
    ("load", "alpha", "pools"),
    rest_in_full(SYSTEMS, 4),
)
def test_simulated_thresholds_are_as_stable_as_predicted(load: float, alpha: str, pools: int) -> None:
    found = predict_stability(pools=pools, load=load, alpha=alpha)
    columns = simulated(load, alpha, pools, TASKS, replications=48, seed=41)
    for name in NAMES:
        truth = getattr(found, name)
        if truth > NOT_RARE:
            assert_mean(columns[name], truth, name, slack=MODEL_ERROR * truth)
        else:
            assert np.mean(columns[name]) < 3 * NOT_RARE


@pytest.mark.full
@pytest.mark.parametrize(
    ("load", "alpha", "pools", "reliable"),
    [(5.5, "0.1", 10, False), (3.98, "0.2", 10, False), (5.5, "0.5", 10, True), (2.9, "0.5", 10, True)],
)
def test_the_error_with_few_pools_and_a_small_alpha_is_as_stated(
    load: float, alpha: str, pools: int, reliable: bool
) -> None:
    share, part = (FEW_POOLS_SHARE, FEW_POOLS_PART) if reliable else (ROUGH_SHARE, ROUGH_PART)
    found = predict_stability(pools=pools, load=load, alpha=alpha)
    assert found.reliable == reliable
    columns = simulated(load, alpha, pools, TASKS, replications=48, seed=43)
    for name in NAMES:
        truth = getattr(found, name)
        slack = min(share, part * truth) if name.startswith("share") else part * truth
        assert_mean(columns[name], truth, name, slack=slack)


def test_an_unreliable_prediction_is_far_off() -> None:
    found = predict_stability(pools=10, load=5.5, alpha="0.1")
    columns = simulated(5.5, "0.1", 10, TASKS / 4, replications=48, seed=44)
    # The ratio is 0.69 on average, with a standard error of 0.018: nine standard errors away.
    assert np.mean(columns["share_below"]) < 0.85 * found.share_below


@pytest.mark.parametrize(("alpha", "rests_at", "ends_at"), [("0.5", 6, 6), ("0.7", None, 5)])
def test_a_threshold_at_rest_above_the_optimum_stays_there(alpha: str, rests_at: int | None, ends_at: int) -> None:
    found = predict_stability(pools=2000, load=5.5, alpha=alpha)
    assert (found.also_rests_at, found.threshold_share) == (rests_at, {5: 1.0})
    start = Scenario(pools=2000, load=5.5, alpha=alpha, threshold=8, initial_tasks=8, warmup=10, horizon=60)
    # The odds that it leaves within fifty mean task times are far below 1e-6: a hundred pools would have to empty.
    assert simulate(start, seed=1).threshold_share == {ends_at: pytest.approx(1)}


def test_the_time_between_excursions_agrees_with_simulation() -> None:
    # With only two thresholds, an excursion is a rise and a fall.
    found = predict_stability(pools=500, load=2.9, alpha="0.97")
    columns = simulated(2.9, "0.97", 500, TASKS, replications=48, seed=42)
    rate = [changes / 2 for changes in columns["change_rate"]]
    assert_mean(rate, 1 / found.time_between_excursions, slack=MODEL_ERROR / found.time_between_excursions)
    # The share of time above is the rate of excursions times their length: the difference has mean zero.
    left = [share - found.excursion_length * r for share, r in zip(columns["share_above"], rate, strict=True)]
    assert_mean(left, 0.0, slack=MODEL_ERROR * found.share_above)


@pytest.mark.full
def test_the_example_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "stability.png"
    main(["--quick", "--out", str(out)])
    assert out.read_bytes().startswith(b"\x89PNG")
    rows = [line for line in capsys.readouterr().out.splitlines() if line.count("+-") == len(NAMES)]
    assert len(rows) == sum(map(len, QUICK_CASES.values()))
