"""Stops, batches, slices and the number of cores must not change a run."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from evenly.sim import Scenario, simulate
from evenly.sim.kernels.ledger import STATE
from evenly.sim.simulation import Simulation
from evenly.sim.tally import Tally
from tests.sim.support import LOOPS, OPTIONS, assert_same_averages, comparable, means_of, scenario_of

COUNTS = (
    "events",
    "arrivals",
    "lost_tasks",
    "without_token",
    "green",
    "yellow",
    "resync",
    "other",
    "change_count",
)
every_loop = pytest.mark.parametrize("name", LOOPS)
DELAYED: dict[str, dict[str, Any]] = {
    "late, learning": {"alpha": 0.8, "delay": 0.01},
    "late, wave": {"policy": "jsq", "load": None, "schedule": "0:4~3/5", "delay": "exponential:0.1"},
    "late, stale reports": {"policy": "stale-reports", "report_interval": 0.5},
}


@pytest.mark.parametrize("name", [*LOOPS, *DELAYED])
def test_snapshots_do_not_change_a_bit_of_the_result(name: str) -> None:
    scenario = scenario_of({**OPTIONS, **DELAYED}[name], horizon=30.0, warmup=5.0)
    plain = simulate(scenario, seed=2)
    for points in (2, 8, 901):
        watched = simulate(scenario, seed=2, points=points)
        assert len(watched.windows) == len(plain.windows)
        for seen, unseen in zip(watched.windows, plain.windows, strict=True):
            for field in fields(Tally):
                assert np.array_equal(getattr(seen, field.name), getattr(unseen, field.name)), field.name
        assert [(end.threshold, end.since) for end in watched.endings] == [
            (end.threshold, end.since) for end in plain.endings
        ]


@every_loop
def test_batches_do_not_change_the_run(name: str) -> None:
    scenario = scenario_of(OPTIONS[name], horizon=30.0, warmup=5.0)
    whole = simulate(scenario, seed=2, batches=0)
    assert len(whole.windows) == 1
    for batches in (2, 7, 50):
        cut = simulate(scenario, seed=2, batches=batches)
        assert len(cut.windows) == batches
        np.testing.assert_allclose([sample.time for sample in cut.windows], 25.0 / batches, rtol=1e-9)
        assert_same_averages(means_of(whole), means_of(cut))
        assert [getattr(cut.window, kind) for kind in COUNTS] == [getattr(whole.window, kind) for kind in COUNTS]


@every_loop
def test_slices_of_events_do_not_change_the_run(name: str) -> None:
    scenario = scenario_of(OPTIONS[name])

    def run(slices: list[int]) -> Simulation:
        simulation = Simulation(scenario, np.random.SeedSequence(6))
        for events in slices:
            simulation.advance(1e9, max_events=events)
        return simulation

    whole = run([1400])
    for slices in ([1] * 1400, [7] * 200, [333, 1000, 67]):
        cut = run(slices)
        assert all(cut.state[field] == whole.state[field] for field in STATE.names or ())
        assert cut.at_least.tolist() == whole.at_least.tolist()
        levels = whole.at_least.size + 1
        assert cut.tally().at_least[:levels].tolist() == whole.tally().at_least[:levels].tolist()


def test_rounding_does_not_add_up_in_the_imbalance() -> None:
    # Six of twenty pools have one task more when balanced: a state that is visited, with imbalance 0.
    scenario = Scenario(pools=20, load=3.3, alpha=0.8, horizon=5000.0)
    plain, watched = simulate(scenario, batches=0), simulate(scenario, batches=0, points=1001)
    assert means_of(plain).imbalance == means_of(watched).imbalance


def test_rounding_does_not_add_up_in_the_spread() -> None:
    for pools in (3, 7, 10, 49, 98, 187):  # their reciprocals are not binary fractions
        for level in (1, 5, 11, 23):
            scenario = Scenario(policy="jsq", pools=pools, schedule="0:0", initial_tasks=level, horizon=1e-9)
            result = simulate(scenario)
            assert result.events == 0
            assert result.spread == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("name", ["learning", "waves, power-of-d"])
def test_the_number_of_workers_does_not_matter(name: str) -> None:
    scenario = scenario_of(OPTIONS[name], horizon=20.0)
    results = [
        simulate(scenario, seed=3, replications=5, points=4, workers=workers) for workers in (1, 2, 3, None)
    ]
    for other in results[1:]:
        assert comparable(other.to_dict()) == comparable(results[0].to_dict())
        for one, two in zip(results[0].trajectories, other.trajectories, strict=True):
            assert two.pools_at_least.tolist() == one.pools_at_least.tolist()


def test_a_replication_depends_on_the_seed_and_its_index_alone() -> None:
    scenario = scenario_of(OPTIONS["learning"], horizon=20.0)
    few, many = simulate(scenario, seed=4, replications=3), simulate(scenario, seed=4, replications=6)
    gaps = [sample.gap for sample in many.windows]
    assert [sample.gap for sample in few.windows] == gaps[:3]
    assert len(set(gaps)) == 6
    assert simulate(scenario, seed=5).window.gap != simulate(scenario, seed=4).window.gap


def test_progress_rises_to_one() -> None:
    fractions: list[float] = []
    simulate(scenario_of({}, horizon=20.0), replications=4, points=5, workers=1, progress=fractions.append)
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1.0)


def test_snapshots_are_kept_of_the_first_replications_only_when_asked() -> None:
    scenario = Scenario(pools=20, load=2.5, alpha="0.8", horizon=5.0)
    everything = simulate(scenario, replications=3, points=6)
    first = simulate(scenario, replications=3, points=6, trajectories=1)
    assert (len(everything.trajectories), len(first.trajectories)) == (3, 1)
    np.testing.assert_array_equal(first.trajectories[0].threshold, everything.trajectories[0].threshold)
    assert first.spread == pytest.approx(everything.spread, rel=1e-9)
