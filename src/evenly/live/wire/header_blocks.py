"""Header blocks: what a peer asks for."""

from __future__ import annotations

from hpack import Decoder, HPACKError

from evenly.live.wire.frames import BrokenRuleError, Code

MAX_HEADER_BLOCK = 2**16
_MOST_BLOCKS, _LONGEST = 100, 1024  # header blocks remembered, and the bytes of one

Fields = dict[bytes, bytes]


class HeaderBlocks:
    """Reads the header fields of a connection's requests. Envoy sends the same few blocks again and again."""

    def __init__(self) -> None:
        self._decoder = Decoder(max_header_list_size=MAX_HEADER_BLOCK)
        self._known: dict[bytes, Fields] = {}

    def fields(self, block: bytes) -> Fields:
        """What a header block says; not to be changed, since it may be said again."""
        known = self._known.get(block)
        return self._decoded(block) if known is None else known

    def _decoded(self, block: bytes) -> Fields:
        """A block that leaves the decoder's table alone means the same until another one changes it."""
        table = self._decoder.header_table
        entries = table.dynamic_entries  # new ones come first, old ones go last
        first, count, size = entries[0] if entries else None, len(entries), table.maxsize
        try:
            fields = dict(self._decoder.decode(block, raw=True))
        except HPACKError:
            raise BrokenRuleError(Code.COMPRESSION_ERROR) from None
        unchanged = (entries[0] if entries else None) is first and (len(entries), table.maxsize) == (count, size)
        if unchanged and len(self._known) < _MOST_BLOCKS and len(block) <= _LONGEST:
            self._known[block] = fields
        else:
            self._known.clear()
        return fields
