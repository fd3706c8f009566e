"""Stored Arrow schema: serialised in key-value metadata, and applied field by field to the shapes of an open file.

It is an Arrow IPC message in base64, which is parsed on first use. Fields that contradict the Parquet schema are
ignored.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import pyarrow as pa

from pqext.core.base.errors import AnnotationWarning, ParquetError, warn_about_file
from pqext.core.base.text import shorten
from pqext.core.format.metadata import KeyValue, Type
from pqext.core.kernels.flatbuffers.ipc_schema import check, from_base64, only
from pqext.core.schema.annotations import EXTENSION_NAME, supports_extension
from pqext.core.schema.arrow_schema.strings import widen_shape_indices
from pqext.core.schema.arrow_schema.types import has_narrow_indices, strip_extension_metadata, type_category, type_of
from pqext.core.schema.shape import GroupShape, LeafShape, ListShape, Shape
from pqext.core.schema.types.arrow_compute import is_view

KEY = "ARROW:schema"
_WIDE = 16 << 10
"""Minimum length of a text whose fields are decoded individually. Shorter text is decoded completely."""
_TIMES_FEW = 4
"""Maximum number of partial decodings of a text before the complete schema is decoded and cached."""


class UnreadableSchemaError(Exception):
    """Signal that a text is not a valid serialised schema. The message states the reason."""


def serialise(schema: pa.Schema, pairs: Mapping[str, str | None]) -> str | None:
    """Serialise ``schema`` for a file whose other key-value metadata is ``pairs``.

    Return None if the schema is nested too deeply.

    The pairs are included because Arrow's reader does not look for them elsewhere if a file has a serialised schema.
    """
    held = {_encode(key): _encode(value or "") for key, value in pairs.items() if key != KEY}
    message = schema.with_metadata(held or None).serialize().to_pybytes()
    return None if check(message) is not None else base64.b64encode(message).decode("ascii")


def parse(text: str, positions: Sequence[int] | None = None) -> pa.Schema:
    """Parse a serialised schema, or only its fields at the ascending ``positions``.

    Raises :exc:`UnreadableSchemaError` if ``text`` is not a valid schema or has fewer fields.

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
        raise UnreadableSchemaError(fault)
    try:
        # Arrow may also fail in extension types that the user has registered, with any exception.
        return pa.ipc.read_schema(pa.py_buffer(message))
    except Exception as error:
        raise UnreadableSchemaError(f"Arrow cannot parse the schema ({type(error).__name__})") from error


def replace_metadata(text: str | None, pairs: Mapping[str, str | None]) -> str | None:
    """Return the serialised schema ``text`` with the key-value metadata ``pairs``; None if the schema is missing or
    invalid.
    """
    try:
        return None if text is None else serialise(parse(text), pairs)
    except UnreadableSchemaError:
        return None


def strip_metadata(text: str) -> str:
    """Return the serialised schema ``text`` without key-value metadata. Long or invalid text is returned unchanged."""
    return text if len(text) >= _WIDE else replace_metadata(text, {}) or text


def widen_indices(text: str | None) -> str | None:
    """Return the serialised schema with dictionary indices of at least 32 bits, because dictionaries may grow.

    Invalid text is returned unchanged.
    """
    try:
        schema = parse(text or "")
    except UnreadableSchemaError:
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


def has_same_types(first: str | None, other: str | None) -> bool:
    """Return whether two serialised schemas declare the same field types and metadata.

    Other metadata and element names may differ.
    """
    if first == other:
        return True
    if first is None or other is None:
        return False
    try:
        mine, theirs = parse(first), parse(other)
    except UnreadableSchemaError:
        return False
    return bool(mine.equals(theirs)) and all(a.metadata == b.metadata for a, b in zip(mine, theirs, strict=True))


