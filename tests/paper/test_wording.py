"""Numbers as the report prints them."""

from math import nan

import pytest

from evenly.paper.claims.claim import Measured
from evenly.paper.report.wording import measured_text, number_text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.640231, 0.00031, "0.64023 ± 0.00031"),
        (10.4996, 0.0214, "10.500 ± 0.021"),
        (12_345.6, 123.4, "12346 ± 123"),
        (2.75e-5, 3.1e-6, "(2.75 ± 0.31)·10⁻⁵"),
        (0.0, 4.2e-4, "(0.0 ± 4.2)·10⁻⁴"),
        (0.0, nan, "0 ± ?"),
        (1e-12, None, "1·10⁻¹²"),
        (100_000.0, None, "100,000"),
        (2.3978952728, None, "2.3979"),
    ],
)
def test_a_number_has_the_digits_that_its_error_justifies(value: float, error: float | None, text: str) -> None:
    assert number_text(value, error) == text


def test_a_number_is_followed_by_what_is_expected() -> None:
    assert measured_text(Measured("x", 0.5, True)) == "0.5"
    assert measured_text(Measured("x", 0.5, True, 0.01, 0.49)) == "0.500 ± 0.010 (expected 0.49)"
    assert measured_text(Measured("x", 2.0, True, None, 3.0, "<")) == "2 (must be < 3)"
    loose = Measured("x", 0.5, True, 0.01, 0.49, slack=0.0123)
    assert measured_text(loose) == "0.500 ± 0.010 (expected 0.49, slack 0.012)"
    assert measured_text(Measured("x", 0.5, True, None, 0.5, slack=1e-9)) == "0.5 (expected 0.5)"
