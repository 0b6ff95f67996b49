"""What a picker remembers over a restart: pools changed at run time, and the alpha found for them.

The counts of sessions are not kept here: the Envoys know them, and they are asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, PlainSerializer, ValidationError

from evenly.errors import InputError
from evenly.files import whole_file
from evenly.live.addresses import Address, parse_address

_Address = Annotated[
    Address,
    BeforeValidator(lambda value: parse_address(value) if isinstance(value, str) else value),
    PlainSerializer(str, return_type=str),
]


class KnownPool(BaseModel):
    """A pool, and whether it is draining."""

    address: _Address
    draining: bool = False


class Memory(BaseModel):
    """`configured` are the pools that the settings named at the time, `pools` those there really were."""

    configured: list[_Address]
    pools: list[KnownPool]
    alpha: str | None = None

    def pools_now(self, configured: tuple[Address, ...]) -> list[KnownPool]:
        """The pools, with what has changed in the settings since then."""
        new, gone = changes(tuple(self.configured), configured)
        kept = [pool for pool in self.pools if pool.address not in gone]
        present = {pool.address for pool in kept}
        return [*kept, *(KnownPool(address=address) for address in new if address not in present)]


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
    with whole_file(path) as temporary:
        temporary.write_text(memory.model_dump_json(), encoding="utf-8")
