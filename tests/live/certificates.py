"""Certificates for tests, made with openssl: authorities, and certificates that they sign."""

from __future__ import annotations

import subprocess
from pathlib import Path

from evenly.live.tls import KeyPair

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


class Authority:
    """A certificate authority in a folder. `cert` is the file that others trust."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self.cert = folder / f"{name}.pem"
        self._key = folder / f"{name}.key"
        openssl(
            "req", "-x509", *_KEY, "-days", "2", "-subj", f"/CN={name}", "-keyout", self._key, "-out", self.cert
        )

    def sign(self, name: str, host: str = "localhost", days: int = 2) -> KeyPair:
        """Return a new certificate with this common name, for this host and 127.0.0.1."""
        pair = KeyPair(self._folder / f"{self._name}-{name}.pem", self._folder / f"{self._name}-{name}.key")
        request, extensions = self._folder / "request", self._folder / "extensions"
        extensions.write_text(f"subjectAltName=DNS:{host},IP:127.0.0.1\n")
        openssl("req", "-new", *_KEY, "-subj", f"/CN={name}", "-keyout", pair.key, "-out", request)
        openssl(
            *("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self._key, "-CAcreateserial"),
            *("-days", str(days), "-extfile", extensions, "-out", pair.cert),
        )
        return pair


def replaced(old: Path, new: Path) -> None:
    """Replace a file atomically, as most programs that renew certificates do."""
    copy = old.with_name(f".{old.name}")
    copy.write_bytes(new.read_bytes())
    copy.replace(old)
