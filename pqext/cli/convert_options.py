"""Options of ``pqext convert`` for CSV input and the writer. With ``--append``, the file determines the defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pqext.cli.command import flag, option, option_group
from pqext.cli.csv_input import CsvOptions
from pqext.core.base.text import escape_text
from pqext.core.options.layout import Checkpoint, parse_checkpoint

if TYPE_CHECKING:
    import pyarrow as pa

    from pqext.geo.types import GeospatialType
    from pqext.variant.shredding.schema import ShreddingSchema

_CSV = "CSV input"
csv_options = option_group(
    "csv",
    dict,
    option(
        "--types", metavar="DDL", panel=_CSV, help="Types of columns, such as 'zip STRING, price DECIMAL(9,2)'."
    ),
    option(
        "--delimiter", metavar="CHARACTER", panel=_CSV,
        help="Field delimiter; a tab in .tsv and .tab files, otherwise detected from the first rows.",
    ),
    option(
        "--null-values", metavar="WORD", multiple=True, panel=_CSV,
        help="Word such as NA that is null if it is not quoted, as are empty fields; may be repeated.",
    ),
    option("--encoding", metavar="NAME", panel=_CSV, help="Text encoding, such as latin-1; UTF-8 by default."),
    flag("--no-header", panel=_CSV, help="The first row contains values; columns are called f0, f1 and so on."),
    option(
        "--names", metavar="a,b,...", panel=_CSV, help="Names of all columns, for files without a header row."
    ),
    option(
        "--skip-rows", type=click.IntRange(min=0), metavar="N", default=0, panel=_CSV,
        help="Lines to skip at the start of each file, before the header row.",
    ),
    option("--comment", metavar="CHARACTER", panel=_CSV, help="Skip lines that begin with this character."),
    flag("--decimal-comma", panel=_CSV, help="Numbers have a decimal comma, as in 1,5."),
    option(
        "--date-format", metavar="FORMAT", multiple=True, panel=_CSV,
        help="strptime format of dates or timestamps in addition to ISO 8601: '%d.%m.%Y' for dates, '%d.%m.%Y %H:%M' "
        "for timestamps; may be repeated.",
    ),
)


def parse_csv_options(
    is_csv: bool, default_types: Mapping[str, pa.DataType], options: Mapping[str, Any]
) -> CsvOptions:
    """Return the options for reading CSV, from the values of the command's options.

    Raises:
        ValueError: If a value is invalid, or if any option is set and the input is not CSV.
    """
    for name, value in options.items():
        if value and not is_csv:
            raise ValueError(f"--{name.replace('_', '-')} applies to CSV only; pass --input-format csv to read CSV")
    from pqext.core.io.sources.csv_text import encoding_name

    types: dict[str, pa.DataType] = {}
    if options["types"] is not None:
        types = _column_types(options["types"])
    delimiter = "\t" if options["delimiter"] == r"\t" else options["delimiter"]
    for name, character in (("delimiter", delimiter), ("comment", options["comment"])):
        if character is not None and (len(character) != 1 or not character.isascii() or character in '\0\r\n"'):
            raise ValueError(f"--{name} must be an ASCII character other than a quote or line break, not {character!r}")
    if delimiter is not None and delimiter == options["comment"]:
        raise ValueError(f"--delimiter and --comment must differ, but both are {delimiter!r}")
    if options["decimal_comma"] and delimiter == ",":
        raise ValueError("--decimal-comma requires a --delimiter other than the comma")
    return CsvOptions(
        types, delimiter, options["null_values"], default_types,
        encoding=None if options["encoding"] is None else encoding_name(options["encoding"]),
        has_header=not options["no_header"], names=_column_names(options["names"]), skip_rows=options["skip_rows"],
        comment=options["comment"], decimal_comma=options["decimal_comma"],
        date_formats=options["date_format"],
    )


def _column_types(ddl: str) -> dict[str, pa.DataType]:
    import pyarrow as pa

    from pqext.variant.access.targets import target_type

    try:
        types = target_type(ddl)
    except ValueError as error:
        raise ValueError(f"--types: {error}") from None
    if not pa.types.is_struct(types):
        raise ValueError(f"--types must list columns with their types, as in 'zip STRING, day DATE', not {ddl!r}")
    return {field.name: field.type for field in types}


def _column_names(text: str | None) -> tuple[str, ...]:
    from pqext.core.io.sources.csv_text import find_duplicate

    names = tuple(name.strip() for name in text.split(",")) if text is not None else ()
    if not all(names):
        raise ValueError(f"--names must list the names of all columns (such as a,b), not {text!r}")
    duplicate = find_duplicate(names)
    if duplicate is not None:
        raise ValueError(f"--names: duplicate column name {duplicate!r}")
    return names


@dataclass(frozen=True)
class ExistingColumns:
    """Columns of an existing file by name: shredding of VARIANT columns, types of geometry and plain columns."""

    shredding: Mapping[str, ShreddingSchema] = field(default_factory=dict)
    geometries: Mapping[str, GeospatialType] = field(default_factory=dict)
    types: Mapping[str, pa.DataType] = field(default_factory=dict)

    @property
    def variant(self) -> str | None:
        """Name of the VARIANT column; None unless the file has exactly one."""
        return next(iter(self.shredding)) if len(self.shredding) == 1 else None

    @property
    def geometry(self) -> GeospatialType | None:
        """Common type of all geometry columns; None if there are no geometry columns or their types differ."""
        types = set(self.geometries.values())
        return types.pop() if len(types) == 1 else None

    def merge_shredding(self, column: str, schemas: Any) -> Any:
        """Merge ``schemas``, the value of ``--shredding``, with the shredding schema of ``column`` in the file.

        If the file has no such VARIANT column, ``schemas`` is returned unchanged.

        Raises:
            ValueError: If ``schemas`` contains another schema for ``column``.
        """
        from pqext.variant.shredding.choice import parse_shredding
        from pqext.variant.shredding.schema import Untyped

        schema = self.shredding.get(column)
        choice = schemas.get(column, "infer") if isinstance(schemas, Mapping) else schemas
        if schema is None:  # the writer rejects it and lists the columns
            return schemas
        requested = parse_shredding(Untyped() if choice is None else choice)
        if requested.schema not in (None, schema):
            raise ValueError(
                f"--shredding: column {escape_text(column)!r} is shredded as "
                f"{escape_text(str(schema))} in the file; "
                "remove --shredding, or rewrite the file with pqext reshred"
            )
        return {column: replace(requested, schema=schema)}


def check_formats(format: str) -> None:
    """Raise ``ValueError`` if the command line contains an option that applies to inputs of another format only."""
    context = click.get_current_context()
    for name, (applicable, label) in _FORMAT_OPTIONS.items():
        if format != applicable and context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise ValueError(f"--{name.replace('_', '-')} applies to {label} only, not to {format}; omit it")


_FORMAT_OPTIONS = {
    **dict.fromkeys(("numbers", "duplicate_keys", "json_layout"), ("json", "JSON input")),
    "properties": ("geojson", "GeoJSON"), "layer": ("vector", "GeoPackage and other GDAL formats"),
}
"""Options that apply to a single format: the format, and its name in errors."""


def resolve_crs_and_edges(
    crs: str | None, edges: str | None, columns: ExistingColumns | None
) -> tuple[str | None, str]:
    """Return the CRS and edges of derived geometries: the options, or else those of the existing file, or defaults."""
    geometry = None if columns is None else columns.geometry
    if geometry is None:
        return crs, edges or "planar"
    return geometry.crs if crs is None else crs, edges or geometry.edges


def geometry_options(crs: str | None, edges: str | None, check_range: str, order: str | None) -> dict[str, Any]:
    """Convert the geometry options of the command line to writer options; options that are not set are omitted."""
    checks = {"reject": None, "clamp": "clamp", "keep": False}
    options = {"crs": crs, "edges": edges, "order": order, "check_range": checks[check_range]}
    return {name: value for name, value in options.items() if value is not None}


def column_options(schema: pa.Schema, format: str, shredding: Any, geometry: dict[str, Any]) -> dict[str, Any]:
    """Return the writer options for the geometry and VARIANT columns of ``schema``.

    Raises ``ValueError`` if an option is set and there are no columns to which it applies.
    """
    from pqext.core.base.suggestions import join_names
    from pqext.geo.crs import UNKNOWN
    from pqext.geo.types import type_of
    from pqext.variant.types import is_variant_type

    geometries = {field.name: type for field in schema if (type := type_of(field)) is not None}
    if geometry and not geometries:
        names = ", ".join("--" + name.replace("_", "-") for name in geometry)
        raise ValueError(f"{names} requires a geometry column; add a column with --geometry, --wkt or --geojson")
    stated = {name: value for name, value in geometry.items() if name != "crs"}
    by_geometry = {name: geometry if type.crs == UNKNOWN else stated for name, type in geometries.items()}
    options: dict[str, Any] = {"geometry": {name: value for name, value in by_geometry.items() if value}}
    if format == "json":  # already shredded while parsing
        return options
    variants = [field.name for field in schema if is_variant_type(field.type)]
    if not variants and shredding not in ("infer", None):
        raise ValueError("--shredding requires a VARIANT column; add a column with --json, or omit --shredding")
    by_column = shredding if isinstance(shredding, Mapping) else dict.fromkeys(variants, shredding)
    for name in by_column:
        if name not in variants:
            known = join_names(variants) or "none"
            raise ValueError(f"--shredding: no VARIANT column {name!r}; the VARIANT columns are {known}")
    choices = {**dict.fromkeys(variants, "infer"), **by_column}
    return options | {
        "shredding": {name: "VARIANT" if choice is None else choice for name, choice in choices.items()}
    }


def require_crs(crs: str | None) -> None:
    """Raise ``ValueError`` if the value of ``--crs`` is not a CRS."""
    if crs is None:
        return
    from pqext.core.base.errors import GeometryError
    from pqext.geo.crs import require

    if not crs.strip():
        raise ValueError("--crs is empty; pass a code such as 'EPSG:4326', or 'srid:0' if the CRS is unknown")
    try:
        require(crs)
    except GeometryError as error:
        raise ValueError(f"--crs: {error.reason}") from None


def check_crs(schema: pa.Schema, crs: str | None) -> None:
    """Raise ``ValueError`` if ``--crs`` applies to no column, because all geometry columns have another CRS.

    ``--crs`` applies to columns with this CRS, which include derived columns, and to columns with unknown CRS.
    """
    from pqext.core.schema.types.geometries import crs_label
    from pqext.geo.crs import UNKNOWN, equal, normalize
    from pqext.geo.types import type_of

    if crs is None:
        return
    types = {column.name: type for column in schema if (type := type_of(column)) is not None}
    if types and not any(type.crs == UNKNOWN or equal(type.crs, normalize(crs)) for type in types.values()):
        name, type = next(iter(types.items()))
        raise ValueError(
            f"column {escape_text(name)!r} has CRS {crs_label(type.crs)}, but --crs is {crs}, which would "
            "not transform the coordinates; omit --crs, transform the rows with Scan.to_crs or geopandas, or correct "
            "a wrong CRS with geometry= of pqext.write_table"
        )


def read_existing_columns(path: Any) -> ExistingColumns | None:
    """Return the columns of the file at ``path``; None if it is not a local file or is empty."""
    if not isinstance(path, str) or not os.path.isfile(path) or not os.path.getsize(path):
        return None
    import pyarrow as pa

    from pqext.core.read.reader import ParquetFile
    from pqext.geo.types import type_of
    from pqext.variant.shredding.choice import schema_of_file

    types = pa.types
    tests = (types.is_primitive, types.is_decimal, types.is_string, types.is_binary)
    with ParquetFile(path) as file:
        names = [node.name for node in file.schema.root.children if node.logical_name == "VARIANT"]
        fields = list(file.arrow_schema)
        return ExistingColumns(
            {name: schema_of_file(file, name) for name in names},
            {field.name: type for field in fields if (type := type_of(field)) is not None},
            {field.name: type for field in fields if any(test(type := _plain_type(field.type)) for test in tests)},
        )


def _plain_type(type: pa.DataType) -> pa.DataType:
    """Return a type without dictionaries and views: the type of the same values in a plain layout."""
    import pyarrow as pa

    from pqext.core.write.table_inputs import plain_layout

    return plain_layout(type.value_type if pa.types.is_dictionary(type) else type)


def writer_options(compression: str | None, encodings: Sequence[str], bloom_columns: Sequence[str]) -> dict[str, Any]:
    """Return writer options for the values that are set. With ``--append``, the file determines the other options."""
    options: dict[str, Any] = {"compression": compression}
    options["encodings"] = _parse_by_column(encodings) if encodings else None
    options["bloom_filters"] = dict.fromkeys(bloom_columns, True) if bloom_columns else None
    return {name: value for name, value in options.items() if value is not None}


def parse_checkpoint_option(text: str) -> Checkpoint:
    """Parse ``--checkpoint``. Raises a ``ValueError`` that names the option if it is invalid."""
    try:
        return parse_checkpoint(text)
    except ValueError as error:
        raise ValueError(f"--{error}") from None


def _parse_by_column(texts: Sequence[str]) -> Any:
    """Return the value for all columns if a single ``VALUE`` is passed, or a mapping for ``COLUMN=VALUE`` arguments.

    Raises ``ValueError`` if both are mixed.
    """
    values = dict(text.rpartition("=")[::2] for text in texts)
    if "" in values and len(values) > 1:
        raise ValueError("--encodings: pass one encoding for all columns, or COLUMN=NAME for each")
    return values.get("", values)
