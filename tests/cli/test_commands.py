"""The commands and their JSON contract."""

import math
from pathlib import Path

import numpy as np
import pytest

from evenly import Result, Scenario, simulate, solve_exact
from evenly.policies import POLICIES
from tests.cli.conftest import Run
from tests.tiers import rest_in_full

PNG = b"\x89PNG\r\n"
CONTRACT = {
    "policy", "pools", "load", "horizon", "warmup", "seed", "replications", "events", "seconds", "mean_tasks",
    "pools_with_exactly", "task_share", "max_tasks", "threshold", "messages", "imbalance", "ci95",
}  # fmt: skip


def test_simulate_prints_the_contract_and_nothing_else(run: Run) -> None:
    outcome = run(
        "simulate", "--pools", 50, "--load", 5.5, "--alpha", 0.9, "--horizon", 300, "--warmup", 20, "--json"
    )
    assert outcome.code == 0
    assert outcome.err == ""
    found = outcome.json()
    assert set(found) >= CONTRACT
    assert found["policy"] == "threshold"
    assert (found["pools"], found["load"], found["horizon"], found["warmup"]) == (50, 5.5, 300, 20)
    assert set(found["max_tasks"]) >= {"mean", "distribution"}
    assert set(found["threshold"]) >= {"initial", "final", "mean", "time_at", "changes", "settled_at"}
    assert set(found["messages"]) >= {"green", "yellow", "resync", "tasks", "per_task"}
    assert math.isclose(sum(found["pools_with_exactly"]), 1, rel_tol=1e-9)
    assert math.isclose(sum(found["task_share"]), 1, rel_tol=1e-9)
    assert math.isclose(sum(found["threshold"]["time_at"].values()), 1, rel_tol=1e-9)
    assert math.isclose(sum(found["max_tasks"]["distribution"]), 1, rel_tol=1e-9)
    messages = found["messages"]
    assert messages["per_task"] == pytest.approx((messages["green"] + messages["yellow"]) / messages["tasks"])
    assert set(found["ci95"]) >= {"mean_tasks", "max_tasks", "imbalance", "threshold", "messages_per_task"}


@pytest.mark.parametrize("policy", POLICIES)
def test_simulate_runs_every_policy(run: Run, policy: str) -> None:
    limit = () if POLICIES[policy].sized else ("--capacity", 6)
    outcome = run("simulate", "--policy", policy, "--pools", 20, "--load", 2.5, *limit, "--horizon", 50, "--json")
    found = outcome.json()
    assert found["policy"] == policy
    assert (found["threshold"] is None) == (not policy.startswith("threshold"))
    assert 1.5 < found["mean_tasks"] < 3.5


def test_the_command_line_and_the_library_find_the_same(run: Run) -> None:
    found = run(
        "simulate", "--pools", 30, "--load", 3.2, "--alpha", "0.80", "--horizon", 60, "--seed", 7,
        "--replications", 3, "--initial", 2.5, "--service-rate", 1.5, "--json",
    ).json()  # fmt: skip
    scenario = Scenario(pools=30, load=3.2, alpha="0.8", horizon=60.0, initial_tasks=2.5, service_rate=1.5)
    direct = simulate(scenario, seed=7, replications=3).to_dict()
    for key in CONTRACT - {"seconds"}:
        assert found[key] == direct[key]


def test_a_schedule_moves_the_load(run: Run) -> None:
    arguments = ("simulate", "--pools", 200, "--alpha", 0.9, "--schedule", "0:5.5,20:10,30:3", "--json")
    early = run(*arguments, "--horizon", 20, "--warmup", 15).json()
    late = run(*arguments, "--horizon", 40, "--warmup", 36).json()
    assert early["mean_tasks"] == pytest.approx(5.5, abs=0.4)
    assert late["mean_tasks"] == pytest.approx(3, abs=0.4)
    assert early["schedule"] == "0:5.5,20:10,30:3"


def test_one_replication_without_batches_has_no_interval(run: Run) -> None:
    assert run("simulate", "--pools", 5, "--load", 1, "--horizon", 30, "--json").json()["ci95"] is None
    assert run("simulate", "--pools", 5, "--load", 1, "--horizon", 30, "--batches", 3, "--json").json()["ci95"]


def test_simulate_prints_its_inputs_and_results_as_text(run: Run) -> None:
    outcome = run("simulate", "--pools", 100, "--load", 5.5, "--alpha", 0.9, "--horizon", 100)
    assert outcome.code == 0
    for word in ("100 pools", "load 5.5", "messages per task", "optimum 5", "events in"):
        assert word in outcome.out


