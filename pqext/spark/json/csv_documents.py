"""Read JSON documents and additional columns from CSV files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from pqext.core.base.errors import CorruptFileError, LimitError, ParquetError
from pqext.core.base.suggestions import did_you_mean
from pqext.core.base.text import escape_text
from pqext.core.io.sources.csv_text import (
    CsvText,
    EndMarkedFile,
    add_column_name,
    encoding_name,
    find_duplicate,
    is_encoding_error,
    suppress_arrow_messages,
)
from pqext.core.io.sources.store import Location
from pqext.core.io.sources.streams import open_stream
from pqext.variant.access.targets import target_type
from pqext.variant.json.faults import RawFault
from pqext.variant.json.parser import JsonParser

_BLOCK_BYTES = 32 << 20
_ONE_CHARACTER = ("delimiter", "quote", "escape")
_OPTIONS = ("columns", "comment", *_ONE_CHARACTER, "document", "encoding", "header", "null_words", "skip_rows")


@dataclass(frozen=True)
class CsvFormat:
    """Format of CSV files with documents in column ``document``, and the types of additional columns."""

    document: str
    columns: tuple[tuple[str, pa.DataType], ...] = ()
    delimiter: str = ","
    quote: str = '"'
    escape: str | None = None
    header: tuple[str, ...] | None = None
    """Names of all columns if the first line does not contain them."""
    null_words: tuple[str, ...] = ()
    """Unquoted fields that are null, in addition to empty fields."""
    encoding: str | None = None
    skip_rows: int = 0
    """Number of lines to skip at the start of each file."""
    comment: str | None = None
    """Character at the start of lines to skip."""

    @staticmethod
    def parse(options: Mapping[str, Any] | None, column: str) -> CsvFormat:
        """Parse argument ``csv``. ``column`` is the default of ``document``. Raises ``ValueError`` or ``TypeError``."""
        choice = dict(options or {})
        for name in choice:
            if name not in _OPTIONS:
                raise ValueError(f"unknown csv option {name!r}{did_you_mean(name, _OPTIONS)}")
        for name in (*_ONE_CHARACTER, "comment"):
            character = choice.get(name, "_")
            is_single = isinstance(character, str) and len(character) == 1 and character.isascii()
            if not is_single or character in "\0\r\n":
                raise ValueError(f"csv: {name} must be one ASCII character except line breaks, not {character!r}")
        if (delimiter := choice.get("delimiter", ",")) == choice.get("quote", '"'):
            raise ValueError(f"csv: delimiter and quote are the same character {delimiter!r}")
        skip_rows = choice.get("skip_rows", 0)
        if isinstance(skip_rows, bool) or not isinstance(skip_rows, int) or skip_rows < 0:
            raise ValueError(f"csv: skip_rows must be an integer of at least 0, not {skip_rows!r}")
        encoding = choice.get("encoding")
        if encoding is not None:
            if not isinstance(encoding, str):
                raise TypeError(f"csv: encoding must be a name such as latin-1, not {encoding!r}")
            encoding_name(encoding)
        columns = choice.pop("columns", {})
        if not isinstance(columns, Mapping):
            raise TypeError(f"csv: columns must map names to types, not a {type(columns).__name__}")
        typed = tuple((name, target_type(column_type)) for name, column_type in columns.items())
        for name, target in typed:
            if pa.types.is_nested(target):
                raise ValueError(f"csv: column {name!r} cannot be {target}: CSV fields are not nested")
        header = choice.pop("header", None)
        if header is not None and (isinstance(header, str) or not header):
            raise TypeError(f"csv: header must be a list with the name of each column, not {header!r}")
        words = choice.pop("null_words", ())
        if isinstance(words, str) or not all(isinstance(word, str) for word in words):
            raise TypeError(f"csv: null_words must be a list of strings, not {words!r}")
        for name in (*columns, *(header or ())):
            if not isinstance(name, str):
                raise TypeError(f"csv: the name of a column must be a string, not {name!r}")
        duplicate = find_duplicate(header or ())
        if duplicate is not None:
            raise ValueError(f"csv: header has two columns called {duplicate!r}")
        return CsvFormat(
            str(choice.pop("document", column)), typed, **choice, header=None if header is None else tuple(header),
            null_words=tuple(words),
        )

    def fields(self) -> list[pa.Field]:
        """Return the fields of the additional columns."""
        return [pa.field(name, type) for name, type in self.columns]


@dataclass(frozen=True)
class CsvRows:
    """Chunk of rows of a file: the documents and the additional columns."""

    path: str
    documents: pa.Array = field(repr=False)
    columns: pa.RecordBatch = field(repr=False)
    first: int
    """Number of the first row in the file."""
    start = 0

    @property
    def text(self) -> memoryview:
        """Text of all documents."""
        data = self.documents.buffers()[2]
        return memoryview(b"" if data is None else data)

    def parse(self, parser: JsonParser) -> tuple[str | None, list[pa.StructArray], list[RawFault], int]:
        """Parse the documents. Return path, documents, errors by row number, and 0, because lines are not counted."""
        try:
            arrays, errors = parser.parse_documents(self.documents)
        except ParquetError as error:
            error.locate(path=self.path)
            raise
        return self.path, arrays, [(self.first + row, offset, code, name) for row, offset, code, name in errors], 0

    def sample(self, parser: JsonParser, size: int) -> list[pa.StructArray]:
        """Parse the first documents, of about ``size`` bytes."""
        sizes = np.cumsum(pa.compute.binary_length(self.documents).to_numpy(zero_copy_only=False))
        rows = max(1, int(np.searchsorted(sizes, size)))
        return parser.for_sampling().parse_documents(self.documents.slice(0, rows))[0]


def read_csv_rows(location: str | Location, format: CsvFormat) -> Iterator[CsvRows]:
    """Yield the rows of a file in chunks. Rows are numbered from 1, including the header.

    Raises ``LimitError`` for a row longer than 32 MiB, and ``CorruptFileError`` if the file is not CSV, a column is
    missing, a field does not have the type of its column, or the file ends within quotes.
    """
    path = str(location)
    names = [format.document, *(name for name, _ in format.columns)]
    read = csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES, column_names=format.header)
    convert = csv.ConvertOptions(
        include_columns=names, column_types={format.document: pa.binary(), **dict(format.columns)},
        null_values=["", *format.null_words], strings_can_be_null=True, quoted_strings_can_be_null=False,
    )
    first = format.skip_rows + (1 if format.header is not None else 2)
    with open_stream(location) as file:
        text = CsvText(
            CsvText(file, encoding=format.encoding, skip_rows=format.skip_rows), comment=format.comment,
            delimiter=format.delimiter, quote=format.quote, escape=format.escape,
        )  # fmt: skip
        width = None if format.header is None else len(format.header)
        end = EndMarkedFile(text, format.delimiter, format.quote, format.escape, width)
        parse = csv.ParseOptions(
            delimiter=format.delimiter, quote_char=format.quote, escape_char=format.escape or False,
            newlines_in_values=True, invalid_row_handler=lambda row: "skip" if end.is_marker_line(row) else "error",
        )
        try:
            with suppress_arrow_messages():
                opened = csv.open_csv(pa.PythonFile(end, "r"), read, parse, convert)
            with opened as batches:
                duplicate = find_duplicate(name for name in end.names if name in names)
                if duplicate is not None and format.header is None:
                    raise CorruptFileError(f"two columns have the name {escape_text(duplicate)!r}", path=path)
                previous: pa.RecordBatch | None = None  # the last batch is not yielded before the file is checked
                while (batch := _read_batch(batches)) is not None:
                    if previous is not None:
                        yield _create_chunk(path, previous, first)
                        first += len(previous)
                    previous = batch
                if not end.seen:
                    raise CorruptFileError(f"a quote after row {first - 1} is not closed", path=path)
                if previous is not None and len(previous):
                    yield _create_chunk(path, previous, first)
        except (LimitError, CorruptFileError) as error:
            error.locate(path=path)
            raise
        except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as error:
            reason = str(error).splitlines()[0]
            if isinstance(error, ParquetError) or getattr(error, "errno", None) is not None:
                raise
            if reason == "Empty CSV file":
                return
            if "straddl" in reason:
                raise LimitError(
                    f"a row at or after row {first} is longer than {_BLOCK_BYTES} bytes",
                    path=path,
                ) from None
            advice = '; pass null fields as csv={"null_words": [...]}' if "conversion error" in reason else ""
            if is_encoding_error(reason):
                advice = '; pass the encoding as csv={"encoding": ...}, latin-1 for example'
            reason = add_column_name(reason, format.header or end.names, format.skip_rows)
            raise CorruptFileError(f"the file is not CSV in the expected format: {reason}{advice}", path=path) from None
        finally:
            end.stop()


def _create_chunk(path: str, rows: pa.RecordBatch, first: int) -> CsvRows:
    """Create a chunk of rows. A null document becomes empty text, which is not JSON."""
    return CsvRows(path, rows.column(0).fill_null(b""), rows.select(range(1, rows.num_columns)), first)


def _read_batch(batches: csv.CSVStreamingReader) -> pa.RecordBatch | None:
    with suppress_arrow_messages():
        return next(batches, None)
