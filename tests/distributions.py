"""The distributions of SciPy, loaded when one is used: that takes a second, and collecting tests needs none."""

from typing import Any


def __getattr__(name: str) -> Any:  # noqa: ANN401
    from scipy import stats

    return getattr(stats, name)
