"""Merge the footers of several files: check schemas, and combine key-value metadata and column orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.text import escape_text
from pqext.core.format.created_by import counts_dictionary_header, created_by, has_valid_byte_array_bounds
from pqext.core.format.metadata import (
    ColumnChunk,
    ColumnOrder,
    Encoding,
    FileMetaData,
    KeyValue,
    RowGroup,
    SchemaElement,
    Type,
)
from pqext.core.schema.arrow_schema.stored_schema import KEY, has_same_types, replace_metadata
from pqext.core.schema.difference import difference
from pqext.core.schema.key_value_types import find_handler, legacy_leaves
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.types.legacy_calendar import KEYS, LegacyCalendar

Merge = Literal["merge", "first", "equal"]
"""Policy for merging key-value metadata: all pairs, with the value of the first file that has the key; the pairs of the
first file; or equal pairs only.
"""


class FooterMerge:
    """Incremental merge of the footers of files. ``pairs`` is the merged key-value metadata, or a policy for merging
    it.

    Stored Arrow types (``ARROW:schema``) are retained if they are equal in all files. Metadata about rows, such as
    GeoParquet's bounding boxes, is combined for all files or omitted.
    """

    def __init__(self, pairs: Merge | Mapping[str, str]) -> None:
        if not isinstance(pairs, Mapping) and pairs not in get_args(Merge):
            policies = ", ".join(get_args(Merge))
            raise ValueError(f"key_value_metadata must be a mapping or one of {policies}, not {pairs!r}")
        self._policy = pairs
        self._first: FileMetaData | None = None
        self._calendars: dict[str, LegacyCalendar] = {}
        self._pairs: dict[str, KeyValue] = {}
        self._described: list[dict[str, str | None]] = []
        self._noted: list[str | None] = []
        self._writers: list[str | None] = []
        self._in_sequence: set[str] = set()
        self._version = 1

    def add(self, metadata: FileMetaData, name: str | None) -> None:
        """Add the footer of the file ``name``.

        Raises ``ValueError`` if it does not match the first footer, and ``UnsupportedError`` if its dates or timestamps
        use another Spark calendar or time zone.
        """
        metadata.schema = list(metadata.schema)
        metadata.column_orders = None if metadata.column_orders is None else list(metadata.column_orders)
        pairs = {pair.key: pair for pair in metadata.key_value_metadata or ()}
        named = name or "a file"
        if self._first is None:
            self._first = metadata
            self._calendars = legacy_leaves(metadata)
            self._pairs = pairs
            if isinstance(self._policy, Mapping):
                self._pairs = {key: KeyValue(key=key, value=value) for key, value in self._policy.items()}
        else:
            difference = _difference(self._first, metadata)
            if difference is not None:
                raise ValueError(f"the schema of {named} differs from the schema of the first file: {difference}")
            if legacy_leaves(metadata) != self._calendars:
                raise UnsupportedError(
                    f"dates or timestamps in {named} use a different Spark calendar or time zone from those in the "
                    f"first file; rewrite {named} with pqext.write_table before merging",
                    feature="merging files in Spark's legacy calendar",
                )
            if self._policy == "equal" and pairs != self._pairs:
                raise ValueError(f"the key-value metadata of {named} differs from the metadata of the first file")
            if self._policy == "merge":
                self._pairs = {**pairs, **self._pairs}
        if _has_values(metadata) and not isinstance(self._policy, Mapping):
            self._described.append({key: pair.value for key, pair in pairs.items() if find_handler(key) is not None})
        self._noted.append(pairs[KEY].value if KEY in pairs else None)
        self._writers.append(metadata.created_by)
        if metadata.created_by is not None and not has_valid_byte_array_bounds(metadata.created_by):
            chunks = (chunk.meta_data for group in metadata.row_groups for chunk in group.columns)
            if any(about is not None and Encoding.DELTA_BYTE_ARRAY in about.encodings for about in chunks):
                self._in_sequence.add(metadata.created_by)
        self._version = max(self._version, metadata.version)

    def remove_foreign_bounds(self, metadata: FileMetaData, columns: Sequence[Sequence[ColumnChunk]]) -> bool:
        """Remove bounds of ``columns`` (of one file) that readers of the merged footer would misinterpret.

        These are bounds in another order, and byte array bounds from a writer whose bounds readers distrust. Readers
        recognise this writer by its name, which the merged footer may lack. Returns whether bounds were removed.
        """
        result = self._foreign_orders(metadata)
        doubted = set()
        if not has_valid_byte_array_bounds(metadata.created_by):
            elements = [element for element in metadata.schema[1:] if not element.num_children]
            types = [element.type for element in elements if element.type is not None]
            doubted = {at for at, type in enumerate(types) if type in (Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY)}
        for group in columns:
            leaves = range(len(group))  # a footer may list more orders
            for index in result.intersection(leaves):
                _remove_bounds(group[index])
            for index in doubted.intersection(leaves):
                _remove_bounds(group[index], includes_deprecated=True)
        return bool(result or doubted)

    def _foreign_orders(self, metadata: FileMetaData) -> set[int]:
        """Return the indexes of columns for which this file and the merged footer declare different orders."""
        target: list[ColumnOrder | None] = list(self._footer.column_orders or ())
        own: list[ColumnOrder | None] = list(metadata.column_orders or ())
        count = max(len(target), len(own))
        target += [None] * (count - len(target))
        own += [None] * (count - len(own))
        return {i for i in range(count) if target[i] != own[i]}

    def finish(self, row_groups: list[RowGroup]) -> FileMetaData:
        """Return the merged footer with ``row_groups``.

        It names the writer of the files if all files have the same writer, and otherwise pqext. Raises ``ValueError``
        if the key-value metadata cannot be combined or lacks the calendar of the files, and ``UnsupportedError`` if
        readers need the name of one writer to decode its pages or sizes.
        """
        first = self._footer
        writers = set(self._writers)
        if self._in_sequence and len(writers) > 1:
            raise UnsupportedError(
                f"readers need the writer's name to decode DELTA_BYTE_ARRAY pages of {min(self._in_sequence)!r}, but "
                "a footer can name only one writer; rewrite these files with pqext.write_table first",
                feature="merging DELTA_BYTE_ARRAY of parquet-mr before 1.8 with others",
            )
        for writer in writers if len(writers) > 1 else ():
            if not counts_dictionary_header(writer):
                raise UnsupportedError(
                    f"files of {writer!r} omit dictionary headers from sizes and can only be merged with files of that "
                    "version: rewrite them with pqext.write_table first",
                    feature="merging files of parquet-mr before 1.2.9 with others",
                )
        pairs = {pair.key: self._combine_pair(pair) for pair in self._pairs.values()}
        if KEY in pairs and not isinstance(self._policy, Mapping):
            first_noted, *others = self._noted
            agreed = self._policy == "first" or all(has_same_types(first_noted, other) for other in others)
            noted = replace_metadata(first_noted, {key: pair.value for key, pair in pairs.items()}) if agreed else None
            del pairs[KEY]
            if noted is not None:
                pairs = {KEY: KeyValue(key=KEY, value=noted), **pairs}
        merged = FileMetaData(
            version=self._version,
            schema=first.schema,
            num_rows=sum(group.num_rows for group in row_groups),
            row_groups=row_groups,
            key_value_metadata=list(pairs.values()) or None,
            created_by=self._writers[0] if len(writers) == 1 else created_by(),
            column_orders=first.column_orders,
            unknown=first.unknown,
        )
        if isinstance(self._policy, Mapping) and legacy_leaves(merged) != self._calendars:
            raise ValueError(
                "key_value_metadata must contain the keys that declare the calendar of the files: "
                f"{', '.join(sorted(KEYS))}"
            )
        return merged

    def _combine_pair(self, pair: KeyValue) -> KeyValue:
        """Return ``pair`` with a value that is valid for the rows of all files."""
        values = [result.get(pair.key) for result in self._described]
        handler = find_handler(pair.key) if any(values) else None
        if handler is None:
            return pair
        return KeyValue(key=pair.key, value=handler.merge_values(values))

    @property
    def _footer(self) -> FileMetaData:
        if self._first is None:
            raise ValueError("no files to merge: pass at least one file")
        return self._first


def _remove_bounds(chunk: ColumnChunk, *, includes_deprecated: bool = False) -> None:
    """Remove metadata that depends on the column's order: minimum, maximum and column index.

    With ``includes_deprecated``, also remove the deprecated minimum and maximum.
    """
    chunk.column_index_offset = chunk.column_index_length = None
    statistics = chunk.meta_data.statistics if chunk.meta_data is not None else None
    if statistics is not None:
        statistics.max_value = statistics.min_value = None
        statistics.is_max_value_exact = statistics.is_min_value_exact = None
        if includes_deprecated:
            statistics.max = statistics.min = None


def _has_values(metadata: FileMetaData) -> bool:
    chunks = (chunk.meta_data for group in metadata.row_groups for chunk in group.columns)
    return any(about is None or about.num_values for about in chunks)


def _difference(first: FileMetaData, other: FileMetaData) -> str | None:
    """Describe the difference between two schemas. Return None if they are equal except for the root's name."""
    mine, theirs = first.schema, other.schema
    if _shape(mine) == _shape(theirs) and mine[1:] == theirs[1:]:
        return None
    message = difference(from_elements(mine), from_elements(theirs), "the first file")
    if message is not None:
        return message
    unlike = next((item for item, same in zip(mine[1:], theirs[1:], strict=False) if item != same), mine[0])
    return f"column {escape_text(str(unlike.name))!r} has a different schema element from that in the first file"


def _shape(schema: Sequence[SchemaElement]) -> tuple[int, int | None]:
    return len(schema), schema[0].num_children if schema else None
