"""Recipes for all chunks of a leaf: encoding, compression, statistics and indexes, independent of the values."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from isal import isal_zlib

from pqext.core.format.compression import WRITABLE, page_compressor
from pqext.core.format.metadata import CompressionCodec, Type
from pqext.core.kernels.encode.small_chunk import SmallLeaf
from pqext.core.options.layout import BloomFilterChoice
from pqext.core.options.read_write import EncodingName, WriteOptions
from pqext.core.schema.annotations import AnnotationHandler
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.orders import BoundOrder, written_order
from pqext.core.schema.shape import LeafShape
from pqext.core.schema.statistics import bounds_kernel
from pqext.core.schema.types.logical import LeafType


@dataclass(frozen=True, slots=True)
class LeafRecipe:
    """Options of one leaf, looked up once per file, and properties derived from the options and the leaf's type."""

    node: SchemaNode
    dotted: str
    leaf_type: LeafType
    order: BoundOrder
    bounds: str | None
    """Kernel for page bounds (:func:`pqext.core.schema.statistics.bounds_kernel`)."""
    options: WriteOptions
    codec: CompressionCodec
    level: int | None
    dictionary: bool
    encoding: EncodingName
    statistics: bool
    page_index: bool
    bloom_filter: BloomFilterChoice | None
    extension: bytes | None
    second: LeafRecipe | None
    handler: AnnotationHandler | None
    level_bytes: int
    """Number of bytes that levels add to the size of an entry, one for each type of level. Many empty lists have few
    values."""
    definition_counts: bool
    repetition_counts: bool

    @property
    def compress(self) -> Callable[[Any], Any] | None:
        """Compressor of this thread; None if pages are not compressed."""
        if self.codec == CompressionCodec.UNCOMPRESSED:
            return None
        held: dict[tuple[int, int | None], Callable[[Any], Any]] | None = getattr(_codecs, "held", None)
        if held is None:
            held = _codecs.held = {}
        result = held.get((self.codec, self.level))
        if result is None:
            result = held[self.codec, self.level] = page_compressor(self.codec, self.level)
        return result

    @property
    def checksum(self) -> Callable[[Any], int] | None:
        """Checksum function of pages; None if pages have no checksums."""
        return isal_zlib.crc32 if self.options.checksums else None


    def small_encoder(self, arrow_type: pa.DataType) -> SmallLeaf | None:
        """Return an encoder for small chunks with arrays of ``arrow_type``. The leaf must be a top-level column.

        Return None if the encoder does not support the type or the options of the leaf.
        """
        options, form = self.options, self.bounds
        ordinary = self.encoding in ("plain", "default") and options.profile is None
        if not ordinary or form is None or not _has_stored_layout(arrow_type, self.leaf_type):
            return None
        if any(item is not None for item in (self.bloom_filter, self.extension, self.second, self.handler)):
            return None
        if form == "bytes" and self.leaf_type.order != "unsigned":
            return None
        return SmallLeaf(
            form, int(self.leaf_type.physical), [name.encode() for name in self.node.path], int(self.codec),
            is_text=pa.types.is_string(arrow_type), optional=self.node.max_definition_level > 0,
            dictionary=self.dictionary,
            statistics=self.statistics, page_index=self.page_index, version=options.page_version,
            bound_bytes=options.bound_bytes, page_rows=options.page_rows, page_bytes=options.page_bytes,
            level_bytes=self.level_bytes,
        )


_AS_STORED = (
    pa.types.is_int32, pa.types.is_int64, pa.types.is_uint32, pa.types.is_uint64, pa.types.is_float32,
    pa.types.is_float64, pa.types.is_date32, pa.types.is_string, pa.types.is_binary,
)


def _has_stored_layout(arrow_type: pa.DataType, leaf: LeafType) -> bool:
    """Return whether arrays of ``arrow_type`` have the stored layout and all their values are valid."""
    if pa.types.is_timestamp(arrow_type):
        shown = leaf.arrow_type()
        return leaf.physical == Type.INT64 and pa.types.is_timestamp(shown) and shown.unit == arrow_type.unit
    return any(test(arrow_type) for test in _AS_STORED)


_codecs = threading.local()


def build_recipe(shape: LeafShape, options: WriteOptions) -> LeafRecipe:
    """Build the recipe for all chunks of the leaf of ``shape``."""
    node = shape.node
    path, leaf_type = node.dotted_path, node.leaf_type
    order = written_order(leaf_type, options.float_order)
    again = options.second_copy_options(path)
    repeated = node.max_repetition_level > 0
    return LeafRecipe(
        node=node,
        dotted=path,
        leaf_type=leaf_type,
        order=order,
        bounds=bounds_kernel(order),
        options=options,
        codec=WRITABLE[options.compression_of(path)],
        level=options.level_of(path),
        dictionary=options.allows_dictionary(path),
        encoding=options.encoding_of(path),
        statistics=options.statistics_of(path),
        page_index=options.has_page_index(path),
        bloom_filter=options.bloom_filter_of(path),
        extension=options.extension_of(path),
        second=None if again is None else build_recipe(shape, again),
        handler=None if shape.annotation is None else shape.annotation.load(),
        level_bytes=bool(node.max_definition_level) + repeated,
        # If the maximum level is 1, num_values and null_count determine the histograms.
        definition_counts=node.max_definition_level > 1 or repeated,
        repetition_counts=repeated,
    )
