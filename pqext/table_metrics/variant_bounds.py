"""Bounds of the fields of a VARIANT column by normalised path, in the format of Iceberg and Delta.

The lower or upper bounds are stored as a variant: an object whose keys are normalised JSON paths (RFC 9535: ``$``,
``$['a']['b']``) and whose values are primitives. Paths select object members only, so elements of arrays have no
bounds.

A path has bounds if a shredded column contains all of its values except nulls. The ``value`` column of the path is then
empty, or contains only variant nulls. :mod:`pqext.variant.pruning` explains why this suffices, whatever the residuals
above contain. NaN, which is unordered, removes the bounds of its path.

Spec: Apache Iceberg, "Bounds for Variant"; Delta Transaction Log Protocol, "Statistics for Variant Columns".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO

import numpy as np
import pyarrow as pa

from pqext.core.base.errors import ParquetError
from pqext.core.base.usage import Budget
from pqext.core.format.metadata import Type
from pqext.core.format.predicate import Value
from pqext.core.read.reader import ParquetFile
from pqext.core.schema import shape
from pqext.core.schema.nodes import SchemaNode
from pqext.core.write.writer import write_table
from pqext.table_metrics.columns import ColumnSummary, merge_summaries, summarize_footer
from pqext.table_metrics.single_values import (
    truncate_lower_bytes,
    truncate_lower_text,
    truncate_upper_bytes,
    truncate_upper_text,
    unscaled_value,
)
from pqext.variant.annotation import check_node
from pqext.variant.binary_value import decode_metadata, encode_metadata
from pqext.variant.encoding import PrimitiveType, ScaledDecimal, encode_object, encode_primitive, value_size
from pqext.variant.pruning import VARIANT_NULL
from pqext.variant.shredding.infer import infer_schema
from pqext.variant.shredding.reconstruct import unshred
from pqext.variant.shredding.schema import ShreddingSchema, Untyped, leaf_type, schema_of_storage
from pqext.variant.types import variant_field
from pqext.variant.value import Variant

LENGTH = 16
"""Maximum number of code points of strings, or bytes of binary values, in a bound."""

_T = PrimitiveType
BATCH_ROWS = 65_536
UNTRUNCATED = 1 << 30
"""Maximum length of bounds in memory, large enough that none is truncated."""


@dataclass(frozen=True, slots=True)
class TypedPath:
    """Shredded path with two leaves: the leaf for values of the shredded type, and the leaf for other values."""

    path: tuple[str, ...]
    typed: SchemaNode
    value: SchemaNode | None


def find_typed_paths(node: SchemaNode) -> list[TypedPath]:
    """Return the paths of a variant column that are shredded as a primitive type, except within arrays.

    Raises ``VariantError`` with the column for an invalid variant group.
    """
    check_node(node)
    return list(_iter_typed_paths(node, ()))


def _iter_typed_paths(node: SchemaNode, path: tuple[str, ...]) -> Iterator[TypedPath]:
    value, typed = node.child("value"), node.child("typed_value")
    if typed is None or typed.max_repetition_level:
        return
    if typed.is_leaf:
        yield TypedPath(path, typed, value)
    elif not typed.logical_name:
        for member in typed.children:
            if not member.is_leaf:
                yield from _iter_typed_paths(member, (*path, member.name))


@dataclass(frozen=True, slots=True)
class PathBounds:
    """Bounds of a path, encoded as one primitive type (see :func:`pqext.variant.encoding.decode_primitive`)."""

    path: tuple[str, ...]
    type: PrimitiveType
    minimum: Value
    maximum: Value
    scale: int = 0

    @property
    def key(self) -> str:
        """Normalised path of the bounds."""
        return normalized_path(self.path)

    def encode(self, length: int | None, *, upper: bool) -> bytes | None:
        """Encode the minimum or, with ``upper``, the maximum as a variant value.

        Return None if a string or binary value cannot be truncated to ``length``.
        """
        value = self.maximum if upper else self.minimum
        type, data = self.type, _primitive_data(self.type, value, self.scale)
        if type in (_T.TRUE, _T.FALSE):
            return encode_primitive(_T.TRUE if value else _T.FALSE)
        if isinstance(value, bytes) and type == _T.STRING:
            data = (truncate_upper_text if upper else truncate_lower_text)(value, length)
        elif isinstance(value, bytes) and type == _T.BINARY:
            data = (truncate_upper_bytes if upper else truncate_lower_bytes)(value, length)
        return None if data is None else encode_primitive(type, data)


def _primitive_data(type: PrimitiveType, value: Value, scale: int) -> object:
    if type in (_T.DECIMAL4, _T.DECIMAL8, _T.DECIMAL16):
        unscaled = unscaled_value(value, scale)
        return None if unscaled is None else ScaledDecimal(unscaled, scale)
    if type in (_T.TIME_NTZ, _T.TIMESTAMP, _T.TIMESTAMP_NTZ) and isinstance(value, int):
        return value // 1_000
    if type == _T.UUID and isinstance(value, bytes):
        from uuid import UUID

        return UUID(bytes=value)
    return value


def path_bounds(
    paths: Sequence[TypedPath], get_summary: Callable[[SchemaNode], ColumnSummary]
) -> list[PathBounds]:
    """Return the bounds of ``paths`` from the summaries of their columns. Paths without bounds are omitted."""
    bounds = []
    for path in paths:
        type = _primitive_type(path.typed)
        typed = get_summary(path.typed)
        if type is None or typed.minimum is None or typed.maximum is None or typed.nan_count != 0:
            continue
        if path.value is None or has_only_nulls(get_summary(path.value)):
            bounds.append(PathBounds(path.path, type, typed.minimum, typed.maximum, _scale(path.typed)))
    return bounds


def has_only_nulls(residual: ColumnSummary) -> bool:
    """Return whether a ``value`` column contains only SQL nulls and VARIANT nulls."""
    return residual.all_null or residual.maximum == VARIANT_NULL


def _primitive_type(leaf: SchemaNode) -> PrimitiveType | None:
    """Return the primitive type of a typed column, or None if it is not a variant type."""
    try:
        type = leaf_type(leaf.leaf_type.arrow_type())
    except (ParquetError, ValueError):
        return None
    if pa.types.is_decimal(type):
        return {Type.INT32: _T.DECIMAL4, Type.INT64: _T.DECIMAL8}.get(leaf.leaf_type.physical, _T.DECIMAL16)
    return _PRIMITIVE_TYPES.get(type)


_PRIMITIVE_TYPES = {
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
    """Encode the lower or upper bounds of all paths as variant metadata and an object; None without bounds."""
    encoded = ((path.key.encode(), path.encode(length, upper=upper)) for path in bounds)
    fields = {key: value for key, value in encoded if value is not None}
    if not fields:
        return None
    names = sorted(fields)
    metadata = encode_metadata(name.decode() for name in names)
    return metadata + encode_object([(at, fields[name]) for at, name in enumerate(names)], len(names))


def normalized_path(path: Sequence[str]) -> str:
    """Return the RFC 9535 normalised path to a field: ``$`` for the root, then each name in brackets and single quotes.

    >>> normalized_path(["a", "it's"])
    "$['a']['it\\\\'s']"
    """
    return "$" + "".join(f"['{''.join(map(_escape, name))}']" for name in path)


_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "'": "\\'", "\\": "\\\\"}


def _escape(character: str) -> str:
    return _ESCAPES.get(character) or (f"\\u{ord(character):04x}" if character < " " else character)


def variant_bound(bound: bytes | str) -> Variant:
    """Decode a bound of a variant column.

    Args:
        bound: Bytes from Iceberg metrics, or Z85 text from Delta statistics.

    Returns:
        A variant object with normalised JSON paths as keys.

    Raises:
        VariantError: If the bytes are not metadata followed by a value.
        ValueError: If the text is not Z85.

    Example:
        >>> import io, pyarrow as pa, pqext
        >>> from pqext import variant
        >>> sink = io.BytesIO()
        >>> pqext.write_table(pa.table({"v": variant.parse_json(['{"a": 1}'])}), sink)
        >>> from pqext.table_metrics import iceberg
        >>> variant_bound(iceberg(sink.getvalue(), exact=True).lower_bounds[1]).to_python()
        {"$['a']": 1}
    """
    metadata, value = split_bound(decode_z85(bound) if isinstance(bound, str) else bytes(bound))
    decode_metadata(metadata)
    return Variant(value, metadata)


def split_bound(bound: bytes) -> tuple[bytes, bytes]:
    """Split the bytes of a bound into metadata and value, without the padding at the end.

    The metadata is not validated. Raises ``VariantError`` if the value extends beyond the bytes.
    """
    size = (bound[0] >> 6) + 1 if bound else 1
    names = int.from_bytes(bound[1 : 1 + size], "little")
    strings = 1 + size * (names + 2)
    start = strings + int.from_bytes(bound[strings - size : strings], "little")
    metadata, value = bound[:start], bound[start:]
    return metadata, value[: value_size(value, 0, len(value))]


def compute_path_bounds(file: ParquetFile, node: SchemaNode, budget: Budget) -> list[PathBounds]:
    """Return the bounds of each path whose non-null values all have the same type as in the first rows.

    Raises ``VariantError`` with file and column for invalid values.
    """
    schema: ShreddingSchema | None = None
    paths: list[TypedPath] = []
    summaries: dict[int, ColumnSummary] = {}
    try:
        for batch in _iter_batches(file, node, budget):
            if schema is None:
                if batch.null_count == len(batch):
                    continue
                schema = infer_schema(batch, sample_rows=len(batch), min_frequency=0.0, mixed="uniform")
            if isinstance(schema, Untyped):
                return []
            with ParquetFile(_encode_shredded(batch, schema)) as shredded:
                paths = find_typed_paths(shredded.schema.root.children[0])
                for leaf in (leaf for path in paths for leaf in (path.typed, path.value) if leaf is not None):
                    summary, earlier = summarize_footer(shredded, leaf), summaries.get(leaf.leaf_start)
                    summaries[leaf.leaf_start] = summary if earlier is None else merge_summaries([earlier, summary])
    except ParquetError as error:
        error.locate(path=file.path, column=node.dotted_path)
        raise
    return path_bounds(paths, lambda leaf: summaries[leaf.leaf_start])


def _encode_shredded(batch: pa.StructArray, schema: ShreddingSchema) -> bytes:
    sink = BytesIO()
    table = pa.table([batch], schema=pa.schema([variant_field("v")]))
    write_table(
        table, sink, shredding={"v": schema}, compression="uncompressed", dictionary=False, page_index=False,
        bound_bytes=UNTRUNCATED,
    )
    return sink.getvalue()


def _iter_batches(file: ParquetFile, node: SchemaNode, budget: Budget) -> Iterator[pa.StructArray]:
    """Yield the values of the VARIANT column of ``node`` in batches, unshredded. Null structs result in nulls."""
    nodes = file.schema.root.children
    (top,) = (shape.from_node(each) for each in nodes if each.leaf_start <= node.leaf_start < each.leaf_stop)
    file.row_groups.check_shared(list(top.leaves()), budget)
    for group in file.row_groups:
        for array in file.iter_storage_arrays(top, group.index, BATCH_ROWS, budget=budget.restart()):
            for name in node.path[1:]:
                array = array.flatten()[array.type.get_field_index(name)]
            schema_of_storage(array.type)
            yield unshred(array)


ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_DIGITS = np.zeros(256, np.uint64)
_DIGITS[np.frombuffer(ALPHABET.encode(), np.uint8)] = np.arange(85)
_POWERS = np.array([85**power for power in (4, 3, 2, 1, 0)], np.uint64)


def encode_z85(data: bytes) -> str:
    """Encode ``data``, padded with zeros to a multiple of four bytes, like Delta's writers.

    >>> encode_z85(bytes.fromhex("864FD26FB559F75B"))
    'HelloWorld'
    """
    padded = data + bytes(-len(data) % 4)
    encoded = []
    for at in range(0, len(padded), 4):
        number = int.from_bytes(padded[at : at + 4], "big")
        encoded += [ALPHABET[number // 85**power % 85] for power in (4, 3, 2, 1, 0)]
    return "".join(encoded)


def decode_z85(text: str) -> bytes:
    """Decode ``text``. The result includes the zeros that ``encode_z85`` appends.

    Raises ``ValueError`` if the length is not a multiple of five, or a character or group is invalid.
    """
    if len(text) % 5:
        raise ValueError(f"{len(text)} characters are not Z85: the length must be a multiple of five")
    unknown = set(text).difference(ALPHABET)
    if unknown:
        raise ValueError(f"{min(unknown)!r} is not a Z85 character")
    digits = _DIGITS[np.frombuffer(text.encode(), np.uint8)].reshape(-1, 5)
    numbers = digits @ _POWERS
    for group in np.flatnonzero(numbers >> np.uint64(32)):
        raise ValueError(f"{text[5 * group : 5 * group + 5]!r} is not Z85: it encodes more than four bytes")
    return bytes(numbers.astype(">u4"))
