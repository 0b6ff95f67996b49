"""Decoding of header blocks, with a cache for repeated ones."""

from __future__ import annotations

from hpack import Decoder, HPACKError

from evenly.live.wire.frames import Code, ProtocolError

MAX_HEADER_BLOCK = 2**16
_MAX_CACHED_BLOCKS = 100
_MAX_CACHED_BYTES = 1024  # of one block

Fields = dict[bytes, bytes]


class HeaderBlocks:
    """A decoder of request headers for one connection. It caches blocks, because Envoy repeats a few of them."""

    def __init__(self) -> None:
        self._decoder = Decoder(max_header_list_size=MAX_HEADER_BLOCK)
        self._known: dict[bytes, Fields] = {}

    def fields(self, block: bytes) -> Fields:
        """Decode a header block. Do not modify the result: it may be cached."""
        known = self._known.get(block)
        return self._decoded(block) if known is None else known

    def _decoded(self, block: bytes) -> Fields:
        """Decode a block. Cache it only if it left the decoder's table unchanged: then it keeps its meaning until
        another block changes the table.
        """
        table = self._decoder.header_table
        entries = table.dynamic_entries  # the newest entry is first
        first, count, size = entries[0] if entries else None, len(entries), table.maxsize
        try:
            fields = dict(self._decoder.decode(block, raw=True))
        except HPACKError:
            raise ProtocolError(Code.COMPRESSION_ERROR) from None
        unchanged = (entries[0] if entries else None) is first and (len(entries), table.maxsize) == (count, size)
        if unchanged and len(self._known) < _MAX_CACHED_BLOCKS and len(block) <= _MAX_CACHED_BYTES:
            self._known[block] = fields
        else:
            self._known.clear()
        return fields
