"""Checks of values from outside: valid values pass, others give one sentence."""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.inputs import finite_number, number_from, positive_number, shown, true_or_false, whole_number

WRONG_TYPES: list[Any] = [
    None,
    "3",
    "",
    b"3",
    True,
    np.bool_(True),
    [3],
    (3,),
    {},
    3j,
    Decimal(3),
    np.array([3]),
    object(),
    "\0",
    "Ω" * 500,
    10**5000,
    -(10**400),
    math.nan,
    math.inf,
    -math.inf,
]
CHECKS: dict[str, Callable[[Any], object]] = {
    "whole_number": lambda value: whole_number("x", value, 0, 9),
    "positive_number": lambda value: positive_number("x", value),
    "number_from": lambda value: number_from("x", value, 0, 9),
    "finite_number": lambda value: finite_number("x", value),
}


@pytest.mark.parametrize("check", CHECKS)
def test_anything_but_a_number_is_rejected_in_one_short_sentence(check: str) -> None:
    for value in WRONG_TYPES:
        with pytest.raises(InputError) as error:
            CHECKS[check](value)
        assert re.fullmatch(r"x must be .+, not .+\.", str(error.value))
        assert len(str(error.value)) < 150
        assert str(error.value).isprintable()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        ("1.5", "'1.5'"),
        (True, "True"),
        (np.float64(1.5), "1.5"),
        (np.int32(3), "3"),
        (None, "None"),
        ([1, 2], "[1, 2]"),
        (Fraction(1, 3), "1/3"),
        ("a\nb", r"'a\nb'"),
        ("x" * 100, "'" + "x" * 56 + "..."),
        (10**60, "1" + "0" * 56 + "..."),
        (10**5000, "a number with thousands of digits"),
    ],
    ids=lambda value: str(type(value)),
)
def test_a_value_is_quoted_as_python_writes_it_and_cut_short(value: object, text: str) -> None:
    assert shown(value) == text


def test_an_object_that_cannot_be_printed_is_still_named() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert shown(Silent()) == "an object of type Silent"


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (lambda: whole_number("pools", 0, 1, 9), "pools must be a whole number from 1 to 9, not 0."),
        (lambda: whole_number("pools", 10, 1, 9), "pools must be a whole number from 1 to 9, not 10."),
        (lambda: whole_number("pools", 2.0, 1, 9), "pools must be a whole number from 1 to 9, not 2.0."),
        (
            lambda: whole_number("d", 6, 1, 5, "the pools"),
            "d must be a whole number from 1 to 5 (the pools), not 6.",
        ),
        (lambda: positive_number("load", "1.5"), "load must be a positive number, not '1.5'."),
        (lambda: positive_number("load", 0), "load must be a positive number, not 0."),
        (lambda: positive_number("load", 11, 10), "load must be a positive number of at most 10, not 11."),
        (lambda: number_from("x", -1, 0), "x must be zero or a positive number, not -1."),
        (lambda: number_from("x", 1, 2), "x must be a number of at least 2, not 1."),
        (lambda: number_from("x", 1, 2, 3), "x must be a number from 2 to 3, not 1."),
        (lambda: finite_number("x", math.inf), "x must be a finite number, not inf."),
        (lambda: true_or_false("x", "no"), "x must be true or false, not 'no'."),
        (lambda: true_or_false("x", 1), "x must be true or false, not 1."),
        (lambda: true_or_false("x", None), "x must be true or false, not None."),
    ],
)
def test_the_sentence_says_what_is_allowed(check: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        check()
    assert str(error.value) == sentence


def test_whole_numbers_become_plain_ones() -> None:
    value: Any
    for value in (1, 9, np.int64(9), np.uint8(1)):
        assert type(whole_number("x", value, 1, 9)) is int


def test_numbers_become_plain_floats() -> None:
    value: Any
    for value in (1, 1.5, np.float32(1.5), np.int64(1), Fraction(3, 2), 5e-324):
        for number in (positive_number("x", value, 2), number_from("x", value, 0, 2), finite_number("x", value)):
            assert type(number) is float
            assert number == float(value)


def test_bounds_are_included() -> None:
    assert whole_number("x", 1, 1, 9) == 1
    assert whole_number("x", 9, 1, 9) == 9
    assert positive_number("x", 2.0, 2.0) == 2
    assert number_from("x", 0, 0, 1) == 0
    assert number_from("x", 1, 0, 1) == 1


def test_truth_values_of_numpy_become_plain_ones() -> None:
    assert true_or_false("x", np.bool_(True)) is True
    assert true_or_false("x", False) is False
