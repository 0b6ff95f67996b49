"""Several results on one axes: each has its own label and style, and none hides another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from evenly import Scenario, predict_equilibrium, predict_stability, simulate, solve_exact

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer

MAKE: dict[str, Callable[[], Any]] = {
    "exact": lambda: solve_exact(pools=4, load=1.5, threshold=1),
    "simulated": lambda: simulate(Scenario(pools=4, load=1.5, threshold=1, horizon=50.0)),
    "equilibrium": lambda: predict_equilibrium(load=1.5, threshold=3),
}


def new_axes() -> Axes:
    from matplotlib.figure import Figure

    return Figure().add_subplot()


def hexadecimal(color: Any) -> str:  # noqa: ANN401
    from matplotlib.colors import to_hex

    return to_hex(color)


def bars(axes: Axes) -> list[BarContainer]:
    from matplotlib.container import BarContainer

    return [drawn for drawn in axes.containers if isinstance(drawn, BarContainer)]


def looks(drawn: BarContainer) -> tuple[bool, str]:
    patch = drawn.patches[0]
    return patch.get_fill(), hexadecimal(patch.get_facecolor() if patch.get_fill() else patch.get_edgecolor())


def legend(axes: Axes) -> list[str]:
    shown = axes.get_legend()
    return [] if shown is None else [text.get_text() for text in shown.get_texts()]


@pytest.mark.parametrize(
    "names", [("exact", "simulated"), ("simulated", "exact"), ("equilibrium", "exact")], ids=" then ".join
)
def test_two_results_on_one_axes_can_be_told_apart(names: tuple[str, str]) -> None:
    from evenly.plots.style import COLORS

    axes = new_axes()
    first, second = (MAKE[name]() for name in names)
    first.plot(ax=axes)
    before, title, top = len(bars(axes)), axes.get_title(), axes.get_ylim()[1]
    second.plot(ax=axes)
    drawn = bars(axes)
    assert [looks(each)[0] for each in drawn] == [True] * before + [False] * (len(drawn) - before)
    labels = [str(each.get_label()) for each in drawn]
    assert len(set(labels)) == len(labels)
    assert set(labels) <= set(legend(axes))
    assert len({looks(each) for each in drawn}) == len(drawn)
    assert {looks(each)[1] for each in drawn} <= {hexadecimal(color) for color in COLORS}
    assert axes.get_title() == (title or axes.get_title())
    assert axes.get_ylim()[1] >= top


def test_two_predictions_for_thresholds_can_be_told_apart() -> None:
    axes = new_axes()
    for pools in (20, 40):
        predict_stability(pools=pools, load=1.5, alpha="0.8").plot(ax=axes)
    assert [looks(each)[0] for each in bars(axes)] == [True, True, False, False]
    assert len(set(legend(axes))) == 4
    assert len({looks(each) for each in bars(axes)}) == 4
    assert axes.get_title() == "20 pools, load 1.5, alpha 0.8: predicted"


def test_a_third_result_takes_a_third_colour() -> None:
    axes = new_axes()
    for pools in (2, 3, 4):
        solve_exact(pools=pools, load=1.5).plot(ax=axes)
    assert len({looks(each)[1] for each in bars(axes)}) == 3
    assert legend(axes) == [f"threshold 1, {pools} pools, load 1.5: exact" for pools in (2, 3, 4)]


def test_a_single_result_has_the_usual_style() -> None:
    from evenly.plots.style import BLUE, RED

    axes = new_axes()
    MAKE["exact"]().plot(ax=axes)
    assert [looks(each) for each in bars(axes)] == [(True, hexadecimal(BLUE))]
    assert axes.get_legend() is None
    axes = new_axes()
    MAKE["simulated"]().plot(ax=axes)
    assert [looks(each) for each in bars(axes)] == [(True, hexadecimal(BLUE))]
    assert hexadecimal(axes.lines[0].get_color()) == hexadecimal(RED)


def test_the_title_of_the_caller_stays() -> None:
    axes = new_axes()
    axes.set_title("mine")
    MAKE["exact"]().plot(ax=axes)
    assert axes.get_title() == "mine"
