"""Addresses of a shared store, Valkey or Redis: redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import unquote, urlsplit

from evenly.errors import InputError
from evenly.inputs import shown

PASSWORD_VARIABLE = "EVENLY_STORE_PASSWORD"
_DEFAULT_PORT = 6379
_MAX_DATABASE = 10**6
_MAX_LENGTH = 2000
_PASSWORD = re.compile(r"(?<=//).*(?=@)", re.DOTALL)
_FLEET = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreUrl:
    """Where a store is, and who we are there. Its text and its repr have no password."""

    host: str
    port: int
    database: int
    tls: bool
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'rediss' if self.tls else 'redis'}://{host}:{self.port}/{self.database}"


def parse_store_url(text: object) -> StoreUrl:
    """Read the URL of a store. An InputError shows it without user and password."""
    if not isinstance(text, str) or len(text) > _MAX_LENGTH:
        raise _refusal(text)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # a port that is no number, a bracket too many
        raise _refusal(text) from None
    database = parts.path.removeprefix("/") or "0"
    if (
        parts.scheme not in ("redis", "rediss")
        or not parts.hostname
        or port == 0
        or not re.fullmatch(r"[0-9]{1,7}", database)
        or int(database) > _MAX_DATABASE
        or parts.query
        or parts.fragment
    ):
        raise _refusal(text)
    return StoreUrl(
        host=parts.hostname,
        port=port or _DEFAULT_PORT,
        database=int(database),
        tls=parts.scheme == "rediss",
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
    )


def with_password(url: StoreUrl, environment: Mapping[str, str]) -> StoreUrl:
    """Take the password from the environment if the URL has none: other users can see command lines."""
    return url if url.password else replace(url, password=environment.get(PASSWORD_VARIABLE) or None)


def without_password(text: str) -> str:
    """Return the URL with *** for user and password."""
    return _PASSWORD.sub("***", text)


def check_fleet(name: object) -> str:
    """Return the name of a fleet. It is part of the names of keys."""
    if not (isinstance(name, str) and _FLEET.fullmatch(name)):
        raise InputError(
            f"fleet must be 1 to 64 letters, digits, underscores, hyphens and dots, not {shown(name)}."
        )
    return name


def _refusal(text: object) -> InputError:
    seen = without_password(text) if isinstance(text, str) else text
    return InputError(
        f"store must be redis://HOST:PORT or, with TLS, rediss://HOST:PORT, with an optional USER:PASSWORD@ and "
        f"/DATABASE, not {shown(seen)}."
    )
