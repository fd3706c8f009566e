"""Bounds of the fields of a variant column by their normalised paths, as Iceberg and Delta keep them.

The bounds of a side are one variant: an object whose keys are normalised JSON paths (RFC 9535: ``$``, ``$['a']['b']``)
and whose values are primitives. A path selects members of objects only, so that elements of arrays have no bounds.

A path has bounds where a column of its own holds every value that is not null: its ``value`` column holds nothing, or
nothing but variant nulls. That this is enough, whatever the residuals above hold, is told in
:mod:`pqext.variant.pruning`. NaN, which has no place in an order, drops the bounds of its path.

Spec: Apache Iceberg, "Bounds for Variant"; Delta Transaction Log Protocol, "Statistics for Variant Columns".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO

import pyarrow as pa

from pqext.core.base.errors import ParquetError
from pqext.core.format.metadata import Type
from pqext.core.format.predicate import Value
from pqext.core.read.reader import ParquetFile
from pqext.core.schema import shape
from pqext.core.schema.nodes import SchemaNode
from pqext.core.write.writer import write_table
from pqext.table_metrics import z85
from pqext.table_metrics.columns import ColumnSummary, merge, of_footer
from pqext.table_metrics.single_values import unscaled_of
from pqext.table_metrics.truncation import lower_bytes, lower_text, upper_bytes, upper_text
from pqext.variant.annotation import check_node
from pqext.variant.encoding import PrimitiveType, Scaled, encode_object, encode_primitive, value_size
from pqext.variant.metadata import decode_metadata, encode_metadata
from pqext.variant.pruning import VARIANT_NULL
from pqext.variant.shredding.infer import infer_schema
from pqext.variant.shredding.reconstruct import unshred
from pqext.variant.shredding.schema import ShreddingSchema, Untyped, leaf_type
from pqext.variant.types import variant_field
from pqext.variant.value import Variant

LENGTH = 16
"""Code points of text and bytes of binary that a bound has at most."""

_T = PrimitiveType
BATCH_ROWS = 65_536
WHOLE = 1 << 30
"""Bytes to which bounds in memory are cut: none is."""


@dataclass(frozen=True, slots=True)
class TypedPath:
    """A path with a column of its own: the leaf of its values, and that of what is none of their type."""

    path: tuple[str, ...]
    typed: SchemaNode
    value: SchemaNode | None


def typed_paths(node: SchemaNode) -> list[TypedPath]:
    """The paths of primitives that a shredded variant column has columns for, none within arrays.

    Raises ``VariantError`` with the column for a group that no variant may be read from.
    """
    check_node(node)
    return list(_below(node, ()))


def _below(node: SchemaNode, path: tuple[str, ...]) -> Iterator[TypedPath]:
    value, typed = node.child("value"), node.child("typed_value")
    if typed is None or typed.max_repetition_level:
        return
    if typed.is_leaf:
        yield TypedPath(path, typed, value)
    elif not typed.logical_name:
        for member in typed.children:
            if not member.is_leaf:
                yield from _below(member, (*path, member.name))


@dataclass(frozen=True, slots=True)
class PathBounds:
    """The bounds of a path, as data of primitives of one type (:func:`pqext.variant.encoding.decode_primitive`)."""

    path: tuple[str, ...]
    kind: PrimitiveType
    minimum: Value
    maximum: Value
    scale: int = 0

    @property
    def key(self) -> str:
        """The normalised path."""
        return normalized_path(self.path)

    def encoded(self, length: int | None, *, upper: bool) -> bytes | None:
        """One side as a variant's value; ``None`` where text or binary cannot be cut to ``length`` on it."""
        value = self.maximum if upper else self.minimum
        kind, data = self.kind, _data(self.kind, value, self.scale)
        if kind in (_T.TRUE, _T.FALSE):
            return encode_primitive(_T.TRUE if value else _T.FALSE)
        if isinstance(value, bytes) and kind == _T.STRING:
            data = (upper_text if upper else lower_text)(value, length)
        elif isinstance(value, bytes) and kind == _T.BINARY:
            data = (upper_bytes if upper else lower_bytes)(value, length)
        return None if data is None else encode_primitive(kind, data)


def _data(kind: PrimitiveType, value: Value, scale: int) -> object:
    if kind in (_T.DECIMAL4, _T.DECIMAL8, _T.DECIMAL16):
        unscaled = unscaled_of(value, scale)
        return None if unscaled is None else Scaled(unscaled, scale)
    if kind in (_T.TIME_NTZ, _T.TIMESTAMP, _T.TIMESTAMP_NTZ) and isinstance(value, int):
        return value // 1_000
    if kind == _T.UUID and isinstance(value, bytes):
        from uuid import UUID

        return UUID(bytes=value)
    return value


def bounds_of(
    paths: Sequence[TypedPath], summary_of: Callable[[SchemaNode], ColumnSummary]
) -> list[PathBounds]:
    """The bounds of those of ``paths`` that have some, by the summaries of their columns."""
    found = []
    for one in paths:
        kind = _kind(one.typed)
        typed = summary_of(one.typed)
        if kind is None or typed.minimum is None or typed.maximum is None or typed.nan_count != 0:
            continue
        if one.value is None or holds_nothing(summary_of(one.value)):
            found.append(PathBounds(one.path, kind, typed.minimum, typed.maximum, _scale(one.typed)))
    return found


def holds_nothing(residual: ColumnSummary) -> bool:
    """Is there nothing in a ``value`` column but nulls and variant nulls?"""
    return residual.all_null or residual.maximum == VARIANT_NULL


