"""The private folder of a gateway: what the supervisor and its picker share there.

Only the user who runs the gateway can open the folder, so no other user can change what it says.
"""

from __future__ import annotations

from pathlib import Path

from evenly.errors import InputError
from evenly.live.addresses import Address, parse_address
from evenly.live.signing import KEY_BYTES, new_key


class GatewayFolder:
    """The names in the folder at `path`, and whether the gateway accepts new clients.

    A file says whether it does, and not a signal: a picker that has just been restarted reads the file before its
    first answer. Without the file, which the supervisor creates, the answer is no.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state_file = path / "picker.json"
        self.admin_socket = path / "envoy.sock"
        self._accepting = path / "accepting"
        self._key = path / "sticky.key"
        self._listen = path / "listen"

    def kept_key(self) -> bytes:
        """Return a random key for as long as the gateway runs: a picker that is restarted gets the same one."""
        try:
            key = self._key.read_bytes()
        except FileNotFoundError:
            key = b""
        if len(key) != KEY_BYTES:  # none yet, or one whose writer was killed
            key = new_key()
            new = self._key.with_suffix(".new")
            new.write_bytes(key)
            new.replace(self._key)
        return key

    @property
    def accepting(self) -> bool:
        """Whether the gateway accepts new clients: Envoy listens, and the gateway does not drain."""
        return self._accepting.exists()

    @property
    def listen(self) -> Address | None:
        """The address that takes clients; None if the supervisor has not written it."""
        try:
            return parse_address(self._listen.read_text(encoding="utf-8"))
        except (OSError, InputError):
            return None

    def set_listen(self, listen: Address) -> None:
        """Tell the picker which address takes clients: no pool that DNS lists may be there."""
        self._listen.write_text(str(listen), encoding="utf-8")

    def set_accepting(self, accepting: bool) -> None:
        """Tell the picker whether the gateway accepts new clients."""
        if accepting:
            self._accepting.touch()
        else:
            self._accepting.unlink(missing_ok=True)
