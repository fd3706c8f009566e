"""``pqext convert IN... OUT``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import click

from pqext.cli.choices import CheckRange, DuplicateKeys, Edges, FooterForm, Form, Numbers, OnError, Order, Profile
from pqext.cli.columns import hint, parse_made, with_made
from pqext.cli.convert_options import (
    Comment,
    DateFormat,
    DecimalComma,
    Delimiter,
    Encoding,
    Names,
    NoHeader,
    NullWords,
    SkipRows,
    Types,
    checkpoint_of,
    columns_of,
    crs_and_edges,
    csv_form,
    writer_options,
)
from pqext.cli.csv_input import CsvForm, TooNarrow, csv, widened
from pqext.cli.declarations import Argument, Option
from pqext.cli.files import refusals
from pqext.cli.input_format import Format, format_of, named_format
from pqext.cli.inputs import MAX_TOLD, Losses, Source, Stream, geojson, json_documents, parquet
from pqext.cli.locations import Anonymous, Place, Storage, placed
from pqext.cli.outputs import Force, binary_output, check_new, named
from pqext.cli.progress import progress
from pqext.cli.reader_options import DEFAULTS, Reading
from pqext.cli.scan_arguments import IgnoreTableFormat
from pqext.cli.shredding import MAX_TEXT, stated
from pqext.cli.standard_input import STREAM, stored
from pqext.core.base.limits import ROW_GROUP_ROWS
from pqext.core.base.text import escape_text, format_size, shorten, with_noun
from pqext.core.io.sink import refuse_append_to_store
from pqext.dataset.computed_columns import Kind, Made

_FORMAT = "Input"
_COLUMNS = "Columns"
_FILE = "The file that is written"
_VARIANT = "value"
"""The VARIANT column of JSON input."""


def option(*names: str, help: str, panel: str = _FILE, metavar: str | None = None, shown: bool | str = False) -> Any:
    """An option within a panel of the help."""
    return Option(*names, help=help, panel=panel, metavar=metavar, show_default=shown)


def command(
    inputs: Annotated[
        list[str] | None,
        Argument(
            metavar="IN...", show_default=False, help="Files, patterns or folders to read; - is standard input."
        ),
    ] = None,
    *,
    dest: Annotated[
        str, Argument(metavar="OUT", show_default=False, help="The Parquet file; - is standard output.")
    ],
    format: Annotated[
        Format | None,
        option("--from", help="What the inputs hold; their names tell by default.", panel=_FORMAT),
    ] = None,
    variant: Annotated[
        str | None, option("--variant", help="JSON: the name of the VARIANT column.", panel=_FORMAT, metavar="NAME",
                           shown=_VARIANT),
    ] = None,
    on_error: Annotated[
        OnError,
        option("--on-error", help="Text that cannot be read stops the work, becomes null, or its row is left out.",
               panel=_FORMAT, shown=True),
    ] = OnError.stop,
    numbers: Annotated[
        Numbers, option("--numbers", help="JSON: what numbers with a fraction become.", panel=_FORMAT, shown=True)
    ] = Numbers.decimal,
    duplicate_keys: Annotated[
        DuplicateKeys,
        option("--duplicate-keys", help="JSON: a key given twice is an error, or one of its values counts.",
               panel=_FORMAT, shown=True),
    ] = DuplicateKeys.error,
    form: Annotated[
        Form,
        option("--form", help="JSON: one document a line, documents over many lines, or the elements of one array.",
               panel=_FORMAT, shown=True),
    ] = Form.auto,
    types: Types = None,
    delimiter: Delimiter = None,
    null_words: NullWords = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    names: Names = None,
    skip_rows: SkipRows = 0,
    comment: Comment = None,
    decimal_comma: DecimalComma = False,
    date_format: DateFormat = None,
    properties: Annotated[
        str | None,
        option("--properties", help="GeoJSON: one VARIANT column of this name for all properties, of which features "
               "may have few of very many.", panel=_FORMAT, metavar="NAME"),
    ] = None,
    shredding: Annotated[
        list[str] | None,
        option("--shredding", metavar="[COLUMN=]infer|none|DDL", panel=_COLUMNS, shown="infer",
               help="How VARIANT columns are shredded: by the data, not at all, or by a schema such as 'a INT'. "
                    'Options as in Python: \'{"max_fields": 50, "coerce": "json"}\'.'),
    ] = None,
    geometry: Annotated[
        list[str] | None,
        option("--geometry", metavar="[NAME=]lon,lat", panel=_COLUMNS,
               help="A column of points from two or three paths within each document, or columns."),
    ] = None,
    wkt: Annotated[
        list[str] | None,
        option("--wkt", metavar="[NAME=]PATH", panel=_COLUMNS, help="A geometry column from WKT text."),
    ] = None,
    geojson_: Annotated[
        list[str] | None,
        option("--geojson", metavar="[NAME=]PATH", panel=_COLUMNS,
               help="A geometry column from GeoJSON geometries or features."),
    ] = None,
    json: Annotated[
        list[str] | None,
        option("--json", metavar="[NAME=]COLUMN", panel=_COLUMNS,
               help="CSV, GeoJSON, Parquet: a VARIANT column from a column of JSON text."),
    ] = None,
    crs: Annotated[
        str | None, option("--crs", metavar="CRS", panel=_COLUMNS, shown="OGC:CRS84",
                           help="The coordinate reference system of the geometry columns."),
    ] = None,
    edges: Annotated[
        Edges | None, option("--edges", panel=_COLUMNS, help="How vertices are joined; all but planar make GEOGRAPHY.",
                             shown="planar"),
    ] = None,
    check_range: Annotated[
        CheckRange,
        option("--check-range", panel=_COLUMNS, shown=True,
               help="Coordinates beyond longitudes and latitudes are refused, moved to the end of the range, or kept."),
    ] = CheckRange.refuse,
    order: Annotated[
        Order | None,
        option("--order", help="Order the rows of each row group along a curve over the geometries. Row groups still "
               "overlap: one order over all rows takes pqext.write_table."),
    ] = None,
    geoparquet: Annotated[
        bool, option("--geoparquet", help="Add GeoParquet metadata for geopandas and others.")
    ] = False,
    compression: Annotated[
        str | None, option("--compression", metavar="CODEC", shown="snappy",
                           help="uncompressed, snappy, gzip, brotli, lz4_raw or zstd.")
    ] = None,
    compression_level: Annotated[
        int | None, option("--compression-level", metavar="N", help="The codec's level; its own default otherwise.")
    ] = None,
    encodings: Annotated[
        list[str] | None,
        option("--encodings", metavar="[COLUMN=]NAME", shown="plain",
               help="Encoding of values outside dictionaries; auto tries those that suit."),
    ] = None,
    row_group_rows: Annotated[
        int, option("--row-group-rows", metavar="N", help="Rows in a row group at most.", shown=True)
    ] = ROW_GROUP_ROWS,
    sorting: Annotated[
        list[str] | None,
        option("--sorting", metavar="KEY",
               help="Note that rows are sorted, as in 'time desc nulls first'; refuses rows that are not."),
    ] = None,
    bloom_filters: Annotated[
        list[str] | None, option("--bloom-filters", metavar="COLUMN", help="Leaf columns that get a Bloom filter.")
    ] = None,
    profile: Annotated[
        Profile | None, option("--profile", help="Write only what Spark's own reader takes.")
    ] = None,
    footer: Annotated[
        FooterForm, option("--footer", help="Form of the footer, as `pqext rewrite-footer` has it.", shown=True)
    ] = FooterForm.thrift,
    checkpoint: Annotated[
        str | None,
        option("--checkpoint", metavar="N|SIZE|TIME",
               help="Leave a copy of the footer after so many row groups (16), bytes (64MB) or seconds (30s), by which "
                    "`pqext recover` reads the file if this process dies. Each lists all row groups before it, so a "
                    "small N costs much where there are many."),
    ] = None,
    durable: Annotated[
        bool, option("--durable", help="Wait until the disk has the file before it appears under its name.")
    ] = False,
    append: Annotated[
        bool, option("--append", help="Add row groups to OUT, a local file, in its columns, shredding and CRS.")
    ] = False,
    force: Force = False,
    ignore_table_format: IgnoreTableFormat = False,
    reading: Reading = DEFAULTS,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Convert JSON, CSV, GeoJSON or Parquet to one Parquet file with VARIANT and geometry columns.

    Each JSON document becomes a row of a VARIANT column, shredded by its data or by your schema. Rows are streamed in
    bounded memory, except those of GeoJSON. OUT appears when it is whole, and replaces no file without --force.

    Example: pqext convert 'logs/*.ndjson.gz' logs.parquet --geometry lon,lat --compression zstd
    """
    with refusals():
        made = [*_made("points", geometry), *_made("wkt", wkt), *_made("geojson", geojson_), *_made("json", json)]
        if not inputs:
            raise ValueError(f"OUT is missing: pqext convert {named(dest)} OUT, where OUT is the Parquet file to write")
        if append and force:
            raise ValueError("--append adds to a file that --force would replace: leave out one of them")
        if append:
            refuse_append_to_store(dest)
        *places, target = placed([*inputs, dest], storage, anonymous)
        sources = _sources(places)
        kind = format or format_of(sources)
        is_detected = format is None and kind is Format.geojson and named_format(str(sources[0])) is not kind
        is_assumed = format is None and kind is Format.json and named_format(str(sources[0])) is None
        if is_detected and variant is not None:
            kind, is_detected = Format.json, False
        out = _destination(target, force or append)
        there = columns_of(out) if append else None
        chosen = stated(shredding)
        parsing: dict[str, Any] = {"numbers": numbers.value, "duplicate_keys": duplicate_keys.value, "form": form.value}
        parsing |= {} if reading.max_depth is None else {"max_depth": reading.max_depth}
        if kind is Format.parquet:
            sources = [stored()] if STREAM in places else _sources(places, ignore_table_format)
        nested = (variant or (there and there.variant) or _VARIANT) if kind is Format.json else None
        if nested is None and variant is not None:
            raise ValueError(f"--variant is for JSON input: --json {variant} makes a column of JSON text a VARIANT")
        if nested is not None and json:
            raise ValueError("--json is for columns of text; JSON input is parsed in any case")
        if properties is not None:
            if kind is not Format.geojson:
                raise ValueError("--properties is for GeoJSON")
            made.append(Made("json", None, (properties,)))
        of_csv = csv_form(
            kind is Format.csv, {} if there is None else there.types, types=types, delimiter=delimiter,
            null_words=null_words, encoding=encoding, no_header=no_header, names=names, skip_rows=skip_rows,
            comment=comment, decimal_comma=decimal_comma, date_format=date_format,
        )  # fmt: skip
        if there is not None and nested is not None:
            chosen = there.shredding_of(nested, chosen)
        of_made = crs_and_edges(crs, None if edges is None else edges.value, there)
        options = {
            "compression_level": compression_level, "row_group_rows": row_group_rows, "sorting": sorting or (),
            "geoparquet": geoparquet, **writer_options(compression, encodings, bloom_filters),
            "profile": None if profile is None else profile.value, "footer": footer.value, "durable": durable,
            "checkpoint": None if checkpoint is None else checkpoint_of(checkpoint), "append": append,
        }

    def write(of_csv: CsvForm) -> tuple[int, Losses]:
        losses = Losses()
        if is_detected:
            losses.add("the input is GeoJSON, whose features are rows; --from json makes one document of it", 0)
        with refusals():
            stream = _stream(
                kind, sources, nested, chosen, of_csv, on_error.value, losses, parsing, properties, reading
            )
            stream = with_made(stream, made, nested, *of_made, on_error.value, losses)
            of_columns = _options(stream.schema, kind, chosen, crs, edges, check_range, order)
            writer = _writer(out, stream.schema, of_columns | options)
        with _advice(on_error, is_assumed), writer, progress() as show:
            try:
                return _written(stream, writer, nested, made, losses, show), losses
            except TooNarrow:
                writer.abort()
                raise

    while True:
        try:
            rows, losses = write(of_csv)
            break
        except TooNarrow as error:
            with refusals():
                of_csv = widened(of_csv, error, sources)
    _tell(target, rows, losses, on_error, " added, now" if there is not None else "")


