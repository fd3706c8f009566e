"""Map an Arrow schema to its stored representation: a schema node for each field, and converted arrays.

Annotation handlers determine the storage of the fields that they claim. Other fields follow the type tables of
:mod:`pqext.core.schema.types.logical`, and the three-level LIST and MAP of the LogicalTypes document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import LimitError, ParquetError
from pqext.core.base.suggestions import unknown_option_column
from pqext.core.format.metadata import FieldRepetitionType, FileType, ListType, LogicalType, MapType
from pqext.core.options.read_write import WriteOptions
from pqext.core.schema.annotations import (
    Annotation,
    AppendStorageHandler,
    Storage,
    WriteRecords,
    annotation_for_field,
    configured_annotations,
    find_by_logical_type,
)
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.types import int96, marks, spark_profile
from pqext.core.schema.types.arrow_compute import decode_dictionary, decode_run_ends, is_view, select_flagged
from pqext.core.schema.types.file_reference import check_file
from pqext.core.schema.types.leaf_conversion import choose_storage
from pqext.core.schema.types.logical import LeafType
from pqext.core.schema.types.physical_types import canonical_type, from_arrow

if TYPE_CHECKING:
    from pqext.core.write.file_layout import FileLayout, TemplateColumn


@dataclass(frozen=True)
class StoredField:
    """Arrow field and its stored representation.

    ``plain`` is the Arrow field as stored. ``children`` are the fields of a struct, the element of a list, or the key
    and value of a map; they are empty for a leaf. ``annotation`` and ``storage`` are set if a handler stores the field.
    The children then belong to the storage.
    """

    field: pa.Field
    plain: pa.Field
    children: tuple[StoredField, ...]
    leaf: LeafType | None
    logical_type: LogicalType | None
    annotation: Annotation | None
    storage: Storage | None

    def store(self, array: pa.Array, options: WriteOptions, records: WriteRecords) -> pa.Array:
        """Convert ``array`` from the field's type to its stored representation. Handlers append to ``records``.

        Raises ``ValueError`` or ``TypeError`` with the field name if Arrow cannot convert it.
        """
        try:
            return self._store(array, options, records)
        except ParquetError as error:
            error.locate(column=self.field.name)
            raise
        except pa.ArrowNotImplementedError as error:
            raise TypeError(f"column {self.field.name!r} of type {array.type} cannot be stored: {error}") from None
        except pa.ArrowInvalid as error:
            if any(said in str(error) for said in _TOO_LARGE):
                raise LimitError(TOO_MUCH, column=self.field.name) from None
            raise ValueError(f"column {self.field.name!r} contains a value that cannot be stored: {error}") from None

    def _store(self, array: pa.Array, options: WriteOptions, records: WriteRecords) -> pa.Array:
        if self.annotation is not None and self.storage is not None:
            array = self.annotation.load().to_storage(self.field, self.storage, array, options, records)
        array = _decode_layout(array)
        if self.children and self.is_rebuilt:
            return self._rebuild(array, options, records)
        if array.type == self.plain.type:
            return array
        if is_view(array.type):
            # Arrow's cast of views to 32-bit offsets may overflow.
            array = array.cast(_to_large_type(self.plain.type))
        return array.cast(self.plain.type)

    @cached_property
    def is_rebuilt(self) -> bool:
        """Whether storing an array of this field, or of a nested field, requires more than a cast."""
        if self.annotation is not None or any(child.is_rebuilt for child in self.children):
            return True
        if any(child.plain.nullable != child.field.nullable for child in self.children):
            return True  # Arrow does not cast nullable children to required children
        arrow = self.field.type
        types = pa.types
        return (
            isinstance(arrow, pa.BaseExtensionType) or types.is_run_end_encoded(arrow)
            or types.is_list_view(arrow) or types.is_large_list_view(arrow) or types.is_dictionary(arrow)
            or is_view(arrow)
        )

    @cached_property
    def is_stored_unchanged(self) -> bool:
        """Whether this is a leaf whose arrays are stored unchanged."""
        return self.leaf is not None and not self.is_rebuilt and self.field.type == self.plain.type

    def _rebuild(self, array: pa.Array, options: WriteOptions, records: WriteRecords) -> pa.Array:
        validity = array.is_valid() if array.null_count else None
        mask = None if validity is None else pa.compute.invert(validity)
        if pa.types.is_struct(array.type):
            # Values below null structs have no meaning, and need not be valid for an annotation.
            seen = array.flatten() if mask is not None else []
            parts = [
                child.store(seen[i] if seen and child.is_rebuilt else array.field(i), options, records)
                for i, child in enumerate(self.children)
            ]
            return pa.StructArray.from_arrays(parts, fields=list(self.plain.type), mask=mask)
        if pa.types.is_map(array.type):
            key, item = self.children
            offsets, (keys, items) = _list_entries(array, array.keys, array.items)
            keys, items = key.store(keys, options, records), item.store(items, options, records)
            return pa.MapArray.from_arrays(offsets, keys, items, self.plain.type, mask=mask)
        array = _to_list(array)
        (element,) = self.children
        offsets, (values,) = _list_entries(array, array.values)
        return pa.ListArray.from_arrays(offsets, element.store(values, options, records), self.plain.type, mask=mask)


def has_annotated_field(field: StoredField) -> bool:
    """Return whether a handler stores the field or a field below it."""
    return field.annotation is not None or any(map(has_annotated_field, field.children))


TOO_MUCH = (
    "more than 2 GiB of byte arrays in one row group; write smaller row groups (row_group_bytes, row_group_rows)"
)
_TOO_LARGE = ("input array too large", "overflowed binary array capacity", "offset overflow")
"""Messages of Arrow's errors for byte arrays that exceed 32-bit offsets."""


