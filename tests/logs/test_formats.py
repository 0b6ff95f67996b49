"""Each format on a few real lines: what is a session, what is left out, what is bad and why."""

from __future__ import annotations

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.logs import FORMATS, read_log
from evenly.logs.detect import make_parser
from tests.logs import support
from tests.logs.support import Write

NOVEMBER = 1794960000.0 - 1794960000.0 % 86400  # 2026-11-18T00:00:00Z
AT = 49 * 60.0  # seconds after midnight at which the programs ran


def test_envoy(write: Write) -> None:
    log = read_log(write(support.ENVOY))
    assert (log.format, log.lines, log.skipped) == ("envoy", 5, 0)
    assert log.origin == pytest.approx(NOVEMBER + AT + 24.342, abs=1e-6)
    assert log.starts == pytest.approx([0, 3.302], abs=1e-6)
    assert list(log.durations) == [2.302, 0.301]
    assert log.server_names == ("127.0.0.1:35451", "127.0.0.1:35452")
    assert log.servers is not None
    assert list(log.servers) == [0, 1]
    assert log.written_at_end
    assert log.has_clock
    assert log.utc_offset_known
    assert len(log.notes) == 2
    assert log.notes[0].startswith("2 lines are about sessions that other lines are about too")
    assert log.notes[1] == "1 line is a request that reached no server; it is left out."


def test_envoy_of_istio_has_more_fields(write: Write) -> None:
    line = (
        '[2026-11-18T00:49:24.342Z] "GET /ws HTTP/1.1" 101 - via_upstream - "-" 8 19 2302 - "-" "agent" '
        '"040498e8" "chat" "10.0.0.7:80" outbound|80||chat 10.0.0.1:1 10.0.0.2:2 10.0.0.3:3 - default\n'
    )
    log = read_log(write(line))
    assert list(log.durations) == [2.302]
    assert log.server_names == ("10.0.0.7:80",)


def test_envoy_of_tcp(write: Write) -> None:
    log = read_log(write(support.ENVOY_TCP))
    assert list(log.durations) == [0.603]
    assert log.notes == ()


def test_a_header_cannot_pass_for_the_fields_of_envoy(write: Write) -> None:
    agent = 'x" "id" "host" "6.6.6.6:6'
    line = support.ENVOY.splitlines()[2].replace("Python/3.11 websockets/17.4", agent)
    assert read_log(write(line + "\n")).server_names == ("127.0.0.1:35451",)


def test_repeats_without_an_id_are_pointed_out(write: Write) -> None:
    twice = support.ENVOY_TCP + support.ENVOY_TCP.replace(" 603 ", " 1603 ")
    log = read_log(write(twice))
    assert len(log) == 2
    assert "%STREAM_ID%" in log.notes[0]


def test_envoy_json(write: Write) -> None:
    log = read_log(write(support.ENVOY_JSON))
    assert (log.format, log.lines, len(log), log.still_open) == ("envoy-json", 5, 1, 0)
    assert list(log.durations) == [2.302]


def test_a_session_without_its_last_line_is_open_until_the_cut(write: Write) -> None:
    lines = support.ENVOY_JSON.splitlines(keepends=True)
    log = read_log(write("".join([*lines[:2], *lines[3:]])))
    assert (len(log), log.still_open) == (1, 1)
    assert log.durations[0] == pytest.approx(31.255 - 27.950)


def test_haproxy(write: Write) -> None:
    log = read_log(write(support.HAPROXY))
    assert (log.format, log.lines, log.skipped) == ("haproxy", 7, 3)
    assert log.origin == pytest.approx(NOVEMBER + AT + 31.557, abs=1e-6)
    assert log.starts == pytest.approx([0, 2.43], abs=1e-6)
    assert list(log.durations) == [0.605, 0.602]
    assert log.server_names == ("chat/s1", "bytes/s2")
    assert not log.utc_offset_known
    reasons = [bad.reason for bad in log.bad_lines]
    assert "logasap" in reasons[0]
    assert "total time is -1" in reasons[1]
    assert reasons[2] == "it is not a line of HAProxy's httplog or tcplog"
    assert [bad.number for bad in log.bad_lines] == [5, 6, 7]


