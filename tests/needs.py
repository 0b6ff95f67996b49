"""Programs that tests require."""

from __future__ import annotations

import pytest

from tools.programs import find

REASON = "needs "  # how the reason of a skip begins; the program follows


def needs(program: str) -> str:
    """Return the path of a program. Skip the test if it is not installed."""
    path = find(program)
    if path is None:
        pytest.skip(f"{REASON}{program}")
    return path
