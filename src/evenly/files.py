"""Files: read up to a limit, checked before the work, written atomically."""

from __future__ import annotations

import os
import re
import select
import stat
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from evenly.errors import InputError
from evenly.inputs import shown

MAX_TEXT = 1_000_000  # bytes of a file written by hand: a scenario, settings, a token
_WAIT_S = 5.0  # for a pipe whose writer is slow, or never comes
_CHUNK = 65536
_MAX_DOTS = 1000  # in one key; the parser's time and memory grow with their square
_OUTSIDE_KEYS = re.compile(r"""[^\w."'\t -]""")
_SHOWN = 200  # characters of a path in an error message
Fingerprint = tuple[int, int, int]  # of a file, see `fingerprint`
_STEM = 60  # characters of a temporary file's name; the whole must fit where the target's name does


def path_text(path: object) -> str:
    """Return the path for an error message: cut if it is long, escaped if it would garble the line."""
    if not isinstance(path, str | Path):
        return shown(path)
    text = str(path) if len(str(path)) <= _SHOWN else f"{str(path)[: _SHOWN - 3]}..."
    return text if text.isprintable() and text else repr(text)


def read_text(path: Path, limit: int = MAX_TEXT) -> str:
    """Return the text of a small file. Never reads more than `limit` bytes, and never waits long for a pipe."""
    try:
        content = _read(path, limit)
    except (OSError, ValueError) as error:  # also a null byte in the path
        raise InputError(f"Cannot read {path_text(path)}: {_words(error)}.") from None
    if len(content) > limit:
        raise InputError(f"Cannot read {path_text(path)}: it has more than {limit} bytes.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"Cannot read {path_text(path)}: it is not UTF-8 text.") from None


def _read(path: Path, limit: int) -> bytes:
    """Read until the end or one byte past the limit. Without O_NONBLOCK, opening a pipe waits for its writer."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        content = bytearray()  # bytes would be copied whole for every chunk
        deadline = time.monotonic() + _WAIT_S
        ready = select.poll()
        ready.register(handle, select.POLLIN)
        while len(content) <= limit:
            if not ready.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise TimeoutError(0, f"no data within {_WAIT_S:g} seconds")
            chunk = os.read(handle, min(_CHUNK, limit + 1 - len(content)))
            if not chunk:
                break
            content += chunk
        return bytes(content)
    finally:
        os.close(handle)


def read_toml(path: Path) -> dict[str, Any]:
    """Return the values of a small TOML file."""
    text = read_text(path)
    if max(piece.count(".") for piece in _OUTSIDE_KEYS.split(text)) > _MAX_DOTS:
        raise InputError(f"{path_text(path)} has a key with more than {_MAX_DOTS} dots.")
    try:
        return tomllib.loads(text)
    except RecursionError:
        reason = "it is nested too deeply"
    except tomllib.TOMLDecodeError as error:
        reason = str(error).splitlines()[0].rstrip(".")
    except ValueError:  # Python refuses to read an integer of more than 4,300 digits
        reason = "a number has thousands of digits"
    raise InputError(f"{path_text(path)} is not a TOML file: {reason}.")


def check_regular(path: Path) -> None:
    """Reject a pipe or a device where a file is read more than once. Leave other faults to `read_text`."""
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        raise InputError(f"Cannot read {path_text(path)} more than once: it is not a regular file.")


def fingerprint(path: Path) -> Fingerprint | None:
    """Return a value that changes with the file. Take it before reading the file, so that no change is missed."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def check_writable(path: Path) -> None:
    """Reject a path that cannot be written. Call it before the work whose result would be lost."""
    try:
        reason = _why_not_writable(path)
    except (OSError, ValueError) as error:  # a name that is too long or has a null byte
        reason = _words(error)
    if reason:
        raise InputError(f"Cannot write {path_text(path)}: {reason}.")


def _why_not_writable(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"there is no directory {path_text(folder)}"
    if path.is_dir():
        return "it is a directory"
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):  # a device or a pipe, which the renamed file would replace
            return "it is not a regular file"
    try:
        with tempfile.TemporaryFile(dir=folder):  # permissions do not tell: root may not create files in /proc
            return ""
    except PermissionError:
        return f"the directory {path_text(folder)} is not writable"


def ensure_folder(path: Path, mode: int = 0o777) -> Path:
    """Return `path` as a writable folder. Create it with this mode, and its parents, if needed."""
    try:
        path.mkdir(mode, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):  # permissions do not tell: root may not create files in /proc
            return path
    except FileExistsError:
        reason = "it is not a folder"
    except (OSError, ValueError) as error:  # also a null byte in the name
        reason = _words(error)
    raise InputError(f"Cannot write into {path_text(path)}: {reason}.")


def _words(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


@contextmanager
def atomic_write(path: Path, mode: int | None = None) -> Iterator[Path]:
    """Yield a temporary path next to `path`: renamed to `path` on success, deleted on an error.

    Readers of `path` see the old content or the new one, never a part of it. Without a `mode`, it is that of any
    new file.
    """
    check_writable(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem[:_STEM]}-", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask() if mode is None else mode)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
