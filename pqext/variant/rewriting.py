"""Files whose VARIANT columns are shredded otherwise, or no more, and are sound: one row group in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import fields, replace
from typing import Any, Literal, Unpack, get_args
from warnings import catch_warnings, simplefilter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import CorruptDataWarning, CorruptFileError, ErrorPathContext, VariantError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.suggestions import join_names
from pqext.core.base.text import with_noun
from pqext.core.footer.thrift_footer import FootedSource
from pqext.core.footer.writing import form_of
from pqext.core.io.local_writers import kept_from_others
from pqext.core.io.sources.locations import locate, may_be_same
from pqext.core.options.encryption import FileDecryption
from pqext.core.options.keywords import WriteKeywords
from pqext.core.options.read_write import InvalidUtf8, ReadOptions, WriteOptions
from pqext.core.read.damage import rows_lost
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.types.int96 import Int96
from pqext.core.write import storage
from pqext.core.write.file_options import options_of
from pqext.core.write.writer import ParquetWriter
from pqext.variant.rewrite_report import Rewritten
from pqext.variant.shredding.choice import Shredding, shredding
from pqext.variant.shredding.reconstruct import unshred
from pqext.variant.shredding.schema import ShreddingSchema, Untyped
from pqext.variant.shredding.shredder import Coerce, check_coerce
from pqext.variant.types import is_marked, storage_array, storage_type, variant_type
from pqext.variant.validation import find_faults

InvalidValues = Literal["raise", "null"]
OnCorrupt = Literal["raise", "skip"]
Progress = Callable[[int, int], None]

BATCH_ROWS = 16_384
SAMPLE_GROUPS = 8

REPAIRED = (
    "shredding.value.exclusive", "shredding.object.disjoint", "shredding.object.typed", "shredding.array.typed",
    "shredding.array.present", "shredding.value.missing", "shredding.metadata.names",
)  # fmt: skip
"""Rules that reading mends: ``typed_value`` is right, what is missing where it is required is null, names are added."""


class LossError(ValueError):
    """A file would be replaced by one that lacks some of it; ``lost`` says what."""

    def __init__(self, lost: str, advice: str = "overwrite=True allows it") -> None:
        self.lost = lost
        told = f"{lost} cannot be read and would be lost for good, so the file is not replaced: write to another file"
        super().__init__(f"{told}; {advice}")


def repair(
    source: Any,
    dest: Any,
    *,
    invalid_values: InvalidValues = "raise",
    limits: Limits = DEFAULT_LIMITS,
    decryption: FileDecryption | None = None,
    int96: Int96 = "auto",
    invalid_utf8: InvalidUtf8 = "raise",
    legacy_timezone: str | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
    options: WriteOptions | None = None,
    **keywords: Unpack[WriteKeywords],
) -> Rewritten:
    """Rewrite a file that opens but has faults: corrupt pages, wrong statistics, invalid values.

    Rows of corrupt pages are omitted and reported, and statistics are computed again. Shredding, codecs, encodings, row
    groups, sort keys, indexes and metadata stay as they are. If the footer is missing or corrupt, so that
    :func:`pqext.open` raises ``CorruptFileError``, use :func:`pqext.recover`.

    Args:
        source: Any source that :func:`pqext.open` takes.
        dest: Any destination that :func:`pqext.write_table` takes; it appears when it is whole. It may be ``source``.
        invalid_values: A VARIANT value that cannot be read raises, or becomes null with ``"null"``, as do values of
            other columns that lie outside their type, whose pages are left out otherwise; contradictions between
            ``value`` and ``typed_value`` are mended as in :func:`pqext.variant.reshred_file`.
        limits: What reading may take.
        decryption: The keys of an encrypted file.
        int96: The unit in which INT96 timestamps are read, as in :class:`pqext.ReadOptions`.
        invalid_utf8: Result of strings that are not UTF-8, as in :class:`pqext.ReadOptions`.
        legacy_timezone: Time zone of a writer that does not state it, as in :class:`pqext.ReadOptions`.
        progress: Called with the rows done and all rows.
        overwrite: Put the new file in the place of ``source`` though rows or values of it are lost.
        options: The options of the writer; those not at their default go before what the file tells.
        keywords: The fields of :class:`pqext.WriteOptions`, which go before ``options``.

    Returns:
        What became of the file: ``rows`` and ``row_groups`` that were written, and in ``damage`` what was left out.

    Raises:
        CorruptFileError: Where the footer or the schema is damaged, or no row can be read.
        VariantError: For a value that cannot be read, with the row of the file.
        ValueError: Where ``dest`` is ``source``, something of it would be lost, and ``overwrite`` is not given.

    Example:
        >>> import pathlib, pqext, pyarrow
        >>> pqext.write_table(pyarrow.table({"id": range(100)}), "ids.parquet", row_group_rows=50)
        >>> data = bytearray(pathlib.Path("ids.parquet").read_bytes())
        >>> data[60] ^= 255  # within the first page
        >>> pqext.repair(bytes(data), "mended.parquet").rows
        50
    """
    given, read = _given(options, keywords), _read_options(decryption, int96, invalid_utf8, legacy_timezone)
    with catch_warnings():
        simplefilter("ignore", CorruptDataWarning)  # the result tells of them
        return _rewrite(
            source, dest, None, "equivalent", False, invalid_values, "skip", limits, read, progress, overwrite, given
        )


def reshred_file(
    source: Any,
    dest: Any,
    schema: Any = "infer",
    *,
    coerce: Coerce = "equivalent",
    strict: bool = False,
    invalid_values: InvalidValues = "raise",
    on_corrupt: OnCorrupt = "raise",
    limits: Limits = DEFAULT_LIMITS,
    decryption: FileDecryption | None = None,
    int96: Int96 = "auto",
    invalid_utf8: InvalidUtf8 = "raise",
    legacy_timezone: str | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
    options: WriteOptions | None = None,
    **keywords: Unpack[WriteKeywords],
) -> Rewritten:
    """Write the file ``source`` to ``dest`` with its VARIANT columns shredded by ``schema``.

    ``schema`` is whatever :func:`pqext.variant.shredding_schema` takes, or ``"infer"``, or JSON text of the options
    that the writer's ``shredding`` takes, for all VARIANT columns; or a mapping from a column's dotted path to one of
    these or a mapping of options, and columns left out keep the schema they have. ``coerce`` is for those whose
    options do not say it. Every value is checked in full. Where ``value`` and ``typed_value`` contradict each other
    the latter is right, elements and values that are missing become nulls, and names that the metadata lacks are
    added; with ``strict`` these raise. Values that cannot be read raise ``VariantError`` with the row of the file,
    or, with ``invalid_values="null"``, become null. With ``on_corrupt="skip"`` the rows of damaged pages are left out,
    with a ``CorruptDataWarning``, and noted in ``damage`` of the result; :func:`pqext.repair` keeps the shredding too.

    Other columns, key-value metadata, row groups and field ids stay as they are, and so do codecs, encodings,
    dictionaries, statistics, page indexes, Bloom filters and sort keys as far as the file tells. Keywords, the fields
    of :class:`pqext.WriteOptions`, go before them, and so do the fields of ``options`` that are not at their default.
    ``dest`` appears when it is whole, and may be ``source``; where rows or values would be lost so for good,
    ``ValueError`` is raised unless ``overwrite`` is true.
    ``int96``, ``invalid_utf8`` and ``legacy_timezone`` are as in :class:`pqext.ReadOptions`. ``progress`` is called
    with the rows done and all rows. Memory is bounded by one row group.

    An encrypted file is only written with ``encryption`` among the options, ``None`` to have it in plaintext.
    """
    check_coerce(coerce)
    given, read = _given(options, keywords), _read_options(decryption, int96, invalid_utf8, legacy_timezone)
    return _rewrite(
        source, dest, schema, coerce, strict, invalid_values, on_corrupt, limits, read, progress, overwrite, given
    )


def unshred_file(
    source: Any,
    dest: Any,
    *,
    strict: bool = False,
    invalid_values: InvalidValues = "raise",
    on_corrupt: OnCorrupt = "raise",
    limits: Limits = DEFAULT_LIMITS,
    decryption: FileDecryption | None = None,
    int96: Int96 = "auto",
    invalid_utf8: InvalidUtf8 = "raise",
    legacy_timezone: str | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
    options: WriteOptions | None = None,
    **keywords: Unpack[WriteKeywords],
) -> Rewritten:
    """Write the file ``source`` to ``dest`` with whole VARIANT values, nothing of them shredded.

    The rest is as for :func:`reshred_file`.
    """
    given, read = _given(options, keywords), _read_options(decryption, int96, invalid_utf8, legacy_timezone)
    schema = Untyped()
    return _rewrite(
        source, dest, schema, "equivalent", strict, invalid_values, on_corrupt, limits, read, progress, overwrite, given
    )


def _read_options(
    decryption: FileDecryption | None, int96: Int96, invalid_utf8: InvalidUtf8, legacy_timezone: str | None
) -> ReadOptions:
    base = ReadOptions(shredded=True, decryption=decryption, int96=int96, geoparquet=False)
    return replace(base, invalid_utf8=invalid_utf8, legacy_timezone=legacy_timezone)


def _given(options: WriteOptions | None, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked of the writer: keywords, and what ``options`` changes where they say nothing."""
    if options is None:
        return dict(keywords)
    if not isinstance(options, WriteOptions):
        raise TypeError(f"options must be WriteOptions, not {type(options).__name__}")
    usual = WriteOptions()
    names = [one.name for one in fields(WriteOptions)]
    changed = {name: getattr(options, name) for name in names if getattr(options, name) != getattr(usual, name)}
    return {**changed, **keywords}


