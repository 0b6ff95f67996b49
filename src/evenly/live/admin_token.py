"""Tokens of ports: where they come from, and what makes them usable."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evenly.errors import InputError
from evenly.files import read_text
from evenly.live.addresses import Address

TOKEN_VARIABLE = "EVENLY_ADMIN_TOKEN"  # environment variable with the token, if no file holds it
MIN_LENGTH, MAX_LENGTH = 16, 4096  # a header must have room for it


def read_token(admin: Address, token_file: Path | None, environment: Mapping[str, str]) -> str | None:
    """Return the admin token from the file or the environment; None if there is none, on loopback only."""
    token = find_token("admin", token_file, TOKEN_VARIABLE, environment)
    if token is None and not admin.loopback:
        raise InputError(
            f"The admin address {admin} can be reached from other machines: set a token with --admin-token-file "
            f"or {TOKEN_VARIABLE}, or use a loopback address such as 127.0.0.1:{admin.port}."
        )
    return token


def find_token(name: str, token_file: Path | None, variable: str, environment: Mapping[str, str]) -> str | None:
    """Return the token of this name from the file, else from the variable of the environment, else None."""
    if token_file is not None:
        return _checked(name, read_text(token_file).strip(), f"the file {token_file}")
    token = environment.get(variable)
    return _checked(name, token, variable) if token else None


def _checked(name: str, token: str, source: str) -> str:
    """Return a usable token. The message of a failure never contains it, because messages are logged."""
    if not MIN_LENGTH <= len(token) <= MAX_LENGTH or not all("!" <= character <= "~" for character in token):
        raise InputError(
            f"The {name} token from {source} must be {MIN_LENGTH} to {MAX_LENGTH} printable ASCII characters "
            f"without spaces; it has {len(token)} characters."
        )
    return token
