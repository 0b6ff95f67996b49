"""The shared store: the fleet in Valkey or Redis, so that several dispatchers see one truth.

Every method is one atomic function in the store. `fleet.lua` makes the decisions there.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from redis.exceptions import NoPermissionError, ResponseError

from evenly.core.messages import Color
from evenly.core.protocol import KeyReusedError, ToDispatcher, TooManyPicksError, ToPool
from evenly.core.protocol.dispatcher_peer import MAX_PLACES, MAX_TERM
from evenly.errors import InputError
from evenly.inputs import shown
from evenly.live.session_id import check_pool_name
from evenly.live.signing import new_key
from evenly.live.steps import in_steps
from evenly.live.store import functions
from evenly.live.store.base import (
    DISCONNECT_GRACE_S,
    AllUnavailableError,
    FleetPool,
    FleetSettings,
    FleetState,
    NoPoolsError,
    Order,
    Orders,
    OutdatedError,
    Placement,
    PoolState,
    StoreUnavailableError,
    UnplacedError,
    keep_newest,
)
from evenly.live.store.link import Argument, Execute, Link, Template, pack
from evenly.live.store.local import term_now
from evenly.live.store_url import StoreUrl, check_fleet

_TIMEOUT_S = 1.0  # of a call, and of connecting
_LOST_STATE = ("NOSTATE", "CORRUPT", "Function not found")


class ValkeyStore:
    """A fleet in a shared store. The first dispatcher to come brings the threshold and the signing key.

    A new term, begun here or at another dispatcher, is a lapse: the store may have lost the fleet, or some of it,
    and must be told again.
    """

    def __init__(
        self,
        settings: FleetSettings,
        address: StoreUrl,
        *,
        fleet: str,
        threshold: int = 0,
        key: bytes | None = None,
        timeout: float = _TIMEOUT_S,
    ) -> None:
        self.key = new_key() if key is None else key
        self.threshold = threshold
        self.term = 0  # the last that was seen; 0 if none was
        self.orders: dict[str, Order] = {}  # those that are known, for a store that has forgotten them
        self.on_lapse: Callable[[], None] = lambda: None
        self._settings = settings
        self._common = functions.common_arguments(settings)
        self._templates: dict[str, Template] = {}  # by function: the part of a call that is always the same
        self._keys = functions.keys_of(check_fleet(fleet))
        self._random = random.Random()
        self._link = Link(address, self._greet, timeout)
        self._mending = asyncio.Lock()
        self._mended = 0  # how often the state was made again
        self._agents: dict[str, tuple[str, str]] = {}  # those connected here: incarnation and sequence, as sent

    async def open(self) -> None:
        """Connect, and make the fleet unless it is there."""
        await self._reply(pack("PING"))

    async def close(self) -> None:
        """Close the connection."""
        await self._link.close()

    async def place(self, *, count: int, exclude: frozenset[str], key: str | None) -> tuple[Placement, ...]:
        """Find places for sessions."""
        arguments = functions.pick_arguments(count, exclude, key, self._random.getrandbits(31))
        status, *fields = await self._call("pick", *arguments, self._random.random())
        if status == b"reused":
            raise KeyReusedError(f"The request key {shown(key)} was used for a different request.")
        if status == b"crowded":
            raise TooManyPicksError(f"There can be at most {MAX_PLACES} picks within one lease.")
        if status != b"placed":
            raise NoPoolsError if status == b"empty" else AllUnavailableError
        placements = tuple(_placement(fields[start : start + 6]) for start in range(0, len(fields), 6))
        self.threshold = placements[-1].threshold
        return placements

    async def release(self, pool: str, ticket: int) -> None:
        """Give back a place whose client will not come."""
        await self._call("release", check_pool_name(pool), functions.padded(ticket))

    async def register(self, pool: str, *, incarnation: int, address: str, capacity: int | None) -> None:
        """Note where the pool is."""
        limit = "-" if capacity is None else capacity
        _check_reply(
            await self._call("register", check_pool_name(pool), functions.padded(incarnation), limit, address)
        )

    async def receive(self, message: ToDispatcher) -> ToPool | None:
        """Take in a message of a pool's agent. Raises UnplacedError if that must be registered first."""
        message.check()
        pool = check_pool_name(message.report.pool)
        arguments = functions.message_arguments(message)
        self._agents[pool] = max((str(arguments[2]), str(arguments[3])), self._agents.get(pool, ("", "")))
        reply = _check_reply(await self._call("receive", *arguments))
        if not reply:
            return None
        self.threshold, version, oldest = map(int, reply)
        return ToPool(self.threshold, version, oldest)

    async def disconnected(self, pool: str) -> None:
        """Take the pool for dead if it is not heard soon, here or by another dispatcher."""
        last = self._agents.pop(pool, None)
        if last is not None:
            grace = functions.microseconds(min(DISCONNECT_GRACE_S, self._settings.heartbeat))
            await self._call("disconnect", pool, grace, *last)

    @property
    def connected(self) -> frozenset[str]:
        """The pools that have sent something and were not `disconnected`."""
        return frozenset(self._agents)

    async def order(self, pool: str, order: Order) -> None:
        """Give the pool no new sessions, or sessions again, unless a newer order is known."""
        await self._call("order", check_pool_name(pool), functions.padded(order.version), int(order.drained))
        self.learn({pool: order})

    def use_alpha(self, alpha: str) -> None:
        """Learn the threshold with this alpha from now on."""
        settings = replace(self._settings, alpha=alpha)
        self._common = functions.common_arguments(settings)
        self._templates.clear()
        self._settings = settings

    async def tick(self) -> None:
        """Let time pass."""
        await self._call("tick")

    async def state(self) -> FleetState:
        """Return a snapshot."""
        (text,) = await self._call("state")
        values = json.loads(text)
        self.threshold = threshold = int(values["threshold"])
        stored = list(values["orders"])  # Lua writes an empty list as {}
        orders = {pool: _order(text) for pool, text in zip(stored[::2], stored[1::2], strict=True)}
        self.learn(orders)
        found = sorted(values["pools"], key=lambda each: cast(int, each["serial"]))
        pools = await in_steps(map(_fleet_pool, found))
        return FleetState(
            threshold=threshold,
            alpha=self._settings.alpha,
            green=values["green"],
            yellow=values["yellow"],
            pools=tuple(pools),
            expired=int(values["expired"]),
            released=int(values["released"]),
            orders=orders,
        )

    async def _call(self, name: str, *arguments: Argument) -> list[bytes]:
        """Call a function of the store. If the functions or the state are lost, make them and try again."""
        template = self._templates.get(name)
        if template is None:
            template = self._templates[name] = Template(*self._words(name, *self._common))
        command = template.fill(*arguments)
        mended = self._mended
        reply = await self._reply(command)
        if isinstance(reply, ResponseError) and any(sign in str(reply) for sign in _LOST_STATE):
            await self._mend(mended, broken="CORRUPT" in str(reply))
            reply = await self._reply(command)
        if isinstance(reply, ResponseError):
            if str(reply).startswith("LIMIT "):
                raise InputError(str(reply).removeprefix("LIMIT "))
            raise StoreUnavailableError(f"The store cannot be used: {reply}")
        term, *rest = cast("list[bytes]", reply)
        self._see(int(term))
        return rest

    async def _reply(self, command: bytes) -> object:
        return await self._link.submit(command)

    def _words(self, name: str, *arguments: Argument) -> tuple[Argument, ...]:
        return "FCALL", f"{functions.LIBRARY}_{name}", len(self._keys), *self._keys, *arguments

    async def _mend(self, mended: int, broken: bool) -> None:
        """Load the functions and make the state again, once for all calls that failed at the same time."""

        async def execute(command: bytes) -> object:
            reply = await self._reply(command)
            if isinstance(reply, ResponseError):
                raise reply
            return reply

        async with self._mending:
            if self._mended == mended:
                try:
                    await self._greet(execute, broken)
                except NoPermissionError as error:
                    raise StoreUnavailableError(f"The store cannot be used: {error}") from error

    async def _greet(self, execute: Execute, broken: bool = False) -> None:
        """Load the functions, and make the state unless it is there."""
        try:
            await execute(pack("FUNCTION", "LOAD", "REPLACE", functions.library()))
            state = cast("bytes | None", await execute(pack("HGET", self._keys[0], "state"))) if broken else None
            term = min(max(self.term + 1, term_now()), MAX_TERM)
            opened: tuple[Argument, ...] = (
                "",
                self.threshold,
                term,
                self.key.hex(),
                functions.microseconds(self._settings.heartbeat),
                state or b"",
                *functions.order_arguments(self.orders),
            )
            reply = await execute(pack(*self._words("open", *opened)))
            opened_term, key = cast("tuple[bytes, bytes]", reply)
        except NoPermissionError:
            raise
        except ResponseError as error:
            raise StoreUnavailableError(f"The store cannot be used: {error}") from error
        self.key = bytes.fromhex(key.decode())
        self._mended += 1
        self._see(int(opened_term))

    def learn(self, orders: Orders) -> None:
        """Keep the newest order for each pool."""
        for pool, order in orders.items():
            keep_newest(self.orders, pool, order)

    def _see(self, term: int) -> None:
        """Report a new term."""
        before, self.term = self.term, term
        if term > before:
            self.on_lapse()