class StoredSchema:
    """Arrow schema that a file stores in its key-value metadata ``pairs``; empty if no schema is stored.

    Warnings name the file's ``path``.
    """

    def __init__(self, pairs: Iterable[KeyValue] = (), path: str | None = None) -> None:
        self._text = next((pair.value for pair in pairs if pair.key == KEY), None)
        self._path = path
        self._is_shared = False
        self._warned: set[str] = set()
        self._few: dict[int, pa.Field] = {}
        self._times_few = 0

    @property
    def is_empty(self) -> bool:
        """Whether no schema is stored."""
        return self._text is None

    @property
    def has_warned(self) -> bool:
        """Whether a warning was issued."""
        return bool(self._warned)

    @property
    def has_narrow_indices(self) -> bool:
        """Whether a dictionary type has indices that may be too narrow for the values of other files."""
        held = () if self._text is None or self._schema is None else self._schema
        return any(has_narrow_indices(field.type) for field in held)

    def widen_indices(self) -> StoredSchema:
        """Return a schema for several files. Its dictionary indices can represent the values of all files."""
        other = StoredSchema((), self._path)
        other._text, other._warned, other._is_shared = self._text, self._warned, True
        return other

    def has_same_text(self, other: StoredSchema) -> bool:
        """Return whether both schemas have the same serialised text."""
        return self._text == other._text

    def apply(self, shape: Shape, index: int | None = None) -> Shape:
        """Return the shape of a top-level column with its stored type.

        The field is found by ``index`` and name, or by name alone.

        Issues one warning for each column whose stored type contradicts its Parquet type, and for an invalid schema.
        """
        if self._text is None:
            return shape
        name = shape.node.name
        try:
            field = self._field(name, index)
            if field is None:
                return shape
            result = apply_hints(shape, field)
            return widen_shape_indices(result) if self._is_shared else result
        except (Contradiction, UnicodeDecodeError) as error:
            self._warn(f"the type of column {name!r} in the file's {KEY} is ignored: {error}")
        return shape

    def load_fields(self, positions: Sequence[int]) -> None:
        """Decode the fields at the ascending ``positions`` in advance.

        Other fields of a wide schema are not decoded.
        """
        if self._text is None or len(self._text) < _WIDE or self._times_few == _TIMES_FEW or "_schema" in self.__dict__:
            return
        missing = [position for position in positions if position not in self._few]
        if missing:
            self._times_few += 1
            with suppress(UnreadableSchemaError):  # reported when the complete schema is checked
                self._few.update(zip(missing, parse(self._text, missing), strict=True))

    def _field(self, name: str, index: int | None) -> pa.Field | None:
        """Return the stored field of a column; None if missing."""
        if index in self._few and self._few[index].name == name:
            return self._few[index]
        if self._schema is None:
            return None
        if index is None or index >= len(self._schema) or self._schema.field(index).name != name:
            index = self._positions.get(name)
        return None if index is None else self._schema.field(index)

    @cached_property
    def _schema(self) -> pa.Schema | None:
        try:
            return parse(self._text or "")
        except UnreadableSchemaError as error:
            self._warn(f"the file's {KEY} is ignored: {error}")
            return None

    @cached_property
    def _names(self) -> list[str]:
        try:
            return [] if self._schema is None else list(self._schema.names)
        except UnicodeDecodeError:
            self._warn(f"the file's {KEY} is ignored: it contains a name that is not UTF-8")
            return []

    @cached_property
    def _positions(self) -> dict[str, int]:
        counts = Counter(self._names)
        return {name: place for place, name in enumerate(self._names) if counts[name] == 1}

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            warn_about_file(self._path, message, AnnotationWarning)


class Contradiction(Exception):
    """Signal that a stored type contradicts the column. The message states the reason."""


