"""Steps of an operator: pools come, drain and go, the settings file flaps, and a gateway drains."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from chaos.field import SETTLE_S, START_S, Field, eventually
from chaos.gateway import PICKER, Gateway
from chaos.http import exchange, request
from chaos.innocents import crowd
from chaos.requests import admin_accepts
from chaos.steps import step


@step
async def pools_drained_and_removed(field: Field, chance: random.Random) -> None:
    """Pools are drained and undrained, removed and added again. Their sessions continue."""
    for pool in chance.sample(field.pools, min(3, len(field.pools))):
        for path in ("drain", "undrain"):
            await admin_accepts(field, "POST", f"/pools/{pool.address}/{path}")
        await admin_accepts(field, "DELETE", f"/pools/{pool.address}")
        await asyncio.sleep(chance.uniform(0, 0.5))
        await admin_accepts(field, "POST", "/pools", json.dumps({"address": str(pool.address)}).encode())


@step
async def flapping_settings(field: Field, chance: random.Random) -> None:
    """The settings file changes again and again: pools leave and return, and at times the file is invalid."""
    addresses = [pool.address for pool in field.pools]
    try:
        for _ in range(chance.randint(10, 20)):
            kept = [address for address in addresses if chance.random() < 0.8] or addresses
            field.gateway.write_settings(kept, more=chance.choice(("", "", "not toml ]")))
            await asyncio.sleep(chance.uniform(0, 0.6))
    finally:
        field.gateway.write_settings(addresses)

    async def listed() -> int:
        state = await field.gateway.state()
        leaving = ("leaving", "draining")
        return 0 if state is None else sum(pool["state"] not in leaving for pool in state["pools"])

    count, all_back = await eventually(listed, lambda count: count == len(addresses), SETTLE_S)
    field.expect(all_back, f"only {count} of {len(addresses)} pools serve after the last change of the file")


@step
async def all_draining_without_picker(field: Field, chance: random.Random) -> None:
    """All pools drain and the picker is dead: new requests are refused, and sessions continue."""
    for pool in field.pools:
        await admin_accepts(field, "POST", f"/pools/{pool.address}/drain")
    await asyncio.sleep(1)  # Envoy gets the list from the picker at once; a slow machine needs a moment
    statuses: Counter[int] = Counter()
    end = time.monotonic() + 3
    killer = asyncio.create_task(_keep_killing(field, end))
    try:
        for _ in range(40):
            statuses[(await exchange(field.gateway.listen, request("GET", "/"))).status] += 1
            await asyncio.sleep(0.03)
    finally:
        await killer
        await field.gateway.wait_for(PICKER, START_S)
        await eventually(field.gateway.state, lambda state: state is not None, START_S)
        for pool in field.pools:
            await admin_accepts(field, "POST", f"/pools/{pool.address}/undrain")
    field.expect(statuses[200] == 0, f"{statuses[200]} of 40 requests reached pools that drain")


async def _keep_killing(field: Field, end: float) -> None:
    while time.monotonic() < end:
        field.gateway.signal(PICKER, signal.SIGKILL)
        await asyncio.sleep(0.1)


@step
async def drain_without_picker(field: Field, chance: random.Random) -> None:
    """A second gateway drains and its picker dies: /readyz never returns 200 again."""
    with TemporaryDirectory(prefix="evenly-chaos-") as folder:
        gateway = Gateway(Path(folder), [field.pools[0].address], files=field.size.files, drain_timeout=20)
        statuses: Counter[int] = Counter()
        try:
            await gateway.start()
            async with crowd(gateway.listen, 1) as people:
                await people.wait(SETTLE_S)
                gateway.terminate()
                _, draining = await eventually(gateway.ready, lambda status: status == 503, SETTLE_S)
                field.expect(draining, "/readyz does not become 503 during a drain")
                gateway.signal(PICKER, signal.SIGKILL)
                end = time.monotonic() + 5
                while time.monotonic() < end:
                    statuses[await gateway.ready()] += 1
                    await asyncio.sleep(0.1)
        finally:
            await gateway.stop()
    field.expect(statuses[200] == 0, "/readyz is 200 during a drain after the picker died")
