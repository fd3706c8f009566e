"""CSV input of ``pqext convert``, with column types inferred from the first rows and widened if necessary."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pqext.cli.inputs import Losses, OnError, Source, Stream, is_location, name_of, open_bytes, suffix_of
from pqext.core.base.errors import CorruptFileError, LimitError, ParquetError
from pqext.core.io.sources.streams import codec_errors

if TYPE_CHECKING:
    import pyarrow as pa

    from pqext.core.io.sources.csv_text import EndMarkedFile

BLOCK_BYTES = 8 << 20
"""Bytes of a block of CSV; the first block determines the column types."""
_SAMPLE_BYTES = (1 << 16) + 1
_TIME_OF_DAY = re.compile("%[HIMSTRXcpr]")
_INTEGER = r"^\s*[+-]?[0-9]+\s*$"
_LEADING_ZERO = r"^\s*0[0-9]"
_MAY_LEAD = re.compile(rb"(?:^|[^0-9.])0[0-9]")
_COMMENT = re.compile(r"got \d+: (#|%)")
_OVERFLOW = re.compile(r"error to int64: invalid value '\s*[+-]?0*([0-9]+)\s*'")
_TEXT_NOTE = "column {!r} has integers of more than 38 digits and is read as text"
_TYPE_ADVICE = "; set the column type with --types (STRING accepts any value), or null values with --null-values"
_ENCODING_ADVICE = "; pass --encoding with the encoding of the file, latin-1 for example"

T = TypeVar("T")


@dataclass(frozen=True)
class CsvOptions:
    """Options for reading CSV files.

    ``types`` apply to columns that must exist, ``default_types`` to columns that may be missing, and ``widened_types``
    to columns whose inferred type was too narrow.
    """

    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    delimiter: str | None = None
    null_values: tuple[str, ...] = ()
    default_types: Mapping[str, pa.DataType] = field(default_factory=dict)
    widened_types: Mapping[str, pa.DataType] = field(default_factory=dict)
    encoding: str | None = None
    has_header: bool = True
    names: tuple[str, ...] = ()
    skip_rows: int = 0
    comment: str | None = None
    decimal_comma: bool = False
    date_formats: tuple[str, ...] = ()

    def delimiter_of(self, source: Source) -> str | None:
        """Return the field delimiter of ``source``; None if it must be detected."""
        is_tabbed = is_location(source) and suffix_of(str(source)) in (".tsv", ".tab")
        return self.delimiter or ("\t" if is_tabbed else None)


class TypeTooNarrowError(Exception):
    """Raised if a value does not fit the inferred column type. ``types`` maps the column to a wider type."""

    def __init__(self, reason: str, types: Mapping[str, pa.DataType]) -> None:
        super().__init__(reason)
        self.types = types


def read_csv(sources: Sequence[Source], options: CsvOptions, on_error: OnError, losses: Losses) -> Stream:
    """Read CSV files. The first file determines the column names and types.

    Types that ``options`` does not set are inferred from the first rows. Unquoted fields that are empty or listed in
    ``options.null_values`` are null in columns of all types.
    """
    return _CsvInput(sources, options, on_error, losses).stream()


def widen_types(options: CsvOptions, error: TypeTooNarrowError, sources: Sequence[Source]) -> CsvOptions:
    """Return options with the wider types in ``error``, and rewind ``sources`` so that they can be read again.

    Raises:
        CorruptFileError: If the input is a pipe, which cannot be read again.
    """
    for source in sources:
        file: Any = None if is_location(source) else source
        if file is not None and not file.seekable():
            wider = "STRING" if str(*error.types.values()) == "string" else "DECIMAL(38,0)"
            raise CorruptFileError(f"{error}; set the column type with --types, for example {wider}")
        if file is not None:
            file.seek(0)
    return replace(options, widened_types={**options.widened_types, **error.types})


@dataclass
class _OpenCsv:
    """An open CSV file and its delimiter."""

    source: Source
    end: EndMarkedFile
    reader: Any
    delimiter: str


class _CsvInput:
    def __init__(self, sources: Sequence[Source], options: CsvOptions, on_error: OnError, losses: Losses) -> None:
        self._sources, self._options, self._on_error, self._losses = sources, options, on_error, losses
        self._dates: set[str] = set()
        """Columns that are parsed as timestamps by the date formats and cast to dates."""

    def stream(self) -> Stream:
        import pyarrow as pa

        from pqext.core.base.suggestions import excerpt, unknown_column_message

        options, source = self._options, self._sources[0]
        first = self._open(source, None)
        names = first.reader.schema.names
        other = _delimiter_hint(names, first.delimiter)
        for name in options.types:
            if name not in names:
                raise ValueError(f"--types: {unknown_column_message(name, names)}{other}")
        if other:
            self._losses.add(f"{name_of(source)} has one column, {excerpt(names[0])!r}{other}", 0)
        for name, type in options.widened_types.items():
            if pa.types.is_string(type):
                self._losses.add(_TEXT_NOTE.format(name), 0)
        schema = pa.schema(
            [field.with_type(pa.date32()) if field.name in self._dates else field for field in first.reader.schema]
        )
        return Stream(schema, self._batches(first, schema))

    def _batches(self, first: _OpenCsv, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        from pqext.core.base.suggestions import excerpt

        types = {field.name: field.type for field in first.reader.schema}
        for index, source in enumerate(self._sources):
            opened = first if index == 0 else self._open(source, types)
            try:
                if opened.reader.schema.names != schema.names:
                    columns = excerpt(str(opened.reader.schema.names))
                    raise CorruptFileError(
                        f"the columns {columns} differ from the columns of {name_of(self._sources[0])}; "
                        "convert the files separately",
                        path=name_of(source),
                    )
                row = self._options.skip_rows + bool(self._options.has_header and not self._options.names)
                while (batch := self._next_batch(opened)) is not None:
                    yield self._cast_to_dates(batch, schema, source, row)
                    row += batch.num_rows
            finally:
                opened.end.stop()
            if not opened.end.seen:
                reason = "unclosed quote: all rows after it would be one field"
                raise CorruptFileError(reason, path=name_of(source))

    def _next_batch(self, csv_file: _OpenCsv) -> pa.RecordBatch | None:
        names = csv_file.reader.schema.names
        return self._locate_errors(
            lambda: next(csv_file.reader, None), csv_file.source, lambda: names, csv_file.delimiter
        )

    def _open(self, source: Source, types: Mapping[str, pa.DataType] | None) -> _OpenCsv:
        """Open a CSV file with columns of ``types``. If None, types are inferred from the first rows."""
        from pqext.core.io.sources.csv_text import CsvText, EndMarkedFile, detect_delimiter, find_duplicate

        options, path = self._options, name_of(source)
        text = CsvText(open_bytes(source), encoding=options.encoding, skip_rows=options.skip_rows)
        sample = self._locate_errors(lambda: text.peek(_SAMPLE_BYTES), source)
        if options.encoding is None and sample[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise CorruptFileError("the text is UTF-16; pass --encoding utf-16", path=path)
        fixed = options.delimiter_of(source)
        delimiter = fixed or detect_delimiter(sample, comment=options.comment)
        if fixed is None and delimiter != ",":
            self._losses.add(f"{path}: detected delimiter {quote_delimiter(delimiter)}; --delimiter overrides it", 0)
        if options.comment is not None:
            text = CsvText(text, comment=options.comment, delimiter=delimiter)
        if types is None:
            types = self._infer_types(self._locate_errors(partial(text.peek, BLOCK_BYTES), source), delimiter, source)
        end = EndMarkedFile(text, delimiter)
        column_types = types
        try:
            reader = self._locate_errors(
                lambda: self._reader(end, delimiter, column_types, self._row_handler(end, source)), source,
                lambda: self._column_names(end), delimiter,
            )
            duplicate = find_duplicate(reader.schema.names)
            if duplicate is not None:
                raise CorruptFileError(f"duplicate column name {duplicate!r}; rename one of the columns", path=path)
        except BaseException:
            end.stop()
            raise
        return _OpenCsv(source, end, reader, delimiter)

    def _reader(
        self, file: Any, delimiter: str, types: Mapping[str, pa.DataType], row_handler: Callable[[Any], str],
        formats: Sequence[str] | None = None,
    ) -> Any:
        import pyarrow as pa
        import pyarrow.csv as pacsv

        options = self._options
        date_formats = options.date_formats if formats is None else formats
        return pacsv.open_csv(
            pa.PythonFile(file, "r"),
            # With several threads, Arrow does not report the row of an error.
            pacsv.ReadOptions(
                block_size=BLOCK_BYTES, use_threads=False, column_names=options.names or None,
                autogenerate_column_names=not (options.has_header or options.names),
            ),
            pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=row_handler),
            pacsv.ConvertOptions(
                column_types=dict(types), null_values=["", *options.null_values], strings_can_be_null=True,
                quoted_strings_can_be_null=False, decimal_point="," if options.decimal_comma else ".",
                timestamp_parsers=[*date_formats, pacsv.ISO8601] if date_formats else None,
            ),
        )

    def _column_names(self, end: EndMarkedFile) -> Sequence[str]:
        """Return the column names from the options or the header row; ``f0``, ``f1`` and so on if both are missing."""
        options = self._options
        return options.names or (end.names if options.has_header else [f"f{index}" for index in range(len(end.names))])

    def _row_handler(self, end: EndMarkedFile, source: Source) -> Callable[[Any], str]:
        """Return a callback for pyarrow that skips rows with a wrong number of fields, or rejects them."""
        from pqext.core.base.suggestions import excerpt

        def decide(row: Any) -> str:
            if end.is_marker_line(row):
                return "skip"
            if self._on_error != "skip":
                return "error"
            reason = f"{row.actual_columns} values for {row.expected_columns} columns: {excerpt(row.text)}"
            self._losses.add(f"{name_of(source)}: {reason}")
            return "skip"

        return decide

    def _infer_types(self, sample: bytes, delimiter: str, source: Source) -> dict[str, pa.DataType]:
        """Infer the types of all columns from ``sample``, the first block of the file.

        Numbers with leading zeros, such as postal codes, are text, as in DuckDB. Integers beyond INT64 are
        DECIMAL(38,0), or text if they have more digits; Arrow would round them to doubles. Text that is not UTF-8,
        which Arrow would read as binary, is a string and fails later.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        from pqext.core.io.sources.csv_text import EndMarkedFile, find_duplicate
        from pqext.core.schema.types.arrow_compute import cast_exactly

        options = self._options
        fixed = {**options.default_types, **options.types, **options.widened_types}
        if options.date_formats:
            self._dates = {name for name, type in options.types.items() if pa.types.is_date32(type)}
            fixed |= dict.fromkeys(self._dates, pa.timestamp("s"))

        def get_names() -> Sequence[str]:
            end = EndMarkedFile(io.BytesIO(sample), delimiter)
            end.read(len(sample))
            return self._column_names(end)

        def first_rows(types: Mapping[str, pa.DataType], formats: Sequence[str] | None = None) -> Any:
            decide = "skip" if self._on_error == "skip" else "error"
            reader = self._reader(io.BytesIO(sample), delimiter, types, lambda row: decide, formats)
            _ = reader.schema.names  # raises an error for names that are not UTF-8
            batch = next(reader, None)
            return reader.schema.empty_table() if batch is None else pa.Table.from_batches([batch])

        def read(types: Mapping[str, pa.DataType], formats: Sequence[str] | None = None) -> Any:
            return self._locate_errors(lambda: first_rows(types, formats), source, get_names, delimiter)

        schema = read(fixed).schema
        if find_duplicate(schema.names) is not None:
            return fixed  # the reader of the complete file reports invalid names
        inferred = {field.name: field.type for field in schema if field.name not in fixed}
        date_only = [format for format in options.date_formats if not _TIME_OF_DAY.search(format)]
        if date_only:
            seconds = pa.timestamp("s")
            fields = read(fixed, date_only).schema
            dates = {field.name for field in fields if field.type == seconds and field.name in inferred}
            self._dates |= dates
            inferred |= dict.fromkeys(dates, seconds)
        inferred |= {name: pa.string() for name, type in inferred.items() if pa.types.is_binary(type)}
        doubles = [name for name, type in inferred.items() if pa.types.is_float64(type)]
        integers = [name for name, type in inferred.items() if pa.types.is_int64(type)]
        numbers = doubles + integers if _MAY_LEAD.search(sample) else doubles
        texts = read({**fixed, **inferred, **dict.fromkeys(numbers, pa.string())}) if numbers else None
        for name in numbers:
            values = pc.drop_null(texts[name])  # type: ignore[index]
            if pc.any(pc.match_substring_regex(values, _LEADING_ZERO)).as_py():
                inferred[name] = pa.string()
                continue
            is_double = pa.types.is_float64(inferred[name])
            if not (is_double and len(values) and pc.all(pc.match_substring_regex(values, _INTEGER)).as_py()):
                continue
            try:
                exact = pc.min_max(cast_exactly(pc.utf8_trim_whitespace(values), pa.decimal128(38, 0))).as_py()
            except pa.ArrowInvalid:
                self._losses.add(_TEXT_NOTE.format(name), 0)
                inferred[name] = pa.string()
                continue
            if not -(1 << 63) <= exact["min"] <= exact["max"] < 1 << 63:
                inferred[name] = pa.decimal128(38, 0)
        return {**fixed, **inferred}

    def _cast_to_dates(self, batch: pa.RecordBatch, schema: pa.Schema, source: Source, row: int) -> pa.RecordBatch:
        """Cast date columns, which are parsed as timestamps, to dates. Raises an error for times of day."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self._dates:
            return batch
        columns = []
        for column, target in zip(batch.columns, schema, strict=True):
            if target.name in self._dates:
                dates = column.cast(pa.date32())
                differing = pc.index(pc.not_equal(dates.cast(column.type), column), True).as_py()
                if differing >= 0:
                    where = f"row {row + differing + 1}, column {target.name!r}"
                    reason = f"{where}: {column[differing]} is not a date; set the column type with --types"
                    raise CorruptFileError(reason, path=name_of(source))
                column = dates
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _locate_errors(
        self, read: Callable[[], T], source: Source, get_names: Callable[[], Sequence[str]] = tuple,
        delimiter: str | None = None,
    ) -> T:
        """Call ``read`` and return its result. Convert pyarrow's errors to errors with source, row and column.

        An overflow of an inferred type raises :exc:`TypeTooNarrowError`.
        """
        import pyarrow as pa

        from pqext.core.io.sources.csv_text import (
            add_column_name,
            error_column,
            is_encoding_error,
            suppress_arrow_messages,
        )

        try:
            with suppress_arrow_messages(), codec_errors(name_of(source)):
                return read()
        except ParquetError as error:
            error.locate(path=name_of(source))
            raise
        except UnicodeDecodeError:
            reason = f"column names are not valid UTF-8{_ENCODING_ADVICE}"
            raise CorruptFileError(reason, path=name_of(source)) from None
        except pa.ArrowInvalid as error:
            if "straddl" in str(error):
                reason = f"a row exceeds {BLOCK_BYTES:,} bytes; check for an unclosed quote"
                raise LimitError(reason, path=name_of(source)) from None
            text, names = " ".join(str(error).split()), get_names()
            reason = add_column_name(text, names, self._options.skip_rows)
            index = error_column(text)
            if index is not None and index < len(names):
                wider = self._wider_type(names[index], text)
                if wider is not None:
                    raise TypeTooNarrowError(f"{name_of(source)}: {reason}", {names[index]: wider}) from None
            hint = "" if delimiter is None else _delimiter_hint(names, delimiter)
            if is_encoding_error(text):
                hint = _ENCODING_ADVICE
            elif not hint and index is not None:
                hint = _TYPE_ADVICE
            elif not hint:
                hint = self._comment_advice(text, names)
            raise CorruptFileError(f"{reason}{hint}", path=name_of(source)) from None

    def _comment_advice(self, reason: str, names: Sequence[str]) -> str:
        """Return a hint if an invalid row or the header row looks like a comment; otherwise an empty string."""
        match = _COMMENT.search(reason)
        mark = match[1] if match is not None else names[0][:1] if names else ""
        if self._options.comment is not None or mark not in ("#", "%"):
            return ""
        return f"; pass --comment '{mark}' if lines that begin with {mark} are comments"

    def _wider_type(self, column: str, reason: str) -> pa.DataType | None:
        """Return a wider type for an inferred column that pyarrow failed to parse.

        None if an option sets the type of the column, or if the type is not too narrow.
        """
        import pyarrow as pa

        if column in self._options.types or column in self._options.default_types:
            return None
        if overflow := _OVERFLOW.search(reason):
            return pa.decimal128(38, 0) if len(overflow[1]) <= 38 else pa.string()
        if "precision not supported" in reason:
            return pa.string()
        return None


def _delimiter_hint(names: Sequence[str], delimiter: str) -> str:
    """Return a hint if the only column name contains a different delimiter; otherwise an empty string."""
    others = (other for other in ";|\t" if len(names) == 1 and other in names[0] and other != delimiter)
    other = next(others, None)
    return "" if other is None else f"; try --delimiter {quote_delimiter(other)}"


def quote_delimiter(delimiter: str) -> str:
    """Return a delimiter in the notation of the command line."""
    return "'{}'".format({"\t": r"\t"}.get(delimiter, delimiter))
