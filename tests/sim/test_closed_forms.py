"""Long-run averages against laws known in closed form. False-alarm rate: 1e-9 per comparison."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evenly.policies import POLICIES
from evenly.sim import Result, Scenario, simulate
from evenly.sim.tally import Averages, averages
from tests.sim.support import assert_mean

LENGTH: dict[str, Any] = {
    "horizon": 1040.0,
    "warmup": 40.0,
}  # what the start leaves behind is of the order of exp(-40)


def erlang_b(servers: int, load: float) -> float:
    """Return the share lost by `servers` servers without a queue (Erlang B), by the usual recursion."""
    blocked = 1.0
    for server in range(1, servers + 1):
        blocked = load * blocked / (server + load * blocked)
    return blocked


def run(options: dict[str, Any], *, mean_holding_times: bool = False) -> Result:
    return simulate(Scenario(**LENGTH, **options), seed=21, replications=48, mean_holding_times=mean_holding_times)


def samples(result: Result, value: Callable[[Averages], float]) -> list[float]:
    return [value(averages(sample, result.scenario.pools)) for sample in result.windows]


def assert_levels(result: Result, law: list[float]) -> None:
    """Assert the number of pools with exactly i tasks, for the levels that are not rare."""
    for level, chance in enumerate(law):
        if chance > 0.01:
            assert_mean(
                samples(result, lambda means, at=level: float(means.pools_with_exactly[at])),  # type: ignore[misc]
                chance,
                f"level {level}",
            )


every_mode = pytest.mark.parametrize("mean_holding_times", [False, True], ids=["times", "means"])


@pytest.mark.parametrize("policy", POLICIES)
def test_without_losses_the_mean_number_of_tasks_is_the_load(policy: str) -> None:
    capacity = 60 if policy == "pull" else None
    result = run({"policy": policy, "pools": 5, "load": 2.3, "capacity": capacity})
    assert result.lost_tasks == 0
    assert_mean(samples(result, lambda means: means.mean_tasks), 2.3)


@every_mode
def test_random_routing_makes_every_pool_poisson(mean_holding_times: bool) -> None:
    from scipy.stats import poisson

    result = run({"policy": "random", "pools": 6, "load": 2.4}, mean_holding_times=mean_holding_times)
    assert_levels(result, poisson.pmf(np.arange(12), 2.4).tolist())


def test_random_routing_with_one_choice_of_d_is_random_routing() -> None:
    from scipy.stats import poisson

    result = run({"policy": "power-of-d", "choices": 1, "pools": 6, "load": 2.4})
    assert_levels(result, poisson.pmf(np.arange(12), 2.4).tolist())
    assert result.messages_per_task == 2


def test_a_single_pool_is_poisson_under_every_policy() -> None:
    from scipy.stats import poisson

    for policy in POLICIES:
        capacity = 60 if policy == "pull" else None
        result = run({"policy": policy, "pools": 1, "load": 3.1, "capacity": capacity})
        assert_levels(result, poisson.pmf(np.arange(15), 3.1).tolist())


@every_mode
def test_random_routing_with_capacity_loses_as_erlang_says(mean_holding_times: bool) -> None:
    from scipy.stats import poisson

    result = run(
        {"policy": "random", "pools": 4, "load": 2.5, "capacity": 4}, mean_holding_times=mean_holding_times
    )
    assert_mean(samples(result, lambda means: means.lost_share), erlang_b(4, 2.5))
    weights = poisson.pmf(np.arange(5), 2.5)
    assert_levels(result, (weights / weights.sum()).tolist())


FREE_WHILE_ANY_PLACE_IS: dict[str, dict[str, Any]] = {
    "pull": {"policy": "pull"},
    "jsq": {"policy": "jsq"},
    "power of all": {"policy": "power-of-d", "choices": 4},
    "jbt at the capacity": {"policy": "jbt", "threshold": 3},
    "threshold just below the capacity": {"policy": "threshold", "threshold": 2},
}


@pytest.mark.parametrize("name", FREE_WHILE_ANY_PLACE_IS)
def test_tasks_lost_only_when_all_places_are_taken_are_those_of_erlang(name: str) -> None:
    options = {"pools": 4, "load": 2.2, "capacity": 3, **FREE_WHILE_ANY_PLACE_IS[name]}
    result = run(options, mean_holding_times=name == "pull")  # every policy has both modes: tested event by event
    lost = erlang_b(12, 8.8)
    assert_mean(samples(result, lambda means: means.lost_share), lost)
    assert_mean(samples(result, lambda means: means.mean_tasks), 2.2 * (1 - lost))


def test_jiq_with_single_places_loses_as_erlang_says() -> None:
    result = run({"policy": "jiq", "pools": 7, "load": 0.8, "capacity": 1})
    assert_mean(samples(result, lambda means: means.lost_share), erlang_b(7, 5.6))
    # One message per departure, and none at an arrival: no pool is idle with a task.
    assert_mean(samples(result, lambda means: means.messages_per_task), 1 - erlang_b(7, 5.6))


def round_robin_law(pools: int, load: float, levels: int) -> list[float]:
    """Return the law of a pool that gets every n-th arrival, by Takacs's binomial moments of GI/M/infinity."""
    moments = [1.0, load]
    for order in range(1, 60):
        transform = (pools * load / (pools * load + order)) ** pools
        moments.append(moments[-1] * order / (order + 1) * transform / (1 - transform))
    return [
        math.fsum(
            (-1) ** (order - level) * math.comb(order, level) * moments[order]
            for order in range(level, len(moments))
        )
        for level in range(levels)
    ]


def test_the_law_of_round_robin_is_poisson_with_one_pool() -> None:
    from scipy.stats import poisson

    np.testing.assert_allclose(round_robin_law(1, 2.0, 8), poisson.pmf(np.arange(8), 2.0), rtol=1e-6)


@every_mode
def test_round_robin_has_the_law_of_its_renewal_arrivals(mean_holding_times: bool) -> None:
    result = run({"policy": "round-robin", "pools": 5, "load": 2.2}, mean_holding_times=mean_holding_times)
    assert_levels(result, round_robin_law(5, 2.2, 8))


def test_jsq_sends_one_message_per_departure_and_power_of_d_two_per_choice() -> None:
    jsq = run({"policy": "jsq", "pools": 5, "load": 2.0})
    departures = jsq.window.events - jsq.window.arrivals
    assert jsq.messages_per_task == pytest.approx(departures / jsq.window.arrivals, rel=1e-12)
    choices = run({"policy": "power-of-d", "pools": 5, "load": 2.0, "choices": 3})
    assert choices.messages_per_task == pytest.approx(6.0, rel=1e-12)


def test_balanced_policies_are_better_than_chance_in_the_right_order() -> None:
    spreads = [
        run({"policy": policy, "pools": 10, "load": 3.5}).spread for policy in ("jsq", "power-of-d", "random")
    ]
    assert spreads == sorted(spreads)
    assert spreads[0] < 0.7 * spreads[2]
