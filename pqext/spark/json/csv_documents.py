"""JSON documents in a column of CSV files, and the other columns beside them."""

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
from pqext.core.io.sources.csv_text import CsvText, Ended, encoding_name, is_bad_text, repeated, told_once, with_names
from pqext.core.io.sources.store import Location
from pqext.core.io.sources.streams import open_stream
from pqext.variant.access.targets import target_type
from pqext.variant.json.faults import Found
from pqext.variant.json.parser import Parsing

_BLOCK_BYTES = 32 << 20
_ONE_CHARACTER = ("delimiter", "quote", "escape")
_OPTIONS = ("columns", "comment", *_ONE_CHARACTER, "document", "encoding", "header", "null_words", "skip_rows")


@dataclass(frozen=True)
class CsvForm:
    """How files of CSV hold documents: as the text of column ``document``, with other columns of these types."""

    document: str
    columns: tuple[tuple[str, pa.DataType], ...] = ()
    delimiter: str = ","
    quote: str = '"'
    escape: str | None = None
    header: tuple[str, ...] | None = None
    """The names of all columns in files whose first line does not hold them."""
    null_words: tuple[str, ...] = ()
    """Fields that are null, besides empty ones, where they are not in quotes."""
    encoding: str | None = None
    skip_rows: int = 0
    """Number of lines to skip at the start of each file."""
    comment: str | None = None
    """The character at the start of lines to skip."""

    @staticmethod
    def of(given: Mapping[str, Any] | None, column: str) -> CsvForm:
        """The choices of a user; ``column`` is the default of ``document``. Raises ``ValueError`` or ``TypeError``."""
        choice = dict(given or {})
        for name in choice:
            if name not in _OPTIONS:
                raise ValueError(f"csv has no choice {name!r}{did_you_mean(name, _OPTIONS)}")
        for name in (*_ONE_CHARACTER, "comment"):
            one = choice.get(name, "_")
            if not isinstance(one, str) or len(one) != 1 or not one.isascii() or one in "\0\r\n":
                raise ValueError(f"csv: {name} is one ASCII character that ends no line, not {one!r}")
        if choice.get("delimiter", ",") == choice.get("quote", '"'):
            raise ValueError("csv: delimiter and quote are the same character")
        skip_rows = choice.get("skip_rows", 0)
        if isinstance(skip_rows, bool) or not isinstance(skip_rows, int) or skip_rows < 0:
            raise ValueError(f"csv: skip_rows is a number of lines, not {skip_rows!r}")
        encoding = choice.get("encoding")
        if encoding is not None:
            if not isinstance(encoding, str):
                raise TypeError(f"csv: encoding is a name such as latin-1, not {encoding!r}")
            encoding_name(encoding)
        columns = choice.pop("columns", {})
        if not isinstance(columns, Mapping):
            raise TypeError(f"csv: columns maps names to types, not a {type(columns).__name__}")
        typed = tuple((name, target_type(kind)) for name, kind in columns.items())
        for name, kind in typed:
            if pa.types.is_nested(kind):
                raise ValueError(f"csv: column {name!r} cannot be {kind}, which a field of CSV does not hold")
        header = choice.pop("header", None)
        if header is not None and (isinstance(header, str) or not header):
            raise TypeError(f"csv: header is a list with the name of each column, not {header!r}")
        words = choice.pop("null_words", ())
        if isinstance(words, str) or not all(isinstance(word, str) for word in words):
            raise TypeError(f"csv: null_words is a list of words, not {words!r}")
        for name in (*columns, *(header or ())):
            if not isinstance(name, str):
                raise TypeError(f"csv: a column has a name, not {name!r}")
        twice = repeated(header or ())
        if twice is not None:
            raise ValueError(f"csv: header has two columns called {twice!r}")
        return CsvForm(
            str(choice.pop("document", column)), typed, **choice, header=None if header is None else tuple(header),
            null_words=tuple(words),
        )

    def fields(self) -> list[pa.Field]:
        """The columns beside the documents."""
        return [pa.field(name, kind) for name, kind in self.columns]


