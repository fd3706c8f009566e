"""The new file: chunks copied byte for byte under a footer that says of them only what their pages show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pqext.core.footer.chunk_offsets import start_of
from pqext.core.footer.rewrite import copy_bytes
from pqext.core.footer.thrift_footer import MAGIC, serialise_footer
from pqext.core.format.metadata import ColumnMetaData, KeyValue
from pqext.core.io.sink import Sink
from pqext.core.io.source import Source
from pqext.recovery.claims import ClaimedGroup, Claims, end_of, file_metadata


def moved(chunk: ColumnMetaData, distance: int) -> ColumnMetaData:
    """What is needed to read a chunk so many bytes further on: nothing of its values, no index or filter."""
    dictionary = chunk.dictionary_page_offset  # some writers put 0 where there is none
    return ColumnMetaData(
        type=chunk.type,
        encodings=list(chunk.encodings),
        path_in_schema=list(chunk.path_in_schema),
        codec=chunk.codec,
        num_values=chunk.num_values,
        total_uncompressed_size=chunk.total_uncompressed_size,
        total_compressed_size=chunk.total_compressed_size,
        data_page_offset=chunk.data_page_offset + distance,
        dictionary_page_offset=dictionary + distance if dictionary else None,
    )


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


def true_pairs(pairs: Sequence[KeyValue] | None) -> list[KeyValue] | None:
    """Key-value metadata without what it says of values: boxes and types of geometries, which rows may contradict."""
    if pairs is None:
        return None
    kept = []
    for pair in pairs:
        if pair.key == "geo":
            try:
                about = json.loads(pair.value or "")
                for column in about["columns"].values():
                    column.pop("bbox", None)
                    column["geometry_types"] = []
                pair = KeyValue(key="geo", value=json.dumps(about))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                continue
        kept.append(pair)
    return kept
