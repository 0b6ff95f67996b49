"""What the dispatchers count, read from their admin ports and summed over their restarts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from pydantic import ValidationError

from evenly.live.addresses import Address
from evenly.live.demo.http_client import request
from evenly.live.dispatcher.counters import AgentMessages
from evenly.live.dispatcher.views import FleetView

_OK = 200


@dataclass(slots=True)
class Counts(AgentMessages):
    """Messages of agents by reason, and picks."""

    picks: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    @property
    def messages(self) -> dict[str, int]:
        """The messages by reason."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "picks"}

    @property
    def tokens(self) -> int:
        """The messages that bring tokens, at most one per session: green and yellow."""
        return self.green + self.yellow

    @property
    def others(self) -> int:
        """All other messages of agents."""
        return sum(self.messages.values()) - self.tokens


def counts_of(view: FleetView) -> Counts:
    """Return what a dispatcher has counted since its start."""
    return Counts(**view.messages.model_dump(), picks=sum(view.picks.values()))


class Watch:
    """The dispatchers as their admin ports show them. What a killed one had counted is kept."""

    def __init__(self, admin: Sequence[Address]) -> None:
        self._admin = admin
        self._counts = [Counts() for _ in admin]  # since the last start of each
        self._past = Counts()
        self.views: list[FleetView | None] = [None for _ in admin]

    @property
    def counts(self) -> Counts:
        """The sum over all dispatchers and all their starts."""
        return sum(self._counts, self._past)

    @property
    def view(self) -> FleetView | None:
        """What one of the dispatchers that answer knows; None if there is none."""
        return next((view for view in self.views if view is not None), None)

    async def look(self, number: int) -> None:
        """Ask a dispatcher."""
        view = self.views[number] = await fetch_view(self._admin[number])
        if view is not None:
            self._counts[number] = counts_of(view)

    async def look_at_all(self) -> None:
        """Ask all dispatchers."""
        for number in range(len(self._admin)):
            await self.look(number)

    def killed(self, number: int) -> None:
        """Keep the counts of a dispatcher that has ended; the next ones start at 0."""
        self._past += self._counts[number]
        self._counts[number] = Counts()
        self.views[number] = None


async def fetch_view(admin: Address) -> FleetView | None:
    """Return the state of a dispatcher, or None if it does not answer."""
    try:
        answer = await request(admin, "GET", "/state")
        return FleetView.model_validate_json(answer.body) if answer.status == _OK else None
    except (OSError, ValidationError):
        return None
