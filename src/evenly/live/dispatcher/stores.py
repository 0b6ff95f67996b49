"""Which store a dispatcher uses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from evenly.live.dispatcher.hub import Hub
from evenly.live.dispatcher.settings import DispatcherSettings
from evenly.live.log import Log
from evenly.live.store.address import parse_store_url
from evenly.live.store.base import Store
from evenly.live.store.failover import FailoverStore
from evenly.live.store.local import LocalStore, term_now
from evenly.live.store.valkey import ValkeyStore


async def _nothing() -> None:
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenStore:
    """A store, what kind it is, and whether it is reachable now."""

    store: Store
    kind: str
    available: Callable[[], bool] = lambda: True
    close: Callable[[], Awaitable[None]] = _nothing


def make_store(settings: DispatcherSettings, hub: Hub, log: Log) -> OpenStore:
    """Return the store of the settings. It sends to agents through the hub."""
    if settings.store is None:
        return OpenStore(store=LocalStore(settings.for_fleet(), hub.send, term=term_now()), kind="embedded")
    fleet = settings.for_fleet()
    shared = ValkeyStore(fleet, hub.send, parse_store_url(settings.store), fleet=settings.fleet)
    store = FailoverStore(fleet, hub.send, shared, report=log.event)
    opening = asyncio.ensure_future(store.open())

    async def close() -> None:
        opening.cancel()
        await store.close()

    return OpenStore(store=store, kind="shared", available=lambda: store.available, close=close)