def _to_large_type(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_string(arrow_type):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary(arrow_type) else arrow_type


def _list_entries(array: pa.Array, *values: pa.Array) -> tuple[pa.Array, list[pa.Array]]:
    """Return the offsets of a list or map, starting with 0, and the ``values`` that they refer to.

    Values outside the slice of the array and below null lists are omitted.
    """
    offsets = array.offsets.to_numpy()
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    values = tuple(value.slice(first, last - first) for value in values)
    lengths = np.diff(offsets)
    if array.null_count:
        present = array.is_valid().to_numpy(zero_copy_only=False)
        if lengths[~present].any():
            retained = np.repeat(present, lengths)
            offsets = np.concatenate([[0], np.cumsum(lengths * present)]).astype(np.int32)
            return pa.array(offsets), [select_flagged(value, retained) for value in values]
    return pa.array(offsets - first), list(values)


def _to_lists(offsets: NDArray[np.int64], array: pa.Array, arrow_type: pa.DataType) -> pa.ListArray:
    """Build a list array with ``offsets`` from the elements and nulls of the list array ``array``."""
    if offsets[-1] >= 1 << 31:
        raise pa.ArrowInvalid(_TOO_LARGE[0])
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), array.values, arrow_type, mask=mask)


def _to_list(array: pa.Array) -> pa.ListArray:
    """Convert a list array of any layout to a list array with 32-bit offsets."""
    arrow_type = pa.list_(array.type.value_field)
    if array.type == arrow_type:
        return array
    # Arrow rejects the cast of null children of a null struct, even to the same type.
    if pa.types.is_fixed_size_list(array.type):
        offsets = np.arange(array.offset, array.offset + len(array) + 1) * array.type.list_size
        return _to_lists(offsets, array, arrow_type)
    if pa.types.is_large_list(array.type):
        return _to_lists(array.offsets.to_numpy(), array, arrow_type)
    # Arrow's cast of list views creates invalid arrays.
    lengths = pa.compute.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    if offsets[-1] >= 1 << 31:
        raise pa.ArrowInvalid("more than 2^31 list elements in one row group")
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), array.flatten(), arrow_type)


def _decode_layout(array: pa.Array) -> pa.Array:
    """Return the array without extension type, dictionary or run-end encoding."""
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif pa.types.is_run_end_encoded(array.type):
            array = decode_run_ends(array)
        elif pa.types.is_dictionary(array.type):
            array = decode_dictionary(array)
        else:
            return array


def plan(
    schema: pa.Schema, options: WriteOptions, sample: pa.Table | None = None, layout: FileLayout | None = None
) -> tuple[StoredField, ...]:
    """Plan how each field of ``schema`` is stored. ``sample`` contains the first rows, for handlers that inspect data.

    With the ``layout`` of a file, a field is stored like the file's column with the same name, if possible. Raises
    ``TypeError`` if a field's type cannot be stored, and ``ValueError`` if an option names a column that does not
    exist.
    """
    names = set(schema.names)
    for annotation, choices in configured_annotations(options):
        for path in choices:
            if not isinstance(path, str) or not {path, path.split(".")[0]} & names:
                raise ValueError(unknown_option_column(f"option {annotation.option!r}", path, schema.names))
    columns = sample.combine_chunks().columns if sample is not None else None
    likes = [None] * len(schema) if layout is None else layout.columns(schema.names)
    fields = tuple(
        _plan_field(
            field, field.name, _first_chunk(columns[i]) if columns is not None else None, options, template=likes[i]
        )
        for i, field in enumerate(schema)
    )
    _check_option_columns(fields, options)
    return fields


_KEY, _ITEM, _ELEMENT = "key_value.key", "key_value.value", "list.element"


