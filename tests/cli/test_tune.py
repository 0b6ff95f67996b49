"""`evenly tune`: an alpha, what to expect of one, and advice for a number of pools."""

from dataclasses import replace
from itertools import pairwise
from math import log
from pathlib import Path

import pytest

from evenly.advice import measure as alpha_measure
from evenly.advice.alpha import recommend_alpha
from evenly.theory.exact.law import solve_exact
from evenly.theory.stability.predict import predict_stability
from evenly.theory.stability.result import ROUGH_PART, ROUGH_SHARE, Stability
from tests.cli.conftest import Run

CONTRACT = {
    "alpha_min",
    "settled_threshold",
    "settle_time_bound",
    "optimal",
    "recommended",
    "candidates",
    "stability",
}


def test_an_alpha_for_a_largest_load(run: Run) -> None:
    outcome = run("tune", "--load-max", 10, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = outcome.json()
    assert set(found) >= CONTRACT
    assert found["alpha_min"] == pytest.approx(10 / 11)
    assert found["recommended"] == 0.91
    for key in ("settled_threshold", "settle_time_bound", "optimal", "candidates", "stability", "load", "alpha"):
        assert found[key] is None
    text = run("tune", "--load-max", 10).out
    for words in ("loads up to 10", "10/11 = 0.909091", "0.91", "--pools"):
        assert words in text


def test_what_to_expect_of_an_alpha(run: Run) -> None:
    found = run("tune", "--load", 5.5, "--alpha", 0.93, "--initial-load", 9, "--json").json()
    assert set(found) >= CONTRACT
    assert found["settled_threshold"] == [5, 5]
    assert found["optimal"] is True
    assert found["settle_time_bound"] == pytest.approx(log(3.5 / 0.08) + log(11))
    assert (found["load"], found["alpha"], found["initial_load"]) == (5.5, 0.93, 9)
    for key in ("alpha_min", "recommended", "candidates", "stability"):
        assert found[key] is None
    assert run("tune", "--load", 5.5, "--alpha", 0.93, "--json").json()["settle_time_bound"] == pytest.approx(
        log(11)
    )


@pytest.mark.parametrize(
    ("load", "alpha", "words"),
    [
        (5.5, 0.93, ["at 5\n", "yes: alpha is above 5.5/6 = 0.916667", "2.398 mean task times, from 0 tasks"]),
        (
            2.9,
            0.9,
            [
                "at 2 or 3",
                "not by the paper's condition",
                "2.9/3 = 0.966667 (2 is best)",
                "no bound is known: alpha is not",
            ],
        ),
        (10, 0.92, ["at 9 or 10", "yes: alpha is above 10/11", "no bound is known: the load is a whole number"]),
        (10, "0.5", ["at 9 to 20 by the paper's bounds", "9 or 10 is best", "whole number"]),
        (0.5, 0.9, ["at 0\n", "yes: alpha is above 0.5/1", "0.000 mean task times"]),
        (
            0.5,
            0.4,
            ["at 0 or 1", "yes: alpha is not above 0.5/1", "as good as 0", "known: alpha is not"],
        ),
        (0.5, 0.2, ["at 0 to 2", "condition: alpha is not above 0.5/1", "0 or 1 is best"]),
    ],
)
def test_the_prediction_in_words(run: Run, load: float, alpha: float | str, words: list[str]) -> None:
    text = run("tune", "--load", load, "--alpha", alpha).out
    for word in words:
        assert word in text


@pytest.mark.full
def test_stability_of_a_given_number_of_pools(run: Run) -> None:
    """Three pools agree with the exact law; a hundred show the paper's wavering threshold (Fig. 3)."""
    found = run("tune", "--load", 1.5, "--alpha", 0.5, "--pools", 3, "--json").json()
    exact = solve_exact(policy="threshold", pools=3, load=1.5, alpha=0.5)
    assert exact.threshold_share is not None
    assert found["pools"] == 3
    assert found["settled_threshold"] == [1, 3]
    time_at = found["stability"]["threshold"]["time_at"]
    for level, share in exact.threshold_share.items():
        assert time_at.get(str(level), 0) == pytest.approx(share, abs=0.015)
    text = run("tune", "--load", 2.9, "--alpha", 0.97, "--pools", 100).out
    for words in ("100 pools, predicted", "off the optimum", "excursions", "resync", "steady from"):
        assert words in text


def test_pools_with_a_threshold_that_stays(run: Run) -> None:
    outcome = run("tune", "--load", 2.9, "--alpha", 0.5, "--pools", 100)
    assert outcome.code == 0
    assert "also rests at       3 in the large-system limit, so no number of pools makes it steady" in outcome.out
    assert "longer than any run" not in outcome.out  # with few pools it leaves that threshold again
    found = run("tune", "--load", 2.9, "--alpha", 0.5, "--pools", 100, "--json").json()
    assert found["stable_pools"] is None
    assert found["stability"]["also_rests_at"] == 3


def test_with_many_pools_the_initial_threshold_decides(run: Run) -> None:
    text = run("tune", "--load", 5.5, "--alpha", 0.5, "--pools", 2000).out
    for words in (
        "5: 100.00 %",
        "also rests at       6",
        "longer than any run; these shares are long-run averages",
    ):
        assert words in text
    assert "rough" not in text


def test_a_rough_prediction_says_by_how_much(run: Run) -> None:
    text = run("tune", "--load", 5.5, "--alpha", 0.1, "--pools", 10).out
    for words in (
        "rough",
        f"off by {100 * ROUGH_SHARE:g} % of the time",
        f"{100 * ROUGH_PART:g} % of their value",
    ):
        assert words in text
    assert "rough" not in run("tune", "--load", 5.5, "--alpha", 0.5, "--pools", 10).out


@pytest.mark.parametrize(
    ("load", "alpha", "pools", "words"),
    [
        (1000, 0.93, 20, "not searched at loads above 100"),
        (5.5, 0.99999, 200000, "not found up to 9,090 pools, where the search ends"),
    ],
)
def test_a_slow_search_is_skipped(
    run: Run, monkeypatch: pytest.MonkeyPatch, load: float, alpha: float, pools: int, words: str
) -> None:
    """Only one prediction is made: each of these takes seconds."""
    asked: list[int] = []
    quick = predict_stability(pools=30, load=5.5, alpha="0.9")

    def counted(*, pools: int, load: float, alpha: str) -> Stability:
        asked.append(pools)
        return replace(quick, load=load)

    for module in ("evenly.advice.tune_report", "evenly.theory.stability.predict"):
        monkeypatch.setattr(f"{module}.predict_stability", counted)
    assert words in run("tune", "--load", load, "--alpha", alpha, "--pools", pools).out
    assert asked == [pools]


def test_both_questions_at_once(run: Run) -> None:
    found = run("tune", "--load-max", 10, "--load", 9.5, "--alpha", 0.92, "--json").json()
    assert found["alpha_min"] == pytest.approx(10 / 11)
    assert found["settled_threshold"] == [9, 10]
    assert found["optimal"] is False
    assert found["recommended"] is None
    text = run("tune", "--load-max", 10, "--alpha", 0.92).out
    assert "0.92" in text
    assert "is high enough" in text


def test_advice_for_a_given_number_of_pools(run: Run) -> None:
    found = run("tune", "--load-max", 1.2, "--pools", 3, "--json").json()
    advice = recommend_alpha(pools=3, load_max=1.2)
    assert set(found) >= CONTRACT
    assert found["recommended"] == advice.alpha
    assert found["alpha_min"] == pytest.approx(1.2 / 2.2)
    assert [row["alpha"] for row in found["candidates"]] == [row.alpha for row in advice.candidates]
    assert found["method"] == "exact"
    text = run("tune", "--load-max", 1.2, "--pools", 3).out
    for words in ("3 pools", "solved exactly", f"recommended alpha   {advice.alpha}", "1.2/2.2 = 0.545455", "<-"):
        assert words in text


def test_the_seed_decides_a_simulation(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alpha_measure, "EVENTS", 10**4)
    arguments = ("tune", "--load-max", 2.9, "--pools", 30, "--json")
    first = run(*arguments, "--seed", 7).json()
    assert first["method"] == "simulation"
    assert first == run(*arguments, "--seed", 7).json()
    assert first != run(*arguments).json()
    text = run("tune", "--load-max", 2.9, "--pools", 30).out
    assert "simulated at loads 2, 2.33, 2.67, 2.9" in text


@pytest.mark.parametrize(
    ("pools", "load_max", "words"),
    [
        (2, 1.2, "out of reach with 2 pools"),
        (5, 0.5, "for many more pools"),
        (200, 0.5, ": met"),
    ],
)
def test_the_papers_rule_is_judged(run: Run, pools: int, load_max: float, words: str) -> None:
    assert words in run("tune", "--load-max", load_max, "--pools", pools).out


def test_a_system_too_large_to_measure_gets_the_papers_rule(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenly.advice.alpha.MAX_TASKS", 40)
    monkeypatch.setattr(alpha_measure, "EVENTS", 10**4)
    text = run("tune", "--load-max", 10, "--pools", 1000000000).out
    for words in (
        "with 4 pools instead",
        "recommended alpha   0.91\n",
        "10/11 = 0.909091: met; too large to measure",
    ):
        assert words in text
    assert "costs messages" not in text
    assert "<- recommended" not in text


@pytest.mark.parametrize(
    ("pools", "ending", "magic"),
    [(2, "svg", b"<?xml"), pytest.param(100, "png", b"\x89PNG\r\n", marks=pytest.mark.full)],
)
def test_the_picture(run: Run, tmp_path: Path, pools: int, ending: str, magic: bytes) -> None:
    path = tmp_path / f"tune.{ending}"
    outcome = run("tune", "--load-max", 0.6, "--pools", pools, "--plot", path)
    assert outcome.code == 0
    assert f"wrote {path}" in outcome.out
    assert path.read_bytes().startswith(magic)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ["--load-max", "load and alpha"]),
        (("--load", 3), ["Give alpha with load"]),
        (("--load-max", 10, "--initial-load", 3), ["--initial-tasks", "under load"]),
        (("--load-max", 10, "--alpha", 0.9), ["alpha 0.9 is too small for loads up to 10", "10/11 = 0.909091"]),
        (("--load-max", 10, "--load", 11, "--alpha", 0.95), ["load", "at most --load-max 10", "11"]),
        (("--load", 3, "--alpha", 0.85, "--seed", 3), ["seed", "--load-max and pools"]),
        (
            ("--load", 3, "--alpha", 0.85, "--pools", 10, "--seed", 3),
            ["seed", "--load-max and pools, without load"],
        ),
        (("--load", 5.5, "--alpha", 0.93, "--initial-load", "1e308"), ["--initial-tasks", "from 0 to 1000000"]),
        (("--load", 5, "--alpha", 0.95, "--pools", 20), ["0.95 is too large for 20 pools", "below 1 - 1/20"]),
        (("--load-max", 5, "--pools", 20, "--alpha", 0.9), ["leave it out", "add load"]),
        (("--load-max", 5, "--pools", 1), ["pools", "2"]),
        (("--load-max", 2000, "--pools", 5), ["--load-max", "to 1000", "2000"]),
        (("--load", 2, "--alpha", 0), ["alpha", "between 0 and 1"]),
        (("--load-max", 5, "--pools", 3, "--plot", "missing/x.png"), ["there is no directory missing"]),
        (("--load-max", 5, "--plot", "x.png"), ["--plot", "--pools"]),
        (("--load", 5, "--alpha", 0.9, "--plot", "x.png"), ["--plot", "--load-max and --pools"]),
        (("--load-max", "much"), ["--load-max", "much"]),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_bad_input_gets_one_sentence(run: Run, arguments: tuple[object, ...], words: list[str]) -> None:
    outcome = run("tune", *arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("evenly: ")
    assert outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err


@pytest.mark.parametrize(("pools", "load_max"), [(2, 1.5), (5, 0.6), (40, 2.9)])
def test_what_the_picture_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pools: int, load_max: float
) -> None:
    from evenly.plots.style import saved_figure

    monkeypatch.setattr(alpha_measure, "EVENTS", 10**4)
    advice = recommend_alpha(pools=pools, load_max=load_max)
    if pools == 40:
        advice = replace(advice, alpha=0.78)  # a candidate that has no tick of its own
        assert advice.chosen is not None
    with saved_figure(tmp_path / "x.png", 9, 4.2) as figure:
        advice.plot_panels(figure=figure)
    (legend,) = figure.legends
    labels = {text.get_text() for text in legend.get_texts()}
    assert labels >= {f"recommended: {advice.alpha:g}", "good (left), cheap (right)", "mean over the loads"}
    for axes in figure.axes:
        assert axes.get_legend() is None
        assert not legend.get_window_extent().overlaps(axes.get_window_extent())
        assert f"{advice.alpha:g}" in [text.get_text() for text in axes.get_xticklabels()]
        boxes = sorted((text.get_window_extent() for text in axes.get_xticklabels()), key=lambda box: box.x0)
        assert [(left.x1, right.x0) for left, right in pairwise(boxes) if left.x1 >= right.x0] == []
    low, high = figure.axes[1].get_ylim()
    assert low < 0.011
    assert high > 0.99
    ticks = {text.get_text() for text in figure.axes[1].get_yticklabels()}
    assert ticks >= {"0.1", "1"}


def test_a_picture_that_cannot_be_written_is_found_before_the_work(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenly.advice.alpha.recommend_alpha", lambda **_: pytest.fail("the work was done"))
    assert run("tune", "--load-max", 5, "--pools", 30, "--plot", tmp_path / "missing" / "x.png").code == 2


def test_every_key_is_in_the_reference(run: Run) -> None:
    reference = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
    section = reference.read_text(encoding="utf-8").split("### `evenly tune --json`")[1].split("\n#")[0]
    advice = run("tune", "--load-max", 1.2, "--pools", 3, "--json").json()
    stability = run("tune", "--load", 1.5, "--alpha", 0.5, "--pools", 3, "--json").json()["stability"]
    candidate = advice["candidates"][0]
    keys = {*advice, *stability, *stability["threshold"], *candidate, *candidate["loads"][0]}
    assert not [key for key in keys if f"`{key}`" not in section and f".{key}`" not in section]


def test_help_has_an_example(run: Run) -> None:
    assert "evenly tune --load-max" in run("tune", "--help").out
