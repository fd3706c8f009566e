"""Append row groups to an existing file, after its footer. A new footer lists all row groups.

The old footer remains in the file, and the first bytes that are appended are a checkpoint of it. After a crash,
``pqext.open(path, recover=True)`` and :func:`pqext.recover` can therefore read the old rows. Existing bytes never
change. Spec: "File format" (metadata is separate from data), "Error recovery".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import CorruptFileError, ParquetError, UnsupportedError
from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.base.text import escape_text
from pqext.core.footer.checkpoints import Checkpoints
from pqext.core.footer.merge import FooterMerge
from pqext.core.footer.thrift_footer import Footer
from pqext.core.footer.writing import footer_format_of, read_unencrypted_footer
from pqext.core.format.extension.paths import is_metadata_path
from pqext.core.format.extension.structure import extensions as extensions_of
from pqext.core.format.metadata import ColumnChunk, FileMetaData, KeyValue, RowGroup, SchemaElement
from pqext.core.format.thrift import decode, encode
from pqext.core.io.source import Source
from pqext.core.io.sources.locations import open_source
from pqext.core.options.layout import Checkpoint, check_combination
from pqext.core.options.read_write import WriteOptions
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.arrow_schema.stored_schema import KEY, UnreadableSchemaError, parse, widen_indices
from pqext.core.schema.key_value_types import legacy_leaves
from pqext.core.schema.types import logical
from pqext.core.write.file_layout import FileLayout, infer_options

_KEPT = ("compression", "dictionary", "encodings", "statistics", "page_index", "bloom_filters", "page_version")
"""Options that are inferred from the file. Sorting is not, since new rows need not be sorted like existing rows."""
_NOT_FOR_SPARK = ("brotli", "byte_stream_split", "alp")
"""Codecs and encodings that Spark cannot read."""


class AppendedFile:
    """File at ``path`` that row groups are appended to, with its old footer and its new footer.

    ``requested_options`` are the options that were passed by name; other options are inferred from the file. If
    ``requested_options`` is None, ``options`` are used unchanged.

    Raises ``UnsupportedError`` for files that are partly encrypted or have chunks in other files, an extension of the
    footer, or dates in Spark's legacy calendar; ``CorruptFileError`` for a file that is not a Parquet file; and
    ``ValueError`` for options that cannot be used when appending.
    """

    def __init__(self, path: str, options: WriteOptions, requested_options: Mapping[str, Any] | None) -> None:
        if options.encryption is not None:
            raise ValueError("encrypted row groups cannot be appended to a file; write a separate file")
        if options.checkpoint is not None:
            raise ValueError("append does not support checkpoint; append in several steps instead")
        for target in options.extensions:
            if is_metadata_path(target):
                raise ValueError(f"extensions[{target!r}] is not a column; append accepts extensions of columns only")
        self._path, self._given = path, options.key_value_metadata
        try:
            self._read(options, requested_options)
        except ParquetError as error:
            error.locate(path=path)
            raise

    def _read(self, options: WriteOptions, requested_options: Mapping[str, Any] | None) -> None:
        path = self._path
        source = open_source(path)
        try:
            result = _read_footer(source)
            # A footer with a jump table would read from the file, which is about to grow. A copy does not.
            self._old, _ = decode(FileMetaData, encode(result.metadata))
            self.size = source.size
            self.form = footer_format_of(source)
            check_combination(self.form, is_encrypted=False, has_extension=False, profile=options.profile)
            if requested_options is not None:
                options = replace(options, **{**requested_options, **_infer_options(source, requested_options)})
            is_default = options.geoparquet is None and options.primary_geometry is None
            if is_default and all(pair.key != "geo" for pair in self._old.key_value_metadata or ()):
                options = replace(options, geoparquet=False)
            self.options = options
            """Options of the new row groups; only files with GeoParquet metadata get more of it by default."""
        finally:
            source.close()
        self._check_supported()
        self.layout = FileLayout.from_footer(self._old, path)
        """The layout that appended columns follow."""

    def _check_supported(self) -> None:
        def unsupported_error(subject: str, advice: str) -> UnsupportedError:
            return UnsupportedError(f"{subject}; {advice}", feature="appending to this layout", path=self._path)

        for index, group in enumerate(self._old.row_groups):
            if group.num_rows < 0:
                message = f"a row group declares a negative row count: {group.num_rows}"
                raise CorruptFileError(message, path=self._path, row_group=index)
        if extensions_of(self._old) is not None:
            raise unsupported_error(
                "the footer has an extension, which may describe the complete file",
                "pqext rewrite-footer --drop-extensions removes it",
            )
        if legacy := legacy_leaves(self._old):
            subject = f"column {min(legacy)} uses Spark's legacy calendar, where new values would be misread"
            raise unsupported_error(subject, "rewrite the file with pqext.write_table")
        if any(chunk.file_path is not None for group in self._old.row_groups for chunk in group.columns):
            raise unsupported_error("a column chunk is in another file", "append to that file")

    def check(self, footer: FileMetaData) -> None:
        """Raise ``ValueError`` if row groups with the schema of ``footer`` cannot be added to the file."""
        some = RowGroup(columns=[ColumnChunk(file_offset=0)], total_byte_size=0, num_rows=1)
        footer.row_groups = [some]  # a row group with rows, so that its columns are compared
        self._merge(footer).finish([])

    def checkpoint(self) -> bytes:
        """Return a checkpoint of the old footer, to be written after it."""
        count = len(self._old.row_groups)
        return Checkpoints(Checkpoint(row_groups=1)).build_frame(encode(self._old), count, self.size)

    def _merge(self, footer: FileMetaData) -> FooterMerge:
        old, _ = decode(FileMetaData, encode(self._old))
        old.key_value_metadata = [
            pair for pair in old.key_value_metadata or () if pair.key not in self._given
        ] or None
        noted, own = _stored_schema(old), _stored_schema(footer)
        if noted is not None:
            noted.value = widen_indices(noted.value)
        # Existing rows keep their types.
        pairs = [noted, *(pair for pair in footer.key_value_metadata or () if pair.key != KEY)]
        footer.key_value_metadata = [pair for pair in pairs if pair is not None] or None
        merge = FooterMerge("merge")
        merge.add(old, self._path)
        merge.add(footer, "what is appended")
        difference = None if noted is None or own is None else _describe_type_difference(noted.value, own.value)
        if difference is not None:
            raise ValueError(f"the rows do not match {self._path}: {difference}; cast the column")
        return merge

    def merge_footer(self, footer: FileMetaData) -> FileMetaData:
        """Return the old footer extended by the row groups of ``footer``."""
        old, _ = decode(FileMetaData, encode(self._old))
        new, _ = decode(FileMetaData, encode(footer))
        merge = self._merge(new)
        # Columns that only GeoParquet metadata declares as geometries have no geometry type in the schema.
        plain = [i for i, element in enumerate(_leaves(self._old)) if logical.from_element(element) is None]
        groups = []
        for metadata in (old, new):
            added = list(metadata.row_groups)
            for group in added:
                group.columns = list(group.columns)
            merge.remove_foreign_bounds(metadata, [group.columns for group in added])
            groups += added
        for group in groups[len(old.row_groups) :]:
            for index in plain:
                if (about := group.columns[index].meta_data) is not None:
                    about.geospatial_statistics = None
        # Some readers reject files if only some row groups have ordinals.
        are_numbered = all(group.ordinal is not None for group in old.row_groups) and len(groups) <= 1 << 15
        for at, group in enumerate(groups):
            group.ordinal = at if are_numbered else None
        return merge.finish(groups)


def _read_footer(source: Source) -> Footer:
    try:
        return read_unencrypted_footer(source, DEFAULT_LIMITS)
    except CorruptFileError as error:
        advice = "; if a writer crashed, `pqext recover` writes the remaining rows to a new file"
        advice = "" if "pqext recover" in error.message else advice
        raise CorruptFileError(f"{error.message}{advice}", path=source.path) from error


def _infer_options(source: Source, options: Mapping[str, Any]) -> dict[str, Any]:
    """Infer options from the first row group with rows. ``options`` take precedence.

    Mappings by column are merged, so the result may also contain names in ``options``. A missing dictionary is ignored,
    because new rows may have more repeated values, also if the writer's default packed deltas of integers instead.
    """
    file = ParquetFile(source)
    try:
        result = {name: choice for name, choice in infer_options(file, file.schema).items() if name in _KEPT}
    except ParquetError:  # an unknown codec or a corrupt chunk
        return {}
    packed = {at for at, encoding in result.get("encodings", {}).items() if encoding == "delta_binary_packed"}
    result["dictionary"] = {
        at: True for at, has_one in result.get("dictionary", {}).items() if has_one or at in packed
    }
    if options.get("profile") == "spark":
        result = {name: _drop_values_unknown_to_spark(choice) for name, choice in result.items()}
    # A column with an explicit encoding has no dictionary, unless the dictionary is requested explicitly too.
    for item, other in (("dictionary", "encodings"), ("encodings", "dictionary")):
        choice: Any = options.get(item)
        if _are_mappings(choice, result.get(other)):
            result[other] = {at: retained for at, retained in result[other].items() if not choice.get(at)}
        elif choice is True:
            result.pop(other, None)
    merged = {
        name: {**result[name], **choice} for name, choice in options.items() if _are_mappings(result.get(name), choice)
    }
    return {name: choice for name, choice in result.items() if name not in options} | merged


def _are_mappings(*choices: object) -> bool:
    return all(isinstance(choice, Mapping) for choice in choices)


def _drop_values_unknown_to_spark(choice: Any) -> Any:
    """Return an option without encodings and codecs that Spark's reader does not support."""
    return {at: item for at, item in choice.items() if item not in _NOT_FOR_SPARK} if _are_mappings(choice) else choice


