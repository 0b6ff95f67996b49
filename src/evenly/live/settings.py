"""Settings of a gateway or a picker, from the command line or from a TOML file with the same names."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    model_validator,
)

from evenly.core import LearningRule, Policy, make_policy
from evenly.errors import InputError
from evenly.files import check_regular, read_toml
from evenly.inputs import number_from, positive_number, shown, whole_number
from evenly.live.addresses import (
    Address,
    WeightedPool,
    check_distinct,
    check_path,
    check_pools,
    check_weights,
    common_protocol,
    parse_address,
)
from evenly.live.fields import file_field
from evenly.live.pool_source import PoolSource, check_sources, parse_pool_or_source, parse_resolver
from evenly.live.sticky_rule import DEFAULT_MARGIN, StickyRule, check_margin, parse_sticky
from evenly.live.store_url import check_fleet, parse_store_url, without_password
from evenly.live.tls_settings import TlsSettings
from evenly.policies import (
    DEFAULT,
    LIVE,
    LIVE_WEIGHTED,
    POLICIES,
    check_live_weight,
    check_parameters,
    find_policy,
)

OLD_KEYS = {"choices": "sample_size", "drain": "drain_timeout"}
PROVISIONAL_ALPHA = "0.5"  # for the first seconds, until an alpha for the number of pools is computed
DEFAULT_FLEET = "default"
MAX_LOAD = 1000  # sessions per pool
MAX_SAMPLE_SIZE = 1000  # pools
MAX_SECONDS = 86400  # of slow start and of draining

Model = TypeVar("Model", bound=BaseModel)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InputError(f'An address must be text such as "127.0.0.1:8080", not {shown(value)}.')
    return value


def _address(value: object) -> Address:
    if isinstance(value, Address):
        return value
    return parse_address(_text(value), listening=True)


def _pool(value: object) -> WeightedPool | PoolSource:
    if isinstance(value, WeightedPool | PoolSource):
        return value
    return parse_pool_or_source(_text(value))


def _resolver(value: object) -> Address | None:
    return value if value is None or isinstance(value, Address) else parse_resolver(_text(value))


def _list(value: object) -> object:
    if not isinstance(value, list | tuple):
        raise InputError(f'pool must be a list such as ["127.0.0.1:9001"], not {shown(value)}.')
    return value


def _alpha(value: object) -> str | None:
    """Check an alpha, and keep its decimals as written."""
    if value is None:
        return None
    LearningRule(str(value))
    return str(value)


def _policy(value: object) -> str:
    return find_policy(value, LIVE).name


def _path(value: object) -> str | None:
    return None if value is None else check_path(value)


def _load_max(value: object) -> float | None:
    return None if value is None else positive_number("load-max", value, MAX_LOAD)


def _sample_size(value: object) -> int | None:
    return None if value is None else whole_number("sample-size", value, 1, MAX_SAMPLE_SIZE)


def seconds_field(name: str) -> BeforeValidator:
    """Return the check of a number of seconds."""
    return BeforeValidator(lambda value: number_from(name, value, 0, MAX_SECONDS))


def _store(value: object) -> object:
    if value is not None:
        parse_store_url(value)
    return value


def _shown_store(value: str | None) -> str | None:
    """Return a store's URL as state files have it: others may read them."""
    return None if value is None else without_password(value)


def _sticky(value: object) -> StickyRule | None:
    return value if value is None or isinstance(value, StickyRule) else parse_sticky(value)


def _margin(value: object) -> int | None:
    return None if value is None else check_margin(value)


AddressField = Annotated[Address, BeforeValidator(_address), PlainSerializer(str, return_type=str)]
PoolField = Annotated[WeightedPool | PoolSource, PlainValidator(_pool), PlainSerializer(str, return_type=str)]
ResolverField = Annotated[
    Address | None,
    BeforeValidator(_resolver),
    PlainSerializer(lambda value: None if value is None else str(value), return_type=str | None),
]
AlphaField = Annotated[str | None, BeforeValidator(_alpha)]
StoreField = Annotated[
    str | None, BeforeValidator(_store), PlainSerializer(_shown_store, return_type=str | None), Field(repr=False)
]
FleetField = Annotated[str, BeforeValidator(check_fleet)]
LoadMaxField = Annotated[float | None, BeforeValidator(_load_max)]
StickyField = Annotated[
    StickyRule | None,
    BeforeValidator(_sticky),
    PlainSerializer(lambda rule: None if rule is None else str(rule), return_type=str | None),
]


