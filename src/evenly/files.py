"""Files and folders to write to: checked before the work, written atomically."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evenly.errors import InputError


def check_writable(path: Path) -> None:
    """Reject a path that cannot be written. Call it before the work whose result would be lost."""
    folder = path.parent
    if not folder.is_dir():
        raise InputError(f"Cannot write {path}: there is no directory {folder}.")
    if path.is_dir() or not os.access(folder, os.W_OK):
        reason = "it is a directory" if path.is_dir() else f"the directory {folder} is not writable"
        raise InputError(f"Cannot write {path}: {reason}.")


def ensure_folder(path: Path) -> Path:
    """Return `path` as a writable folder, creating it and its parents if needed."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot make the folder {path}: {(error.strerror or str(error)).lower()}.") from None
    if not os.access(path, os.W_OK):
        raise InputError(f"Cannot write to the folder {path}: permission denied.")
    return path


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`: renamed to `path` on success, deleted on an error.

    Readers of `path` see the old content or the new one, never a part of it.
    """
    check_writable(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
