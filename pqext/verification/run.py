"""Verify a file: open it, run the checks and compile the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, get_args

from pqext.core.base.errors import CorruptFileError, ParquetError
from pqext.core.base.limits import Limits
from pqext.core.base.progress import Progress, Steps
from pqext.core.base.suggestions import did_you_mean, join_names
from pqext.core.footer.flatbuffers.lookup import FlatFooter
from pqext.core.footer.flatbuffers.reading import has_matching_footer
from pqext.core.footer.jump_table.jump_table import JUMP_TABLE, has_correct_table
from pqext.core.footer.thrift_footer import FLATBUFFERS, ends_in_flat_footer
from pqext.core.format.extension.structure import extensions
from pqext.core.io.source import FileSource
from pqext.core.io.sources.locations import open_source
from pqext.core.options.encryption import FileDecryption
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.core.schema import shape
from pqext.core.schema.arrow_schema.stored_schema import KEY as ARROW_SCHEMA
from pqext.core.schema.arrow_schema.stored_schema import UnreadableSchemaError, parse
from pqext.core.schema.shape import Shape
from pqext.verification import chunks, geometries, sort_order, variants
from pqext.verification.chunk_selection import ChunkSelection
from pqext.verification.metadata_checks import find_differences, find_implausible_annotations, is_inconsistent
from pqext.verification.report import Fault, Findings, Report

_RESHRED = (
    "rewrite the file with `pqext reshred IN OUT` or `pqext unshred IN OUT`: typed_value takes precedence, "
    "as it does for readers of a single column"
)
_SCHEMA = "the schema is wrong, not a row: write the file again from its source, with groups and types as specified"

_WRONG = (
    "readers that rely on {} lose rows. If the values are corrupt instead (only checksums can show it), read with "
    "trust_statistics=False; `pqext repair IN OUT` relies on the values"
)
_MISLED = "readers that plan by these counts, sizes or encodings may fail or lose rows: `pqext repair` fixes the file"
_LOST = (
    "fetch the file again; else `pqext repair IN OUT` preserves intact data, as on_corrupt=\"skip\" reads it, and "
    "`pqext recover IN OUT` preserves more if bytes are missing"
)
_BOXES = _WRONG.format("these statistics")
_NO_ORDER = "readers that rely on these bounds may lose rows; pqext never does: write the file again without them"

ADVICE: tuple[tuple[str, str], ...] = (
    ("layout.footer-lost", "the file is truncated, or its start or end was overwritten: fetch it again, or write "
                           "the remaining rows with `pqext recover FILE OUT`"),
    ("layout.file-metadata", "the footer contradicts itself: write the file again with another writer"),
    ("extension.jump-table.", "reads through the jump table may be wrong: `pqext rewrite-footer FILE` drops it"),
    ("extension.flatbuffers.", "the two footers differ, or one is corrupt: `pqext rewrite-footer FILE --footer "
                               "thrift+flatbuffers` rebuilds both from the footer that pqext reads"),
    ("page.crc", "the bytes changed after they were written: fetch the file again; else `pqext repair IN OUT` "
                 'preserves the rows around the damage, as on_corrupt="skip" reads them'),
    ("page.v2.counts", _MISLED),
    ("page.v2.levels", _LOST),
    ("layout.page-lost", _LOST),
    ("layout.chunk-lost", _LOST),
    ("layout.chunks-apart", _LOST),
    ("statistics.sizes", _MISLED),
    ("page-index.histograms", _MISLED),
    ("layout.chunk-encoding", _MISLED),
    ("layout.offsets", _MISLED),
    ("statistics.", _WRONG.format("these statistics")),
    ("page-index.", _WRONG.format("this index")),
    ("logical.decimal.byte-array", "pyarrow fails on empty decimals, DuckDB, polars and pqext read them as zero: "
                                   "`pqext repair IN OUT` writes zeros"),
    ("logical.json", "readers that parse the column fail on these values: write the rows again, or the column as text"),
    ("sorting.", "readers that rely on the sort keys may skip or merge rows wrongly: sort the rows, or write the file "
                 "again without sort keys"),
    ("bloom.", _WRONG.format("this filter")),
    ("shredding.value.exclusive", _RESHRED),
    ("shredding.object.disjoint", _RESHRED),
    ("shredding.object.typed", _RESHRED),
    ("shredding.array.typed", _RESHRED),
    ("shredding.array.present", "rewrite the file with `pqext reshred IN OUT`: missing elements become variant nulls"),
    ("shredding.value.missing", "rewrite the file with `pqext reshred IN OUT`: missing values become variant nulls"),
    ("shredding.metadata.names", "rewrite the file with `pqext reshred IN OUT`: the metadata gets the missing names"),
    ("shredding.object.residual-kind", "value and typed_value contradict each other and neither is known to be right: "
                                       "write these rows again from their source"),
    ("shredding.layout", _SCHEMA),
    ("shredding.types", _SCHEMA),
    ("shredding.array.list", _SCHEMA),
    ("shredding.object", _SCHEMA),
    ("variant.group", _SCHEMA),
    ("variant.version", _SCHEMA),
    ("geo.box", _BOXES),
    ("geo.page_boxes", _BOXES),
    ("geo.types", _BOXES),
    ("geometry.order", _NO_ORDER),
    ("geography.order", _NO_ORDER),
    ("geography.crs", "write the column as GEOMETRY, or transform it to longitudes and latitudes first"),
    ("geoparquet.covering", "the geometries are right, but readers that skip rows by these boxes lose rows: "
                            "`pqext convert IN OUT --geoparquet 1.1` computes the boxes again, and "
                            "`pqext convert IN OUT` writes a file without a covering"),
    ("geoparquet.orientation", "readers that rely on it exchange the inside and outside of these polygons: write the "
                               "rows again with geometry={COLUMN: {\"orientation\": \"counterclockwise\"}}"),
    ("geoparquet.damaged", "readers of GeoParquet do not find the geometry columns: write the rows again with "
                           "geometry={COLUMN: CRS}"),
    ("geoparquet.", "the geometries are right, but readers that rely on this metadata may lose or misplace them: "
                    "`pqext repair IN OUT` writes metadata that fits the file"),
    ("geo", "these geometries were written incorrectly: write the rows again from their source"),
    ("variant.", "these values were written incorrectly: write the rows again from their source; "
                 "`pqext reshred --invalid-values null` makes them null and preserves the others"),
)  # fmt: skip
"""Rule prefixes with their remedies; the first matching prefix applies."""


Check = Literal["chunks", "sorting", "variants", "geometries"]
CHECKS: dict[str, Callable[[ParquetFile, Sequence[Shape], ChunkSelection, Findings], None]] = {
    "chunks": chunks.check,
    "sorting": sort_order.check,
    "variants": variants.check,
    "geometries": geometries.check,
}
"""Checks by name.

