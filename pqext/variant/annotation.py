"""Annotation handler for VARIANT columns: reading, writing and pruning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.errors import VariantError
from pqext.core.format import predicate as questions
from pqext.core.format.metadata import FieldRepetitionType, LogicalType, Type, VariantType
from pqext.core.options.read_write import ReadOptions, WriteOptions
from pqext.core.schema.annotations import (
    EXTENSION_METADATA,
    EXTENSION_NAME,
    ChunkFacts,
    Storage,
    StoredColumn,
    WriteRecords,
)
from pqext.core.schema.facts import RowGroupFacts
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.row_ranges import RowRanges
from pqext.variant import pruning
from pqext.variant.pruning import VariantPredicate
from pqext.variant.shredding.choice import Shredding, parse_shredding
from pqext.variant.shredding.reconstruct import unshred
from pqext.variant.shredding.schema import ShreddingSchema, Untyped, schema_of_storage, storage_struct
from pqext.variant.shredding.shredder import Coerce, shred, to_storage_layout
from pqext.variant.types import (
    is_shredded_type,
    is_variant_type,
    metadata_field,
    storage_array,
    storage_type,
    variant_field,
)
from pqext.variant.validation import find_faults, validate

MAX_DEPTH = 1_000_000
"""Maximum nesting of residual values that are written; the format has no limit of its own."""
VERSION = 1
"""Encoding version that pqext reads and writes, and the default of groups that do not declare one."""


@dataclass(frozen=True, slots=True)
class VariantStorage(Storage):
    """Storage of a VARIANT column: its shredding schema, and the coercion of values to this schema."""

    coerce: Coerce


class VariantHandler:
    """Handler of the VARIANT annotation; see ``pqext.core.schema.annotations.AnnotationHandler``."""

    def arrow_field(self, node: SchemaNode, storage: pa.Field, options: ReadOptions) -> pa.Field:
        """Return the variant field with its extension metadata or, with ``options.shredded``, the storage struct.

        The fields of the storage struct also have extension metadata. Raises ``VariantError`` if the group violates the
        layout of Variant Shredding.
        """
        check_node(node, strict=options.strict)
        try:
            schema_of_storage(storage.type)
        except VariantError as error:
            error.locate(column=node.dotted_path)
            raise
        if not _reads_shredded(storage.type, options):
            marked = variant_field(node.name, storage.nullable)
            return marked.with_metadata({**(storage.metadata or {}), **marked.metadata})
        children = [metadata_field() if child.name == "metadata" else child for child in storage.type]
        return storage.with_type(pa.struct(children))

    def from_storage(self, node: SchemaNode, storage: pa.Array, options: ReadOptions) -> pa.Array:
        """Return unshredded variants or, with ``options.shredded``, the stored columns.

        With ``options.strict``, ``VariantError`` is raised in both cases if columns of a row contradict each other, or
        a metadata dictionary is flagged as sorted but is not.
        """
        retained = _reads_shredded(storage.type, options)
        try:
            if options.strict:
                _check_sorted(storage)
            whole = unshred(storage, strict=options.strict) if options.strict or not retained else None
        except VariantError as error:
            error.locate(column=node.dotted_path)
            raise
        if not retained:
            return whole
        field = self.arrow_field(node, pa.field(node.name, storage.type), options)
        return _restore_field_metadata(storage, field.type)

    def storage(self, field: pa.Field, path: str, sample: pa.Array | None, options: WriteOptions) -> VariantStorage:
        """Return the storage struct that option ``shredding`` requests, by default with the shredding of the array."""
        type = _require_variant_type(field, path, options)
        chosen = _select_shredding(path, options)
        try:
            schema = chosen.schema_for(sample) if chosen is not None else schema_of_storage(type)
        except VariantError as error:
            error.locate(column=path)
            raise
        return _create_storage(field, schema, LogicalType(VARIANT=VariantType(specification_version=VERSION)), chosen)

    def storage_for_append(
        self, field: pa.Field, path: str, column: StoredColumn, options: WriteOptions
    ) -> VariantStorage:
        """Return the storage struct of ``column``, with the shredding of the file.

        Raises ``ValueError`` if the ``shredding`` option has a different schema; ``"infer"`` is allowed.
        """
        _require_variant_type(field, path, options)
        chosen = _select_shredding(path, options)
        schema = schema_of_storage(column.field.type)
        if chosen is not None and chosen.schema not in (None, schema):
            raise ValueError(
                f"option 'shredding': column {path!r} is shredded as {schema} in the file; "
                "remove the option, or rewrite the file with pqext.variant.reshred_file"
            )
        assert column.node.logical_type is not None
        return _create_storage(field, schema, column.node.logical_type, chosen)

    def inspects_data(self, choice: Any) -> bool:
        """Return whether the shredding schema must be inferred from data."""
        return parse_shredding(choice).schema is None

    def to_storage(
        self, field: pa.Field, storage: Storage, array: pa.Array, options: WriteOptions, records: WriteRecords
    ) -> pa.Array:
        """Shred, re-shred or reconstruct ``array`` into the storage struct.

        An array that already has this shredding is written unchanged. Raises ``VariantError`` with the row if a row is
        invalid.
        """
        array = storage_array(array)
        schema = schema_of_storage(storage.field.type)
        if is_shredded_type(array.type) and schema_of_storage(array.type) == schema:
            try:
                validate(array, max_depth=MAX_DEPTH, on_fault="raise")
            except VariantError as error:
                error.column = ".".join(filter(None, (field.name, error.column)))
                raise
            return to_storage_layout(array, schema)
        if isinstance(schema, Untyped):
            return unshred(array)
        return shred(array, schema, coerce=storage.coerce if isinstance(storage, VariantStorage) else "equivalent")

    def chunk_facts(
        self, node: SchemaNode, values: pa.Array, starts: NDArray[np.int64], has_index: bool, options: WriteOptions,
        records: WriteRecords,
    ) -> ChunkFacts:
        """Return empty facts. Only the leaves of a VARIANT have statistics."""
        return ChunkFacts()

    def may_match(self, node: SchemaNode, row_group: RowGroupFacts, predicate: object) -> bool:
        """Return whether a row of the row group may match ``predicate``.

        The predicate is a :class:`VariantPredicate`, or a core null predicate on the column itself.
        """
        if isinstance(predicate, VariantPredicate):
            return pruning.may_match(node, row_group, predicate)
        metadata = node.child("metadata")
        if metadata is None or not metadata.is_leaf or node.max_repetition_level:
            return True
        if metadata.repetition != FieldRepetitionType.REQUIRED:
            return True
        if not isinstance(predicate, questions.IsNull | questions.IsNotNull):
            return True
        # metadata is required within the group, so it is null exactly if the variant is null.
        bounds = row_group.chunk(metadata).bounds()
        known = questions.Bounds(null_count=bounds.null_count, num_values=bounds.num_values)
        return questions.may_match(predicate, known)

    def matching_rows(self, node: SchemaNode, row_group: RowGroupFacts, predicate: object) -> RowRanges | None:
        """Return the rows that may match ``predicate``, from the page indexes of the columns on its path.

        Returns None if all rows may match.
        """
        return pruning.matching_rows(node, row_group, predicate) if isinstance(predicate, VariantPredicate) else None


HANDLER = VariantHandler()


def _require_variant_type(field: pa.Field, path: str, options: WriteOptions) -> pa.DataType:
    """Return the storage type of a variant field. Raises ``TypeError`` if the field is not a variant."""
    type = storage_type(field.type)
    if is_variant_type(type) or is_shredded_type(type):
        return type
    if path in options.shredding:
        raise TypeError(
            f"option 'shredding' has column {path!r}, which is not a VARIANT but has type {type}; "
            "pqext.variant.parse_json parses JSON"
        )
    raise TypeError(f"column {path!r} must be a variant, struct<metadata: binary, value: binary>, not {type}")


def _select_shredding(path: str, options: WriteOptions) -> Shredding | None:
    """Return the shredding that the option ``shredding`` selects for a column; None if the option is not set."""
    spec = options.shredding.get(path)
    return parse_shredding(spec) if spec is not None else None


def _create_storage(
    field: pa.Field, schema: ShreddingSchema, logical: LogicalType, shredding: Shredding | None
) -> VariantStorage:
    marks = {key: value for key, value in (field.metadata or {}).items() if key not in _EXTENSION_KEYS}
    stored = pa.field(field.name, storage_struct(schema), field.nullable, marks or None)
    return VariantStorage(logical, stored, shredding.coerce if shredding is not None else "equivalent")

_EXTENSION_KEYS = (EXTENSION_NAME, EXTENSION_METADATA)


def _reads_shredded(type: pa.DataType, options: ReadOptions) -> bool:
    """Return whether the column is shredded and the options request its stored columns."""
    return options.shredded and is_shredded_type(type)


def _restore_field_metadata(array: pa.StructArray, type: pa.StructType) -> pa.StructArray:
    """Return ``array`` with the field metadata of ``type``."""
    children = [array.field(i) for i in range(array.type.num_fields)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(type), mask=mask)


def check_node(node: SchemaNode, *, strict: bool = False) -> None:
    """Raise ``VariantError`` unless a variant can be read from the annotated group.

    Arrow C++ and RAPIDS write ``metadata`` as optional, which only ``strict`` reading rejects. Column types are checked
    by :func:`pqext.variant.shredding.schema.schema_of_storage`, using their Arrow types. This function checks what
    Arrow types do not show.
    """
    metadata = node.child("metadata")
    if node.is_leaf or metadata is None or metadata.physical_type != Type.BYTE_ARRAY:
        raise _layout_error(node, "is annotated VARIANT but has no binary metadata", "shredding.layout.group")
    is_optional = metadata.repetition == FieldRepetitionType.OPTIONAL
    if metadata.repetition != FieldRepetitionType.REQUIRED and (strict or not is_optional):
        raise _layout_error(metadata, "must be required", "variant.group.metadata")
    for leaf in node.leaves():
        if leaf is metadata or leaf.name != "typed_value" or leaf.logical_type is None:
            continue
        time = leaf.logical_type.TIME
        if time is not None and time.isAdjustedToUTC:
            raise _layout_error(leaf, "is a time adjusted to UTC, which variants do not have", "shredding.types")
        if leaf.logical_name in ("ENUM", "JSON", "BSON"):
            reason = f"is annotated {leaf.logical_name}; use STRING or no annotation"
            raise _layout_error(leaf, reason, "shredding.types")


def _check_sorted(storage: pa.StructArray) -> None:
    """Raise ``VariantError`` for the first row whose metadata is unsorted although it is flagged as sorted."""
    rule = "variant.metadata.sorted"
    faults = find_faults(storage, max_depth=MAX_DEPTH)
    wrong = faults.filter(pc.equal(faults["rule"], rule)) if len(faults) else faults
    if len(wrong):
        first = wrong.slice(0, 1).to_pylist()[0]
        raise VariantError(first["message"], rule=rule, row=first["row"], offset=first["offset"])


def _layout_error(node: SchemaNode, reason: str, rule: str) -> VariantError:
    error = VariantError(f"{node.name} {reason}", rule=rule)
    error.locate(column=node.dotted_path)
    return error
