"""Where lines come from: compressed files, pipes, standard input; and what is no log at all."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly.errors import InputError
from evenly.logs import FORMATS, read_log
from evenly.logs import source as source_module
from evenly.logs.collect import MAX_SESSIONS
from evenly.logs.source import MAX_LINE, Lines, read_lines
from tests.logs import support
from tests.logs.support import Write

TABLE = "start,duration\n" + "".join(f"{at},{at % 5}\n" for at in range(1000))


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_compressed(write: Write, pack: object) -> None:
    assert callable(pack)
    data = TABLE.encode()
    halves = pack(data[:5000]) + pack(data[5000:])  # logs are often compressed in parts, one after the other
    for content in (pack(data), halves):
        log = read_log(write(content))
        assert (len(log), log.skipped) == (1000, 0)


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_compressed_and_cut_or_damaged(write: Write, pack: object) -> None:
    assert callable(pack)
    content = pack(TABLE.encode())
    with pytest.raises(InputError, match="is cut short"):
        read_log(write(content[:-20]))
    damaged = content[:10] + bytes(byte ^ 0x55 for byte in content[10:260]) + content[260:]
    with pytest.raises(InputError, match="is damaged"):
        read_log(write(damaged))


def test_a_pipe(write: Write, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(gzip.compress(TABLE.encode())), daemon=True)
    writer.start()
    assert len(read_log(pipe)) == 1000
    writer.join(60)


def test_a_pipe_without_a_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "_WAIT_S", 0.01)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no data within"):
        read_log(tmp_path / "pipe")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(zstd.compress(TABLE.encode()))))
    assert len(read_log(Path("-"))) == 1000


def test_progress_grows_to_one(write: Write) -> None:
    seen: list[float] = []
    read_log(write("start,duration,server\n" + 15_000 * f"1,2,{100 * 'x'}\n"), progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert len(seen) >= 2


def test_a_long_line_is_bad_and_the_others_are_read(write: Write) -> None:
    for length in (MAX_LINE + 1, 3 * 2**20):
        log = read_log(write(f"start,duration\n1,2\n{length * 'x'}\n3,4\n"))
        assert (len(log), log.skipped) == (2, 1)
        assert log.bad_lines[0].number == 3
        assert log.bad_lines[0].reason == "it is longer than 65,536 bytes"
        assert len(log.bad_lines[0].text) == 80


@pytest.mark.parametrize("length", [MAX_LINE + 1, 2_000_000])
def test_a_long_first_line_does_not_hide_the_format(write: Write, length: int) -> None:
    for text in (support.NGINX, TABLE):
        good = read_log(write(text))
        log = read_log(write(f"{length * 'x'}\n{text}"))
        assert (log.format, len(log), log.lines, log.skipped) == (good.format, len(good), good.lines + 1, 1)
        assert log.bad_lines[0].number == 1
    with pytest.raises(InputError, match=r"Cannot tell the format of .*: its lines are longer than 65,536 bytes"):
        read_log(write(length * "x"))


def test_lines_are_numbered_past_long_ones(write: Write) -> None:
    path = write(f"a\n{(MAX_LINE + 1) * 'x'}\nb\nc\n{2_000_000 * 'y'}\nd\n{2_000_000 * 'z'}")
    found = [(each.first, each.texts, each.too_long) for each in read_lines(path) if each.texts]
    assert [(first, texts) for first, texts, too_long in found if not too_long] == [
        (1, ["a"]), (3, ["b", "c"]), (6, ["d"])
    ]  # fmt: skip
    assert [(first, texts[0][0]) for first, texts, too_long in found if too_long] == [(2, "x"), (5, "y"), (7, "z")]


def test_an_endless_line_is_refused_in_bounded_memory() -> None:
    """A device without line ends, read by a process that may have 1 GB of addresses in all."""
    script = (
        "import resource\nfrom pathlib import Path\nfrom evenly.logs import read_log\n"
        "from evenly.errors import InputError\nimport numpy\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))\n"
        "try:\n    read_log(Path('/dev/zero'), format='csv')\nexcept InputError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.stdout == "Cannot read /dev/zero: line 1 has more than 64 MB, so it is no log.\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty: it has no lines"),
        (b"\n\n  \n", "is empty: it has no lines"),
        (b"start,duration\n", "is empty but for its header"),
        (b"\x00\x01\x02\x03" * 100, "it is not text"),
        ("start,duration\n1,2\n".encode("utf-16"), "it is not text"),
        (b"hello world\nhow are you\n", "Cannot tell the format of"),
        (b"{not json\n", "Cannot tell the format of"),
        (
            b'{"request_time":1}\n',
            "or request_time and one of msec, time_iso8601 and time_local, as of nginx",
        ),
        (support.COMBINED.encode(), "log_format evenly '"),
        (b"start,duration\n5,-1\n", "it ends before it starts"),
        (b"start,end\n5,4\n", "it ends before it starts"),
        (b"# evenly sessions 9\nstart,duration\n1,2\n", "another version of evenly"),
    ],
)
def test_no_log(write: Write, content: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_log(write(content))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).isprintable()


def test_the_wrong_format_is_named(write: Write) -> None:
    with pytest.raises(InputError, match="It looks like --format haproxy") as caught:
        read_log(write(support.HAPROXY), format="envoy")
    assert "None of the 7 lines" in str(caught.value)
    with pytest.raises(InputError, match=r"must have a column start .* It looks like --format nginx\.$"):
        read_log(write(support.NGINX), format="csv")
    with pytest.raises(InputError, match="is not a log that evenly --record wrote"):
        read_log(write("start,duration\n1,2\n"), format="evenly")
    with pytest.raises(InputError, match=r"must be one of csv, parquet, .*not 'apache'"):
        read_log(write(TABLE), format="apache")
    with pytest.raises(InputError, match="Cannot read"):
        read_log(write(TABLE), format="parquet")


@pytest.mark.parametrize("path", ["/nonexistent/log", "/tmp", "null\0byte"])
def test_no_file(path: str) -> None:
    with pytest.raises(InputError, match="Cannot read"):
        read_log(Path(path))


def test_too_many_sessions(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenly.logs.collect.MAX_SESSIONS", 999)
    with pytest.raises(InputError, match="more than 999 sessions"):
        read_log(write(TABLE))
    assert MAX_SESSIONS >= 10**6


@pytest.mark.parametrize("text", ["\n" * 1000, "start,duration\n1,2\n" + "\n" * 1000])
def test_too_many_empty_lines(write: Write, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """An endless stream of them must end too."""
    monkeypatch.setattr("evenly.logs.collect.MAX_LINES", 999)
    with pytest.raises(InputError, match="999 lines"):
        read_log(write(text))


def test_too_many_servers(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenly.logs.collect.MAX_SERVERS", 9)
    with pytest.raises(InputError, match="names more than 9 servers"):
        read_log(write("start,duration,server\n" + "".join(f"1,2,{name}\n" for name in range(11))))


def test_lines_of_a_file_without_a_last_line_end(write: Write) -> None:
    assert [each for each in read_lines(write("a\nb")) if each.texts] == [
        Lines(first=1, texts=["a"]), Lines(first=2, texts=["b"])
    ]  # fmt: skip


SAMPLES = [
    support.ENVOY, support.ENVOY_JSON, support.HAPROXY, support.NGINX, support.NGINX_JSON, support.AZURE,
    TABLE[:200],
]  # fmt: skip


@given(st.data())
@settings(max_examples=150)
def test_damaged_logs_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever happens to the bytes of a log, there is a result whose numbers add up, or an InputError."""
    content = bytearray(data.draw(st.sampled_from(SAMPLES)).encode())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 6))] = data.draw(st.binary(max_size=6))
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(content)
    name = data.draw(st.sampled_from([None, *FORMATS]))
    try:
        log = read_log(path, format=name)
    except InputError as error:
        assert "\n" not in str(error)
        return
    assert len(log) == len(log.durations) >= 1
    assert all(log.starts[:-1] <= log.starts[1:])
    assert min(log.durations) >= 0
    assert log.lines >= len(log) + log.skipped
    assert log.servers is None or max(log.servers) < len(log.server_names)
