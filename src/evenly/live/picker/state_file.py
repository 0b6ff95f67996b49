"""The state file: what a picker keeps across a restart.

That is its settings, the pools as changed at run time, and the alpha recommended for them. Session counts are not
kept: the Envoys know them and are polled.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, BeforeValidator, ValidationError, model_validator

from evenly.errors import InputError
from evenly.files import atomic_write, read_text
from evenly.live.addresses import WeightedPool, check_pools, checked_weight
from evenly.live.settings import AddressField, AlphaField, Settings

MAX_BYTES = 16_000_000  # 10,000 pools with the longest names take less than half of it


class KnownPool(BaseModel):
    """A pool, and whether the operator drains it or has removed it."""

    address: AddressField
    endpoint: AddressField | None = None
    weight: Annotated[float, BeforeValidator(checked_weight)] = 1.0
    draining: bool = False
    leaving: bool = False
    source: str = ""


class KnownServer(BaseModel):
    """A server that DNS listed."""

    address: AddressField
    weight: Annotated[float, BeforeValidator(checked_weight)] = 1.0


class KnownAnswer(BaseModel):
    """What DNS listed last under a name: a restarted picker uses it until DNS answers again."""

    source: str
    servers: list[KnownServer]


class KnownHold(BaseModel):
    """A pool that the operator removed, else drained, and when DNS last listed it."""

    address: AddressField
    removed: bool
    listed: float


class PickerState(BaseModel):
    """The contents of a state file: the `settings` in use when it was written, and the `pools` that existed."""

    settings: Settings
    pools: list[KnownPool]
    alpha: AlphaField = None
    answers: list[KnownAnswer] = []
    by_hand: list[KnownHold] = []

    @model_validator(mode="after")
    def _check(self) -> PickerState:
        check_pools([pool.address for pool in self.pools])
        return self

    def pools_now(self, configured: Sequence[WeightedPool]) -> list[KnownPool]:
        """Return the pools, updated by the changes of the settings since then.

        A pool that the settings no longer list is leaving: it may still have sessions. One that is listed again
        gets sessions again, as if it were added while the picker runs.
        """
        now = changes(self.settings.fixed, configured)
        added, removed = ({pool.address for pool in some} for some in (now.added, now.removed))
        weights = {pool.address: pool.weight for pool in (*now.added, *now.reweighted)}
        pools = []
        for pool in self.pools:
            new: dict[str, object] = {"weight": weights.get(pool.address, pool.weight)}
            if pool.address in removed:
                new["leaving"] = True
            elif pool.address in added and pool.leaving:
                new |= {"leaving": False, "draining": False}
            pools.append(pool.model_copy(update=new))
        present = {pool.address for pool in pools}
        more = (
            KnownPool(address=pool.address, weight=pool.weight)
            for pool in now.added
            if pool.address not in present
        )
        return [*pools, *more]

    def by_operator(self, configured: Sequence[WeightedPool]) -> ByOperator:
        """Return how many pools the operator has drained and removed, and how many can get sessions."""
        pools = [pool for pool in self.pools_now(configured) if not pool.leaving]
        named = {pool.address for pool in configured} | {hold.address for hold in self.by_hand if hold.removed}
        drained = sum(pool.draining for pool in pools)
        removed = len(named - {pool.address for pool in pools})
        return ByOperator(drained=drained, removed=removed, left=len(pools) - drained)


class ByOperator(NamedTuple):
    """Pools that the operator has `drained` and `removed`, and those `left` that can get sessions."""

    drained: int
    removed: int
    left: int


class Changes(NamedTuple):
    """The pools that two versions of the settings differ in. `reweighted` ones have their new weight."""

    added: list[WeightedPool]
    removed: list[WeightedPool]
    reweighted: list[WeightedPool]


def changes(before: Sequence[WeightedPool], after: Sequence[WeightedPool]) -> Changes:
    """Compare the pools of two versions of the settings."""
    old, new = ({pool.address: pool.weight for pool in pools} for pools in (before, after))
    return Changes(
        added=[pool for pool in after if pool.address not in old],
        removed=[pool for pool in before if pool.address not in new],
        reweighted=[pool for pool in after if old.get(pool.address, pool.weight) != pool.weight],
    )


def load(path: Path) -> PickerState | None:
    """Read a state file; return None if there is none."""
    if not path.exists():
        return None
    text = read_text(path, MAX_BYTES)
    try:
        return PickerState.model_validate_json(text)
    except ValidationError:
        raise InputError(f"{path} is not a file that a picker wrote; remove it or name another.") from None


def save(path: Path, state: PickerState) -> None:
    """Write a state file atomically. Only its owner can read it."""
    with atomic_write(path, mode=0o600) as temporary:
        temporary.write_text(state.model_dump_json(), encoding="utf-8")
