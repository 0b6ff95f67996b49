"""The private folder of a gateway: what the supervisor and its picker share there.

Only the user who runs the gateway can open the folder, so no other user can change what it says.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

CHILDREN = ("envoy", "picker")


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

    @property
    def accepting(self) -> bool:
        """Whether the gateway accepts new clients: Envoy listens, and the gateway does not drain."""
        return self._accepting.exists()

    def set_accepting(self, accepting: bool) -> None:
        """Tell the picker whether the gateway accepts new clients."""
        if accepting:
            self._accepting.touch()
        else:
            self._accepting.unlink(missing_ok=True)

    @property
    def restarts(self) -> dict[str, int]:
        """How often each child died and was started again, by its name."""
        return {child: _size(self._restarts(child)) for child in CHILDREN}

    def count_restart(self, child: str) -> None:
        """Note that a child died. The note outlives the picker, which shows the count."""
        with suppress(OSError), self._restarts(child).open("ab") as file:  # no space left: one is missing
            file.write(b".")  # one byte for each, so that a reader never sees half a number

    def _restarts(self, child: str) -> Path:
        return self.path / f"{child}-restarts"


def _size(file: Path) -> int:
    with suppress(OSError):
        return file.stat().st_size
    return 0
