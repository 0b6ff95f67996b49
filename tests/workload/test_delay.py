"""Delays: how they are written, and bad input."""

from typing import Any

import pytest

from evenly.errors import InputError
from evenly.sim import Scenario
from evenly.workload.delay import Delay, parse_delay


def test_a_delay_is_read_as_written() -> None:
    written: Any
    for written, delay in [
        (0, Delay(0.0)),
        (0.25, Delay(0.25)),
        ("0.25", Delay(0.25)),
        ("1e-3", Delay(0.001)),
        ("exponential:0.01", Delay(0.01, exponential=True)),
        (Delay(3.0, exponential=True), Delay(3.0, exponential=True)),
    ]:
        assert parse_delay(written) == delay
        assert parse_delay(str(delay)) == parse_delay(delay.written) == delay


BAD: list[Any] = [
    *(-1, -0.0001, 1001, "x", "", "exponential", "exponential:", "exponential:-1", "exponential:nan", "fixed:1"),
    *(float("nan"), float("inf"), True, None, [0.1], {}, 1j, b"0.1", "0.1:exponential", "9" * 400, "\ud800"),
]


def test_what_is_no_delay_is_rejected_in_one_sentence() -> None:
    for given in BAD:
        with pytest.raises(InputError) as refusal:
            Scenario(pools=2, load=1.0, delay=given)
        assert str(refusal.value).startswith(
            "delay must be a number from 0 to 1000, or exponential: and such a number, "
        )
        assert len(str(refusal.value)) < 170


def test_policies_that_know_no_delay_are_rejected() -> None:
    with pytest.raises(InputError, match=r"^delay is for policy threshold, jsq, .*, not round-robin\.$"):
        Scenario(policy="round-robin", pools=2, load=1.0, delay=0.1)


def test_a_report_interval_is_checked() -> None:
    for interval in (0, 1e7):
        with pytest.raises(InputError, match=r"^report_interval must be a number from 1e-06 to 1000000, not "):
            Scenario(policy="stale-reports", pools=2, load=1.0, report_interval=interval)
    with pytest.raises(InputError, match="is for policy stale-reports"):
        Scenario(pools=2, load=1.0, report_interval=0.5)


def test_more_messages_than_fit_into_memory_are_rejected() -> None:
    with pytest.raises(InputError, match="would be on the way"):
        Scenario(pools=10**6, load=10.0, delay=1.0)
