"""What is known of one leaf over a whole file: counts, least and greatest value, stored bytes.

From the footer, as far as its statistics prove it, or from the values themselves, a run of rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import ParquetError, UnsupportedError
from pqext.core.encryption.reading import MissingKeyError
from pqext.core.format.predicate import Value
from pqext.core.read.leaf_runs import contents, runs
from pqext.core.read.reader import ParquetFile
from pqext.core.read.row_group import ColumnChunk, RowGroup
from pqext.core.schema import shape
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.orders import is_float, to_write
from pqext.core.schema.shape import LeafShape


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """One leaf over some rows; ``None`` is unknown.

    ``num_values`` counts entries, nulls and those of empty lists included. ``minimum`` and ``maximum`` bound every
    value that is neither null nor NaN, in the form in which values compare (:data:`pqext.core.format.predicate.Value`);
    a zero bound of a float is -0.0 or 0.0, whichever is further out. They are ``tight`` when both are known to occur.
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
        """Is it known that there is no value but nulls and NaN?"""
        known = (self.num_values, self.null_count, self.nan_count)
        return None not in known and self.num_values == (self.null_count or 0) + (self.nan_count or 0)

    @property
    def all_null(self) -> bool:
        """Is it known that there is no value but nulls?"""
        return self.num_values is not None and self.null_count == self.num_values


UNKNOWN = ColumnSummary(None, None, None, tight=False)


def merge(parts: Iterable[ColumnSummary]) -> ColumnSummary:
    """The summary of several runs of rows together; what one of them does not know, the whole does not."""
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


def of_footer(file: ParquetFile, leaf: SchemaNode) -> ColumnSummary:
    """What the footer proves of a leaf.

    A column whose key is missing is unknown. Raises ``UnsupportedError`` where its chunks lie in other files.
    """
    return merge(_of_chunk(file, group, leaf) for group in file.row_groups)


def _of_chunk(file: ParquetFile, group: RowGroup, leaf: SchemaNode) -> ColumnSummary:
    chunk = own_chunk(file, group, leaf)
    if chunk.is_hidden:
        return UNKNOWN
    bounds, required = chunk.bounds(), leaf.max_definition_level == 0
    nulls = 0 if required and bounds.num_values is not None else bounds.null_count
    nans: int | None = 0
    if is_float(leaf.leaf_type):
        nans = chunk.counts.nans if bounds.has_nan is not None else None
    said = chunk.metadata.statistics
    tight = said is not None and said.is_min_value_exact is True and said.is_max_value_exact is True
    tight = tight and leaf.calendar is None
    return ColumnSummary(bounds.num_values, nulls, nans, bounds.minimum, bounds.maximum, tight)


def of_data(file: ParquetFile, leaf: LeafShape) -> ColumnSummary:
    """What the values of a leaf are, read a run of rows at a time: counts are exact and bounds tight.

    Raises ``CorruptFileError`` with the column for damaged pages, ``EncryptionError`` for a column whose key is
    missing and ``LimitError`` for pages beyond the limits of the file.
    """
    order, found = to_write(leaf.node.leaf_type), []
    for group in file.row_groups:
        chunk = own_chunk(file, group, leaf.node)
        try:
            for column in runs(file, group, leaf, chunk) if group.num_rows else ():
                run = contents(column, order)
                nans = run.nans or 0
                # A type without an order, or values longer than a bound may be: there is no extreme to be tight.
                tight = run.minimum is not None or column.entries == run.nulls + nans
                part = ColumnSummary(column.entries, run.nulls, nans, run.minimum, run.maximum, tight)
                found.append(part)
                if len(found) > _PARTS:
                    found = [merge(found)]
        except (ParquetError, pa.ArrowInvalid) as error:
            raise _located(error, file, leaf.node, group) from None
    return merge(found)


_PARTS = 1024


def _located(error: Exception, file: ParquetFile, leaf: SchemaNode, group: RowGroup) -> Exception:
    if isinstance(error, ParquetError):
        error.locate(path=file.path, row_group=group.index, column=leaf.dotted)
    return error


def own_chunk(file: ParquetFile, group: RowGroup, leaf: SchemaNode) -> ColumnChunk:
    """The column chunk of a leaf; raises ``UnsupportedError`` where it lies in another file, as a summary says."""
    chunk = group.chunk(leaf)
    if chunk.file_path and chunk.file_path != file.source.summary_name:
        raise UnsupportedError(
            f"the column lies in another file, {chunk.file_path!r}: metrics are of one data file; give that file",
            feature="metrics of summary files", path=file.path, column=leaf.dotted,
        )
    return chunk


def has_key(chunk: ColumnChunk) -> bool:
    """Can the pages of the chunk be read: are they plain, or is their key known?"""
    try:
        _ = chunk.is_encrypted and chunk.decryptor
    except MissingKeyError:
        return False
    return True


def stored_bytes(file: ParquetFile, leaf: SchemaNode) -> int | None:
    """Bytes of all pages of a leaf as they are stored; ``None`` where a key is missing or a size makes no sense."""
    sizes = []
    for group in file.row_groups:
        chunk = own_chunk(file, group, leaf)
        sizes.append(None if chunk.is_hidden or chunk.compressed_bytes < 0 else chunk.compressed_bytes)
    return _sum(sizes)


def summarize(
    file: ParquetFile, leaves: Iterable[SchemaNode] | None = None, *, exact: bool = False
) -> list[ColumnSummary]:
    """A summary of each of ``leaves``, all leaves of the file by default: from the footer, or ``exact`` from the data.

    Raises what :func:`of_footer` and :func:`of_data` raise.
    """
    chosen = list(file.schema.leaves if leaves is None else leaves)
    if not exact:
        return [of_footer(file, leaf) for leaf in chosen]
    shapes = leaf_shapes(file)
    return [of_data(file, shapes[leaf.leaf_start]) for leaf in chosen]


def leaf_shapes(file: ParquetFile) -> dict[int, LeafShape]:
    """The shapes of all leaves by column index."""
    tops = (shape.of(node) for node in file.schema.root.children)
    return {leaf.node.leaf_start: leaf for top in tops for leaf in top.leaves()}