@pytest.mark.parametrize("date", ["18/Nix/2026:00:49:31.557", "38/Nov/2026:00:49:31.557"])
def test_a_date_that_is_none(write: Write, date: str) -> None:
    bad = support.HAPROXY.splitlines()[0].replace("18/Nov/2026:00:49:31.557", date)
    log = read_log(write(support.HAPROXY + bad + "\n"))
    assert log.skipped == 4


def test_nginx(write: Write) -> None:
    log = read_log(write(support.NGINX))
    assert (log.format, log.lines, log.skipped) == ("nginx", 3, 0)
    assert log.origin == pytest.approx(1794962973.071 - 0.606, abs=1e-6)
    assert log.starts == pytest.approx([0, 1794962973.075 - 1794962972.465], abs=1e-6)
    assert list(log.durations) == [0.606, 0.308]
    assert log.server_names == ("127.0.0.1:35451", "127.0.0.1:35452")


def test_the_name_of_an_nginx_upstream_group_is_no_server(write: Write) -> None:
    """nginx writes it when all servers of the group are down."""
    line = '127.0.0.1 "GET /" 502 msec=1794962973.500 request_time=0.100 upstream_addr="%s"\n'
    names = ["dead", "127.0.0.1:19997, dead", "unix:/run/a.sock", "[::1]:80"]
    log = read_log(write(support.NGINX + "".join(line % name for name in names)))
    assert sorted(log.server_names) == ["127.0.0.1:35451", "127.0.0.1:35452", "[::1]:80", "unix:/run/a.sock"]
    assert log.notes == ("3 lines are requests that reached no server; they are left out.",)


def test_a_header_cannot_pass_for_the_fields_of_nginx(write: Write) -> None:
    forged = 'msec=1.000 request_time=9.000 upstream_addr="6.6.6.6:6"'
    log = read_log(write(support.NGINX.replace("GET /ws", f"GET /{forged}")))
    assert log.server_names == ("127.0.0.1:35451", "127.0.0.1:35452")


def test_nginx_combined(write: Write) -> None:
    log = read_log(write(support.INGRESS))
    assert (log.format, log.lines, log.skipped, log.written_at_end) == ("nginx-combined", 3, 0, True)
    assert log.origin == pytest.approx(NOVEMBER + AT + 33 - 0.606, abs=1e-6)
    assert log.starts == pytest.approx([0, 2 - 2.308 + 0.606], abs=1e-6)
    assert list(log.durations) == [0.606, 2.308]
    assert log.server_names == ("10.0.0.7:8080", "10.0.0.8:8080")
    assert log.utc_offset_known
    assert any("whole seconds" in note for note in log.notes)
    assert any("reached no server" in note for note in log.notes)


TAILS = [
    (" 0.606", ()),
    (" 0.605 0.606 .", ()),  # the request covers what happens upstream
    (' "1.2.3.4" request_time=0.606', ()),
    (" rt=0.606 uct=0.000 uht=0.001 urt=0.605 ups=10.0.0.7:80", ("10.0.0.7:80",)),
    (' "-" "host" rt=0.606 ua="10.0.0.6:80, 10.0.0.7:80" us="502, 200" ut="0.001, 0.604"', ("10.0.0.7:80",)),
    (" 0.606 0.605 unix:/run/a.sock", ("unix:/run/a.sock",)),
    (' 0.606 "9999.000" "rt=9.000" x="rt=9.000" host="6.6.6.6:6" ua="Mozilla/5.0 (X11; rv:109.0)"', ()),
    (' "9.000" "0.606"', ()),  # the last in quotes, if most lines have that
]


@pytest.mark.parametrize(("tail", "servers"), TAILS)
def test_the_request_time_after_the_combined_format(write: Write, tail: str, servers: tuple[str, ...]) -> None:
    """Named or not; what a client sends, in its quotes, is neither a time nor a server."""
    forged = "Mozilla/5.0 rt=9.000 6.6.6.6:6"
    log = read_log(write(support.COMBINED.replace("Python/3.11", forged).rstrip() + tail + "\n"))
    assert (list(log.durations), log.server_names) == ([0.606], servers)
    assert any("names a server" in note for note in log.notes) == (not servers)


@pytest.mark.parametrize("tail", ["", " 123456", ' "9.000" "-"', ' x="rt=9.000" urt=0.606'])
def test_without_a_request_time_the_refusal_names_it(write: Write, tail: str) -> None:
    with pytest.raises(InputError, match=r"it has no request time\. .* \$request_time is read, as 0.606, .*msec="):
        read_log(write(support.COMBINED.rstrip() + tail + "\n"))


