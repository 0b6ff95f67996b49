"""Clients who return to the pool that they had: kernel and reference, exact laws, and what is refused."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.sim import Result, Scenario, compare, simulate
from evenly.sim.coupling.sizes import simulate_sizes
from evenly.sim.gpu.points import why_not
from evenly.sim.recorded import simulate_recorded
from evenly.sim.reference import ReferenceSimulation
from evenly.sim.run import with_policies
from evenly.sim.simulation import Simulation
from tests.sim.support import assert_mean
from tests.sim.test_kernels_against_reference import FAR, assert_equal_now

SYSTEMS: dict[str, dict[str, Any]] = {
    "fixed threshold": {"sticky": 0.5, "sticky_margin": 1},
    "learning, no margin": {"alpha": "0.8", "sticky": 0.9, "sticky_margin": 0},
    "all return": {"alpha": "0.6", "sticky": 1.0, "sticky_margin": 3},
    "capacity": {"alpha": "0.8", "capacity": 4, "sticky": 0.6, "sticky_margin": 9},
    "jsq": {"policy": "jsq", "sticky": 0.5, "sticky_margin": 0},
    "power of two": {"policy": "power-of-d", "sticky": 0.5},
    "power of nine": {"policy": "power-of-d", "sample_size": 9, "sticky": 0.5, "sticky_margin": 1},
    "random": {"policy": "random", "sticky": 0.5, "sticky_margin": 0, "capacity": 5},
    "waves": {"alpha": "0.8", "sticky": 0.5, "schedule": "0:3~3/4,6:4~2/2.5", "load": None},
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_kernel_and_reference_go_the_same_way(name: str) -> None:
    scenario = Scenario(**{"pools": 12, "load": 3.3, "initial_tasks": 2.5, **SYSTEMS[name]})
    steady = name == "all return"
    kernel = Simulation(scenario, np.random.SeedSequence(3), mean_holding=steady)
    reference = ReferenceSimulation(scenario, np.random.SeedSequence(3), mean_holding=steady)
    for _ in range(2200 if name == "power of two" else 800):  # the longest uses more choices than a buffer has
        kernel.advance(FAR, max_events=1)
        reference.step()
        assert (kernel.state["returned"], kernel.state["kept"]) == (reference.returned, reference.kept)
        assert_equal_now(kernel, reference)
    assert 0 < reference.kept <= reference.returned < reference.arrivals or name == "all return"


def test_without_returning_clients_nothing_changes() -> None:
    options: dict[str, Any] = {"pools": 20, "load": 3.3, "alpha": "0.8", "horizon": 50}
    assert simulate(Scenario(**options, sticky=0)) == simulate(Scenario(**options))
    assert simulate(Scenario(**options)).to_dict()["sticky"] is None


# --- exact laws ------------------------------------------------------------------------------------------------


def long_run(**options: Any) -> Result:  # noqa: ANN401
    return simulate(Scenario(horizon=840.0, warmup=40.0, **options), seed=5, replications=32)


def assert_levels(result: Result, law: NDArray[np.float64]) -> None:
    sampled = [sample.at_least / (sample.time * result.scenario.pools) for sample in result.windows]
    for level in range(law.size - 1):
        if law[level] > 0.01:
            assert_mean([each[level] - each[level + 1] for each in sampled], float(law[level]), f"level {level}")


@pytest.mark.parametrize("policy", ["threshold", "jsq"])
def test_if_all_return_whatever_the_load_pools_are_as_under_random_routing(policy: str) -> None:
    from scipy.stats import poisson

    result = long_run(policy=policy, pools=8, load=3.0, sticky=1.0, sticky_margin=1000)
    assert result.kept_share == 1
    assert_levels(result, poisson.pmf(np.arange(20), 3.0))


def stationary(policy: str, *, load: float, threshold: int, share: float, margin: int, most: int) -> tuple[
    NDArray[np.float64], float
]:  # fmt: skip
    """Solve the chain of two pools with up to `most` tasks each: the law of a pool, and the share that is kept."""
    states = list(product(range(most + 1), repeat=2))
    place = {state: number for number, state in enumerate(states)}
    rates = np.zeros((len(states), len(states)))
    kept = np.zeros(len(states))
    for state in states:
        here = place[state]
        limit = (threshold if policy == "threshold" else sum(state) // 2) + margin
        chances = np.zeros(2)
        for wanted in (0, 1):
            back = state[wanted] <= limit
            kept[here] += back / 2
            chances += share / 2 * (np.eye(2)[wanted] if back else placed(policy, state, threshold))
        chances += (1 - share) * placed(policy, state, threshold)
        for pool in (0, 1):
            step = np.eye(2, dtype=int)[pool]
            if state[pool] < most:
                rates[here, place[tuple(np.add(state, step))]] += 2 * load * chances[pool]
            if state[pool] > 0:
                rates[here, place[tuple(np.subtract(state, step))]] += state[pool]
    rates -= np.diag(rates.sum(axis=1))
    system = np.vstack([rates.T, np.ones(len(states))])
    law = np.linalg.lstsq(system, np.append(np.zeros(len(states)), 1.0), rcond=None)[0]
    return np.array([law[[s[0] == n for s in states]].sum() for n in range(most + 1)]), float(law @ kept)


def placed(policy: str, state: tuple[int, ...], threshold: int) -> NDArray[np.float64]:
    """Return the chances of two pools to get a task that the policy places."""
    tasks = np.array(state)
    for candidates in [tasks < threshold, tasks <= threshold] if policy == "threshold" else [tasks == tasks.min()]:
        if candidates.any():
            return np.asarray(candidates / candidates.sum())
    return np.full(2, 0.5)


@pytest.mark.parametrize(
    ("policy", "margin"), [("threshold", 0), ("threshold", 2), pytest.param("jsq", 1, marks=pytest.mark.full)]
)
def test_two_pools_have_the_law_of_their_chain(policy: str, margin: int) -> None:
    threshold = {"threshold": 2} if policy == "threshold" else {}
    law, kept = stationary(policy, load=2.4, threshold=2, share=0.6, margin=margin, most=18)
    result = long_run(policy=policy, pools=2, load=2.4, sticky=0.6, sticky_margin=margin, **threshold)
    assert_levels(result, law)
    assert_mean([sample.kept / sample.returned for sample in result.windows], kept, "kept")


def test_the_cost_grows_with_share_and_margin_up_to_that_of_random_routing() -> None:
    def spread(share: float, margin: int | None) -> float:
        scenario = Scenario(
            pools=200, load=5.5, alpha="0.9", sticky=share, sticky_margin=margin, warmup=50, horizon=250
        )
        return simulate(scenario, seed=2).spread

    costs = [spread(0, None), spread(0.5, 0), spread(0.5, 2), spread(0.9, 2), spread(1.0, 50)]
    assert costs == sorted(costs)
    assert costs[-1] > 3 * costs[0]


def test_the_table_of_the_guide_is_true() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guides" / "scenarios.md").read_text(encoding="utf-8")
    section = page.split("## Let clients return")[1].split("\n## ")[0]
    rows = {row.split(" | ")[0]: row.split(" | ") for row in re.findall(r"^\| (\d.*) \|$", section, re.MULTILINE)}
    base: dict[str, Any] = {"pools": 100, "load": 10.5, "initial_tasks": 10.5, "warmup": 50, "horizon": 1050}
    for margin, column, share in ((0, 1, 0.25), (2, 2, 0.5), (4, 4, 0.9)):
        result = simulate(Scenario(**base, alpha="0.9", sticky=share, sticky_margin=margin), seed=1)
        assert rows[str(margin)][column] == f"{result.spread:.2f} ({result.kept_share:.0%})".replace("%", " %")
    none, random = simulate(Scenario(**base, alpha="0.9")), simulate(Scenario(**base, policy="random"))
    text = " ".join(section.split())
    assert f"the spread is {none.spread:.2f}. Random routing has {random.spread:.2f}." in text


# --- results, and what is refused ------------------------------------------------------------------------------


def test_results_tell_who_returned(tmp_path: Path) -> None:
    scenario = Scenario(pools=10, load=2.5, alpha="0.6", sticky=0.5, sticky_margin=1, horizon=20)
    result = simulate(scenario)
    told = result.to_dict()["sticky"]
    assert told == {
        "share": 0.5,
        "margin": 1,
        "returned": result.window.returned,
        "kept": result.window.kept,
        "kept_share": result.kept_share,
    }
    assert 0 < told["kept"] < told["returned"] < result.window.arrivals
    assert dict(result._rows())["clients kept"].endswith("of those who returned")
    assert "50 % return within 1" in repr(result)
    result.save(tmp_path / "sticky.npz")
    assert Result.read(tmp_path / "sticky.npz") == result
    both = compare(with_policies(scenario, ["threshold", "jsq"]))
    assert [each.scenario.margin for each in both] == [1, 1]
    assert "kept" in both._repr_html_()


def test_power_of_d_asks_no_pool_for_a_client_who_returns() -> None:
    window = simulate(Scenario(policy="power-of-d", pools=9, load=2.5, sticky=0.5, horizon=30)).window
    assert window.other == 4 * (window.arrivals - window.kept)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"sticky": 1.1}, "sticky must be a number from 0 to 1"),
        ({"sticky": 0.5, "sticky_margin": -1}, "sticky_margin must be a whole number from 0"),
        ({"sticky_margin": 1}, "sticky_margin needs sticky"),
        ({"sticky": 0.5, "policy": "round-robin"}, "sticky is for policy threshold, jsq, power-of-d, random, not"),
        ({"sticky": 0.5, "policy": "own:Policy"}, "sticky is for policy threshold, jsq"),
        ({"sticky": 0.5, "pools": 0, "sizes": "4*1,4*2"}, "leave out sizes"),
        ({"sticky": 0.5, "delay": 0.1}, "leave out delay"),
        ({"sticky": 0.5, "service": "deterministic"}, "sticky needs exponential service and Poisson arrivals"),
        ({"sticky": 0.5, "arrivals": "renewal:cv=2"}, "sticky needs exponential service and Poisson arrivals"),
    ],
)
def test_what_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Scenario(**{"pools": 8, "load": 2.0, **options})


def test_what_else_does_not_know_returning_clients() -> None:
    scenario = Scenario(pools=8, load=2.0, sticky=0.5)
    with pytest.raises(InputError, match="leave out sticky"):
        simulate_recorded(scenario)
    with pytest.raises(InputError, match="leave out sticky"):
        simulate_sizes(scenario, pools=[8, 16])
    assert why_not(scenario) == "clients who return"