def _check_reply(reply: list[bytes]) -> list[bytes]:
    """Return a reply, or raise the error that it stands for."""
    if reply == [b"outdated"]:
        raise OutdatedError
    if reply == [b"unplaced"]:
        raise UnplacedError
    return reply


def _order(text: str) -> Order:
    version, drained = text.split()
    return Order(int(version), drained == "1")


def _placement(fields: list[bytes]) -> Placement:
    pool, ticket, expires_in, color, threshold, address = fields
    return Placement(
        pool=pool.decode(),
        address=address.decode(),
        ticket=int(ticket),
        expires_in=int(expires_in) / 1_000_000,
        color=Color(color.decode()) if color else None,
        threshold=int(threshold),
    )


def _fleet_pool(values: dict[str, Any]) -> FleetPool:
    capacity = values.get("capacity")
    return FleetPool(
        name=values["name"],
        address=values["address"],
        capacity=int(capacity) if capacity else None,
        sessions=int(values["tasks"]),
        expected=values["open"],
        state=_state(values),
    )


def _state(values: dict[str, Any]) -> PoolState:
    if values["draining"]:
        return PoolState.DRAINING
    if values["leaving"]:
        return PoolState.LEAVING
    if not values.get("estimate"):
        return PoolState.SILENT
    return PoolState.FULL if values["full"] else PoolState.SERVING
