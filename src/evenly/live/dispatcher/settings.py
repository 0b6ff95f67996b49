"""Settings of a dispatcher, from the command line or from a TOML file with the same names, and its tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from evenly.errors import InputError
from evenly.inputs import number_from, true_or_false
from evenly.live.addresses import Address, check_distinct
from evenly.live.admin_token import find_token, read_token
from evenly.live.fields import file_field
from evenly.live.settings import (
    DEFAULT_FLEET,
    PROVISIONAL_ALPHA,
    AddressField,
    AlphaField,
    FleetField,
    LoadMaxField,
    StoreField,
    read_keys,
    validated,
)
from evenly.live.store.base import FleetSettings
from evenly.live.tls import KeyPair, pair_of

AGENT_TOKEN_VARIABLE = "EVENLY_AGENT_TOKEN"
CLIENT_TOKEN_VARIABLE = "EVENLY_CLIENT_TOKEN"
MIN_HEARTBEAT, MAX_HEARTBEAT = 0.05, 60.0  # seconds
MAX_LEASE = 3600.0  # seconds; every place that is held costs memory until then
_SILENT_HEARTBEATS = 4  # two lost heartbeats in a row do no harm


def _heartbeat(value: object) -> float:
    return number_from("heartbeat", value, MIN_HEARTBEAT, MAX_HEARTBEAT)


def _lease(value: object) -> float:
    return number_from("lease", value, 2 * MIN_HEARTBEAT, MAX_LEASE)


def _file(name: str) -> Any:  # noqa: ANN401  (a type built by pydantic's rules)
    return Annotated[Path | None, Field(strict=False), file_field(name)]


class DispatcherSettings(BaseModel):
    """Settings of a dispatcher. `listen` takes clients and agents."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    listen: AddressField = Address("127.0.0.1", 4100)
    admin: AddressField = Address("127.0.0.1", 0)
    admin_token_file: _file("admin-token-file") = None  # type: ignore[valid-type]
    alpha: AlphaField = None
    load_max: LoadMaxField = None
    heartbeat: Annotated[float, BeforeValidator(_heartbeat)] = 2.0
    lease: Annotated[float, BeforeValidator(_lease)] = 10.0
    store: StoreField = None
    fleet: FleetField = DEFAULT_FLEET
    tls_cert: _file("tls-cert") = None  # type: ignore[valid-type]
    tls_key: _file("tls-key") = None  # type: ignore[valid-type]
    agent_token_file: _file("agent-token-file") = None  # type: ignore[valid-type]
    client_token_file: _file("client-token-file") = None  # type: ignore[valid-type]
    record: _file("record") = None  # type: ignore[valid-type]
    open_picks: Annotated[bool, BeforeValidator(lambda value: true_or_false("open-picks", value))] = False

    @model_validator(mode="after")
    def _agree(self) -> DispatcherSettings:
        check_distinct({"listen": self.listen, "admin": self.admin})
        if self.alpha is not None and self.load_max is not None:
            raise InputError("Give alpha or load-max, not both.")
        if self.lease < 2 * self.heartbeat:
            raise InputError(
                f"lease must be at least two heartbeats, {2 * self.heartbeat:.12g} seconds, not "
                f"{self.lease:.12g}: the dispatcher may learn of an arrival only from the next heartbeat."
            )
        pair_of(self.tls_cert, self.tls_key)
        return self

    @property
    def tls(self) -> KeyPair | None:
        """The certificate of both ports and its key, None without TLS."""
        return pair_of(self.tls_cert, self.tls_key)

    @property
    def silence(self) -> float:
        """Seconds after which a pool that sends nothing is taken for dead."""
        return _SILENT_HEARTBEATS * self.heartbeat

    def for_fleet(self) -> FleetSettings:
        """Return the settings that a store needs."""
        return FleetSettings(
            alpha=self.alpha or PROVISIONAL_ALPHA,
            lease=self.lease,
            silence=self.silence,
            memory=self.lease,
            heartbeat=self.heartbeat,
        )


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens that callers must show; None where none is needed."""

    admin: str | None
    agent: str | None
    client: str | None


def read_dispatcher_settings(given: Mapping[str, Any], config: Path | None) -> DispatcherSettings:
    """Read the settings of the file, if there is one, and of the options given, which win."""
    of_file = {} if config is None else read_keys(config, DispatcherSettings)
    return validated(DispatcherSettings, {**of_file, **given})


def read_tokens(settings: DispatcherSettings, environment: Mapping[str, str]) -> Tokens:
    """Read all tokens. Raises InputError if other machines can reach a port that is not protected."""
    agent = find_token("agent", settings.agent_token_file, AGENT_TOKEN_VARIABLE, environment)
    client = find_token("client", settings.client_token_file, CLIENT_TOKEN_VARIABLE, environment)
    if client is not None and settings.open_picks:
        raise InputError("Give a client token or open-picks, not both.")
    tls = settings.tls_cert is not None
    missing = [
        what
        for what, there in (
            ("--tls-cert and --tls-key", tls),
            (f"--agent-token-file (or {AGENT_TOKEN_VARIABLE})", agent is not None),
            (
                f"--client-token-file (or {CLIENT_TOKEN_VARIABLE}), or --open-picks to let everyone pick",
                client is not None or settings.open_picks,
            ),
        )
        if not there
    ]
    if missing and not settings.listen.loopback:
        raise InputError(
            f"The address {settings.listen} can be reached from other machines, which needs TLS and tokens: add "
            f"{'; '.join(missing)}; or listen on a loopback address such as 127.0.0.1:{settings.listen.port}."
        )
    if not tls and not settings.admin.loopback:
        raise InputError(
            f"The admin address {settings.admin} can be reached from other machines: add --tls-cert and "
            f"--tls-key, or use a loopback address such as 127.0.0.1:{settings.admin.port}."
        )
    return Tokens(read_token(settings.admin, settings.admin_token_file, environment), agent, client)