def _written(
    stream: Stream, writer: Any, nested: str | None, made: list[Made], losses: Losses, show: Callable[[int], None]
) -> int:
    """Write all rows, and return how many there are."""
    rows, told = 0, nested is None or any(one.kind != "json" for one in made)
    for batch in stream.batches:
        writer.write_batch(batch)
        if not told and batch.num_rows:
            told = True
            if (option := hint(batch.column(str(nested)))) is not None:
                losses.add(f"the documents hold places: {option} makes a geometry column of them", 0)
        rows += batch.num_rows
        show(rows)
    return rows


@contextmanager
def _advice(on_error: OnError, is_assumed: bool) -> Iterator[None]:
    """Add to errors of texts how to continue without them, and the option for CSV if JSON is only assumed."""
    from pqext.core.base.errors import GeometryError, LimitError, VariantError

    try:
        yield
    except (GeometryError, VariantError) as error:
        if on_error is OnError.stop and not isinstance(error, LimitError):
            if is_assumed and isinstance(error, VariantError):
                error.message += "; --from csv reads CSV"
            error.message += "; --on-error null or skip goes on without it"
        raise


def _made(kind: Kind, given: list[str] | None) -> Iterator[Made]:
    return (parse_made(kind, text) for text in given or ())


def _sources(given: list[Place], ignore_table_format: bool = True) -> list[Source]:
    if STREAM in given:
        if len(given) > 1:
            raise ValueError("standard input is read alone, without other inputs")
        return [sys.stdin.buffer]
    from pqext.dataset.files.sources import find_sources

    return list(find_sources(given, ignore_table_format=ignore_table_format))


