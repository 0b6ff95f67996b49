"""Service laws and arrivals in the simulator: what is known without simulating.

The total number of tasks is that of M/G/infinity: Poisson at every time, with mean pools * load * E[min(S, t)]
from an empty system, whatever the policy. Under random routing this holds pool by pool.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenly import InputError, Result, Scenario, compare, simulate
from evenly.sim.coupling import simulate_sizes
from evenly.sim.simulation import Simulation
from evenly.sim.summary import labels
from evenly.workload import empirical_law, recorded_arrivals
from tests.sim.support import FALSE_ALARM, assert_poisson

STARTS = 300


def totals(scenario: Scenario, times: list[float], count: int = STARTS) -> np.ndarray:
    """Return the number of tasks at each time, one row per independent replication."""
    rows = []
    for index in range(count):
        simulation = Simulation(scenario, np.random.SeedSequence(7, spawn_key=(index,)))
        row = []
        for time in times:
            simulation.advance(time)
            row.append(int(simulation.state["total"]))
        rows.append(row)
    return np.array(rows)


# No variance, much of it, and nearly infinite; the other laws in `make full`.
@pytest.mark.parametrize(
    "law",
    [
        "deterministic",
        "lognormal:cv=4",
        "pareto:shape=1.5,ratio=1000",
        pytest.param("erlang:stages=3", marks=pytest.mark.full),
        pytest.param("hyperexponential:cv=4", marks=pytest.mark.full),
        pytest.param("coxian:means=0.5/4,next=0.2", marks=pytest.mark.full),
        pytest.param("weibull:shape=0.5", marks=pytest.mark.full),
    ],
)
def test_the_total_is_poisson_at_every_time_whatever_the_law(law: str) -> None:
    from tests.workload.laws import mean_within

    scenario = Scenario(pools=10, load=2.5, alpha="0.8", service=law, service_rate=2.0)
    times = [0.15, 0.5, 3.0]
    found = totals(scenario, times)
    for column, time in enumerate(times):
        assert_poisson(found[:, column], 25 * mean_within(law, 2.0 * time))


def test_tasks_of_time_0_leave_by_the_same_law() -> None:
    from tests.workload.laws import counterpart

    law, time = "weibull:shape=0.5", 0.7
    scenario = Scenario(policy="jsq", pools=8, schedule="0:0", initial_tasks=5, service=law)
    found = totals(scenario, [time])
    stays = float(counterpart(law).sf(time))
    spread = math.sqrt(40 * STARTS * stays * (1 - stays))
    assert abs(found.sum() - 40 * STARTS * stays) < 6.2 * spread  # six standard deviations: below 1e-9


def test_a_schedule_changes_the_rate_of_any_process() -> None:
    from scipy.stats import chi2, norm

    # From an empty system under S = 1, the tasks at time t are the arrivals of (t - 1, t].
    scenario = Scenario(policy="random", pools=10, schedule="0:2,1:6~6/1", service="deterministic")
    assert_poisson(totals(scenario, [1.25])[:, 0], 10 * (0.75 * 2 + 6 * 0.25 + 6 / (2 * math.pi)))
    for arrivals, variance in (("renewal:cv=0.5", 0.25), ("renewal:cv=3", 9.0)):
        steady = Scenario(policy="random", pools=400, load=5.0, arrivals=arrivals, service="deterministic")
        found = totals(steady, [1.0], 400)[:, 0]
        mean = 2000 + (variance - 1) / 2  # Blackwell: gaps begin at time 0
        slack = float(norm.isf(FALSE_ALARM / 2)) * math.sqrt(variance * 2000 / 400)
        assert abs(found.mean() - mean) < slack + 0.5
        ratio = found.var(ddof=1) / (variance * 2000)
        low, high = (chi2.isf(1 - FALSE_ALARM / 2, 399) / 399, chi2.isf(FALSE_ALARM / 2, 399) / 399)
        assert 0.9 * low < ratio < 1.1 * high  # asymptotically normal; a tenth for 2,000 gaps


def test_bursts_have_the_variance_of_their_rate() -> None:
    # With S = 1 and exponential bursts, Var N = mean + Var(rate) * 2 * (r - 1 + exp(-r)) / r^2, r = 1 / memory.
    arrivals = "bursty:ratio=9,share=0.25,length=0.4"
    scenario = Scenario(policy="random", pools=100, load=4.0, arrivals=arrivals, service="deterministic")
    burst = scenario.arrival_process.burst
    assert burst is not None
    low, high = burst.factors
    r = 1 / burst.memory
    extra = 400**2 * 0.25 * 0.75 * (high - low) ** 2 * 2 * (r - 1 + math.exp(-r)) / r**2
    found = totals(scenario, [1.0], 3000)[:, 0]
    assert abs(found.mean() - 400) < 6.2 * math.sqrt((400 + extra) / 3000)
    # The error of a sample variance follows from the fourth moment.
    fourth = float(((found - found.mean()) ** 4).mean())
    slack = 6.2 * math.sqrt((fourth - found.var() ** 2) / 3000)
    assert abs(found.var() - (400 + extra)) < slack


def test_under_random_routing_each_pool_is_poisson() -> None:
    from scipy.stats import chi2, poisson

    from tests.workload.laws import mean_within

    law = "lognormal:cv=4"
    scenario = Scenario(policy="random", pools=20_000, load=1.5, service=law)
    simulation = Simulation(scenario, np.random.SeedSequence(5))
    simulation.advance(2.0)
    tasks = simulation.tasks
    assert tasks is not None
    mean = 1.5 * mean_within(law, 2.0)
    levels = int(poisson.isf(50 / tasks.size, mean))
    expected = tasks.size * np.append(poisson.pmf(range(levels), mean), poisson.sf(levels - 1, mean))
    counts = np.append(np.bincount(tasks, minlength=levels)[:levels], (tasks >= levels).sum())
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert statistic < chi2.isf(FALSE_ALARM, levels)


@pytest.mark.parametrize("policy", ["threshold", pytest.param("power-of-d", marks=pytest.mark.full), "jiq"])
def test_exponential_times_agree_with_the_other_kernels(policy: str) -> None:
    more: dict[str, Any] = {"alpha": "0.8"} if policy == "threshold" else {}
    plain = Scenario(policy=policy, pools=20, load=2.5, initial_tasks=2.5, horizon=40, warmup=5, **more)
    other = replace(plain, service="hyperexponential:cv=1", arrivals="renewal:cv=1")
    one, two = simulate(plain, replications=60, seed=1), simulate(other, replications=60, seed=2)
    for name in ("mean_tasks", "spread", "imbalance", "max_tasks"):
        first, second = (np.asarray(result.samples[name]) for result in (one, two))
        error = math.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 60)
        assert abs(first.mean() - second.mean()) < 6.5 * error, name  # 1e-6 for 60 samples, by Student's law


def test_policies_get_the_same_tasks() -> None:
    scenario = Scenario(pools=20, load=2.5, service="lognormal:cv=2", arrivals="renewal:cv=2", horizon=50)
    runs = compare([replace(scenario, policy=policy) for policy in ("threshold", "random", "jiq", "round-robin")])
    assert len({(run.events, run.window.arrivals, round(run.mean_tasks, 9)) for run in runs}) == 1


def test_a_recording_is_repeated_and_sped_up_to_the_load() -> None:
    times = [5.0, 6.0, 6.0, 8.0]  # gaps 1, 0, 2: as 1, 0, 2 units of 1 / rate
    scenario = Scenario(
        policy="round-robin", pools=2, load=1.5, arrivals=recorded_arrivals(times), service="deterministic"
    )
    simulation = Simulation(scenario, np.random.SeedSequence(1))
    found = []
    for _ in range(7):
        before = int(simulation.state["arrivals"])
        while int(simulation.state["arrivals"]) == before:
            simulation.advance(100.0, max_events=1)
        found.append(simulation.time * 3)
    assert found == pytest.approx([1, 1, 3, 4, 4, 6, 7])


def test_a_result_keeps_the_numbers_of_files(tmp_path: Path) -> None:
    file = tmp_path / "sessions.csv"
    file.write_text("start,duration\n0,30\n4,90\n5,60\n")
    scenario = Scenario(
        pools=5,
        load=2.0,
        horizon=20,
        service=f"empirical:{file},column=duration",
        arrivals=f"recorded:{file},column=start",
    )
    result = simulate(scenario, points=3)
    result.save(tmp_path / "result.npz")
    file.unlink()
    again = Result.read(tmp_path / "result.npz")
    assert again == result
    assert again.scenario == scenario
    assert simulate(again.scenario, points=3) == result
    report = again.to_dict()
    assert (report["service"], report["arrivals"]) == (str(scenario.service), str(scenario.arrivals))
    assert (report["service_own_mean"], report["arrivals_own_rate"]) == (60, 0.4)
    plain = simulate(Scenario(pools=5, load=2.0, horizon=5, service="lognormal:cv=4.0"))
    plain.save(tmp_path / "plain.npz")
    assert Result.read(tmp_path / "plain.npz").scenario.service == "lognormal:cv=4"
    assert plain.to_dict()["service_own_mean"] is None


def test_laws_show_in_headlines_and_labels() -> None:
    scenario = Scenario(pools=5, load=2.0, horizon=5, service="lognormal:cv=4", arrivals="renewal:cv=2")
    assert scenario.setting == "5 pools, load 2, lognormal:cv=4 service, renewal:cv=2 arrivals"
    assert Scenario(pools=5, load=2.0).setting == "5 pools, load 2"
    runs = compare([scenario, replace(scenario, service="deterministic")])
    assert labels(runs) == ["threshold 2, lognormal:cv=4 service", "threshold 2, deterministic service"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delay": 0.1}, "A delay needs exponential service and Poisson arrivals, not lognormal:cv=4 service"),
        ({"policy": "stale-reports"}, "Policy stale-reports needs exponential service"),
        ({"pools": 10**7}, "every session is stored: at most 20000000"),
        ({"pools": 10**6, "arrivals": "bursty:ratio=1000,share=0.01,length=1"}, "every session is stored"),
        ({"arrivals": "nope"}, "arrivals must be one of"),
        ({"service": 5}, "service must be a text"),
    ],
)
def test_what_does_not_go_together_is_rejected(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Scenario(**{"pools": 5, "load": 3.0, "service": "lognormal:cv=4", **options})


def test_methods_that_need_exponential_times_reject_others() -> None:
    scenario = Scenario(pools=5, load=3.0, alpha="0.8", service="erlang:stages=2")
    with pytest.raises(InputError, match="mean_holding_times needs exponential service"):
        simulate(scenario, mean_holding_times=True)
    with pytest.raises(InputError, match="simulate_sizes only supports exponential service"):
        simulate_sizes(scenario, pools=[5, 10])


def test_intervals_wait_for_laws_that_remember_for_long() -> None:
    def batches(service: object, horizon: float, arrivals: str = "poisson") -> int:
        return simulate(Scenario(pools=2, load=1.0, horizon=horizon, service=service, arrivals=arrivals)).batches  # type: ignore[arg-type]

    assert [batches("exponential", horizon) for horizon in (199, 200)] == [19, 50]
    assert [batches("deterministic", horizon) for horizon in (199, 200)] == [19, 50]
    assert [batches("hyperexponential:cv=2", horizon) for horizon in (499, 500)] == [19, 50]  # (1 + 4) / 2 as long
    assert [batches("lognormal:cv=3", horizon) for horizon in (2333, 2334)] == [19, 50]  # 0.35 * 1000 / 30 as long
    assert batches("pareto:shape=1.5", 1e4) == 0  # the variance is infinite
    assert [batches("exponential", 600, f"bursty:ratio=2,share=0.5,length={n}") for n in (6, 7)] == [50, 17]
    assert batches(empirical_law([1, 1]), 200) == 50
