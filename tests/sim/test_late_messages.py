"""Systems whose messages take time: laws in closed form, records, and a threshold that stays where it belongs."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evenly.core.protocol import Pick
from evenly.errors import InputError
from evenly.policies import DELAYED
from evenly.sim import Scenario, compare, simulate, with_policies
from evenly.sim.simulation import Simulation
from tests.sim.network_reference import NetworkReference
from tests.sim.support import assert_mean
from tests.sim.test_closed_forms import assert_levels, run, samples

DELAYS = [0.3, "exponential:0.3"]
every_delay = pytest.mark.parametrize("delay", DELAYS)
# Each policy with a delay of either kind in `make test`, and with both in `make full`.
every_policy_late = pytest.mark.parametrize(
    ("policy", "delay"),
    [
        pytest.param(policy, delay, marks=[] if (place + fixed) % 2 else pytest.mark.full)
        for place, policy in enumerate(DELAYED)
        for fixed, delay in enumerate(DELAYS)
    ],
)


@every_policy_late
def test_the_mean_number_of_tasks_is_the_load(policy: str, delay: float | str) -> None:
    result = run({"policy": policy, "pools": 5, "load": 2.3, "delay": delay})
    assert_mean(samples(result, lambda means: means.mean_tasks), 2.3)


@every_delay
def test_random_routing_makes_every_pool_poisson(delay: float | str) -> None:
    from scipy.stats import poisson

    result = run({"policy": "random", "pools": 6, "load": 2.4, "delay": delay})
    assert_levels(result, poisson.pmf(np.arange(12), 2.4).tolist())


@every_policy_late
def test_a_single_pool_is_poisson_under_every_policy(policy: str, delay: float | str) -> None:
    from scipy.stats import poisson

    alpha = 0.5 if policy == "threshold" else None
    result = run({"policy": policy, "pools": 1, "load": 3.1, "delay": delay, "alpha": alpha})
    assert_levels(result, poisson.pmf(np.arange(12), 3.1).tolist())


@every_delay
def test_policies_share_arrivals_and_departures(delay: float | str) -> None:
    # The tasks on their way have the same delays, too. Under power-of-d they leave later, after the polls.
    scenario = Scenario(pools=20, load=5.5, alpha=0.8, delay=delay, horizon=50)
    policies = [policy for policy in DELAYED if policy != "power-of-d"]
    first, *others = compare(with_policies(scenario, policies), points=501, seed=4)
    totals = first.trajectories[0].pools_at_least[:, 1:].sum(axis=1)
    assert len(set(totals.tolist())) > 20
    for other in others:
        assert np.array_equal(other.trajectories[0].pools_at_least[:, 1:].sum(axis=1), totals)


@every_delay
def test_a_run_does_not_depend_on_its_stops(delay: float | str) -> None:
    for policy in DELAYED:
        alpha = 0.8 if policy == "threshold" else None
        scenario = Scenario(policy=policy, pools=9, load=3.5, alpha=alpha, delay=delay, horizon=40)
        whole, parts = simulate(scenario, batches=0), simulate(scenario, batches=0, points=333)
        assert parts.window.spread == pytest.approx(whole.window.spread, rel=1e-12)
        assert parts.window.arrivals == whole.window.arrivals
        assert parts.window.at_least == pytest.approx(whole.window.at_least, rel=1e-12)


class _Recorded(NetworkReference):
    """The reference, with the area under the spread and the time at each maximum."""

    def __init__(self, scenario: Scenario, seed: np.random.SeedSequence) -> None:
        self.spread_area = self.max_area = self.since = 0.0
        super().__init__(scenario, seed)

    def _account(self) -> None:
        self.spread_area += float(np.std(self.tasks)) * (self.time - self.since)
        self.max_area += max(self.tasks) * (self.time - self.since)
        self.since = self.time

    def _begin(self, pool: int, pick: Pick | None) -> None:
        self._account()
        super()._begin(pool, pick)

    def _depart(self, task: int) -> None:
        self._account()
        super()._depart(task)


@every_policy_late
def test_averages_are_those_of_the_path(policy: str, delay: float | str) -> None:
    alpha = 0.8 if policy == "threshold" else None
    scenario = Scenario(policy=policy, pools=7, load=3.5, alpha=alpha, delay=delay, horizon=1e6)
    seed = np.random.SeedSequence(3)
    kernel, path = Simulation(scenario, seed), _Recorded(scenario, seed)
    for _ in range(700):
        path.step()
    kernel.advance(path.time)
    path._account()
    tally = kernel.tally()
    assert tally.spread == pytest.approx(path.spread_area, rel=1e-9)
    assert tally.max_time @ np.arange(tally.max_time.size) == pytest.approx(path.max_area, rel=1e-9)


@pytest.mark.parametrize(
    ("pools", "load", "alpha", "delay"),
    [
        (20, 1.5, 0.8, 0.05),
        (20, 1.5, 0.8, "exponential:1"),
        (100, 5.5, 0.9, 1.0),
        (100, 5.5, 0.9, "exponential:0.3"),
        *(pytest.param(100, 12.25, 0.9, delay, marks=pytest.mark.full) for delay in (0.3, "exponential:0.01")),
    ],
)
def test_the_threshold_does_not_run_away(pools: int, load: float, alpha: float, delay: float | str) -> None:
    # The dispatcher counts a task from its pick until it hears of its departure, or earlier if a report overtakes
    # that one. So its total is at most Poisson with mean pools * load * (1 + 2 * delay). The threshold rises only
    # while all pools but one are above it, and cannot get far beyond the mean per pool.
    from scipy.stats import poisson

    scenario = Scenario(pools=pools, load=load, alpha=alpha, delay=delay, horizon=400)
    result = simulate(scenario, points=2, seed=8)
    counted = load * (1 + 2 * scenario.message_delay.mean)
    most = poisson.isf(1e-9, pools * counted) / pools
    assert result.trajectories[0].change_thresholds.max(initial=0) <= math.ceil(most) + 1
    sensible = range(math.floor(load) - 1, math.ceil(counted) + 2)
    assert sum(result.threshold_share.get(threshold, 0.0) for threshold in sensible) > 0.5


def test_once_delays_end_the_threshold_settles_where_the_paper_says() -> None:
    scenario = Scenario(pools=60, load=5.5, alpha=0.8, delay="exponential:1", initial_tasks=5.5, horizon=1e6)
    system = NetworkReference(scenario, np.random.SeedSequence(11))
    seen = set()
    while system.time < 40:
        system.step()
        seen.add(system.dispatcher.threshold)
    assert max(seen) > 5
    system.scenario = replace(scenario, delay=0.0)
    while system.time < 60:
        system.step()
    at_optimum = steps = 0
    while system.time < 100:
        system.step()
        steps += 1
        at_optimum += system.dispatcher.threshold == 5
    instant = simulate(Scenario(pools=60, load=5.5, alpha=0.8, horizon=20_000, warmup=100), seed=5)
    assert at_optimum / steps == pytest.approx(instant.threshold_share[5], abs=0.1)


@pytest.mark.parametrize(
    ("pools", "alpha", "load", "delay"),
    [
        *[(3, 0.5, 5.5, 0.01), (10, 0.6, 10.5, 0.01), (20, 0.65, 5.5, "exponential:0.05"), (100, 0.8, 5.5, 0.05)],
        *(
            pytest.param(*case, marks=pytest.mark.full)
            for case in [(20, 0.8, 1.5, 0.05), (100, 0.9, 9.7, 0.1), (300, 0.9, 9.7, "exponential:0.1")]
        ),
    ],
)
def test_balance_is_that_of_delayed_jsq_at_one_message_per_task(
    pools: int, alpha: float, load: float, delay: float | str
) -> None:
    """Both count their picks, and hear of the departures that matter: on the same randomness, the same path.

    With exponential delays, a report of ours that overtakes others replaces them: what we know is fresher.
    """
    horizon = 20 + 2e5 / pools / load
    scenario = Scenario(
        pools=pools, load=load, alpha=alpha, delay=delay, initial_tasks=load, warmup=20, horizon=horizon
    )
    ours, jsq = compare(with_policies(scenario, ["threshold", "jsq"]), seed=6)
    ratio = ours.spread / jsq.spread
    assert 0.9 < ratio < 1.02 if isinstance(delay, str) else ratio == pytest.approx(1.0, abs=0.01)
    assert ours.messages_per_task <= 1.001  # departures of tasks from before the start count, too
    assert ours.window.resync == 0


def test_mean_holding_times_are_for_instant_messages() -> None:
    options: list[dict[str, Any]] = [{"delay": 0.1}, {"policy": "stale-reports"}]
    for more in options:
        with pytest.raises(InputError, match="messages that take no time"):
            simulate(Scenario(pools=2, load=1.0, **more), mean_holding_times=True)


def test_results_are_saved_with_their_delay(tmp_path: Any) -> None:  # noqa: ANN401
    result = simulate(Scenario(pools=5, load=2.5, alpha=0.6, delay="exponential:0.02", horizon=20))
    result.save(tmp_path / "late.npz")
    again = type(result).read(tmp_path / "late.npz")
    assert again == result
    assert again.to_dict()["delay"] == "exponential:0.02"
