"""Numbers as text for the report."""

from __future__ import annotations

from math import floor, isnan, log10

from evenly.frames import UNKNOWN
from evenly.paper.claims.claim import Measured, Verdict

SYMBOLS = {
    Verdict.HOLDS: "✓",
    Verdict.READING: "✓r",
    Verdict.FINITE: "✓∞",
    Verdict.ERRATUM: "✓c",
    Verdict.FAILS: "✗",
}
_TINY = 1e-3
_ROUNDING = 1e-6  # smaller slacks are not mentioned
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def measured_text(number: Measured) -> str:
    """Format a number, its error and what is expected: 0.6402 ± 0.0003 (expected 0.6402, slack 0.001)."""
    text = number_text(number.value, number.error)
    if number.expected is None:
        return text
    if number.relation != "=":
        return f"{text} (must be {number.relation} {_plain(float(f'{number.expected:.4g}'))})"
    slack = f", slack {_plain(float(f'{number.slack:.2g}'))}" if number.slack > _ROUNDING else ""
    return f"{text} (expected {_plain(number.expected)}{slack})"


def number_text(value: float, error: float | None = None) -> str:
    """Format a number to the digits that its error justifies, or to six."""
    if error is None:
        return _plain(value)
    if isnan(error):
        return f"{_plain(value)} {UNKNOWN}"
    largest = max(abs(value), error)
    if largest < _TINY:
        power = floor(log10(largest))
        scale = 10.0**-power
        return f"({_rounded(value * scale, error * scale)})·10{str(power).translate(_SUPERSCRIPTS)}"
    return _rounded(value, error)


def _rounded(value: float, error: float) -> str:
    decimals = max(0, 1 - floor(log10(error)))
    return f"{value:.{decimals}f} ± {error:.{decimals}f}"


def _plain(value: float) -> str:
    if value and abs(value) < _TINY:
        power = floor(log10(abs(value)))
        return f"{value * 10.0**-power:.3g}·10{str(power).translate(_SUPERSCRIPTS)}"
    if value == floor(value):
        return f"{value:,.0f}"
    return f"{value:.6g}"
