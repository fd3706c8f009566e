"""Read a file by its FlatBuffers footer, if it has no other or its Thrift footer is damaged.

If a file has both, the Thrift footer takes precedence; a warning lists differences.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from isal.isal_zlib import crc32

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import CorruptFileError, LimitError, ParquetError, UnsupportedError, warn_about_file
from pqext.core.base.limits import Limits
from pqext.core.footer.chunk_offsets import start_of
from pqext.core.footer.flatbuffers.framing import TAIL_BYTES, Beside, beside, check, check_limit, size_of
from pqext.core.footer.flatbuffers.lookup import FlatFooter, FlatLookup
from pqext.core.footer.structure_lookup import peeked
from pqext.core.footer.thrift_footer import MAGIC
from pqext.core.format.metadata import FileMetaData
from pqext.core.format.thrift import decode
from pqext.core.io.source import Source
from pqext.core.options.footer import FooterFormat
from pqext.core.schema.lazy_tree import from_elements

_ONE_PLACE = 16
"""Maximum span of changed bytes: a fault of disk or memory changes few, an edit of the footer more."""


def read_alone(source: Source, limits: Limits, end: int | None = None) -> FlatFooter:
    """Read the footer of a file that ends in ``PAR3``, or ended so at byte ``end`` before more was written.

    Raises ``CorruptFileError`` for a corrupt footer, ``LimitError`` beyond ``limits`` and ``UnsupportedError`` for
    encryption.
    """
    about = (source.size if end is None else end) - TAIL_BYTES
    if about < len(MAGIC):
        raise CorruptFileError(f"not a Parquet file: it has {source.size} bytes", path=source.path)
    try:
        tail = source.read(about, TAIL_BYTES, is_metadata=True).tobytes()
        size = size_of(tail, about - len(MAGIC))
        check_limit(size, limits)
        tables = source.read(about - size, size, is_metadata=True)
        check(tables, tail)
        source.add_metadata(about - size)
        return _opened(tables.tobytes(), about - size, size, limits, source.path, "flatbuffers")
    except ParquetError as error:
        error.locate(path=source.path)
        if error.offset is None and isinstance(error, (CorruptFileError, LimitError)):
            error.offset = about
        raise


def open_beside(footer: Bytes, offset: int, limits: Limits, path: str | None) -> FlatFooter:
    """Read the FlatBuffers footer in the extension of a serialised Thrift footer."""
    tables = beside(footer).tables(limits)
    return _opened(tables, offset, len(footer), limits, path, "thrift+flatbuffers")


def open_instead(footer: Bytes, offset: int, limits: Limits, path: str | None) -> FlatFooter | None:
    """Decide between a Thrift footer and the FlatBuffers footer in it; None selects the Thrift footer.

    The Thrift footer takes precedence if both are valid and differ. It is corrupt if it contradicts itself, or if it
    differs from the footer that the FlatBuffers footer was made from in a few adjacent bytes only.
    """
    try:
        held = beside(footer)
        if held.agrees(footer):
            return None
        opened = open_beside(footer, offset, limits, path)
    except ParquetError as error:
        _tell(path, f"ignored the footer's FlatBuffers copy: {error.message}")
        return None
    fault = _fault(footer, offset, limits, path) or _damage(footer, held, opened.raw)
    if fault is None:
        _tell(path, "the Thrift footer and the FlatBuffers footer in it disagree; the Thrift footer is read")
        return None
    _tell(path, f"the Thrift footer is damaged: {fault}; the file is read by its FlatBuffers footer")
    return opened


def open_after(
    error: CorruptFileError, footer: Bytes, offset: int, limits: Limits, path: str | None
) -> FlatFooter | None:
    """Return the FlatBuffers footer in a Thrift footer that cannot be read; None if it has none."""
    try:
        opened = open_beside(footer, offset, limits, path)
    except ParquetError:
        return None
    _tell(path, f"the Thrift footer is damaged: {error.message}; the file is read by its FlatBuffers footer")
    return opened


def _fault(footer: Bytes, offset: int, limits: Limits, path: str | None) -> str | None:
    """The contradiction within a serialised Thrift footer, or with the file whose pages end before it."""
    try:
        metadata, _ = decode(FileMetaData, footer, limits=limits, base=offset, path=path)
        leaves = from_elements(metadata.schema, limits, path).leaves
        rows = 0
        for group in map(partial(peeked, metadata.row_groups), range(len(metadata.row_groups))):
            rows += group.num_rows
            if len(group.columns) != len(leaves) or group.num_rows < 0:
                return "a row group is not one of its schema"
            for at, leaf in enumerate(leaves):
                chunk = peeked(group.columns, at)
                about = chunk.meta_data
                if about is None or tuple(about.path_in_schema) != leaf.path or about.type != leaf.physical_type:
                    return "a column chunk is not one of its column"
                start = start_of(about)
                if chunk.file_path is None and not 0 <= start <= offset - about.total_compressed_size <= offset:
                    return "a column chunk lies outside of the file"
        return "row groups are missing" if metadata.num_rows > rows else None
    except (CorruptFileError, UnsupportedError) as error:
        return error.message


def _damage(footer: Bytes, held: Beside, raw: Bytes) -> str | None:
    """The difference, if the Thrift footer differs from the one that the other was made from in one location only."""
    fields = raw[:-1]  # without the stop byte
    if len(fields) != held.thrift_bytes or crc32(fields.data) != held.thrift_crc or len(fields) > len(footer):
        return None
    others = np.flatnonzero(fields != footer[: len(fields)])
    if not len(others) or others[-1] - others[0] >= _ONE_PLACE:
        return None
    return f"bytes {others[0]} to {others[-1]} of it are not those that it was written with"


def _opened(
    tables: bytes, offset: int, length: int, limits: Limits, path: str | None, footer_format: FooterFormat
) -> FlatFooter:
    lookup = FlatLookup(tables, limits, path)
    if lookup.flat.is_encrypted:
        raise UnsupportedError("a FlatBuffers footer that speaks of encryption", feature="encrypted FlatBuffers footer")
    return FlatFooter(lookup, offset, length, footer_format)


def _tell(path: str | None, message: str) -> None:
    from pqext.core.indexes.reading import DamagedIndexWarning

    warn_about_file(path, message, DamagedIndexWarning)


