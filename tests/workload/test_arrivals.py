"""Arrival processes: their spelling, and what they reject."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from evenly.errors import InputError
from evenly.workload import arrivals
from evenly.workload.arrivals import EXAMPLES, ArrivalProcess, Burst, parse_arrivals, recorded_arrivals


def test_a_process_is_printed_as_it_is_written() -> None:
    for text in (*EXAMPLES[:-1], "renewal:cv=0", "renewal:lognormal:cv=4", "renewal:deterministic"):
        assert str(parse_arrivals(text)) == text
        assert parse_arrivals(parse_arrivals(text)) == parse_arrivals(str(parse_arrivals(text)))


def test_the_gaps_have_the_given_coefficient_of_variation() -> None:
    for cv in (0, 0.3, 1, 2.5):
        assert parse_arrivals(f"renewal:cv={cv}").gaps.cv == cv
    assert parse_arrivals("renewal:cv=2.50") == parse_arrivals("renewal:cv=2.5")
    assert parse_arrivals("renewal:erlang:stages=4").gaps.cv == 0.5


def test_bursts_leave_the_mean_rate_alone() -> None:
    burst = parse_arrivals("bursty:ratio=10,share=0.1,length=2").burst
    assert burst is not None
    (low, high), (calm, length) = burst.factors, burst.lengths
    assert high == pytest.approx(10 * low)
    assert (low * calm + high * length) / (calm + length) == pytest.approx(1)
    assert length / (calm + length) == pytest.approx(0.1)


def test_a_recording_has_a_rate_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "arrivals.csv"
    file.write_text("time,what\n10,a\n10,b\n14,c\n30,d\n")
    process = parse_arrivals(f"recorded:{file},column=time")
    assert process.times == (10, 10, 14, 30)
    assert process.own_rate == pytest.approx(3 / 20)
    assert str(process) == f"recorded:{file},column=time"
    assert str(recorded_arrivals([1, 2])) == "recorded (2 arrivals)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nope", "arrivals must be one of poisson, renewal:cv=2"),
        (None, "arrivals must be a text such as renewal:cv=2, not None"),
        ("poisson:1", "arrivals must be one of poisson"),
        ("renewal", "renewal needs cv or a service law"),
        ("renewal:cv=-1", "cv of renewal must be a number from 0 to 100, not -1"),
        ("renewal:pareto:shape=1", "infinite mean"),
        ("renewal:nope", "^arrivals: renewal needs cv or a service law .*, not 'nope'"),
        ("renewal:empirical:gaps.txt", "^arrivals: renewal needs cv or a service law"),
        ("renewal:erlang:stages=0", "^arrivals: stages of erlang must be"),
        ("bursty", "bursty needs ratio, as in bursty:ratio=10,share=0.1,length=2"),
        ("bursty:ratio=0.5,share=0.1,length=2", "ratio of bursty must be a number from 1"),
        ("bursty:ratio=10,share=1,length=2", "share of bursty must be a number from 1e-06 to 0.999999, not 1"),
        ("recorded:", "recorded needs a file"),
        ("recorded:missing.txt", "Cannot read missing.txt"),
    ],
)
def test_bad_processes_are_rejected_with_one_sentence(text: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_arrivals(text)


def test_bad_recordings_are_rejected() -> None:
    times: object
    for times in ([], [1], [2, 2], [2, 1], [0, -1], 4, [0, 0, 0, 5e-324], [0, 5e-324]):
        with pytest.raises(InputError):
            recorded_arrivals(times)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "xyz"}, "arrivals must be one of poisson, .*, not 'xyz'"),
        ({"name": "bursty"}, "bursty needs burst. Make processes with parse_arrivals"),
        ({"name": "recorded"}, "recorded needs times"),
        ({"name": "renewal"}, "renewal needs law"),
        ({"name": "poisson", "law": "cv=2"}, "poisson has no law"),
        ({"name": "renewal", "law": "nope"}, "service must be one of"),
        ({"name": "recorded", "times": (2.0, 1.0)}, "times must not decrease"),
    ],
)
def test_a_process_of_parts_that_do_not_fit_is_rejected(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ArrivalProcess(**options)


def test_an_endless_recording_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "MAX_NUMBERS", 100)
    with pytest.raises(InputError, match="times must be at most 100 numbers"):
        recorded_arrivals(count(1))


def test_a_burst_is_checked() -> None:
    with pytest.raises(InputError, match=r"share of bursty must be a number from .*, not 2"):
        Burst(2, 2, 1)