def _leaves(footer: FileMetaData) -> list[SchemaElement]:
    return [element for element in footer.schema[1:] if not element.num_children]


def _stored_schema(footer: FileMetaData) -> KeyValue | None:
    """Return the key-value pair of the stored Arrow schema; None if missing."""
    return next((pair for pair in footer.key_value_metadata or () if pair.key == KEY), None)


def _describe_type_difference(stored_schema: str | None, new_schema: str | None) -> str | None:
    """Describe the first column with different Arrow types but the same Parquet type; None if all types agree."""
    try:
        pairs = zip(parse(stored_schema or ""), parse(new_schema or ""), strict=False)
    except UnreadableSchemaError:
        return None  # readers ignore an invalid schema
    for old, new in pairs:
        if old.name == new.name and list(_arrow_properties(old.type)) != list(_arrow_properties(new.type)):
            return f"column {escape_text(new.name)!r} is {new.type} instead of {old.type}"
    return None


def _arrow_properties(type: pa.DataType) -> Iterator[object]:
    """Yield type properties that Parquet lacks: units of durations, sizes of lists, and names of extension types."""
    types = pa.types
    if isinstance(type, pa.BaseExtensionType):
        if type.extension_name not in _NAMED_IN_PARQUET:
            yield type.extension_name
        yield from _arrow_properties(type.storage_type)
    elif types.is_duration(type):
        yield type.unit
    elif types.is_dictionary(type) or types.is_run_end_encoded(type):
        yield from _arrow_properties(type.value_type)
    elif types.is_nested(type):
        if types.is_fixed_size_list(type):
            yield type.list_size
        for index in range(type.num_fields):
            yield from _arrow_properties(type.field(index).type)
    else:
        yield None


_NAMED_IN_PARQUET = ("arrow.uuid", "arrow.json")
