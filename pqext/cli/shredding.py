"""``pqext reshred IN OUT``, ``pqext unshred IN OUT`` and ``pqext repair IN OUT``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any
from warnings import catch_warnings, simplefilter

import click

from pqext.cli.declarations import Argument, Option
from pqext.cli.files import Form, refusals
from pqext.cli.locations import Anonymous, Place, Storage, placed
from pqext.cli.outputs import Force, check_new, named
from pqext.cli.progress import progress
from pqext.cli.reader_options import DEFAULTS, Reading
from pqext.core.base.text import escape_text, shorten, with_noun

if TYPE_CHECKING:
    from pqext.variant.rewrite_report import Rewritten

_NAMED = re.compile(r"(?P<column>[^\s=<(,:`']+)=(?P<schema>.*)", re.S)
MAX_TEXT = 2_000


class Coerce(StrEnum):
    """Which values go to typed columns."""

    equivalent = "equivalent"
    exact = "exact"
    json = "json"


class InvalidValues(StrEnum):
    """What becomes of a value that cannot be read."""

    stop = "raise"
    null = "null"


class OnCorrupt(StrEnum):
    """What becomes of the rows of damaged pages."""

    stop = "raise"
    skip = "skip"


Source = Annotated[
    str,
    Argument(metavar="IN", help="The Parquet file to read; - is standard input.", show_default=False, is_file=True),
]
Dest = Annotated[
    str,
    Argument(metavar="OUT", show_default=False,
             help="The file to write; it may be IN itself, of which nothing is lost without --force."),
]
Corrupt = Annotated[
    OnCorrupt, Option("--on-corrupt", help="A damaged page stops the work, or its rows are left out.")
]
Invalid = Annotated[
    InvalidValues, Option("--invalid-values", help="A value that cannot be read stops the work or becomes null.")
]

Report = Annotated[Form, Option("--format", help="A report for people, or JSON.")]


def reshred(
    source: Source,
    dest: Dest,
    schema: Annotated[
        list[str] | None,
        Option(
            "--shredding",
            metavar="[COLUMN=]infer|none|DDL",
            help="Such as 'a INT, b STRING' for all VARIANT columns, or v='a INT' for one; may be repeated. "
            'infer looks at the data, \'{"max_fields": 50, "coerce": "json"}\' does so with these options.',
            show_default="infer",
        ),
    ] = None,
    coerce: Annotated[
        Coerce,
        Option(help="Values that a typed column takes: equal ones, those of its very type, or of the same JSON."),
    ] = Coerce.equivalent,
    invalid_values: Invalid = InvalidValues.stop,
    on_corrupt: Corrupt = OnCorrupt.stop,
    force: Force = False,
    form: Report = Form.text,
    reading: Reading = DEFAULTS,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Shred the VARIANT columns of a file again. Every value is checked, and repaired if possible.

    Other columns, metadata, row groups and codecs stay as they are. OUT appears when it is whole.

    Example: pqext reshred events.parquet events.parquet --shredding 'event=user STRUCT<id: BIGINT>'
    """
    from pqext.variant.rewriting import reshred_file
    from pqext.variant.shredding.schema import Untyped

    with refusals():
        read, out = placed([source, dest], storage, anonymous)
        check_new(out, force, read)
        decryption = reading.decryption
        wanted = stated(schema)
    if isinstance(wanted, dict):
        wanted = {column: Untyped() if how is None else how for column, how in wanted.items()}
    elif wanted is None:
        wanted = Untyped()
    with _keeping(), _quiet(), progress() as show:
        done = reshred_file(
            read, out, wanted, coerce=coerce.value, strict=reading.strict, limits=reading.limits, decryption=decryption,
            int96=reading.int96.value, **reading.text_and_calendar, invalid_values=invalid_values.value,
            on_corrupt=on_corrupt.value, progress=show, overwrite=force,
        )
    _tell(out, done, form)


