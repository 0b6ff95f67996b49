"""Every reader on lines that the real programs wrote, WebSockets included: their durations cover the tunnel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.logs import read_log
from tests.logs.programs import ANSWER_S, HELD_S, Seen, Written, write_logs

CLOCK_S = 0.5  # programs round their times, and some keep them from one event to the next
HTTP = {"envoy": "envoy", "envoy-flush": "envoy", "envoy-json": "envoy-json", "haproxy": "haproxy"}
NGINX = {"nginx": "nginx", "nginx-json": "nginx-json"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_logs(tmp_path_factory.mktemp("programs"))


def check_covers(seen: Seen, held: float, start: float, duration: float, ended: float) -> None:
    assert seen.asked - CLOCK_S <= start <= seen.served + CLOCK_S
    assert duration >= held - CLOCK_S
    assert start + duration <= ended + CLOCK_S


@pytest.mark.parametrize("name", [*HTTP, *NGINX])
def test_a_websocket_and_an_answer(written: Written, name: str) -> None:
    log = read_log(written.logs[name])
    client = name.removesuffix("-json") if name.startswith("nginx") else name
    assert log.format == {**HTTP, **NGINX}[name]
    assert (log.skipped, log.bad_lines) == (0, ())
    assert len(log) == 2
    assert log.has_clock
    assert log.written_at_end
    assert log.utc_offset_known == (name != "haproxy")
    starts = log.origin + log.starts
    check_covers(written.websockets[client], HELD_S, starts[0], log.durations[0], written.ended)
    answer_s = 0.0 if name == "haproxy" else ANSWER_S  # its clock may stop during an answer
    check_covers(written.answers[client], answer_s, starts[1], log.durations[1], written.ended)
    assert log.server_names == ("chat/s1" if name == "haproxy" else written.pool,)
    assert log.servers is not None
    assert list(log.servers) == [0, 0]
    assert any("reached no server" in note for note in log.notes)


def test_lines_of_a_flush_interval_are_one_session(written: Written) -> None:
    for name in ("envoy-flush", "envoy-json"):
        log = read_log(written.logs[name])
        assert log.lines >= 6  # three starts and three ends, and what a quick machine writes in between
        assert log.still_open == 0
        assert any("flush interval" in note for note in log.notes)
    assert read_log(written.logs["envoy"]).lines == 3


@pytest.mark.parametrize("name", ["envoy-tcp", "haproxy-tcp"])
def test_a_tcp_connection(written: Written, name: str) -> None:
    log = read_log(written.logs[name])
    assert len(log) == log.lines == 1
    check_covers(written.websockets[name], HELD_S, log.origin, float(log.durations[0]), written.ended)


def test_logasap_has_no_duration(written: Written) -> None:
    with pytest.raises(InputError, match="logasap"):
        read_log(written.logs["haproxy-asap"])


def test_combined_is_refused_with_the_line_to_add(written: Written) -> None:
    with pytest.raises(InputError, match=r"log_format evenly '.*request_time=\$request_time"):
        read_log(written.logs["nginx-combined"])


@pytest.mark.parametrize("name", ["nginx-timed", "nginx-keyed"])
def test_combined_with_the_request_time(written: Written, name: str) -> None:
    exact, log = read_log(written.logs["nginx"]), read_log(written.logs[name])
    assert log.format == "nginx-combined"
    assert (log.lines, log.skipped) == (3, 0)
    assert log.server_names == ((written.pool,) if name == "nginx-keyed" else ())
    # Without servers, all three lines count. nginx looks at its clock anew for each log.
    assert sorted(log.durations)[-2:] == pytest.approx(sorted(exact.durations), abs=CLOCK_S)
    ends = [float(np.max(each.origin + each.starts + each.durations)) for each in (exact, log)]
    assert -CLOCK_S <= ends[0] - ends[1] <= 1 + CLOCK_S


def test_a_log_cut_while_sessions_are_open(written: Written, tmp_path: Path) -> None:
    """Without the line of its end, a session of a flush interval lasts until the cut."""
    lines = written.logs["envoy-json"].read_text().splitlines(keepends=True)
    cut = tmp_path / "cut.log"
    cut.write_text("".join(line for line in lines if "DownstreamEnd" not in line or '"duration":0' in line))
    log = read_log(cut)
    assert log.still_open >= 1
    assert np.all(log.durations >= 0)
