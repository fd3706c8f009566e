"""Check that the rows of each row group follow its sort keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from pqext.core.base.batches import align_batches
from pqext.core.base.errors import EncryptionError, LimitError, ParquetError, UnsupportedError
from pqext.core.format.metadata import SortingColumn
from pqext.core.options.layout import SortKey
from pqext.core.read.reader import ParquetFile, RowGroup
from pqext.core.schema import shape as shapes
from pqext.core.schema.orders import declared_order, written_order
from pqext.core.schema.shape import Shape
from pqext.core.write import row_order
from pqext.core.write.disassemble import DenseColumn, disassemble
from pqext.verification.chunk_selection import ChunkSelection
from pqext.verification.report import Fault, Findings

BATCH_ROWS = 65_536


def check(file: ParquetFile, tops: Sequence[Shape], selection: ChunkSelection, findings: Findings) -> None:
    """Check the sort keys of every row group, if their columns are among ``tops``."""
    first_row = 0
    for group in file.row_groups:
        keys = list(_find_keys(file, tops, group, findings))
        if keys and all(selection.includes(group, top) for _, top in keys):
            _check_rows(file, group, keys, first_row, findings)
        first_row += group.num_rows


def _find_keys(
    file: ParquetFile, tops: Sequence[Shape], group: RowGroup, findings: Findings
) -> Iterator[tuple[SortKey, Shape]]:
    """Yield the sort keys and their top-level columns. Stop at the first key that cannot be checked.

    A key cannot be checked if its column is not selected, is repeated or has no order. An invalid column is reported.
    """
    leaves = file.schema.leaves
    seen: set[int] = set()
    for column in group.metadata.sorting_columns or ():
        if column.column_idx in seen:
            continue  # a repeated key cannot distinguish rows
        seen.add(column.column_idx)
        if not 0 <= column.column_idx < len(leaves):
            message = f"a sort key refers to column {column.column_idx}, but the file has {len(leaves)} leaf columns"
            findings.add(Fault("sorting.recorded", message, group.index))
            return
        leaf = leaves[column.column_idx]
        top = next((top for top in tops if top.node.name == leaf.path[0]), None)
        if top is None or leaf.max_repetition_level or not written_order(leaf.leaf_type).is_defined:
            return
        yield SortKey(leaf.dotted_path, bool(column.descending), bool(column.nulls_first)), top


def _check_rows(
    file: ParquetFile, group: RowGroup, keys: Sequence[tuple[SortKey, Shape]], first_row: int, findings: Findings
) -> None:
    ordered = [key for key, _ in keys]
    numbered = [
        SortingColumn(column_idx=i, descending=key.descending, nulls_first=key.nulls_first)
        for i, key in enumerate(ordered)
    ]
    try:
        orders = [declared_order(chunk.node.leaf_type, chunk.order) for chunk in group.chunks()]
        floats = any(order.kind == "total" for order in orders)
        for start, columns in _iter_batches(file, group, keys):
            violation = row_order.find_misplaced_row(ordered, numbered, columns, "ieee754" if floats else "type")
            if violation is not None:
                row, key = violation
                message = "a row is out of order according to the sort keys of its row group"
                findings.add(Fault("sorting.checked", message, group.index, first_row + start + row, key.path))
                return
    except (UnsupportedError, EncryptionError, LimitError) as error:
        findings.skip(ordered[0].path, group.index, error.message)
    except ParquetError as error:
        findings.add_damage(Fault("layout.page-lost", error.message, group.index, None, error.column, error.offset))


def _iter_batches(
    file: ParquetFile, group: RowGroup, keys: Sequence[tuple[SortKey, Shape]]
) -> Iterator[tuple[int, list[DenseColumn]]]:
    """Yield the first row and the key columns of each batch. Each batch repeats the last row of the preceding batch."""
    bare = [shapes.strip_annotations(top) for _, top in keys]
    last: list[pa.Array] = []
    start = 0
    budget = file.budget()
    streams = [file.iter_storage_arrays(top, group.index, BATCH_ROWS, budget=budget) for _, top in keys]
    for arrays in align_batches(streams):
        joined = [pa.concat_arrays([end, array]) for end, array in zip(last, arrays, strict=True)] if last else arrays
        key_leaves = []
        for (key, _), top, array in zip(keys, bare, joined, strict=True):
            leaves = disassemble(top, array)
            key_leaves.append(next(leaf for leaf in leaves if leaf.shape.node.dotted_path == key.path))
        yield start, key_leaves
        start += len(joined[0]) - 1
        last = [array.slice(len(array) - 1) for array in arrays]
