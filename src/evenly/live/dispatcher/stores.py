"""Which store a dispatcher uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from evenly.errors import InputError
from evenly.inputs import shown
from evenly.live.dispatcher.hub import Hub
from evenly.live.dispatcher.settings import DispatcherSettings
from evenly.live.log import Log
from evenly.live.store.base import Store
from evenly.live.store.local import LocalStore, term_now


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
    raise InputError(f"store must not be given yet, not {shown(settings.store)}.")