def _destination(dest: Place, force: bool) -> Any:
    """Where to write; ``ValueError`` for a terminal, a file that is there, and, forced or not, one of a user's data.

    A shell turns ``convert *.json`` into a list whose last file would be taken for OUT.
    """
    if dest == STREAM:
        return binary_output("Parquet")
    from pqext.core.io.sources.locations import locate

    place = locate(dest)
    if isinstance(place, str) and os.path.isfile(place) and os.path.getsize(place):
        with open(place, "rb") as file:
            if file.read(4) not in (b"PAR1", b"PARE"):
                raise ValueError(f"{dest} is no Parquet file, so it is not replaced: name another file as OUT")
    told = named_format(str(dest))
    if told not in (None, Format.parquet):
        raise ValueError(f"{named(dest)!r} is the name of a {told} file, but OUT is Parquet: end its name in .parquet")
    check_new(dest, force)
    return dest


def _stream(
    kind: Format, sources: list[Source], variant: str | None, chosen: Any, of_csv: CsvForm, on_error: Any,
    losses: Losses, parsing: dict[str, Any], properties: str | None, reading: Reading,
) -> Stream:
    if variant is not None:
        if isinstance(chosen, Mapping) and set(chosen) - {variant}:
            raise ValueError(f"--shredding: there is one VARIANT column, {variant!r}")
        how = chosen.get(variant, "infer") if isinstance(chosen, Mapping) else chosen
        return json_documents(sources, variant, how, on_error, losses, **parsing)
    if kind is Format.csv:
        return csv(sources, of_csv, on_error, losses)
    return geojson(sources, properties) if kind is Format.geojson else parquet(sources, reading)


