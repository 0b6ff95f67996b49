"""The messages exchanged with Envoy, checked against the official protocol buffer library."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from evenly.live.addresses import Address
from evenly.live.envoy import ext_proc
from evenly.live.wire.frames import ProtocolError
from evenly.live.wire.protobuf import field, fields, struct, struct_text, submessage, varint

Kind = descriptor_pb2.FieldDescriptorProto
POOL = Address("127.0.0.1", 9001)


def _messages() -> dict[str, Any]:
    """Return Envoy's messages, reduced to the fields that we use, with its field numbers."""
    file = descriptor_pb2.FileDescriptorProto(name="cut.proto", package="cut", syntax="proto3")
    file.dependency.append("google/protobuf/struct.proto")
    file.MergeFrom(
        descriptor_pb2.FileDescriptorProto(
            message_type=[
                _message("Header", key=(1, ""), raw_value=(3, b"")),
                _message("Option", header=(1, "Header"), append_action=(3, 0)),
                _message("Mutation", set_headers=(1, ["Option"])),
                _message("Common", header_mutation=(2, "Mutation")),
                _message("HeadersResponse", response=(1, "Common")),
                _message(
                    "Response", request_headers=(1, "HeadersResponse"), response_headers=(2, "HeadersResponse")
                ),
                _message("Entry", key=(1, ""), value=(2, ".google.protobuf.Struct")),
                _message("Metadata", filter_metadata=(1, ["Entry"])),
                _message("Request", response_headers=(3, "Header"), metadata_context=(8, "Metadata")),
            ]
        )
    )
    file.message_type[5].field.add(
        name="dynamic_metadata",
        number=8,
        label=Kind.LABEL_OPTIONAL,
        type=Kind.TYPE_MESSAGE,
        type_name=".google.protobuf.Struct",
    )
    pool = descriptor_pool.Default()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"cut.{name}"))
        for name in ("Response", "Request")
    }


def _message(name: str, **parts: tuple[int, Any]) -> descriptor_pb2.DescriptorProto:
    found = descriptor_pb2.DescriptorProto(name=name)
    for part, (number, wanted) in parts.items():
        label = Kind.LABEL_REPEATED if isinstance(wanted, list) else Kind.LABEL_OPTIONAL
        kind = wanted[0] if isinstance(wanted, list) else wanted
        if kind == "":
            found.field.add(name=part, number=number, label=label, type=Kind.TYPE_STRING)
        elif kind == b"":
            found.field.add(name=part, number=number, label=label, type=Kind.TYPE_BYTES)
        elif kind == 0:
            found.field.add(name=part, number=number, label=label, type=Kind.TYPE_INT32)
        else:
            path = kind if kind.startswith(".") else f".cut.{kind}"
            found.field.add(name=part, number=number, label=label, type=Kind.TYPE_MESSAGE, type_name=path)
    return found


OFFICIAL = _messages()


def test_a_pick_names_the_pool_in_a_header_and_in_metadata() -> None:
    answer = OFFICIAL["Response"].FromString(ext_proc.pick_answer(POOL)[5:])
    (option,) = answer.request_headers.response.header_mutation.set_headers
    assert (option.header.key, option.header.raw_value) == ("x-gateway-destination-endpoint", b"127.0.0.1:9001")
    assert option.append_action == 2  # overwrite: a header sent by the client is replaced
    assert answer.dynamic_metadata["envoy.lb"]["x-gateway-destination-endpoint"] == "127.0.0.1:9001"


def served(endpoint: str, namespace: str = "envoy.lb") -> bytes:
    request = OFFICIAL["Request"]()
    request.response_headers.key = "status"
    entry = request.metadata_context.filter_metadata.add(key=namespace)
    entry.value.update({"other": "x", "x-gateway-destination-endpoint-served": endpoint})
    return bytes(request.SerializeToString())


def test_the_pool_that_serves_is_read_from_the_response() -> None:
    message = served("127.0.0.1:9001")
    assert message[0] == ext_proc.RESPONSE_HEADERS
    assert ext_proc.served_by(message) == POOL
    assert ext_proc.served_mark(POOL) in message
    assert ext_proc.served_mark(Address("127.0.0.1", 900)) not in message
    assert ext_proc.served_by(served("[::1]:80")) == Address("::1", 80)


def test_a_response_without_a_served_pool_gives_none() -> None:
    for message in [
        served("nonsense"),
        served("127.0.0.1:9001", "other"),
        OFFICIAL["Request"]().SerializeToString(),
    ]:
        assert ext_proc.served_by(message) is None


def test_every_other_message_is_answered_in_kind() -> None:
    for number in range(2, 8):
        answer = ext_proc.plain_answer(field(number, b"what it brings"))
        assert answer is not None
        assert answer[5:] == field(number - 1, b"")
    assert ext_proc.plain_answer(field(10, 1) + field(4, b"after something else")) is not None
    assert ext_proc.plain_answer(field(10, 1)) is None
    assert ext_proc.plain_answer(b"") is None


TEXTS = st.text(max_size=20)


@given(values=st.dictionaries(TEXTS, TEXTS | st.dictionaries(TEXTS, TEXTS, max_size=3), max_size=4))
def test_structs_agree_with_the_official_library(values: dict[str, str | dict[str, str]]) -> None:
    official = struct_pb2.Struct.FromString(struct(values))
    assert {
        key: dict(value) if isinstance(value, struct_pb2.Struct) else value for key, value in official.items()
    } == (values)
    for key, value in values.items():
        paths = [(key,)] if isinstance(value, str) else [(key, inner) for inner in value]
        for path in paths:
            expected = value if isinstance(value, str) else value[path[-1]]
            assert struct_text(official.SerializeToString(), *path) == expected
    assert struct_text(struct(values), "not there", "at all") is None


@given(number=st.integers(1, 2**29 - 1), value=st.integers(0, 2**64 - 1) | st.binary(max_size=300))
def test_fields_survive_a_round_trip(number: int, value: int | bytes) -> None:
    message = field(number, value)
    assert list(fields(message)) == [(number, value)]
    assert submessage(message, number) == (value if isinstance(value, bytes) else None)


@given(message=st.binary(max_size=60))
def test_nonsense_is_rejected_and_never_crashes(message: bytes) -> None:
    for read in (
        lambda: list(fields(message)),
        lambda: ext_proc.served_by(message),
        lambda: struct_text(message, "a"),
    ):
        with contextlib.suppress(ProtocolError):
            read()


def test_truncated_messages_and_unknown_wire_types_are_protocol_errors() -> None:
    for message in [b"\xff" * 11, varint(1 << 3 | 2) + b"\x05ab", varint(1 << 3 | 3)]:
        with pytest.raises(ProtocolError):
            list(fields(message))
