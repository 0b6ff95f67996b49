"""What the picker says of itself on its admin port."""

from __future__ import annotations

import asyncio
import http.client
import os

from pydantic import ValidationError

from evenly.live.addresses import Address
from evenly.live.admin.schema import StateView
from evenly.live.admin.token import VARIABLE

_TIMEOUT = 2.0


async def ask_picker(admin: Address) -> StateView | None:
    """Its state now; None if it does not answer in time."""
    return await asyncio.to_thread(_ask, admin)


def _ask(admin: Address) -> StateView | None:
    token = os.environ.get(VARIABLE)  # the picker, our child, asks for it too
    connection = http.client.HTTPConnection(admin.host, admin.port, timeout=_TIMEOUT)
    try:
        connection.request("GET", "/state", headers={"Authorization": f"Bearer {token}"} if token else {})
        return StateView.model_validate_json(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValidationError):
        return None
    finally:
        connection.close()


def messages_per_session(state: StateView) -> float:
    """As the paper counts them: without those after a change of the threshold."""
    return (state.messages.green + state.messages.yellow) / max(sum(state.picks.values()), 1)


def resync_per_session(state: StateView) -> float:
    """Those after a change of the threshold."""
    return state.messages.resync / max(sum(state.picks.values()), 1)