def _options(
    schema: Any, kind: Format, chosen: Any, crs: str | None, edges: Edges | None, check_range: CheckRange,
    order: Order | None,
) -> dict[str, Any]:
    """The writer's options for the columns of ``schema``."""
    from pqext.core.base.suggestions import join_names
    from pqext.geo.types import type_of
    from pqext.variant.types import is_variant_type

    every: dict[str, Any] = {
        "crs": crs, "edges": None if edges is None else edges.value, "order": None if order is None else order.value,
        "check_range": {CheckRange.refuse: None, CheckRange.clamp: "clamp", CheckRange.keep: False}[check_range],
    }
    wanted = {name: value for name, value in every.items() if value is not None}
    geometries = [field.name for field in schema if type_of(field) is not None]
    if wanted and not geometries:
        raise ValueError(f"no geometry column for {', '.join(wanted)}: --geometry, --wkt and --geojson make one")
    options: dict[str, Any] = {"geometry": dict.fromkeys(geometries, wanted) if wanted else {}}
    if kind is Format.json:  # shredded as it is parsed
        return options
    variants = [field.name for field in schema if is_variant_type(field.type)]
    given = chosen if isinstance(chosen, Mapping) else dict.fromkeys(variants, chosen)
    for name in given:
        if name not in variants:
            raise ValueError(f"--shredding: no VARIANT column {name!r}; there are {join_names(variants) or 'none'}")
    by_name = {**dict.fromkeys(variants, "infer"), **given}
    return options | {"shredding": {name: "VARIANT" if how is None else how for name, how in by_name.items()}}


def _writer(out: Any, schema: Any, options: dict[str, Any]) -> Any:
    from pqext.core.write.writer import ParquetWriter

    return ParquetWriter(out, schema, **options)


def _tell(dest: Place, rows: int, losses: Losses, on_error: OnError, fate: str) -> None:
    """What was written, on standard output unless the file is there; and what was lost, on standard error."""
    def say(text: str) -> None:
        click.echo(text, err=dest == STREAM)

    if dest == STREAM:
        say(with_noun(rows, "row"))
    else:
        from pqext.cli.schema import shredding_of
        from pqext.core.read.reader import ParquetFile
        from pqext.variant.shredding.residual import residual_counts, residual_shares

        with ParquetFile(dest) as file:
            groups = with_noun(len(file.row_groups), "row group")
            say(f"{named(dest)}: {with_noun(rows, 'row')}{fate} in {groups}, {format_size(file.source.size)}")
            for column, schema in shredding_of(file).items():
                say(f"  {escape_text(column)}: {shorten(escape_text(str(schema)), MAX_TEXT)}")
            left = residual_shares([residual_counts(file.metadata.row_groups, shredding_of(file))])
            for path, share in left.items():
                say(f"  in the residual: {share:.1%} of {shorten(escape_text(path), MAX_TEXT)}")
    if losses.count:
        fate = "left out" if on_error is OnError.skip else "null"
        click.echo(f"{with_noun(losses.count, 'value')} could not be read, now {fate}. The first:", err=True)
    for text in losses.told:
        click.echo(f"  {escape_text(text)}", err=True)
    if losses.count > MAX_TOLD:
        click.echo(f"  and {losses.count - MAX_TOLD:,} more", err=True)