def child_names(field: StoredField) -> list[str]:
    """Return the names of a field's children in stored dotted paths."""
    if pa.types.is_map(field.plain.type):
        return [_KEY, _ITEM]
    return [_ELEMENT] if pa.types.is_list(field.plain.type) else [child.field.name for child in field.children]


def _check_option_columns(fields: Sequence[StoredField], options: WriteOptions) -> None:
    """Raise ``ValueError`` if an option names a column that does not exist or has another annotation."""
    chosen = configured_annotations(options)
    if not chosen:
        return
    result: dict[str, StoredField] = {}
    queue = [(field.field.name, field) for field in fields]
    for path, field in queue:
        result[path] = field
        if field.annotation is None:
            queue += [(f"{path}.{name}", child) for name, child in zip(child_names(field), field.children, strict=True)]
    for requested, choices in chosen:
        for path in choices:
            if path not in result:
                raise ValueError(unknown_option_column(f"option {requested.option!r}", path, result))
            annotation = result[path].annotation
            if annotation is not None and annotation.option != requested.option:
                raise ValueError(
                    f"option {requested.option!r} has column {path!r}, which is a {annotation.logical} column: "
                    f"the option applies to {requested.logical} columns only"
                )


def _first_chunk(column: pa.ChunkedArray) -> pa.Array | None:
    return column.chunk(0) if column.num_chunks else None


def _plan_field(
    field: pa.Field, path: str, sample: pa.Array | None, options: WriteOptions, *, exact: bool = False,
    template: TemplateColumn | None = None,
) -> StoredField:
    there = None if template is None else find_by_logical_type(template.node.logical_name)
    annotation = annotation_for_field(field, path, options) or there
    if annotation is None:
        return _plan_plain_field(field, path, sample, options, None, exact, template)
    handler = annotation.load()
    if template and there and there.load() is handler and isinstance(handler, AppendStorageHandler):
        storage = handler.storage_for_append(field, path, template.stored_column(), options)
    else:
        storage = handler.storage(field, path, sample, options)
    inner = _plan_plain_field(storage.field, path, None, options, storage.logical_type, True, template)
    return StoredField(
        field, inner.plain, inner.children, inner.leaf, storage.logical_type, annotation, storage
    )


def _plan_plain_field(
    field: pa.Field, path: str, sample: pa.Array | None, options: WriteOptions, annotation: LogicalType | None,
    exact: bool, template: TemplateColumn | None,
) -> StoredField:
    """Plan a field without a column handler, from the Parquet type of its Arrow type.

    With ``exact``, the field is below an annotation, and a profile must not change types.
    """
    nullable = field.nullable if template is None else template.shape.nullable
    arrow, types = field.type, pa.types
    metadata = dict(field.metadata or {})
    while True:
        if isinstance(arrow, pa.BaseExtensionType):
            metadata[b"ARROW:extension:name"] = arrow.extension_name.encode()
            arrow = arrow.storage_type
        elif types.is_dictionary(arrow) or types.is_run_end_encoded(arrow):
            arrow = arrow.value_type
        else:
            break
    sample = _decode_layout(sample) if sample is not None else None

    def plan_child(child: pa.Field, array: pa.Array | None, name: str, template: TemplateColumn | None) -> StoredField:
        inner = f"{path}.{name}"
        if annotation is not None:
            return _plan_plain_field(child, inner, array, options, None, exact, template)
        return _plan_field(child, inner, array, options, exact=exact, template=template)

    def build_field(
        arrow_type: pa.DataType, children: tuple[StoredField, ...], logical_type: LogicalType | None
    ) -> StoredField:
        plain = pa.field(field.name, arrow_type, nullable, metadata)
        return StoredField(field, plain, children, None, logical_type, None, None)

    if types.is_struct(arrow):
        if not arrow.num_fields:
            raise TypeError(f"column {path!r} is a struct without fields, which Parquet cannot store; drop the column")
        seen = sample.flatten() if sample is not None else None
        fields = tuple(
            plan_child(child, seen and seen[i], child.name, template and template.child(child.name))
            for i, child in enumerate(arrow)
        )
        if annotation is None and _logical_name(metadata, path) == "FILE":
            check_file(path, arrow)
            annotation = LogicalType(FILE=FileType()) if options.profile is None else None
        return build_field(pa.struct([child.plain for child in fields]), fields, annotation)
    if types.is_map(arrow):
        if types.is_null(arrow.key_type):
            raise TypeError(f"column {path!r} is a map with keys of the null type, which cannot be stored")
        likes = (None, None) if template is None else template.elements(2)
        key = plan_child(arrow.key_field, sample.keys if sample is not None else None, _KEY, likes[0])
        key = replace(key, plain=key.plain.with_nullable(False))  # Arrow requires it
        item = plan_child(arrow.item_field, sample.items if sample is not None else None, _ITEM, likes[1])
        return build_field(pa.map_(key.plain, item.plain), (key, item), LogicalType(MAP=MapType()))
    if _is_list(arrow):
        (inner,) = (None,) if template is None else template.elements(1)
        element = plan_child(arrow.value_field, sample.flatten() if sample is not None else None, _ELEMENT, inner)
        return build_field(pa.list_(element.plain), (element,), LogicalType(LIST=ListType()))
    if options.profile is not None:
        arrow, metadata = spark_profile.adapt(arrow, metadata, path, exact=exact)
    try:
        leaf = from_arrow(arrow, metadata)
    except ValueError as error:
        raise ValueError(f"column {path!r} {error}") from None
    if leaf is None:
        raise TypeError(f"column {path!r} has type {arrow}, which Parquet cannot store; cast or drop the column")
    arrow_type = canonical_type(arrow)
    if template is not None and template.node.is_leaf:
        leaf, arrow_type = choose_storage(leaf, arrow, template.node.leaf_type, int96.unit_for(template.properties))
    plain = pa.field(field.name, arrow_type, nullable, metadata)
    return StoredField(field, plain, (), leaf, annotation or leaf.logical, None, None)


