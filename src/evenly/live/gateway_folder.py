"""The private folder of a gateway: what the supervisor and its picker share there.

Only the user who runs the gateway can open the folder, so no other user can change what it says.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path


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
        self._handed_over = path / "handed-over"
        self._admin_left = path / "admin-left"
        self._predecessors = path / "predecessors.json"

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
    def handed_over(self) -> bool:
        """Whether another gateway has taken over. It serves the admin port from then on."""
        return self._handed_over.exists()

    def set_handed_over(self) -> None:
        """Tell the picker that another gateway has taken over."""
        self._handed_over.touch()

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
        """Tell the picker which gateways were replaced. Folders that are gone are left out."""
        left = [str(folder) for folder in folders if folder.is_dir()]
        self._predecessors.write_text(json.dumps(left), encoding="utf-8")
