"""Summarise one leaf over a complete file: counts, minimum and maximum, and stored bytes.

Summaries come from the footer, if its statistics prove them, or from the values, which are read one run of rows at a
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import ParquetError, UnsupportedError
from pqext.core.base.usage import Budget
from pqext.core.encryption.reading import MissingKeyError
from pqext.core.format.predicate import Value
from pqext.core.read.leaf_runs import iter_runs, summarise_run
from pqext.core.read.reader import ParquetFile
from pqext.core.read.row_group import ColumnChunk, RowGroup
from pqext.core.schema import shape
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.orders import is_float, written_order
from pqext.core.schema.shape import LeafShape


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """Summary of one leaf in a range of rows. Unknown properties are None.

    ``num_values`` counts entries, including nulls and empty lists. ``minimum`` and ``maximum`` bound every value except
    nulls and NaN, in the representation used for comparisons (:data:`pqext.core.format.predicate.Value`); a float bound
    of zero is -0.0 or 0.0, whichever is wider. The bounds are ``tight`` if both are values of the column.
    ``nan_count`` is 0 for types without NaN.
    """

    num_values: int | None = 0
    null_count: int | None = 0
    nan_count: int | None = 0
    minimum: Value | None = None
    maximum: Value | None = None
    tight: bool = True

    @property
    def is_void(self) -> bool:
        """Whether all values are known to be null or NaN."""
        known = (self.num_values, self.null_count, self.nan_count)
        return None not in known and self.num_values == (self.null_count or 0) + (self.nan_count or 0)

    @property
    def all_null(self) -> bool:
        """Whether all values are known to be null."""
        return self.num_values is not None and self.null_count == self.num_values


UNKNOWN = ColumnSummary(None, None, None, tight=False)


def merge_summaries(parts: Iterable[ColumnSummary]) -> ColumnSummary:
    """Merge the summaries of several runs of rows. A property that is unknown for any run becomes unknown."""
    parts = list(parts)
    filled = [part for part in parts if not part.is_void]
    low, high = _extreme([part.minimum for part in filled], min), _extreme([part.maximum for part in filled], max)
    return ColumnSummary(
        _sum([part.num_values for part in parts]),
        _sum([part.null_count for part in parts]),
        _sum([part.nan_count for part in parts]),
        -0.0 if isinstance(low, float) and low == 0 else low,
        0.0 if isinstance(high, float) and high == 0 else high,
        all(part.tight for part in filled),
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _extreme(bounds: Sequence[Value | None], choose: Any) -> Value | None:
    return choose(bounds) if bounds and None not in bounds else None


def summarize_footer(file: ParquetFile, leaf: SchemaNode) -> ColumnSummary:
    """Summarise a leaf from the footer.

    The summary of a column whose key is missing is unknown. Raises ``UnsupportedError`` if its chunks are in other
    files.
    """
    return merge_summaries(_summarize_chunk(file, group, leaf) for group in file.row_groups)


def _summarize_chunk(file: ParquetFile, group: RowGroup, leaf: SchemaNode) -> ColumnSummary:
    chunk = get_chunk(file, group, leaf)
    if chunk.is_hidden:
        return UNKNOWN
    bounds, required = chunk.bounds(), leaf.max_definition_level == 0
    nulls = 0 if required and bounds.num_values is not None else bounds.null_count
    nans: int | None = 0
    if is_float(leaf.leaf_type):
        nans = chunk.counts.nans if bounds.has_nan is not None else None
    stated = chunk.metadata.statistics
    tight = stated is not None and stated.is_min_value_exact is True and stated.is_max_value_exact is True
    tight = tight and leaf.calendar is None
    return ColumnSummary(bounds.num_values, nulls, nans, bounds.minimum, bounds.maximum, tight)


def summarize_data(file: ParquetFile, leaf: LeafShape, budget: Budget) -> ColumnSummary:
    """Read a leaf in runs of rows and summarise its values. Counts are exact and bounds are tight.

    ``budget`` bounds the decoded bytes of all leaves together. Raises ``CorruptFileError`` with the column for corrupt
    pages, ``EncryptionError`` for a column whose key is missing and ``LimitError`` for pages that exceed the limits of
    the file.
    """
    order, parts = written_order(leaf.node.leaf_type), list[ColumnSummary]()
    for group in file.row_groups:
        chunk = get_chunk(file, group, leaf.node)
        try:
            for column in iter_runs(file, group, leaf, chunk, budget=budget) if group.num_rows else ():
                run = summarise_run(column, order)
                nans = run.nans or 0
                # Types without an order, and very long values, have no extremes.
                tight = run.minimum is not None or column.entries == run.nulls + nans
                part = ColumnSummary(column.entries, run.nulls, nans, run.minimum, run.maximum, tight)
                parts.append(part)
                if len(parts) > _PARTS:
                    parts = [merge_summaries(parts)]
        except (ParquetError, pa.ArrowInvalid) as error:
            raise _locate_error(error, file, leaf.node, group) from None
    return merge_summaries(parts)


_PARTS = 1024


def _locate_error(error: Exception, file: ParquetFile, leaf: SchemaNode, group: RowGroup) -> Exception:
    if isinstance(error, ParquetError):
        error.locate(path=file.path, row_group=group.index, column=leaf.dotted_path)
    return error


def get_chunk(file: ParquetFile, group: RowGroup, leaf: SchemaNode) -> ColumnChunk:
    """Return the column chunk of a leaf. Raises ``UnsupportedError`` if the chunk is stored in another file."""
    chunk = group.chunk(leaf)
    if chunk.file_path and chunk.file_path != file.source.summary_name:
        raise UnsupportedError(
            f"the data of this column is in another file, {chunk.file_path!r}; pass that file instead",
            feature="metrics of summary files", path=file.path, column=leaf.dotted_path,
        )
    return chunk


def has_key(chunk: ColumnChunk) -> bool:
    """Return whether the pages of the chunk can be read: they are not encrypted, or the key is available."""
    try:
        _ = chunk.is_encrypted and chunk.decryptor
    except MissingKeyError:
        return False
    return True


def stored_bytes(file: ParquetFile, leaf: SchemaNode) -> int | None:
    """Return the stored size of all pages of a leaf in bytes, or None if a key is missing or a size is invalid."""
    sizes = []
    for group in file.row_groups:
        chunk = get_chunk(file, group, leaf)
        sizes.append(None if chunk.is_hidden or chunk.compressed_bytes < 0 else chunk.compressed_bytes)
    return _sum(sizes)


def summarize(
    file: ParquetFile, leaves: Iterable[SchemaNode] | None = None, *, exact: bool = False
) -> list[ColumnSummary]:
    """Summarise the leaves of a file, from the footer or, if ``exact``, from the data.

    Args:
        file: An open file.
        leaves: The leaves to summarise; all leaves of the file if None.
        exact: Whether to read the data.

    Returns:
        A summary of each leaf.

    Raises:
        UnsupportedError: If a column is in another file.
        CorruptFileError: If pages are corrupt.
        EncryptionError: If ``exact`` is true and the key of a column is missing.

    Example:
        >>> import io, pyarrow as pa, pqext
        >>> sink = io.BytesIO()
        >>> pqext.write_table(pa.table({"n": [3, 5, None]}), sink)
        >>> with pqext.open(sink.getvalue()) as file:
        ...     (summary,) = summarize(file, exact=True)
        >>> summary.minimum, summary.maximum, summary.null_count
        (3, 5, 1)
    """
    selected = list(file.schema.leaves if leaves is None else leaves)
    if not exact:
        return [summarize_footer(file, leaf) for leaf in selected]
    shapes = leaf_shapes(file)
    budget = file.budget()
    return [summarize_data(file, shapes[leaf.leaf_start], budget) for leaf in selected]


def leaf_shapes(file: ParquetFile) -> dict[int, LeafShape]:
    """Return the shapes of all leaves by column index."""
    tops = (shape.from_node(node) for node in file.schema.root.children)
    return {leaf.node.leaf_start: leaf for top in tops for leaf in top.leaves()}
