"""Files opened by a FlatBuffers footer: those that have no other, and those whose Thrift footer is damaged.

Where a file has both, the Thrift footer rules; a warning tells where they disagree.
"""

from __future__ import annotations

from pqext.core.buffers import Bytes
from pqext.core.errors import CorruptFileError, LimitError, ParquetError, UnsupportedError
from pqext.core.flat.framing import TAIL_BYTES, beside, check, check_limit, size_of
from pqext.core.flat.lookup import FlatFooter, FlatLookup
from pqext.core.footer import MAGIC
from pqext.core.footer_choice import FooterForm
from pqext.core.limits import Limits
from pqext.core.metadata import FileMetaData
from pqext.core.source import Source
from pqext.core.thrift import decode
from pqext.core.warn import warn_of_file


def read_alone(source: Source, limits: Limits) -> FlatFooter:
    """The footer of a file that ends in ``PAR3``.

    Raises ``CorruptFileError`` for a damaged one, ``LimitError`` beyond ``limits`` and ``UnsupportedError`` for one
    that speaks of encryption.
    """
    room = source.size - TAIL_BYTES - len(MAGIC)
    if room < 0:
        raise CorruptFileError(f"not a Parquet file: it has {source.size} bytes", path=source.path)
    try:
        tail = source.read(source.size - TAIL_BYTES, TAIL_BYTES, keep=True).tobytes()
        size = size_of(tail, room)
        check_limit(size, limits)
        offset = source.size - TAIL_BYTES - size
        tables = source.read(offset, size, keep=True)
        check(tables, tail)
        source.learn(offset)
        return _opened(tables.tobytes(), offset, size, limits, source.path, "flatbuffers")
    except ParquetError as error:
        error.locate(path=source.path)
        if error.offset is None and isinstance(error, (CorruptFileError, LimitError)):
            error.offset = source.size - TAIL_BYTES
        raise


def open_beside(footer: Bytes, offset: int, limits: Limits, path: str | None) -> FlatFooter:
    """The FlatBuffers footer in the extension of a serialised Thrift one."""
    tables = beside(footer).tables(limits)
    return _opened(tables, offset, len(footer), limits, path, "thrift+flatbuffers")


def open_instead(footer: Bytes, offset: int, limits: Limits, path: str | None) -> FlatFooter | None:
    """What a file is opened by whose Thrift footer holds a FlatBuffers one: None for the Thrift footer.

    That is damaged where it neither can be read nor is the one that the other was made from.
    """
    try:
        held = beside(footer)
        if held.agrees(footer):
            return None
    except ParquetError as error:
        _tell(path, f"the footer's FlatBuffers form is passed over: {error.message}")
        return None
    try:
        decode(FileMetaData, footer, limits=limits, base=offset, path=path)
    except CorruptFileError as error:
        try:
            opened = open_beside(footer, offset, limits, path)
        except ParquetError:
            return None  # the Thrift footer's error is told
        _tell(path, f"the Thrift footer is damaged: {error.message}; the file is read by its FlatBuffers footer")
        return opened
    _tell(path, "the Thrift footer and the FlatBuffers footer in it disagree; the Thrift footer is read")
    return None


def _opened(
    tables: bytes, offset: int, length: int, limits: Limits, path: str | None, form: FooterForm
) -> FlatFooter:
    lookup = FlatLookup(tables, limits, path)
    if lookup.flat.is_encrypted:
        raise UnsupportedError("a FlatBuffers footer that speaks of encryption", feature="encrypted FlatBuffers footer")
    return FlatFooter(lookup, offset, length, form)


def _tell(path: str | None, message: str) -> None:
    from pqext.core.indexes.reading import DamagedIndexWarning

    warn_of_file(path, message, DamagedIndexWarning)


