"""Wording that the results share in their summaries, tables and titles."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from evenly.policies import POLICIES

Alpha = float | str | Decimal
ALPHA = "\N{GREEK SMALL LETTER ALPHA}"


def percent(share: float) -> str:
    """Return a share as a percentage, rounded to 0 or 100 only if it is exactly that."""
    if 0 < share < 0.0001:
        return "< 0.01 %"
    if 0.9999 < share < 1:
        return "> 99.99 %"
    return f"{100 * share:.2f} %"


def short_label(
    policy: str, *, threshold: int | None = None, alpha: Alpha | None = None, sample_size: int | None = None
) -> str:
    """Return a short label of the policy and its parameters, with a Greek alpha."""
    label = POLICIES[policy].label(threshold=threshold, alpha=alpha, sample_size=sample_size)
    return label.replace(", alpha ", f" {ALPHA}=")


def start_words(initial_tasks: float | Sequence[int]) -> str:
    """Describe the tasks in the pools at time 0."""
    if isinstance(initial_tasks, Sequence):
        return f"pools with {min(initial_tasks)} to {max(initial_tasks)} tasks"
    if not initial_tasks:
        return "empty pools"
    return f"{initial_tasks:.12g} task{'' if initial_tasks == 1 else 's'} per pool"