def _rewrite(
    source: Any, dest: Any, schema: Any, coerce: Coerce, strict: bool, invalid_values: InvalidValues,
    on_corrupt: OnCorrupt, limits: Limits, read: ReadOptions, progress: Progress | None, overwrite: bool,
    options: dict[str, Any],
) -> Rewritten:
    if invalid_values not in get_args(InvalidValues):
        raise ValueError(f"invalid_values is 'raise' or 'null', not {invalid_values!r}")
    if "shredding" in options:
        raise TypeError("the shredding is the schema argument, not an option")
    read = replace(read, on_corrupt=on_corrupt, invalid_values=invalid_values)
    with kept_from_others(source, dest), ExitStack() as opened:
        file = opened.enter_context(ParquetFile(source, read, limits=limits))
        if file.footer.decryptor is not None and "encryption" not in options:
            advice = "give encryption for the new one, None to write it in plaintext"
            raise ValueError(f"{_called(file)} is encrypted: {advice}")
        leaves, budget = [leaf for top in file.shapes[:1] for leaf in top.leaves()], file.budget()
        for index in range(len(file.row_groups)):
            file.row_groups.checked(index, leaves, budget)
        found = {path: kind for field in file.arrow_schema for path, kind in _variants(field, field.name)}
        if not found and schema is not None:
            advice = "pqext convert --json COLUMN makes one of JSON text"
            raise ValueError(f"{_called(file)} has no VARIANT column: {advice}")
        chosen = _chosen(file, {} if schema is None else schema, found, coerce)
        job = _Rewrite(chosen, strict, invalid_values, file.path)
        written = pa.schema([job.field(field, field.name) for field in file.arrow_schema], file.arrow_schema.metadata)
        kept = options_of(file, storage.to_schema(storage.plan(written, WriteOptions(shredding=job.shredding))))
        if file.footer.decryptor is None and not {"encryption", "profile"} & options.keys():
            kept["footer"] = "thrift" if isinstance(file.source, FootedSource) else form_of(file.source)
        rows = groups = 0
        with ParquetWriter(dest, written, shredding=job.shredding, **{**kept, **_SIZES, **options}) as writer:
            for group in range(len(file.row_groups)):
                before = rows
                for batch in file.iter_batches(BATCH_ROWS, row_groups=[group]):
                    job.first_row, job.row_group = rows, group
                    with ErrorPathContext(file.path):
                        writer.write_batch(job.batch(batch, written))
                    rows += batch.num_rows
                    if progress is not None:
                        progress(rows, file.num_rows)
                groups += rows > before
                if not _SIZES.keys() & options.keys():
                    with ErrorPathContext(file.path):
                        writer.end_row_group()
            job.invalid += file.source.usage.invalid_values
            if file.damage and not rows:
                told = f"nothing of its {file.num_rows:,} rows can be read where the footer says"
                advice = "`pqext recover` looks for pages by their headers"
                raise CorruptFileError(f"{told}: {file.damage[0].error.message}; {advice}", path=file.path)
            if not overwrite and (job.invalid or any(one.stop > one.start for one in file.damage)):
                _check_apart(source, dest, options, _told_loss(file, job.invalid))
            opened.close()  # Windows replaces no file that is open
        return Rewritten(rows, groups, job.schemas, job.invalid, tuple(file.damage))