def unshred(
    source: Source, dest: Dest, invalid_values: Invalid = InvalidValues.stop,
    on_corrupt: Corrupt = OnCorrupt.stop, force: Force = False, form: Report = Form.text,
    reading: Reading = DEFAULTS, storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Write VARIANT columns unshredded, for readers without shredding support.

    Other columns, metadata, row groups and codecs stay as they are. OUT appears when it is whole.

    Example: pqext unshred events.parquet whole.parquet
    """
    from pqext.variant.rewriting import unshred_file

    with refusals():
        read, out = placed([source, dest], storage, anonymous)
        check_new(out, force, read)
        decryption = reading.decryption
    with _keeping(), _quiet(), progress() as show:
        done = unshred_file(
            read, out, strict=reading.strict, limits=reading.limits, decryption=decryption,
            int96=reading.int96.value, **reading.text_and_calendar,
            invalid_values=invalid_values.value, on_corrupt=on_corrupt.value, progress=show,
            overwrite=force,
        )
    _tell(out, done, form)


def repair(
    source: Source, dest: Dest, invalid_values: Invalid = InvalidValues.stop, force: Force = False,
    form: Report = Form.text, reading: Reading = DEFAULTS, storage: Storage = None, anonymous: Anonymous = False,
) -> None:
    """Write the readable rows of a damaged file with correct statistics, and report the lost rows.

    Shredding, codecs, row groups, sort keys and metadata stay as they are. OUT appears when it is whole. pqext
    recover writes what is left of a file whose end is lost.

    Example: pqext repair damaged.parquet mended.parquet
    """
    from pqext.variant.rewriting import repair as repair_file

    with refusals():
        read, out = placed([source, dest], storage, anonymous)
        check_new(out, force, read)
        decryption = reading.decryption
    with _keeping(), progress() as show:
        done = repair_file(
            read, out, invalid_values=invalid_values.value, progress=show, overwrite=force, limits=reading.limits,
            decryption=decryption, int96=reading.int96.value, **reading.text_and_calendar,
        )  # fmt: skip
    _tell(out, done, form)


@contextmanager
def _keeping() -> Iterator[None]:
    """IN loses nothing that cannot be read unless --force says so."""
    from pqext.variant.rewriting import LossError

    try:
        yield
    except LossError as error:
        raise LossError(error.lost, "--force allows it") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """No warning for each loss: all are told in the end."""
    from pqext.core.base.errors import CorruptDataWarning

    with catch_warnings():
        simplefilter("ignore", CorruptDataWarning)
        yield


def stated(given: list[str] | None) -> Any:
    """What ``--shredding`` says: one choice for all columns, or a mapping from columns to choices; None for ``none``.

    A choice is the text of a schema or of options, or ``infer``, the default. Raises ``ValueError`` for any other.
    """
    from pqext.variant.shredding.choice import shredding

    named: dict[str, str | None] = {}
    for text in given or ["infer"]:
        match = _NAMED.fullmatch(text.strip())
        column, how = (match["column"], match["schema"]) if match is not None else ("", text)
        how = how.strip()
        if column in named:
            raise ValueError(f"--shredding: column {escape_text(column)!r} has two schemas")
        if how.lower() == "none":
            named[column] = None
            continue
        try:
            shredding(how)
        except (ValueError, TypeError) as error:
            raise ValueError(f"--shredding: {error}") from None
        named[column] = how
    if "" in named and len(named) > 1:
        raise ValueError("--shredding: give one schema for all columns, or COLUMN=DDL for each")
    return named.get("", named)


def _tell(dest: Place, done: Rewritten, form: Form) -> None:
    if form is Form.json:
        import json

        click.echo(json.dumps(done.to_dict(), indent=2))
        return
    rows, groups = with_noun(done.rows, "row"), with_noun(done.row_groups, "row group")
    click.echo(f"{named(dest)}: {rows} in {groups}")
    for column, schema in done.schemas.items():
        click.echo(f"  {escape_text(column)}: {shorten(escape_text(str(schema)), MAX_TEXT)}")
    if done.damage:
        from pqext.variant.rewrite_report import told_damage

        click.echo(f"  left out, with {with_noun(len(done.damage), 'piece')} of damage:", err=True)
        for line in told_damage(done.damage):
            click.echo(f"    {line}", err=True)
    if done.invalid:
        click.echo(f"  {with_noun(done.invalid, 'value')} could not be read and became null")