A check is called with the open file, the top-level columns, the selection of chunks and the findings.

Checks process one batch at a time.
"""


def verify(
    source: FileSource,
    *,
    checks: Sequence[Check] | None = None,
    columns: Sequence[str] | None = None,
    limit: int = 100,
    limits: Limits | None = None,
    decryption: FileDecryption | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Read a Parquet file completely and report violations of the format.

    The following checks run by default:

    - ``"chunks"``: the checksum, levels and values of every page; statistics, page index and Bloom filter of each
      column chunk against its values; offset index, sizes, encodings and level histograms against its pages; the text
      of JSON columns;
    - ``"sorting"``: the order of rows against the sort keys of their row group;
    - ``"variants"``: for each VARIANT column, the layout of its groups and the types of its columns, every encoded
      value and metadata in full, and the consistency of ``value`` and ``typed_value`` in every row;
    - ``"geometries"``: for each GEOMETRY and GEOGRAPHY column, every value, and whether the bounding boxes of chunks
      and pages contain their data, the type lists are complete, and minima and maxima are absent. A box may be wider
      than its data. GeoParquet metadata is compared with columns, types, boxes, CRS and the covering of each row.

    A corrupt file or footer results in a report, not an error. Columns that cannot be checked, because a key is missing
    or an encoding is unsupported, are listed as ``unchecked``, and the report is not ``ok``. Column chunks that share
    bytes are a fault. Bytes that several row groups share are decoded only for the first row group.

    Memory is bounded by one batch of one column. Data beyond ``limits`` is listed as unchecked. Column chunks with very
    many values in few bytes are also listed as unchecked once their total number of values exceeds the number of bytes
    that ``limits`` allow.

    Args:
        source: Path, URL, bytes or binary file, as for :func:`pqext.open`.
        checks: Names of the checks to run; all if None.
        columns: Names of the top-level columns to check; all if None.
        limit: Maximum number of faults to list; all are counted.
        limits: Limits of the reader; ``Limits.untrusted()`` if None.
        decryption: Keys of encrypted columns and footers.
        filesystem: File system of the source, as for :func:`pqext.open`.
        storage_options: Options of the object store, as for :func:`pqext.open`.
        progress: Called with the number of column chunks that the checks have reached, and with the total, which
            includes every chunk once for each check.

    Returns:
        A report, which is ``ok`` if everything was checked and no fault was found.

    Raises:
        ValueError: If an argument is invalid.
        OSError: If the file cannot be read.
        LimitError: If the footer exceeds ``limits``.

    Example:
        >>> import io, pyarrow as pa, pqext
        >>> sink = io.BytesIO()
        >>> pqext.write_table(pa.table({"n": [3, 5]}), sink)
        >>> verify(sink.getvalue()).ok
        True
    """
    if isinstance(checks, str) or isinstance(columns, str):
        raise TypeError("checks and columns must be lists of names, such as ['chunks'], not text")
    names = get_args(Check) if checks is None else tuple(checks)
    for name in names:
        if name not in CHECKS:
            raise ValueError(f"unknown check {name!r}; the checks are {', '.join(CHECKS)}")
    if not names or (columns is not None and not columns):
        raise ValueError("nothing to check; pass at least one check and one column, or None for all")
    if limit < 0:
        raise ValueError(f"limit must be 0 or more, not {limit}")
    findings = Findings(limit)
    try:
        options = ReadOptions(decryption=decryption, arrow_schema=False, legacy_calendar="stored")
        file = _FullFooterFile(
            source, options, limits=limits or Limits.untrusted(), filesystem=filesystem, storage_options=storage_options
        )
    except CorruptFileError as error:
        findings.add(Fault("layout.footer-lost", error.message, column=error.column, offset=error.offset))
        opened = open_source(source, filesystem, storage_options)
        size = opened.size
        opened.close()
        advice = () if "; it looks like " in error.message else ADVICE  # these messages contain a remedy
        return Report(error.path, size, None, None, names, (), findings.counts(advice), tuple(findings.faults), ())
    with file:
        _check_jump_table(file, findings)
        _check_flat_footer(file, findings)
        _check_extension_marks(file, findings)
        _check_annotations(file, findings)
        tops = _select_columns(file, columns)
        try:
            rows: int | None = file.num_rows
        except CorruptFileError as error:
            rows = None
            findings.add(Fault("layout.file-metadata", error.message, error.row_group))
        are_readable = _check_row_groups(file, findings)
        chunks_per_check = len(file.row_groups) * sum(len(list(top.leaves())) for top in tops)
        steps = Steps(progress, chunks_per_check * len(names))
        selection = ChunkSelection(file, findings, steps)
        if rows is not None:
            if rows != file.metadata.num_rows:
                message = f"the footer states {file.metadata.num_rows} rows, its row groups {rows}"
                findings.add(Fault("layout.file-metadata", message))
            for number, name in enumerate(names if are_readable else (), 1):  # unreadable row groups are reported
                CHECKS[name](file, tops, selection, findings)
                steps.finish(number * chunks_per_check)
        return Report(
            file.path, file.source.size, rows, len(file.row_groups), names,
            tuple(group.node.dotted_path for top in tops for group in variants.iter_groups(top)),
            findings.counts(ADVICE), tuple(findings.faults), tuple(findings.unchecked),
        )


