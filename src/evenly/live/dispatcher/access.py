"""Who may call the API: clients and agents with their tokens, or without tokens only programs of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenly.live.access import has_token, is_foreign, is_loopback_host
from evenly.live.dispatcher.answers import RefusalError
from evenly.live.dispatcher.models import Code


@dataclass(frozen=True, slots=True)
class Access:
    """The rule for one kind of caller, such as "client". `anyone` lets all requests pass."""

    name: str
    token: str | None
    anyone: bool = False

    @property
    def cross_origin(self) -> bool:
        """Whether web pages of any site may call: nothing that a browser adds by itself gives access."""
        return self.anyone or self.token is not None

    def check(self, headers: Mapping[bytes, bytes], *, from_pages: bool = False) -> None:
        """Raise RefusalError if the caller has no access. `from_pages`: pages of other sites may link here."""
        if self.anyone:
            return
        if self.token is not None:
            if not has_token(headers.get(b"authorization", b"").decode("latin-1"), self.token):
                raise RefusalError(
                    Code.UNAUTHORIZED,
                    f"The request needs the header 'Authorization: Bearer TOKEN' with the {self.name} token.",
                )
            return
        host = headers.get(b"host", b"").decode("latin-1")
        if not is_loopback_host(host):
            raise RefusalError(
                Code.WRONG_HOST,
                f"Without a token the host must be a loopback address or localhost, not {host[:100]!r}.",
            )
        origin = headers.get(b"origin")
        if origin is not None and not from_pages and is_foreign(origin.decode("latin-1"), host):
            raise RefusalError(
                Code.FOREIGN_PAGE, f"Pages from {origin.decode('latin-1')[:100]!r} may not call the dispatcher."
            )
