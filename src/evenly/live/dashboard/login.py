"""Logins of browsers: proof that the admin token was typed, so that it need not be kept or sent again.

A grant is signed with a key made from the token, and carries the time when it ends. Nothing is kept here, so a
grant survives a restart, and ends for all when the token changes. There are two kinds, and one is not accepted in
place of the other: a page keeps the first in the memory of its tab, and a browser the second as a cookie.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from enum import StrEnum
from secrets import token_hex

TAB_S = 12 * 3600
KEPT_S = 30 * 24 * 3600
_MAX_LENGTH = 200


class GrantKind(StrEnum):
    """Where a grant is kept."""

    TAB = "tab"
    COOKIE = "cookie"


class Logins:
    """Grants and checks logins for one token."""

    def __init__(self, token: str, *, clock: Callable[[], float] = time.time) -> None:
        self._key = hmac.digest(token.encode(), b"evenly: login of a browser", "sha256")
        self._clock = clock

    def grant(self, kind: GrantKind) -> str:
        """Return a new grant."""
        seconds = TAB_S if kind is GrantKind.TAB else KEPT_S
        claim = f"{kind}.{int(self._clock()) + seconds}.{token_hex(8)}"
        return f"{claim}.{self._signature(claim)}"

    def accepts(self, text: str, kind: GrantKind) -> bool:
        """Return whether the text is a grant of this kind that has not ended. Compares in constant time."""
        return self.seconds_left(text, kind) > 0

    def seconds_left(self, text: str, kind: GrantKind) -> float:
        """Return how long a grant of this kind lasts from now on; 0 if the text is none, or one that has ended."""
        if len(text) > _MAX_LENGTH or not text.isascii():
            return 0.0
        claim, _, signature = text.rpartition(".")
        if not hmac.compare_digest(signature, self._signature(claim)):
            return 0.0
        given, ends, _ = claim.split(".")  # signed by us, so it has this form
        return max(int(ends) - self._clock(), 0.0) if given == kind else 0.0

    def _signature(self, claim: str) -> str:
        return hmac.new(self._key, claim.encode(), "sha256").hexdigest()
