"""The command ``pqext convert``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from pqext.cli.command import argument, command, flag, option
from pqext.cli.console import progress
from pqext.cli.convert_options import (
    check_crs,
    check_formats,
    column_options,
    csv_options,
    geometry_options,
    parse_checkpoint_option,
    parse_csv_options,
    read_existing_columns,
    require_crs,
    resolve_crs_and_edges,
    writer_options,
)
from pqext.cli.csv_input import CsvOptions, TypeTooNarrowError, read_csv, widen_types
from pqext.cli.derived_columns import add_columns, parse_recipe, suggest_geometry
from pqext.cli.errors import usage_errors
from pqext.cli.geojson_input import read_geojson
from pqext.cli.inputs import (
    FORMATS,
    MAX_MESSAGES,
    Losses,
    Source,
    Stream,
    format_of,
    format_of_name,
    read_json_documents,
    read_parquet,
    read_vector_layers,
)
from pqext.cli.locations import (
    STREAM,
    Place,
    Storage,
    binary_output,
    check_overwrite,
    display_name,
    force_option,
    storage_options,
    store_stdin,
)
from pqext.cli.reader_options import ReaderOptions, reading_options
from pqext.cli.rewrite import FOOTER_FORMATS, MAX_TEXT, parse_shredding
from pqext.cli.scan_options import ignore_table_format_option
from pqext.core.base.limits import ROW_GROUP_ROWS
from pqext.core.base.progress import Progress
from pqext.core.base.text import escape_text, format_size, shorten, with_noun
from pqext.dataset.computed_columns import ColumnRecipe, Kind

_INPUT, _COLUMNS, _FILE = "Input", "Columns", "Output file"
_VARIANT = "value"
"""Default name of the VARIANT column of JSON input."""


@command()
@argument("inputs", nargs=-1, metavar="IN...", help="Files, glob patterns or folders; - is standard input.")
@argument("dest", metavar="OUT", help="Path of the Parquet file; - is standard output.")
@option(
    "--input-format", type=click.Choice(FORMATS), panel=_INPUT, show_default="inferred from the file extension",
    help="Format of the inputs.",
)
@option("--column", metavar="NAME", panel=_INPUT, show_default=_VARIANT, help="JSON: name of the VARIANT column.")
@option(
    "--on-error", type=click.Choice(["stop", "null", "skip"]), default="stop", panel=_INPUT,
    help="Stop at text that cannot be parsed, replace it with null, or skip its row. In CSV, skip omits rows with a "
    "wrong number of fields; values that do not fit the type of their column always stop the command.",
)
@option(
    "--numbers", type=click.Choice(["decimal", "double"]), default="decimal", panel=_INPUT,
    help="JSON: type of numbers with a fraction.",
)
@option(
    "--duplicate-keys", type=click.Choice(["error", "first", "last"]), default="error", panel=_INPUT,
    help="JSON: raise an error on duplicate keys of an object, or use the first or last value.",
)
@option(
    "--json-layout", type=click.Choice(["auto", "lines", "documents", "array"]), default="auto", panel=_INPUT,
    help="JSON: one document per line, documents over several lines, or the elements of one array.",
)
@csv_options
@option(
    "--properties", metavar="NAME", panel=_INPUT,
    help="GeoJSON: store all properties in a single VARIANT column with this name, suitable for sparse properties.",
)
@option(
    "--layer", metavar="NAME", panel=_INPUT, show_default="the first",
    help="GeoPackage and other GDAL formats: name of the layer.",
)
@option(
    "--shredding", metavar="[COLUMN=]infer|none|DDL", multiple=True, panel=_COLUMNS, show_default="infer",
    help="Shredding of VARIANT columns: inferred from the data, none, or a schema such as 'a INT'. A JSON object sets "
    'options of the inference: \'{"max_fields": 50, "coerce": "json"}\'.',
)
@option(
    "--geometry", metavar="[NAME=]lon,lat", multiple=True, panel=_COLUMNS,
    help="Add a column of points from two or three paths in each document, or from columns.",
)
@option("--wkt", metavar="[NAME=]PATH", multiple=True, panel=_COLUMNS, help="Add a geometry column from WKT text.")
@option(
    "--geojson", metavar="[NAME=]PATH", multiple=True, panel=_COLUMNS,
    help="Add a geometry column from GeoJSON geometries or features.",
)
@option(
    "--json", "json_columns", metavar="[NAME=]COLUMN", multiple=True, panel=_COLUMNS,
    help="CSV, GeoJSON, Parquet: add a VARIANT column from a column of JSON text.",
)
@option(
    "--crs", metavar="CRS", panel=_COLUMNS, show_default="OGC:CRS84",
    help="Coordinate reference system (CRS) of geometry columns whose CRS the inputs do not state.",
)
@option(
    "--edges", type=click.Choice(["planar", "spherical", "vincenty", "thomas", "andoyer", "karney"]), panel=_COLUMNS,
    show_default="planar", help="Interpolation of edges; all but planar create GEOGRAPHY columns.",
)
@option(
    "--check-range", type=click.Choice(["reject", "clamp", "keep"]), default="reject", panel=_COLUMNS,
    help="Reject longitudes and latitudes out of range, clamp them to the range, or keep them.",
)
@option(
    "--order", type=click.Choice(["hilbert", "zorder"]), panel=_FILE,
    help="Sort the rows of each row group along a space-filling curve. Row groups still overlap; to sort all rows, use "
    "pqext.write_table.",
)
@option(
    "--geoparquet", type=click.Choice(["2.0", "1.1", "none"]), panel=_FILE, show_default="2.0",
    help="GeoParquet metadata of geometry columns: version 2.0; 1.1 for older readers, with a covering column and "
    "without Parquet types; or none.",
)
@option(
    "--compression", metavar="CODEC", panel=_FILE, show_default="snappy",
    help="Compression codec: uncompressed, snappy, gzip, brotli, lz4_raw or zstd.",
)
@option(
    "--compression-level", type=int, metavar="N", panel=_FILE, help="Compression level; the codec's default if not set."
)
@option(
    "--encodings", metavar="[COLUMN=]NAME", multiple=True, panel=_FILE, show_default="default",
    help="Encoding of values without a dictionary, such as plain; auto tries several, default may pack integers.",
)
@option(
    "--row-group-rows", metavar="N", default=ROW_GROUP_ROWS, panel=_FILE, help="Maximum number of rows per row group."
)
@option(
    "--sorting", metavar="KEY", multiple=True, panel=_FILE,
    help="Declare that rows are sorted, as in 'time desc nulls first'; rows out of order raise an error.",
)
@option("--bloom-filters", metavar="COLUMN", multiple=True, panel=_FILE, help="Leaf columns with Bloom filters.")
@option("--profile", type=click.Choice(["spark"]), panel=_FILE, help="Use only features that Spark can read.")
@option(
    "--footer", type=click.Choice(FOOTER_FORMATS), default="thrift", panel=_FILE,
    help="Footer format; see pqext rewrite-footer.",
)
@option(
    "--checkpoint", metavar="N|SIZE|TIME", panel=_FILE,
    help="Write a copy of the footer every N row groups (such as 16), bytes (64MB) or seconds (30s), which lets pqext "
    "recover read the file if this process dies. Each copy lists all previous row groups, so a small N is costly for "
    "files with many row groups.",
)
@flag("--durable", panel=_FILE, help="Sync the file to disk before it appears under its name.")
@flag("--append", panel=_FILE, help="Append row groups to the local file OUT, with its columns, shredding and CRS.")
@force_option
@ignore_table_format_option
@reading_options
@storage_options
def convert(
    inputs: tuple[str, ...], dest: str, input_format: str | None, column: str | None, on_error: Any, numbers: str,
    duplicate_keys: str, json_layout: str, csv: dict[str, Any], properties: str | None, layer: str | None,
    shredding: tuple[str, ...], geometry: tuple[str, ...], wkt: tuple[str, ...], geojson: tuple[str, ...],
    json_columns: tuple[str, ...], crs: str | None, edges: str | None, check_range: str, order: str | None,
    geoparquet: str | None, compression: str | None, compression_level: int | None, encodings: tuple[str, ...],
    row_group_rows: int, sorting: tuple[str, ...], bloom_filters: tuple[str, ...], profile: str | None, footer: str,
    checkpoint: str | None, durable: bool, append: bool, force: bool, ignore_table_format: bool, reading: ReaderOptions,
    storage: Storage,
) -> None:
    """Convert JSON, CSV, GeoJSON, GeoPackage, FlatGeobuf, shapefiles or Parquet to one Parquet file with VARIANT and
    geometry columns.

    Each JSON document becomes a row of a VARIANT column, shredded by an inferred schema or your own. Rows are streamed
    in bounded memory, except GeoJSON. OUT appears once it is complete; existing files are replaced only with --force.

    Example: pqext convert 'logs/*.ndjson.gz' logs.parquet --geometry lon,lat --compression zstd
    """
    with usage_errors():
        require_crs(crs)
        derived = [
            *_parse_all("points", geometry), *_parse_all("wkt", wkt), *_parse_all("geojson", geojson),
            *_parse_all("json", json_columns),
        ]
        if not inputs:
            raise ValueError(f"OUT is missing; expected pqext convert {display_name(dest)} OUT")
        if append and force:
            raise ValueError("--append and --force are mutually exclusive")
        if append:
            from pqext.core.io.sink import check_append_target

            check_append_target(dest)
        *places, target = storage.locate([*inputs, dest])
        sources = _sources(places)
        format = input_format or format_of(sources)
        is_detected = input_format is None and format == "geojson" and format_of_name(str(sources[0])) != format
        is_assumed = input_format is None and format == "json" and format_of_name(str(sources[0])) is None
        if is_detected and column is not None:
            format, is_detected = "json", False
        out = _destination(target, force or append)
        existing = read_existing_columns(out) if append else None
        schema = parse_shredding(shredding)
        parsing: dict[str, Any] = {"numbers": numbers, "duplicate_keys": duplicate_keys, "format": json_layout}
        parsing |= {} if reading.max_depth is None else {"max_depth": reading.max_depth}
        if format == "parquet":
            sources = [store_stdin()] if STREAM in places else _sources(places, ignore_table_format)
        document_column = (column or (existing and existing.variant) or _VARIANT) if format == "json" else None
        if document_column is None and column is not None:
            raise ValueError(f"--column applies to JSON input only; use --json {column} for a column of JSON text")
        if document_column is not None and json_columns:
            raise ValueError("--json applies to columns of other formats; omit it, because JSON input is always parsed")
        check_formats(format)
        if properties is not None:
            derived.append(ColumnRecipe("json", None, (properties,)))
        types = {} if existing is None else existing.types
        csv_parsing = parse_csv_options(format == "csv", types, csv)
        if existing is not None and document_column is not None:
            schema = existing.merge_shredding(document_column, schema)
        request = _Input(format, sources, document_column, schema, parsing, properties, layer, reading, types)
        derived_type = resolve_crs_and_edges(crs, edges, existing)
        geometry_settings = geometry_options(crs, edges, check_range, order)
        options = {
            "compression_level": compression_level, "row_group_rows": row_group_rows, "sorting": sorting,
            "geoparquet": False if geoparquet == "none" else geoparquet,
            **writer_options(compression, encodings, bloom_filters), "profile": profile,
            "footer": footer, "durable": durable, "append": append,
            "checkpoint": None if checkpoint is None else parse_checkpoint_option(checkpoint),
        }

    def write(csv_parsing: CsvOptions) -> tuple[int, Losses]:
        losses = Losses()
        if is_detected:
            losses.add("the input is GeoJSON, read as one row per feature; --input-format json reads one document", 0)
        with usage_errors():
            stream = request.open(csv_parsing, on_error, losses)
            stream = add_columns(stream, derived, document_column, *derived_type, on_error, losses)
            check_crs(stream.schema, crs)
            by_column = column_options(stream.schema, format, schema, geometry_settings)
            writer = _writer(out, stream.schema, by_column | options)
        with _advice(on_error, is_assumed), writer, progress() as show:
            try:
                return _write_rows(stream, writer, document_column, derived, losses, show), losses
            except TypeTooNarrowError:
                writer.abort()
                raise

    while True:
        try:
            rows, losses = write(csv_parsing)
            break
        except TypeTooNarrowError as error:
            with usage_errors():
                csv_parsing = widen_types(csv_parsing, error, sources)
    _report(target, rows, losses, on_error, existing is not None)


def _write_rows(
    stream: Stream, writer: Any, document_column: str | None, recipes: list[ColumnRecipe], losses: Losses,
    show: Progress,
) -> int:
    """Write the rows of ``stream`` and return the number of rows. A geometry column is suggested if none is derived."""
    rows, is_checked = 0, document_column is None or any(column.kind != "json" for column in recipes)
    for batch in stream.batches:
        writer.write_batch(batch)
        if not is_checked and batch.num_rows:
            is_checked = True
            if (suggestion := suggest_geometry(batch.column(str(document_column)))) is not None:
                losses.add(f"the documents contain coordinates; {suggestion} adds a geometry column", 0)
        rows += batch.num_rows
        show(rows, None)
    return rows


@contextmanager
def _advice(on_error: str, is_assumed: bool) -> Iterator[None]:
    """Context manager that adds options to the messages of parse errors: ``--on-error`` and ``--input-format``."""
    from pqext.core.base.errors import GeometryError, LimitError, VariantError

    try:
        yield
    except (GeometryError, VariantError) as error:
        if on_error == "stop" and not isinstance(error, LimitError):
            if is_assumed and isinstance(error, VariantError):
                error.message += "; --input-format csv reads CSV"
            if error.rule != "geo.crs.bounds":  # checked when the file is written
                error.message += "; pass --on-error null or skip to continue"
        raise


def _parse_all(derivation: Kind, texts: Sequence[str]) -> Iterator[ColumnRecipe]:
    return (parse_recipe(derivation, text) for text in texts)


def _sources(inputs: list[Place], ignore_table_format: bool = True) -> list[Source]:
    if STREAM in inputs:
        if len(inputs) > 1:
            raise ValueError("standard input cannot be combined with other inputs")
        return [sys.stdin.buffer]
    from pqext.dataset.files.sources import find_sources

    return list(find_sources(inputs, ignore_table_format=ignore_table_format))


def _destination(dest: Place, force: bool) -> Any:
    """Return ``dest``, or a binary stream if ``dest`` is standard output.

    Raises ``ValueError`` if an existing file must not be overwritten, or if the extension belongs to another format. A
    file that is not Parquet is never overwritten: a shell expands ``convert *.json`` to a list whose last file would
    become OUT.
    """
    if dest == STREAM:
        return binary_output("Parquet")
    from pqext.core.io.sources.locations import locate

    place = locate(dest)
    if isinstance(place, str) and os.path.isfile(place) and os.path.getsize(place):
        with open(place, "rb") as file:
            if file.read(4) not in (b"PAR1", b"PARE"):
                raise ValueError(f"{dest} is not a Parquet file and will not be overwritten; pass another path as OUT")
    format = format_of_name(str(dest))
    if format not in (None, "parquet"):
        hint = "; pqext.geo.write_file writes other formats in Python" if format in ("vector", "geojson") else ""
        message = f"{display_name(dest)!r} has the extension of a {format} file, but OUT is Parquet; use .parquet"
        raise ValueError(message + hint)
    check_overwrite(dest, force)
    return dest


@dataclass(frozen=True)
class _Input:
    """Sources of one format, and the options for reading these sources."""

    format: str
    sources: list[Source]
    document_column: str | None
    """Name of the VARIANT column of JSON input."""
    schema: Any
    """Shredding of ``document_column``, or a mapping from column names to shreddings."""
    parsing: dict[str, Any]
    properties: str | None
    layer: str | None
    reading: ReaderOptions
    existing_types: Mapping[str, Any]

    def open(self, csv_options: CsvOptions, on_error: Any, losses: Losses) -> Stream:
        if self.document_column is not None:
            schema = self.schema
            if isinstance(schema, Mapping):
                if others := sorted(set(schema) - {self.document_column}):
                    column = self.document_column
                    raise ValueError(f"--shredding: {others[0]!r} is not a VARIANT column; pass {column!r}")
                schema = schema.get(self.document_column, "infer")
            return read_json_documents(self.sources, self.document_column, schema, on_error, losses, **self.parsing)
        if self.format == "csv":
            return read_csv(self.sources, csv_options, on_error, losses)
        if self.format == "geojson":
            return read_geojson(self.sources, self.properties, self.existing_types)
        if self.format == "vector":
            return read_vector_layers(self.sources, self.layer)
        return read_parquet(self.sources, self.reading)


def _writer(out: Any, schema: Any, options: dict[str, Any]) -> Any:
    from pqext.core.write.writer import ParquetWriter

    writer = ParquetWriter(out, schema, **options)
    writer._warns_about_residual = False  # the report lists these paths
    return writer


def _report(dest: Place, rows: int, losses: Losses, on_error: str, is_append: bool) -> None:
    """Print a summary of the output file, and of values that could not be read.

    Losses are printed to standard error, as is the summary if the file is written to standard output.
    """

    def echo(text: str) -> None:
        click.echo(text, err=dest == STREAM)

    if dest == STREAM:
        echo(with_noun(rows, "row"))
    else:
        from pqext.cli.schema import shredding_of
        from pqext.core.read.reader import ParquetFile
        from pqext.variant.shredding.choice import residual_counts, residual_shares

        with ParquetFile(dest) as file:
            size = f"{with_noun(len(file.row_groups), 'row group')}, {format_size(file.source.size)}"
            echo(f"{display_name(dest)}: {with_noun(rows, 'row')}{' added, now' * is_append} in {size}")
            for column, schema in shredding_of(file).items():
                echo(f"  {escape_text(column)}: {shorten(escape_text(str(schema)), MAX_TEXT)}")
            shares = residual_shares([residual_counts(file.metadata.row_groups, shredding_of(file))])
            for path, share in shares.items():
                echo(f"  in the residual: {share:.1%} of {shorten(escape_text(path), MAX_TEXT)}")
    if losses.count:
        fate = "skipped" if on_error == "skip" else "replaced with null"
        click.echo(f"{with_noun(losses.count, 'value')} could not be read ({fate}); first errors:", err=True)
    for text in losses.messages:
        click.echo(f"  {escape_text(text)}", err=True)
    if losses.count > MAX_MESSAGES:
        click.echo(f"  and {losses.count - MAX_MESSAGES:,} more", err=True)
