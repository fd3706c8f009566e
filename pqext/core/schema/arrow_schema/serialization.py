"""Serialise Arrow schemas as key-value metadata: an Arrow IPC message in base64."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

import pyarrow as pa

from pqext.core.kernels.flatbuffers.ipc_schema import check, from_base64, only

KEY = "ARROW:schema"


class Unreadable(Exception):
    """The text is not a valid schema. The message of the exception states the problem."""


def serialise(schema: pa.Schema, pairs: Mapping[str, str | None]) -> str | None:
    """Serialise ``schema`` for a file with the other key-value metadata ``pairs``.

    Return None if the schema is nested too deeply.

    The pairs are included because Arrow's reader does not look for them elsewhere if a file has a serialised schema.
    """
    held = {_encode(key): _encode(value or "") for key, value in pairs.items() if key != KEY}
    message = schema.with_metadata(held or None).serialize().to_pybytes()
    return None if check(message) is not None else base64.b64encode(message).decode("ascii")


def parse(text: str, positions: Sequence[int] | None = None) -> pa.Schema:
    """Parse a serialised schema, or only its fields at the ascending ``positions``.

    Raises :exc:`Unreadable` if ``text`` is not a valid schema or has fewer fields.

    Messages are checked before Arrow parses them. Their tables must lie within the message, be nested at most 100
    levels deep, and not outnumber its bytes, because a message that refers to one table many times could take any
    amount of memory.
    """
    message: bytes | bytearray | None
    try:
        message = from_base64(text)
    except UnicodeEncodeError:
        message = None
    fault = "it is not base64" if message is None else check(message)
    if message is not None and fault is None and positions is not None:
        message = only(message, positions)
        fault = "it has too few fields" if message is None else check(message)
    if fault is not None:
        raise Unreadable(fault)
    try:
        # Arrow may also fail in extension types that the user has registered, with any exception.
        return pa.ipc.read_schema(pa.py_buffer(message))
    except Exception as error:
        raise Unreadable(f"Arrow does not read it ({type(error).__name__})") from error


def with_pairs(text: str | None, pairs: Mapping[str, str | None]) -> str | None:
    """Return the serialised schema ``text`` with ``pairs`` as its metadata; None if it is missing or invalid."""
    try:
        return None if text is None else serialise(parse(text), pairs)
    except Unreadable:
        return None


def with_wide_indices(text: str | None) -> str | None:
    """Return the serialised schema with indices of at least 32 bits in all dictionaries, which may get more values.

    Invalid text is returned unchanged.
    """
    try:
        schema = parse(text or "")
    except Unreadable:
        return text
    wide = pa.schema([field.with_type(_widen_type(field.type)) for field in schema], schema.metadata)
    if wide.equals(schema):
        return text
    pairs = {_text(key): _text(value) for key, value in (schema.metadata or {}).items()}
    return serialise(wide, pairs) or text


def _widen_type(type: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_dictionary(type) and type.index_type.bit_width < 32:
        return pa.dictionary(pa.int32(), type.value_type, type.ordered)
    if types.is_struct(type):
        return pa.struct([field.with_type(_widen_type(field.type)) for field in type])
    if types.is_list(type) or types.is_large_list(type):
        made = pa.list_ if types.is_list(type) else pa.large_list
        return made(type.value_field.with_type(_widen_type(type.value_type)))
    return type


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def same_types(first: str | None, other: str | None) -> bool:
    """Return whether two serialised schemas declare the same field types and metadata.

    Other metadata and element names may differ.
    """
    if first == other:
        return True
    if first is None or other is None:
        return False
    try:
        mine, theirs = parse(first), parse(other)
    except Unreadable:
        return False
    return bool(mine.equals(theirs)) and all(a.metadata == b.metadata for a, b in zip(mine, theirs, strict=True))
