"""`evenly diffusion` and the example that compares the limits with simulations."""

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evenly.theory.diffusion.fractional import ornstein_uhlenbeck
from evenly.theory.diffusion.whole_law import stationary_summary
from tests.cli.conftest import Run

PNG = b"\x89PNG\r\n"
COMMON = {
    "load", "limit", "threshold", "pools", "horizon", "points", "paths", "seed", "stationary", "occupancy_mean",
    "occupancy_deviation", "saturated_share", "sample_paths", "times", "variance",
}  # fmt: skip


def test_a_load_between_whole_numbers_has_the_ornstein_uhlenbeck_limit(run: Run) -> None:
    found = run(
        "diffusion", "--load", 2.5, "--pools", 400, "--horizon", 4, "--points", 5, "--paths", 3, "--json"
    ).json()
    assert set(found) == COMMON
    assert (found["limit"], found["threshold"], found["pools"]) == ("ornstein-uhlenbeck", 2, 400)
    assert found["times"] == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(found["variance"], 2.5 * (1 - np.exp(-2 * np.arange(5.0))), rtol=1e-12)
    assert found["stationary"]["variance"] == 2.5
    assert found["stationary"]["quantiles"]["0.95"] == pytest.approx(1.6448536 * math.sqrt(2.5), rel=1e-6)
    assert found["occupancy_mean"] == {"3": 0.5}
    assert found["occupancy_deviation"]["3"] == pytest.approx(math.sqrt(2.5 / 400))
    paths = np.array(found["sample_paths"]["total"])
    assert paths.shape == (3, 5)
    assert not paths[:, 0].any()


def test_a_whole_load_has_the_reflected_limit(run: Run) -> None:
    found = run(
        "diffusion", "--load", 3, "--pools", 400, "--horizon", 2, "--points", 11, "--paths", 4, "--json"
    ).json()
    assert set(found) == COMMON
    assert (found["limit"], found["threshold"]) == ("reflected", 3)
    summary = stationary_summary(3)
    assert found["stationary"] == summary.to_dict()
    assert found["occupancy_mean"]["3"] == pytest.approx(1 - summary.below.mean / 20)
    assert found["occupancy_mean"]["4"] == pytest.approx(summary.above.mean / 20)
    assert found["occupancy_deviation"]["4"] == pytest.approx(summary.above.deviation / 20)
    assert found["saturated_share"] == pytest.approx(4 * summary.above.mean / (3 * 20))
    for name in ("below", "above"):
        paths = np.array(found["sample_paths"][name])
        assert paths.shape == (4, 11)
        assert paths.min() >= 0
        assert not paths[:, 0].any()


def test_paths_are_those_of_the_seed(run: Run) -> None:
    arguments = ("diffusion", "--load", 1.5, "--points", 4, "--horizon", 3, "--json")
    first, again, other = (run(*arguments, "--seed", seed).json()["sample_paths"] for seed in (5, 5, 6))
    assert first == again != other
    direct = ornstein_uhlenbeck(1.5).sample_path([0, 1, 2, 3], np.random.default_rng(5), start=0.0, paths=5)
    np.testing.assert_allclose(first["total"], direct)


def test_without_pools_nothing_is_said_of_them(run: Run) -> None:
    for load in (2.5, 3):
        found = run("diffusion", "--load", load, "--json").json()
        assert found["pools"] is found["occupancy_mean"] is found["occupancy_deviation"] is None
        assert found["saturated_share"] is None
        assert "Of " not in run("diffusion", "--load", load).out


def test_text_says_which_limit_and_what_it_means(run: Run) -> None:
    smooth = run("diffusion", "--load", 2.5, "--pools", 400).out
    for word in ("not a whole number", "Ornstein-Uhlenbeck", "threshold 2", "1.581", "50.00 % ± 7.91 %"):
        assert word in smooth
    whole = run("diffusion", "--load", 3, "--pools", 10_000).out
    for word in (
        "a whole number: reflected",
        "threshold 3",
        "correlation is -0.541",
        "0.96 % ± 1.03 %",
        "arrivals",
    ):
        assert word in whole
    assert "far from its limit" not in smooth + whole
    for load, pools in ((2.1, 400), (2.9, 400), (3, 6)):  # none, all, both within two deviations
        assert "far from its limit" in run("diffusion", "--load", load, "--pools", pools).out


def test_a_great_whole_load_is_answered_without_paths(run: Run) -> None:
    found = run("diffusion", "--load", 100_000, "--pools", 10**9, "--json").json()
    assert found["paths"] == 0
    assert found["sample_paths"] == {"below": [], "above": []}
    # The total is normal with variance load, and both parts of it have about the same law by then.
    assert found["stationary"]["below"]["mean"] == pytest.approx(math.sqrt(100_000 / (2 * math.pi)), rel=1e-3)
    columns = [
        line for line in run("diffusion", "--load", 100_000).out.splitlines() if " 5 %" in line or "126." in line
    ]
    assert len(columns) == 3
    assert len({len(line) for line in columns}) == 1


