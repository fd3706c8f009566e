"""Write plan for an Arrow schema and options: the storage of each field and leaf. Files can share a plan."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property

import pyarrow as pa

from pqext.core.base.errors import LimitError
from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.format.metadata import ColumnOrder, SchemaElement, SortingColumn, Type
from pqext.core.kernels.encode.small_chunk import SmallLeaf
from pqext.core.options.read_write import WriteOptions
from pqext.core.schema import shape
from pqext.core.schema.annotations import AppendStorageHandler, configured_annotations, generation
from pqext.core.schema.arrow_schema.stored_schema import serialise
from pqext.core.schema.nodes import Schema, to_elements
from pqext.core.schema.shape import LeafShape, Shape
from pqext.core.schema.types import spark_profile
from pqext.core.write import encoding_choice, row_order, storage
from pqext.core.write.derived_columns import DerivedColumns
from pqext.core.write.disassemble import TOO_DEEP
from pqext.core.write.file_layout import FileLayout
from pqext.core.write.key_value_metadata import schema_of
from pqext.core.write.leaf_recipe import LeafRecipe, build_recipe
from pqext.core.write.storage import StoredField


@dataclass(frozen=True)
class WritePlan:
    """Stored columns of a file, its schema and shapes, and a recipe for the chunks of each leaf."""

    options: WriteOptions
    derived: DerivedColumns
    plan: tuple[StoredField, ...]
    schema: Schema
    shapes: tuple[Shape, ...]
    recipes: tuple[LeafRecipe, ...]
    sorting: list[SortingColumn]
    order: row_order.RowOrder | None
    layout: FileLayout | None = None

    @cached_property
    def small_encoders(self) -> tuple[SmallLeaf | None, ...]:
        """Encoders of small chunks, one per top-level column; None for a column that they do not support."""
        return tuple(
            self.recipes[top.node.leaf_start].small_encoder(field.plain.type)
            if isinstance(top, LeafShape) and top.annotation is None and field.is_stored_unchanged else None
            for field, top in zip(self.plan, self.shapes, strict=True)
        )

    @property
    def own_fields(self) -> tuple[StoredField, ...]:
        """Stored columns that the user passes, without derived columns."""
        return self.derived.select_user_columns(self.plan)

    @cached_property
    def elements(self) -> list[SchemaElement]:
        """Schema elements of the footer."""
        if self.layout is not None:
            return list(self.layout.elements)
        return to_elements(self.schema.root)

    def arrow_schema_text(self, pairs: Mapping[str, str], unbounded_paths: Collection[str]) -> str | None:
        """Return the serialised Arrow schema for a file with ``pairs``; None if the schema is nested too deeply."""
        if unbounded_paths:
            return serialise(schema_of(self.plan, self.options, unbounded_paths), pairs)
        result = self._schema_texts.get(key := tuple(pairs.items()), "")
        if result == "":
            self._schema_texts.clear()
            result = self._schema_texts[key] = serialise(schema_of(self.plan, self.options), pairs)
        return result

    @cached_property
    def _schema_texts(self) -> dict[tuple[tuple[str, str], ...], str | None]:
        return {}

    @cached_property
    def column_orders(self) -> list[ColumnOrder]:
        """Column orders of the footer."""
        return [item.order.column_order() for item in self.recipes]


def prepare(
    derived_columns: DerivedColumns, options: WriteOptions, sample: pa.Table | None, layout: FileLayout | None = None
) -> WritePlan:
    """Plan how files with these columns are written.

    ``sample`` contains the first rows, for handlers that inspect data.

    With a ``layout``, all columns are stored as in that file, and its schema is used. Raises ``ValueError`` or
    ``TypeError`` for types that cannot be stored and options that do not match the columns, and ``LimitError`` if the
    schema is too deep.
    """
    try:
        plan = storage.plan(
            derived_columns.schema, options, None if sample is None else derived_columns.extend(sample), layout
        )
        schema = storage.to_schema(plan)
        if layout is not None:
            schema = layout.check_fits(schema)
        shapes = tuple(shape.from_node(node) for node in schema.root.children)
    except RecursionError:
        raise LimitError(TOO_DEEP) from None
    for leaf in schema.leaves:
        if len(leaf.path) >= DEFAULT_LIMITS.schema_depth:
            raise LimitError(
                f"the schema is nested {len(leaf.path) + 1} levels deep, root and leaf included; "
                f"readers such as pyarrow support at most {DEFAULT_LIMITS.schema_depth}"
            )
    options.check_leaves(dict.fromkeys(leaf.dotted_path for leaf in schema.leaves))
    keys = row_order.to_columns(options.sort_keys, schema)
    order = row_order.find_row_order(derived_columns.select_user_columns(plan))
    if keys and order is not None:
        raise ValueError(
            "rows can have only one order; omit the option sorting, or the order in the metadata of a column"
        )
    if isinstance(options.bloom_filters, Mapping):
        for leaf in schema.leaves:
            if leaf.physical_type == Type.BOOLEAN and options.bloom_filter_of(leaf.dotted_path) is not None:
                raise ValueError(
                    f"column {leaf.dotted_path!r} is BOOLEAN and cannot have a Bloom filter; omit it from bloom_filters"
                )
    for leaf in schema.leaves:
        encoding_choice.check(options.encoding_of(leaf.dotted_path), leaf)
    if options.profile is not None:
        spark_profile.check(schema)
    recipes = tuple(build_recipe(leaf, options) for top in shapes for leaf in top.leaves())
    return WritePlan(options, derived_columns, plan, schema, shapes, recipes, keys, order, layout)


_KEPT = 16
_KEPT_LEAVES = 256
"""Maximum number of leaves of plans that are cached. For wide schemas, planning is cheap compared to writing."""
_NAMES = tuple(field.name for field in fields(WriteOptions))
_Key = tuple[Hashable, ...]
_recent: list[tuple[WriteOptions, _Key, pa.Schema, WritePlan]] = []


def key_of(options: WriteOptions) -> _Key | None:
    """Return the cache key of options; None if any option selects columns or keys."""
    values: list[Hashable] = [generation()]
    for name in _NAMES:
        value = getattr(options, name)
        if isinstance(value, (bool, int, str)) or value is None:
            values.append(value)
        elif value:
            return None
        else:
            values.append(())  # keep each flag at a fixed position
    return tuple(values)


def cached_plan(schema: pa.Schema, options: WriteOptions) -> WritePlan | None:
    """Return the cached plan for files with ``schema`` and equivalent options; None if missing."""
    key = None
    for cached_options, known, seen, prepared in _recent:
        if cached_options is not options:
            key = key_of(options) if key is None else key
            if key != known:
                continue
        if known[0] == generation() and (seen is schema or seen.equals(schema, check_metadata=True)):
            return prepared
    return None


def store_plan(schema: pa.Schema, options: WriteOptions, plan: WritePlan) -> None:
    """Cache ``plan``, unless it has many leaves, an option selects columns, or a handler stores a column."""
    global _recent
    key = key_of(options)
    if key is None or len(plan.recipes) > _KEPT_LEAVES or any(map(storage.has_annotated_field, plan.plan)):
        return
    _recent = [(options, key, schema, plan), *_recent[: _KEPT - 1]]


def inspects_data(options: WriteOptions, is_appended: bool) -> bool:
    """Return whether the first rows determine how a column is stored. For appended rows, the existing file determines
    the storage.
    """
    chosen = configured_annotations(options)
    if is_appended:
        chosen = [item for item in chosen if not isinstance(item[0].load(), AppendStorageHandler)]
    return any(a.load().inspects_data(choice) for a, choices in chosen for choice in choices.values())
