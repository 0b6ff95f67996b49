"""The lines of a log: from a file, a pipe or standard input, plain or compressed, in bounded memory."""

from __future__ import annotations

import gzip
import io
import os
import select
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from evenly.errors import InputError
from evenly.files import path_text

MAX_LINE = 65_536  # bytes; a longer one counts as bad
MAX_SKIPPED = 64_000_000  # bytes of one line, after which the file is no log
STDIN = Path("-")
_BLOCK = 1 << 20
_WAIT_S = 5.0  # for the first byte of a pipe
_GZIP, _ZSTD, _PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
_MAGIC = 4  # bytes
_KEPT = 200  # bytes of a line that is too long


@dataclass(frozen=True, kw_only=True, slots=True)
class Lines:
    """Lines in a row: `first` is the number of the first. `too_long` marks a single line that was cut."""

    first: int
    texts: list[str]
    too_long: bool = False


def log_name(path: Path) -> str:
    """Return the name of a log for messages."""
    return "standard input" if path == STDIN else path_text(path)


def is_parquet(path: Path) -> bool:
    """Return True for a Parquet file. What is no regular file can be read only once, and is none."""
    try:
        if path == STDIN or not stat.S_ISREG(path.stat().st_mode):
            return False
        with path.open("rb") as file:
            return file.read(_MAGIC) == _PARQUET
    except (OSError, ValueError):
        return False  # reading its lines says what is wrong


def read_lines(path: Path, progress: Callable[[float], None] | None = None) -> Iterator[Lines]:
    """Yield the lines of a log, about a megabyte at a time, without their ends.

    `progress` is called with the share of the file read so far, if its size is known.
    """
    with _opened(path) as raw, _translated(path):
        size = os.fstat(raw.fileno()).st_size if path != STDIN else 0
        yield from _split(_blocks(raw, _unpacked(raw), size, progress), path)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if path == STDIN:
        if sys.stdin is None:
            raise InputError("Cannot read standard input: it is closed.")
        given = sys.stdin.buffer
        # Without a file behind it, as when a program replaces it, it may be any stream.
        yield given if hasattr(given, "peek") else io.BufferedReader(cast("io.RawIOBase", given))
        return
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:  # also a null byte in the path
        raise _unreadable(path, _words(error)) from None
    try:
        kind = os.fstat(number).st_mode
        if stat.S_ISDIR(kind):
            raise _unreadable(path, "it is a directory")
        if not stat.S_ISREG(kind):
            _wait_for_data(path, number)
        os.set_blocking(number, True)
    except BaseException:
        os.close(number)
        raise
    with os.fdopen(number, "rb", buffering=_BLOCK) as file:
        yield file


def _wait_for_data(path: Path, number: int) -> None:
    """Wait a while for the writer of a pipe; one that never comes must not hang us."""
    poller = select.poll()
    poller.register(number, select.POLLIN)
    if not poller.poll(_WAIT_S * 1000):
        raise _unreadable(path, f"no data within {_WAIT_S:g} seconds")


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn what goes wrong while reading into one sentence."""
    try:
        yield
    except EOFError:
        raise _unreadable(path, "its compressed data is cut short; uncompress it to use what is there") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise _unreadable(path, f"its gzip data is damaged ({_words(error)})") from None
    except OSError as error:
        raise _unreadable(path, _words(error)) from None
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise _unreadable(path, f"its Zstandard data is damaged ({_words(error)})") from None


def _unpacked(raw: IO[bytes]) -> IO[bytes]:
    magic = cast("io.BufferedReader", raw).peek(_MAGIC)[:_MAGIC]
    if magic.startswith(_GZIP):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw, mode="rb"))
    if magic == _ZSTD:
        return cast("IO[bytes]", _zstd().ZstdFile(raw))
    return raw


def _zstd() -> Any:  # noqa: ANN401  (one of two modules with the same names)
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415  (only for logs compressed with it)
    return zstd


def _blocks(
    raw: IO[bytes], plain: IO[bytes], size: int, progress: Callable[[float], None] | None
) -> Iterator[bytes]:
    while block := plain.read(_BLOCK):
        yield block
        if progress is not None and size:
            progress(min(1.0, raw.tell() / size))


def _split(blocks: Iterator[bytes], path: Path) -> Iterator[Lines]:
    """Split blocks into lines. Of a line that is too long, only the beginning is kept."""
    number, rest, length = 1, b"", 0  # length: of the line being dropped, 0 if none is
    for block in blocks:
        if length:
            length += len(block)
            end = block.find(b"\n")
            if end < 0:
                if length > MAX_SKIPPED:
                    raise _unreadable(
                        path, f"line {number} has more than {MAX_SKIPPED // 10**6} MB, so it is no log"
                    )
                continue
            yield Lines(first=number, texts=[_text(rest)], too_long=True)
            number, rest, length, block = number + 1, b"", 0, block[end + 1 :]  # noqa: PLW2901
        head, newline, rest = (rest + block).rpartition(b"\n")
        if newline:
            texts = _text(head).split("\n")
            yield from _cut(number, texts)
            number += len(texts)
        if len(rest) > MAX_LINE:
            length, rest = len(rest), rest[:_KEPT]
    if length:
        yield Lines(first=number, texts=[_text(rest)], too_long=True)
    elif rest:
        yield from _cut(number, [_text(rest)])


def _cut(number: int, texts: list[str]) -> Iterator[Lines]:
    """Yield the lines, those that are too long each for itself."""
    done = 0
    if max(map(len, texts)) > MAX_LINE:
        for place, text in enumerate(texts):
            if len(text) > MAX_LINE:
                yield Lines(first=number + done, texts=texts[done:place])
                yield Lines(first=number + place, texts=[text[:_KEPT]], too_long=True)
                done = place + 1
    yield Lines(first=number + done, texts=texts[done:])


def _text(line: bytes) -> str:
    return (line.replace(b"\r\n", b"\n").removesuffix(b"\r") if b"\r" in line else line).decode("utf-8", "replace")


def _unreadable(path: Path, reason: str) -> InputError:
    return InputError(f"Cannot read {log_name(path)}: {reason}.")


def _words(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower().rstrip(".")
