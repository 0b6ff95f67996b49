"""What an agent is told at its start: its pool, where dispatchers are, and how to be trusted by them."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from evenly.errors import InputError
from evenly.files import path_text, read_text
from evenly.inputs import is_listing, shown
from evenly.live.addresses import Address
from evenly.live.pool_url import check_pool_url
from evenly.live.session_id import check_pool_name

TOKEN_VARIABLE = "EVENLY_AGENT_TOKEN"  # environment variable with the token, if neither argument nor file has it
MIN_TOKEN, MAX_TOKEN = 16, 4096  # characters
MAX_DISPATCHERS = 100
MAX_URL = 500  # characters
AGENTS_PATH = "/v1/agents"
_SECURE = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_URL_LETTERS = re.compile(rf"[!-~]{{1,{MAX_URL}}}")


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """Checked settings. `dispatchers` are WebSocket URLs; `tls` is None if none of them uses TLS."""

    pool: str
    address: str
    dispatchers: tuple[str, ...]
    token: str | None = field(repr=False)
    tls: ssl.SSLContext | None


def check_settings(
    *,
    pool: str,
    address: str,
    dispatchers: Sequence[str],
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    ca_file: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> AgentSettings:
    """Return the settings of an agent, or raise InputError. The token is looked for in this order of arguments."""
    check_pool_name(pool)
    check_pool_url(address)
    if not is_listing(dispatchers) or not 1 <= len(dispatchers) <= MAX_DISPATCHERS:
        raise InputError(f"dispatchers must be a list of 1 to {MAX_DISPATCHERS} URLs, not {shown(dispatchers)}.")
    token = _read_token(token, token_file, environment)
    urls = tuple(dict.fromkeys(_dispatcher_url(each, has_token=token is not None) for each in dispatchers))
    secure = any(url.startswith("wss:") for url in urls)
    if ca_file is not None and not secure:
        raise InputError(f"ca_file is for dispatchers with https://, not for {shown(list(dispatchers))}.")
    return AgentSettings(
        pool=pool, address=address, dispatchers=urls, token=token, tls=_tls(ca_file) if secure else None
    )


def _dispatcher_url(given: object, *, has_token: bool) -> str:
    """Return the URL of a dispatcher's port for agents."""
    parts = _split(given)
    if parts is None or parts.scheme not in _SECURE or not parts.hostname or parts.query or parts.fragment:
        raise InputError(
            f"A dispatcher must be the URL of its API, such as http://127.0.0.1:4100, not {shown(given)}."
        )
    if parts.username is not None or parts.password is not None:
        raise InputError("The URL of a dispatcher must be without user and password: give a token.")
    scheme = _SECURE[parts.scheme]
    if has_token and scheme == "ws" and not Address(parts.hostname, 0).loopback:
        raise InputError(f"A token must not travel unencrypted: use https:// for the dispatcher {shown(given)}.")
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}{AGENTS_PATH}"


def _split(url: object) -> SplitResult | None:
    """Return the parts of a URL; None if it is none."""
    if not isinstance(url, str) or not _URL_LETTERS.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is no number
    except ValueError:
        return None
    return parts


def _read_token(
    token: str | None, token_file: str | os.PathLike[str] | None, environment: Mapping[str, str]
) -> str | None:
    if token is not None and token_file is not None:
        raise InputError("Give token or token_file, not both.")
    if token is not None:
        return _checked_token(token, "the argument token")
    if token_file is not None:
        return _checked_token(read_text(Path(token_file)).strip(), f"the file {path_text(token_file)}")
    from_environment = environment.get(TOKEN_VARIABLE)
    return _checked_token(from_environment, TOKEN_VARIABLE) if from_environment else None


def _checked_token(token: object, source: str) -> str:
    """Return a usable token. The message of a failure never contains it, because messages are logged."""
    if not isinstance(token, str) or not re.fullmatch(rf"[!-~]{{{MIN_TOKEN},{MAX_TOKEN}}}", token):
        raise InputError(
            f"The agent token from {source} must be {MIN_TOKEN} to {MAX_TOKEN} printable ASCII characters "
            "without spaces."
        )
    return token


def _tls(ca_file: str | os.PathLike[str] | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"Cannot use the CA file {path_text(ca_file)}: {reason}.") from None
