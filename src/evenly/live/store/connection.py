"""Connections to a shared store: TLS, passwords and timeouts."""

from __future__ import annotations

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from evenly.live.store_url import StoreUrl

TIMEOUT_S = 1.0  # for a connection, and for each reply
_MAX_CONNECTIONS = 8


def connect(url: StoreUrl) -> Redis:
    """Return a client. It connects when it is first used, and never retries: callers decide what to repeat.

    With TLS, the certificate must be valid for the host. Set SSL_CERT_FILE to use a CA of your own.
    """
    return Redis(
        host=url.host,
        port=url.port,
        db=url.database,
        username=url.username,
        password=url.password,
        ssl=url.tls,
        socket_timeout=TIMEOUT_S,
        socket_connect_timeout=TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),
        max_connections=_MAX_CONNECTIONS,
        protocol=2,
    )


def reason_of(error: BaseException, url: StoreUrl) -> str:
    """Describe a failure in the log, without the password."""
    text = str(error) or type(error).__name__
    return text.replace(url.password, "***") if url.password else text
