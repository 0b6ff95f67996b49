"""The private folder of a gateway: what the supervisor and its picker share there.

Only the user who runs the gateway can open the folder, so no other user can change what it says.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from evenly.errors import InputError
from evenly.live.addresses import Address, parse_address
from evenly.live.log import Line
from evenly.live.signing import KEY_BYTES, new_key

CHILDREN = ("envoy", "picker")
_MAX_EVENTS = 100
_MAX_BYTES = 1_000_000


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
        self.sticky_key = path / "sticky.key"
        self._listen = path / "listen"
        self._events = path / "events.json"
        self._noted: deque[Line] = deque(maxlen=_MAX_EVENTS)
        self._read = 0  # the number of the last event that was read
        self._seen: tuple[int, int] | None = None
        self._handed_over = path / "handed-over"
        self._admin_left = path / "admin-left"
        self._predecessors = path / "predecessors.json"
        self._taking_over = path / "taking-over"

    def kept_key(self) -> bytes:
        """Return a random key for as long as the gateway runs: a picker that is restarted gets the same one."""
        try:
            key = self.sticky_key.read_bytes()
        except FileNotFoundError:
            key = b""
        if len(key) != KEY_BYTES:  # none yet, or one whose writer was killed
            key = new_key()
            new = self.sticky_key.with_suffix(".new")
            new.write_bytes(key)
            new.replace(self.sticky_key)
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

    def note(self, line: Line) -> None:
        """Show a line of the supervisor's log to the picker, for the dashboard.

        The file has the last lines and is replaced as a whole: a picker that starts later reads those as well.
        """
        self._noted.append(line)
        new = self._events.with_suffix(".new")
        with suppress(OSError, TypeError, ValueError):  # a full disk; the line itself is on standard error
            new.write_text(json.dumps(list(self._noted), default=str), encoding="utf-8")
            new.replace(self._events)

    def new_events(self) -> Iterator[Line]:
        """Yield the supervisor's lines that were not yielded before."""
        try:
            status = self._events.stat()
            if (status.st_mtime_ns, status.st_ino) == self._seen or status.st_size > _MAX_BYTES:
                return
            self._seen = status.st_mtime_ns, status.st_ino
            lines = [Line(*each) for each in json.loads(self._events.read_text(encoding="utf-8"))]
        except (OSError, TypeError, ValueError):  # there is none yet
            return
        for line in lines:
            if line.number > self._read:
                self._read = line.number
                yield line

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

    @property
    def handed_over(self) -> bool:
        """Whether another gateway has taken over. It serves the admin port from then on."""
        return self._handed_over.exists()

    def set_handed_over(self) -> None:
        """Tell the picker that another gateway has taken over."""
        self._handed_over.touch()

    @property
    def owns_address(self) -> bool:
        """Whether this is the gateway of its address: not before it has taken over, nor after another one has."""
        return not (self._taking_over.exists() or self._handed_over.exists())

    def set_taking_over(self, taking_over: bool) -> None:
        """Tell the picker whether the gateway before is still in charge."""
        if taking_over:
            self._taking_over.touch()
        else:
            self._taking_over.unlink(missing_ok=True)

    @property
    def admin_left(self) -> bool:
        """Whether the picker serves the admin port no longer."""
        return self._admin_left.exists()

    def set_admin_left(self) -> None:
        """Tell the supervisor that the picker serves the admin port no longer."""
        self._admin_left.touch()

    @property
    def predecessors(self) -> list[Path]:
        """The folders of the gateways that were replaced by this one and may have open sessions."""
        if not self._predecessors.exists():
            return []
        return [Path(folder) for folder in json.loads(self._predecessors.read_text(encoding="utf-8"))]

    def set_predecessors(self, folders: Sequence[Path]) -> None:
        """Tell the picker which gateways are replaced. Folders that are gone are left out."""
        left = [str(folder) for folder in folders if folder.is_dir()]
        self._predecessors.write_text(json.dumps(left), encoding="utf-8")


def _size(file: Path) -> int:
    with suppress(OSError):
        return file.stat().st_size
    return 0
