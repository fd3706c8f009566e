"""Read columns that are stored twice: in a common encoding, and in a second encoding for readers of this extension.

As in the second example of the specification, second copies are written at the start of the row group, and an extension
of the chunk's ColumnMetaData refers to them. Here this is an entry of an extension container. It contains the
ColumnMetaData of the copy, with offsets relative to the ``data_page_offset`` of the chunk, which stay valid when row
groups are moved. Spec: "Binary Protocol Extensions"; the rules are in ``specs/binary-protocol-extensions.md``.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from pqext.core.base.errors import CorruptFileError, ParquetError
from pqext.core.format import metadata as structures
from pqext.core.format.extension.framing import ExtensionContainer
from pqext.core.format.extension.structure import extensions
from pqext.core.format.metadata import ColumnMetaData
from pqext.core.format.thrift import decode

if TYPE_CHECKING:
    from pqext.core.read.row_group import ColumnChunk

SECOND_COPY = UUID("c8c20a5a-4f42-433e-aaba-047f995f0896")
"""UUID of the extension entry."""
_OFFSETS = ("data_page_offset", "dictionary_page_offset")


def find_copy(chunk: ColumnMetaData) -> ColumnMetaData | None:
    """Return the metadata of the second copy to which the chunk metadata ``chunk`` refers; None without a copy.

    Raises ``CorruptFileError`` if the extension is corrupt or contradicts the chunk.
    """
    stored = extensions(chunk)
    container = None if stored is None else ExtensionContainer.decode(stored)
    if container is None or SECOND_COPY not in container:
        return None
    try:
        result, end = decode(ColumnMetaData, container[SECOND_COPY])
    except ParquetError as error:
        error.offset = None  # the offset is relative to the extension, not the file
        raise
    same = ("type", "path_in_schema", "num_values")
    if end != len(container[SECOND_COPY]) or any(getattr(result, name) != getattr(chunk, name) for name in same):
        raise CorruptFileError("the second copy belongs to another column chunk")
    return shift_offsets(result, chunk.data_page_offset)


def find_second_copy(chunk: ColumnChunk) -> ColumnChunk:
    """Return the second copy of a column chunk, to be read instead of the chunk.

    Return the chunk itself if it has no copy.
    """
    if chunk.structure.crypto_metadata is not None:
        return chunk
    try:
        result = find_copy(chunk.metadata)
    except ParquetError as error:
        error.locate(column=chunk.node.dotted_path)
        raise
    if result is None:
        return chunk
    stored = structures.ColumnChunk(file_path=chunk.structure.file_path, file_offset=0, meta_data=result)
    return replace(chunk, structure=stored, indexes=None)


def shift_offsets(chunk: ColumnMetaData, distance: int) -> ColumnMetaData:
    """Return a copy of chunk metadata with all page offsets increased by ``distance``."""
    moved = copy.copy(chunk)
    for name in _OFFSETS:
        offset = getattr(chunk, name)
        if offset is not None:
            setattr(moved, name, offset + distance)
    return moved
