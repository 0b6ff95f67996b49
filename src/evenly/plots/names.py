"""What policies are called, in text and in pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal


def policy_name(
    policy: str,
    *,
    threshold: int | None = None,
    alpha: float | str | Decimal | None = None,
    choices: int | None = None,
) -> str:
    """The policy with the parameters that make it."""
    match policy:
        case "threshold" if alpha is not None:
            return f"threshold, alpha {alpha}"
        case "threshold" | "jbt":
            return f"{policy} {threshold}"
        case "power-of-d":
            return f"power-of-{choices}"
        case name:
            return name
