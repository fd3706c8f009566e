"""Verification of a file: it is opened, every check is run, what they find becomes the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, get_args

from pqext.core.base.errors import CorruptFileError, ParquetError
from pqext.core.base.limits import Limits
from pqext.core.base.suggestions import did_you_mean, join_names
from pqext.core.footer.flatbuffers.comparison import contradicts_itself, differences
from pqext.core.footer.flatbuffers.framing import FLATBUFFERS, agrees, is_beside
from pqext.core.footer.flatbuffers.lookup import FlatFooter
from pqext.core.footer.jump_table.jump_table import JUMP_TABLE, fits
from pqext.core.format.extension.structure import extensions
from pqext.core.io.sources.locations import open_source
from pqext.core.options.encryption import FileDecryption
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.core.schema import shape
from pqext.core.schema.arrow_schema.serialization import KEY as ARROW_SCHEMA
from pqext.core.schema.arrow_schema.serialization import Unreadable, parse
from pqext.core.schema.shape import Shape
from pqext.verification import chunks, geometries, order, variants
from pqext.verification.advice import ADVICE
from pqext.verification.annotations import implausible
from pqext.verification.model import Fault, Findings
from pqext.verification.report import Report
from pqext.verification.selection import ChunkSelection

Check = Literal["chunks", "sorting", "variants", "geometries"]
CHECKS: dict[str, Callable[[ParquetFile, Sequence[Shape], ChunkSelection, Findings], None]] = {
    "chunks": chunks.check,
    "sorting": order.check,
    "variants": variants.check,
    "geometries": geometries.check,
}
"""What is looked at. A check accepts the open file, the top-level columns and the selection of chunks to decode.

It streams: it holds a batch at a time.
"""


def verify(
    source: Any,
    *,
    checks: Sequence[Check] | None = None,
    columns: Sequence[str] | None = None,
    limit: int = 100,
    limits: Limits | None = None,
    decryption: FileDecryption | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Report:
    """Read all of a Parquet file and say where it breaks the rules of the format.

    ``source``, ``filesystem`` and ``storage_options`` are as for :func:`pqext.open`. ``checks`` are, by default, all of

    - ``"chunks"``: every page's checksum, levels and values; that the statistics, the page index and the Bloom filter
      of each column chunk say what its values are, that the offset index says where its pages lie, and that sizes,
      encodings and level histograms are those of the pages; that values of JSON columns are JSON;
    - ``"sorting"``: that rows are in the order of the sort keys that their row group names;
    - ``"variants"``: for each VARIANT column the layout of its groups and the types of its columns, every encoded value
      and metadata in full, and how ``value`` and ``typed_value`` go together in every row;
    - ``"geometries"``: for each GEOMETRY and GEOGRAPHY column every value, whether bounding boxes of chunks and pages
      hold their data and the lists of types are right, and that there are no minima and maxima. A box that is wider
      than its data is right. GeoParquet metadata is compared with columns, types, boxes, CRS and each row's covering.

    ``columns`` (top-level names) narrows the work, ``limit`` how many faults are listed; all are counted. Memory is
    bounded by a batch of one column, whatever the file holds: ``limits`` are ``Limits.untrusted()`` by default. What
    exceeds them is listed as not checked, and so are column chunks of very many values in few bytes once all of them
    state more values than ``limits`` allow bytes. Column chunks that share bytes are a fault; bytes that several row
    groups share are decoded for the first of them only.

    A file that is damaged gives a report, a damaged footer too. Columns that cannot be checked, because a key is
    missing or an encoding is not known, are listed as ``unchecked``, and the report is not ``ok``.

    Raises ``ValueError`` for wrong arguments, ``OSError`` for a file that cannot be read, and ``LimitError`` for a
    footer beyond ``limits``.
    """
    if isinstance(checks, str) or isinstance(columns, str):
        raise TypeError("checks and columns are lists of names")
    wanted = get_args(Check) if checks is None else tuple(checks)
    for name in wanted:
        if name not in CHECKS:
            raise ValueError(f"checks are {', '.join(CHECKS)}, not {name!r}")
    if not wanted or (columns is not None and not columns):
        raise ValueError("there is nothing to check: name at least one check and one column, or None for all")
    if limit < 0:
        raise ValueError(f"limit must not be negative, not {limit}")
    findings = Findings(limit)
    try:
        options = ReadOptions(decryption=decryption, arrow_schema=False, legacy_calendar="stored")
        file = _WholeFooter(
            source, options, limits=limits or Limits.untrusted(), filesystem=filesystem, storage_options=storage_options
        )
    except CorruptFileError as error:
        findings.add(Fault("layout.footer-lost", error.message, column=error.column, offset=error.offset))
        opened = open_source(source, filesystem, storage_options)
        size = opened.size
        opened.close()
        advice = () if "; it looks like " in error.message else ADVICE  # what it is tells what to do
        return Report(error.path, size, None, None, wanted, (), findings.counts(advice), tuple(findings.faults), ())
    with file:
        _check_jump_table(file, findings)
        _check_flat_footer(file, findings)
        _check_marks(file, findings)
        _check_annotations(file, findings)
        tops = _chosen(file, columns)
        try:
            rows: int | None = file.num_rows
        except CorruptFileError as error:
            rows = None
            findings.add(Fault("layout.file-metadata", error.message, error.row_group))
        are_whole = _check_row_groups(file, findings)
        selection = ChunkSelection(file, findings)
        if rows is not None:
            if rows != file.metadata.num_rows:
                message = f"the file claims {file.metadata.num_rows} rows, its row groups {rows}"
                findings.add(Fault("layout.file-metadata", message))
            for name in wanted if are_whole else ():  # what is damaged was told
                CHECKS[name](file, tops, selection, findings)
        return Report(
            file.path, file.source.size, rows, len(file.row_groups), wanted,
            tuple(found.node.dotted for top in tops for found in variants.within(top)),
            findings.counts(ADVICE), tuple(findings.faults), tuple(findings.unchecked),
        )


class _WholeFooter(ParquetFile):
    """A file whose jump table is not believed."""

    _by_table = None  # type: ignore[assignment]


def _check_jump_table(file: ParquetFile, findings: Findings) -> None:
    """Note a jump table that is not the footer's."""
    if file.footer.decryptor is not None:
        return
    try:
        message = "the jump table is another than the footer's" if fits(bytes(file.footer.raw)) is False else None
    except CorruptFileError as error:
        message = error.message
    if message is not None:
        findings.add(Fault("extension.jump-table.verified", message, offset=file.footer.offset))


