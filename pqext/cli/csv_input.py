"""The CSV input of ``pqext convert``: record batches of types that the first rows suggest and that hold every value."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pqext.cli.input_format import suffix_of
from pqext.cli.inputs import Losses, OnError, Source, Stream, is_place, name_of, open_bytes
from pqext.core.base.errors import CorruptFileError, LimitError, ParquetError
from pqext.core.io.sources.streams import damage

if TYPE_CHECKING:
    import pyarrow as pa

    from pqext.core.io.sources.csv_text import Ended

BLOCK_BYTES = 8 << 20
"""Bytes of CSV that are read at a time; the first of these blocks decides the types."""
_SAMPLE_BYTES = (1 << 16) + 1
_TIME_OF_DAY = re.compile("%[HIMSTRXcpr]")
_INTEGER = r"^\s*[+-]?[0-9]+\s*$"
_LEADING_ZERO = r"^\s*0[0-9]"
_MAY_LEAD = re.compile(rb"(?:^|[^0-9.])0[0-9]")
_COMMENT = re.compile(r"got \d+: (#|%)")
_OVERFLOW = re.compile(r"error to int64: invalid value '\s*[+-]?0*([0-9]+)\s*'")
_TEXT_NOTE = "column {!r} has integers of more than 38 digits: they are text"
_TYPE_ADVICE = "; name the column's type with --types, STRING takes anything, or what means null with --null-words"
_ENCODING_ADVICE = "; pass --encoding with the encoding of the file, latin-1 for example"

T = TypeVar("T")


@dataclass(frozen=True)
class CsvForm:
    """Options for reading CSV files.

    ``known`` are types of columns that need not be there, ``wider`` those of columns whose guessed type was too narrow.
    """

    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    delimiter: str | None = None
    null_words: tuple[str, ...] = ()
    known: Mapping[str, pa.DataType] = field(default_factory=dict)
    wider: Mapping[str, pa.DataType] = field(default_factory=dict)
    encoding: str | None = None
    has_header: bool = True
    names: tuple[str, ...] = ()
    skip_rows: int = 0
    comment: str | None = None
    decimal_comma: bool = False
    date_formats: tuple[str, ...] = ()

    def delimiter_of(self, source: Source) -> str | None:
        """The character between the fields of ``source``; None if it is to be detected."""
        is_tabbed = is_place(source) and suffix_of(str(source)) in (".tsv", ".tab")
        return self.delimiter or ("\t" if is_tabbed else None)


class TooNarrow(Exception):
    """A value does not fit the type that the first rows suggested for its column; ``types`` hold it."""

    def __init__(self, reason: str, types: Mapping[str, pa.DataType]) -> None:
        super().__init__(reason)
        self.types = types


def csv(sources: Sequence[Source], form: CsvForm, on_error: OnError, losses: Losses) -> Stream:
    """The columns of CSV files with a heading, all of the first one's types.

    Types that ``form`` does not state are guessed from the first rows. Empty fields and those that are one of the null
    words are null in columns of all types, but text where they are in quotes.
    """
    return _CsvInput(sources, form, on_error, losses).stream()


def widened(form: CsvForm, narrow: TooNarrow, sources: Sequence[Source]) -> CsvForm:
    """``form`` for another reading of ``sources`` from their start, with types that hold the value.

    Raises ``CorruptFileError`` if the input is a pipe, which cannot be read again.
    """
    for source in sources:
        file: Any = None if is_place(source) else source
        if file is not None and not file.seekable():
            wider = "STRING" if str(*narrow.types.values()) == "string" else "DECIMAL(38,0)"
            raise CorruptFileError(f"{narrow}; name the column's type with --types, {wider} for example")
        if file is not None:
            file.seek(0)
    return replace(form, wider={**form.wider, **narrow.types})


@dataclass
class _Opened:
    """A file whose rows are read, and the delimiter between its fields."""

    source: Source
    end: Ended
    reader: Any
    delimiter: str


class _CsvInput:
    def __init__(self, sources: Sequence[Source], form: CsvForm, on_error: OnError, losses: Losses) -> None:
        self._sources, self._form, self._on_error, self._losses = sources, form, on_error, losses
        self._dates: set[str] = set()
        """Columns that are read as timestamps by the date formats, and become dates."""

    def stream(self) -> Stream:
        import pyarrow as pa

        from pqext.core.base.suggestions import excerpt, unknown_column_message

        form, source = self._form, self._sources[0]
        first = self._open(source, None)
        names = first.reader.schema.names
        other = _other_delimiter(names, first.delimiter)
        for name in form.types:
            if name not in names:
                raise ValueError(f"--types: {unknown_column_message(name, names)}{other}")
        if other:
            self._losses.add(f"{name_of(source)} has one column, {excerpt(names[0])!r}{other}", 0)
        for name, type in form.wider.items():
            if pa.types.is_string(type):
                self._losses.add(_TEXT_NOTE.format(name), 0)
        is_date = [one.name in self._dates for one in first.reader.schema]
        fields = zip(first.reader.schema, is_date, strict=True)
        schema = pa.schema([one.with_type(pa.date32()) if date else one for one, date in fields])
        return Stream(schema, self._batches(first, schema))

    def _batches(self, first: _Opened, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        from pqext.core.base.suggestions import excerpt

        types = {one.name: one.type for one in first.reader.schema}
        for index, source in enumerate(self._sources):
            opened = first if index == 0 else self._open(source, types)
            try:
                if opened.reader.schema.names != schema.names:
                    given = excerpt(str(opened.reader.schema.names))
                    raise CorruptFileError(
                        f"the file has other columns than {name_of(self._sources[0])}: {given}", path=name_of(source)
                    )
                row = self._form.skip_rows + bool(self._form.has_header and not self._form.names)
                while (batch := self._next(opened)) is not None:
                    yield self._as_dates(batch, schema, source, row)
                    row += batch.num_rows
            finally:
                opened.end.stop()
            if not opened.end.seen:
                reason = "a quote is not closed: all rows after it would be one field"
                raise CorruptFileError(reason, path=name_of(source))

    def _next(self, opened: _Opened) -> pa.RecordBatch | None:
        names = opened.reader.schema.names
        return self._named(lambda: next(opened.reader, None), opened.source, lambda: names, opened.delimiter)

    def _open(self, source: Source, types: Mapping[str, pa.DataType] | None) -> _Opened:
        """Open a file, whose columns have these types, or those that its first rows suggest."""
        from pqext.core.io.sources.csv_text import CsvText, Ended, detect_delimiter, repeated

        form, path = self._form, name_of(source)
        text = CsvText(open_bytes(source), encoding=form.encoding, skip_rows=form.skip_rows)
        sample = self._named(lambda: text.peek(_SAMPLE_BYTES), source)
        if form.encoding is None and sample[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise CorruptFileError("the text is UTF-16; pass --encoding utf-16", path=path)
        chosen = form.delimiter_of(source)
        delimiter = chosen or detect_delimiter(sample, comment=form.comment)
        if chosen is None and delimiter != ",":
            self._losses.add(f"{path}: {shown(delimiter)} is the delimiter; --delimiter chooses another", 0)
        if form.comment is not None:
            text = CsvText(text, comment=form.comment, delimiter=delimiter)
        if types is None:
            types = self._guess(self._named(partial(text.peek, BLOCK_BYTES), source), delimiter, source)
        end = Ended(text, delimiter)
        known = types
        try:
            reader = self._named(
                lambda: self._reader(end, delimiter, known, self._ragged(end, source)), source,
                lambda: self._names(end), delimiter,
            )  # fmt: skip
            twice = repeated(reader.schema.names)
            if twice is not None:
                raise CorruptFileError(f"two columns are called {twice!r}: give them different names", path=path)
        except BaseException:
            end.stop()
            raise
        return _Opened(source, end, reader, delimiter)

    def _reader(
        self, file: Any, delimiter: str, types: Mapping[str, pa.DataType], ragged: Callable[[Any], str],
        formats: Sequence[str] | None = None,
    ) -> Any:
        import pyarrow as pa
        import pyarrow.csv as pacsv

        form = self._form
        chosen = form.date_formats if formats is None else formats
        return pacsv.open_csv(
            pa.PythonFile(file, "r"),
            # With several threads Arrow does not report the row of an error.
            pacsv.ReadOptions(
                block_size=BLOCK_BYTES, use_threads=False, column_names=form.names or None,
                autogenerate_column_names=not (form.has_header or form.names),
            ),
            pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=ragged),
            pacsv.ConvertOptions(
                column_types=dict(types), null_values=["", *form.null_words], strings_can_be_null=True,
                quoted_strings_can_be_null=False, decimal_point="," if form.decimal_comma else ".",
                timestamp_parsers=[*chosen, pacsv.ISO8601] if chosen else None,
            ),
        )  # fmt: skip

    def _names(self, end: Ended) -> Sequence[str]:
        """The names of columns of a file of which a part has been read."""
        form = self._form
        return form.names or (end.names if form.has_header else [f"f{index}" for index in range(len(end.names))])

    def _ragged(self, end: Ended, source: Source) -> Callable[[Any], str]:
        """Return a function that decides on rows with a wrong number of fields and counts skipped rows."""
        from pqext.core.base.suggestions import excerpt

        def decide(row: Any) -> str:
            if end.is_met(row):
                return "skip"
            if self._on_error != "skip":
                return "error"
            there = f"{row.actual_columns} values for {row.expected_columns} columns: {excerpt(row.text)}"
            self._losses.add(f"{name_of(source)}: {there}")
            return "skip"

        return decide

    def _guess(self, sample: bytes, delimiter: str, source: Source) -> dict[str, pa.DataType]:
        """The types of all columns by the rows of the first block.

        Numbers with leading zeros, such as postal codes, are text, as in DuckDB. Integers that no INT64 holds make a
        DECIMAL(38,0), or text if they have more digits; Arrow would round them to doubles. Text that is not
        UTF-8, which Arrow would make binary, is left to fail as a string.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        from pqext.core.io.sources.csv_text import Ended, repeated
        from pqext.core.schema.types.arrow_compute import cast_exactly

        form = self._form
        fixed = {**form.known, **form.types, **form.wider}
        if form.date_formats:
            self._dates = {name for name, type in form.types.items() if pa.types.is_date32(type)}
            fixed |= dict.fromkeys(self._dates, pa.timestamp("s"))

        def heading() -> Sequence[str]:
            end = Ended(io.BytesIO(sample), delimiter)
            end.read(len(sample))
            return self._names(end)

        def first_rows(types: Mapping[str, pa.DataType], formats: Sequence[str] | None = None) -> Any:
            decide = "skip" if self._on_error == "skip" else "error"
            reader = self._reader(io.BytesIO(sample), delimiter, types, lambda row: decide, formats)
            _ = reader.schema.names  # which are decoded here
            batch = next(reader, None)
            return reader.schema.empty_table() if batch is None else pa.Table.from_batches([batch])

        def read(types: Mapping[str, pa.DataType], formats: Sequence[str] | None = None) -> Any:
            return self._named(lambda: first_rows(types, formats), source, heading, delimiter)

        schema = read(fixed).schema
        if repeated(schema.names) is not None:
            return fixed  # the reader of the whole file rejects the names
        guessed = {one.name: one.type for one in schema if one.name not in fixed}
        dates = [one for one in form.date_formats if not _TIME_OF_DAY.search(one)]
        if dates:
            seconds = pa.timestamp("s")
            found = {one.name for one in read(fixed, dates).schema if one.type == seconds and one.name in guessed}
            self._dates |= found
            guessed |= dict.fromkeys(found, seconds)
        guessed |= {name: pa.string() for name, type in guessed.items() if pa.types.is_binary(type)}
        doubles = [name for name, type in guessed.items() if pa.types.is_float64(type)]
        integers = [name for name, type in guessed.items() if pa.types.is_int64(type)]
        numbers = doubles + integers if _MAY_LEAD.search(sample) else doubles
        texts = read({**fixed, **guessed, **dict.fromkeys(numbers, pa.string())}) if numbers else None
        for name in numbers:
            values = pc.drop_null(texts[name])  # type: ignore[index]
            if pc.any(pc.match_substring_regex(values, _LEADING_ZERO)).as_py():
                guessed[name] = pa.string()
                continue
            is_double = pa.types.is_float64(guessed[name])
            if not (is_double and len(values) and pc.all(pc.match_substring_regex(values, _INTEGER)).as_py()):
                continue
            try:
                exact = pc.min_max(cast_exactly(pc.utf8_trim_whitespace(values), pa.decimal128(38, 0))).as_py()
            except pa.ArrowInvalid:
                self._losses.add(_TEXT_NOTE.format(name), 0)
                guessed[name] = pa.string()
                continue
            if not -(1 << 63) <= exact["min"] <= exact["max"] < 1 << 63:
                guessed[name] = pa.decimal128(38, 0)
        return {**fixed, **guessed}

    def _as_dates(self, batch: pa.RecordBatch, schema: pa.Schema, source: Source, row: int) -> pa.RecordBatch:
        """``batch`` with dates where date formats made timestamps; ``ValueError`` for one with a time of day."""
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
                    raise CorruptFileError(f"{where}: {column[differing]} is not a date", path=name_of(source))
                column = dates
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _named(
        self, read: Callable[[], T], source: Source, heading: Callable[[], Sequence[str]] = tuple,
        delimiter: str | None = None,
    ) -> T:
        """Return the result of ``read``; errors of pyarrow name the source, the row and the column."""
        import pyarrow as pa

        from pqext.core.io.sources.csv_text import column_of, is_bad_text, told_once, with_names

        try:
            with told_once(), damage(name_of(source)):
                return read()
        except ParquetError as error:
            error.locate(path=name_of(source))
            raise
        except UnicodeDecodeError:
            reason = f"the names of its columns are not UTF-8{_ENCODING_ADVICE}"
            raise CorruptFileError(reason, path=name_of(source)) from None
        except pa.ArrowInvalid as error:
            if "straddl" in str(error):
                reason = f"a row is longer than {BLOCK_BYTES:,} bytes; if it should not be, a quote is open"
                raise LimitError(reason, path=name_of(source)) from None
            text, names = " ".join(str(error).split()), heading()
            reason = with_names(text, names, self._form.skip_rows)
            index = column_of(text)
            if index is not None and index < len(names):
                wider = self._wider(names[index], text)
                if wider is not None:
                    raise TooNarrow(f"{name_of(source)}: {reason}", {names[index]: wider}) from None
            hint = "" if delimiter is None else _other_delimiter(names, delimiter)
            if is_bad_text(text):
                hint = _ENCODING_ADVICE
            elif not hint and index is not None:
                hint = _TYPE_ADVICE
            elif not hint:
                hint = self._comment_advice(text, names)
            raise CorruptFileError(f"{reason}{hint}", path=name_of(source)) from None

    def _comment_advice(self, reason: str, names: Sequence[str]) -> str:
        """A hint if a row with a wrong number of fields, or the heading, looks like a comment; else an empty string."""
        found = _COMMENT.search(reason)
        mark = found[1] if found is not None else names[0][:1] if names else ""
        if self._form.comment is not None or mark not in ("#", "%"):
            return ""
        return f"; pass --comment '{mark}' if lines that begin with {mark} are comments"

    def _wider(self, column: str, reason: str) -> pa.DataType | None:
        """The type for a guessed column on whose value pyarrow failed; None where none is exact."""
        import pyarrow as pa

        if column in self._form.types or column in self._form.known:
            return None
        if overflow := _OVERFLOW.search(reason):
            return pa.decimal128(38, 0) if len(overflow[1]) <= 38 else pa.string()
        if "precision not supported" in reason:
            return pa.string()
        return None


def _other_delimiter(names: Sequence[str], delimiter: str) -> str:
    """Return a hint if the heading is one name with another delimiter in it, else an empty string."""
    found = next((one for one in ";|\t" if len(names) == 1 and one in names[0] and one != delimiter), None)
    return "" if found is None else f"; --delimiter {shown(found)} may be meant"


def shown(delimiter: str) -> str:
    """A delimiter as it is written on the command line."""
    return "'{}'".format({"\t": r"\t"}.get(delimiter, delimiter))