@pytest.mark.parametrize(
    "tail", [" 0.6s", " 606ms", " 0,606", ' "0.606s"', " rt=0.6s", ' rt="-"', " urt=1.0 0.606123"]
)
def test_a_time_that_nginx_would_write_otherwise_is_named(write: Write, tail: str) -> None:
    log = read_log(write(support.INGRESS + support.COMBINED.rstrip() + tail + "\n"))
    value = tail.rsplit(maxsplit=1)[-1].removeprefix("rt=").strip('"')
    reason = f"its time '{value}' is not as nginx writes it: seconds with three decimals, 0.606"
    assert [bad.reason for bad in log.bad_lines] == [reason]


def test_a_combined_line_without_a_request_time_is_bad(write: Write) -> None:
    log = read_log(write(support.INGRESS + support.COMBINED))
    assert (log.skipped, log.bad_lines[0].reason) == (1, "it has no request time")


@pytest.mark.parametrize("before", [60, 20_000])  # more than the lines that tell the format, and than one read
def test_request_times_that_come_later(write: Write, before: int) -> None:
    log = read_log(write(before * support.COMBINED + 200 * support.INGRESS))
    assert (log.format, log.lines, log.skipped, len(log)) == ("nginx-combined", before + 600, before, 400)


def test_msec_and_the_request_time_that_come_later(write: Write) -> None:
    log = read_log(write(60 * support.COMBINED + 20 * support.NGINX))
    assert (log.format, log.skipped, len(log)) == ("nginx-combined", 60, 40)
    assert log.origin == pytest.approx(1794962973.071 - 0.606, abs=1e-6)


