"""Where a shared store is, and how to log in: a URL, checked. Passwords never appear in errors."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from evenly.errors import InputError
from evenly.inputs import shown

_DEFAULT_PORT = 6379
_MAX_DATABASE = 9999
_FLEET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ALLOWED = "redis://HOST:PORT or rediss://HOST:PORT, with an optional USER:PASSWORD@ and /DATABASE"


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreAddress:
    """A server of Valkey or Redis. `tls` is checked against the system's certificates, or those in `ca_file`."""

    host: str
    port: int
    database: int
    tls: bool
    username: str | None
    password: str | None = field(repr=False)
    ca_file: Path | None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_store_url(url: str, *, password: str | None = None, ca_file: Path | None = None) -> StoreAddress:
    """Read the URL of a store. `password` takes the place of one in the URL."""
    try:
        parts = urlsplit(url)
        port = _DEFAULT_PORT if parts.port is None else parts.port
    except ValueError:
        raise InputError(f"The store must be {_ALLOWED}, not a URL that cannot be read.") from None
    database = parts.path.removeprefix("/") or "0"
    if (
        parts.scheme not in ("redis", "rediss")
        or not parts.hostname
        or port == 0
        or parts.query
        or parts.fragment
        or not re.fullmatch(r"[0-9]{1,4}", database)
        or int(database) > _MAX_DATABASE
    ):
        raise InputError(f"The store must be {_ALLOWED}, not {shown(_without_password(parts))}.")
    if ca_file is not None and parts.scheme != "rediss":
        raise InputError("A CA file for the store needs a rediss:// URL.")
    secret = password if password is not None else unquote(parts.password) if parts.password else None
    return StoreAddress(
        host=parts.hostname,
        port=port,
        database=int(database),
        tls=parts.scheme == "rediss",
        username=unquote(parts.username) if parts.username else None,
        password=secret,
        ca_file=ca_file,
    )


def check_fleet_name(name: str) -> str:
    """Return a name that a fleet can have: it is part of the keys in the store."""
    if not _FLEET.fullmatch(name):
        raise InputError(
            "The name of a fleet must be up to 64 letters, digits, dots, hyphens and underscores, beginning with "
            f"a letter or digit, not {shown(name)}."
        )
    return name


def _without_password(parts: SplitResult) -> str:
    return parts._replace(
        netloc=f"***@{parts.netloc.rpartition('@')[2]}" if "@" in parts.netloc else parts.netloc
    ).geturl()
