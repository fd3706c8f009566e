"""Options of ``pqext convert``: of CSV input, of the writer, and the defaults of ``--append`` from the file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

from pqext.cli.csv_input import CsvForm
from pqext.cli.declarations import Option
from pqext.core.base.text import escape_text
from pqext.core.options.footer import Checkpoint, parse_checkpoint

if TYPE_CHECKING:
    import pyarrow as pa

    from pqext.geo.types import GeospatialType
    from pqext.variant.shredding.schema import ShreddingSchema

PANEL = "CSV input"


def _option(*names: str, help: str, metavar: str | None = None, min: int | None = None) -> Any:
    return Option(*names, help=help, panel=PANEL, metavar=metavar, show_default=False, min=min)


Types = Annotated[
    str | None,
    _option("--types", metavar="DDL", help="Types of columns, such as 'zip STRING, price DECIMAL(9,2)'."),
]
Delimiter = Annotated[
    str | None,
    _option(
        "--delimiter", metavar="CHARACTER",
        help="The character between fields; a tab in .tsv and .tab files, else detected from the first rows.",
    ),
]
NullWords = Annotated[
    list[str] | None,
    _option(
        "--null-words", metavar="WORD",
        help="Fields that are null in addition to empty ones, such as NA; quoted they are text. May be repeated.",
    ),
]
Encoding = Annotated[
    str | None, _option("--encoding", metavar="NAME", help="Encoding of the text, such as latin-1; UTF-8 by default.")
]
NoHeader = Annotated[
    bool, _option("--no-header", help="The first row holds values; columns are called f0, f1 and so on.")
]
Names = Annotated[
    str | None,
    _option("--names", metavar="a,b,...", help="Names of all columns, for files whose first row holds values."),
]
SkipRows = Annotated[
    int, _option("--skip-rows", metavar="N", min=0, help="Lines to skip at the start of each file, before the heading.")
]
Comment = Annotated[
    str | None, _option("--comment", metavar="CHARACTER", help="Lines that begin with this character are skipped.")
]
DecimalComma = Annotated[
    bool, _option("--decimal-comma", help="Numbers have a comma before their fraction, as in 1,5.")
]
DateFormat = Annotated[
    list[str] | None,
    _option(
        "--date-format", metavar="FORMAT",
        help="Format of dates or timestamps in addition to ISO 8601, as strptime has it: '%d.%m.%Y' makes dates, "
        "'%d.%m.%Y %H:%M' timestamps. May be repeated.",
    ),
]


def csv_form(is_csv: bool, known: Mapping[str, pa.DataType], **options: Any) -> CsvForm:
    """Return the options for reading CSV; ``options`` maps parameters declared above to their values.

    Raises ``ValueError`` for a wrong value, and for any option if the input is not CSV.
    """
    for name, value in options.items():
        if value and not is_csv:
            raise ValueError(f"--{name.replace('_', '-')} is for CSV; --from csv reads the input as CSV")
    from pqext.core.io.sources.csv_text import encoding_name

    types: dict[str, pa.DataType] = {}
    if options["types"] is not None:
        from pqext.variant.access.targets import target_type

        types = {one.name: one.type for one in target_type(options["types"])}
    delimiter = "\t" if options["delimiter"] == r"\t" else options["delimiter"]
    for name, character in (("delimiter", delimiter), ("comment", options["comment"])):
        if character is not None and (len(character) != 1 or not character.isascii() or character in '\0\r\n"'):
            raise ValueError(f"--{name} is one ASCII character other than a quote or a line break, not {character!r}")
    if delimiter is not None and delimiter == options["comment"]:
        raise ValueError("--delimiter and --comment are the same character")
    if options["decimal_comma"] and delimiter == ",":
        raise ValueError("--decimal-comma takes another --delimiter than the comma")
    return CsvForm(
        types, delimiter, tuple(options["null_words"] or ()), known,
        encoding=None if options["encoding"] is None else encoding_name(options["encoding"]),
        has_header=not options["no_header"], names=_column_names(options["names"]), skip_rows=options["skip_rows"],
        comment=options["comment"], decimal_comma=options["decimal_comma"],
        date_formats=tuple(options["date_format"] or ()),
    )  # fmt: skip


def _column_names(text: str | None) -> tuple[str, ...]:
    from pqext.core.io.sources.csv_text import repeated

    found = tuple(name.strip() for name in text.split(",")) if text is not None else ()
    if not all(found):
        raise ValueError(f"--names takes the names of all columns, as in a,b, not {text!r}")
    twice = repeated(found)
    if twice is not None:
        raise ValueError(f"--names: two columns are called {twice!r}")
    return found


@dataclass(frozen=True)
class Columns:
    """The columns of the file, by name: how VARIANTs are shredded, what geometries are, and the types of others."""

    shredding: Mapping[str, ShreddingSchema] = field(default_factory=dict)
    geometries: Mapping[str, GeospatialType] = field(default_factory=dict)
    types: Mapping[str, pa.DataType] = field(default_factory=dict)

    @property
    def variant(self) -> str | None:
        """The name of the only VARIANT column."""
        return next(iter(self.shredding)) if len(self.shredding) == 1 else None

    @property
    def geometry(self) -> GeospatialType | None:
        """What all geometry columns are; None where they differ or where there are none."""
        found = set(self.geometries.values())
        return found.pop() if len(found) == 1 else None

    def shredding_of(self, column: str, chosen: Any) -> Any:
        """How documents are shredded into ``column``, of which ``--shredding`` says ``chosen``.

        Raises ``ValueError`` where that is another schema than the file's.
        """
        from pqext.variant.shredding.choice import shredding
        from pqext.variant.shredding.schema import Untyped

        there = self.shredding.get(column)
        how = chosen.get(column, "infer") if isinstance(chosen, Mapping) else chosen
        if there is None:  # which the writer refuses, with the names of the columns
            return chosen
        wanted = shredding(Untyped() if how is None else how)
        if wanted.schema not in (None, there):
            raise ValueError(
                f"--shredding: column {escape_text(column)!r} is shredded otherwise in the file, by "
                f"{escape_text(str(there))}: "
                "leave out --shredding, or reshred the file with pqext reshred"
            )
        return {column: replace(wanted, schema=there)}


def crs_and_edges(crs: str | None, edges: str | None, there: Columns | None) -> tuple[str | None, str]:
    """What geometries that are made are to be: by the options, else as those of the file, else planar in OGC:CRS84."""
    known = None if there is None else there.geometry
    if known is None:
        return crs, edges or "planar"
    return known.crs if crs is None else crs, edges or known.edges


def columns_of(path: Any) -> Columns | None:
    """The columns of the local file at ``path``; None where there is no file yet."""
    if not isinstance(path, str) or not os.path.isfile(path) or not os.path.getsize(path):
        return None
    import pyarrow as pa

    from pqext.core.read.reader import ParquetFile
    from pqext.geo.types import type_of
    from pqext.variant.shredding.file_schema import schema_of_file

    kinds = pa.types
    plain = (kinds.is_primitive, kinds.is_decimal, kinds.is_string, kinds.is_binary)
    with ParquetFile(path) as file:
        names = [node.name for node in file.schema.root.children if node.logical_name == "VARIANT"]
        fields = list(file.arrow_schema)
        return Columns(
            {name: schema_of_file(file, name) for name in names},
            {one.name: found for one in fields if (found := type_of(one)) is not None},
            {one.name: kind for one in fields if any(test(kind := _plain(one.type)) for test in plain)},
        )


def _plain(type: pa.DataType) -> pa.DataType:
    """The type in its plain layout, that of a dictionary's values for a dictionary."""
    import pyarrow as pa

    from pqext.core.write.table_inputs import plain_layout

    return plain_layout(type.value_type if pa.types.is_dictionary(type) else type)


def writer_options(compression: str | None, encodings: list[str] | None, filters: list[str] | None) -> dict[str, Any]:
    """Options of the writer that are given, of those that default to the file which rows are appended to."""
    every: dict[str, Any] = {"compression": compression}
    every["encodings"] = _by_column(encodings) if encodings else None
    every["bloom_filters"] = dict.fromkeys(filters, True) if filters else None
    return {name: choice for name, choice in every.items() if choice is not None}


def checkpoint_of(text: str) -> Checkpoint:
    """Parse ``--checkpoint``; raises ``ValueError`` that names the option."""
    try:
        return parse_checkpoint(text)
    except ValueError as error:
        raise ValueError(f"--{error}") from None


def _by_column(given: list[str]) -> Any:
    """One value for all columns, or a mapping from ``COLUMN=VALUE``."""
    named = dict(text.rpartition("=")[::2] for text in given)
    if "" in named and len(named) > 1:
        raise ValueError("give one encoding for all columns, or COLUMN=NAME for each")
    return named.get("", named)