def test_lines_without_a_session_are_read_up_to_a_bound(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenly.logs.read._MAX_WITHOUT", 20_000)
    path = write(60_000 * support.COMBINED + support.INGRESS)
    with pytest.raises(InputError, match="it has no request time"):
        read_log(path)
    assert len(read_log(path, format="nginx-combined")) == 2


@pytest.mark.parametrize(
    "tail", ["{} 0.606", 'msec={} request_time=0.606 "agent"', "0.606 {}", '{} "-" "agent" 0.606']
)
def test_msec_beside_the_request_time_is_the_end(write: Write, tail: str) -> None:
    head = '127.0.0.1 [18/Nov/2026:00:49:33 +0000] "GET / HTTP/1.1" 200 '
    ends = [1794962973.071, 1794962973.383]
    log = read_log(write("".join(f"{head}{tail.format(f'{end:.3f}')}\n" for end in ends)))
    assert log.format == "nginx-combined"
    assert log.origin + log.starts + log.durations == pytest.approx(ends, abs=1e-6)
    assert [note for note in log.notes if "whole seconds" in note] == []


def test_one_client_cannot_send_a_request_time_in_quotes(write: Write) -> None:
    main = support.COMBINED.rstrip() + ' "{}"\n'  # X-Forwarded-For, as in nginx's format `main`
    with pytest.raises(InputError, match="it has no request time"):
        read_log(write(3 * main.format("-") + main.format("0.606")))


def test_nginx_json(write: Write) -> None:
    log = read_log(write(support.NGINX_JSON))
    assert (log.format, len(log)) == ("nginx-json", 2)
    assert list(log.durations) == [0.606, 0.308]


@pytest.mark.parametrize(
    "time", ['"time_iso8601":"2026-11-18T01:49:33+01:00"', '"time_local":"18/Nov/2026:01:49:33 +0100"']
)
def test_nginx_json_in_whole_seconds(write: Write, time: str) -> None:
    lines = f'{{{time},"request_time":0.606}}\n{{{time},"request_time":"0.308","upstream_addr":"10.0.0.7:80"}}\n'
    log = read_log(write(lines))
    assert (log.format, log.utc_offset_known) == ("nginx-json", True)
    assert log.origin + log.starts + log.durations == pytest.approx([NOVEMBER + AT + 33])
    assert any("whole seconds" in note for note in log.notes)


def test_nginx_json_with_both_times_has_exact_ends(write: Write) -> None:
    line = '{"time_local":"18/Nov/2026:01:49:33 +0100","msec":1794962973.071,"request_time":0.606}\n'
    log = read_log(write(line))
    assert log.origin == pytest.approx(1794962973.071 - 0.606, abs=1e-6)
    assert not any("whole seconds" in note for note in log.notes)


def test_a_server_that_json_does_not_name_is_pointed_out(write: Write) -> None:
    log = read_log(write('{"msec":1794962973.071,"request_time":0.606}\n'))
    assert log.notes == ("No line names a server: log $upstream_addr too, and what really happened is compared.",)


@pytest.mark.parametrize("time", ["7", '"18/Nov/2026"', '"18/Nix/2026:01:49:33 +0100"', "null", '"x"'])
def test_nginx_json_with_a_time_that_is_none(write: Write, time: str) -> None:
    log = read_log(write(support.NGINX_JSON + f'{{"time_local":{time},"request_time":0.606}}\n'))
    assert [bad.reason for bad in log.bad_lines] == ["its start is not a time"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{nonsense", "it is not JSON"),
        ('{"request_time":1}', "it has no key msec, time_iso8601 or time_local"),
        ("[1]", "it is not a JSON object"),
        ('{"msec":1}', "it has no key request_time"),
    ],
)
def test_bad_json(write: Write, line: str, reason: str) -> None:
    log = read_log(write(support.NGINX_JSON + line + "\n" + support.NGINX_JSON))
    assert (log.skipped, len(log)) == (1, 4)
    assert log.bad_lines[0].reason == reason
    assert log.bad_lines[0].number == 4


@pytest.mark.parametrize(
    ("good", "line"),
    [
        (support.NGINX_JSON, '{"msec":1794962973.071,"request_time":HUGE}'),
        (support.NGINX_JSON, '{"msec":HUGE,"request_time":1}'),
        (support.ENVOY_JSON, '{"start_time":"2026-11-18T00:49:27.950Z","duration":HUGE}'),
        (support.ENVOY_JSON, '{"start_time":[1],"duration":5,"stream_id":"0c57"}'),
        (support.ENVOY_JSON, '{"start_time":{},"duration":[5],"stream_id":[1]}'),
    ],
)
def test_json_with_values_of_another_kind_is_a_bad_line(write: Write, good: str, line: str) -> None:
    log = read_log(write(good + line.replace("HUGE", 400 * "9") + "\n"))  # no float holds that
    assert (log.lines, log.skipped, len(log)) == (good.count("\n") + 1, 1, len(read_log(write(good))))


def test_json_after_other_lines(write: Write) -> None:
    log = read_log(write("[info] starting\n" + support.ENVOY_JSON))
    assert (log.format, len(log), log.skipped) == ("envoy-json", 1, 1)


def test_a_log_that_names_no_server_keeps_all(write: Write) -> None:
    log = read_log(write(support.NGINX.splitlines(keepends=True)[1]))
    assert len(log) == 1
    assert log.servers is None


def test_azure_functions(write: Write) -> None:
    log = read_log(write(support.AZURE))
    assert (log.format, len(log), log.has_clock, log.written_at_end) == ("azure-functions", 2, False, True)
    assert list(log.durations) == [42.356, 0.134]
    assert log.starts == pytest.approx([0, 5160.142570018768 - 0.134 + 36.856])  # the first began before the trace
    assert log.origin == 0.0
    assert "before the log's time 0" in log.notes[0]


def test_burstgpt(write: Write) -> None:
    log = read_log(write(support.BURSTGPT))
    assert (log.format, log.has_clock, log.written_at_end) == ("burstgpt", False, False)
    assert list(log.starts) == [19440110.0, 19440161.0]
    assert list(log.durations) == [43, 2]


def test_burstgpt_without_elapsed_time(write: Write) -> None:
    with pytest.raises(InputError, match="has no column 'Elapsed time'"):
        read_log(
            write("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,1,2,3,x\n")
        )


def test_every_format_has_a_parser() -> None:
    for name in FORMATS:
        if name != "parquet":
            assert make_parser(name, "log").format == name


def test_detection_is_what_format_says(write: Write) -> None:
    texts = (support.ENVOY, support.ENVOY_JSON, support.HAPROXY, support.NGINX, support.INGRESS, support.BURSTGPT)
    for text in texts:
        path = write(text)
        found = read_log(path)
        told = read_log(path, format=found.format)
        assert np.array_equal(found.starts, told.starts)
        assert found.lines == told.lines
