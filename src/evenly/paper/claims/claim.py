"""A claim of the paper, what was measured about it, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import isfinite
from typing import Any

from evenly.paper.experiments.lab import Lab


class Verdict(Enum):
    """The verdict on a claim."""

    HOLDS = "holds"
    NOTE = "holds, with a note"
    FAILS = "does not hold as stated"


@dataclass(frozen=True)
class Measured:
    """A number and whether it supports the claim.

    `error` is the half-width of a 95 % interval, or None for counts and deterministic numbers. `expected` follows
    from the paper or its mathematics; the number must stand in `relation` to it (equal, below, above). `slack` is
    the distance allowed on top of chance, because the system is finite or numbers are rounded.
    """

    what: str
    value: float
    supports: bool
    error: float | None = None
    expected: float | None = None
    relation: str = "="
    slack: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of the paper in our words.

    `labels` are its rows in docs/paper-map.md. `note` qualifies a claim that holds. `refuted` marks a statement
    that a correct policy contradicts: its row should be red.
    """

    name: str
    place: str
    labels: tuple[str, ...]
    statement: str
    how: str
    measure: Callable[[Lab], Sequence[Measured]]
    note: str = ""
    refuted: bool = False


@dataclass(frozen=True)
class Outcome:
    """A claim and what was measured about it."""

    claim: Claim
    measured: tuple[Measured, ...]

    @property
    def supported(self) -> bool:
        """True if all numbers support the claim."""
        return all(number.supports for number in self.measured)

    @property
    def verdict(self) -> Verdict:
        """The verdict that follows from the numbers."""
        if not self.supported:
            return Verdict.FAILS
        return Verdict.NOTE if self.claim.note else Verdict.HOLDS

    @property
    def as_expected(self) -> bool:
        """True if the verdict is the one expected of a correct policy."""
        return self.supported != self.claim.refuted

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        claim = self.claim
        return {
            "name": claim.name,
            "place": claim.place,
            "labels": list(claim.labels),
            "statement": claim.statement,
            "how": claim.how,
            "note": claim.note,
            "measured": [
                {
                    "what": number.what,
                    "value": _plain(number.value),
                    "error": _plain(number.error),
                    "relation": number.relation,
                    "expected": _plain(number.expected),
                    "slack": float(number.slack),
                    "supports": bool(number.supports),
                }
                for number in self.measured
            ],
            "verdict": self.verdict.value,
            "as_expected": self.as_expected,
        }


def _plain(value: float | None) -> float | None:
    """Return a number that JSON can hold: infinity and NaN become null."""
    return float(value) if value is not None and isfinite(value) else None
