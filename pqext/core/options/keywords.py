"""Options of reading and writing as keyword types, for editors and type checkers.

Each option is documented where it is declared, in :class:`pqext.ReadOptions` and :class:`pqext.WriteOptions`. A test
compares the names and types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

import pyarrow as pa

from pqext.core.base.limits import Limits
from pqext.core.format.extension import paths as extension_paths
from pqext.core.options.encryption import FileDecryption, FileEncryption
from pqext.core.options.layout import Checkpoint, FooterFormat, SortKey
from pqext.core.options.read_write import Compression, EncodingName, ReadOptions, RebaseMode


class ReadKeywords(TypedDict, total=False):
    """Keyword arguments for the fields of :class:`pqext.ReadOptions`."""

    shredded: bool
    strict: bool
    checksums: bool
    threads: int
    on_corrupt: Literal["raise", "skip"]
    recover: bool
    decryption: FileDecryption | None
    int96: Literal["auto", "s", "ms", "us", "ns"]
    int96_utc: bool
    second_copies: bool
    trust_statistics: bool
    external_files: Literal["folder", "any", "reject"]
    geoparquet: bool
    arrow_schema: bool
    strings: Literal["string", "view", "dictionary"]
    invalid_values: Literal["raise", "null"]
    invalid_utf8: Literal["raise", "replace", "binary"]
    legacy_calendar: Literal["rebase", "stored"]
    legacy_timezone: str | None
    datetime_rebase_mode: RebaseMode
    int96_rebase_mode: RebaseMode
    properties: Mapping[str, str]


class ScanKeywords(ReadKeywords, total=False):
    """Keyword arguments of :func:`pqext.scan` without ``filter``, for functions that forward them."""

    schema: Literal["union"] | pa.Schema | None
    on_invalid: Literal["raise", "skip"]
    partitioning: Literal["hive"] | None
    partition_types: Mapping[str, str | pa.DataType] | None
    include_file_paths: str | None
    include_row_numbers: str | None
    skipping: Any
    ignore_table_format: bool
    version: int | None
    timestamp: str | datetime | None
    timezone: str
    limits: Limits
    options: ReadOptions | None
    filesystem: Any
    storage_options: Mapping[str, Any] | None


class WriteKeywords(TypedDict, total=False):
    """Keyword arguments for the fields of :class:`pqext.WriteOptions`."""

    compression: Compression | Mapping[str, Compression]
    compression_level: int | Mapping[str, int] | None
    dictionary: bool | Mapping[str, bool]
    encodings: EncodingName | Mapping[str, EncodingName]
    row_group_rows: int
    row_group_bytes: int
    page_rows: int
    page_bytes: int
    page_version: Literal[1, 2]
    statistics: bool | Mapping[str, bool]
    page_index: bool | Mapping[str, bool]
    bloom_filters: bool | Mapping[str, Any]
    bloom_filter_bytes: int
    bloom_filter_place: Literal["file", "row_group"]
    bound_bytes: int
    float_order: Literal["type", "ieee754"]
    sorting: Sequence[str | SortKey]
    checksums: bool
    threads: int
    shredding: Mapping[str, Any]
    geometry: Mapping[str, Any]
    annotations: Mapping[str, Mapping[str, Any]]
    geoparquet: bool | Literal["1.1", "2.0"] | None
    primary_geometry: str | None
    key_value_metadata: Mapping[str, str]
    second_encodings: Mapping[str, EncodingName]
    extensions: Mapping[str, extension_paths.Payload]
    encryption: FileEncryption | None
    arrow_schema: bool
    footer: FooterFormat
    checkpoint: int | Checkpoint | None
    durable: bool
    profile: Literal["spark"] | None
