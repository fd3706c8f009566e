"""The new file: chunks copied byte for byte under a footer that says of them only what their pages show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pqext.core.footer.chunk_offsets import start_of
from pqext.core.footer.rewrite import copy_bytes
from pqext.core.footer.thrift_footer import MAGIC, serialise_footer
from pqext.core.format.metadata import ColumnMetaData
from pqext.core.io.sink import Sink
from pqext.core.io.source import Source
from pqext.recovery.claims.claims import ClaimedGroup, Claims, end_of, file_metadata, moved


def write(dest: Any, claims: Claims, groups: Iterable[tuple[Source, ClaimedGroup]]) -> None:
    """Copy the chunks of ``groups``, each from the file that it lies in, to ``dest``."""
    written = []
    with Sink(dest) as sink:
        sink.write(MAGIC)
        for source, group in groups:
            chunks: list[ColumnMetaData | None] = []
            for chunk in group.chunks:
                assert chunk is not None
                start = start_of(chunk)
                made = moved(chunk, sink.offset - start)
                made.encoding_stats = chunk.encoding_stats
                chunks.append(made)
                copy_bytes(source, start, end_of(chunk), sink)
            written.append(ClaimedGroup(group.rows, chunks, group.evidence))
        sink.write(serialise_footer(file_metadata(claims, written)))