def apply_hints(shape: Shape, original: pa.Field) -> Shape:
    """Apply the stored field ``original`` to each node of ``shape`` that it matches. Struct fields are matched by name.

    For a field with an annotation, only the metadata is applied, without that of extension types, because Parquet
    determines its type. Raises :exc:`Contradiction` if the values cannot have the type of ``original``.
    """
    if shape.annotation is not None:
        return replace(shape, original=strip_extension_metadata(pa.field("", pa.null(), metadata=original.metadata)))
    if isinstance(shape, LeafShape) and original.metadata is None and original.type == _plain_type(shape):
        return shape  # nothing to add, as for most columns
    if (name := _extension(original)) and supports_extension(name):
        # Only Parquet's annotation determines these types; filters rely on it too.
        bare = original.type.storage_type if isinstance(original.type, pa.BaseExtensionType) else original.type
        original = strip_extension_metadata(original.with_type(bare))
    kind, requested = _type_name(shape), type_category(original.type)
    if requested != kind and "nulls" not in (kind, requested) and {kind, requested} != {"lists", "maps"}:
        type_text = shorten(str(original.type), 100)
        raise Contradiction(f"{shape.node.dotted_path!r} contains {kind}, which are not {type_text}")
    shape = replace(shape, original=original)
    storage = original.type
    while isinstance(storage, pa.BaseExtensionType):
        storage = storage.storage_type
    if requested != kind:
        return shape
    if isinstance(shape, LeafShape):
        stored = _stored_type(shape, original.type)
        return replace(shape, encoded=bool(pa.types.is_dictionary(stored)), viewed=is_view(stored))
    if pa.types.is_dictionary(storage) or pa.types.is_run_end_encoded(storage):  # not returned by Arrow's reader
        return shape
    if isinstance(shape, GroupShape):
        return replace(shape, children=_children(shape, storage))
    if isinstance(shape, ListShape) and kind == "lists":
        return replace(shape, element=apply_hints(shape.element, storage.value_field))
    if isinstance(shape, ListShape) and isinstance(shape.element, GroupShape) and len(shape.element.children) == 2:
        key, item = shape.element.children
        pair = (apply_hints(key, storage.key_field), apply_hints(item, storage.item_field))
        return replace(shape, element=replace(shape.element, children=pair))
    return shape


def _extension(original: pa.Field) -> str:
    if isinstance(original.type, pa.BaseExtensionType):
        return str(original.type.extension_name)
    name: bytes = (original.metadata or {}).get(EXTENSION_NAME, b"")
    return name.decode("utf-8", "replace")


def _children(shape: GroupShape, storage: pa.DataType) -> tuple[Shape, ...]:
    same = [child.node.name for child in shape.children] == [field.name for field in storage]
    results = []
    for place, child in enumerate(shape.children):
        index = place if same else storage.get_field_index(child.node.name)
        results.append(child if index < 0 else apply_hints(child, storage.field(index)))
    return tuple(results)


def _type_name(shape: Shape) -> str:
    if isinstance(shape, GroupShape):
        return "structs"
    if isinstance(shape, ListShape):
        return "maps" if shape.is_map else "lists"
    if shape.node.physical_type == Type.INT96:
        return "number"
    plain = _plain_type(shape)
    return "nulls" if plain is None else type_category(plain)


def _plain_type(shape: Shape) -> pa.DataType | None:
    """Return the Arrow type that corresponds to the Parquet type of a leaf.

    Return None for INT96, whose type depends on the options, and for types without an Arrow equivalent.
    """
    leaf = shape.node.leaf_type
    try:
        return None if leaf.physical == Type.INT96 else leaf.arrow_type()
    except ParquetError:  # raised when the column is read
        return None


def _stored_type(shape: LeafShape, original: pa.DataType) -> pa.DataType:
    """Return the Arrow type of a leaf: ``original`` if it can represent the values, otherwise the nearest type.

    Extension types are replaced by their storage types. The result is the null type if the leaf has no plain type.
    """
    result = _plain_type(shape)
    if result is None:
        return pa.null()
    result = type_of(result, original)
    while isinstance(result, pa.BaseExtensionType):
        result = result.storage_type
    return result
