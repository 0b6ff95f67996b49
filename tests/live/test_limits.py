"""How open files and memory are divided, and how refusals are counted."""

from __future__ import annotations

import json
import os
from io import StringIO
from pathlib import Path

import pytest

from evenly.errors import InputError
from evenly.live import processes
from evenly.live.envoy.admin_client import BadResponseError
from evenly.live.envoy.limits import derive_limits, read_limits
from evenly.live.envoy.refusals import RECENT_S, Refusals, RefusalTally, parse_refusals
from evenly.live.log import Log

GIB = 2**30


@pytest.mark.parametrize(("files", "pools"), [(2900, 1000), (20_000, 1), (10**9, 1000)])
def test_everything_fits_into_the_open_files(files: int, pools: int) -> None:
    limits = derive_limits(files=files, memory=4 * GIB, pools=pools, processors=4)
    for_pools = max(2 * pools, min(10 * pools, files // 4))
    connections = limits.pool_connections + limits.new_connections
    assert limits.clients + connections + for_pools < 0.97 * files
    assert limits.sessions + limits.connecting <= limits.new_connections < limits.pool_connections
    assert limits.connecting >= 80
    assert 100 <= limits.clients == limits.sessions <= 10**6


def test_the_threads_of_a_large_machine_leave_files_for_sessions() -> None:
    large, small = (derive_limits(files=1200, memory=4 * GIB, pools=3, processors=n) for n in (192, 2))
    assert large == small
    assert large.threads == 2


def test_the_figures_of_the_reference() -> None:
    """docs/reference/live.md has them."""
    limits = derive_limits(files=20_000, memory=16 * GIB, pools=10, processors=4)
    assert (limits.clients, limits.sessions, limits.connecting) == (5262, 5262, 1004)
    assert (limits.pool_connections, limits.new_connections, limits.retry_body) == (7270, 6266, 51_013)


@pytest.mark.parametrize(("files", "memory"), [(10**6, GIB // 8), (750, 1024 * GIB)])
def test_retry_buffers_fit_into_the_memory(files: int, memory: int) -> None:
    limits = derive_limits(files=files, memory=memory)
    assert limits.heap == memory // 2
    assert limits.retry_body * 2 * limits.sessions <= min(limits.heap // 8, 2**29)
    assert limits.retry_body <= 2**20


def test_too_few_open_files_are_rejected() -> None:
    derive_limits(files=766, pools=8)
    with pytest.raises(InputError, match=r"must be at least 768, not 766: raise it with ulimit -n\."):
        derive_limits(files=766, pools=9)
    with pytest.raises(InputError, match="open-files must be a whole number from 750 to"):
        read_limits(open_files="many", memory_mib=None, pools=0)
    with pytest.raises(InputError, match="memory-mib must be a whole number from 128 to"):
        read_limits(open_files=None, memory_mib=127, pools=0)


def test_memory_and_processors_are_those_of_the_tightest_control_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_GROUPS", tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    whole = processes.available_memory()
    group = tmp_path.joinpath(*processes.control_group().split("/"))
    group.mkdir(parents=True, exist_ok=True)
    (group / "memory.max").write_text("max\n")
    assert processes.available_memory() == whole
    (tmp_path / "memory.max").write_text("2000000\n")
    assert processes.available_memory() == 2_000_000
    for limit, processors in (("max 100000", 64), ("250000 100000", 2), ("50000 100000", 1)):
        (group / "cpu.max").write_text(f"{limit}\n")
        assert processes.available_processors() == processors


def stats(**values: int) -> bytes:
    """Return a response of Envoy's admin port."""
    entries = [{"name": name.replace("__", "."), "value": value} for name, value in values.items()]
    return json.dumps({"stats": [*entries, {"histograms": {}}]}).encode()


def test_refusals_are_read_from_the_statistics() -> None:
    answer = stats(
        listener__127_0_0_1_80__downstream_global_cx_overflow=1,
        listener__127_0_0_1_80__downstream_cx_overload_reject=2,
        cluster__pools__upstream_rq_pending_overflow=4,
        cluster__pools__upstream_rq_active_overflow=8,
        cluster__picker__upstream_rq_active_overflow=1000,
        http__gateway__downstream_rq_overload_close=16,
        listener__127_0_0_1_80__downstream_pre_cx_timeout=32,
        http__gateway__downstream_rq_header_timeout=64,
    )
    assert parse_refusals(answer) == Refusals(clients=3, requests=28, silent=96)


def test_a_bad_answer_is_rejected() -> None:
    for answer in [b"", b"[]", b"{}", b'{"stats": 1}', b'{"stats": [{"name": "a"}]}', b"\xff"]:
        with pytest.raises(BadResponseError):
            parse_refusals(answer)


def test_refusals_are_logged_once_per_minute() -> None:
    stream = StringIO()
    tally = RefusalTally(Log(stream))
    tally.update("one", Refusals(silent=3), 0.0)  # alone, they are no news: browsers open connections ahead
    for second in range(1, 63):
        tally.update("one", Refusals(clients=second, silent=3), float(second))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["event"], line["clients"], line["silent"]) for line in lines] == [
        ("clients refused", 1, 3),
        ("clients refused", 60, 0),
    ]


def test_refusals_add_up_over_envoys_and_their_restarts() -> None:
    tally = RefusalTally(Log(None))
    tally.update("one", Refusals(clients=5), 0.0)
    tally.update("other", Refusals(requests=7), 0.0)
    tally.update("one", Refusals(clients=2), 1.0)  # it restarted
    tally.forget("other")
    tally.update("other", Refusals(requests=1), 1.0)
    assert tally.total == Refusals(clients=7, requests=8)


def test_refusing_is_about_the_last_seconds() -> None:
    tally = RefusalTally(Log(None))
    assert not tally.recent(0.0)
    tally.update("one", Refusals(requests=1), 1.0)
    tally.update("one", Refusals(requests=1, silent=9), 2.0)
    assert tally.recent(1.0 + RECENT_S / 2)
    assert not tally.recent(1.0 + RECENT_S)
