"""Files of a recovery: its destination, which must not be its source, temporary files on disk, and the new file.

Chunks are copied to the new file byte for byte, under a footer that states of them only what their pages show.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from pqext.core.footer.chunk_offsets import start_of
from pqext.core.footer.rewrite import COPIED_BYTES, copy_bytes
from pqext.core.footer.thrift_footer import MAGIC, serialise_footer
from pqext.core.format.metadata import ColumnMetaData
from pqext.core.io.sink import Sink
from pqext.core.io.source import PathSource, Source
from pqext.core.io.sources.locations import locate, may_be_same_file
from pqext.recovery.claims.claims import ClaimedGroup, Claims, end_of, file_metadata, moved


def refuse_same(
    source: Any, dest: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None
) -> None:
    """Raise ``ValueError`` where ``dest`` is the damaged file: by another name, a URL, a link or an open file."""
    read = source.path if isinstance(source, Source) else locate(source, filesystem, storage_options)
    written = dest if hasattr(dest, "write") else locate(dest)
    if written is source or may_be_same_file(read, written):
        raise ValueError("dest is the damaged file itself, which is never touched: name another")


class TemporaryFiles:
    """A folder among the system's temporary ones, made when the first file is asked for, gone when it is left."""

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._count = 0

    def new(self) -> str:
        """The path of a file that is not there yet."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="pqext-recover-")
        self._count += 1
        return os.path.join(self._folder.name, f"{self._count}.parquet")

    def fetched(self, source: Source) -> Source:
        """A copy of a remote file, under its own name: what is read of it in several passes is fetched once.

        Raises ``SourceError`` for bytes that cannot be had, which are no damage.
        """
        path = self.new()
        with open(path, "xb") as file:
            for start in range(0, source.size, COPIED_BYTES):
                file.write(source.read(start, min(COPIED_BYTES, source.size - start)).data)
        found = PathSource(path)
        found.path = source.path
        return found

    def __enter__(self) -> TemporaryFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()


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
