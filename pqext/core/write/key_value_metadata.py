"""Key-value metadata that the writer adds: the Arrow schema, and metadata of column handlers such as GeoParquet's.

Types after a round trip, here and in pyarrow:

- Unchanged: integers, floats, decimals of all widths, strings and binary of all layouts, dates in days, times and
  timestamps from milliseconds on with their zones, durations, dictionaries of strings and of binary, lists of all
  layouts, structs, maps, nulls, and extension types of them.
- Changed to the nearest type: ``timestamp[s]`` and ``time32[s]`` to milliseconds, ``date64`` to ``date32``,
  dictionaries of large strings to dictionaries of strings, dictionaries of other values and run-end encoded arrays to
  their values. Values after the dictionary page of a column may change the order of entries. A dictionary with a
  DELTA encoding becomes its values, since Arrow's reader does not support dictionaries in these encodings.
- Intervals remain intervals here; Arrow's own reader returns them as 12 bytes.
- Rejected with ``TypeError``: unions, structs without fields, ``binary(0)``, decimals of negative scale.

VARIANT, GEOMETRY and GEOGRAPHY columns are recorded with their storage types, without extension types. Parquet's
annotation identifies them, pyarrow aborts on some of these extension types, and DuckDB rejects tables with them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from pqext.core.encryption.writing import FileEncryptor
from pqext.core.format.metadata import RowGroup, Type
from pqext.core.options.read_write import WriteOptions
from pqext.core.schema.annotations import Annotation, KeyValueMetadataHandler, WrittenColumn
from pqext.core.schema.arrow_schema.types import strip_extension_metadata
from pqext.core.schema.nodes import Schema
from pqext.core.schema.types import marks
from pqext.core.schema.types.arrow_compute import map_types
from pqext.core.schema.types.physical_types import canonical_type
from pqext.core.write.storage import StoredField, child_names, has_annotated_field

_MAKERS = (
    (pa.types.is_large_list, pa.large_list),
    (pa.types.is_list_view, pa.list_view),
    (pa.types.is_large_list_view, pa.large_list_view),
)


def schema_of(fields: Sequence[StoredField], options: WriteOptions, unbounded_paths: Collection[str] = ()) -> pa.Schema:
    """Return the Arrow schema to store. Dictionaries of the columns ``unbounded_paths`` get wider indices."""
    noted = [_field(stored, stored.field.name, options) for stored in fields]
    return pa.schema(
        [field.with_type(_widen_types(field.type)) if field.name in unbounded_paths else field for field in noted]
    )


def _widen_types(arrow_type: pa.DataType) -> pa.DataType:
    def widen_leaf(leaf: pa.DataType) -> pa.DataType:
        return pa.dictionary(pa.int32(), leaf.value_type, leaf.ordered) if pa.types.is_dictionary(leaf) else leaf

    return map_types(arrow_type, widen_leaf)


def _field(stored_field: StoredField, path: str, options: WriteOptions) -> pa.Field:
    values = stored_field.field
    if stored_field.annotation is not None:
        return strip_extension_metadata(
            pa.field(values.name, _strip_field_metadata(stored_field.plain.type), values.nullable, values.metadata)
        )
    field = pa.field(values.name, _type(stored_field, values.type, path, options), values.nullable, values.metadata)
    # Parquet records nullability, and a field that is only marked must not become an extension type.
    known = not isinstance(field.type, pa.BaseExtensionType) and stored_field.leaf is not None
    is_marked = known and stored_field.leaf is not None and stored_field.leaf.member in marks.NAMES
    return strip_extension_metadata(field) if is_marked else field


def _type(field: StoredField, arrow_type: pa.DataType, path: str, options: WriteOptions) -> pa.DataType:
    types = pa.types
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _type(field, arrow_type.storage_type, path, options) if has_annotated_field(field) else arrow_type
    if types.is_run_end_encoded(arrow_type):
        return _type(field, arrow_type.value_type, path, options)
    if types.is_dictionary(arrow_type):
        # Arrow's reader fails for dictionaries of extension types and in DELTA encodings, and supports only text.
        is_read = _is_text(arrow_type.value_type) and options.encoding_of(path) in ("plain", "auto", "default")
        return arrow_type if is_read else _type(field, arrow_type.value_type, path, options)
    if not field.children:
        return arrow_type
    names = child_names(field)
    children = [_field(c, f"{path}.{name}", options) for c, name in zip(field.children, names, strict=True)]
    if types.is_struct(arrow_type):
        return pa.struct(children)
    if types.is_map(arrow_type):
        return pa.map_(*children, keys_sorted=arrow_type.keys_sorted)
    if types.is_fixed_size_list(arrow_type):
        return pa.list_(children[0], arrow_type.list_size)
    return next((make(children[0]) for is_kind, make in _MAKERS if is_kind(arrow_type)), pa.list_(children[0]))


def _is_text(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(canonical_type(arrow_type)) or pa.types.is_binary(canonical_type(arrow_type)))


def _strip_field_metadata(arrow_type: pa.DataType) -> pa.DataType:
    """Return a stored type without the metadata of its fields."""
    if pa.types.is_struct(arrow_type):
        return pa.struct([pa.field(f.name, _strip_field_metadata(f.type), f.nullable) for f in arrow_type])
    if pa.types.is_list(arrow_type):
        element = _strip_field_metadata(arrow_type.value_type)
        return pa.list_(pa.field("element", element, arrow_type.value_field.nullable))
    return arrow_type


def iter_dictionaries(field: StoredField, array: pa.Array) -> Iterator[pa.Array | None]:
    """Yield the dictionary array of each leaf below a field, in column order; None for a leaf without a dictionary."""
    if field.annotation is not None:
        yield from (None for _ in _leaves(field))
        return
    result = None
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            result, array = array, array.dictionary
        else:
            break
    if field.leaf is not None:
        yield result
    elif result is not None or pa.types.is_run_end_encoded(array.type):
        yield from (None for _ in _leaves(field))
    elif pa.types.is_struct(array.type):
        for index, child in enumerate(field.children):
            yield from iter_dictionaries(child, array.field(index))
    elif pa.types.is_map(array.type):
        for child, part in zip(field.children, (array.keys, array.items), strict=True):
            yield from iter_dictionaries(child, part)
    else:
        yield from iter_dictionaries(field.children[0], array.values)


def _leaves(field: StoredField) -> list[StoredField]:
    return [leaf for child in field.children for leaf in _leaves(child)] if field.leaf is None else [field]


def build_pairs(
    schema: Schema, fields: Sequence[StoredField], row_groups: Sequence[RowGroup], derived_pairs: Mapping[str, str],
    input_metadata: Mapping[str, str], encryptor: FileEncryptor | None, options: WriteOptions,
) -> dict[str, str]:
    """Return the key-value metadata of the top-level columns ``fields`` of ``schema``.

    ``derived_pairs`` maps derived columns to their sources.

    ``input_metadata`` is the metadata of the file that the rows were read from.

    Raises ``ValueError`` if an option requires metadata that is impossible for these columns.
    """
    columns: dict[str, tuple[Annotation, list[WrittenColumn]]] = {}
    names = {source: name for name, source in derived_pairs.items()}
    for node, field in zip(schema.root.children, fields, strict=True):
        if field.annotation is None or field.storage is None:
            continue
        leaf = node.leaf_start
        column = WrittenColumn(
            node=node,
            storage=field.storage,
            chunks=[about for group in row_groups if (about := group.columns[leaf].meta_data) is not None],
            encrypted=encryptor is not None and encryptor.encrypts_column(leaf),
            derived=names.get(node.name),
        )
        columns.setdefault(field.annotation.handler, (field.annotation, []))[1].append(column)
    result: dict[str, str] = {}
    for annotation, written in columns.values():
        handler = annotation.load()
        if isinstance(handler, KeyValueMetadataHandler):
            result |= handler.key_value_metadata(written, input_metadata, options)
    if (options.geoparquet or options.primary_geometry) and not result:
        tops = schema.root.children
        plain = (node.name for node in tops if node.physical_type == Type.BYTE_ARRAY and node.logical_type is None)
        name = next(plain, "at")
        raise ValueError(
            "geoparquet needs a geometry column at the top level; name the column of WKB in the option geometry, "
            f'such as geometry={{"{name}": "OGC:CRS84"}}'
        )
    return result
