"""Long work is announced once, from the speed so far."""

import pytest

from evenly.cli.progress import _estimating


def _announced(seconds: list[float], fractions: list[float]) -> list[str]:
    """Return what is shown if these fractions are done at these times; the work begins at the first."""
    shown: list[str] = []
    clock = iter(seconds)
    report = _estimating(shown.append, lambda: next(clock))
    for fraction in fractions:
        report(fraction)
    return shown


def test_an_hour_is_announced_once() -> None:
    # Ten seconds of preparation, then one percent in 36 s.
    said = _announced([0, 10, 11, 46, 82], [0.0, 0.0, 0.01, 0.02])
    assert said == ["This takes roughly 60 minutes in all. Ctrl-C stops it."]


@pytest.mark.parametrize("fraction", [0.05, 1.0])
def test_work_of_less_than_a_minute_is_not_announced(fraction: float) -> None:
    assert _announced([0, 0, 2.9], [0.0, fraction]) == []


def test_nothing_is_said_before_there_is_a_speed() -> None:
    assert _announced([0, 0, 1.9, 500], [0.0, 0.001, 0.0]) == []
