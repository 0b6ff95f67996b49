"""The sessions of the other pickers, as far as they are known here. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass, field

from evenly.live.addresses import MAX_POOLS, Address
from evenly.live.store.picker_messages import Counts, Message

MAX_PEERS = 63  # with this one, 64 pickers share their counts
MAX_COUNTS = 20 * MAX_POOLS  # of all peers together


@dataclass(slots=True)
class Peer:
    """Another picker: its counts after the change number `sequence`, and when it was last heard."""

    sequence: int
    heard: float
    counts: Counts = field(default_factory=dict)


class Peers:
    """All other pickers. `changed` is called with an endpoint and its sessions whenever they change.

    Peers beyond `MAX_PEERS`, and counts beyond `MAX_COUNTS`, are not taken in: the memory has a limit, whatever is
    in the store.
    """

    def __init__(self, changed: Callable[[Address, int], None]) -> None:
        self._changed = changed
        self._peers: dict[str, Peer] = {}
        self._totals: Counts = {}
        self._entries = 0

    def __len__(self) -> int:
        return len(self._peers)

    def __contains__(self, picker: str) -> bool:
        return picker in self._peers

    @property
    def ids(self) -> list[str]:
        """The pickers that are known."""
        return list(self._peers)

    def heard(self, now: float) -> dict[str, float]:
        """Return the pickers that are known, with the seconds since each was last heard."""
        return {picker: max(now - peer.heard, 0.0) for picker, peer in self._peers.items()}

    def sessions(self, endpoint: Address) -> int:
        """Return the sessions of all peers at an endpoint."""
        return self._totals.get(endpoint, 0)

    def sequence(self, picker: str) -> int | None:
        """Return the number of the last change that is known of a picker; None for an unknown one."""
        peer = self._peers.get(picker)
        return None if peer is None else peer.sequence

    def receive(self, message: Message, now: float) -> bool:
        """Take in a message. Return False if changes before it are missing: the picker's hash must be read."""
        peer = self._peers.get(message.picker)
        if message.gone:
            self.forget(message.picker)
            return True
        if peer is None:
            return False
        peer.heard = now
        if message.sequence <= peer.sequence:
            return True  # read from the hash already
        if message.counts is None or message.sequence != peer.sequence + 1 or not self._has_room(message.counts):
            return False
        peer.sequence = message.sequence
        for endpoint, count in message.counts.items():
            self._set(peer, endpoint, count)
        return True

    def replace(self, picker: str, sequence: int, counts: Counts, heard: float) -> bool:
        """Take in the hash of a picker, unless messages brought later changes. Return False without room."""
        peer = self._peers.get(picker)
        if peer is None:
            if len(self._peers) >= MAX_PEERS or not self._has_room(counts):
                return False
            peer = self._peers[picker] = Peer(sequence=0, heard=heard)
        elif not self._has_room(counts.keys() - peer.counts.keys()):
            return False
        self.hear(picker, heard)
        if sequence >= peer.sequence:
            peer.sequence = sequence
            for endpoint in peer.counts.keys() - counts.keys():
                self._set(peer, endpoint, 0)
            for endpoint, count in counts.items():
                self._set(peer, endpoint, count)
        return True

    def hear(self, picker: str, when: float) -> None:
        """Note that a picker was alive at this time."""
        peer = self._peers.get(picker)
        if peer is not None:
            peer.heard = max(peer.heard, when)

    def hear_all(self, when: float) -> None:
        """Give all pickers time to come back from this time on: the store could not be read before."""
        for picker in self._peers:
            self.hear(picker, when)

    def forget(self, picker: str) -> None:
        """Count the sessions of a picker no longer."""
        peer = self._peers.pop(picker, None)
        if peer is not None:
            for endpoint in list(peer.counts):
                self._set(peer, endpoint, 0)

    def forget_silent(self, before: float) -> list[str]:
        """Forget the pickers that were last heard before this time, and return them."""
        silent = [picker for picker, peer in self._peers.items() if peer.heard < before]
        for picker in silent:
            self.forget(picker)
        return silent

    def _has_room(self, more: Sized) -> bool:
        return self._entries + len(more) <= MAX_COUNTS

    def _set(self, peer: Peer, endpoint: Address, count: int) -> None:
        before = peer.counts.get(endpoint, 0)
        if count == before:
            return
        if count:
            peer.counts[endpoint] = count
        else:
            del peer.counts[endpoint]
        self._entries += bool(count) - bool(before)
        total = self._totals.get(endpoint, 0) + count - before
        if total:
            self._totals[endpoint] = total
        else:
            del self._totals[endpoint]
        self._changed(endpoint, total)
