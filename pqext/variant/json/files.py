"""Read JSON files into batches of variant columns, in parallel and in bounded memory."""

from __future__ import annotations

import errno
import glob
import html
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, Any, TypeAlias, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import ParquetError
from pqext.core.base.local_paths import check_path
from pqext.core.base.suggestions import SuggestionMixin
from pqext.core.base.threads import Workers, thread_count
from pqext.core.io.sources.store import Location
from pqext.core.io.sources.streams import CODECS, codec_errors, open_stream
from pqext.variant.json.documents import (
    READ_BYTES,
    SAMPLE_BYTES,
    Form,
    detect_layout,
    first_lines,
    read_documents,
    read_lines,
)
from pqext.variant.json.faults import RawFault, line_error, line_fault
from pqext.variant.json.parser import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_DEPTH,
    DuplicateKeys,
    JsonParser,
    Numbers,
    OnError,
    create_parser,
)
from pqext.variant.shredding.shredder import build_binary
from pqext.variant.types import variant_field

Path: TypeAlias = "str | os.PathLike[str]"
_SUFFIXES = (".json", ".ndjson", ".jsonl", ".geojsonl")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class FileFault:
    """Fault in a line of a JSON file. ``path`` is None if the source is not a path."""

    path: str | None
    line: int
    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Chunk of text that starts at byte ``start`` of a file.

    It contains complete lines, or documents whose end offsets are in ``ends``.
    """

    path: str | None
    text: memoryview
    ends: NDArray[np.int64] | None = None
    start: int = 0

    def parse(self, parser: JsonParser) -> tuple[str | None, list[pa.StructArray], list[RawFault], int]:
        """Parse the text. Returns the path, the rows, the faults by line, and the number of lines."""
        try:
            if self.ends is None:
                return self.path, *parser.parse_lines(self.text)
            arrays, faults = parser.parse_documents(_split_documents(self.text, self.ends))
            starts = np.concatenate([[0], self.ends[:-1]])
            whole = bytes(self.text)
            located = [
                _locate_in_line(whole, int(starts[row]) + offset, code, name) for row, offset, code, name in faults
            ]
            return self.path, arrays, located, whole.count(b"\n")
        except ParquetError as error:
            error.locate(path=self.path)
            raise

    def sample(self, parser: JsonParser, size: int = SAMPLE_BYTES) -> list[pa.StructArray]:
        """Parse about ``size`` bytes of documents for schema inference, and return the rows."""
        if self.ends is None:
            return parser.for_sampling().parse_lines(first_lines(self.text, size))[0]
        ends = self.ends[: max(1, int(np.searchsorted(self.ends, size)))]
        return parser.for_sampling().parse_documents(_split_documents(self.text[: int(ends[-1])], ends))[0]


def _split_documents(text: memoryview, stops: NDArray[np.int64]) -> pa.Array:
    """Split ``text`` into an array of documents. ``stops`` contains the end offset of each document."""
    offsets = np.concatenate([[0], stops]).astype(np.int64)
    return build_binary(pa.large_binary(), len(stops), offsets, text)


def _locate_in_line(text: bytes, offset: int, code: int, name: bytes | None) -> RawFault:
    """Convert a fault at byte ``offset`` of the text to a fault in the line that contains the byte."""
    return text.count(b"\n", 0, offset) + 1, offset - (text.rfind(b"\n", 0, offset) + 1), code, name


class JsonReader(SuggestionMixin):
    """Reader of record batches with one variant column, returned by :func:`read_json`.

    Iterate over it, or call :meth:`read_all`. Each iteration reads the files from the start. File objects can be read
    only once: a second iteration raises ``ValueError``. The reader is also an Arrow stream (``__arrow_c_stream__``),
    which polars, DuckDB and ``pyarrow.table`` accept.
    """

    def __init__(
        self,
        sources: list[Path | IO[bytes]],
        column: str,
        parser: JsonParser,
        threads: int,
        chunks: Callable[[], Iterator[TextChunk]],
    ) -> None:
        self.faults: list[FileFault] = []
        """Faults in the documents of the last batch."""
        self._sources = sources
        self._parser = parser
        self._column = column
        self._threads = threads
        self._make = chunks
        self._peeked: Iterator[TextChunk] | None = None
        self._read_before = False

    def __repr__(self) -> str:
        names = [os.fspath(s) if isinstance(s, str | os.PathLike) else f"<{type(s).__name__}>" for s in self._sources]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        schema = "schema to be inferred" if self._parser.undecided is not None else self._parser.type
        return f"JsonReader({', '.join(map(repr, names[:3]))}{more}; {self._column}: {schema})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    def _open_chunks(self) -> Iterator[TextChunk]:
        """Return an iterator over the text of the files.

        Text that the schema was inferred from is not read again. Raises ``ValueError`` if a file object was read
        before.
        """
        if self._peeked is not None:
            chunks, self._peeked = self._peeked, None
            return chunks
        if self._read_before and not all(isinstance(source, str | os.PathLike) for source in self._sources):
            raise ValueError("a file object can be read only once; pass its path to read_json instead")
        self._read_before = True
        return self._make()

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches. If it must be inferred, the first documents are read."""
        if self._parser.undecided is not None:
            chunks = self._open_chunks()
            first = list(islice(chunks, 1))
            self._peeked = chain(first, chunks)
            sample = first[0].sample(self._parser) if first else []
            self._parser = self._parser.with_inferred_schema(
                pa.chunked_array(sample, type=self._parser.for_sampling().type)
            )
        if self._parser.schema is None:
            return pa.schema([variant_field(self._column)])
        return pa.schema([pa.field(self._column, self._parser.type)])

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        return self._read_batches(schema, self._open_chunks())

    def read_all(self) -> pa.Table:
        """Read all batches into one table. Afterwards, ``faults`` contains the faults of all batches."""
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

    def _read_batches(self, schema: pa.Schema, chunks: Iterator[TextChunk]) -> Iterator[pa.RecordBatch]:
        parser = self._parser
        path: str | None = None
        before = 0

        def parse(chunk: TextChunk) -> tuple[bytes, str | None, list[pa.StructArray], list[RawFault], int]:
            return bytes(chunk.text[:4]), *chunk.parse(parser)

        with (
            Workers(self._threads, self._threads) as workers,
            closing(workers.map_ahead(parse, chunks, self._threads)) as results,
        ):
            for head, found_in, arrays, result, lines in results:
                if found_in != path:
                    path, before = found_in, 0
                if result and parser.raises:
                    raise line_error(result[0], before, path, head)
                faults = deque(line_fault(fault, before) for fault in result)
                for array in arrays:
                    # Only faulty documents are null rows: JSON null is a variant value.
                    mine = [faults.popleft() for _ in range(array.null_count)]
                    self.faults = [FileFault(path, fault.line, fault.offset, fault.reason) for fault in mine]
                    if len(array):
                        yield pa.RecordBatch.from_arrays([array], schema=schema)
                before += lines


