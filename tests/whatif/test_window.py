"""The measured part of a log, what is missing at its ends, and how many sessions are open."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly import InputError, replay_log
from evenly.whatif.concurrency import concurrency
from evenly.whatif.window import MISSING, choose_window, margin_of
from tests.whatif.test_replay_log import log_of


@given(durations=st.lists(st.floats(0, 1e6), min_size=1, max_size=40))
def test_the_margin_leaves_one_per_cent(durations: list[float]) -> None:
    values = np.array(durations)
    margin = margin_of(values)
    left = np.maximum(values - margin, 0).sum()
    assert 0 <= margin <= values.max()
    assert left == pytest.approx(MISSING * values.sum(), rel=1e-6, abs=1e-9)


def test_a_log_of_complete_sessions_begins_without_those_open_before() -> None:
    starts = np.arange(0.0, 1000.0, 0.5)
    window = choose_window(log_of(starts.tolist(), [10.0] * starts.size))
    assert window.warmup == pytest.approx(9.9) and window.warmup_chosen
    assert window.until == starts[-1]
    assert window.missing == 20 and window.began_before == 0 and not window.short


def test_a_log_written_at_the_end_lacks_the_sessions_open_at_its_end() -> None:
    starts = np.arange(0.0, 1000.0, 0.5)
    seen = (starts + 10.0 >= 100.0) & (starts + 10.0 <= 900.0)
    log = log_of(starts[seen].tolist(), [10.0] * int(seen.sum()), written_at_end=True)
    window = choose_window(log)
    assert window.begin == 100.0  # the first line; all that were open then had begun before
    assert window.warmup == pytest.approx(9.9)
    assert (window.until, window.last) == (790.0, 890.0)  # the last start, a little before 890.1
    assert window.began_before == 20
    assert window.missing == 20


def test_seconds_count_from_the_beginning_of_the_log_and_not_from_an_old_session() -> None:
    month = 2_592_000.0
    starts = np.concatenate([[0.0], month + np.arange(0.0, 1000.0, 0.5)])
    durations = np.concatenate([[month + 100.0], np.full(2000, 10.0)])
    log = log_of(starts.tolist(), durations.tolist(), written_at_end=True)
    window = choose_window(log, warmup=60.0, until=600.0)
    assert (window.begin, window.first, window.last) == (month + 10.0, month + 70.0, month + 610.0)
    assert (window.warmup, window.until, window.sessions) == (60.0, 600.0, 1080)
    result = replay_log(log, policies=["jsq"], servers=2, warmup=60.0, until=600.0)
    assert result["jsq"].times[-1] == 600.0 and result.mean_sessions == pytest.approx(20, rel=0.01)
    with pytest.raises(
        InputError, match=r"must be after the warm-up, which ends at 3,000,000 seconds, not at 600\."
    ):
        choose_window(log, warmup=3e6, until=600.0)


def test_a_burst_before_the_first_line_is_measured_from_its_first_start() -> None:
    log = log_of([0.0, 0.5, 1.0], [10.0, 10.0, 10.0], written_at_end=True)
    window = choose_window(log, warmup=0.0, until=5.0)
    assert (window.begin, window.sessions) == (0.0, 3)


def test_sessions_that_begin_at_once_need_an_end() -> None:
    log = log_of([7.0, 7.0], [1.0, 2.0])
    with pytest.raises(
        InputError, match="begin at the same time: give the seconds to measure after it, with until"
    ):
        choose_window(log, warmup=0.0)
    assert choose_window(log, warmup=0.0, until=2.0).sessions == 2


def test_a_short_log_is_measured_in_its_middle() -> None:
    window = choose_window(log_of([0.0, 1.0, 2.0, 3.0, 4.0], [50.0] * 5))
    assert window.short and window.warmup == 1.0


def test_a_complete_record_needs_no_warm_up() -> None:
    open_then = log_of([0.0, 1.0, 4.0], [5.0] * 3, open_at_start=1)
    empty = log_of([0.5, 1.0, 4.0], [5.0] * 3, format="evenly")
    for window in (choose_window(open_then), choose_window(empty), choose_window(empty, warmup=0.0)):
        assert (window.begin, window.warmup, window.missing) == (0.0, 0.0, 0)


@given(
    sessions=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), min_size=1, max_size=30),
    begin=st.integers(0, 10),
    length=st.integers(1, 15),
)
def test_open_sessions_are_counted(sessions: list[tuple[int, int]], begin: int, length: int) -> None:
    ordered = sorted(sessions)
    starts, durations = (np.array([each[place] for each in ordered], float) for place in (0, 1))
    found = concurrency(starts, durations, begin, begin + length, np.array([begin + 0.5]))
    middles = np.arange(begin + 0.25, begin + length, 0.5)
    counts = [int(((starts <= time) & (starts + durations > time)).sum()) for time in middles]
    assert found.lengths.sum() == pytest.approx(length)
    assert found.mean == pytest.approx(np.mean(counts))
    assert found.highest == max(counts)
    assert found.fullest_if_balanced(4) == pytest.approx(np.mean([-(-count // 4) for count in counts]))
    assert found.quantile(1.0) == max(counts)
    assert found.quantile(0.5) == sorted(counts)[(len(counts) + 1) // 2 - 1]
