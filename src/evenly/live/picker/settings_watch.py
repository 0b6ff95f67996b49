"""A watch on the settings file: pools are added and removed as it changes. A bad file never stops the picker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any

from evenly.errors import InputError
from evenly.files import Fingerprint, fingerprint
from evenly.live.addresses import Address, WeightedPool, resolve
from evenly.live.balancer.balancer import Balancer
from evenly.live.log import Log
from evenly.live.picker.state_file import changes
from evenly.live.settings import Settings, read_settings

_POLL_S = 0.5
_RETRY_S = 10.0  # for a file that could not be used: host names may resolve by then


class SettingsFile:
    """A settings file. `seen` is its fingerprint when it was last read, `given` the options that override it."""

    def __init__(
        self, path: Path, seen: Fingerprint | None, given: Mapping[str, Any], balancer: Balancer, log: Log
    ) -> None:
        self._path = path
        self._seen = seen
        self._given = given
        self._balancer = balancer
        self._log = log

    async def follow(self, settings: Settings, use: Callable[[Settings], None]) -> None:
        """Follow changes from these settings on, until cancelled; `use` is called with the settings in force."""
        again = inf
        while True:
            await asyncio.sleep(_POLL_S)
            now = fingerprint(self._path)
            if now != self._seen or time.monotonic() > again:
                self._seen = now
                settings, whole = await self._changed(settings)
                again = inf if whole else time.monotonic() + _RETRY_S
                use(settings)

    async def _changed(self, settings: Settings) -> tuple[Settings, bool]:
        """Apply the file's pool changes. Return the settings in force, and whether all changes were applied."""
        try:
            new = await asyncio.to_thread(read_settings, self._given, self._path)
            if new.protocol != settings.protocol:
                raise InputError(
                    f"Restart to change the protocol of the pools from {settings.protocol} to {new.protocol}."
                )
            added, removed, reweighted = changes(settings.fixed, new.fixed)
            endpoints = {pool: await resolved(pool.address) for pool in added}
        except Exception as error:  # a file can be bad in many ways
            self._log.event("settings not used", reason=str(error) or repr(error))
            return settings, False
        for pool in removed:  # first: a pool may be listed under another name now
            with suppress(InputError):  # the operator has removed it already
                self._balancer.remove(pool.address)
        # The operator may have added or removed some already.
        present = {pool.address for pool in self._balancer.pools if not pool.leaving}
        weighed = [pool for pool in (*reweighted, *added) if pool.address in present]
        refused = set() if self._weigh(weighed) else set(weighed)
        refused |= {pool for pool in added if pool.address not in present and not self._add(pool, endpoints[pool])}
        others = {key for key in Settings.model_fields if getattr(new, key) != getattr(settings, key)}
        self._log.event(
            "settings read",
            added=[str(pool.address) for pool in added if pool not in refused],
            removed=[str(pool.address) for pool in removed],
            reweighted=[str(pool.address) for pool in reweighted if pool not in refused],
            after_restart=sorted(others - {"pool"}),
            **({"sources": [str(source) for source in new.sources]} if new.sources != settings.sources else {}),
        )
        before = {pool.address: pool for pool in settings.fixed}
        in_force = (before.get(pool.address) if pool in refused else pool for pool in new.fixed)
        pools = tuple(pool for pool in in_force if pool is not None)
        return settings.model_copy(update={"pool": (*pools, *new.sources)}), not refused

    def _add(self, pool: WeightedPool, endpoint: Address) -> bool:
        try:
            self._balancer.add(pool.address, endpoint, weight=pool.weight)
        except InputError as error:
            self._log.event("pool not added", pool=str(pool.address), reason=str(error))
            return False
        return True

    def _weigh(self, pools: Sequence[WeightedPool]) -> bool:
        try:
            self._balancer.set_weights({pool.address: pool.weight for pool in pools})
        except InputError as error:
            self._log.event("weights not changed", pools=[str(pool) for pool in pools], reason=str(error))
            return False
        return True


async def resolved(address: Address) -> Address:
    """Resolve an address without blocking the event loop."""
    return await asyncio.get_running_loop().run_in_executor(None, resolve, address)
