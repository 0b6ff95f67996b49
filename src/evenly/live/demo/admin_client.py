"""The picker's state, read from its admin port."""

from __future__ import annotations

import asyncio
import http.client
import os

from pydantic import ValidationError

from evenly.live.addresses import Address
from evenly.live.admin.schema import StateView
from evenly.live.admin_token import TOKEN_VARIABLE

_TIMEOUT_S = 10.0


async def fetch_state(admin: Address) -> StateView | None:
    """Return the picker's state, or None if it does not answer within 10 seconds."""
    return await asyncio.to_thread(_fetch, admin)


def _fetch(admin: Address) -> StateView | None:
    token = os.environ.get(TOKEN_VARIABLE)  # the picker inherits the variable and requires the token
    connection = http.client.HTTPConnection(admin.host, admin.port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", "/state", headers={"Authorization": f"Bearer {token}"} if token else {})
        return StateView.model_validate_json(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValidationError):
        return None
    finally:
        connection.close()


def messages_per_session(state: StateView) -> float:
    """Return messages per session as the paper counts them: without those that follow a threshold change."""
    return (state.messages.green + state.messages.yellow) / max(sum(state.picks.values()), 1)


def resync_per_session(state: StateView) -> float:
    """Return the messages per session that follow threshold changes."""
    return state.messages.resync / max(sum(state.picks.values()), 1)
