"""A claim, what was measured about it, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import isfinite
from typing import Any

from evenly.paper.experiments.lab import Lab


class Verdict(Enum):
    """The verdict on a claim, from the best to the worst."""

    HOLDS = "holds"
    READING = "holds as we read it"
    FINITE = "holds in the limit"
    ERRATUM = "holds once corrected"
    FAILS = "does not hold as stated"


class Kind(Enum):
    """The kind of a note, and of the numbers that show whether the note is needed."""

    ERRATUM = "erratum"  # the paper's words or formulas are wrong as printed; corrected, they hold
    FINITE = "finite systems"  # true of the large-system limit, not of systems of a size that is used
    READING = "our reading"  # the words allow another reading, which does not hold
    REMARK = "remark"  # how sharp the statement is, or what else is true


_VERDICTS = {
    Kind.ERRATUM: Verdict.ERRATUM,
    Kind.FINITE: Verdict.FINITE,
    Kind.READING: Verdict.READING,
}


@dataclass(frozen=True)
class Measured:
    """A number and whether it agrees with what it is compared with.

    `error` is the half-width of a 95 % interval, NaN if all samples were equal and so do not tell, or None for
    counts and deterministic numbers. `expected` follows from the paper or its mathematics; the number must stand
    in `relation` to it (equal, below, above). `slack` is the distance allowed on top of chance, because the system
    is finite or numbers are rounded.

    A number judges the statement, unless `kind` names the note it belongs to. It then judges the words as printed
    (an erratum), the statement about a finite system, another reading, or what a remark adds. `key` is the name by
    which notes quote it.
    """

    what: str
    value: float
    supports: bool
    error: float | None = None
    expected: float | None = None
    relation: str = "="
    slack: float = 0.0
    kind: Kind | None = None
    key: str = ""

    def about(self, kind: Kind) -> Measured:
        """Return the number as one that belongs to a note of this kind."""
        return replace(self, kind=kind)

    def named(self, key: str) -> Measured:
        """Return the number with the name by which notes quote it."""
        return replace(self, key=key)


@dataclass(frozen=True)
class Note:
    """A caveat or an addition. Its text quotes measured numbers by their keys, as in "{share:.1%} of the time"."""

    kind: Kind
    text: str


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement in our words, by default one of the paper.

    `labels` are its rows in docs/paper-map.md. `expected` is the verdict that a correct policy gets. `ours` marks
    a statement that the paper does not make.
    """

    name: str
    place: str
    labels: tuple[str, ...]
    statement: str
    how: str
    measure: Callable[[Lab], Sequence[Measured]]
    notes: tuple[Note, ...] = ()
    expected: Verdict = Verdict.HOLDS
    ours: bool = False


@dataclass(frozen=True)
class Outcome:
    """A claim and what was measured about it."""

    claim: Claim
    measured: tuple[Measured, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict that follows from the numbers: the worst that one of them calls for."""
        against = {number.kind for number in self.measured if not number.supports}
        if None in against:
            return Verdict.FAILS
        return next((verdict for kind, verdict in _VERDICTS.items() if kind in against), Verdict.HOLDS)

    @property
    def as_expected(self) -> bool:
        """True if the verdict is the one expected of a correct policy, and every note is true.

        Each number of a note that affects the verdict must contradict what the note rejects: a note that no longer
        applies is an alarm, even if another one leads to the same verdict.
        """
        notes = all(number.supports != (number.kind in _VERDICTS) for number in self.measured if number.kind)
        return notes and self.verdict is self.claim.expected

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes, with the numbers of this run."""
        values = {number.key: number.value for number in self.measured if number.key}
        return tuple(replace(note, text=note.text.format_map(values)) for note in self.claim.notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        claim = self.claim
        return {
            "name": claim.name,
            "source": "ours" if claim.ours else "paper",
            "place": claim.place,
            "labels": list(claim.labels),
            "statement": claim.statement,
            "how": claim.how,
            "note": " ".join(note.text for note in self.notes),
            "notes": [{"kind": note.kind.value, "text": note.text} for note in self.notes],
            "measured": [_number_dict(number) for number in self.measured],
            "verdict": self.verdict.value,
            "expected_verdict": claim.expected.value,
            "as_expected": self.as_expected,
        }


def _number_dict(number: Measured) -> dict[str, Any]:
    return {
        "what": number.what,
        "value": _plain(number.value),
        "error": _plain(number.error),
        "relation": number.relation,
        "expected": _plain(number.expected),
        "slack": float(number.slack),
        "supports": bool(number.supports),
        "about": "statement" if number.kind is None else number.kind.value,
    }


def _plain(value: float | None) -> float | None:
    """Return a number that JSON can hold: infinity and NaN become null."""
    return float(value) if value is not None and isfinite(value) else None
