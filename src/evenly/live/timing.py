"""Time limits that are not settings. Whatever waits takes them as an argument, so that tests can shorten them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How long the ports wait for their clients, and the watch of a gateway for its Envoy."""

    request_s: float = 15.0
    """Seconds from the first byte of a request, or from the connection, to the end of the request."""
    keep_alive_s: float = 30.0
    """Seconds that a connection may be idle after an answer."""
    first_request_s: float = 5.0
    """Seconds from a connection to the admin port to the end of the headers of its first request."""
    tls_handshake_s: float = 10.0
    """Seconds for the TLS handshake of a client of the dispatcher."""
    hello_s: float = 5.0
    """Seconds from the WebSocket of an agent to its hello."""
    probe_s: float = 1.0
    """Seconds between two probes of Envoy; a probe without a response waits a second for it."""
    probes_until_not_ready: int = 2
    """Probes in a row without a response, after which the gateway is not ready."""
    probes_until_killed: int = 6
    """Probes in a row without a response, after which Envoy is killed: 12 s, for a restart ends all sessions."""
