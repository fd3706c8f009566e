"""Write the second copies of column chunks, and record them in the extensions of the chunks.

:mod:`pqext.core.read.second_copy` documents the layout and reads the copies.
"""

from __future__ import annotations

from pqext.core.format.extension.container import ExtensionContainer
from pqext.core.format.extension.structure import extensions, set_extension
from pqext.core.format.thrift import encode
from pqext.core.io.sink import Sink
from pqext.core.read.second_copy import SECOND_COPY, shifted
from pqext.core.write.chunk_writer import EncodedChunk


def write_copies(chunks: list[EncodedChunk], sink: Sink) -> None:
    """Write the second copies of a row group's chunks, where they have one: before all chunks."""
    for chunk in chunks:
        if chunk.second is not None:
            chunk.second.move(sink.offset)
            for piece in chunk.second.pieces:
                sink.write(piece)


def note_copy(chunk: EncodedChunk) -> None:
    """Tell of the second copy, if there is one, in the extension of a chunk whose own place is known now."""
    if chunk.second is None:
        return
    about = shifted(chunk.second.metadata, -chunk.metadata.data_page_offset)
    stored = extensions(chunk.metadata)
    others = ExtensionContainer() if stored is None else ExtensionContainer.decode(stored)
    if others is None:
        name = ".".join(chunk.metadata.path_in_schema)
        raise ValueError(
            f"column {name!r} is given extension bytes and a second copy; give the bytes in a mapping by UUID"
        )
    set_extension(chunk.metadata, others.replacing(SECOND_COPY, encode(about)).encode(), replace=True)
