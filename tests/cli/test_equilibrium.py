"""`evenly equilibrium`."""

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evenly.theory.equilibrium import predict_equilibrium
from tests import distributions as stats
from tests.cli.conftest import Run

CONTRACT = {
    "policy", "choices", "load", "threshold", "kind", "theta", "pools_with_exactly", "occupancy", "mean_tasks",
    "offered", "birth_rate", "truncation",
}  # fmt: skip


@pytest.mark.parametrize(
    ("threshold", "kind", "theta"), [(7, "large", 0.300113), (3, "small", 0.681270), (5, "balanced", None)]
)
def test_json_has_the_contract_and_nothing_else_is_printed(
    run: Run, threshold: int, kind: str, theta: float | None
) -> None:
    outcome = run("equilibrium", "--load", 5.5, "--threshold", threshold, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = outcome.json()
    assert set(found) >= CONTRACT
    assert (found["policy"], found["load"], found["threshold"], found["kind"]) == (
        "threshold",
        5.5,
        threshold,
        kind,
    )
    assert found["theta"] == (None if theta is None else pytest.approx(theta, abs=5e-7))
    assert found["mean_tasks"] == pytest.approx(5.5)
    assert (
        found["pools_with_exactly"]
        == predict_equilibrium(load=5.5, threshold=threshold).pools_with_exactly.tolist()
    )
    assert found["occupancy"][0] == 1


def test_a_kind_can_be_insisted_on(run: Run) -> None:
    arguments = ("equilibrium", "--load", 5.5, "--threshold", 7, "--json", "--kind")
    assert run(*arguments, "large").json()["kind"] == "large"
    assert run(*arguments, "balanced").code == 2


@pytest.mark.parametrize(
    ("options", "choices"),
    [(("jsq",), None), (("random",), None), (("power-of-d",), 2), (("power-of-d", "--choices", 3), 3)],
)
def test_other_policies_have_the_same_keys(run: Run, options: tuple[object, ...], choices: int | None) -> None:
    found = run("equilibrium", "--load", 4.5, "--json", "--policy", *options).json()
    assert set(found) >= CONTRACT
    assert (found["policy"], found["choices"], found["threshold"], found["kind"], found["theta"]) == (
        options[0], choices, None, None, None
    )  # fmt: skip
    assert found["offered"] is found["birth_rate"] is found["truncation"] is None
    assert found["mean_tasks"] == pytest.approx(4.5)
    assert sum(found["pools_with_exactly"]) == pytest.approx(1)


@pytest.mark.parametrize("options", [("--policy", "jsq"), ("--policy", "power-of-d"), ("--threshold", 5)])
def test_no_share_is_a_negative_zero(run: Run, options: tuple[object, ...]) -> None:
    assert "-0.0" not in run("equilibrium", "--load", 5.5, "--json", *options).out


def test_a_long_histogram_leaves_out_the_rarest_rows(run: Run) -> None:
    whole = run("equilibrium", "--load", 10.5, "--policy", "random").out
    assert "other numbers" not in whole
    cut = run("equilibrium", "--load", 60, "--policy", "random").out
    rows = [int(line.split()[0]) for line in cut.splitlines() if "█" in line]
    shares = stats.poisson.pmf(np.arange(200), 60)
    assert rows == sorted(np.argsort(-shares)[:40])
    left = 100 * (1 - shares[rows].sum())
    assert f"other numbers of tasks, each rarer: {left:.2f} % of pools" in cut
    assert len(run("equilibrium", "--load", 100_000, "--policy", "random").out.splitlines()) < 50
    single = run("exact", "--policy", "random", "--pools", 1, "--load", 150).out
    assert single.count("█\n") == 40


def test_policies_give_their_own_laws(run: Run) -> None:
    laws = {
        name: run("equilibrium", "--load", 4.5, "--json", "--policy", *name.split()).json()["pools_with_exactly"]
        for name in ("jsq", "random", "power-of-d", "power-of-d --choices 3")
    }
    np.testing.assert_allclose(laws["jsq"], [0, 0, 0, 0, 0.5, 0.5])
    np.testing.assert_allclose(laws["random"], stats.poisson.pmf(np.arange(len(laws["random"])), 4.5), atol=1e-13)
    below = [sum(laws[name][:3]) for name in ("random", "power-of-d", "power-of-d --choices 3")]
    assert below[0] > 2 * below[1] > 4 * below[2] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--load", 5.5, "--threshold", 7), ["threshold 7 at load 5.5: too large; theta 0.300113", "7.858416"]),
        (("--load", 5.5, "--threshold", 3), ["threshold 3 at load 5.5: too small; theta 0.681270", "4.225082"]),
        (("--load", 5.5, "--threshold", 5), ["threshold 5 at load 5.5: optimal", "50.00 %"]),
        (("--load", 5.5, "--threshold", 0), ["the share of pools with 2 or more tasks"]),
        (("--load", 5, "--threshold", 9), ["The optimal threshold is 4 or 5: every pool holds 5."]),
        (("--policy", "power-of-d", "--load", 10.5), ["power-of-2 at load 10.5", "11 tasks  28.99 %"]),
    ],
    ids=lambda value: " ".join(map(str, value))[:50],
)
def test_the_text_says_what_it_is_and_what_would_be_optimal(
    run: Run, arguments: tuple[object, ...], words: list[str]
) -> None:
    outcome = run("equilibrium", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    assert "█" in outcome.out
    for word in words:
        assert word in outcome.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ["--load and --threshold"]),
        (("--policy", "random"), ["random needs --load."]),
        (("--load", 5.5, "--threshold", -1), ["threshold", "-1"]),
        (("--load", 5.5, "--threshold", 5, "--kind", "large"), ["threshold 5 is optimal", "balanced"]),
        (("--load", 5.5, "--threshold", 5, "--kind", "huge"), ["kind", "large, small, balanced", "huge"]),
        (("--policy", "", "--load", 5.5), ["policy", "not ''"]),
        (("--load", 5.5, "--threshold", 5, "--choices", 2), ["--sample-size", "power-of-d", "threshold"]),
        (("--policy", "power-of-d", "--load", 5.5, "--choices", 0), ["--sample-size", "0"]),
        (("--load", 5.5, "--threshold", 5, "--plot", "x.gif"), ["plot", "x.gif"]),
    ],
    ids=lambda value: " ".join(map(str, value))[:60] if isinstance(value, tuple) else "",
)
def test_bad_input_gets_one_sentence(run: Run, arguments: tuple[object, ...], words: list[str]) -> None:
    outcome = run("equilibrium", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("evenly: ")
    assert outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err


@pytest.mark.parametrize(
    ("arguments", "ending", "magic"),
    [
        (("--load", 5.5, "--threshold", 7), "png", b"\x89PNG\r\n"),
        (("--load", 300, "--threshold", 100), "png", b"\x89PNG\r\n"),  # too many bars for pairs, balanced ones cut
        (("--policy", "power-of-d", "--load", 10.5), "svg", b"<?xml"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_pictures_are_drawn(
    run: Run, tmp_path: Path, arguments: tuple[object, ...], ending: str, magic: bytes
) -> None:
    path = tmp_path / f"equilibrium.{ending}"
    outcome = run("equilibrium", *arguments, "--plot", path)
    assert (outcome.code, outcome.err) == (0, "")
    assert f"wrote {path}" in outcome.out
    assert path.read_bytes().startswith(magic)
    assert list(tmp_path.iterdir()) == [path]


def bars(svg: str, color: str) -> list[NDArray[np.float64]]:
    """Return the corners of the bars of a colour, in the order drawn; the last is the legend's."""
    paths = re.findall(rf'<path d="([^"]*)"[^>]*style="fill: {color}', svg)
    return [np.array(re.findall(r"[ML] (\S+) (\S+)", path), float) for path in paths]


def bar_heights(svg: str, color: str) -> list[float]:
    return [float(np.ptp(corners[:, 1])) for corners in bars(svg, color)]


def bar_middles(svg: str, color: str) -> list[float]:
    return [float((corners[:, 0].min() + corners[:, 0].max()) / 2) for corners in bars(svg, color)]


def test_the_bars_of_the_picture_are_the_two_laws(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bars.svg"
    run("equilibrium", "--load", 5.25, "--threshold", 7, "--plot", path)
    *settled, _ = bar_heights(path.read_text(), "#0072b2")
    *balanced, _ = bar_heights(path.read_text(), "#e69f00")
    scale = sum(balanced)
    np.testing.assert_allclose(np.array(balanced) / scale, [0.75, 0.25], atol=1e-4)
    np.testing.assert_allclose(
        np.array(settled) / scale, predict_equilibrium(load=5.25, threshold=7).pools_with_exactly, atol=1e-4
    )


def test_bars_stand_on_their_ticks(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bars.svg"
    run("equilibrium", "--load", 5.25, "--threshold", 7, "--plot", path)
    svg = path.read_text()
    axis = svg.partition('<g id="matplotlib.axis_1">')[2].partition('<g id="matplotlib.axis_2">')[0]
    ticks = np.array(re.findall(r'<use xlink:href="#\w+" x="([\d.]+)"', axis), float)
    numbers = [comment for comment in re.findall(r"<!-- (.*?) -->", axis) if comment.isdigit()]
    assert numbers == [str(level) for level in range(8)]
    assert ticks.size == 8
    *settled, _ = bar_middles(svg, "#0072b2")
    *balanced, _ = bar_middles(svg, "#e69f00")
    np.testing.assert_allclose(settled, ticks, atol=1e-3)
    np.testing.assert_allclose(balanced, ticks[5:7], atol=1e-3)


def test_help_shows_an_example_that_works(run: Run) -> None:
    text = " ".join(run("equilibrium", "--help").out.split())
    example = text.partition("Example: evenly equilibrium ")[2].split()
    assert example
    assert run("equilibrium", *example).code == 0
