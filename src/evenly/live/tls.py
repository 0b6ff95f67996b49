"""Certificates and their keys: read, checked, and followed while their files change.

The one home of the rule what a usable certificate is: it can be read, fits its key, has not expired, and is meant
for the side that shows it.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from evenly.errors import InputError
from evenly.files import check_regular, fingerprint, path_text, read_text
from evenly.live.log import Log

POLL_S = 0.5  # between two looks at the files
_HANDSHAKE_STEPS = 8  # more than any handshake takes
_BUNDLES = (  # where systems keep the authorities that they trust
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_WORDS = {"KEY_VALUES_MISMATCH": "the key is not that of the certificate"}  # by OpenSSL's name of the reason
_MARKS = {"PEM lib": "both must be in PEM", "does not contain a certificate": "it has no certificate in PEM"}


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate chain and the key of its first certificate, as files in PEM."""

    cert: Path
    key: Path

    @property
    def files(self) -> tuple[Path, Path]:
        """Both files."""
        return self.cert, self.key


@dataclass(frozen=True, slots=True)
class Pem:
    """The contents of a `KeyPair`, checked. `expires` is when the certificate does, as OpenSSL writes it."""

    cert: str
    key: str = field(repr=False)
    expires: str


def pair_of(cert: Path | None, key: Path | None, prefix: str = "tls") -> KeyPair | None:
    """Return the pair that two options name, None if neither is given."""
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise InputError(f"Give {prefix}-cert and {prefix}-key together, or neither of them.")
    return KeyPair(cert, key)


def server_context(pair: KeyPair, protocols: Iterable[str] = ()) -> ssl.SSLContext:
    """Return the context of a server that shows this certificate. `protocols` are offered by ALPN."""
    read_pair(pair)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load(context, pair)
    if names := list(protocols):
        context.set_alpn_protocols(names)
    return context


def read_pair(pair: KeyPair, *, client: bool = False) -> Pem:
    """Read and check a certificate and its key. `client` is for a certificate that is shown to servers."""
    for path in pair.files:
        check_regular(path)  # it is read again when it changes
    before = [*map(fingerprint, pair.files)]
    pem = read_text(pair.cert), read_text(pair.key)
    expires = _check_usable(pair, client=client)
    if [*map(fingerprint, pair.files)] != before:
        raise InputError(f"Cannot use the certificate {path_text(pair.cert)}: it changed while it was read.")
    return Pem(*pem, expires=expires)


def read_authorities(path: Path) -> str:
    """Read and check a file with the certificates of authorities."""
    check_regular(path)
    text = read_text(path, limit=10_000_000)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot use the CA file {path_text(path)}: {_reason(error)}.") from None
    return text


def system_authorities(environment: Mapping[str, str]) -> Path:
    """Return the file with the authorities that this system trusts."""
    named = environment.get("SSL_CERT_FILE")
    for name in (named,) if named else _BUNDLES:
        if Path(name).is_file():
            return Path(name)
    raise InputError("This system has no file with trusted authorities: give --pool-ca FILE.")


class Followed:
    """Files whose content is used again when they change. A content that cannot be used is logged and skipped.

    `use` reads the files and returns facts for the log; it raises InputError if they cannot be used. Certificate
    and key are two files, which no program changes at the same moment. So a change counts once two looks in a row
    have seen the same files.
    """

    def __init__(
        self, name: str, files: Iterable[Path], use: Callable[[], Mapping[str, object]], log: Log
    ) -> None:
        self._name = name
        self._files = tuple(files)
        self._use = use
        self._log = log
        self._used = self._seen = [*map(fingerprint, self._files)]

    def look(self) -> None:
        """Look at the files once. Call this every `POLL_S` seconds."""
        before, self._seen = self._seen, [*map(fingerprint, self._files)]
        if self._seen == self._used or self._seen != before:
            return
        self._used = self._seen
        try:
            facts = self._use()
        except InputError as error:
            self._log.event("certificate not used", certificate=self._name, reason=str(error))
        else:
            self._log.event("certificate read", certificate=self._name, **facts)


def followed_context(name: str, context: ssl.SSLContext, pair: KeyPair, log: Log) -> Followed:
    """Follow a server's certificate. New connections get the new one; open ones do not notice."""

    def use() -> Mapping[str, object]:
        pem = read_pair(pair)
        _load(context, pair)
        return {"expires": pem.expires}

    return Followed(name, pair.files, use, log)


def _check_usable(pair: KeyPair, *, client: bool) -> str:
    """Make a handshake with ourselves, in which the other side trusts this certificate only. Return its end."""
    shower = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if client else ssl.PROTOCOL_TLS_SERVER)
    _load(shower, pair)
    judge = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if client else ssl.PROTOCOL_TLS_CLIENT)
    for context in (shower, judge):
        context.check_hostname = False
    shower.verify_mode = ssl.CERT_NONE
    judge.verify_mode = ssl.CERT_REQUIRED
    judge.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # else only a certificate that signs itself is trusted
    try:
        judge.load_verify_locations(pair.cert)
        if client:  # a server needs some certificate, and this one is at hand
            _load(judge, pair)
        return _handshake(shower, judge, client=client)
    except (OSError, ValueError) as error:
        raise _unusable(pair, error) from None


def _handshake(shower: ssl.SSLContext, judge: ssl.SSLContext, *, client: bool) -> str:
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = shower.wrap_bio(there, back, server_side=not client)
    other = judge.wrap_bio(back, there, server_side=client)
    for _ in range(_HANDSHAKE_STEPS):
        for side in (one, other):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    return str((other.getpeercert() or {}).get("notAfter", ""))


def _load(context: ssl.SSLContext, pair: KeyPair) -> None:
    try:
        context.load_cert_chain(pair.cert, pair.key, password=_no_password)
    except (OSError, ValueError) as error:  # also ssl.SSLError
        raise _unusable(pair, error) from None


def _unusable(pair: KeyPair, error: Exception) -> InputError:
    return InputError(
        f"Cannot use the certificate {path_text(pair.cert)} with the key {path_text(pair.key)}: {_reason(error)}."
    )


def _reason(error: Exception) -> str:
    """Return what is wrong, in our words where OpenSSL's are terse."""
    if known := _WORDS.get(getattr(error, "reason", None) or ""):
        return known
    for name in ("verify_message", "reason", "strerror"):
        if text := getattr(error, name, None):
            words = str(text).split(" (_ssl.c")[0]
            plain = words.lower().replace("_", " ")
            return next((known for mark, known in _MARKS.items() if mark in words), plain)
    return str(error).lower()


def _no_password() -> str:
    """Refuse encrypted keys: OpenSSL would ask at the terminal, and a service has none."""
    raise ValueError("the key is encrypted; decrypt it first")