def _check_row_groups(file: ParquetFile, findings: Findings) -> bool:
    """Note sizes below 0, and numbers that only some row groups have, for which some readers refuse a file.

    False for a file whose row groups cannot all be read, which is noted too.
    """
    numbered: list[bool] = []
    for index, group in enumerate(file.row_groups):
        try:
            about = group.metadata
        except CorruptFileError as error:
            findings.add(Fault("layout.file-metadata", error.message, index, offset=error.offset))
            continue
        numbered.append(about.ordinal is not None)
        for name in ("total_byte_size", "total_compressed_size", "file_offset", "ordinal"):
            value = getattr(about, name)
            if value is not None and value < 0:
                findings.add(Fault("layout.file-metadata", f"{name} is {value}", index))
    if len({*numbered}) > 1:
        message = f"{sum(numbered)} of {len(numbered)} row groups have an ordinal; some readers want all to, or none"
        findings.add(Fault("layout.file-metadata", message))
    return len(numbered) == len(file.row_groups)


def _check_flat_footer(file: ParquetFile, findings: Findings) -> None:
    """Note where the FlatBuffers footer beside the Thrift one says something else, and a Thrift footer that is lost."""
    footer = file.footer
    if footer.decryptor is not None:
        return
    if footer.format == "thrift+flatbuffers":
        message = "the Thrift footer is damaged; its FlatBuffers form was read instead"
        findings.add(Fault("extension.flatbuffers.verified", message, offset=footer.offset))
        return
    if isinstance(footer, FlatFooter) and contradicts_itself(footer.lookup):
        message = "the tables of the FlatBuffers footer say otherwise to readers that do not know our extension of it"
        findings.add(Fault("extension.flatbuffers.verified", message, offset=footer.offset))
    if footer.format == "flatbuffers" or not is_beside(footer.raw):
        return
    try:
        for place in islice(differences(footer.raw, file.limits), _DIFFERENCES):
            message = f"the FlatBuffers footer disagrees with the Thrift footer, which rules, on {place}"
            findings.add(Fault("extension.flatbuffers.verified", message, offset=footer.offset))
        if not agrees(footer.raw):
            message = "the FlatBuffers footer was made from another Thrift footer"
            findings.add(Fault("extension.flatbuffers.verified", message, offset=footer.offset))
    except ParquetError as error:
        findings.add(Fault("extension.flatbuffers.verified", error.message, offset=footer.offset))


_DIFFERENCES = 100
"""Places that are told."""


def _check_marks(file: ParquetFile, findings: Findings) -> None:
    """Note an extension whose UUID is nearly one of ours: readers pass over it as over any that they do not know."""
    stored = extensions(file.metadata) or b""
    for name, mark, rule in _MARKS:
        others = sum(one != other for one, other in zip(stored[-len(mark) :], mark, strict=False))
        if len(stored) >= len(mark) and 0 < others <= _DAMAGED:
            message = f"the mark of a {name} is damaged, so that readers pass over it"
            findings.add(Fault(rule, message, offset=file.footer.offset))


_MARKS = (
    ("FlatBuffers footer", FLATBUFFERS.bytes, "extension.flatbuffers.verified"),
    ("jump table", JUMP_TABLE.bytes, "extension.jump-table.verified"),
)
_DAMAGED = 4
"""Bytes in which a damaged mark differs from ours at most; of another one nearly all differ."""


def _check_annotations(file: ParquetFile, findings: Findings) -> None:
    for pair in file.metadata.key_value_metadata or ():
        if pair.key == ARROW_SCHEMA:
            try:
                parse(pair.value or "")
            except Unreadable as error:
                message = f"{ARROW_SCHEMA}, the note of the Arrow schema, cannot be read: {error}"
                findings.add(Fault("layout.file-metadata", message, offset=file.footer.offset))
    for element in file.metadata.schema:
        for what in implausible(element):
            findings.add(Fault("layout.file-metadata", f"the schema element {element.name!r} has {what}"))
    for element in file.metadata.schema[1:]:  # read leniently
        if element.repetition_type is None:
            message = f"the schema element {element.name!r} has no repetition type"
            findings.add(Fault("layout.file-metadata", message))
        if element.type is None and not element.num_children:
            message = f"the schema element {element.name!r} has neither a type nor children"
            findings.add(Fault("layout.file-metadata", message))


def _chosen(file: ParquetFile, columns: Sequence[str] | None) -> list[Shape]:
    names = None if columns is None else set(columns)
    if names is not None and (unknown := names - set(file.schema.root.child_names)):
        meant = did_you_mean(min(unknown), file.schema.root.child_names)
        there = f"; there are {join_names(file.schema.root.child_names)}"
        raise ValueError(f"there is no top-level column {min(unknown)!r}{meant or there}")
    tops = []
    try:
        for node in file.schema.root.children:
            if names is None or node.name in names:
                tops.append(shape.of(node))
    except ParquetError as error:
        error.locate(path=file.path)
        raise
    return tops
