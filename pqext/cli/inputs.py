"""The inputs of ``pqext convert`` as streams of record batches: JSON, CSV, GeoJSON and Parquet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard, TypeVar

from pqext.core.sources.streams import CODECS, codec_of, open_stream

if TYPE_CHECKING:
    import pyarrow as pa

    from pqext.core.sources.store import Location

CSV_BLOCK_BYTES = 8 << 20
"""Bytes of CSV that are read at a time; the first of these blocks decides the types."""
MAX_TOLD = 5
"""Faults that are told one by one."""

_SUFFIXES = {
    ".parquet": "parquet", ".parq": "parquet", ".csv": "csv", ".tsv": "csv", ".tab": "csv",
    ".json": "json", ".jsonl": "json", ".ndjson": "json", ".geojson": "geojson", ".geojsonl": "geojson",
    ".geojsons": "geojson", ".geojsonseq": "geojson",
}


class Format(StrEnum):
    """What the inputs hold."""

    json = "json"
    csv = "csv"
    geojson = "geojson"
    parquet = "parquet"


@dataclass
class Losses:
    """What was left out or became null on the way: how many rows, and about the first of them."""

    count: int = 0
    told: list[str] = field(default_factory=list)

    def add(self, text: str, count: int = 1) -> None:
        """Note a fault."""
        self.count += count
        if len(self.told) < MAX_TOLD:
            self.told.append(text)


@dataclass(frozen=True)
class Stream:
    """Record batches of one schema; they can be read once."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


T = TypeVar("T")
Source: TypeAlias = "str | IO[bytes] | Location"
"""A local path, an open file, or a place in a store."""
OnError = Literal["stop", "null", "skip"]


def format_of(sources: Sequence[Source]) -> Format:
    """The format of all ``sources`` by the ends of their names, JSON for any other; ``ValueError`` when they differ."""
    found = {_format(str(source)) for source in sources if _is_place(source)} or {Format.json}
    if len(found) > 1:
        raise ValueError(f"the inputs are of several formats ({', '.join(sorted(found))}): convert them one by one")
    return found.pop()


def _format(path: str) -> Format:
    return named_format(path) or Format.json


def named_format(path: str) -> Format | None:
    """The format that the end of a name tells, None where it tells none."""
    found = _SUFFIXES.get(_suffix(path))
    return None if found is None else Format(found)


def _suffix(path: str) -> str:
    """The end of the name in lower case, without that of a compressed file."""
    stem, suffix = os.path.splitext(path)
    return os.path.splitext(stem)[1].lower() if suffix.lower() in CODECS else suffix.lower()


def json_documents(
    sources: Sequence[Source], column: str, shredding: Any, on_error: OnError, losses: Losses, **options: Any
) -> Stream:
    """One VARIANT column, with one row for each document."""
    from pqext.variant.json.faults import placed
    from pqext.variant.json.files import read_json

    source: Any = [one if isinstance(one, str) else _bytes(one) for one in sources]
    raises: Literal["raise", "null"] = "raise" if on_error == "stop" else "null"
    reader = read_json(source, column=column, shredding=shredding, on_error=raises, **options)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            for fault in reader.faults:
                losses.add(placed(fault, fault.path))
            # A line that is not JSON is a null row, and no other is: JSON's null is a variant.
            yield batch.filter(batch.column(0).is_valid()) if on_error == "skip" and reader.faults else batch

    return Stream(reader.schema, batches())


@dataclass(frozen=True)
class CsvForm:
    """How files of CSV are read: the types of some columns, the delimiter by the file's name, and words for null.

    ``known`` are types of columns that need not be there.
    """

    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    delimiter: str | None = None
    null_words: tuple[str, ...] = ()
    known: Mapping[str, pa.DataType] = field(default_factory=dict)

    def delimiter_of(self, source: Source) -> str:
        """The character between the fields of ``source``."""
        is_tabbed = _is_place(source) and _suffix(str(source)) in (".tsv", ".tab")
        return self.delimiter or ("\t" if is_tabbed else ",")


