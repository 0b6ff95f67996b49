"""Certificates of a gateway's Envoy: checked by us, written into the gateway's private folder, followed there.

Envoy would read the files of the operator itself, but only when it starts, and it notices only some ways to
replace a file. So it follows copies (SDS), and gets a new one when certificate and key fit each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from evenly.errors import InputError
from evenly.files import atomic_write, path_text
from evenly.live.envoy.bootstrap_clusters import Json
from evenly.live.envoy.pool_protocol import PoolProtocol
from evenly.live.envoy.transport import (
    AUTHORITIES,
    LISTENER,
    POOLS,
    PoolTls,
    Secrets,
    authorities_secret,
    certificate_secret,
    listener_tls,
)
from evenly.live.log import Log
from evenly.live.pool_options import check_names
from evenly.live.pool_scheme import is_tls
from evenly.live.settings import Settings
from evenly.live.tls import Followed, KeyPair, read_authorities, read_pair, system_authorities


def check_secrets(settings: Settings, environment: Mapping[str, str]) -> None:
    """Reject certificates that cannot be used, before any process is started."""
    check_names(settings.pool, settings.pool_sni)
    for pair, client in ((settings.tls, False), (settings.admin_tls, False), (settings.pool_pair, True)):
        if pair is not None:
            read_pair(pair, client=client)
    if is_tls(settings.protocol):
        read_authorities(settings.pool_ca or system_authorities(environment))


class GatewaySecrets:
    """The secrets that the settings ask for. Making one reads, checks and writes all of them."""

    def __init__(self, settings: Settings, folder: Path, environment: Mapping[str, str], log: Log) -> None:
        self._settings = settings
        self._secrets = Secrets(folder)
        self._log = log
        self._contents: dict[Path, str] = {}
        self._followed: list[Followed] = []
        self._pools: PoolTls | None = None
        if settings.tls is not None:
            self._follow_pair(LISTENER, settings.tls, client=False)
        if is_tls(settings.protocol):
            authorities = settings.pool_ca or system_authorities(environment)
            self._follow(AUTHORITIES, (authorities,), lambda: self._write_authorities(authorities))
            if settings.pool_pair is not None:
                self._follow_pair(POOLS, settings.pool_pair, client=True)
            self._pools = PoolTls(authorities=authorities, pair=settings.pool_pair, sni=settings.pool_sni)

    @property
    def listener(self) -> Json | None:
        """The TLS of the listener, None without."""
        return None if self._settings.tls is None else listener_tls(self._settings.tls, self._secrets)

    @property
    def protocol(self) -> PoolProtocol:
        """What Envoy speaks to the pools."""
        return PoolProtocol(
            name=self._settings.protocol,
            health_path=self._settings.health_path,
            health_grpc=self._settings.health_grpc,
            tls=self._pools,
            secrets=self._secrets,
        )

    def check_accepted(self, rejected: Sequence[str]) -> None:
        """Raise InputError if Envoy rejected secrets when it started: it supports fewer keys than OpenSSL."""
        pairs = {LISTENER: self._settings.tls, POOLS: self._settings.pool_pair}
        for pair in filter(None, map(pairs.get, rejected)):
            raise InputError(
                f"Envoy cannot use the certificate {path_text(pair.cert)}: the key must be RSA with 2048 bits or "
                "more, ECDSA with P-256, P-384 or P-521, or Ed25519."
            )
        if AUTHORITIES in rejected and self._pools is not None:
            raise InputError(f"Envoy cannot use the CA file {path_text(self._pools.authorities)}.")

    def look(self) -> None:
        """Take in files that have changed. Call this every `tls.POLL_S` seconds."""
        for each in self._followed:
            each.look()
        for path, content in self._contents.items():
            if not path.exists():  # something may have removed it, and a restarted Envoy needs it
                _write(path, content)

    def _follow_pair(self, name: str, pair: KeyPair, *, client: bool) -> None:
        def use() -> Mapping[str, object]:
            pem = read_pair(pair, client=client)
            self._write(name, certificate_secret(name, pem))
            return {"expires": pem.expires}

        self._follow(name, pair.files, use)

    def _follow(self, name: str, files: tuple[Path, ...], use: Callable[[], Mapping[str, object]]) -> None:
        followed = Followed(name, files, use, self._log)  # first: a change after the first use must be seen
        use()
        self._followed.append(followed)

    def _write_authorities(self, path: Path) -> Mapping[str, object]:
        self._write(AUTHORITIES, authorities_secret(AUTHORITIES, read_authorities(path)))
        return {}

    def _write(self, name: str, content: str) -> None:
        path = self._secrets.file(name)
        self._contents[path] = content
        _write(path, content)


def _write(path: Path, content: str) -> None:
    """Replace a file atomically: Envoy notices no other change. Only its owner can open the folder."""
    with atomic_write(path) as temporary:
        temporary.write_text(content, encoding="utf-8")