def _told_loss(file: ParquetFile, invalid: int) -> str:
    rows = rows_lost(file.damage)
    lost = f"{with_noun(rows, 'row')} of {file.num_rows:,}" if rows else with_noun(invalid, "value")
    return f"{lost} of {_called(file)}"


def _check_apart(source: Any, dest: Any, options: Mapping[str, Any], lost: str) -> None:
    """Raise ``ValueError`` where ``dest`` takes the place of ``source``, of which something could not be read."""
    if may_be_same(locate(source), locate(dest, options.get("filesystem"), options.get("storage_options"))):
        raise LossError(lost)


def _called(file: ParquetFile) -> str:
    return f"file {file.path}" if file.path is not None else "the file"


_SIZES = {"row_group_rows": 1 << 62, "row_group_bytes": 1 << 62}
"""No limits: row groups end where they did."""


def _variants(field: pa.Field, path: str) -> Iterator[tuple[str, pa.DataType]]:
    """The VARIANT fields at or below ``field``, by dotted path."""
    kind = storage_type(field.type)
    if is_marked(field):
        yield path, kind
    elif pa.types.is_struct(kind) or pa.types.is_map(kind) or pa.types.is_list(kind):
        for name, child in _children(kind):
            yield from _variants(child, f"{path}.{name}")


