"""Our own log: what is written is what is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly.errors import InputError
from evenly.logs import read_log
from evenly.logs.record import record_header, record_line
from tests.logs.support import Write

SESSIONS = st.lists(
    st.tuples(
        st.floats(0, 1e8),
        st.floats(0, 1e8),
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=10).filter(
            lambda name: name == name.strip() == " ".join(name.split())
        ),
    ),
    min_size=1,
    max_size=20,
)


@given(SESSIONS)
@settings(max_examples=40)
def test_a_simulated_log_is_read_exactly(
    tmp_path_factory: pytest.TempPathFactory, sessions: list[tuple[float, float, str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "record.csv"
    path.write_text(
        record_header(clock="none") + "".join(record_line(*session) for session in sessions), encoding="utf-8"
    )
    log = read_log(path)
    assert (log.format, log.skipped, log.has_clock) == ("evenly", 0, False)
    assert log.servers is not None
    found = [
        (start, duration, log.server_names[server])
        for start, duration, server in zip(
            log.starts.tolist(), log.durations.tolist(), log.servers.tolist(), strict=True
        )
    ]
    assert found == sorted(sessions, key=lambda session: session[0])


def test_a_live_log(write: Write) -> None:
    log = read_log(
        write(
            record_header()
            + record_line(1767225600.25, 1.5, "a:1")
            + record_line(1767225600.0, 9.0, "b:1", still_open=True)
        )
    )
    assert (log.has_clock, log.written_at_end, log.still_open, log.utc_offset_known) == (True, True, 1, True)
    assert (log.origin, list(log.starts), list(log.durations)) == (1767225600, [0, 0.25], [9, 1.5])
    assert log.server_names == ("a:1", "b:1")


def test_rotated_files_are_read_oldest_first(tmp_path: Path) -> None:
    for number, name in enumerate(["log.2", "log.1", "log"]):
        bad = "broken\n" if name == "log.1" else ""
        (tmp_path / name).write_text(record_header() + bad + record_line(1767225600.0, float(number), "a"))
    (tmp_path / "log.4").write_text("not one of them")  # there is no log.3
    log = read_log(tmp_path / "log")
    assert list(log.durations) == [0, 1, 2]
    assert log.notes[0].startswith("3 files were read")
    assert [(bad.number, bad.reason) for bad in log.bad_lines] == [(3, "it has 1 fields, not 4 (in log.1)")]


def test_files_that_were_not_rotated_are_left_out(tmp_path: Path) -> None:
    live, simulated = record_header(), record_header(clock="none")
    path, beside = tmp_path / "log", tmp_path / "log.1"
    for header, other in [(simulated, simulated), (simulated, live), (live, simulated), (live, "a note\n")]:
        path.write_text(header + record_line(1767225600.0, 1.0, "a"))
        beside.write_text(other + record_line(1767225600.0, 2.0, "a"))
        log = read_log(path)
        assert (list(log.durations), log.skipped) == ([1], 0)
        assert log.notes == (
            (f"{beside} is left out: its first line is not {live.splitlines()[0]!r}.",) * (header == live)
        )


def test_files_put_one_after_the_other(write: Write) -> None:
    one = record_header() + record_line(1767225600.0, 1.0, "a")
    log = read_log(write(one + one))
    assert (len(log), log.skipped) == (2, 0)


def test_a_header_alone(write: Write) -> None:
    with pytest.raises(InputError, match="is empty but for its header"):
        read_log(write(record_header()))
