"""Cache of schemas and options for reading files with the same schema.

A schema depends on the options of the caller and on those pairs of the key-value metadata that determine types. The
cache contains a few schemas, and none with many columns. A schema that causes a warning or an error is not cached,
because the message names the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from pqext.core.base.limits import Limits
from pqext.core.base.lru import LRU
from pqext.core.footer.thrift_footer import Footer
from pqext.core.format.metadata import KeyValue, Type
from pqext.core.format.thrift import LazyStructs
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.small_chunks import SmallLeaves
from pqext.core.schema.annotations import generation
from pqext.core.schema.arrow_schema.stored_schema import StoredSchema
from pqext.core.schema.key_value_types import apply_calendars, apply_key_value_types
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.shape import Shape
from pqext.core.schema.types import int96
from pqext.core.schema.types.utf8 import text_as_binary

_MAX_SCHEMAS = 16
_MAX_ELEMENTS = 256
_MAX_SELECTIONS = 8
_MAX_FOOTER_BYTES = 64 << 10
"""Maximum size of the part of the footer that a cached schema retains."""

Texts = tuple[tuple[str, str], ...]
Key = tuple[int, bytes, Texts]


@dataclass(frozen=True, slots=True)
class CachedColumns:
    """Columns that are read together. ``ignored_annotations`` contains a warning for each ignored annotation."""

    shapes: tuple[Shape, ...]
    arrow_schema: pa.Schema
    ignored_annotations: list[str]
    small: SmallLeaves


@dataclass(frozen=True, slots=True)
class CachedSchema:
    """Schema of files that are read with the same options, with an entry for all columns and for recent selections.

    ``options`` are the caller's options, completed with the options that the file determines.
    """

    schema: Schema
    stored_schema: StoredSchema
    options: ReadOptions
    all_columns: CachedColumns
    _selections: LRU[tuple[str, ...], CachedColumns] = field(default_factory=partial(LRU, _MAX_SELECTIONS))

    def cached_columns(self, columns: Sequence[str]) -> CachedColumns | None:
        """Return the cached entry of ``columns``; None if they are not cached."""
        try:
            return self._selections.get(tuple(columns))
        except TypeError:  # the elements are not strings
            return None

    def store_columns(self, columns: Sequence[str], entry: CachedColumns) -> None:
        """Cache ``entry`` for ``columns``."""
        self._selections.put(tuple(columns), entry)

    def small_leaves_of(self, shapes: Sequence[Shape]) -> SmallLeaves | None:
        """Return the cached decoder of small chunks for ``shapes``; None if the shapes are not from this cache."""
        for entry in (self.all_columns, *self._selections.values()):
            if entry.shapes is shapes:
                return entry.small
        return None


_recent: list[tuple[Key, ReadOptions, Limits, CachedSchema]] = []


def key_of(footer: Footer, texts: Texts) -> Key | None:
    """Return a cache key, which footers with the same columns share; None if the schema must not be cached.

    ``texts`` are the pairs of the key-value metadata that determine types.
    """
    elements: Sequence[object] = footer.metadata.schema
    index = elements.undecoded_index if isinstance(elements, LazyStructs) else None
    is_large = len(elements) > _MAX_ELEMENTS or footer.length > _MAX_FOOTER_BYTES
    if index is None or is_large or footer.decryptor is not None:
        return None
    key = generation(), index.raw(0, len(elements)), texts
    latest = _recent  # other threads may replace it
    return latest[0][0] if latest and latest[0][0] == key else key  # many files share one schema


def cached_schema(key: Key, options: ReadOptions, limits: Limits) -> CachedSchema | None:
    """Return the cached schema for ``key``, ``options`` and ``limits``; None if it is not cached."""
    for cached_key, cached_options, cached_limits, entry in _recent:
        if (cached_options is options or cached_options == options) and cached_key == key and cached_limits == limits:
            return entry
    return None


def store_schema(key: Key, options: ReadOptions, limits: Limits, entry: CachedSchema) -> None:
    """Cache ``entry`` for files with ``key`` that are read with ``options`` and ``limits``."""
    global _recent
    if cached_schema(key, options, limits) is None:
        cached_options = replace(options, properties=dict(options.properties))  # the caller may change the mapping
        _recent = [(key, cached_options, limits, entry), *_recent[: _MAX_SCHEMAS - 1]]


def schema_to_read(
    schema: Schema, pairs: Sequence[KeyValue], options: ReadOptions, path: str | None
) -> tuple[Schema, bool]:
    """Apply the types and calendars in the key-value metadata ``pairs`` and in ``options`` to ``schema``.

    The second result is whether a warning was issued. ``path`` names the file in warnings.
    """
    has_warned = False
    if pairs and options.geoparquet:
        schema, has_warned = apply_key_value_types(schema, pairs, path)
    if pairs:
        schema = apply_calendars(schema, pairs, options)
    step = int96.nanoseconds_of(options.int96_unit)
    if (options.int96_utc or step != 1) and any(leaf.physical_type == Type.INT96 for leaf in schema.leaves):
        schema = Schema.from_root(_with_int96(schema.root, options.int96_utc, step))
    return text_as_binary(schema) if options.invalid_utf8 == "binary" else schema, has_warned


def _with_int96(node: SchemaNode, is_utc: bool, step: int) -> SchemaNode:
    if node.is_leaf:
        return replace(node, is_utc=is_utc, int96_step=step) if node.physical_type == Type.INT96 else node
    return replace(node, children=tuple(_with_int96(child, is_utc, step) for child in node.children))


def options_to_read(options: ReadOptions, texts: Texts) -> ReadOptions:
    """Return ``options`` with the INT96 unit and the properties from ``texts``, the file's key-value metadata."""
    if options.int96 == "auto":
        options = replace(options, int96=int96.unit_for(key for key, _ in texts))
    return replace(options, properties={**options.properties, **dict(texts)}) if texts else options