@dataclass(frozen=True)
class CsvPiece:
    """Some rows of a file: the documents, and the other columns."""

    path: str
    documents: pa.Array = field(repr=False)
    beside: pa.RecordBatch = field(repr=False)
    first: int
    """The number of the first row in the file."""
    start = 0

    @property
    def text(self) -> memoryview:
        """The text of all documents."""
        data = self.documents.buffers()[2]
        return memoryview(b"" if data is None else data)

    def parsed(self, how: Parsing) -> tuple[str | None, list[pa.StructArray], list[Found], int]:
        """The path, the documents, the faults by their rows in the file, and 0: nothing is to be added to these."""
        try:
            arrays, found = how.documents(self.documents)
        except ParquetError as error:
            error.locate(path=self.path)
            raise
        return self.path, arrays, [(self.first + row, at, code, name) for row, at, code, name in found], 0

    def sample(self, how: Parsing, size: int) -> list[pa.StructArray]:
        """The first documents, of about ``size`` bytes."""
        sizes = np.cumsum(pa.compute.binary_length(self.documents).to_numpy(zero_copy_only=False))
        rows = max(1, int(np.searchsorted(sizes, size)))
        return how.unshredded().documents(self.documents.slice(0, rows))[0]


def csv_pieces(place: str | Location, form: CsvForm) -> Iterator[CsvPiece]:
    """The rows of a file, some MiB at a time. Rows are numbered from 1, with the header if there is one.

    Raises ``LimitError`` for a row longer than 32 MiB, and ``CorruptFileError`` for a file that is no CSV, lacks a
    column, holds a field that is not of its type or ends within quotes.
    """
    path = str(place)
    names = [form.document, *(name for name, _ in form.columns)]
    read = csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES, column_names=form.header)
    convert = csv.ConvertOptions(
        include_columns=names, column_types={form.document: pa.binary(), **dict(form.columns)},
        null_values=["", *form.null_words], strings_can_be_null=True, quoted_strings_can_be_null=False,
    )
    first = form.skip_rows + (1 if form.header is not None else 2)
    with open_stream(place) as file:
        text = CsvText(
            CsvText(file, encoding=form.encoding, skip_rows=form.skip_rows), comment=form.comment,
            delimiter=form.delimiter, quote=form.quote, escape=form.escape,
        )  # fmt: skip
        end = Ended(text, form.delimiter, form.quote, form.escape, None if form.header is None else len(form.header))
        parse = csv.ParseOptions(
            delimiter=form.delimiter, quote_char=form.quote, escape_char=form.escape or False,
            newlines_in_values=True, invalid_row_handler=lambda row: "skip" if end.is_met(row) else "error",
        )
        try:
            with told_once():
                opened = csv.open_csv(pa.PythonFile(end, "r"), read, parse, convert)
            with opened as batches:
                twice = repeated(name for name in end.names if name in names)
                if twice is not None and form.header is None:
                    raise CorruptFileError(f"two columns are called {escape_text(twice)!r}", path=path)
                held: pa.RecordBatch | None = None  # the last one is not given before all is known to be rows
                while (batch := _next(batches)) is not None:
                    if held is not None:
                        yield _piece(path, held, first)
                        first += len(held)
                    held = batch
                if not end.seen:
                    raise CorruptFileError(f"a quote behind row {first - 1} is not closed", path=path)
                if held is not None and len(held):
                    yield _piece(path, held, first)
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
                raise LimitError(f"a row from row {first} on is longer than {_BLOCK_BYTES} bytes", path=path) from None
            advice = '; csv={"null_words": [...]} names fields that are null' if "conversion error" in reason else ""
            if is_bad_text(reason):
                advice = '; csv={"encoding": ...} names the encoding, latin-1 for example'
            reason = with_names(reason, form.header or end.names, form.skip_rows)
            raise CorruptFileError(f"the file is not the CSV that is expected: {reason}{advice}", path=path) from None
        finally:
            end.stop()


def _piece(path: str, rows: pa.RecordBatch, first: int) -> CsvPiece:
    """The rows; one that lacks its document has an empty one, which is no JSON."""
    return CsvPiece(path, rows.column(0).fill_null(b""), rows.select(range(1, rows.num_columns)), first)


def _next(batches: csv.CSVStreamingReader) -> pa.RecordBatch | None:
    with told_once():
        return next(batches, None)
