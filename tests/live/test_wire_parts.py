"""The small parts of the wire on their own: padding, fields that are skipped, and the cache of header blocks."""

from __future__ import annotations

import pytest

from evenly.live.wire.frames import Code, ProtocolError, unpadded
from evenly.live.wire.header_blocks import HeaderBlocks
from evenly.live.wire.protobuf import fields


def test_more_padding_than_payload_is_a_protocol_error() -> None:
    for payload in [b"", b"\x01", b"\x03\0\0"]:
        with pytest.raises(ProtocolError) as raised:
            unpadded(payload)
        assert raised.value.code is Code.PROTOCOL_ERROR


def test_a_block_that_cannot_be_decoded_is_a_compression_error() -> None:
    with pytest.raises(ProtocolError) as raised:
        HeaderBlocks().fields(b"\xff\xff\xff\xff\xff\xff")
    assert raised.value.code is Code.COMPRESSION_ERROR


def literal(path: bytes) -> bytes:
    """Encode a path that enters the dynamic table. The name is entry 4 of the static one."""
    return b"\x44" + bytes((len(path),)) + path


def test_a_block_that_replaces_the_only_entry_of_a_table_is_not_cached() -> None:
    """The table holds 64 bytes, so one entry. The last index means the entry that was added last."""
    blocks = HeaderBlocks()
    blocks.fields(b"\x3f\x21" + literal(b"/first"))  # the table has 31 + 33 bytes from now on
    for path in (b"/other", b"/first", b"/other"):
        assert blocks.fields(literal(path)) == {b":path": path}
    assert blocks.fields(b"\xbe") == {b":path": b"/other"}


def test_a_block_that_replaces_the_older_of_two_entries_is_not_cached() -> None:
    """The table holds 94 bytes, so two entries of 43. The number of entries stays the same."""
    blocks = HeaderBlocks()
    blocks.fields(b"\x3f\x3f" + literal(b"/first"))  # the table has 31 + 63 bytes from now on
    blocks.fields(literal(b"/other"))
    for _ in range(2):
        assert blocks.fields(literal(b"/third")) == {b":path": b"/third"}
    assert blocks.fields(b"\xbf") == {b":path": b"/third"}  # the older entry: the block was decoded twice


def test_a_cached_block_is_decoded_again_after_the_table_has_changed() -> None:
    blocks = HeaderBlocks()
    assert blocks.fields(b"\x82") == {b":method": b"GET"}  # the dynamic table is empty
    for path in (b"/first", b"/other"):
        blocks.fields(literal(path))
        found = blocks.fields(b"\xbe")
        assert found == {b":path": path}
        assert blocks.fields(b"\xbe") is found


def test_fixed_size_fields_are_skipped() -> None:
    message = bytes((1 << 3 | 1, *range(8), 2 << 3 | 5, *range(4), 3 << 3, 7))
    assert list(fields(message)) == [(1, bytes(range(8))), (2, bytes(range(4))), (3, 7)]


def unindexed(length: int) -> bytes:
    """Encode a header block of this many bytes that leaves the dynamic table alone."""
    path = bytes(length - 4)  # after the name, and three bytes that encode the length
    rest = len(path) - 127
    return b"\x04\x7f" + bytes((0x80 | rest & 0x7F, rest >> 7)) + path


@pytest.mark.parametrize(("length", "cached"), [(1024, True), (1025, False)])
def test_only_blocks_of_up_to_1024_bytes_are_cached(length: int, cached: bool) -> None:
    blocks, block = HeaderBlocks(), unindexed(length)
    assert len(block) == length
    assert (blocks.fields(block) is blocks.fields(block)) is cached


def test_up_to_100_repeated_blocks_are_decoded_once() -> None:
    """A cached result is the same object. The block that does not fit empties the cache."""
    blocks, many = HeaderBlocks(), [b"\x04\x01" + bytes((path,)) for path in range(101)]
    first = [blocks.fields(block) for block in many[:100]]
    assert all(blocks.fields(block) is fields for block, fields in zip(many[:100], first, strict=True))
    assert blocks.fields(many[100]) == {b":path": bytes((100,))}
    assert all(blocks.fields(block) is not fields for block, fields in zip(many[:100], first, strict=True))
