"""Rewrite files with a different shredding of VARIANT columns or without shredding, one row group at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import fields, replace
from typing import Any, Literal, Unpack, get_args
from warnings import catch_warnings, simplefilter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import CorruptDataWarning, CorruptFileError, ErrorPathContext, VariantError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.progress import Progress
from pqext.core.base.suggestions import join_names
from pqext.core.base.text import with_noun
from pqext.core.footer.thrift_footer import SourceWithFooter
from pqext.core.footer.writing import footer_format_of
from pqext.core.io.local_writers import exclude_appends
from pqext.core.io.sources.locations import locate, may_be_same_file
from pqext.core.options.encryption import FileDecryption
from pqext.core.options.keywords import WriteKeywords
from pqext.core.options.read_write import InvalidUtf8, ReadOptions, WriteOptions
from pqext.core.read.damage import count_lost_rows
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.types.int96 import Int96
from pqext.core.write import storage
from pqext.core.write.file_layout import infer_options
from pqext.core.write.writer import ParquetWriter
from pqext.variant.rewrite_report import LossError, Rewritten
from pqext.variant.shredding.choice import Shredding, parse_shredding
from pqext.variant.shredding.reconstruct import unshred
from pqext.variant.shredding.schema import ShreddingSchema, Untyped
from pqext.variant.shredding.shredder import Coerce, check_coerce
from pqext.variant.types import is_marked, storage_array, storage_type, variant_type
from pqext.variant.validation import find_faults

InvalidValues = Literal["raise", "null"]
OnCorrupt = Literal["raise", "skip"]

BATCH_ROWS = 16_384
SAMPLE_GROUPS = 8

REPAIRED = (
    "shredding.value.exclusive", "shredding.object.disjoint", "shredding.object.typed", "shredding.array.typed",
    "shredding.array.present", "shredding.value.missing", "shredding.metadata.names",
)  # fmt: skip
"""Rules whose violations reading repairs: ``typed_value`` wins, missing required values are null, names are added."""


class _RewriteWriter(ParquetWriter):
    _is_rewrite = True


def repair(
    source: Any, dest: Any, *,
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
    groups, sort keys, indexes and metadata are preserved. If the footer is missing or corrupt, so that
    :func:`pqext.open` raises ``CorruptFileError``, use :func:`pqext.recover`.

    Args:
        source: Any source that :func:`pqext.open` accepts.
        dest: Any destination that :func:`pqext.write_table` accepts, which may be ``source``. It appears when complete.
        invalid_values: Raise an error for a VARIANT value that cannot be read, or replace it with null if ``"null"``.
            This also applies to out-of-range values of other columns, whose pages are skipped otherwise. If ``value``
            and ``typed_value`` differ, they are repaired as in :func:`pqext.variant.reshred_file`.
        limits: Limits of the reader.
        decryption: The keys of an encrypted file.
        int96: Unit of INT96 timestamps, as in :class:`pqext.ReadOptions`.
        invalid_utf8: Result of strings that are not UTF-8, as in :class:`pqext.ReadOptions`.
        legacy_timezone: Time zone of the writer, if the file does not state it, as in :class:`pqext.ReadOptions`.
        progress: Called with the number of finished rows and of all rows.
        overwrite: Replace ``source`` even if rows or values are lost.
        options: Options of the writer; fields that are not at their default override the options of the file.
        keywords: Fields of :class:`pqext.WriteOptions`, which override ``options``.

    Returns:
        The result: ``rows`` and ``row_groups`` written, and skipped ranges in ``damage``.

    Raises:
        CorruptFileError: If the footer or the schema is corrupt, or no row can be read.
        VariantError: If a value cannot be read, with the row of the file.
        ValueError: If ``dest`` is ``source``, data would be lost and ``overwrite`` is false.

    Example:
        >>> import pathlib, pqext, pyarrow
        >>> pqext.write_table(pyarrow.table({"id": range(100)}), "ids.parquet", row_group_rows=50)
        >>> data = bytearray(pathlib.Path("ids.parquet").read_bytes())
        >>> data[60] ^= 255  # within the first page
        >>> pqext.repair(bytes(data), "mended.parquet").rows
        50
    """
    values, read = _writer_options(options, keywords), _read_options(decryption, int96, invalid_utf8, legacy_timezone)
    with catch_warnings():
        simplefilter("ignore", CorruptDataWarning)  # the result lists the ranges
        return _rewrite(
            source, dest, None, "equivalent", False, invalid_values, "skip", limits, read, progress, overwrite, values
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
    """Rewrite the file ``source`` to ``dest`` with its VARIANT columns shredded by ``schema``.

    ``schema`` applies to all VARIANT columns if it is a value that :func:`pqext.variant.shredding_schema` accepts,
    ``"infer"``, or JSON text of the options of the writer's ``shredding``. It can also map dotted paths of columns to
    these values or to mappings of options; other columns then keep their schema. ``coerce`` is the default of these
    options. Every value is validated. If ``value`` and ``typed_value`` contradict each other, ``typed_value`` takes
    precedence. Missing elements and values become nulls, and missing names are added to the metadata. With ``strict``,
    these faults raise an error. Values that cannot be read raise ``VariantError`` with the row of the file, or become
    null with ``invalid_values="null"``. With ``on_corrupt="skip"``, rows of corrupt pages are skipped, with a
    ``CorruptDataWarning``, and listed in ``damage`` of the result; :func:`pqext.repair` preserves shredding.

    Other columns, key-value metadata, row groups and field ids are preserved. Codecs, encodings, dictionaries,
    statistics, page indexes, Bloom filters and sort keys are preserved if the file records them. Keywords, the fields
    of :class:`pqext.WriteOptions`, override these options, as do fields of ``options`` that differ from the default.
    ``dest`` appears when complete, and may be ``source``. If ``source`` would be replaced and rows or values lost,
    ``ValueError`` is raised unless ``overwrite`` is true. ``int96``, ``invalid_utf8`` and ``legacy_timezone`` are as in
    :class:`pqext.ReadOptions`. ``progress`` is called with the number of finished rows and of all rows. Memory is
    bounded by one row group. Row groups that need more than half of the memory in ``limits`` are divided. An encrypted
    file requires the option ``encryption``; ``None`` writes plaintext.

    >>> import pqext
    >>> pqext.write_table({"event": pqext.variant.parse_json(['{"id": 1}'])}, "events.parquet")
    >>> pqext.variant.reshred_file("events.parquet", "shredded.parquet", "id BIGINT").schemas
    {'event': <shredding schema STRUCT<id: BIGINT>>}
    """
    check_coerce(coerce)
    values, read = _writer_options(options, keywords), _read_options(decryption, int96, invalid_utf8, legacy_timezone)
    return _rewrite(
        source, dest, schema, coerce, strict, invalid_values, on_corrupt, limits, read, progress, overwrite, values
    )


def unshred_file(
    source: Any, dest: Any, *, strict: bool = False, invalid_values: InvalidValues = "raise",
    on_corrupt: OnCorrupt = "raise", limits: Limits = DEFAULT_LIMITS, decryption: FileDecryption | None = None,
    int96: Int96 = "auto", invalid_utf8: InvalidUtf8 = "raise", legacy_timezone: str | None = None,
    progress: Progress | None = None, overwrite: bool = False, options: WriteOptions | None = None,
    **keywords: Unpack[WriteKeywords],
) -> Rewritten:
    """Rewrite the file ``source`` to ``dest`` with unshredded VARIANT values.

    Arguments and errors are as for :func:`reshred_file`.

    >>> import pqext
    >>> events = {"event": pqext.variant.parse_json(['{"id": 1}'])}
    >>> pqext.write_table(events, "events.parquet", shredding={"event": "id INT"})
    >>> pqext.variant.unshred_file("events.parquet", "plain.parquet").schemas
    {'event': <shredding schema VARIANT>}
    """
    given, read = _writer_options(options, keywords), _read_options(decryption, int96, invalid_utf8, legacy_timezone)
    schema = Untyped()
    return _rewrite(
        source, dest, schema, "equivalent", strict, invalid_values, on_corrupt, limits, read, progress, overwrite, given
    )


def _read_options(
    decryption: FileDecryption | None, int96: Int96, invalid_utf8: InvalidUtf8, legacy_timezone: str | None
) -> ReadOptions:
    base = ReadOptions(shredded=True, decryption=decryption, int96=int96, geoparquet=False)
    return replace(base, invalid_utf8=invalid_utf8, legacy_timezone=legacy_timezone)


def _writer_options(options: WriteOptions | None, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the caller set: keywords, and fields of ``options`` that differ from their defaults."""
    if options is None:
        return dict(keywords)
    if not isinstance(options, WriteOptions):
        raise TypeError(f"options must be WriteOptions, not {type(options).__name__}")
    usual = WriteOptions()
    names = [field.name for field in fields(WriteOptions)]
    changed = {name: getattr(options, name) for name in names if getattr(options, name) != getattr(usual, name)}
    return {**changed, **keywords}


def _rewrite(
    source: Any, dest: Any, schema: Any, coerce: Coerce, strict: bool, invalid_values: InvalidValues,
    on_corrupt: OnCorrupt, limits: Limits, read_options: ReadOptions, progress: Progress | None, overwrite: bool,
    options: dict[str, Any],
) -> Rewritten:
    if invalid_values not in get_args(InvalidValues):
        raise ValueError(f"invalid_values must be 'raise' or 'null', not {invalid_values!r}")
    if "shredding" in options:
        raise TypeError("pass the shredding as the argument schema, not as the option shredding")
    read_options = replace(read_options, on_corrupt=on_corrupt, invalid_values=invalid_values)
    with exclude_appends(source, dest), ExitStack() as stack:
        file = stack.enter_context(ParquetFile(source, read_options, limits=limits))
        if file.footer.decryptor is not None and "encryption" not in options:
            advice = "pass encryption= for the new file, None to write plaintext"
            raise ValueError(f"{_file_label(file)} is encrypted: {advice}")
        budget = file.budget()
        file.row_groups.check_shared([leaf for top in file.shapes for leaf in top.leaves()], budget)
        variant_types = {path: type for field in file.arrow_schema for path, type in _iter_variants(field, field.name)}
        if not variant_types and schema is not None:
            advice = "use pqext convert --json COLUMN to parse JSON text"
            raise ValueError(f"{_file_label(file)} has no VARIANT column: {advice}")
        choices = _shredding_choices(file, {} if schema is None else schema, variant_types, coerce)
        job = _Reshredder(choices, strict, invalid_values, file.path)
        fields = [job.convert_field(field, field.name) for field in file.arrow_schema]
        new_schema = pa.schema(fields, file.arrow_schema.metadata)
        plan = storage.plan(new_schema, WriteOptions(shredding=job.shredding))
        layout = infer_options(file, storage.to_schema(plan))
        if file.footer.decryptor is None and not {"encryption", "profile"} & options.keys():
            layout["footer"] = "thrift" if isinstance(file.source, SourceWithFooter) else footer_format_of(file.source)
        rows, groups, room = 0, 0, max(budget.room, 64)
        sizes = {"row_group_rows": room // 64, "row_group_bytes": room // 2}  # 32 bytes cover a row's levels
        with _RewriteWriter(dest, new_schema, shredding=job.shredding, **{**layout, **sizes, **options}) as writer:
            writer._warns_about_residual = schema is not None  # not for the types of another writer
            for group in range(len(file.row_groups)):
                before = rows
                for batch in file.iter_dictionary_batches(BATCH_ROWS, None, group, None, (), budget):
                    job.first_row, job.row_group = rows, group
                    with ErrorPathContext(file.path):
                        writer.write_batch(job.convert_batch(batch, new_schema))
                    rows += batch.num_rows
                    if progress is not None:
                        progress(rows, file.num_rows)
                groups += rows > before
                if not sizes.keys() & options.keys():
                    with ErrorPathContext(file.path):
                        writer.end_row_group()
            job.invalid += file.source.usage.invalid_values
            if file.damage and not rows:
                problem = f"none of the {file.num_rows:,} rows can be read at the offsets in the footer"
                advice = "`pqext recover` finds pages by their headers"
                raise CorruptFileError(f"{problem}: {file.damage[0].error.message}; {advice}", path=file.path)
            if not overwrite and (job.invalid or any(damage.stop > damage.start for damage in file.damage)):
                _check_not_replaced(source, dest, options, _describe_loss(file, job.invalid))
            stack.close()  # Windows cannot replace an open file
        return Rewritten(rows, groups, job.schemas, job.invalid, tuple(file.damage))


def _describe_loss(file: ParquetFile, invalid: int) -> str:
    rows = count_lost_rows(file.damage)
    lost = f"{with_noun(rows, 'row')} of {file.num_rows:,}" if rows else with_noun(invalid, "value")
    return f"{lost} of {_file_label(file)}"


def _check_not_replaced(source: Any, dest: Any, options: Mapping[str, Any], loss: str) -> None:
    """Raise ``LossError`` if ``dest`` may be ``source``, because the lost rows or values cannot be read again."""
    if may_be_same_file(locate(source), locate(dest, options.get("filesystem"), options.get("storage_options"))):
        raise LossError(loss)


def _file_label(file: ParquetFile) -> str:
    return f"file {file.path}" if file.path is not None else "the file"


def _iter_variants(field: pa.Field, path: str) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the dotted path and the type of each VARIANT at or below ``field``."""
    type = storage_type(field.type)
    if is_marked(field):
        yield path, type
    elif pa.types.is_struct(type) or pa.types.is_map(type) or pa.types.is_list(type):
        for name, child in _child_fields(type):
            yield from _iter_variants(child, f"{path}.{name}")


def _child_fields(type: pa.DataType) -> list[tuple[str, pa.Field]]:
    """Return the child fields of a nested type, each with its path in the Parquet schema relative to the parent."""
    if pa.types.is_map(type):
        return [("key_value.key", type.key_field), ("key_value.value", type.item_field)]
    return [("list.element", type.value_field)] if pa.types.is_list(type) else [(child.name, child) for child in type]


def _shredding_choices(
    file: ParquetFile, schema: Any, stored_types: Mapping[str, pa.DataType], coerce: Coerce
) -> dict[str, Any]:
    """Return the schema and coercion of each VARIANT column, as an option of the writer."""
    requested = dict(schema) if isinstance(schema, Mapping) else dict.fromkeys(stored_types, schema)
    for path in requested:
        if path not in stored_types:
            raise ValueError(f"{_file_label(file)} has no VARIANT column {path!r}; it has {join_names(stored_types)}")
    choices = {}
    for path, stored_type in stored_types.items():
        choice = parse_shredding(requested.get(path, stored_type), coerce)
        typed = _infer_schema(file, path, choice) if choice.schema is None else choice.schema
        choices[path] = {"schema": typed, "coerce": choice.coerce}
    return choices


def _infer_schema(file: ParquetFile, path: str, choice: Shredding) -> ShreddingSchema:
    """Infer a schema from rows of evenly spaced row groups."""
    count = len(file.row_groups)
    groups = sorted({i * count // min(count, SAMPLE_GROUPS) for i in range(min(count, SAMPLE_GROUPS))})
    top = file.schema.root.child(next(name for name in file.schema.root.child_names if _is_within(path, name)))
    assert top is not None
    if not file.schema.root.is_unique(top.name):
        problem = f"{_file_label(file)} has more than one column {top.name!r}, so that no shredding can be inferred"
        raise ValueError(f"{problem}; pass a schema")
    samples: list[pa.Array] = []
    for group in groups:
        rows = max(1, choice.inference.sample_rows // len(groups))
        for batch in file.iter_batches(rows, columns=[top.name], row_groups=[group]):
            for array in _iter_arrays(batch.column(0), batch.schema.field(0), top.name, path):
                samples.append(unshred(_mask_faults(array, _find_unreadable(array))))
            break
    return choice.schema_for(pa.chunked_array(samples) if samples else None)


def _is_within(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}.")


def _iter_arrays(array: pa.Array, field: pa.Field, ancestor: str, path: str) -> Iterator[pa.Array]:
    """Yield the arrays of the variant at ``path``, starting from ``array`` of the enclosing column ``ancestor``."""
    if ancestor == path:
        yield storage_array(array)
    elif _is_within(path, ancestor):
        array = storage_array(array)
        parts: Iterable[pa.Array]
        if pa.types.is_map(array.type):
            parts = (array.keys, array.items)
        elif pa.types.is_list(array.type):
            parts = (array.flatten(),)
        else:
            parts = array.flatten()
        for (name, child), part in zip(_child_fields(array.type), parts, strict=True):
            yield from _iter_arrays(part, child, f"{ancestor}.{name}", path)


class _Reshredder:
    """Converter of arrays from the stored shredding to the new shredding. It counts invalid values."""

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
        """Schemas of the VARIANT columns."""
        return {path: option["schema"] for path, option in self.shredding.items()}

    def convert_batch(self, batch: pa.RecordBatch, output_schema: pa.Schema) -> pa.RecordBatch:
        """Convert a batch to ``output_schema``."""
        fields = zip(batch.schema, batch.columns, strict=True)
        arrays = [self.convert_array(array, field, field.name) for field, array in fields]
        return pa.RecordBatch.from_arrays(arrays, schema=output_schema)

    def convert_field(self, field: pa.Field, path: str) -> pa.Field:
        """Return the Arrow field that replaces ``field``."""
        if path in self.shredding:
            marks = {k: v for k, v in (field.metadata or {}).items() if not k.startswith(b"ARROW:extension:")}
            return pa.field(field.name, variant_type(), field.nullable, marks or None)
        kind = field.type
        if not self._holds_variants(path):
            return field
        children = [self.convert_field(child, f"{path}.{name}") for name, child in _child_fields(kind)]
        if pa.types.is_map(kind):
            return field.with_type(pa.map_(children[0], children[1]))
        return field.with_type(pa.list_(children[0]) if pa.types.is_list(kind) else pa.struct(children))

    def _holds_variants(self, path: str) -> bool:
        return any(held.startswith(f"{path}.") for held in self.shredding)

    def convert_array(self, array: pa.Array, field: pa.Field, path: str, rows: pa.Array | None = None) -> pa.Array:
        """Convert ``array`` to the new shredding. ``rows`` contains the batch row of each value in ``array``."""
        if path in self.shredding:
            return unshred(self._drop_unreadable_values(storage_array(array), field, path, rows))
        if not self._holds_variants(path):
            return array
        kind = self.convert_field(field, path).type
        mask = array.is_null() if array.null_count else None
        children = [(child, f"{path}.{name}") for name, child in _child_fields(array.type)]
        if pa.types.is_struct(array.type):
            parts = [self.convert_array(array.field(i), *child, rows) for i, child in enumerate(children)]
            return pa.StructArray.from_arrays(parts, fields=list(kind), mask=mask)
        own = pa.array(np.arange(len(array))) if rows is None else rows
        below = own.take(pa.array(np.repeat(np.arange(len(array)), np.diff(np.asarray(array.offsets)))))
        inner = (array.keys, array.items) if pa.types.is_map(array.type) else (array.values,)
        parts = [self.convert_array(part, *child, below) for child, part in zip(children, inner, strict=True)]
        made = pa.MapArray if pa.types.is_map(array.type) else pa.ListArray
        return made.from_arrays(array.offsets, *parts, kind, mask=mask)

    def _drop_unreadable_values(
        self, array: pa.StructArray, field: pa.Field, path: str, rows: pa.Array | None
    ) -> pa.StructArray:
        """Replace unreadable values with null. Raises ``VariantError`` if options or the field do not allow this."""
        faults = find_faults(array) if self._strict else _find_unreadable(array)
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
        return _mask_faults(array, faults)


def _find_unreadable(array: pa.StructArray) -> pa.Table:
    """Return the faults that make a value unreadable. Reading repairs all other faults."""
    faults = find_faults(array)
    return faults.filter(pc.invert(pc.is_in(faults["rule"], pa.array(REPAIRED)))) if len(faults) else faults


def _mask_faults(array: pa.StructArray, faults: pa.Table) -> pa.StructArray:
    """Return the array with nulls in the rows that ``faults`` lists."""
    if not len(faults):
        return array
    invalid = np.zeros(len(array), np.bool_)
    invalid[np.asarray(faults["row"])] = True
    mask = pc.or_(array.is_null(), pa.array(invalid))
    parts = [array.field(i) for i in range(array.type.num_fields)]
    return pa.StructArray.from_arrays(parts, fields=list(array.type), mask=mask)
