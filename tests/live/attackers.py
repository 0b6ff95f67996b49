"""Clients that mean harm: HTTP/2 connections full of requests that never end, and connections that say nothing."""

from __future__ import annotations

import select
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RemoteSettingsChanged, ResponseReceived

from tests.live.processes import PATIENCE

_MOST_PER_CONNECTION = 400


class StreamAttacker:
    """An HTTP/2 connection with requests that the pool does not answer."""

    def __init__(self, port: int, requests: int) -> None:
        self.statuses: Counter[int] = Counter()
        self.requests = 0
        self._limit = 0
        self._http2 = H2Connection(H2Configuration(validate_outbound_headers=False))
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._http2.initiate_connection()
        self._socket.sendall(self._http2.data_to_send())
        while not self._limit:
            self._receive()
        for _ in range(min(requests, self._limit, _MOST_PER_CONNECTION)):
            self._request()
        self._socket.sendall(self._http2.data_to_send())

    def read(self) -> None:
        """Take in the answers that have arrived. A lost connection has no more of them."""
        try:
            while self._socket.fileno() >= 0 and select.select([self._socket], [], [], 0)[0]:
                self._receive()
        except OSError:
            self.close()

    def close(self) -> None:
        """End all requests."""
        self._socket.close()

    def _request(self) -> None:
        names = {":method": "GET", ":scheme": "http", ":path": "/?seconds=3600", ":authority": "pools"}
        self._http2.send_headers(self._http2.get_next_available_stream_id(), [*names.items()], end_stream=True)
        self.requests += 1

    def _receive(self) -> None:
        data = self._socket.recv(2**16)
        if not data:
            raise ConnectionResetError("The connection was closed.")
        for event in self._http2.receive_data(data):
            if isinstance(event, RemoteSettingsChanged):
                self._limit = self._http2.remote_settings.max_concurrent_streams
            elif isinstance(event, ResponseReceived):
                self.statuses[int(dict(event.headers)[b":status"])] += 1
        self._socket.sendall(self._http2.data_to_send())


@contextmanager
def streams(port: int, requests: int) -> Iterator[list[StreamAttacker]]:
    """Send `requests` requests, over as few connections as the server allows."""
    attackers: list[StreamAttacker] = []
    try:
        while requests:
            attackers.append(StreamAttacker(port, requests))
            requests -= attackers[-1].requests
        yield attackers
    finally:
        for attacker in attackers:
            attacker.close()


def statuses(attackers: list[StreamAttacker]) -> Counter[int]:
    """Return the number of answers by status."""
    for attacker in attackers:
        attacker.read()
    return sum((attacker.statuses for attacker in attackers), Counter())


def is_closed(client: socket.socket) -> bool:
    """Return whether the server has closed the connection. What it sent before is skipped."""
    try:
        while select.select([client], [], [], 0)[0]:
            if not client.recv(2**16):
                return True
    except OSError:
        return True
    return False


def is_answered(client: socket.socket) -> bool:
    """Return whether something came from the server, or it has closed the connection. Nothing is read."""
    return bool(select.select([client], [], [], 0)[0])
