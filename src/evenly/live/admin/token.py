"""The secret that the admin port asks for: where it comes from, and when there must be one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evenly.errors import InputError
from evenly.live.addresses import Address

VARIABLE = "EVENLY_ADMIN_TOKEN"
FEWEST_CHARACTERS = 16


def read_token(admin: Address, token_file: Path | None, environment: Mapping[str, str]) -> str | None:
    """The token of the file, else that of the environment; None, on loopback, if there is neither."""
    if token_file is not None:
        return _checked(_content(token_file), f"the file {token_file}")
    token = environment.get(VARIABLE)
    if token:
        return _checked(token, VARIABLE)
    if not admin.loopback:
        raise InputError(
            f"The admin address {admin} can be reached from other machines: give a token, by --admin-token-file "
            f"or {VARIABLE}, or a loopback address such as 127.0.0.1:{admin.port}."
        )
    return None


def _content(token_file: Path) -> str:
    try:
        return token_file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise InputError(f"The admin token file {token_file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"The admin token file {token_file} must hold ASCII characters only.") from None


def _checked(token: str, source: str) -> str:
    """The token never enters the message: that ends up in logs."""
    if len(token) < FEWEST_CHARACTERS or not all("!" <= character <= "~" for character in token):
        raise InputError(
            f"The admin token from {source} must be at least {FEWEST_CHARACTERS} printable ASCII characters "
            f"without spaces; it has {len(token)} characters."
        )
    return token
