"""The private folder of a gateway: what the supervisor and its picker share there.

Only the user who runs the gateway can open the folder, so no other user can change what it says.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from evenly.live.log import Line

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
        self._events = path / "events.json"
        self._noted: deque[Line] = deque(maxlen=_MAX_EVENTS)
        self._read = 0  # the number of the last event that was read
        self._seen: tuple[int, int] | None = None

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
