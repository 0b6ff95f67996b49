"""Steps that kill, freeze and restart: the picker, pools and Envoy."""

from __future__ import annotations

import asyncio
import random
import signal

from chaos import attackers
from chaos.field import SETTLE_S, START_S, Field, eventually
from chaos.gateway import ENVOY, PICKER
from chaos.http import exchange, read_answer, request
from chaos.innocents import try_once
from chaos.processes import listening_paths, listening_ports
from chaos.steps import step
from evenly.live.addresses import Address


@step
async def picker_killed(field: Field, chance: random.Random) -> None:
    """The picker is killed several times in a row, with clients coming all the time."""
    for _ in range(chance.randint(2, 5)):
        before = field.gateway.pids().get(PICKER)
        field.gateway.signal(PICKER, signal.SIGKILL)
        reason = await try_once(field.gateway.listen)
        field.expect(not reason, f"a client was not served without the picker: {reason}")
        back = await field.gateway.wait_for(PICKER, START_S, other_than=before)
        field.expect(back, "the picker did not come back")


@step
async def picker_killed_under_attack(field: Field, chance: random.Random) -> None:
    """The picker is killed while hanging streams fill the gateway, and counts them all when it is back."""
    before = field.gateway.pids().get(PICKER)
    async with attackers.hanging_streams(field.gateway.listen, chance.randint(2, 6)):
        field.gateway.signal(PICKER, signal.SIGKILL)
        back = await field.gateway.wait_for(PICKER, START_S, other_than=before)
        field.expect(back, "the picker did not come back")
        wrong, right = await eventually(field.lasting_mismatch, lambda wrong: not wrong, SETTLE_S)
        field.expect(right, f"the new picker counts {len(wrong)} pools wrong during the attack")


@step
async def picker_frozen(field: Field, chance: random.Random) -> None:
    """The picker freezes for some seconds, with clients coming all the time."""
    field.gateway.signal(PICKER, signal.SIGSTOP)
    try:
        await asyncio.sleep(chance.uniform(1, 4))
        reason = await try_once(field.gateway.listen)
        field.expect(not reason, f"a client was not served without the picker: {reason}")
    finally:
        field.gateway.signal(PICKER, signal.SIGCONT)


@step
async def envoy_killed(field: Field, chance: random.Random) -> None:
    """Envoy is killed. Its sessions end; the gateway starts it again."""
    field.forgive_envoy()
    before = field.gateway.pids().get(ENVOY)
    field.gateway.signal(ENVOY, signal.SIGKILL)
    back = await field.gateway.wait_for(ENVOY, START_S, other_than=before)
    field.expect(back, "Envoy did not come back")
    seconds = await field.served_again(SETTLE_S)
    field.expect(seconds is not None, f"no client was served within {SETTLE_S:g} s")


@step
async def envoy_deaf(field: Field, chance: random.Random) -> None:
    """Envoy stops listening but runs on. The gateway notices and starts it again."""
    field.forgive_envoy()
    envoy = field.gateway.pids()[ENVOY]
    for path in listening_paths(envoy):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(request("POST", "/drain_listeners"))
        await read_answer(reader)
        writer.transport.abort()
    for port in listening_ports(envoy) - {field.gateway.listen.port}:
        await exchange(Address("127.0.0.1", port), request("POST", "/drain_listeners"))
    seconds = await field.served_again(SETTLE_S)
    if seconds is None:
        status = await field.gateway.ready()
        field.expect(False, f"the gateway is deaf, and /readyz is {status}")
    else:
        field.note(served_after=round(seconds, 1))


@step
async def envoy_frozen(field: Field, chance: random.Random) -> None:
    """Envoy freezes for some seconds. No session ends."""
    field.gateway.signal(ENVOY, signal.SIGSTOP)
    try:
        await asyncio.sleep(chance.uniform(1, 4))
    finally:
        field.gateway.signal(ENVOY, signal.SIGCONT)


@step
async def pools_killed(field: Field, chance: random.Random) -> None:
    """Some pools are killed and come back. Only their own sessions end."""
    victims = chance.sample(field.pools, chance.randint(1, max(1, len(field.pools) // 4)))
    field.forgive(victims)
    field.note(pools=len(victims))
    for pool in victims:
        await pool.kill()
    try:
        await asyncio.sleep(chance.uniform(0, 3))
        reason = await try_once(field.gateway.listen)
        field.expect(not reason, f"a client was not served by the other pools: {reason}")
    finally:
        for pool in victims:
            await pool.start()


@step
async def pools_frozen(field: Field, chance: random.Random) -> None:
    """Some pools freeze for some seconds. No session ends."""
    victims = chance.sample(field.pools, chance.randint(1, max(1, len(field.pools) // 4)))
    field.note(pools=len(victims))
    for pool in victims:
        pool.freeze()
    try:
        await asyncio.sleep(chance.uniform(2, 5))
    finally:
        for pool in victims:
            pool.thaw()


@step
async def picker_and_pool_killed(field: Field, chance: random.Random) -> None:
    """The picker and a pool are killed at the same time."""
    victim = chance.choice(field.pools)
    field.forgive([victim])
    before = field.gateway.pids().get(PICKER)
    field.gateway.signal(PICKER, signal.SIGKILL)
    await victim.kill()
    await victim.start()
    field.expect(await field.gateway.wait_for(PICKER, START_S, other_than=before), "the picker did not come back")