def csv(sources: Sequence[Source], form: CsvForm, on_error: OnError, losses: Losses) -> Stream:
    """The columns of CSV files with a heading, all of the first one's types.

    Types that ``form`` does not tell are guessed from the first rows. Empty fields and those that are one of the null
    words are null in columns of all types, but text where they are in quotes.
    """
    import pyarrow as pa
    import pyarrow.csv as pacsv

    from pqext.core.sources.csv_ends import Ended, repeated
    from pqext.core.suggest import around

    def opened(source: Source, known: Mapping[str, pa.DataType]) -> tuple[Any, Ended]:
        def ragged(row: Any) -> str:
            if end.is_met(row):
                return "skip"
            if on_error != "skip":
                return "error"
            there = f"{row.actual_columns} values for {row.expected_columns} columns: {around(row.text)}"
            losses.add(f"{_name(source)}: {there}")
            return "skip"

        delimiter = form.delimiter_of(source)
        end = Ended(_bytes(source), delimiter)
        opening[:] = [end]
        try:
            reader = pacsv.open_csv(
                pa.PythonFile(end, "r"),
                pacsv.ReadOptions(block_size=CSV_BLOCK_BYTES),
                pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=ragged),
                pacsv.ConvertOptions(
                    column_types=dict(known), null_values=["", *form.null_words], strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            twice = repeated(reader.schema.names)
            if twice is not None:
                raise ValueError(f"{_name(source)}: two columns are called {twice!r}: give them different names")
        except UnicodeDecodeError:
            end.stop()
            raise ValueError(f"{_name(source)}: the names of its columns are no UTF-8") from None
        except BaseException:
            end.stop()
            raise
        return reader, end

    def told(read: Callable[[], T], source: Source) -> T:
        def other() -> str:
            return _other_delimiter(opening[-1].names, form.delimiter_of(source)) if opening else ""

        return _told(read, source, other)

    opening: list[Ended] = []
    first = told(partial(opened, sources[0], {**form.known, **form.types}), sources[0])
    schema: pa.Schema = first[0].schema
    other = _other_delimiter(schema.names, form.delimiter_of(sources[0]))
    for name in form.types:
        if name not in schema.names:
            from pqext.core.suggest import not_a_column

            raise ValueError(f"--types: {not_a_column(name, schema.names)}{other}")
    if other:
        losses.add(f"{_name(sources[0])} has one column, {around(schema.names[0])!r}{other}", 0)

    def batches() -> Iterator[pa.RecordBatch]:
        known = {one.name: one.type for one in schema}
        for index, source in enumerate(sources):
            reader, end = first if index == 0 else told(partial(opened, source, known), source)
            try:
                if reader.schema.names != schema.names:
                    names = around(str(reader.schema.names))
                    raise ValueError(f"{_name(source)} has other columns than {_name(sources[0])}: {names}")
                while (batch := told(partial(next, reader, None), source)) is not None:
                    yield batch
            finally:
                end.stop()
            if not end.seen:
                raise ValueError(f"{_name(source)}: a quote is not closed: all rows behind it would be one field")

    return Stream(schema, batches())


def _other_delimiter(names: Sequence[str], delimiter: str) -> str:
    """What to say of a heading that is one name with another delimiter in it; nothing of any other."""
    found = next((one for one in ";|\t" if len(names) == 1 and one in names[0] and one != delimiter), None)
    return "" if found is None else "; --delimiter '{}' may be meant".format({"\t": r"\t"}.get(found, found))


def _told(read: Callable[[], T], source: Source, other: Callable[[], str]) -> T:
    """What ``read`` gives; an error of pyarrow's names the source."""
    import pyarrow as pa

    from pqext.core.errors import ParquetError
    from pqext.core.sources.csv_ends import told_once

    advice = "; name the column's type with --types, STRING takes anything, or what means null with --null-words"
    try:
        with told_once():
            return read()
    except ParquetError as error:
        error.locate(path=_name(source))
        raise
    except pa.ArrowInvalid as error:
        if "straddl" in str(error):
            raise ValueError(
                f"{_name(source)}: a row is longer than {CSV_BLOCK_BYTES:,} bytes; if it should not be, a quote is open"
            ) from None
        hint = other() or (advice if "conversion error" in str(error) else "")
        raise ValueError(f"{_name(source)}: {' '.join(str(error).split())}{hint}") from None


def geojson(sources: Sequence[Source], geometry: str) -> Stream:
    """The features of GeoJSON files: their geometries and one column for each property, all held in memory."""
    import pyarrow as pa

    from pqext.geo.text.geojson import read_geojson

    tables = []
    for source in sources:
        plain = isinstance(source, str) and os.path.splitext(source)[1].lower() not in CODECS
        tables.append(read_geojson(source if isinstance(source, str) and plain else _bytes(source).read(), geometry))
        if tables[-1].schema.field(geometry).metadata != tables[0].schema.field(geometry).metadata:
            raise ValueError(f"{_name(source)} has its geometries in another CRS than {_name(sources[0])}")
    table = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    return Stream(table.schema, iter(table.to_batches()))


def parquet(sources: Sequence[Source]) -> Stream:
    """The rows of Parquet files, with whole variants."""
    from pqext.dataset.reading import scan

    if not all(_is_place(source) for source in sources):
        raise ValueError("Parquet is read from files only, because its footer comes last")
    found = scan(list(sources))
    return Stream(found.schema, found.to_batches())


def _is_place(source: Source) -> TypeGuard[str | Location]:
    """Is this a path or a place in a store, and no open file?"""
    return not hasattr(source, "read")


def _bytes(source: Source) -> Any:
    """The bytes of a path or a place, decompressed, or of an open file."""
    import pyarrow as pa

    if isinstance(source, str) and codec_of(source) is None:
        return pa.OSFile(source)  # which closes itself
    return open_stream(source) if _is_place(source) else source


def _name(source: Source) -> str:
    return str(source) if _is_place(source) else "standard input"
