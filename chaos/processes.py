"""What the kernel says about processes: children, memory and open files; and how to start one with few files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class Usage:
    """The resident memory of a process in bytes, and its open files."""

    memory: int = 0
    files: int = 0

    def most(self, other: Usage) -> Usage:
        """Return the larger value of each."""
        return Usage(max(self.memory, other.memory), max(self.files, other.files))


def limited(files: int, command: Sequence[str]) -> list[str]:
    """Return a command that runs this one with a limit on open files, which it cannot raise."""
    return ["/bin/sh", "-c", 'ulimit -n "$0" && exec "$@"', str(files), *command]


def usage(pid: int) -> Usage:
    """Return what a process uses now, zeros if it has ended."""
    with suppress(OSError, IndexError):
        resident = int((_PROC / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return Usage(resident, len(os.listdir(_PROC / str(pid) / "fd")))  # noqa: PTH208
    return Usage()


def children(parent: int) -> dict[str, int]:
    """Return the child processes by the name of their program, as the kernel shortens it."""
    return {name: pid for pid, name, its_parent in _processes() if its_parent == parent}


def command_line(pid: int) -> list[str]:
    """Return the command line of a process, empty if it has ended."""
    with suppress(OSError):
        return (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    return []


def listening_ports(pid: int) -> set[int]:
    """Return the TCP ports of IPv4 addresses that a process listens on."""
    sockets, listening = _sockets(pid), "0A"
    return {int(row[1].partition(":")[2], 16) for row in _rows("tcp") if row[3] == listening and row[9] in sockets}


def listening_paths(pid: int) -> set[Path]:
    """Return the Unix sockets with a path that a process listens on."""
    sockets = _sockets(pid)
    return {Path(row[7]) for row in _rows("unix") if len(row) > 7 and row[6] in sockets and row[7].startswith("/")}


def _sockets(pid: int) -> set[str]:
    """Return the inodes of a process's sockets."""
    found = set()
    with suppress(OSError):
        for file in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                found.add(str(file.readlink()).removeprefix("socket:[").removesuffix("]"))
    return found


def _rows(table: str) -> list[list[str]]:
    return [line.split() for line in (_PROC / "net" / table).read_text().splitlines()[1:]]


def _processes() -> Iterator[tuple[int, str, int]]:
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                stat = (folder / "stat").read_text()
                name = stat[stat.index("(") + 1 : stat.rindex(")")]
                yield int(folder.name), name, int(stat.rpartition(")")[2].split()[1])