def _is_list(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_list(arrow_type) or types.is_large_list(arrow_type) or types.is_fixed_size_list(arrow_type)
        or types.is_list_view(arrow_type) or types.is_large_list_view(arrow_type)
    )


def _logical_name(metadata: dict[bytes, bytes], path: str) -> str:
    try:
        return marks.logical_name(metadata)
    except ValueError as error:
        raise ValueError(f"column {path!r}: {error}") from None


def to_schema(fields: Sequence[StoredField], name: str = "schema") -> Schema:
    """Build the schema tree of the stored fields."""
    children: list[SchemaNode] = []
    for field in fields:
        node = _build_node(field, (), 0, 0, children[-1].leaf_stop if children else 0)
        is_declared = field.storage is None or field.storage.is_declared
        children.append(node if is_declared else replace(node, is_adopted=True))
    stop = children[-1].leaf_stop if children else 0
    return Schema.from_root(_build_group(name, FieldRepetitionType.REQUIRED, tuple(children), (), 0, 0, 0, stop))


def _build_group(
    name: str, repetition: FieldRepetitionType, children: tuple[SchemaNode, ...], path: tuple[str, ...],
    definition: int, repeated_level: int, start: int, stop: int,
    logical_type: LogicalType | None = None, field_id: int | None = None,
) -> SchemaNode:
    return SchemaNode(
        name, repetition, children, None, None, logical_type, field_id, path, definition, repeated_level, start, stop
    )


def _build_node(
    field: StoredField, parent: tuple[str, ...], definition: int, repeated_level: int, start: int,
    name: str | None = None,
) -> SchemaNode:
    name = name if name is not None else field.plain.name
    path = (*parent, name)
    repetition = FieldRepetitionType.OPTIONAL if field.plain.nullable else FieldRepetitionType.REQUIRED
    definition += field.plain.nullable
    raw_id = (field.field.metadata or {}).get(marks.FIELD_ID)
    try:
        field_id = int(raw_id) if raw_id is not None else None
    except ValueError:
        raise ValueError(f"column {'.'.join(path)!r}: field id {raw_id!r} is not a number") from None
    if field.leaf is not None:
        leaf = field.leaf
        return SchemaNode(
            name, repetition, (), leaf.physical, leaf.length, field.logical_type, field_id, path,
            definition, repeated_level, start, start + 1,
        )
    if pa.types.is_struct(field.plain.type):
        children: list[SchemaNode] = []
        for child in field.children:
            children.append(
                _build_node(child, path, definition, repeated_level, children[-1].leaf_stop if children else start)
            )
        return _build_group(
            name, repetition, tuple(children), path, definition, repeated_level, start, children[-1].leaf_stop,
            field.logical_type, field_id,
        )
    names = ("key", "value") if pa.types.is_map(field.plain.type) else ("element",)
    middle = "key_value" if len(names) == 2 else "list"
    inner: list[SchemaNode] = []
    for child, label in zip(field.children, names, strict=True):
        at = inner[-1].leaf_stop if inner else start
        inner.append(_build_node(child, (*path, middle), definition + 1, repeated_level + 1, at, label))
    stop = inner[-1].leaf_stop
    group = _build_group(
        middle, FieldRepetitionType.REPEATED, tuple(inner), (
            *path, middle
        ), definition + 1, repeated_level + 1, start, stop
    )
    return _build_group(
        name, repetition, (group,), path, definition, repeated_level, start, stop, field.logical_type, field_id
    )
