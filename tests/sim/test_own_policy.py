"""A policy of the user's own: the same events as under the kernels, its decisions checked, its failures named."""

import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenly import InputError, Result, Scenario, compare, simulate, with_policies
from evenly.core import Choose, JoinShortestQueue, RandomRouting, RoundRobin
from evenly.policies import PARAMETERS
from evenly.sim.reference import new_policy
from evenly.sim.simulation import Simulation
from evenly.sim.system import MAX_PATH
from evenly.sim.tally import Averages, Tally, averages
from tests.sim.own_policies import SMALL, Counting, First
from tests.sim.support import FALSE_ALARM, ONE_SIZE, first_seed, scenario_of
from tests.sim.test_kernels_against_reference import assert_step_together

# The loop asks every policy alike: these differ in what a policy may do, and in the demand.
ASKED = (
    "threshold fixed",
    "learning with capacity",
    "learning past the first levels",
    "power of two",
    "pull with one place",
    "steps, jiq",
    "waves, random",
)
# The kernel of these policies tells pools apart, as a policy in Python does.
TOLD_APART = (
    ("jbt at its capacity", False),
    ("jiq", False),
    ("jiq", True),
    ("pull with room", True),
    ("steps, round-robin", False),
    ("waves, pull", False),
)


def in_python(scenario: Scenario) -> Scenario:
    """Return the scenario with a class of its own that makes the same decisions."""

    def make(self: object) -> None:
        vars(self).update(vars(new_policy(scenario)))

    kind = type("Made", (type(new_policy(scenario)),), {"__init__": make})
    none: dict[str, Any] = dict.fromkeys(PARAMETERS)
    return replace(scenario, policy=kind, **none)


@pytest.mark.parametrize("name", ASKED)
def test_it_goes_the_same_way_as_the_reference(name: str) -> None:
    assert_step_together(in_python(scenario_of(ONE_SIZE[name])), steps=600, seed=3)


@pytest.mark.parametrize(("name", "mean_holding"), TOLD_APART)
def test_it_does_exactly_what_the_kernel_does_if_that_tells_pools_apart(name: str, mean_holding: bool) -> None:
    scenario = scenario_of(ONE_SIZE[name], horizon=60.0, warmup=3.0)
    run: dict[str, Any] = {"seed": 7, "points": 41, "batches": 5, "mean_holding_times": mean_holding}
    kernel, python = simulate(scenario, **run), simulate(in_python(scenario), **run)
    assert python.events == kernel.events > 400
    for mine, theirs in zip(python.windows, kernel.windows, strict=True):
        for field in fields(Tally):
            if field.name not in ("without_token", "threshold_time"):
                assert np.array_equal(getattr(mine, field.name), getattr(theirs, field.name)), field.name
    for column in ("times", "pools_at_least", "max_tasks", "imbalance", "demand"):
        first, second = (getattr(result.trajectories[0], column) for result in (python, kernel))
        assert np.array_equal(first, second), column


def test_it_gets_the_arrivals_and_departures_of_the_others() -> None:
    scenario = Scenario(pools=20, schedule="0:3~3/4,6:0,9:6", horizon=40.0)
    results = compare(
        with_policies(scenario, ["jsq", JoinShortestQueue, "random", RandomRouting]), replications=2, points=201
    )
    for result in results:
        assert result.events == results[0].events
        for mine, theirs in zip(result.trajectories, results[0].trajectories, strict=True):
            assert np.array_equal(mine.pools_at_least[:, 1:].sum(axis=1), theirs.pools_at_least[:, 1:].sum(axis=1))
    assert len({result.spread for result in results}) == 4


@pytest.mark.parametrize("name", ["random", "learning"])
def test_it_agrees_in_law_with_the_kernels_that_know_levels_only(name: str) -> None:
    scenario = scenario_of(ONE_SIZE[name], horizon=40.0, warmup=10.0, service_rate=1.0)
    from scipy.stats import t

    runs = 25
    kernel = simulate(scenario, replications=runs, seed=11)
    python = simulate(in_python(scenario), replications=runs, seed=12)
    for value in ("spread", "max_tasks", "messages_per_task"):
        samples = [np.array([getattr(each, value) for each in averages_of(found)]) for found in (kernel, python)]
        error = np.sqrt(sum(float(np.var(sample, ddof=1)) for sample in samples) / runs)
        gap = abs(float(samples[0].mean() - samples[1].mean()))
        assert gap <= t.isf(FALSE_ALARM, runs - 1) * error + 1e-12, value


def averages_of(result: Result) -> list[Averages]:
    return [averages(window, result.scenario.pools) for window in result.windows]


def test_a_threshold_is_recorded() -> None:
    scenario = Scenario(pools=50, load=4.5, alpha="0.8", horizon=60.0)
    result = simulate(in_python(scenario), points=5)
    path = result.trajectories[0]
    assert result.threshold is not None and 3 < result.threshold < 6
    assert result.change_count == path.change_times.size > 4
    assert path.threshold.tolist()[0] == 0 and path.threshold[-1] == path.change_thresholds[-1]
    assert "threshold" in path.columns() and "green_tokens" not in path.columns()
    assert result.to_dict()["threshold"]["initial"] is None
    assert sum(result.threshold_share.values()) == pytest.approx(1)


class Climbing(First):
    """Has a threshold far above the levels in use, which changes at every arrival."""

    threshold = 0

    def arrive(self, choose: Choose) -> object:
        self.threshold = 5000 if self.threshold != 5000 else 3
        return choose(range(5))