@pytest.mark.parametrize(("ending", "magic"), rest_in_full([("svg", b"<?xml"), ("png", PNG), ("pdf", b"%PDF")], 1))
def test_pictures_are_drawn_in_every_format(run: Run, tmp_path: Path, ending: str, magic: bytes) -> None:
    commands = {
        "simulate": ("simulate", "--pools", 20, "--alpha", 0.8, "--schedule", "0:2,5:4~1/3", "--horizon", 10),
        "fixed": ("simulate", "--policy", "jsq", "--pools", 20, "--load", 2, "--horizon", 10),
        "compare": ("compare", "--pools", 20, "--load", 2.5, "--horizon", 10),
        "exact": ("exact", "--pools", 3, "--load", 1.2, "--alpha", 0.6),
    }
    drawn = commands if ending == "png" else {"simulate": commands["simulate"]}
    for name, command in drawn.items():
        path = tmp_path / f"{name}.{ending}"
        outcome = run(*command, "--plot", path)
        assert outcome.code == 0
        assert str(path) in outcome.out
        assert path.read_bytes().startswith(magic)
    assert len(list(tmp_path.iterdir())) == len(drawn)


def test_the_same_seed_draws_the_same_picture(run: Run, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        run("compare", "--pools", 20, "--load", 2.5, "--horizon", 10, "--plot", tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_compare_checks_only_the_policies_asked_for(run: Run) -> None:
    outcome = run(
        "compare",
        "--pools",
        5,
        "--load",
        2,
        "--policies",
        "jbt,random",
        "--threshold",
        5,
        "--capacity",
        5,
        "--json",
    )
    assert [row["policy"] for row in outcome.json()["policies"]] == ["jbt", "random"]
    assert run("compare", "--pools", 1, "--load", 2, "--horizon", 5).code == 0


def test_compare_claims_no_intervals_and_no_ceiling_where_there_are_none(run: Run) -> None:
    short = run("compare", "--pools", 5, "--load", 2, "--horizon", 10).out
    assert "±" not in short
    assert "above 2" in short
    moving = run("compare", "--pools", 5, "--schedule", "0:2,5:4", "--horizon", 10).out
    assert "above" not in moving


def test_simulate_notes_that_the_averages_include_the_start(run: Run) -> None:
    arguments = ("simulate", "--pools", 5, "--load", 2, "--horizon", 10)
    assert "--warmup" in run(*arguments).out
    assert "--warmup" not in run(*arguments, "--warmup", 5).out


def test_saved_results_keep_the_trajectory(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    run("simulate", "--policy", "jiq", "--pools", 20, "--load", 0.5, "--horizon", 20, "--save", path)
    table = Result.read(path).trajectory
    assert set(table) >= {"time", "max_tasks", "imbalance", "tokens"}
    assert table["tokens"][0] == 20


def test_saved_results_load_again(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    found = run("simulate", "--pools", 20, "--load", 2.5, "--horizon", 50, "--save", path, "--json").json()
    assert Result.read(path).to_dict() == found


def test_compare_shares_arrivals_and_departures(run: Run) -> None:
    found = run("compare", "--pools", 100, "--load", 10.5, "--horizon", 60, "--warmup", 20, "--json").json()
    rows = {row["policy"]: row for row in found["policies"]}
    assert list(rows) == ["random", "power-of-d", "jsq", "threshold"]
    for row in rows.values():
        assert row["events"] == rows["jsq"]["events"]
        assert row["mean_tasks"] == pytest.approx(rows["jsq"]["mean_tasks"], rel=1e-9)
    spreads = [row["spread"]["mean"] for row in rows.values()]
    assert spreads[0] > spreads[1] > max(spreads[2:])
    assert [row["messages"]["per_task"] for row in rows.values()][:2] == [0, 4]


def test_compare_prints_one_row_per_policy(run: Run) -> None:
    outcome = run("compare", "--pools", 30, "--load", 2.5, "--horizon", 40, "--policies", "jiq,jbt,round-robin")
    assert outcome.code == 0
    for word in ("jiq", "jbt 3", "round-robin", "max", "spread", "above 3", "messages"):
        assert word in outcome.out


def test_exact_prints_the_law(run: Run) -> None:
    found = run("exact", "--pools", 4, "--load", 1.3, "--alpha", 0.7, "--json").json()
    law = solve_exact(policy="threshold", pools=4, load=1.3, alpha="0.7")
    np.testing.assert_allclose(found["pools_with_exactly"], law.pools_with_exactly)
    assert set(found["max_tasks"]) >= {"mean", "distribution"}
    assert set(found["threshold"]) >= {"mean", "time_at"}
    text = run("exact", "--policy", "random", "--pools", 2, "--load", 1, "--capacity", 3)
    assert text.code == 0
    assert "tasks lost" in text.out


@pytest.mark.parametrize("command", rest_in_full(["simulate", "compare", "exact"], 1))
def test_help_shows_an_example_that_works(run: Run, command: str, tmp_path: Path) -> None:
    text = " ".join(run(command, "--help").out.split())
    example = text.partition(f"Example: evenly {command} ")[2].split()
    assert example
    if "--plot" in example:
        place = example.index("--plot") + 1
        example[place] = str(tmp_path / example[place])
    assert run(command, *example).code == 0


def test_exact_prints_the_spread(run: Run) -> None:
    law = solve_exact(policy="random", pools=3, load=1.2)
    assert (
        f"spread over pools   {law.spread:.6f}"
        in run("exact", "--policy", "random", "--pools", 3, "--load", 1.2).out
    )
