"""Metadata from a FlatBuffers footer, converted to Thrift structures one by one on access."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from pqext.core.base.buffers import Bytes, view
from pqext.core.base.errors import CorruptFileError, ParquetError
from pqext.core.base.limits import Limits
from pqext.core.footer.structure_lookup import ColumnWindows, IndexedStructs, LookupFooter
from pqext.core.format.extension.framing import payloads_by_uuid
from pqext.core.format.metadata import FileMetaData, RowGroup
from pqext.core.format.thrift import Struct, decode, struct_list_header
from pqext.core.kernels.flatbuffers.metadata import FlatMetadata
from pqext.core.kernels.thrift.reader import scan_fields
from pqext.core.options.layout import FooterFormat

_MAX_CONVERTED_CHUNKS = 1_000
"""Maximum number of column chunks that are all converted together."""
_SHARE = 4
"""Reciprocal of the share of accessed columns above which all columns are converted."""
_SCHEMA, _ROW_GROUPS = 2, 4
BESIDE = UUID("a1c6f0de-6f0f-4c1e-9a43-0f6a6f6f7b52")
"""UUID of pqext's extension of the tables."""
_T = TypeVar("_T", bound=Struct)


class FlatLookup(ColumnWindows):
    """Look-up of single structures in a FlatBuffers footer.

    Raises ``CorruptFileError`` if the tables are invalid, and ``LimitError`` if they exceed ``limits``.
    """

    def __init__(self, tables: bytes, limits: Limits, path: str | None) -> None:
        super().__init__(limits, path)
        self.tables = tables
        self.flat = FlatMetadata(tables, limits, lambda stored: (payloads_by_uuid(stored) or {}).get(BESIDE))
        self._elements, self.row_groups, self._leaves = self.flat.counts
        self._lock = threading.Lock()
        self._read: tuple[FileMetaData, Bytes] | None = None
        self._few = self.row_groups * self._leaves <= _MAX_CONVERTED_CHUNKS

    @property
    def is_whole(self) -> bool:
        """Whether the complete footer has been converted, or should be."""
        return self._few or self._read is not None or len(self._columns) * _SHARE > self._leaves

    def load_metadata(self) -> FileMetaData:
        """Return the complete footer."""
        return self._read_all()[0]

    def load_bytes(self) -> Bytes:
        """Return the complete footer, converted to serialised Thrift."""
        return self._read_all()[1]

    def _read_all(self) -> tuple[FileMetaData, Bytes]:
        with self._lock:
            if self._read is None:
                raw = self._file({_SCHEMA: self._schema(), _ROW_GROUPS: self.flat.row_groups()})
                result = self._decode_struct(FileMetaData, raw)
                self._read = result, view(raw)
                self._columns = {}
            return self._read

    def resolve(self, find: Callable[[], _T], fallback: Callable[[FileMetaData], _T]) -> _T:
        """Return the result of ``find`` or, if converting the complete footer is cheaper, of ``fallback``."""
        return fallback(self.load_metadata()) if self.is_whole else find()

    def metadata(self) -> FileMetaData:
        """Return the footer. Its row groups are converted on access."""
        if self.is_whole:
            return self.load_metadata()
        result = self._decode_struct(FileMetaData, self._file({_SCHEMA: self._schema()}))
        result.row_groups = IndexedStructs(
            self, self.row_groups, self._group, lambda whole: whole.row_groups, rows=self.flat.rows
        )
        return result

    def _decode_struct(self, struct_type: type[_T], raw: bytes) -> _T:
        """Decode the structure in ``raw``. Errors have no offset, since ``raw`` is not part of the file."""
        try:
            return decode(struct_type, raw, limits=self.limits, path=self.path)[0]
        except ParquetError as error:
            error.offset = None
            raise

    def _schema(self) -> bytes:
        return struct_list_header(self._elements) + self.flat.elements(0, self._elements)

    def _file(self, lists: dict[int, bytes]) -> bytes:
        """Return the serialised footer, with the lists in ``lists`` (by field id) in place of its empty lists."""
        raw = self.flat.file()
        retained, done = [], 0
        for id, _, _, value, stop in scan_fields(raw, limits=self.limits)[0]:
            if id in lists:
                retained += [raw[done:value], lists.pop(id)]
                done = stop
        if lists:
            raise CorruptFileError("the FlatBuffers footer omits the list fields of its tables", path=self.path)
        return b"".join([*retained, raw[done:]])

    def _group(self, position: int) -> RowGroup:
        result = self._decode_struct(RowGroup, self.flat.group(position))
        result.columns = IndexedStructs(
            self, self._leaves, partial(self._chunk, row_group=position),
            lambda whole: whole.row_groups[position].columns, partial(self.locate_chunk, row_group=position),
        )
        return result

    def _chunks(self, column: int, first: int, stop: int) -> Sequence[Any]:
        return self._build_chunks(stop - first, [self.flat.chunks(column, first, stop)])


class FlatFooter(LookupFooter):
    """Footer of a file that is read from its FlatBuffers footer."""

    __slots__ = ("_format",)
    lookup: FlatLookup
    _format: FooterFormat

    def __init__(self, lookup: FlatLookup, offset: int, length: int, footer_format: FooterFormat) -> None:
        for name, value in (
            ("metadata", lookup.metadata()), ("offset", offset), ("length", length), ("lookup", lookup),
            ("decryptor", None), ("known_crc", None), ("_format", footer_format),
        ):
            object.__setattr__(self, name, value)

    @property
    def format(self) -> FooterFormat:
        """Footer format of the file."""
        return self._format
