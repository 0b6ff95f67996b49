"""The token of the admin port: where it comes from, and what makes it usable."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evenly.errors import InputError
from evenly.files import read_text
from evenly.live.addresses import Address

TOKEN_VARIABLE = "EVENLY_ADMIN_TOKEN"  # environment variable with the token, if no file holds it
MIN_LENGTH, MAX_LENGTH = 16, 4096  # a header must have room for it


def read_token(admin: Address, token_file: Path | None, environment: Mapping[str, str]) -> str | None:
    """Return the token from the file, else from the environment. None if neither is given, on loopback only."""
    if token_file is not None:
        return _checked(read_text(token_file).strip(), f"the file {token_file}")
    token = environment.get(TOKEN_VARIABLE)
    if token:
        return _checked(token, TOKEN_VARIABLE)
    if not admin.loopback:
        raise InputError(
            f"The admin address {admin} can be reached from other machines: set a token with --admin-token-file "
            f"or {TOKEN_VARIABLE}, or use a loopback address such as 127.0.0.1:{admin.port}."
        )
    return None


def _checked(token: str, source: str) -> str:
    """Return a usable token. The message of a failure never contains it, because messages are logged."""
    if not MIN_LENGTH <= len(token) <= MAX_LENGTH or not all("!" <= character <= "~" for character in token):
        raise InputError(
            f"The admin token from {source} must be {MIN_LENGTH} to {MAX_LENGTH} printable ASCII characters "
            f"without spaces; it has {len(token)} characters."
        )
    return token
