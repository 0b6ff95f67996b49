"""The state file: what a picker keeps across a restart.

That is its settings, the pools as changed at run time, and the alpha recommended for them. Session counts are not
kept: the Envoys know them and are polled.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ValidationError, model_validator

from evenly.errors import InputError
from evenly.files import atomic_write, read_text
from evenly.live.addresses import Address, check_pools
from evenly.live.settings import AddressField, AlphaField, Settings

MAX_BYTES = 16_000_000  # 10,000 pools with the longest names take less than half of it


class KnownPool(BaseModel):
    """A pool, and whether the operator drains it or has removed it."""

    address: AddressField
    endpoint: AddressField | None = None
    draining: bool = False
    leaving: bool = False


class PickerState(BaseModel):
    """The contents of a state file: the `settings` in use when it was written, and the `pools` that existed."""

    settings: Settings
    pools: list[KnownPool]
    alpha: AlphaField = None

    @model_validator(mode="after")
    def _check(self) -> PickerState:
        check_pools([pool.address for pool in self.pools])
        return self

    def pools_now(self, configured: tuple[Address, ...]) -> list[KnownPool]:
        """Return the pools, updated by the changes of the settings since then.

        A pool that the settings no longer list is leaving: it may still have sessions.
        """
        added, removed = map(dict.fromkeys, changes(self.settings.pool, configured))
        kept = [
            pool.model_copy(update={"leaving": True}) if pool.address in removed else pool for pool in self.pools
        ]
        # A pool that is listed again gets sessions again, as if it were added while the picker runs.
        again = {"leaving": False, "draining": False}
        back = [pool.model_copy(update=again) if pool.address in added and pool.leaving else pool for pool in kept]
        present = {pool.address for pool in back}
        return [*back, *(KnownPool(address=address) for address in added if address not in present)]


def changes(before: tuple[Address, ...], after: tuple[Address, ...]) -> tuple[list[Address], list[Address]]:
    """Return the pools added and the pools removed between two versions of the settings."""
    old, new = set(before), set(after)
    return [pool for pool in after if pool not in old], [pool for pool in before if pool not in new]


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
    """Write a state file atomically."""
    with atomic_write(path) as temporary:
        temporary.write_text(state.model_dump_json(), encoding="utf-8")
