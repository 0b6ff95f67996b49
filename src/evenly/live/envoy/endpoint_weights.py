"""The weights of pools as Envoy takes them: its own policy follows them while the picker is away."""

from __future__ import annotations

from collections.abc import Sequence

_LARGEST = 100_000  # of the largest weight: those of 10,000 pools must add up to less than 2**32


def endpoint_weights(weights: Sequence[float]) -> list[int | None]:
    """Return whole numbers in proportion to the weights, at least 1; None for each if all weights are equal."""
    largest = max(weights, default=1.0)
    if min(weights, default=largest) == largest:
        return [None] * len(weights)
    return [max(round(weight / largest * _LARGEST), 1) for weight in weights]
