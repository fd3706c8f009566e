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
from pqext.variant.json.faults import Found, line_error, line_fault
from pqext.variant.json.parser import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_DEPTH,
    DuplicateKeys,
    Numbers,
    OnError,
    Parsing,
    parsing,
)
from pqext.variant.shredding.shredder import build_binary
from pqext.variant.types import variant_field

Path: TypeAlias = "str | os.PathLike[str]"
_SUFFIXES = (".json", ".ndjson", ".jsonl", ".geojsonl")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class FileFault:
    """Line of a file that is not JSON. ``path`` is None if the source is not a path."""

    path: str | None
    line: int
    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class Piece:
    """Text from a file, starting at byte ``start``: complete lines, or documents with the offset of each end."""

    path: str | None
    text: memoryview
    ends: NDArray[np.int64] | None = None
    start: int = 0

    def parse(self, parsing: Parsing) -> tuple[str | None, list[pa.StructArray], list[Found], int]:
        """Parse the text; return the path, the rows, the faults by line, and the number of lines."""
        try:
            if self.ends is None:
                return self.path, *parsing.lines(self.text)
            arrays, faults = parsing.documents(_texts(self.text, self.ends))
            starts = np.concatenate([[0], self.ends[:-1]])
            whole = bytes(self.text)
            located = [
                _locate_in_line(whole, int(starts[row]) + offset, code, name) for row, offset, code, name in faults
            ]
            return self.path, arrays, located, whole.count(b"\n")
        except ParquetError as error:
            error.locate(path=self.path)
            raise

    def sample(self, parsing: Parsing, size: int = SAMPLE_BYTES) -> list[pa.StructArray]:
        """Parse the first ``size`` bytes and return the rows, for schema inference."""
        if self.ends is None:
            return parsing.for_samples().lines(first_lines(self.text, size))[0]
        ends = self.ends[: max(1, int(np.searchsorted(self.ends, size)))]
        return parsing.for_samples().documents(_texts(self.text[: int(ends[-1])], ends))[0]


def _texts(text: memoryview, stops: NDArray[np.int64]) -> pa.Array:
    offsets = np.concatenate([[0], stops]).astype(np.int64)
    return build_binary(pa.large_binary(), len(stops), offsets, text)