class _FullFooterFile(ParquetFile):
    """File that is read without its jump table, because the jump table is checked separately."""

    _with_jump_table = False


def _check_jump_table(file: ParquetFile, findings: Findings) -> None:
    """Report a jump table that does not match the footer."""
    if file.footer.decryptor is not None:
        return
    try:
        is_wrong = has_correct_table(bytes(file.footer.raw)) is False
        message = "the jump table does not match the footer" if is_wrong else None
    except CorruptFileError as error:
        message = error.message
    if message is not None:
        findings.add(Fault("extension.jump-table.verified", message, offset=file.footer.offset))


def _check_row_groups(file: ParquetFile, findings: Findings) -> bool:
    """Report unreadable row groups, negative sizes, and row groups without ordinals if other row groups have ordinals.

    Return whether all row groups can be read. Some readers reject files with ordinals in some row groups only.
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
        message = f"{sum(numbered)} of {len(numbered)} row groups have an ordinal; some readers require all or none"
        findings.add(Fault("layout.file-metadata", message))
    return len(numbered) == len(file.row_groups)


def _check_flat_footer(file: ParquetFile, findings: Findings) -> None:
    """Report differences between the FlatBuffers and the Thrift footer, and a corrupt Thrift footer."""
    footer = file.footer
    if footer.decryptor is not None:
        return
    if footer.format == "thrift+flatbuffers":
        message = "the Thrift footer is corrupt; its FlatBuffers copy was read instead"
        findings.add(Fault("extension.flatbuffers.verified", message, offset=footer.offset))
        return
    if isinstance(footer, FlatFooter) and is_inconsistent(footer.lookup):
        message = "the FlatBuffers footer has other contents for readers that do not support pqext's extension of it"
        findings.add(Fault("extension.flatbuffers.verified", message, offset=footer.offset))
    if footer.format == "flatbuffers" or not ends_in_flat_footer(footer.raw):
        return
    try:
        for difference in islice(find_differences(footer.raw, file.limits), _DIFFERENCES):
            message = f"the FlatBuffers footer disagrees with the Thrift footer on {difference}"
            findings.add(Fault("extension.flatbuffers.verified", message, offset=footer.offset))
        if not has_matching_footer(footer.raw):
            message = "the FlatBuffers footer was made from another Thrift footer"
            findings.add(Fault("extension.flatbuffers.verified", message, offset=footer.offset))
    except ParquetError as error:
        findings.add(Fault("extension.flatbuffers.verified", error.message, offset=footer.offset))


_DIFFERENCES = 100
"""Maximum number of differences to report."""


def _check_extension_marks(file: ParquetFile, findings: Findings) -> None:
    """Report extensions with a corrupt UUID. Readers do not recognise these extensions of pqext and skip them."""
    stored = extensions(file.metadata) or b""
    for name, mark, rule in _MARKS:
        differing = sum(byte != expected for byte, expected in zip(stored[-len(mark) :], mark, strict=False))
        if len(stored) >= len(mark) and 0 < differing <= _DAMAGED:
            message = f"the UUID of a {name} is corrupt, so readers skip it"
            findings.add(Fault(rule, message, offset=file.footer.offset))


_MARKS = (
    ("FlatBuffers footer", FLATBUFFERS.bytes, "extension.flatbuffers.verified"),
    ("jump table", JUMP_TABLE.bytes, "extension.jump-table.verified"),
)
_DAMAGED = 4
"""Maximum number of bytes that differ in a corrupt UUID; nearly all bytes of an unrelated UUID differ."""


def _check_annotations(file: ParquetFile, findings: Findings) -> None:
    """Report an unreadable Arrow schema, and implausible or incomplete schema elements."""
    for pair in file.metadata.key_value_metadata or ():
        if pair.key == ARROW_SCHEMA:
            try:
                parse(pair.value or "")
            except UnreadableSchemaError as error:
                message = f"the metadata entry {ARROW_SCHEMA} cannot be read: {error}"
                findings.add(Fault("layout.file-metadata", message, offset=file.footer.offset))
    for element in file.metadata.schema:
        for problem in find_implausible_annotations(element):
            findings.add(Fault("layout.file-metadata", f"the schema element {element.name!r} has {problem}"))
    for element in file.metadata.schema[1:]:  # read leniently
        if element.repetition_type is None:
            message = f"the schema element {element.name!r} has no repetition type"
            findings.add(Fault("layout.file-metadata", message))
        if element.type is None and not element.num_children:
            message = f"the schema element {element.name!r} has neither a type nor children"
            findings.add(Fault("layout.file-metadata", message))


def _select_columns(file: ParquetFile, columns: Sequence[str] | None) -> list[Shape]:
    names = None if columns is None else set(columns)
    if names is not None and (unknown := names - set(file.schema.root.child_names)):
        suggestion = did_you_mean(min(unknown), file.schema.root.child_names)
        choices = f"; the columns are {join_names(file.schema.root.child_names)}"
        raise ValueError(f"unknown top-level column {min(unknown)!r}{suggestion or choices}")
    tops = []
    try:
        for node in file.schema.root.children:
            if names is None or node.name in names:
                tops.append(shape.from_node(node))
    except ParquetError as error:
        error.locate(path=file.path)
        raise
    return tops