@pytest.mark.parametrize("load", [2.5, 3])
def test_paths_can_be_left_out(run: Run, tmp_path: Path, load: float) -> None:
    arguments = ("diffusion", "--load", load, "--paths", 0, "--plot", tmp_path / "x.svg", "--json")
    found = run(*arguments).json()
    assert not any(found["sample_paths"].values())
    assert found["stationary"] == run("diffusion", "--load", load, "--json").json()["stationary"]
    assert "at random" not in (tmp_path / "x.svg").read_text()


@pytest.mark.parametrize(
    ("load", "paths", "label"), [(2.5, 1, "a path drawn at random"), (3, 3, "3 paths drawn at random")]
)
def test_the_legend_names_the_paths(run: Run, tmp_path: Path, load: float, paths: int, label: str) -> None:
    run("diffusion", "--load", load, "--points", 11, "--paths", paths, "--plot", tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_text().count(f"<!-- {label} -->") == 1


@pytest.mark.parametrize("load", [2.5, *(pytest.param(load, marks=pytest.mark.full) for load in (3, 100))])
def test_pictures_are_drawn(run: Run, tmp_path: Path, load: float) -> None:
    path = tmp_path / "limit.png"
    outcome = run("diffusion", "--load", load, "--horizon", 2, "--paths", 10, "--plot", path)
    assert outcome.code == 0
    assert str(path) in outcome.out
    assert path.read_bytes().startswith(PNG)


@pytest.mark.full
def test_help_shows_an_example_that_works(run: Run, tmp_path: Path) -> None:
    text = " ".join(run("diffusion", "--help").out.split())
    example = text.partition("Example: evenly diffusion ")[2].split()
    place = example.index("--plot") + 1
    example[place] = str(tmp_path / example[place])
    assert run("diffusion", *example).code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ["--load"]),
        (("--load", 2.5, "--limit", "reflected"), ["Ornstein-Uhlenbeck", "2.5", "Theorem 3"]),
        (("--load", 3, "--limit", "ornstein-uhlenbeck"), ["reflected", "3", "Theorem 4"]),
        (("--load", 3, "--limit", "normal"), ["limit", "ornstein-uhlenbeck or reflected", "normal"]),
        (("--load", 3, "--pools", 0), ["pools", "0"]),
        (("--load", 2.5, "--horizon", 0), ["horizon", "0"]),
        (("--load", 2.5, "--points", 1), ["points", "1"]),
        (("--load", 2.5, "--paths", -1), ["paths", "0", "-1"]),
        (("--load", 2.5, "--seed", -1), ["seed", "-1"]),
        (("--load", 2.5, "--points", 100_000, "--paths", 11), ["paths", "at most 10", "100000 points", "11"]),
        (("--load", 4999, "--paths", 2), ["paths", "at most 0", "steps each", "reduce paths"]),
        (("--load", 2.5, "--plot", "x.gif"), ["plot", "x.gif"]),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_bad_input_ends_in_one_sentence(run: Run, arguments: tuple[object, ...], words: list[str]) -> None:
    outcome = run("diffusion", *arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err


@pytest.mark.full
def test_the_example_runs_at_toy_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from examples.diffusion_limits import QUICK_SIZES, main

    path = tmp_path / "diffusion.png"
    main(["--quick", "--out", str(path)])
    assert path.read_bytes().startswith(PNG)
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines if "limit" in line or "threshold" in line or "jsq" in line]
    assert len(rows) == 3 * (2 * len(QUICK_SIZES) + 1)
    limits = [row for row in rows if "limit" in row]
    assert [row[0] for row in limits] == ["2.5", "3", "3"]
    assert float(limits[0][-1]) == pytest.approx(2.5 * (1 - math.exp(-4)), abs=1e-3)
    for row in rows:
        assert row in limits or 0 < float(row[-3]) < 0.5


def test_the_example_measures_the_distance_between_laws() -> None:
    from examples.diffusion_limits import distance

    def uniform(at: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip(at, 0.0, 1.0)

    # A step to 1 at one half; steps of one half each at 0.25 and at 0.75; three samples at 0.9 and one at 0.1.
    assert distance(np.array([0.5]), uniform) == pytest.approx(0.5)
    assert distance(np.array([0.75, 0.25]), uniform) == pytest.approx(0.25)
    assert distance(np.array([0.9, 0.1, 0.9, 0.9]), uniform) == pytest.approx(0.65)
