"""The cells of one object: from its footer where that proves them, from its rows where not."""

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
from pqext.skipping.store.objects import version_of

_ROWS = 1 << 16
_SCHEMAS = 16
"""Schemas of which it is remembered which columns they have."""
_SETTLED_MS, _SETTLED_REMOTE_MS = 50, 2000
"""Milliseconds after which a file that is written again has another time, with room to spare. Stores keep seconds."""


@dataclass(frozen=True)
class Indexed:
    """An index that has met its column: the type of the values, and of the cells."""

    index: Index
    values: pa.DataType
    cells: pa.DataType
    params: Mapping[str, str] = field(default_factory=dict)
    """What the store keeps beside the index's own settings."""


@dataclass(frozen=True)
class Row:
    """What a store keeps of one object: its name and version, and a cell of each index, an array of one."""

    path: str
    modified_ms: int
    size: int
    etag: str | None
    cells: Sequence[pa.Array]
    read: bool
    """Were rows read, because the footer did not prove everything?"""


@dataclass(frozen=True)
class Indexer:
    """Makes the rows of a store. ``data`` false leaves cells unknown that footers do not prove."""

    indexes: Sequence[Indexed]
    options: ReadOptions = field(default_factory=ReadOptions)
    limits: Limits = DEFAULT_LIMITS
    data: bool = True
    _told: dict[int, tuple[Schema, list[bool]]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def attempt(self, source: Any) -> Row | str:
        """The row of an object, or the reason why there is none."""
        try:
            row = self.row(source)
        except (OSError, ParquetError, ValueError, TypeError) as error:
            return str(error)
        return "it changed while it was indexed" if row is None else row

    def row(self, source: Any) -> Row | None:
        """The row of an object; None where it changes while it is looked at, or nobody tells when it was written."""
        before = version_of(source)
        if before is None:
            return None
        if isinstance(source, str):
            _settle(max(before.modified_ms, int(before.etag or 0) // 1_000_000), _SETTLED_MS)
        elif before.etag is None:
            _settle(before.modified_ms, _SETTLED_REMOTE_MS)
        cells, read = self.cells(source, before.size, before.etag)
        if version_of(source) != before:
            return None
        return Row(before.path, before.modified_ms, before.size, before.etag, cells, read)

    def cells(self, source: Any, size: int | None = None, etag: str | None = None) -> tuple[list[pa.Array], bool]:
        """A cell of each index, an array of one, and whether rows were read for some.

        Raises ``ChangedFileError`` for an object of another size or etag than those given.
        """
        with ParquetFile(source, options=self.options, limits=self.limits) as file:
            if file.source.size != (size or file.source.size) or not _is_version(file.source, etag):
                raise ChangedFileError("the object was replaced while it was indexed", path=file.path)
            file.check_rows()
            told = self._as_told(file)
            cells = [
                one.index.proved(file, one.values) if is_told else None
                for one, is_told in zip(self.indexes, told, strict=True)
            ]
        left = [at for at, cell in enumerate(cells) if cell is None]
        if left and self.data:
            for at, cell in self._from_rows(source, left).items():
                cells[at] = cell
        found = [
            pa.nulls(1, one.cells) if cell is None else cell if cell.type == one.cells else cell.cast(one.cells)
            for cell, one in zip(cells, self.indexes, strict=True)
        ]
        return found, bool(left) and self.data

    def _as_told(self, file: ParquetFile) -> list[bool]:
        """Has the file the column of each index in its type? Files of one schema share the answer, and the object."""
        known = self._told.get(id(file.schema))
        if known is None or known[0] is not file.schema:
            known = file.schema, [_is_as_told(file, one) for one in self.indexes]
            if len(self._told) >= _SCHEMAS:
                self._told.clear()
            self._told[id(file.schema)] = known
        return known[1]

    def _from_rows(self, source: Any, wanted: Sequence[int]) -> Mapping[int, pa.Array]:
        """The cells of indexes by their numbers, from the rows of an object; none of columns that it has otherwise."""
        columns = parse_columns({str(at): self.indexes[at].index.operand for at in wanted})
        planner = ScanPlanner(ScanRequest(FileSet((source,), self.options, self.limits), columns, None))
        collectors = {}
        for at, field_ in zip(wanted, planner.schema, strict=True):
            one = self.indexes[at]
            if field_.type == one.values and one.index.of(field_) == one.index:
                collectors[at] = one.index.collector(one.values)
        with closing(ScanExecutor(planner).batches(_ROWS)) as batches:
            for batch, _ in batches:
                for at, collector in collectors.items():
                    collector.add(batch.column(str(at)))
        return {at: collector.cell() for at, collector in collectors.items()}


def meet(indexes: Sequence[Index], source: Any, options: ReadOptions, limits: Limits) -> list[Indexed]:
    """The indexes with the types that their operands have in an object.

    Raises ``ValueError`` for a column that is not there, and ``TypeError`` for values that an index is not made for.
    """
    columns = parse_columns({str(at): one.operand for at, one in enumerate(indexes)})
    planner = ScanPlanner(ScanRequest(FileSet((source,), options, limits), columns, None))
    found = []
    for index, field_ in zip(indexes, planner.schema, strict=True):
        met = index.on(planner.exact.of(index.operand)).of(field_)
        found.append(Indexed(met, field_.type, met.cell_type(field_.type)))
    return found


def _settle(written_ms: int, settled_ms: int) -> None:
    """Wait until what is written again has another time than ``written_ms``."""
    since = time.time() * 1000 - written_ms
    if 0 <= since < settled_ms:
        time.sleep((settled_ms - since) / 1000)


def _is_version(source: Any, etag: str | None) -> bool:
    """May an open file be of the version with ``etag``?"""
    version = getattr(source, "version", None)
    if etag is None or version is None or not version.text.startswith("etag "):
        return True
    return bool(version.text.removeprefix("etag ").strip('"') == etag.strip('"'))


def _is_as_told(file: ParquetFile, one: Indexed) -> bool:
    """Has the file the column in the type of the index?"""
    operand = one.index.operand
    if not isinstance(operand, Column):
        return False
    try:
        node = find(file.schema, operand)
        told = file.arrow_schema.field(operand.path[0])
        for name in operand.path[1:]:
            told = told.type.field(name)
    except (KeyError, ParquetError, TypeError, ValueError):
        return False
    return node is not None and told.type == one.values and one.index.of(told) == one.index
