"""Which cases of a test run when: `make test` runs the first, `make full` the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def rest_in_full(cases: Sequence[Any], first: int) -> list[Any]:
    """Return the cases; only the first `first` of them run in `make test`. A tuple is one value per argument."""
    rest = (case if isinstance(case, tuple) else (case,) for case in cases[first:])
    return [*cases[:first], *(pytest.param(*case, marks=pytest.mark.full) for case in rest)]
