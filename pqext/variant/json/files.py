"""Files of newline-delimited JSON into variant columns: batch after batch, in parallel and in bounded memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, Any, TypeAlias

import pyarrow as pa

from pqext.core.errors import ParquetError
from pqext.core.workers import Workers, thread_count
from pqext.variant.json.faults import Found, line_error, line_fault
from pqext.variant.json.lines import READ_BYTES, SAMPLE_BYTES, first_lines, read_lines
from pqext.variant.json.parser import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_DEPTH,
    DuplicateKeys,
    Numbers,
    OnError,
    Parsing,
    parsing,
)
from pqext.variant.types import variant_field

Path: TypeAlias = "str | os.PathLike[str]"
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zstd": "zstd", ".lz4": "lz4", ".br": "brotli"}


@dataclass(frozen=True, slots=True)
class FileFault:
    """Why a line of a file holds no JSON value; ``path`` is None when the source is no path."""

    path: str | None
    line: int
    offset: int
    reason: str


_Piece = tuple[str | None, memoryview]
_Parsed = tuple[str | None, list[pa.StructArray], list[Found], int]


class JsonReader:
    """Record batches of one variant column, from :func:`read_json`; they can be read once.

    Iterate over it, or call :meth:`read_all`. It is also an Arrow stream (``__arrow_c_stream__``) for whoever
    takes one.
    """

    def __init__(self, sources: list[Path | IO[bytes]], column: str, how: Parsing, threads: int, size: int) -> None:
        self.faults: list[FileFault] = []
        """The faults in the lines of the batch given last."""
        self._how = how
        self._column = column
        self._threads = threads
        self._pieces = _pieces(sources, size, how.max_bytes)
        self._batches: Iterator[pa.RecordBatch] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The schema of all batches. The first lines are read for one that is to be inferred."""
        if self._how.undecided is not None:
            first = list(islice(self._pieces, 1))
            self._pieces = chain(first, self._pieces)
            text = first_lines(first[0][1], SAMPLE_BYTES) if first else memoryview(b"")
            self._how = self._how.decided(pa.chunked_array(self._how.whole().lines(text)[0], type=self._how.type))
        if self._how.schema is None:
            return pa.schema([variant_field(self._column)])
        return pa.schema([pa.field(self._column, self._how.type)])

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._batches is None:
            self._batches = self._read()
        return self._batches

    def read_all(self) -> pa.Table:
        """All batches that have not been read yet as one table; ``faults`` then holds those of all."""
        faults: list[FileFault] = []
        batches = []
        for batch in self:
            batches.append(batch)
            faults += self.faults
        self.faults = faults
        return pa.Table.from_batches(batches, self.schema)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        stream = pa.RecordBatchReader.from_batches(self.schema, iter(self))
        return stream.__arrow_c_stream__(requested_schema)

    def _read(self) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        how = self._how
        path: str | None = None
        before = 0

        def parse(piece: _Piece) -> _Parsed:
            try:
                return piece[0], *how.lines(piece[1])
            except ParquetError as error:
                error.locate(path=piece[0])
                raise

        with (
            Workers(self._threads, self._threads) as workers,
            closing(workers.map_ahead(parse, self._pieces, self._threads)) as results,
        ):
            for found_in, arrays, found, lines in results:
                if found_in != path:
                    path, before = found_in, 0
                if found and how.raises:
                    raise line_error(found[0], before, path)
                told = deque(line_fault(fault, before) for fault in found)
                for array in arrays:
                    # Faulty lines are null rows, and there are no others: JSON's null is a variant.
                    mine = [told.popleft() for _ in range(array.null_count)]
                    self.faults = [FileFault(path, fault.line, fault.offset, fault.reason) for fault in mine]
                    if len(array):
                        yield pa.RecordBatch.from_arrays([array], schema=schema)
                before += lines


def read_json(
    source: Path | IO[bytes] | Sequence[Path],
    *,
    column: str = "value",
    numbers: Numbers = "decimal",
    on_error: OnError = "raise",
    duplicate_keys: DuplicateKeys = "error",
    max_depth: int = DEFAULT_MAX_DEPTH,
    max_bytes: int = DEFAULT_MAX_BYTES,
    shredding: Any = None,
    threads: int = 0,
    batch_bytes: int = READ_BYTES,
) -> JsonReader:
    """Read newline-delimited JSON into record batches of one variant column named ``column``.

    ``source`` is a path, a list of paths, or a binary file object; a file whose name ends in ``.gz``, ``.bz2``,
    ``.zst``, ``.lz4`` or ``.br`` is decompressed. Each line is a document, lines of spaces are skipped, a byte
    order mark at the start is left out. Text is read ``batch_bytes`` at a time (more where a line is longer) and
    parsed by ``threads`` threads, 0 for one a processor: no more than ``threads + 1`` such pieces and what they
    become are held at a time. The other arguments are those of :func:`pqext.variant.parse_json`; a schema that
    is to be inferred is so from the first lines.

    To write shredded Parquet::

        pqext.write_table(variant.read_json("events.ndjson", shredding="infer"), "events.parquet")

    While it is read, raises :class:`~pqext.core.errors.VariantError` with the file, the line, the byte in the
    line and the reason for a line that is not JSON, and ``VariantLimitError``, which is one, for a line that
    exceeds a limit. With ``on_error="null"`` these are null rows, told of in :attr:`JsonReader.faults`; a line of
    more than ``max_bytes`` that reaches over a whole piece is raised even then.
    """
    how = parsing(numbers, on_error, duplicate_keys, max_depth, max_bytes, shredding)
    if batch_bytes < 1:
        raise ValueError(f"batch_bytes must be positive, not {batch_bytes}")
    if not isinstance(column, str):
        raise TypeError(f"column must be a name, not {type(column).__name__}")
    sources: list[Path | IO[bytes]]
    if isinstance(source, str | os.PathLike):
        sources = [source]
    elif isinstance(source, Sequence) and all(isinstance(path, str | os.PathLike) for path in source):
        sources = list(source)
    elif not isinstance(source, Sequence) and hasattr(source, "read"):
        sources = [source]
    else:
        raise TypeError(f"source is a path, a list of paths or a binary file, not {type(source).__name__}")
    return JsonReader(sources, column, how, thread_count(threads), batch_bytes)


def _pieces(sources: list[Path | IO[bytes]], size: int, max_bytes: int) -> Iterator[_Piece]:
    """Pieces of whole lines of every source, in order."""
    for source in sources:
        if not isinstance(source, str | os.PathLike):
            name = getattr(source, "name", None)
            path = name if isinstance(name, str) else None
            yield from ((path, text) for text in _whole_lines(source, size, max_bytes, path))
            continue
        path = os.fspath(source)
        with _open(path) as file:
            yield from ((path, text) for text in _whole_lines(file, size, max_bytes, path))


def _whole_lines(file: IO[bytes], size: int, max_bytes: int, path: str | None) -> Iterator[memoryview]:
    for _, text in read_lines(file, piece_bytes=size, max_line_bytes=max_bytes, path=path):
        yield memoryview(text)


def _open(path: str) -> Any:
    codec = _CODECS.get(os.path.splitext(path)[1].lower())
    return open(path, "rb", buffering=0) if codec is None else pa.CompressedInputStream(pa.OSFile(path), codec)
