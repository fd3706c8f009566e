"""Bounds of the paths of a variant column from its values, however these are stored.

The first rows tell which paths have values of one type. Each batch is then shredded by these into a file in memory,
whose footer tells of it what the footer of a shredded file would: a value of another type anywhere drops its path.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import pyarrow as pa

from pqext.core.base.errors import ParquetError
from pqext.core.read.reader import ParquetFile
from pqext.core.schema import shape
from pqext.core.schema.nodes import SchemaNode
from pqext.core.write.writer import write_table
from pqext.metrics.columns import ColumnSummary, merge, of_footer
from pqext.metrics.variant_bounds import PathBounds, TypedPath, bounds_of, typed_paths
from pqext.variant.shredding.infer import infer_schema
from pqext.variant.shredding.reconstruct import unshred
from pqext.variant.shredding.schema import ShreddingSchema, Untyped
from pqext.variant.types import variant_field

BATCH_ROWS = 65_536
WHOLE = 1 << 30
"""Bytes to which bounds in memory are cut: none is."""


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