def _locate_in_line(text: bytes, offset: int, code: int, name: bytes | None) -> Found:
    """Convert a fault at a byte of the text to a fault at a byte of its line."""
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
        parsing: Parsing,
        threads: int,
        pieces: Callable[[], Iterator[Piece]],
    ) -> None:
        self.faults: list[FileFault] = []
        """Faults in the documents of the last batch."""
        self._sources = sources
        self._parsing = parsing
        self._column = column
        self._threads = threads
        self._make = pieces
        self._peeked: Iterator[Piece] | None = None
        self._read_before = False

    def __repr__(self) -> str:
        names = [os.fspath(s) if isinstance(s, str | os.PathLike) else f"<{type(s).__name__}>" for s in self._sources]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        schema = "schema to be inferred" if self._parsing.undecided is not None else self._parsing.type
        return f"JsonReader({', '.join(map(repr, names[:3]))}{more}; {self._column}: {schema})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    def _pieces(self) -> Iterator[Piece]:
        """Return an iterator over the text of the files, including the text from which the schema was inferred.

        Raises ``ValueError`` if a file object was read before.
        """
        if self._peeked is not None:
            pieces, self._peeked = self._peeked, None
            return pieces
        if self._read_before and not all(isinstance(source, str | os.PathLike) for source in self._sources):
            raise ValueError("a file object can be read only once; pass its path to read_json instead")
        self._read_before = True
        return self._make()

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches. If it must be inferred, the first documents are read."""
        if self._parsing.undecided is not None:
            pieces = self._pieces()
            first = list(islice(pieces, 1))
            self._peeked = chain(first, pieces)
            sample = first[0].sample(self._parsing) if first else []
            self._parsing = self._parsing.with_inferred_schema(
                pa.chunked_array(sample, type=self._parsing.for_samples().type)
            )
        if self._parsing.schema is None:
            return pa.schema([variant_field(self._column)])
        return pa.schema([pa.field(self._column, self._parsing.type)])

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        return self._read(schema, self._pieces())

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

    def _read(self, schema: pa.Schema, pieces: Iterator[Piece]) -> Iterator[pa.RecordBatch]:
        how = self._parsing
        path: str | None = None
        before = 0

        def parse(piece: Piece) -> tuple[bytes, str | None, list[pa.StructArray], list[Found], int]:
            return bytes(piece.text[:4]), *piece.parse(how)

        with (
            Workers(self._threads, self._threads) as workers,
            closing(workers.map_ahead(parse, pieces, self._threads)) as results,
        ):
            for head, found_in, arrays, result, lines in results:
                if found_in != path:
                    path, before = found_in, 0
                if result and how.raises:
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
    how = parsing(numbers, on_error, duplicate_keys, max_depth, max_bytes, shredding)
    if batch_bytes < 1:
        raise ValueError(f"batch_bytes must be positive, not {batch_bytes}")
    if format not in get_args(Form):
        raise ValueError(f"format must be one of {', '.join(map(repr, get_args(Form)))}, not {format!r}")
    if not isinstance(column, str):
        raise TypeError(f"column must be a name, not {type(column).__name__}")
    workers = thread_count(threads)
    sources: list[Path | IO[bytes]]
    if isinstance(source, str | os.PathLike):
        sources = [*_files(source)]
    elif isinstance(source, Sequence) and all(
        isinstance(item, str | os.PathLike) or hasattr(item, "read") for item in source
    ):
        sources = [file for one in source for file in (_files(one) if isinstance(one, str | os.PathLike) else [one])]
    elif not isinstance(source, Sequence) and hasattr(source, "read"):
        sources = [source]
    else:
        raise TypeError(f"source must be a path, a list of paths or a binary file, not {type(source).__name__}")
    return JsonReader(
        sources, column, how, workers, lambda: _all_pieces(sources, format, batch_bytes, how.max_bytes)
    )


def _files(path: Path) -> list[Path]:
    """Return the files for a path, a pattern or a folder, sorted by name. Raises ``FileNotFoundError`` for none."""
    name = os.fspath(path)
    check_path(os.fsdecode(name) if isinstance(name, bytes) else name)
    if os.path.isdir(name):
        results: list[Path] = []
        for folder, folders, files in os.walk(name):
            folders[:] = sorted(inner for inner in folders if not inner.startswith((".", "_")))
            results += [os.path.join(folder, file) for file in sorted(files) if _is_json(file)]
    elif glob.has_magic(name) and not os.path.lexists(name):
        results = [file for file in sorted(glob.glob(name, recursive=True)) if os.path.isfile(file)]
    elif os.path.lexists(name):
        return [path]
    else:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    if not results:
        raise FileNotFoundError(f"no JSON files at {name!r}")
    return results


def _is_json(file: str) -> bool:
    stem, suffix = os.path.splitext(file)
    suffix = os.path.splitext(stem)[1] if suffix.lower() in CODECS else suffix
    return suffix.lower() in _SUFFIXES and not file.startswith((".", "_"))


def _all_pieces(sources: list[Path | IO[bytes]], format: Form, size: int, max_bytes: int) -> Iterator[Piece]:
    """Yield chunks of complete lines or documents of every source, in order."""
    for source in sources:
        if isinstance(source, str | os.PathLike):
            yield from pieces_at(os.fspath(source), format, size, max_bytes)
        else:
            name = getattr(source, "name", None)
            yield from _pieces_of(source, format, size, max_bytes, name if isinstance(name, str) else None)


def pieces_at(
    location: str | Location, format: Form, size: int, max_bytes: int, start: int = 0, stop: int | None = None
) -> Iterator[Piece]:
    """Yield chunks of complete lines or documents of a file.

    Of lines, those that begin at or after byte ``start`` and before ``stop`` are read. Raises ``CorruptFileError`` if a
    compressed file is corrupt or truncated.
    """
    path = str(location)
    with codec_errors(path), open_stream(location, is_range=bool(start) or stop is not None) as file:
        yield from _pieces_of(file, format, size, max_bytes, path, start, stop)


def _pieces_of(
    file: Any, format: Form, size: int, max_bytes: int, path: str | None, start: int = 0, stop: int | None = None
) -> Iterator[Piece]:
    if format != "lines":
        file = _SniffedFile(file, min(max(size, 1 << 12), READ_BYTES))
        format = detect_layout(file.head, file.whole) if format == "auto" else format
    if format == "lines":
        for at, text in read_lines(file, start, stop, piece_bytes=size, max_line_bytes=max_bytes, path=path):
            yield Piece(path, memoryview(text), None, at)
        return
    for text, ends, _ in read_documents(file, format, piece_bytes=size, max_bytes=max_bytes, path=path):
        yield Piece(path, memoryview(text), ends)


class _SniffedFile:
    """File whose first bytes have been read to detect its layout, without its byte order mark."""

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