def _children(kind: pa.DataType) -> list[tuple[str, pa.Field]]:
    """The fields below a nested type, by their path in the schema that is written."""
    if pa.types.is_map(kind):
        return [("key_value.key", kind.key_field), ("key_value.value", kind.item_field)]
    return [("list.element", kind.value_field)] if pa.types.is_list(kind) else [(child.name, child) for child in kind]


def _chosen(file: ParquetFile, schema: Any, found: Mapping[str, pa.DataType], coerce: Coerce) -> dict[str, Any]:
    """For each VARIANT column the writer's option: schema and coercion."""
    wanted = dict(schema) if isinstance(schema, Mapping) else dict.fromkeys(found, schema)
    for path in wanted:
        if path not in found:
            raise ValueError(f"{_called(file)} has no VARIANT column {path!r}; there are {join_names(found)}")
    chosen = {}
    for path, kind in found.items():
        how = shredding(wanted.get(path, kind), coerce)
        typed = _infer(file, path, how) if how.schema is None else how.schema
        chosen[path] = {"schema": typed, "coerce": how.coerce}
    return chosen


def _infer(file: ParquetFile, path: str, how: Shredding) -> ShreddingSchema:
    """By a sample of rows from row groups all over the file."""
    count = len(file.row_groups)
    chosen = sorted({i * count // min(count, SAMPLE_GROUPS) for i in range(min(count, SAMPLE_GROUPS))})
    top = file.schema.root.child(next(name for name in file.schema.root.child_names if _starts(path, name)))
    assert top is not None
    samples: list[pa.Array] = []
    for group in chosen:
        rows = max(1, how.inference.sample_rows // len(chosen))
        for batch in file.iter_batches(rows, columns=[top.name], row_groups=[group]):
            for array in _below(batch.column(0), batch.schema.field(0), top.name, path):
                samples.append(unshred(_without(array, _unreadable(array))))
            break
    return how.schema_for(pa.chunked_array(samples) if samples else None)


def _starts(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}.")


def _below(array: pa.Array, field: pa.Field, at: str, path: str) -> Iterator[pa.Array]:
    """The arrays of the variant at ``path``, of which ``array`` at ``at`` is a part of the way."""
    if at == path:
        yield storage_array(array)
    elif _starts(path, at):
        array = storage_array(array)
        parts: Iterable[pa.Array]
        if pa.types.is_map(array.type):
            parts = (array.keys, array.items)
        elif pa.types.is_list(array.type):
            parts = (array.flatten(),)
        else:
            parts = array.flatten()
        for (name, child), part in zip(_children(array.type), parts, strict=True):
            yield from _below(part, child, f"{at}.{name}", path)


class _Rewrite:
    """Turns arrays as they were stored into arrays as they are to be; counts what is invalid."""

    def __init__(
        self, shredding: Mapping[str, dict[str, Any]], strict: bool, invalid_values: InvalidValues, path: str | None
    ) -> None:
        self.shredding = shredding
        self._strict = strict
        self._invalid_values = invalid_values
        self._path = path
        self.first_row = self.row_group = self.invalid = 0

    @property
    def schemas(self) -> dict[str, ShreddingSchema]:
        """The schema of each VARIANT column."""
        return {path: option["schema"] for path, option in self.shredding.items()}

    def batch(self, batch: pa.RecordBatch, written: pa.Schema) -> pa.RecordBatch:
        """The batch in its new form, of schema ``written``."""
        fields = zip(batch.schema, batch.columns, strict=True)
        arrays = [self.array(array, field, field.name) for field, array in fields]
        return pa.RecordBatch.from_arrays(arrays, schema=written)

    def field(self, field: pa.Field, path: str) -> pa.Field:
        """The Arrow field to be written in the place of ``field``."""
        if path in self.shredding:
            marks = {k: v for k, v in (field.metadata or {}).items() if not k.startswith(b"ARROW:extension:")}
            return pa.field(field.name, variant_type(), field.nullable, marks or None)
        kind = field.type
        if not self._holds_variants(path):
            return field
        children = [self.field(child, f"{path}.{name}") for name, child in _children(kind)]
        if pa.types.is_map(kind):
            return field.with_type(pa.map_(children[0], children[1]))
        return field.with_type(pa.list_(children[0]) if pa.types.is_list(kind) else pa.struct(children))

    def _holds_variants(self, path: str) -> bool:
        return any(held.startswith(f"{path}.") for held in self.shredding)

    def array(self, array: pa.Array, field: pa.Field, path: str, rows: pa.Array | None = None) -> pa.Array:
        """``array`` of ``field`` in its new form; ``rows`` numbers its values by the batch's rows."""
        if path in self.shredding:
            return unshred(self._sound(storage_array(array), field, path, rows))
        if not self._holds_variants(path):
            return array
        kind = self.field(field, path).type
        mask = array.is_null() if array.null_count else None
        children = [(f"{path}.{name}", child) for name, child in _children(array.type)]
        if pa.types.is_struct(array.type):
            parts = [self.array(array.field(i), child, name, rows) for i, (name, child) in enumerate(children)]
            return pa.StructArray.from_arrays(parts, fields=list(kind), mask=mask)
        own = pa.array(np.arange(len(array))) if rows is None else rows
        below = own.take(pa.array(np.repeat(np.arange(len(array)), np.diff(np.asarray(array.offsets)))))
        inner = (array.keys, array.items) if pa.types.is_map(array.type) else (array.values,)
        parts = [self.array(part, child, name, below) for (name, child), part in zip(children, inner, strict=True)]
        made = pa.MapArray if pa.types.is_map(array.type) else pa.ListArray
        return made.from_arrays(array.offsets, *parts, kind, mask=mask)

    def _sound(self, array: pa.StructArray, field: pa.Field, path: str, rows: pa.Array | None) -> pa.StructArray:
        """The array without the values that cannot be read."""
        faults = find_faults(array) if self._strict else _unreadable(array)
        if not len(faults):
            return array
        if self._invalid_values == "raise" or not field.nullable:
            first = faults.slice(0, 1).to_pylist()[0]
            row = first["row"] if rows is None else rows[first["row"]].as_py()
            advice = "" if self._invalid_values == "raise" else "; a required column cannot become null"
            error = VariantError(
                first["message"] + advice, rule=first["rule"], row=self.first_row + row, offset=first["offset"]
            )
            error.locate(path=self._path, row_group=self.row_group, column=f"{path}.{first['column']}")
            raise error
        self.invalid += len(faults)
        return _without(array, faults)


def _unreadable(array: pa.StructArray) -> pa.Table:
    """The faults of the rows that reading cannot mend."""
    faults = find_faults(array)
    return faults.filter(pc.invert(pc.is_in(faults["rule"], pa.array(REPAIRED)))) if len(faults) else faults


def _without(array: pa.StructArray, faults: pa.Table) -> pa.StructArray:
    """The array with nulls in the rows that have faults."""
    if not len(faults):
        return array
    invalid = np.zeros(len(array), np.bool_)
    invalid[np.asarray(faults["row"])] = True
    mask = pc.or_(array.is_null(), pa.array(invalid))
    parts = [array.field(i) for i in range(array.type.num_fields)]
    return pa.StructArray.from_arrays(parts, fields=list(array.type), mask=mask)
