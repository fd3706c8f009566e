"""Options of ``pqext convert`` for CSV input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pqext.cli.csv_input import CsvForm
from pqext.cli.declarations import Option

if TYPE_CHECKING:
    import pyarrow as pa

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
    from pqext.core.io.sources.csv_ends import repeated

    found = tuple(name.strip() for name in text.split(",")) if text is not None else ()
    if not all(found):
        raise ValueError(f"--names takes the names of all columns, as in a,b, not {text!r}")
    twice = repeated(found)
    if twice is not None:
        raise ValueError(f"--names: two columns are called {twice!r}")
    return found
