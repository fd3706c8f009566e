"""Columns stored twice: once for everybody, once in another encoding for readers that know this extension.

As in the second example of the format's text, the second copies stand at the start of the row group, and the
extension of a chunk's ColumnMetaData tells where. Ours is an entry of an extension container: a ColumnMetaData of the
copy whose offsets count from the ``data_page_offset`` of the chunk itself, so that they stay true when row groups
are moved. Spec: "Binary Protocol Extensions"; the rules are in ``specs/binary-protocol-extensions.md``.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from pqext.core.base.errors import CorruptFileError, ParquetError
from pqext.core.format import metadata as structures
from pqext.core.format.extension.container import ExtensionContainer
from pqext.core.format.extension.structure import extensions
from pqext.core.format.metadata import ColumnMetaData
from pqext.core.format.thrift import decode

if TYPE_CHECKING:
    from pqext.core.read.row_group import ColumnChunk

SECOND_COPY = UUID("c8c20a5a-4f42-433e-aaba-047f995f0896")
"""Marks the entry."""
_OFFSETS = ("data_page_offset", "dictionary_page_offset")


def find_copy(about: ColumnMetaData) -> ColumnMetaData | None:
    """The metadata of a chunk's second copy, from the metadata of the chunk; None when it has none.

    Raises ``CorruptFileError`` when the extension is damaged or contradicts the chunk.
    """
    stored = extensions(about)
    container = None if stored is None else ExtensionContainer.decode(stored)
    if container is None or SECOND_COPY not in container:
        return None
    try:
        found, end = decode(ColumnMetaData, container[SECOND_COPY])
    except ParquetError as error:
        error.offset = None  # of a place in the extension, not in the file
        raise
    same = ("type", "path_in_schema", "num_values")
    if end != len(container[SECOND_COPY]) or any(getattr(found, name) != getattr(about, name) for name in same):
        raise CorruptFileError("the second copy of a column chunk is not one of this chunk")
    return shifted(found, about.data_page_offset)


def of_chunk(chunk: ColumnChunk) -> ColumnChunk:
    """The second copy of a column chunk, to be read in its place; the chunk itself when it has none."""
    if chunk.structure.crypto_metadata is not None:
        return chunk
    try:
        found = find_copy(chunk.metadata)
    except ParquetError as error:
        error.locate(column=chunk.node.dotted)
        raise
    if found is None:
        return chunk
    stored = structures.ColumnChunk(file_path=chunk.structure.file_path, file_offset=0, meta_data=found)
    return replace(chunk, structure=stored, indexes=None)


def shifted(about: ColumnMetaData, distance: int) -> ColumnMetaData:
    """A copy of the metadata of a chunk whose pages are ``distance`` bytes further on."""
    moved = copy.copy(about)
    for name in _OFFSETS:
        offset = getattr(about, name)
        if offset is not None:
            setattr(moved, name, offset + distance)
    return moved
