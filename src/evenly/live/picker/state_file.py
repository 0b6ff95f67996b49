"""What a picker remembers over a restart: its settings, pools changed at run time, and the alpha found for them.

The counts of sessions are not kept here: the Envoys know them, and they are asked.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ValidationError

from evenly.errors import InputError
from evenly.files import atomic_write
from evenly.live.addresses import Address
from evenly.live.settings import AddressField, Settings


class KnownPool(BaseModel):
    """A pool, and what the operator wants of it."""

    address: AddressField
    endpoint: AddressField | None = None
    draining: bool = False
    leaving: bool = False


class Memory(BaseModel):
    """`settings` are those in use at the time, `pools` those there really were."""

    settings: Settings
    pools: list[KnownPool]
    alpha: str | None = None

    def pools_now(self, configured: tuple[Address, ...]) -> list[KnownPool]:
        """The pools, with what has changed in the settings since then. One that went may have sessions yet."""
        came, went = changes(self.settings.pool, configured)
        kept = [pool.model_copy(update={"leaving": True}) if pool.address in went else pool for pool in self.pools]
        back = [pool.model_copy(update={"leaving": False}) if pool.address in came else pool for pool in kept]
        present = {pool.address for pool in back}
        return [*back, *(KnownPool(address=address) for address in came if address not in present)]


def changes(before: tuple[Address, ...], after: tuple[Address, ...]) -> tuple[list[Address], list[Address]]:
    """Pools that came and pools that went, from one version of the settings to the next."""
    return [pool for pool in after if pool not in before], [pool for pool in before if pool not in after]


def recall(path: Path) -> Memory | None:
    """What was remembered; None if nothing was."""
    try:
        return Memory.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from None
    except ValidationError:
        raise InputError(f"{path} is not a file that a picker wrote; remove it or name another.") from None


def remember(path: Path, memory: Memory) -> None:
    """Write it down."""
    with atomic_write(path) as temporary:
        temporary.write_text(memory.model_dump_json(), encoding="utf-8")
