"""Simulated utility comes close to the best possible one, and never significantly above it."""

import pytest

from evenly.sim import Scenario, simulate
from evenly.theory import predict_best_utility

SIZES = {
    "two": "400*1,100*4",
    "few large ones": "495*1,5*4",
    "five": "100*1,100*2,100*3,100*4,100*5",
    "fifty": ",".join(f"10*{1 + step / 10}" for step in range(50)),
}
RUNS = 8
SIGMAS = 7.0  # of a mean over RUNS runs; 28 comparisons, Student's t with 7 degrees of freedom: below 1e-6 each


@pytest.mark.parametrize(
    ("name", "utility"),
    [
        *[("two", "sqrt"), ("few large ones", "rate"), ("five", "rate"), ("fifty", "sqrt")],
        *(
            pytest.param(*case, marks=pytest.mark.full)
            for case in [("two", "rate"), ("few large ones", "sqrt"), ("five", "sqrt"), ("fifty", "rate")]
        ),
    ],
)
def test_five_hundred_pools_come_within_a_percent_of_the_bound(name: str, utility: str) -> None:
    sizes = SIZES[name]
    best = predict_best_utility(sizes=sizes, load=5.5, utility=utility).bound
    for options in ({"policy": "greedy-utility"}, {"policy": "threshold-utility", "alpha": "0.93"}):
        scenario = Scenario(sizes=sizes, utility=utility, load=5.5, horizon=80.0, warmup=30.0, **options)  # type: ignore[arg-type]
        found = simulate(scenario, replications=RUNS, mean_holding_times=True)
        assert found.mean_utility > 0.99 * best
        error = found.half_widths(0.68)["mean_utility"]
        assert found.mean_utility < best + SIGMAS * error


def test_the_blind_policies_stay_away_from_the_bound() -> None:
    """What the sizes are worth: five percent here, so that the test above tells good policies from bad ones."""
    best = predict_best_utility(sizes=SIZES["two"], load=5.5, utility="sqrt").bound
    for policy in ("random", "jsq"):
        found = simulate(Scenario(policy=policy, sizes=SIZES["two"], utility="sqrt", load=5.5, warmup=30.0))
        assert found.mean_utility < 0.96 * best


def test_the_learned_index_settles_near_the_best_one() -> None:
    scenario = Scenario(policy="threshold-utility", alpha="0.93", sizes=SIZES["two"], load=5.5, warmup=50.0)
    found = simulate(scenario)
    assert found.threshold == pytest.approx(scenario.best_threshold(0.0), abs=0.5)
    best = predict_best_utility(sizes=SIZES["two"], load=5.5)
    assert found.class_tasks == pytest.approx(best.tasks + best.share_above, abs=0.1)
