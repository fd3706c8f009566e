"""The footer of a file with a jump table, of which no more is read than is asked for."""

from __future__ import annotations

from typing import Any

from isal.isal_zlib import crc32

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import CorruptFileError
from pqext.core.base.leb128 import uleb
from pqext.core.base.limits import Limits
from pqext.core.footer.jump_table.jump_table import CRC_BYTES, JUMP_TABLE, ROOT_BYTES, Root
from pqext.core.footer.jump_table.lookup import Lookup, tell
from pqext.core.footer.jump_table.schema import from_table
from pqext.core.footer.thrift_footer import Footer
from pqext.core.format.extension.framed import FRAME_BYTES
from pqext.core.format.extension.structure import HEADERS
from pqext.core.format.metadata import FileMetaData
from pqext.core.io.source import Source
from pqext.core.schema.nodes import Schema


class IndexedFooter(Footer):
    """A footer of which no more is read than is asked for."""

    __slots__ = ("lookup",)
    lookup: Lookup

    def __init__(self, metadata: FileMetaData, lookup: Lookup) -> None:
        for name, value in (
            ("metadata", metadata),
            ("offset", lookup.offset),
            ("length", lookup.length),
            ("lookup", lookup),
            ("decryptor", None),
            ("known_crc", None),
        ):
            object.__setattr__(self, name, value)

    @property
    def raw(self) -> Any:
        """All bytes of the footer, which are read now."""
        return self.lookup.raw()

    @property
    def whole(self) -> FileMetaData:
        """The metadata as it stands in the file, its extension too."""
        return self.lookup.whole()

    def schema(self, limits: Limits, path: str | None, *, strict: bool = False) -> Schema:
        """The schema, of which a column is made when it is asked for."""
        return from_table(self.lookup, limits, path)


def open_indexed(source: Source, offset: int, length: int, limits: Limits, tail: Bytes) -> IndexedFooter | None:
    """The footer of ``length`` bytes at ``offset`` by its jump table; None where it has none, or a damaged one.

    ``tail`` is what was read of the file's end.
    """
    try:
        lookup = _find(source, offset, length, limits, tail)
        metadata = None if lookup is None else lookup.metadata()
    except CorruptFileError as error:
        tell(source.path, error)
        return None
    if lookup is None or metadata is None or metadata.encryption_algorithm is not None:
        return None
    return IndexedFooter(metadata, lookup)


def _find(source: Source, offset: int, length: int, limits: Limits, tail: Bytes) -> Lookup | None:
    end = offset + length - 1
    least = ROOT_BYTES + FRAME_BYTES + 1
    if length <= least:
        return None

    def read(start: int, size: int) -> Bytes:
        held = start - (source.size - len(tail))
        return tail[held : held + size] if held >= 0 else source.read(start, size, keep=True)

    last = read(end + 1 - least, least).tobytes()
    if last[-17:-1] != JUMP_TABLE.bytes or last[-1]:
        return None
    root = Root.decode(last[:ROOT_BYTES])
    if root is None:
        return None
    start = end - FRAME_BYTES - root.size
    opened = start - offset - root.thrift_bytes
    if opened < 0:
        raise CorruptFileError("the jump table is larger than the extension that holds it")
    header = read(offset + root.thrift_bytes, min(9, end - offset - root.thrift_bytes)).tobytes()
    # The extension stands where the table says that the other fields end, and takes all that follows them.
    sizes = [uleb(end - offset - root.thrift_bytes - 4 - n) for n in range(1, 6)]
    if header[:4] not in HEADERS.values() or not any(
        header[4 : 4 + n] == size for n, size in enumerate(sizes, 1) if len(size) == n
    ):
        raise CorruptFileError("the jump table is one of another footer")
    listed = read(start + root.section_bytes, root.blocks * CRC_BYTES)
    if crc32(listed.data) != root.crc_list:
        raise CorruptFileError("the checksums of the jump table are damaged")
    crcs = memoryview(listed.tobytes()).cast("I")  # little-endian, as the machines this runs on
    return Lookup(source, offset, length, root, crcs, start - offset, limits)