class Settings(TlsSettings):
    """Settings of a gateway or of a picker. `listen` takes clients (gateway) or Envoys (picker).

    Keys of `OLD_KEYS` are accepted under their old names too, also in state files of older versions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    listen: AddressField
    pool: Annotated[tuple[PoolField, ...], Field(strict=False), BeforeValidator(_list)]
    policy: Annotated[str, BeforeValidator(_policy)] = DEFAULT
    alpha: AlphaField = None
    load_max: LoadMaxField = None
    sample_size: Annotated[int | None, BeforeValidator(_sample_size)] = None
    admin: AddressField = Address("127.0.0.1", 8081)
    admin_token_file: Annotated[Path | None, Field(strict=False), file_field("admin-token-file")] = None
    health_path: Annotated[str | None, BeforeValidator(_path)] = None
    slow_start: Annotated[float, seconds_field("slow-start")] = 10.0
    drain_timeout: Annotated[float, seconds_field("drain-timeout")] = 30.0
    store: StoreField = None
    fleet: FleetField = DEFAULT_FLEET
    record: Annotated[Path | None, Field(strict=False), file_field("record")] = None
    sticky: StickyField = None
    sticky_margin: Annotated[int | None, BeforeValidator(_margin)] = None
    sticky_key_file: Annotated[Path | None, Field(strict=False), file_field("sticky-key-file")] = None
    resolver: ResolverField = None
    take_over: Annotated[bool, Field(exclude=True)] = False  # of one start: no state file keeps it

    @property
    def fixed(self) -> tuple[WeightedPool, ...]:
        """The pools with an address of their own."""
        return tuple(pool for pool in self.pool if isinstance(pool, WeightedPool))

    @property
    def sources(self) -> tuple[PoolSource, ...]:
        """The names whose DNS records list pools."""
        return tuple(pool for pool in self.pool if isinstance(pool, PoolSource))

    @model_validator(mode="before")
    @classmethod
    def _take_old_keys(cls, values: object) -> object:
        return with_new_keys(values, "The settings") if isinstance(values, dict) else values

    @model_validator(mode="after")
    def _agree(self) -> Settings:
        if not self.pool:
            raise InputError("Give at least one pool: --pool HOST:PORT.")
        addresses = [pool.address for pool in self.fixed]
        check_pools(addresses)
        check_sources(self.sources)
        check_weights(pool.weight for pool in self.pool)
        self.check_tls(self.protocol, self.health_path)
        for pool in self.pool:
            check_live_weight(self.policy, pool.weight)
        own = {"listen": self.listen} | ({"admin": self.admin} if self.admin_given else {})
        check_distinct(own)
        for name, address in own.items():
            if address in addresses:
                raise InputError(f"{name} must not be the address of a pool, {address}.")
        if self.alpha is not None and self.load_max is not None:
            raise InputError("Give alpha or load-max, not both.")
        check_parameters([self.policy], {"alpha": self.alpha, "sample_size": self.sample_size}, LIVE)
        if self.load_max is not None and not learns(self.policy):
            raise InputError(f"load-max is for policy threshold, not {self.policy}.")
        for name in ("sticky_margin", "sticky_key_file"):
            if self.sticky is None and getattr(self, name) is not None:
                raise InputError(f"{name.replace('_', '-')} needs sticky: add --sticky cookie.")
        return self

    @property
    def admin_given(self) -> bool:
        """Whether the admin port must be at `admin`. By default it is at any free port if that one is taken."""
        return "admin" in self.model_fields_set

    @property
    def admin_choices(self) -> tuple[Address, ...]:
        """The addresses to try for the admin port, the best first."""
        if self.admin_given:
            return (self.admin,)
        others = {self.listen.port, *(pool.address.port for pool in self.fixed)}
        usual = () if self.admin.port in others else (self.admin,)
        return (*usual, Address(self.admin.host, 0))

    @property
    def margin(self) -> int:
        """The sessions beyond its threshold that a pool may have when a client returns to it."""
        return DEFAULT_MARGIN if self.sticky_margin is None else self.sticky_margin

    @property
    def protocol(self) -> str:
        """What all pools speak: one of `pool_scheme.PROTOCOLS`."""
        return common_protocol(pool.scheme for pool in self.pool)


def with_new_keys(values: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Replace old names of keys by new ones. Both names of one key are an InputError that names the source."""
    for old, new in OLD_KEYS.items():
        if old in values and new in values:
            raise InputError(f"{source} must have {new} or its old name {old}, not both.")
    return {OLD_KEYS.get(key, key): value for key, value in values.items()}


def read_settings(given: Mapping[str, Any], config: Path | None) -> Settings:
    """Read the settings of the file, if there is one, and of the options given, which win."""
    of_file = {} if config is None else read_keys(config, Settings)
    values = {**of_file, **with_new_keys(given, "The options")}
    if "listen" not in values:
        raise InputError("--listen HOST:PORT is required.")
    values.setdefault("pool", ())
    return validated(Settings, values)


def validated(model: type[Model], values: Mapping[str, Any]) -> Model:
    """Return the settings, or raise InputError with the first thing that is wrong."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InputError(_sentence(error)) from None


def learns(policy: str) -> bool:
    """Return whether the policy has a threshold that it learns."""
    return "alpha" in POLICIES[policy].parameters


def follows_weights(policy: str) -> bool:
    """Return whether the policy gives pools sessions by their weights."""
    return policy in LIVE_WEIGHTED


def new_policy(settings: Settings, *, alpha: str | None = None) -> Policy:
    """Make the policy. `alpha` is one that was recommended earlier.

    With pools of one weight, `threshold-utility` makes exactly the decisions of `threshold`. So it takes the place
    of that, and weights can be changed while it runs.
    """
    learned = settings.alpha or alpha or PROVISIONAL_ALPHA
    return make_policy(
        "threshold-utility" if settings.policy == "threshold" else settings.policy,
        alpha=learned if learns(settings.policy) else None,
        sample_size=settings.sample_size,
    )


def read_keys(path: Path, model: type[BaseModel]) -> dict[str, Any]:
    """Read a file of settings whose keys are the fields of the model."""
    check_regular(path)  # it is watched, and a gateway's picker reads it again
    values = with_new_keys(read_toml(path), str(path))
    for key in values:
        if key not in model.model_fields:
            near = get_close_matches(key, model.model_fields, n=1)
            known = dict.fromkeys((*model.__annotations__, *model.model_fields))  # its own fields come first
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}."
            raise InputError(f"{path} has an unknown key {shown(key)}: {hint}")
    return values


def _sentence(error: ValidationError) -> str:
    """Put the first validation error into one sentence. Our validators raise sentences already."""
    first = error.errors()[0]
    reason = first.get("ctx", {}).get("error")
    if isinstance(reason, InputError):
        return str(reason)
    place = ".".join(str(part) for part in first["loc"]).replace("_", "-") or "The settings"
    return f"Invalid {place}: {first['msg']}, not {shown(first['input'])}."