def read_json(
    source: Path | IO[bytes] | Sequence[Path | IO[bytes]],
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
    format: Form = "auto",
) -> JsonReader:
    """Read JSON files into record batches with one variant column named ``column``.

    ``source`` is a path, a pattern (``"events/*.json.gz"``), a folder (all files below it with the extension ``.json``,
    ``.ndjson`` or ``.jsonl``, compressed or not), a list of these, or a binary file object. Compressed files are
    recognised by their name (``.gz``, ``.bz2``, ``.zst``, ``.lz4``, ``.br``, ``.xz``) or their first bytes. A byte
    order mark is ignored.

    ``format`` is the layout of documents in a file: ``"lines"``, one per line (blank lines are skipped);
    ``"documents"``, consecutive objects or arrays over any number of lines; ``"array"``, the elements of one array.
    ``"auto"`` inspects the first document of each file. The layout is lines, unless the document continues after the
    end of its first line. If an array spans the file, its elements are the documents.

    Text is read ``batch_bytes`` at a time (more if a document is longer) and parsed by ``threads`` threads, 0 for one
    per processor. At most ``threads + 1`` chunks and their results are in memory at a time. The other arguments are as
    for :func:`pqext.variant.parse_json`; a schema is inferred from the first documents.

    To write shredded Parquet::

        pqext.write_table(variant.read_json("events.ndjson", shredding="infer"), "events.parquet")

    Reading raises :class:`~pqext.core.base.errors.VariantError` with the file, the line, the byte in the line
    and the reason if a document is not JSON, and its subclass ``VariantLimitError`` if it exceeds a limit. With
    ``on_error="null"``, these documents are null rows, reported in :attr:`JsonReader.faults`. A line or document of
    more than ``max_bytes`` that spans a chunk also raises an error. An unclosed quote may consume the following
    documents unless documents are lines. Raises :class:`~pqext.core.base.errors.CorruptFileError` if a compressed file
    is corrupt or truncated, and ``FileNotFoundError`` for a pattern or a folder without files.

    >>> import io
    >>> from pqext import variant
    >>> reader = variant.read_json(io.BytesIO(b'[{"id": 1},\\n {"id": 2}]'))
    >>> variant.to_python(reader.read_all()["value"])
    [{'id': 1}, {'id': 2}]
    """
    parser = create_parser(numbers, on_error, duplicate_keys, max_depth, max_bytes, shredding)
    if batch_bytes < 1:
        raise ValueError(f"batch_bytes must be positive, not {batch_bytes}")
    if format not in get_args(Form):
        raise ValueError(f"format must be one of {', '.join(map(repr, get_args(Form)))}, not {format!r}")
    if not isinstance(column, str):
        raise TypeError(f"column must be a name, not {type(column).__name__}")
    workers = thread_count(threads)
    sources: list[Path | IO[bytes]]
    if isinstance(source, str | os.PathLike):
        sources = [*_list_files(source)]
    elif isinstance(source, Sequence) and all(
        isinstance(item, str | os.PathLike) or hasattr(item, "read") for item in source
    ):
        listings = (_list_files(item) if isinstance(item, str | os.PathLike) else [item] for item in source)
        sources = [file for files in listings for file in files]
    elif not isinstance(source, Sequence) and hasattr(source, "read"):
        sources = [source]
    else:
        raise TypeError(f"source must be a path, a list of paths or a binary file, not {type(source).__name__}")
    return JsonReader(
        sources, column, parser, workers, lambda: _iter_chunks(sources, format, batch_bytes, parser.max_bytes)
    )


