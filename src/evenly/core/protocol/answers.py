"""The answers to requests with a key, so that a repeated request gets the same answer."""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

from evenly.core.messages import PoolId
from evenly.core.protocol.messages import Pick
from evenly.errors import InputError
from evenly.inputs import shown

MAX_ANSWERS = 100_000

Request = tuple[int, frozenset[PoolId]]
"""How many picks, and which pools to avoid."""


class KeyReusedError(InputError):
    """A request key came again with a different request."""


@dataclass(frozen=True, slots=True)
class _Answer:
    request: Request
    picks: tuple[Pick, ...]


class Answers:
    """Answers by request key. At most `MAX_ANSWERS` are kept: beyond that, the oldest is forgotten early."""

    def __init__(self, memory: float) -> None:
        self._memory = memory
        self._answers: dict[Hashable, _Answer] = {}
        self._expiring: deque[tuple[float, Hashable]] = deque()  # a dict finds its oldest key slowly

    def __len__(self) -> int:
        return len(self._answers)

    def find(self, key: Hashable, request: Request) -> tuple[Pick, ...] | None:
        """Return the answer to this key, None if there is none. The request must be the same as then."""
        answer = self._answers.get(key)
        if answer is None:
            return None
        if answer.request != request:
            raise KeyReusedError(f"The request key {shown(key)} was used for a different request.")
        return answer.picks

    def remember(self, now: float, key: Hashable, request: Request, picks: tuple[Pick, ...]) -> None:
        """Keep an answer."""
        if len(self._answers) >= MAX_ANSWERS:
            del self._answers[self._expiring.popleft()[1]]
        self._answers[key] = _Answer(request, picks)
        self._expiring.append((now + self._memory, key))

    def forget(self, now: float) -> None:
        """Remove the answers that have been kept long enough."""
        while self._expiring and self._expiring[0][0] <= now:
            del self._answers[self._expiring.popleft()[1]]
