"""Tables: columns, units, times, the order of lines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.logs import read_log
from tests.logs.support import Write, lines


def test_seconds_since_a_beginning_stay_exact(write: Write) -> None:
    starts, durations = [0.1, 0.30000000000000004, 7.000000000000001], [1 / 3, 2e-9, 5.0]
    log = read_log(write(lines(("start", "duration"), *zip(starts, durations, strict=True))))
    assert list(log.starts) == starts
    assert list(log.durations) == durations
    assert (log.origin, log.has_clock, log.utc_offset_known, log.servers) == (0.0, False, False, None)


def test_unix_seconds_are_a_wall_clock(write: Write) -> None:
    log = read_log(
        write("start,end,server\n1767225700,1767225760,b\n1767225600,1767225700.5,a\n1767225700,1767225700,\n")
    )
    assert log.origin == 1767225600
    assert list(log.starts) == [0, 100, 100]
    assert list(log.durations) == [100.5, 60, 0]  # equal starts keep the order of the log
    assert log.server_names == ("b", "a")
    assert log.servers is not None
    assert list(log.servers) == [1, 0, -1]
    assert log.has_clock


@pytest.mark.parametrize(
    ("first", "second", "known"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01.500Z", True),
        ("2026-01-01T02:00:00+02:00", "2026-01-01 00:00:01.5Z", True),
        ("2026-01-01 00:00:00", "2026-01-01T00:00:01.500000", False),
        ('"2026-01-01T00:00:00Z"', "2026-01-01T00:00:01.5", False),
    ],
)
def test_iso_times(write: Write, first: str, second: str, known: bool) -> None:
    log = read_log(write(f"start,duration\n{first},1\n{second},2\n"))
    assert log.origin == datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    assert list(log.starts) == [0, 1.5]
    assert log.utc_offset_known is known


def test_iso_ends_and_durations_in_ms(write: Write) -> None:
    log = read_log(write("end,duration_ms\n2026-01-01T00:00:10Z,2500\n"))
    assert log.origin == datetime(2026, 1, 1, tzinfo=UTC).timestamp() + 7.5
    assert list(log.durations) == [2.5]


@pytest.mark.parametrize(
    ("header", "row"),
    [("start_ms,duration_ms", "1767225600500,1500"), ("start_us,duration_s", "1767225600500000,1.5"),
     ("Start_S,END_ns", "1767225600.5,1767225602000000000")],
)  # fmt: skip
def test_units_in_names(write: Write, header: str, row: str) -> None:
    log = read_log(write(f"{header}\n{row}\n"))
    assert log.origin == 1767225600.5
    assert list(log.durations) == [1.5]


def test_one_unit_for_all(write: Write) -> None:
    log = read_log(write("start,duration\n1767225600500,1500\n"), unit="ms")
    assert (log.origin, float(log.durations[0])) == (1767225600.5, 1.5)


def test_columns_by_name(write: Write) -> None:
    path = write("id,began,took_ms,host\n7,1767225600,1500,a\n")
    log = read_log(path, columns={"start": "began", "duration": "took_ms", "server": "host"}, unit="s")
    assert (log.origin, float(log.durations[0]), log.server_names) == (1767225600, 1.5, ("a",))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "start,duration_ms\n5,1\n",
            {},
            "duration_ms is in ms, but start names no unit: call it start_ms or start_s",
        ),
        ("start,duration\n1767225600000,5\n", {}, "If it is in ms, call the column start_ms, or give --unit ms"),
        ("start,duration\n1767225600000000000,5\n", {}, "If it is in ns"),
        ("start,server\n5,1\n", {}, "must have a column start and a column duration or end"),
        ("start,start_ms,duration\n1,2,3\n", {}, "has two columns for start"),
        ("a,b\n1,2\n", {"format": "csv"}, "must have a column start"),
        ("a,b\n1,2\n", {"format": "csv", "columns": {"start": "c"}}, "has no column 'c'; its columns are 'a, b'"),
        ("a,b\n1,2\n", {"format": "csv", "columns": {"begin": "a"}}, "can be start, duration, end or server"),
        ("start,duration\n1,2\n", {"unit": "hours"}, "must be one of s, ms, us, ns, not 'hours'"),
        ("start,duration\n1,2\n", {"format": "nginx", "unit": "s"}, "not for nginx"),
    ],
)
def test_what_is_ambiguous_is_refused(write: Write, text: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_log(write(text), **options)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_lines_are_counted_and_the_first_three_shown(write: Write) -> None:
    text = "start,duration\n1,2\nx,2\n3,-1\n4,y\n5\n6,1e12\n7,nan\n\n8,2\nstart,duration\n# comment\n9,1\n"
    log = read_log(write(text))
    assert list(log.starts) == [1, 8, 9]
    assert (log.lines, log.skipped) == (9, 6)
    assert [(bad.number, bad.text, bad.reason) for bad in log.bad_lines] == [
        (3, "x,2", "its start is not a time"),
        (4, "3,-1", "it ends before it starts"),
        (5, "4,y", "its duration is not a number"),
    ]


def test_bad_lines_are_counted_across_blocks(write: Write) -> None:
    """Blocks of a megabyte end within lines; numbers and counts go on."""
    rows = [f"{at},{at % 7}.25,server-with-a-long-name-{at % 3}" for at in range(60_000)]
    rows[50_000] = "broken"
    log = read_log(write("start,duration,server\n" + "\n".join(rows)))
    assert (len(log), log.skipped, log.bad_lines[0].number) == (59_999, 1, 50_002)
    assert np.array_equal(log.starts, [at for at in range(60_000) if at != 50_000])


@pytest.mark.parametrize("bad", ["oops,5", ",5", "1,-", "1,inf", "inf,1", "2026-13-01T00:00,5"])
def test_a_bad_first_line_is_a_bad_line(write: Write, bad: str) -> None:
    good = ["1767225600,4.5", "1767225601,3", "1767225602,3"]
    log = read_log(write("\n".join(["start,duration", bad, *good])))
    assert (len(log), log.skipped, list(log.durations)) == (3, 1, [4.5, 3, 3])
    assert log.bad_lines[0].number == 2


@pytest.mark.parametrize("bad", ["oops,5", "1767225600000,5", "2026-01-01T00:00:00Z,-"])
def test_a_bad_first_line_before_iso_times(write: Write, bad: str) -> None:
    rows = [bad, *(f"2026-01-01T00:00:0{second}Z,2" for second in range(4))]
    log = read_log(write("\n".join(["start,duration", *rows])))
    assert (list(log.starts), log.skipped, log.utc_offset_known) == ([0, 1, 2, 3], 1, True)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bad", ["-inf,inf", "nan,inf", "-1e308,1e308"])
def test_infinite_times_are_bad_without_a_warning(write: Write, bad: str) -> None:
    log = read_log(write(f"start,end\n{bad}\n1,2\n"))
    assert (list(log.durations), log.bad_lines[0].reason) == ([1], "its start is not a time")


def test_units_are_checked_where_the_good_lines_begin(write: Write) -> None:
    with pytest.raises(InputError, match="names no unit"):
        read_log(write("start_ms,duration\nx,y\n5,1\n"))
    with pytest.raises(InputError, match=r"start is 1767225600000, .* If it is in ms"):
        read_log(write("start,duration\nx,y\n1767225600000,1\n1767225600001,1\n"))


def test_a_block_that_begins_with_a_bad_line(write: Write) -> None:
    """A block is about a megabyte; the second one begins within the bad line."""
    rows = [f"{at},1.5,{90 * 's'}" for at in range(30_000)]
    text = "start,duration,server\n" + "\n".join(rows)
    place = text.count("\n", 0, 2**20) - 1
    rows[place] = rows[place].replace("1.5", "inf").replace(f"{place},", "?" * len(f"{place}") + ",")
    log = read_log(write("start,duration,server\n" + "\n".join(rows)))
    assert (len(log), log.skipped, log.bad_lines[0].number) == (29_999, 1, place + 2)


def test_a_wall_clock_does_not_jump_to_1970(write: Write) -> None:
    log = read_log(write("start,duration\n1767225600,1\n0,5\n1767225601,1\n"))
    assert (len(log), log.skipped) == (2, 1)
    log = read_log(write("start,duration\n0,5\n1767225600,1\n1767225601,1\n"))  # wherever the odd one is
    assert (len(log), log.skipped, log.has_clock, log.origin) == (2, 1, True, 1767225600)
    assert log.bad_lines[0].reason == "its start is not between 2001 and 5138, as those of other lines are"


def test_seconds_since_a_beginning_do_not_jump_to_a_wall_clock(write: Write) -> None:
    for rows in ("0,5\n1,1\n1767225600,1\n", "1767225600,1\n0,5\n1,1\n"):
        log = read_log(write(f"start,duration\n{rows}"))
        assert (list(log.starts), log.skipped, log.has_clock) == ([0, 1], 1, False)
        assert log.bad_lines[0].reason == "its start is not between -1e9 and 1e9 seconds"


def test_lines_in_the_order_of_ends_were_written_at_the_end(write: Write) -> None:
    assert read_log(write("start,duration\n5,1\n1,6\n7,1\n")).written_at_end
    assert not read_log(write("start,duration\n1,6\n5,1\n7,1\n")).written_at_end
    assert not read_log(write("start,duration\n5,9\n1,6\n7,1\n")).written_at_end


def test_quoted_fields(write: Write) -> None:
    log = read_log(write('start,duration,server\n1,2,"a, b"\n2,2,"c""d"\n3,2,"broken\n'))
    assert log.server_names == ("a, b", 'c"d')
    assert (log.skipped, log.bad_lines[0].reason) == (1, "it is not CSV")


def test_byte_order_mark_and_carriage_returns(write: Write) -> None:
    log = read_log(write(b"\xef\xbb\xbfstart,duration\r\n1,2\r\n3,4\r\n"))
    assert list(log.durations) == [2, 4]


def parquet(tmp_path: Path, **columns: object) -> Path:
    import polars

    path = tmp_path / "log.parquet"
    polars.DataFrame(columns).write_parquet(path)
    return path


def test_parquet(tmp_path: Path) -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    path = parquet(
        tmp_path,
        start=[began + timedelta(seconds=2), began, None, began],
        duration=[timedelta(seconds=1.5), timedelta(seconds=2), timedelta(seconds=1), -timedelta(seconds=1)],
        server=["a", "b", "a", None],
    )
    log = read_log(path)
    assert (log.format, log.lines, log.skipped) == ("parquet", 4, 2)
    assert (log.origin, list(log.starts), list(log.durations)) == (began.timestamp(), [0, 2], [2, 1.5])
    assert log.server_names == ("a", "b")
    assert log.utc_offset_known
    assert [bad.number for bad in log.bad_lines] == [3, 4]


def test_parquet_with_servers_by_number(tmp_path: Path) -> None:
    log = read_log(parquet(tmp_path, start=[1, 2, 3], duration=[1, 1, 1], server=[0, 1, None]))
    assert log.server_names == ("0", "1")
    assert log.servers is not None
    assert list(log.servers) == [0, 1, -1]


@pytest.mark.parametrize(
    "starts", [[None, 1.0, 2.0], [float("inf"), 1.0, 2.0], ["x", "1", "2"], [None, "2026-01-01", "2026-01-02"]]
)
def test_a_bad_first_row_of_parquet_is_a_bad_row(tmp_path: Path, starts: list[object]) -> None:
    log = read_log(parquet(tmp_path, start=starts, duration=[1.0, 2.0, 3.0]))
    assert (list(log.durations), log.skipped, log.bad_lines[0].number) == ([2, 3], 1, 1)


def test_parquet_text_needs_units_like_numbers(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="names no unit"):
        read_log(parquet(tmp_path, start=["5"], duration_ms=[1]))


def test_parquet_numbers_need_units_like_csv(tmp_path: Path) -> None:
    log = read_log(parquet(tmp_path, start_ms=[1767225600500], end_ms=[1767225602000]))
    assert (log.origin, list(log.durations)) == (1767225600.5, [1.5])
    with pytest.raises(InputError, match="names no unit"):
        read_log(parquet(tmp_path, start=[5], duration_ms=[1]))
    with pytest.raises(InputError, match="--unit ms"):
        read_log(parquet(tmp_path, start=[1767225600500], duration=[1]))
    naive = read_log(parquet(tmp_path, start=["2026-01-01T00:00:00"], duration_ms=[250]))
    assert (naive.utc_offset_known, list(naive.durations)) == (False, [0.25])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1]}, "must have a column start"),
        ({"start": [[1]], "duration": [1]}, "must hold times or numbers"),
        ({"start": [1.0], "duration": [-1.0]}, "None of the 1 rows"),
    ],
)
def test_bad_parquet(tmp_path: Path, columns: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_log(parquet(tmp_path, **columns))


def test_damaged_parquet(tmp_path: Path) -> None:
    path = parquet(tmp_path, start=[1.0], duration=[1.0])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"^Cannot read .*log\.parquet: ") as caught:
        read_log(path)
    assert "\n" not in str(caught.value)