def _list_files(path: Path) -> list[Path]:
    """Return the files for a path, a pattern or a folder, sorted by name.

    Raises ``FileNotFoundError`` if there are no files.
    """
    name = os.fspath(path)
    check_path(os.fsdecode(name) if isinstance(name, bytes) else name)
    if os.path.isdir(name):
        results: list[Path] = []
        for folder, folders, files in os.walk(name):
            folders[:] = sorted(inner for inner in folders if not inner.startswith((".", "_")))
            results += [os.path.join(folder, file) for file in sorted(files) if _has_json_extension(file)]
    elif glob.has_magic(name) and not os.path.lexists(name):
        results = [file for file in sorted(glob.glob(name, recursive=True)) if os.path.isfile(file)]
    elif os.path.lexists(name):
        return [path]
    else:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    if not results:
        raise FileNotFoundError(f"no JSON files in {name!r}; the extensions are {', '.join(sorted(_SUFFIXES))}")
    return results


def _has_json_extension(file: str) -> bool:
    """Return whether a file has an extension of JSON, compressed or not, and is not hidden."""
    stem, suffix = os.path.splitext(file)
    suffix = os.path.splitext(stem)[1] if suffix.lower() in CODECS else suffix
    return suffix.lower() in _SUFFIXES and not file.startswith((".", "_"))


def _iter_chunks(sources: list[Path | IO[bytes]], format: Form, size: int, max_bytes: int) -> Iterator[TextChunk]:
    """Yield the text of all sources in order, in chunks of complete lines or documents."""
    for source in sources:
        if isinstance(source, str | os.PathLike):
            yield from read_chunks(os.fspath(source), format, size, max_bytes)
        else:
            name = getattr(source, "name", None)
            yield from _iter_file_chunks(source, format, size, max_bytes, name if isinstance(name, str) else None)


def read_chunks(
    location: str | Location, format: Form, size: int, max_bytes: int, start: int = 0, stop: int | None = None
) -> Iterator[TextChunk]:
    """Yield the text of a file in chunks of complete lines or documents.

    If documents are lines, only lines that begin at or after byte ``start`` and before ``stop`` are read. Raises
    ``CorruptFileError`` if a compressed file is corrupt or truncated.
    """
    path = str(location)
    with codec_errors(path), open_stream(location, is_range=bool(start) or stop is not None) as file:
        yield from _iter_file_chunks(file, format, size, max_bytes, path, start, stop)


def _iter_file_chunks(
    file: Any, format: Form, size: int, max_bytes: int, path: str | None, start: int = 0, stop: int | None = None
) -> Iterator[TextChunk]:
    if format != "lines":
        file = _SniffedFile(file, min(max(size, 1 << 12), READ_BYTES))
        format = detect_layout(file.head, file.whole) if format == "auto" else format
    if format == "lines":
        for at, text in read_lines(file, start, stop, chunk_bytes=size, max_line_bytes=max_bytes, path=path):
            yield TextChunk(path, memoryview(text), None, at)
        return
    for text, ends, _ in read_documents(file, format, chunk_bytes=size, max_bytes=max_bytes, path=path):
        yield TextChunk(path, memoryview(text), ends)


class _SniffedFile:
    """File whose first bytes have been read to detect its layout. Its byte order mark is removed."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self.file = file
        self.head = b""
        self.whole = False
        while len(self.head) < size + 3 and not self.whole:
            more = file.read(size + 3 - len(self.head))
            self.whole = not more
            self.head += more or b""
        self.head = self.head.removeprefix(_BYTE_ORDER_MARK)
        self._remaining = memoryview(self.head)

    def read(self, size: int) -> bytes:
        """Read at most ``size`` bytes; return no bytes at the end."""
        if not self._remaining:
            return self.file.read(size)
        part, self._remaining = bytes(self._remaining[:size]), self._remaining[size:]
        return part
