"""`tune` and its reports: which question gets which answer, and the answers as results."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenly.advice.alpha import recommend_alpha
from evenly.advice.recommendation import CHEAP, TOLERATED, Advice
from evenly.advice.tune_report import TuneReport, tune
from evenly.errors import InputError
from evenly.theory import predict_settling, predict_stability, stable_pools, suggested_alpha
from tests.theory.result_support import check_frames, check_plot, check_table, check_value, check_words

CANDIDATES = [
    "alpha", "relative_spread", "error", "resync_per_task", "change_rate", "share_optimal", "recommended",
]  # fmt: skip


def report(**question: Any) -> Callable[[], TuneReport]:  # noqa: ANN401
    return lambda: tune(**question)


def advice() -> Advice:
    return recommend_alpha(pools=3, load_max=0.6)


# name: (how to make it, a field that makes it another, words of its line, first column, rows, panels)
Case = tuple[Callable[[], Any], dict[str, Any], list[str], str, int, int | None]
RESULTS: dict[str, Case] = {
    "advice": (
        advice,
        {"alpha": 0.2},
        ["3 pools, loads up to 0.6: recommended alpha", "solved exactly"],
        "alpha",
        2,
        2,
    ),
    "report of advice": (
        report(load_max=0.6, pools=3),
        {"pools": 4},
        ["3 pools, loads up to 0.6: recommended alpha"],
        "alpha",
        2,
        2,
    ),
    "report of a prediction": (
        report(load=1.5, alpha="0.8", pools=20),
        {"stable_pools": 3},
        ["20 pools, load 1.5", "off the optimum 1"],
        "threshold",
        len(predict_stability(pools=20, load=1.5, alpha="0.8").threshold_share),
        1,
    ),
    "report of settling": (
        report(load=5.5, alpha=0.93, initial_tasks=9),
        {"alpha_min": 0.5},
        ["settles at 5, within 6.176"],
        "load",
        1,
        1,
    ),
}
each = pytest.mark.parametrize("name", RESULTS)


@each
def test_an_answer_is_one_line_a_table_and_a_value(name: str) -> None:
    make, changed, words, _, _, _ = RESULTS[name]
    check_words(make(), words)
    check_value(make, replace(make(), **changed))


@each
def test_an_answer_is_a_frame(name: str) -> None:
    make, _, _, first, rows, _ = RESULTS[name]
    columns = list(make().columns())
    assert columns[0] == first
    check_frames(make(), columns, rows)


@each
def test_an_answer_draws_and_writes_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make, _, _, _, _, panels = RESULTS[name]
    check_plot(make(), tmp_path, panels=panels)


def test_the_rule_alone_has_words_and_a_row_but_no_picture() -> None:
    found = tune(load_max=10)
    check_words(found, ["loads up to 10: alpha above 0.909091, take 0.91"])
    check_frames(found, ["load_max", "alpha_min", "recommended_alpha"], 1)
    check_words(tune(load_max=10, alpha="0.92"), ["0.92 will do"])
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    for draw in (found.plot, found.plot_panels):
        with pytest.raises(InputError, match="no picture: give load and alpha, or load_max and pools"):
            draw()
    assert plt.get_fignums() == before


def test_each_question_gets_its_answer() -> None:
    rule = tune(load_max=10)
    assert (rule.alpha_min, rule.suggested_alpha) == (10 / 11, suggested_alpha(10))
    assert rule.recommended_alpha == 0.91
    assert (rule.advice, rule.settling, rule.stability, rule.stable_pools) == (None, None, None, None)
    given = tune(load_max=10, alpha="0.92")
    assert given.recommended_alpha is None
    expected = tune(load=1.5, alpha="0.8", initial_tasks=[4, 5])
    assert expected.settling is not None
    assert expected.settling.to_dict() == predict_settling(load=1.5, alpha="0.8", initial_tasks=4.5).to_dict()
    assert expected.initial_tasks == (4, 5)
    finite = tune(load=1.5, alpha="0.8", pools=20)
    assert finite.stability == predict_stability(pools=20, load=1.5, alpha="0.8")
    assert finite.stable_pools == stable_pools(load=1.5, alpha="0.8")
    fractions: list[float] = []
    search = tune(load_max=0.6, pools=3, seed=4, progress=fractions.append)
    assert search.advice == recommend_alpha(pools=3, load_max=0.6, seed=4)
    assert search.recommended_alpha == advice().alpha
    assert search.seed == 4
    assert fractions[-1] == 1
    both = tune(load_max=10, load=9.5, alpha="0.92")
    assert both.alpha_min == 10 / 11
    assert both.settling is not None


def test_the_simulator_is_loaded_for_a_search_only() -> None:
    code = (
        "import sys; from evenly.advice.tune_report import tune\n"
        "tune(load_max=10); tune(load=1.5, alpha=0.8, pools=20);"
        "print([name for name in ('evenly.sim', 'evenly.core', 'numba', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_report_has_the_same_keys_whatever_was_asked() -> None:
    reports = [tune(load_max=10), *(make() for make, *_ in RESULTS.values() if make is not advice)]
    keys = {tuple(sorted(found.to_dict())) for found in reports}
    assert len(keys) == 1
    for found in reports:
        assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == found.to_dict()


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({}, "Give load_max to get a recommended alpha, or load and alpha to predict how that alpha performs"),
        ({"load": 3}, "Give alpha with load, to predict how that alpha performs"),
        ({"alpha": 0.9, "pools": 20}, "Give load_max to get a recommended alpha"),
        ({"load_max": 10, "initial_tasks": 3}, "initial_tasks is where a system under load starts: give load too"),
        ({"load_max": 10, "pools": 20, "alpha": 0.5}, "leave it out, or add load to predict how it performs"),
        (
            {"load_max": 10, "seed": 3},
            "seed only affects the search for alpha: give it with load_max and pools",
        ),
        ({"load_max": 10, "load": 11, "alpha": 0.95}, "load must be at most load_max 10, not 11"),
        ({"load_max": 10, "load": 3, "alpha": 0.9}, "alpha 0.9 is too small for loads up to 10"),
        ({"load": 3, "alpha": 0.95, "pools": 20}, "alpha 0.95 is too large for 20 pools"),
        ({"load": 3, "alpha": 0.9, "initial_tasks": -1}, "initial_tasks must be a number from 0 to 1000000"),
    ],
)
def test_arguments_that_form_no_question_are_rejected(question: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        tune(**question)


def test_measurements_are_one_long_table() -> None:
    found = advice()
    table = found.measurements
    check_table(table, list(table), len(found.candidates) * len(found.loads))
    assert list(table)[:2] == ["alpha", "load"]
    assert table["relative_spread"][-1] == found.candidates[-1].measurements[-1].relative_spread
    assert list(found.columns()) == CANDIDATES
    assert sum(found.columns()["recommended"]) == 1


def test_the_picture_of_advice_has_the_measurements() -> None:
    from matplotlib.figure import Figure

    found = advice()
    balance, messages = found.plot_panels(figure=Figure()).axes
    line = next(line for line in balance.get_lines() if line.get_label() == "load 0.6")
    assert np.allclose(1 - np.asarray(line.get_xdata(), float), [each.alpha for each in found.candidates])
    spreads = [each.measurements[-1].relative_spread for each in found.candidates]
    assert np.allclose(np.asarray(line.get_ydata(), float), spreads)
    mean = next(line for line in messages.get_lines() if line.get_label() == "mean over the loads")
    assert np.allclose(np.asarray(mean.get_ydata(), float), [each.resync_per_task for each in found.candidates])
    best = min(each.relative_spread for each in found.candidates)
    assert balance.patches[0].get_window_extent().y1 == pytest.approx(
        balance.transData.transform((0.5, TOLERATED * best))[1]
    )
    assert messages.patches[0].get_window_extent().y1 == pytest.approx(
        messages.transData.transform((0.5, CHEAP))[1]
    )


def test_reports_keep_the_seed() -> None:
    assert recommend_alpha(pools=3, load_max=0.6, seed=7).to_dict()["seed"] == 7
    assert tune(load_max=0.6, pools=3, seed=7).to_dict()["seed"] == 7
    assert tune(load_max=0.6, pools=3).to_dict()["seed"] == 1
    assert tune(load_max=0.6).to_dict()["seed"] is None