def test_a_threshold_may_jump_and_change_often() -> None:
    simulation = Simulation(
        replace(SMALL, policy=Climbing, horizon=2000.0, load=4.0), first_seed(1), keep_path=True
    )
    simulation.advance(2000.0)
    times, values = simulation.path
    arrivals = int(simulation.state["arrivals"])
    assert arrivals > 30_000 and arrivals < MAX_PATH
    assert values.tolist() == [5000 if place % 2 == 0 else 3 for place in range(arrivals)]
    assert np.all(np.diff(times) > 0)


def test_many_tasks_in_one_pool_make_room() -> None:
    result = simulate(Scenario(policy=First, pools=40, load=30.0, horizon=20.0))
    assert 1000 < result.max_tasks < 1300
    assert result.max_tasks == pytest.approx(40 * result.mean_tasks)


def test_a_task_sent_to_a_full_pool_is_lost_and_departs() -> None:
    made: list[Counting] = []

    class Watched(Counting):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    scenario = Scenario(policy=Watched, pools=4, load=3.0, capacity=2, horizon=50.0, initial_tasks=1)
    simulation = Simulation(scenario, first_seed(1))
    simulation.advance(50.0)
    assert simulation.tasks is not None
    assert simulation.tasks.tolist() == list(made[0].counts.values())
    assert made[0].most == 3
    tally = simulation.tally()
    assert 0 < tally.lost_tasks < tally.arrivals
    assert tally.other == 3 * tally.arrivals


class Strict(RoundRobin):
    """Knows the capacity from its constructor."""


def test_a_constructor_that_takes_the_capacity_gets_it() -> None:
    scenario = Scenario(policy="round-robin", pools=4, load=3.0, capacity=2, horizon=50.0)
    built_in, own = simulate(scenario), simulate(replace(scenario, policy=Strict))
    assert own.lost_tasks == built_in.lost_tasks > 0


class Losing(First):
    """Loses every third task."""

    seen = 0

    def arrive(self, choose: Choose) -> object:
        self.seen += 1
        return choose((0, 1, 2)) if self.seen % 3 else None


def test_none_loses_the_task() -> None:
    result = simulate(Scenario(policy=Losing, pools=3, load=3.0, horizon=200.0))
    assert result.lost_tasks == result.window.arrivals // 3
    assert result.mean_tasks == pytest.approx(2.0, rel=0.2)


@pytest.mark.parametrize("candidates", [range(5), np.arange(5)])
def test_choose_takes_any_sequence(candidates: Sequence[int]) -> None:
    class Chooses(First):
        def arrive(self, choose: Choose) -> object:
            return choose(candidates)

    assert simulate(replace(SMALL, policy=Chooses)).spread == simulate(replace(SMALL, policy=RandomRouting)).spread


def test_results_do_not_depend_on_the_threads() -> None:
    scenario = Scenario(policy=JoinShortestQueue, pools=10, load=2.5, horizon=20.0)
    one, two = (simulate(scenario, replications=4, workers=workers) for workers in (1, 2))
    assert [window.spread for window in one.windows] == [window.spread for window in two.windows]
    done: list[float] = []
    simulate(scenario, replications=2, progress=done.append)
    assert done == sorted(done) and done[-1] == pytest.approx(1)


# --- names, files and text ------------------------------------------------------------------------------------


def test_results_name_the_class() -> None:
    results = compare(with_policies(replace(SMALL, alpha=0.8), ["threshold", Counting, First]), points=3)
    name = "tests.sim.own_policies:Counting"
    assert results[1].scenario.policy is Counting
    assert results[1].to_dict()["policy"] == name == results[1].trajectories[0].to_dict()["policy"]
    assert results[1].scenario.label == "Counting" and "Counting, 5 pools" in repr(results[1])
    assert list(results.columns()["policy"]) == ["threshold", name, "tests.sim.own_policies:First"]
    assert results[1].messages_per_task == 3
    assert "messages per task" in results[1]._repr_html_() and "messages" not in results[2]._repr_html_()
    assert results._repr_html_().count("<td>-</td>") == 2


def test_classes_of_one_name_are_told_apart_by_their_modules() -> None:
    other = type("Counting", (Counting,), {"__module__": "elsewhere"})
    results = compare(with_policies(SMALL, ["jsq", Counting, other]))
    cells = ["<td>jsq</td>", "<td>tests.sim.own_policies:Counting</td>", "<td>elsewhere:Counting</td>"]
    assert all(cell in results._repr_html_() for cell in cells)


def test_a_saved_result_names_the_class_and_reading_it_runs_no_code(tmp_path: Path) -> None:
    kind = type("Lost", (Counting,), {"__module__": "a_module_of_yesterday"})
    result = simulate(replace(SMALL, policy=kind), points=3)
    result.save(tmp_path / "run.npz")
    read = Result.read(tmp_path / "run.npz")
    assert read.scenario.policy == "a_module_of_yesterday:Lost"
    assert read.to_dict() == result.to_dict() and read.scenario.label == "Lost"
    assert "a_module_of_yesterday" not in sys.modules
    with pytest.raises(InputError, match="no module 'a_module_of_yesterday'"):
        simulate(read.scenario)


def test_a_name_is_imported_when_the_run_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_module_for_a_test.py").write_text("from evenly.core import RandomRouting as Mine\n")
    scenario = replace(SMALL, policy="own_module_for_a_test:Mine")
    with pytest.raises(InputError, match="There is no module 'own_module_for_a_test' for the policy"):
        simulate(scenario)
    monkeypatch.syspath_prepend(tmp_path)
    assert simulate(scenario).spread == simulate(replace(SMALL, policy=RandomRouting)).spread