def _kind(leaf: SchemaNode) -> PrimitiveType | None:
    """The type of primitives that a typed column holds; ``None`` where it is none of a variant."""
    try:
        type = leaf_type(leaf.leaf_type.arrow_type())
    except (ParquetError, ValueError):
        return None
    if pa.types.is_decimal(type):
        return {Type.INT32: _T.DECIMAL4, Type.INT64: _T.DECIMAL8}.get(leaf.leaf_type.physical, _T.DECIMAL16)
    return _KINDS.get(type)


_KINDS = {
    pa.bool_(): _T.TRUE, pa.int8(): _T.INT8, pa.int16(): _T.INT16, pa.int32(): _T.INT32, pa.int64(): _T.INT64,
    pa.float32(): _T.FLOAT, pa.float64(): _T.DOUBLE, pa.date32(): _T.DATE, pa.time64("us"): _T.TIME_NTZ,
    pa.timestamp("us", "UTC"): _T.TIMESTAMP, pa.timestamp("ns", "UTC"): _T.TIMESTAMP_NANOS,
    pa.timestamp("us"): _T.TIMESTAMP_NTZ, pa.timestamp("ns"): _T.TIMESTAMP_NTZ_NANOS, pa.string(): _T.STRING,
    pa.binary(): _T.BINARY, pa.binary(16): _T.UUID,
}


def _scale(leaf: SchemaNode) -> int:
    logical = leaf.leaf_type.logical
    return logical.DECIMAL.scale if logical is not None and logical.DECIMAL is not None else 0


def encode(bounds: Sequence[PathBounds], *, upper: bool, length: int | None = LENGTH) -> bytes | None:
    """One side of all paths: the metadata of a variant and the object behind it; ``None`` where no path has a bound."""
    fields = {one.key.encode(): made for one in bounds if (made := one.encoded(length, upper=upper)) is not None}
    if not fields:
        return None
    names = sorted(fields)
    metadata = encode_metadata(name.decode() for name in names)
    return metadata + encode_object([(at, fields[name]) for at, name in enumerate(names)], len(names))


def normalized_path(path: Sequence[str]) -> str:
    """The normalised path of RFC 9535 to a field: names in single quotes, ``$`` alone for the root.

    >>> normalized_path(["a", "it's"])
    "$['a']['it\\\\'s']"
    """
    return "$" + "".join(f"['{''.join(map(_escaped, name))}']" for name in path)


_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "'": "\\'", "\\": "\\\\"}


def _escaped(character: str) -> str:
    return _ESCAPES.get(character) or (f"\\u{ord(character):04x}" if character < " " else character)


def variant_bound(bound: bytes | str) -> Variant:
    """The variant that a bound of a variant column is: bytes as Iceberg has them, or Delta's Z85 text.

    Its keys are normalised JSON paths. Raises ``VariantError`` where the bytes are no metadata with a value behind it,
    and ``ValueError`` for text that is no Z85.
    """
    raw = z85.decode(bound) if isinstance(bound, str) else bytes(bound)
    size = (raw[0] >> 6) + 1 if raw else 1
    names = int.from_bytes(raw[1 : 1 + size], "little")
    strings = 1 + size * (names + 2)
    start = strings + int.from_bytes(raw[strings - size : strings], "little")
    metadata, value = raw[:start], raw[start:]
    decode_metadata(metadata)
    return Variant(value[: value_size(value, 0, len(value))], metadata)


def bounds_of_values(file: ParquetFile, node: SchemaNode) -> list[PathBounds]:
    """The bounds of the paths whose values all are of the type that the first rows have there, or null.

    Raises ``VariantError`` with file and column for broken values.
    """
    schema: ShreddingSchema | None = None
    paths: list[TypedPath] = []
    found: dict[int, ColumnSummary] = {}
    try:
        for batch in _batches(file, node):
            if schema is None:
                if batch.null_count == len(batch):
                    continue
                schema = infer_schema(batch, sample_rows=len(batch), min_frequency=0.0, mixed="uniform")
            if isinstance(schema, Untyped):
                return []
            with ParquetFile(_shredded(batch, schema)) as made:
                paths = typed_paths(made.schema.root.children[0])
                for leaf in (leaf for one in paths for leaf in (one.typed, one.value) if leaf is not None):
                    summary, known = of_footer(made, leaf), found.get(leaf.leaf_start)
                    found[leaf.leaf_start] = summary if known is None else merge([known, summary])
    except ParquetError as error:
        error.locate(path=file.path, column=node.dotted)
        raise
    return bounds_of(paths, lambda leaf: found[leaf.leaf_start])


def _shredded(batch: pa.StructArray, schema: ShreddingSchema) -> bytes:
    sink = BytesIO()
    table = pa.table([batch], schema=pa.schema([variant_field("v")]))
    write_table(
        table, sink, shredding={"v": schema}, compression="uncompressed", dictionary=False, page_index=False,
        bound_bytes=WHOLE,
    )
    return sink.getvalue()


def _batches(file: ParquetFile, node: SchemaNode) -> Iterator[pa.StructArray]:
    """The whole variants of the column of ``node``, a batch at a time; null where a struct around it is."""
    (top,) = (shape.of(one) for one in file.schema.root.children if one.leaf_start <= node.leaf_start < one.leaf_stop)
    for group in file.row_groups:
        for array in file.iter_stored(top, group.index, BATCH_ROWS):
            for name in node.path[1:]:
                array = array.flatten()[array.type.get_field_index(name)]
            yield unshred(array)
