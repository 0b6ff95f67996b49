"""Sticky sessions: a client that comes back shows the token of its pool, and gets a new one when the pool changes.

The token of a pool is a keyed hash of its address. Only holders of the key can make one, and it does not reveal
the address. All clients of a pool have the same token, so that it identifies no client either. A token is looked
up, not decoded: one that is forged, or of a pool that is gone, is simply unknown.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from evenly.live.addresses import Address
from evenly.live.balancer.pool import LivePool
from evenly.live.envoy import ext_proc
from evenly.live.signing import signature
from evenly.live.sticky_rule import StickyRule

_USE = b"sticky"
_TOKEN_BYTES = 16  # 22 characters of base64
_MAX_LOOKS = 8  # for the name of our cookie


class Return(StrEnum):
    """What became of a request."""

    NEW = "new"  # without a token
    KEPT = "kept"  # goes to the pool of its token
    MOVED = "moved"  # that pool cannot take it, so it is placed again
    IGNORED = "ignored"  # the token is malformed, repeated or unknown


class Sticky:
    """The tokens of all pools. `pools` returns these; call `pools_changed` when they or their names change."""

    def __init__(
        self, rule: StickyRule, *, key: bytes, margin: int, pools: Callable[[], Iterable[LivePool]]
    ) -> None:
        self.rule = rule
        self.margin = margin
        self.seen: Counter[Return] = Counter(dict.fromkeys(Return, 0))
        self._key = key
        self._pools = pools
        self._by_token: dict[str, LivePool] | None = None
        self._tokens: dict[Address, str] = {}
        self._header = rule.header.encode()
        self._begin = f"{rule.name}=".encode()

    def pools_changed(self) -> None:
        """Forget which token belongs to which pool."""
        self._by_token = None

    def token(self, pool: LivePool) -> str:
        """Return the token that sends a client back to the pool."""
        token = self._tokens.get(pool.address)
        if token is None:
            digest = signature(self._key, str(pool.address).encode(), size=_TOKEN_BYTES, use=_USE)
            token = self._tokens[pool.address] = urlsafe_b64encode(digest).decode().rstrip("=")
        return token

    def pool(self, token: str) -> LivePool | None:
        """Return the pool of a token; None if there is none."""
        if self._by_token is None:
            self._by_token = {self.token(pool): pool for pool in self._pools()}
            self._tokens = {pool.address: token for token, pool in self._by_token.items()}
        return self._by_token.get(token)

    def shown(self, headers: Sequence[tuple[bytes, bytes]]) -> list[str]:
        """Return all tokens that a request shows, of any form."""
        values = [value for name, value in headers if name == self._header]
        if self.rule.kind == "cookie":
            values = [token for value in values for token in self._in_cookies(value)]
        return [value.decode("latin-1") for value in values]

    def _in_cookies(self, cookies: bytes) -> list[bytes]:
        """Return the tokens in a header with cookies. It may be long and hostile, so it is not split."""
        found, at = [], -1
        for _ in range(_MAX_LOOKS):
            at = cookies.find(self._begin, at + 1)
            if at < 0:
                break
            before = cookies[:at].rstrip(b" \t")
            if not before or before.endswith(b";"):  # else it is the end of another name, or in a value
                found.append(cookies[at + len(self._begin) :].partition(b";")[0].rstrip(b" \t"))
        return found

    def response(self, pool: LivePool, *, secure: bool) -> bytes:
        """Return the answer to response headers that gives the client the token of the pool."""
        token = self.token(pool)
        if self.rule.kind == "header":
            return ext_proc.response_with(self.rule.name, token, append=False)
        attributes = "; Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if secure else "")
        return ext_proc.response_with("set-cookie", f"{self.rule.name}={token}{attributes}", append=True)
