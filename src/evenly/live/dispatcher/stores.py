"""Which store a dispatcher uses."""

from __future__ import annotations

import os
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenly.errors import InputError
from evenly.live.dispatcher.settings import DispatcherSettings
from evenly.live.log import Log
from evenly.live.store.base import Store
from evenly.live.store.local import LocalStore, term_now
from evenly.live.store_url import parse_store_url, with_password

if TYPE_CHECKING:
    from evenly.live.store.presence import Presence

EMBEDDED, SHARED = "embedded", "shared"


async def _nothing() -> None:
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenStore:
    """A store, what kind it is, whether it is reachable now, and how often it was not.

    `presence` knows the other dispatchers; None where there can be none.
    """

    store: Store
    kind: str
    available: Callable[[], bool] = lambda: True
    outages: Callable[[], int] = lambda: 0
    close: Callable[[], Awaitable[None]] = _nothing
    presence: Presence | None = None


async def open_store(settings: DispatcherSettings, log: Log, *, admin_port: int) -> OpenStore:
    """Return the store of the settings.

    Others see this dispatcher there under its host's name and `admin_port`.
    A shared store that cannot be reached is no reason not to start: the dispatcher uses it as soon as it can.
    """
    if settings.store is None:
        return OpenStore(store=LocalStore(settings.for_fleet(), term=term_now()), kind=EMBEDDED)
    from evenly.live.store.failover import FailoverStore  # noqa: PLC0415  (redis-py takes time to load)
    from evenly.live.store.link import StoreRefusedError  # noqa: PLC0415
    from evenly.live.store.presence import Presence, name_here  # noqa: PLC0415
    from evenly.live.store.valkey import ValkeyStore  # noqa: PLC0415

    fleet = settings.for_fleet()
    url = with_password(parse_store_url(settings.store), os.environ)
    shared = ValkeyStore(fleet, url, fleet=settings.fleet)
    store = FailoverStore(fleet, shared, report=log.event)
    try:
        await store.open()
    except StoreRefusedError as error:
        await store.close()
        raise InputError(str(error)) from None
    return OpenStore(
        store=store,
        kind=SHARED,
        available=lambda: store.available,
        outages=lambda: store.outages,
        close=store.close,
        presence=Presence(
            url, settings.fleet, "dispatchers", own_id=secrets.token_hex(16), name=name_here(admin_port), log=log
        ),
    )
