"""Processes that share a store see each other, with their ages, whatever else is in the store."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from evenly.live.log import Log
from evenly.live.store.presence import FORGET_S, LEASE_S, Presence, Process, read_processes
from evenly.live.store_url import parse_store_url
from tests.live.processes import PATIENCE
from tests.live.stores import StoreServer, running_store

ONE, OTHER, THIRD = "1" * 32, "2" * 32, "3" * 32


@asynccontextmanager
async def announced(store: StoreServer, own_id: str, name: str) -> AsyncIterator[Presence]:
    presence = Presence(
        parse_store_url(store.url), "games", "dispatchers", own_id=own_id, name=name, log=Log(None)
    )
    task = asyncio.create_task(presence.run())
    try:
        yield presence
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def seen(presence: Presence, wanted: list[str]) -> list[Process]:
    async with asyncio.timeout(PATIENCE):
        while [each.name for each in presence.others()] != wanted:
            await asyncio.sleep(0.02)
    return presence.others()


def test_processes_see_each_other_until_they_stop() -> None:
    async def check(store: StoreServer) -> None:
        key = "evenly:{games}:present:dispatchers"
        async with announced(store, ONE, "host-a:8081") as one:
            async with announced(store, OTHER, "host b/<b>:8082") as other:
                [seen_by_one] = await seen(one, ["host_b__b_:8082"])
                [seen_by_other] = await seen(other, ["host-a:8081"])
                assert not seen_by_one.lost
                assert 0 <= seen_by_one.heard <= seen_by_one.age + 1 < PATIENCE
                assert seen_by_other.id == ONE
                with store.client() as client:
                    now = float(client.time()[0])
                    client.zadd(key, {f"{THIRD} {int(now - 90)} killed:1": now - LEASE_S - 10, "garbage": now})
                _, killed = await seen(other, ["host-a:8081", "killed:1"])
                assert killed.lost
                assert killed.age == pytest.approx(90, abs=PATIENCE)
            await seen(one, ["killed:1"])  # the other one left in order
            store.kill()
            before = one.others()[0].heard
            await asyncio.sleep(0.01)
            assert one.others()[0].heard > before, "without the store, what is known gets older"
            store.start()  # empty
            await seen(one, [])

    with running_store("valkey") as store:
        asyncio.run(check(store))


def documented_commands() -> list[list[str]]:
    """Return the commands that the reference says a user in the store needs: for pickers, and for dispatchers."""
    text = (Path(__file__).parents[3] / "docs" / "reference" / "live.md").read_text()
    found = re.findall(r"commands (`fcall`.*?`zrevrangebyscore`|`hset`.*?`unsubscribe`)", text, re.DOTALL)
    return [re.findall(r"`([a-z|]+)`", each) for each in found]


def test_the_documented_commands_are_enough_and_without_them_it_is_said_once() -> None:
    async def check(store: StoreServer) -> None:
        allowed = documented_commands()
        assert len(allowed) == 2
        with store.client() as client:
            for number, commands in enumerate([*allowed, ["ping"]]):
                rules = ["on", ">secret", "~evenly:*", "&evenly:*", "-@all", *(f"+{name}" for name in commands)]
                client.execute_command("ACL", "SETUSER", f"user{number}", *rules)
        url = store.url.replace("//", "//user{}:secret@")
        logs = [Log(None) for _ in range(3)]
        shared = [
            Presence(parse_store_url(url.format(at)), "x", "pickers", own_id=f"{at}" * 32, name=f"{at}", log=log)
            for at, log in enumerate(logs)
        ]
        tasks = [asyncio.create_task(each.run()) for each in shared]
        await seen(shared[0], ["1"])
        await seen(shared[1], ["0"])
        async with asyncio.timeout(PATIENCE):
            while not logs[2].recent:
                await asyncio.sleep(0.02)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert [line.name for log in logs for line in log.recent] == ["not announced"]

    with running_store("valkey") as store:
        asyncio.run(check(store))


def test_announcements_that_are_not_valid_are_left_out() -> None:
    good = f"{OTHER} 900 host:1".encode()
    found = [
        (good, 999.0),
        (f"{OTHER} 100 older:1".encode(), 500.0),
        (f"{ONE} 900 own:1".encode(), 1000.0),
        (f"{THIRD} 900 <b>:1".encode(), 1000.0),
        (f"{THIRD} -1 host:1".encode(), 1000.0),
        (f"{THIRD} 900 {'x' * 101}".encode(), 1000.0),
        (b"\xff\xfe", 1000.0),
        (b"", 1000.0),
    ]
    assert read_processes(found, 1000.0, own_id=ONE) == [Process(id=OTHER, name="host:1", age=100.0, heard=1.0)]
    ahead = read_processes([(f"{OTHER} 2000 host:1".encode(), 2000.0)], 1000.0, own_id=ONE)
    assert (ahead[0].age, ahead[0].heard, ahead[0].lost) == (0.0, 0.0, False)
    assert LEASE_S < FORGET_S
