"""The settings file is watched: pools come and go with it, and nothing that it says can stop the picker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any

from evenly.errors import InputError
from evenly.live.addresses import Address, resolve
from evenly.live.balancer.balancer import Balancer
from evenly.live.log import Log
from evenly.live.picker.state_file import changes
from evenly.live.settings import Settings, read_settings

_LOOK = 0.5  # seconds between two looks
_AGAIN = 10.0  # and how soon a file that could not be used is tried again: names may be known then


Fingerprint = tuple[int, int, int]


class SettingsFile:
    """The file as it was `seen` when it was read, and the options that win over it."""

    def __init__(
        self, path: Path, seen: Fingerprint | None, given: Mapping[str, Any], balancer: Balancer, log: Log
    ) -> None:
        self._path = path
        self._seen = seen
        self._given = given
        self._balancer = balancer
        self._log = log

    async def follow(self, settings: Settings, use: Callable[[Settings], None]) -> None:
        """From these settings on, for ever; `use` hears of the next ones."""
        again = inf
        while True:
            await asyncio.sleep(_LOOK)
            now = fingerprint(self._path)
            if now != self._seen or time.monotonic() > again:
                self._seen = now
                settings, whole = await self._changed(settings)
                again = inf if whole else time.monotonic() + _AGAIN
                use(settings)

    async def _changed(self, settings: Settings) -> tuple[Settings, bool]:
        """The settings after the pools have changed as the file says, and whether all it says could be done."""
        try:
            new = read_settings(self._given, self._path)
            came, went = changes(settings.pool, new.pool)
            endpoints = {address: await resolved(address) for address in came}
        except Exception as error:  # a bad file, in any way that one can be bad
            self._log.event("settings not used", reason=str(error) or repr(error))
            return settings, False
        for address in went:  # first: a pool may come back under another name
            with suppress(InputError):  # somebody removed it by hand already
                self._balancer.remove(address)
        refused = {address for address in came if not self._added(address, endpoints[address])}
        others = {key for key in Settings.model_fields if getattr(new, key) != getattr(settings, key)}
        self._log.event(
            "settings read",
            added=[str(address) for address in came if address not in refused],
            removed=[*map(str, went)],
            after_restart=sorted(others - {"pool"}),
        )
        pools = tuple(pool for pool in new.pool if pool not in refused)
        return settings.model_copy(update={"pool": pools}), not refused

    def _added(self, address: Address, endpoint: Address) -> bool:
        if any(pool.address == address and not pool.leaving for pool in self._balancer.pools):
            return True  # somebody added it by hand already
        try:
            self._balancer.add(address, endpoint)
        except InputError as error:
            self._log.event("pool not added", pool=str(address), reason=str(error))
            return False
        return True


def fingerprint(path: Path) -> Fingerprint | None:
    """What changes when the file does; taken before the file is read, so that no change goes unseen."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


async def resolved(address: Address) -> Address:
    """The address by number, looked up while other things go on."""
    return await asyncio.get_running_loop().run_in_executor(None, resolve, address)
