"""Certificates for tests: authorities, and certificates that they sign."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme

from evenly.live.tls import KeyPair
from tests.needs import needs


def openssl(*words: str | Path) -> None:
    """Run openssl, for what trustme does not make."""
    subprocess.run([needs("openssl"), *map(str, words)], check=True, capture_output=True)


class Authority:
    """A certificate authority in a folder. `cert` is the file that others trust."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._authority = trustme.CA(organization_name=name)
        self.cert = folder / f"{name}.pem"
        self._authority.cert_pem.write_to_path(self.cert)

    def sign(self, name: str, host: str = "localhost", days: int = 2) -> KeyPair:
        """Return a new certificate with this common name, for this host and 127.0.0.1."""
        pair = KeyPair(self._folder / f"{self._name}-{name}.pem", self._folder / f"{self._name}-{name}.key")
        ends = datetime.now(UTC) + timedelta(days=days)
        issued = self._authority.issue_cert(host, "127.0.0.1", common_name=name, not_after=ends)
        issued.cert_chain_pems[0].write_to_path(pair.cert)
        issued.private_key_pem.write_to_path(pair.key)
        return pair


def replaced(old: Path, new: Path) -> None:
    """Replace a file atomically, as most programs that renew certificates do."""
    copy = old.with_name(f".{old.name}")
    copy.write_bytes(new.read_bytes())
    copy.replace(old)
