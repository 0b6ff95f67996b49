"""What an operator may set, on the command line or in a TOML file with the same names."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from evenly.core import JoinShortestQueue, LearningRule, Policy, PowerOfD, RandomRouting, ThresholdPolicy
from evenly.errors import InputError
from evenly.live.addresses import Address, check_path, check_pools, parse_address

DEFAULT_CHOICES = 2
PROVISIONAL_ALPHA = "0.5"  # until advice for so many pools is there, a few seconds later


def _address(value: object) -> Address:
    return value if isinstance(value, Address) else parse_address(str(value))


def _list(value: object) -> object:
    if not isinstance(value, list | tuple):
        raise InputError(f'pool must be a list such as ["127.0.0.1:9001"], not {value!r}.')
    return value


def _alpha(value: object) -> str | None:
    """The decimal as it was written."""
    if value is None:
        return None
    LearningRule(str(value))
    return str(value)


def _path(value: object) -> object:
    return check_path(value) if isinstance(value, str) else value


def _file(value: object) -> object:
    if value is not None and not isinstance(value, str | Path):
        raise InputError(f"admin-token-file must be the name of a file, not {value!r}.")
    return value


AddressField = Annotated[Address, BeforeValidator(_address), PlainSerializer(str, return_type=str)]


class Settings(BaseModel):
    """Of a gateway or of a picker alone; `listen` is for clients or for Envoys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    listen: AddressField
    pool: Annotated[tuple[AddressField, ...], Field(strict=False), BeforeValidator(_list)]
    policy: Literal["threshold", "jsq", "power-of-d", "random"] = "threshold"
    alpha: Annotated[str | None, BeforeValidator(_alpha)] = None
    load_max: Annotated[float | None, Field(gt=0, le=1000, allow_inf_nan=False)] = None
    choices: Annotated[int | None, Field(ge=1, le=1000)] = None
    admin: AddressField = Address("127.0.0.1", 0)
    admin_token_file: Annotated[Path | None, Field(strict=False), BeforeValidator(_file)] = None
    health_path: Annotated[str | None, BeforeValidator(_path)] = None
    slow_start: Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)] = 10.0
    drain: Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)] = 30.0

    @model_validator(mode="after")
    def _agree(self) -> Settings:
        if not self.pool:
            raise InputError("Give at least one pool: --pool HOST:PORT.")
        check_pools(self.pool)
        if self.alpha is not None and self.load_max is not None:
            raise InputError("load-max is there to find an alpha: give one of the two.")
        if self.policy != "threshold" and (self.alpha is not None or self.load_max is not None):
            raise InputError(f"alpha and load-max are for the policy threshold, not for {self.policy}.")
        if self.policy != "power-of-d" and self.choices is not None:
            raise InputError(f"choices is for the policy power-of-d, not for {self.policy}.")
        return self


def read_settings(given: Mapping[str, Any], config: Path | None) -> Settings:
    """The settings of a file, if there is one, and of the options given, which win."""
    values = {**({} if config is None else _read_file(config)), **given}
    if "listen" not in values:
        raise InputError("Say where to listen: --listen HOST:PORT.")
    values.setdefault("pool", ())
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise InputError(_sentence(error)) from None


def make_policy(settings: Settings, *, alpha: str | None = None) -> Policy:
    """The policy asked for; `alpha` is one found earlier."""
    if settings.policy == "jsq":
        return JoinShortestQueue()
    if settings.policy == "power-of-d":
        return PowerOfD(settings.choices or DEFAULT_CHOICES)
    if settings.policy == "random":
        return RandomRouting()
    return ThresholdPolicy(rule=LearningRule(settings.alpha or alpha or PROVISIONAL_ALPHA))


def _read_file(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not TOML: {error}.") from None
    for key in values:
        if key not in Settings.model_fields:
            near = get_close_matches(key, Settings.model_fields, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(Settings.model_fields)}."
            raise InputError(f"{path} has an unknown key {key!r}: {hint}")
    return values


def _sentence(error: ValidationError) -> str:
    """The first complaint, in our words where they are ours."""
    first = error.errors()[0]
    reason = first.get("ctx", {}).get("error")
    if isinstance(reason, InputError):
        return str(reason)
    name = str(first["loc"][0]).replace("_", "-") if first["loc"] else "The settings"
    message = first["msg"].removeprefix("Input should be ")
    return f"{name} must be {message}, not {first['input']!r}."
