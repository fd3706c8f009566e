"""Compute the index entries of one object from the footer or, if the footer is not sufficient, from the rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import ChangedFileError, ParquetError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import Schema
from pqext.dataset.expressions import Column
from pqext.dataset.files.file_set import FileSet
from pqext.dataset.planning.projection import parse_columns
from pqext.dataset.pruning.binding import find
from pqext.dataset.scan_executor import ScanExecutor
from pqext.dataset.scan_planner import ScanPlanner
from pqext.dataset.scan_request import ScanRequest
from pqext.skipping.indexes.index import Index
from pqext.skipping.store.objects import current_version

_ROWS = 1 << 16
_SCHEMAS = 16
"""Maximum number of schemas with cached results."""
_SETTLED_MS, _SETTLED_REMOTE_MS = 50, 2000
"""Milliseconds after which a rewritten file has another timestamp, with a margin. Object stores record only seconds."""


@dataclass(frozen=True)
class TypedIndex:
    """An index with the Arrow types of its values and of its entries."""

    index: Index
    values: pa.DataType
    cells: pa.DataType
    params: Mapping[str, str] = field(default_factory=dict)
    """Parameters stored in addition to the index's own settings."""


@dataclass(frozen=True)
class Row:
    """Row of a store: path and version of one object, and its index entries as arrays of length 1."""

    path: str
    modified_ms: int
    size: int
    etag: str | None
    cells: Sequence[pa.Array]
    read: bool
    """Whether rows were read because the footer did not suffice."""


@dataclass(frozen=True)
class Indexer:
    """Builder of the rows of a store. If ``read_rows`` is false, entries are computed only from footers."""

    indexes: Sequence[TypedIndex]
    options: ReadOptions = field(default_factory=ReadOptions)
    limits: Limits = DEFAULT_LIMITS
    read_rows: bool = True
    _types_match: dict[int, tuple[Schema, list[bool]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def try_row(self, source: Any) -> Row | str:
        """Return the row of an object, or the reason why the row cannot be computed."""
        try:
            row = self.row(source)
        except (OSError, ParquetError, ValueError, TypeError) as error:
            return str(error)
        return "the file changed during indexing, or its modification time is unknown" if row is None else row

    def row(self, source: Any) -> Row | None:
        """Return the row of an object.

        Returns None if the object changes while it is indexed, or its modification time is unknown.
        """
        before = current_version(source)
        if before is None:
            return None
        if isinstance(source, str):
            _wait_for_clock(max(before.modified_ms, int(before.etag or 0) // 1_000_000), _SETTLED_MS)
        elif before.etag is None:
            _wait_for_clock(before.modified_ms, _SETTLED_REMOTE_MS)
        cells, read = self.cells(source, before.size, before.etag)
        if current_version(source) != before:
            return None
        return Row(before.path, before.modified_ms, before.size, before.etag, cells, read)

    def cells(self, source: Any, size: int | None = None, etag: str | None = None) -> tuple[list[pa.Array], bool]:
        """Return the object's entry in each index, as an array of length 1, and whether rows were read.

        Raises ``ChangedFileError`` if the object does not have the expected size or etag.
        """
        with ParquetFile(source, options=self.options, limits=self.limits) as file:
            if file.source.size != (size or file.source.size) or not _may_have_etag(file.source, etag):
                raise ChangedFileError("the object was replaced during indexing; refresh the store", path=file.path)
            file.check_rows()
            cells = [
                indexed.index.entry_from_footer(file, indexed.values) if matches else None
                for indexed, matches in zip(self.indexes, self._matching_types(file), strict=True)
            ]
        missing = [at for at, cell in enumerate(cells) if cell is None]
        if missing and self.read_rows:
            for at, cell in self._compute_from_rows(source, missing).items():
                cells[at] = cell
        result = [
            pa.nulls(1, indexed.cells)
            if cell is None
            else cell
            if cell.type == indexed.cells
            else cell.cast(indexed.cells)
            for cell, indexed in zip(cells, self.indexes, strict=True)
        ]
        return result, bool(missing) and self.read_rows

    def _matching_types(self, file: ParquetFile) -> list[bool]:
        """Return, for each index, whether the file has the indexed column with the expected type.

        Results are cached by schema.
        """
        cached = self._types_match.get(id(file.schema))
        if cached is None or cached[0] is not file.schema:
            cached = file.schema, [_has_type(file, indexed) for indexed in self.indexes]
            if len(self._types_match) >= _SCHEMAS:
                self._types_match.clear()
            self._types_match[id(file.schema)] = cached
        return cached[1]

    def _compute_from_rows(self, source: Any, numbers: Sequence[int]) -> Mapping[int, pa.Array]:
        """Compute the entries of the indexes ``numbers`` from the rows of an object. Return them by index number.

        Indexes whose column has another type in the object are omitted.
        """
        columns = parse_columns({str(at): self.indexes[at].index.operand for at in numbers})
        planner = ScanPlanner(ScanRequest(FileSet((source,), self.options, self.limits), columns, None))
        collectors = {}
        for at, field_ in zip(numbers, planner.schema, strict=True):
            indexed = self.indexes[at]
            if field_.type == indexed.values and indexed.index.for_field(field_) == indexed.index:
                collectors[at] = indexed.index.collector(indexed.values)
        with closing(ScanExecutor(planner).batches(_ROWS)) as batches:
            for batch, _ in batches:
                for at, collector in collectors.items():
                    collector.add(batch.column(str(at)))
        return {at: collector.cell() for at, collector in collectors.items()}


def resolve_indexes(indexes: Sequence[Index], source: Any, options: ReadOptions, limits: Limits) -> list[TypedIndex]:
    """Resolve the indexes against the schema of an object. Return each index with its value type and entry type.

    Raises ``ValueError`` if a column does not exist, and ``TypeError`` if an index does not support an operand's type.
    """
    columns = parse_columns({str(at): index.operand for at, index in enumerate(indexes)})
    planner = ScanPlanner(ScanRequest(FileSet((source,), options, limits), columns, None))
    resolved = []
    for index, field_ in zip(indexes, planner.schema, strict=True):
        bound = index.for_operand(planner.name_resolver.resolve(index.operand)).for_field(field_)
        resolved.append(TypedIndex(bound, field_.type, bound.cell_type(field_.type)))
    return resolved


def _wait_for_clock(written_ms: int, settled_ms: int) -> None:
    """Wait until an object that is written now has a modification time other than ``written_ms``."""
    since = time.time() * 1000 - written_ms
    if 0 <= since < settled_ms:
        time.sleep((settled_ms - since) / 1000)


def _may_have_etag(source: Any, etag: str | None) -> bool:
    """Return whether an open file may be the version with ``etag``. True if either version is unknown."""
    version = getattr(source, "version", None)
    if etag is None or version is None or not version.text.startswith("etag "):
        return True
    return bool(version.text.removeprefix("etag ").strip('"') == etag.strip('"'))


def _has_type(file: ParquetFile, index: TypedIndex) -> bool:
    """Return whether the file has the indexed column, with the type that the index expects."""
    operand = index.index.operand
    if not isinstance(operand, Column):
        return False
    try:
        node = find(file.schema, operand)
        stored = file.arrow_schema.field(operand.path[0])
        for name in operand.path[1:]:
            stored = stored.type.field(name)
    except (KeyError, ParquetError, TypeError, ValueError):
        return False
    return node is not None and stored.type == index.values and index.index.for_field(stored) == index.index
