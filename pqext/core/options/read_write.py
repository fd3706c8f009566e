"""Options of the reader and the writer. Each has the same name in Python, Spark and on the command line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar, get_args

from pqext.core.base.errors import CorruptDataWarning, ParquetError, warn
from pqext.core.base.limits import ROW_GROUP_ROWS
from pqext.core.base.suggestions import FOREIGN_OPTIONS, did_you_mean, join_names, unknown_option_column
from pqext.core.format.compression import levels
from pqext.core.format.extension import paths as extension_paths
from pqext.core.options.encryption import FileDecryption, FileEncryption
from pqext.core.options.fields import (
    append_field_docs,
    check_flags,
    check_geoparquet,
    check_key_values,
    check_level,
    check_profile,
    check_write_types,
)
from pqext.core.options.layout import (
    BloomFilterChoice,
    Checkpoint,
    FooterFormat,
    SortKey,
    bloom_filter_choice,
    check_combination,
    check_index_options,
    sort_keys,
    to_checkpoint,
)

Compression = Literal["uncompressed", "snappy", "gzip", "brotli", "lz4_raw", "zstd"]
COMPRESSIONS: tuple[Compression, ...] = get_args(Compression)
EncodingName = Literal[
    "plain", "rle", "delta_binary_packed", "delta_length_byte_array", "delta_byte_array", "byte_stream_split", "alp",
    "auto", "default",
]
ENCODINGS: tuple[EncodingName, ...] = get_args(EncodingName)
TimestampUnit = Literal["s", "ms", "us", "ns"]
StringForm = Literal["string", "view", "dictionary"]
RebaseMode = Literal["corrected", "legacy", "exception"]
InvalidUtf8 = Literal["raise", "replace", "binary"]


@append_field_docs
@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options for reading. Every function that reads accepts these fields as keywords, or an object as ``options=``."""

    shredded: bool = False
    """Return shredded VARIANT columns as their storage structs instead of reassembled values."""
    strict: bool = False
    """Raise errors for faults that are otherwise tolerated. These are VARIANT columns whose shredded columns contradict
    each other (``VariantError`` names the row in its batch), have optional ``metadata`` or a wrong sort flag; and
    invalid page indexes, page boxes, Bloom filters and schemas (``CorruptFileError``, ``LimitError``)."""
    checksums: bool = True
    """Verify the CRC of each page that has a CRC."""
    threads: int = 0
    """Number of columns decoded in parallel; 0 is one per processor."""
    on_corrupt: Literal["raise", "skip"] = "raise"
    """Handling of corrupt row groups and pages. ``"skip"`` omits the affected rows, warns with ``CorruptDataWarning``
    and lists them in ``ParquetFile.damage``. Filters then skip row groups but not pages. Data that cannot be decrypted
    is always an error."""
    recover: bool = False
    """Open a file whose footer is missing or corrupt with its last checkpoint (writer option ``checkpoint``), and issue
    a ``RecoveredFileWarning``. Without a checkpoint the error is raised; :func:`pqext.recover` searches further."""
    decryption: FileDecryption | None = None
    """Keys of encrypted files (:class:`pqext.encryption.FileDecryption`)."""
    int96: Literal["auto", "s", "ms", "us", "ns"] = "auto"
    """Unit of INT96 timestamps. ``"auto"`` is ``"us"`` for files written by Spark, whose timestamps are whole
    microseconds of any year, and ``"ns"`` for others. A value that the unit cannot represent is an error."""
    int96_utc: bool = False
    """Read INT96 timestamps as instants in UTC, as Spark does, instead of as timestamps without a time zone."""
    second_copies: bool = False
    """Read columns from their second copy if the writer stored one (writer option ``second_encodings``)."""
    trust_statistics: bool = True
    """Use statistics, bounding boxes and Bloom filters to skip row groups, indexes and page boxes to skip pages, and
    the offset index to locate pages. False reads all row groups and pages and compares every row, for files with
    incorrect metadata (``pqext verify`` detects it). Folder names of a partitioned dataset are always used. Minima and
    maxima of geometries are never used."""
    external_files: Literal["folder", "any", "reject"] = "folder"
    """Files that may contain the column chunks of a summary file: ``"folder"`` allows files in its folder and below,
    ``"any"`` allows all files, and ``"reject"`` allows no other files (:mod:`pqext.core.io.external_files`)."""
    geoparquet: bool = True
    """Read plain columns as geometries if the file's GeoParquet metadata declares them."""
    arrow_schema: bool = True
    """Use the Arrow types and field metadata that the writer stored in ``ARROW:schema``, as pyarrow does. They include
    durations, time zones, dictionaries, large, view and fixed-size types, narrow decimals and extension types. A stored
    schema that contradicts the Parquet schema is ignored with an ``AnnotationWarning``."""
    strings: StringForm = "string"
    """Arrow layout of string and binary columns, including nested columns. ``"string"`` returns plain arrays, or the
    types stored in ``ARROW:schema``. ``"dictionary"`` returns dictionary arrays with int32 indices. They preserve the
    dictionary of each column chunk, so it differs between row groups; pages without a dictionary are encoded when read.
    ``"view"`` returns string_view and binary_view arrays, which reference the memory of pages and dictionaries and keep
    all of it alive. Annotated columns (VARIANT, GEOMETRY) and columns of Arrow extension types keep their types."""
    invalid_values: Literal["raise", "null"] = "raise"
    """Result for values that are out of range for their type, such as a TIME beyond the day: an error, or null."""
    invalid_utf8: InvalidUtf8 = "raise"
    """Result for strings that are not valid UTF-8, which Spark and others write: an error, the string with U+FFFD for
    invalid bytes, or all string columns as binary. Replaced strings are not used for pruning."""
    legacy_calendar: Literal["rebase", "stored"] = "rebase"
    """Dates and instants stored by Spark in its legacy calendar (Julian before 15 October 1582). ``"rebase"`` converts
    them to the proleptic Gregorian calendar, like Spark, and ``"stored"`` returns the stored values."""
    legacy_timezone: str | None = None
    """Time zone of the writer of a legacy-calendar file, if the file does not record it (Spark before 3.0), or records
    an unknown zone. Without the time zone, instants before 1900 in the file are an error."""
    datetime_rebase_mode: RebaseMode = "corrected"
    """Calendar of dates and INT64 instants in files that do not record a version of Spark, as in Spark's option
    ``datetimeRebaseMode``: ``"corrected"`` is the proleptic Gregorian calendar, ``"legacy"`` the legacy calendar, and
    with ``"exception"``, dates before 15 October 1582 and instants before 1900 are an error."""
    int96_rebase_mode: RebaseMode = "corrected"
    """Calendar of INT96 timestamps in these files, as in Spark's option ``int96RebaseMode``."""
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Properties of the table that the file belongs to. A CRS ``projjson:<property>`` is looked up in them. The file's
    own key-value metadata takes precedence."""

    @property
    def int96_unit(self) -> TimestampUnit:
        """Unit of INT96 timestamps. ``"auto"`` is ``"ns"`` until a file is opened."""
        return "ns" if self.int96 == "auto" else self.int96

    @property
    def skips_corrupt(self) -> bool:
        """Whether rows of a corrupt page or row group are skipped. If so, pages are not pruned."""
        return self.on_corrupt == "skip"

    @property
    def may_skip_values(self) -> bool:
        """Whether values of rows that a filter excludes may remain undecoded. False if invalid values or corrupt rows
        must be reported.
        """
        return not self.strict and not self.skips_corrupt

    def report_corrupt(self, error: ParquetError) -> None:
        """Raise ``error``, which describes corrupt metadata. If corrupt rows are skipped, issue a warning instead."""
        if not self.skips_corrupt:
            raise error
        warn(str(error), CorruptDataWarning)

    def __post_init__(self) -> None:
        check_flags(self, "shredded", "strict", "checksums", "recover", "int96_utc", "second_copies",
                     "trust_statistics", "geoparquet", "arrow_schema")
        if not isinstance(self.properties, Mapping):
            raise TypeError(f"properties must map names to text, not {type(self.properties).__name__}")
        if self.decryption is not None and not isinstance(self.decryption, FileDecryption):
            type_name = type(self.decryption).__name__
            raise TypeError(f"decryption must be a pqext.encryption.FileDecryption, not {type_name}")
        if not isinstance(self.legacy_timezone, str | None):
            raise TypeError(f"legacy_timezone must be the name of a time zone, not {self.legacy_timezone!r}")
        for name, (*others, last) in _READ_CHOICES.items():
            if (value := getattr(self, name)) not in (*others, last):
                raise ValueError(f"""{name} must be "{'", "'.join(others)}" or "{last}", not {value!r}""")


_READ_CHOICES = {
    "on_corrupt": ("raise", "skip"), "invalid_values": ("raise", "null"), "external_files": ("folder", "any", "reject"),
    "legacy_calendar": ("rebase", "stored"), "invalid_utf8": get_args(InvalidUtf8),
    "datetime_rebase_mode": get_args(RebaseMode), "int96_rebase_mode": get_args(RebaseMode),
    "strings": get_args(StringForm), "int96": ("auto", *get_args(TimestampUnit)),
}


@append_field_docs
@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options for writing. Every function that writes accepts these fields as keywords, or an object as ``options=``.

    The keys of mappings are dotted paths of leaf columns, such as ``"a"`` or ``"l.list.element"``.
    """

    compression: Compression | Mapping[str, Compression] = "snappy"
    """Compression codec: ``"uncompressed"``, ``"snappy"``, ``"gzip"``, ``"brotli"``, ``"lz4_raw"`` or ``"zstd"``."""
    compression_level: int | Mapping[str, int] | None = None
    """Compression level: 1 to 9 for gzip, 0 to 11 for brotli, 1 to 12 for lz4_raw and up to 22 for zstd; None is the
    codec's default. A single level does not apply to columns whose codec has no levels."""
    dictionary: bool | Mapping[str, bool] = True
    """Whether columns may be dictionary-encoded."""
    encodings: EncodingName | Mapping[str, EncodingName] = "default"
    """Encoding of values without a dictionary, or after the dictionary became too large: ``"plain"``, ``"rle"``
    (booleans), ``"delta_binary_packed"`` (INT32, INT64), ``"delta_length_byte_array"`` (BYTE_ARRAY),
    ``"delta_byte_array"`` (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY), ``"byte_stream_split"`` (numbers and
    FIXED_LEN_BYTE_ARRAY), ``"alp"`` (FLOAT, DOUBLE; in preview, supported by few readers), ``"auto"``, which tries the
    suitable encodings except ``"alp"`` on a sample of each chunk, or ``"default"``: ``"delta_binary_packed"`` for
    chunks of more than 8,192 integers if it makes a sample smaller, otherwise ``"plain"``. A column in a mapping has no
    dictionary unless ``dictionary`` also contains it, or its encoding is ``"auto"`` or ``"default"``."""
    row_group_rows: int = ROW_GROUP_ROWS
    """Maximum number of rows in a row group. Smaller row groups suit readers with many processors and selective
    queries; larger row groups are faster to read completely on few processors (``benchmarks/row_group_sizes.py``)."""
    row_group_bytes: int = 512 << 20
    """Maximum size of a row group in bytes of Arrow data, before encoding."""
    page_rows: int = 20_000
    """Maximum number of rows in a page."""
    page_bytes: int = 1 << 18
    """Maximum size of a page in bytes of Arrow data, before encoding."""
    page_version: Literal[1, 2] = 1
    """Version of data pages."""
    statistics: bool | Mapping[str, bool] = True
    """Whether columns have minima, maxima and null counts. Columns that a mapping omits have these statistics."""
    page_index: bool | Mapping[str, bool] = True
    """Whether columns have a page index. Columns that a mapping omits have a page index. Without statistics, it
    contains only the positions of pages."""
    bloom_filters: bool | Mapping[str, Any] = False
    """Whether columns have a Bloom filter: ``True``, or ``{"fpp": 0.01, "ndv": None}`` with the false-positive rate and
    the number of distinct values. Columns that a mapping omits have no Bloom filter."""
    bloom_filter_bytes: int = 128 << 20
    """Maximum size of a Bloom filter in bytes."""
    bloom_filter_place: Literal["file", "row_group"] = "file"
    """Position of Bloom filters: after all row groups, which buffers them in memory, or after each row group."""
    bound_bytes: int = 64
    """Maximum size of minima and maxima of byte arrays in bytes. Longer bounds are truncated."""
    float_order: Literal["type", "ieee754"] = "type"
    """Order of floating-point bounds: ``"type"``, supported by every reader, or ``"ieee754"``, the total order."""
    sorting: Sequence[str | SortKey] = ()
    """Sort order of the rows, such as ``["a", "b.c desc nulls first"]``. The footer declares it. Rows that violate it
    are an error."""
    checksums: bool = True
    """Store a CRC for every page."""
    threads: int = 0
    """Number of columns encoded in parallel; 0 is one per processor."""
    shredding: Mapping[str, Any] = field(default_factory=dict)
    """Shredding schema of each VARIANT column: DDL, an Arrow type or ``"infer"``, or a mapping such as
    ``{"schema": "infer", "coerce": "json", "max_fields": 50}`` (:mod:`pqext.variant.shredding.choice`). The key of a
    VARIANT in a list or map is its path in the file: ``l.list.element``, ``m.key_value.value``."""
    geometry: Mapping[str, Any] = field(default_factory=dict)
    """CRS of each WKB column, or a mapping with ``crs``, ``edges`` and these keys (:mod:`pqext.geo.annotation`).

    ``order``, ``"hilbert"`` or ``"zorder"``: sort the rows by this column: of the complete table in ``write_table``, of
    each row group in a ``ParquetWriter``, of each task in Spark. Row groups and pages then end where their boxes stay
    small: a row group has about three quarters of ``row_group_rows``, a page at most 2,048 rows. ``page_boxes=False``
    omits the box of each page. ``covering=True`` (or a name) adds a struct column of boxes. ``check_range`` rejects
    (True), clamps (``"clamp"``) or writes (False, GEOMETRY only) coordinates outside the range of a geographic CRS.
    ``orientation`` is ``"counterclockwise"`` (default of GEOGRAPHY) or ``"unchanged"``; ``epoch`` is a decimal year."""
    annotations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options of columns with registered types (:func:`pqext.register`): by the annotation's ``option``, then by
    column, such as ``{"temperature": {"t": "kelvin"}}``."""
    geoparquet: bool | Literal["1.1", "2.0"] | None = None
    """GeoParquet metadata. None writes version 2.0 for top-level geometry columns, if any; ``True`` and ``"2.0"``
    require them. ``"1.1"`` is for older readers: WKB without a Parquet type, and a covering column of floats."""
    primary_geometry: str | None = None
    """Primary column of the GeoParquet metadata. The default is the first geometry column."""
    key_value_metadata: Mapping[str, str] = field(default_factory=dict)
    """Key-value pairs of text to store in the footer."""
    second_encodings: Mapping[str, EncodingName] = field(default_factory=dict)
    """Encodings of second copies of leaves, for readers that support them (:mod:`pqext.core.read.second_copy`); other
    readers use the ordinary pages."""
    extensions: Mapping[str, extension_paths.Payload] = field(default_factory=dict)
    """Extensions by metadata path, as bytes or as a mapping from UUIDs to bytes. ``"file"`` is the footer, and a leaf's
    dotted path is the metadata of its chunks. Other paths have the syntax of ``ParquetFile.extensions``."""
    encryption: FileEncryption | None = None
    """Columns to encrypt, and their keys (:class:`pqext.encryption.FileEncryption`). A column chunk then has at most
    32,767 pages; pages exceed ``page_rows`` and ``page_bytes`` if there would be more pages."""
    arrow_schema: bool = True
    """Store the Arrow schema in the footer as pyarrow does (``ARROW:schema``), for types without a Parquet equivalent.
    Without it, durations are plain INT64."""
    footer: FooterFormat = "thrift"
    """Footer format. ``"thrift+index"`` adds a jump table. It lets pqext open a few of very many columns without
    parsing the others (:mod:`pqext.core.footer.jump_table.jump_table`); other readers ignore it.
    ``"thrift+flatbuffers"`` (experimental) adds a FlatBuffers footer, so that a file with a corrupt Thrift footer
    can be opened. Either is omitted, with a warning, if it would exceed the 100 MB that Arrow reads in an extension.
    ``"flatbuffers"`` writes no Thrift footer: only pqext can read the file, which ends in ``PAR3``."""
    checkpoint: int | Checkpoint | None = None
    """Store a copy of the footer after this number of row groups, or at intervals of a :class:`pqext.Checkpoint`, so
    that the preceding data can be read if the writer crashes (reader option ``recover``). Only for local files. Each
    copy lists all preceding row groups: the cost of ``checkpoint=1`` grows with the square of their number."""
    durable: bool = False
    """Sync the complete file to disk before it appears under its name, and then sync the name. Stores always do so;
    file objects are not supported."""
    profile: Literal["spark"] | None = None
    """``"spark"`` writes only features that Spark's reader supports (:mod:`pqext.core.schema.types.spark_profile`)."""

    def __post_init__(self) -> None:
        for name in ("row_group_rows", "row_group_bytes", "page_rows", "page_bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive integer, not {value!r}")
            if value >= 1 << 63:
                raise ValueError(f"{name} must be less than 2**63, not {value}")
        check_flags(self, "checksums", "arrow_schema", "durable")
        if self.checkpoint is not None and self.encryption is not None:
            raise ValueError("a checkpoint would expose encrypted data: omit checkpoint or encryption")
        to_checkpoint(self.checkpoint)
        check_write_types(self)
        flags = self.dictionary.values() if isinstance(self.dictionary, Mapping) else ()
        if not all(isinstance(choice, bool) for choice in flags):
            raise TypeError(f"dictionary must be a bool or a mapping from columns to bools, not {self.dictionary!r}")
        if self.page_version not in (1, 2):
            raise ValueError(f"page_version must be 1 or 2, not {self.page_version!r}")
        check_index_options(self)
        chosen = self.compression
        for codec in [chosen] if isinstance(chosen, str) else chosen.values():
            if codec not in COMPRESSIONS:
                name = str(codec).lower()
                meant = {"lz4": "lz4_raw", "none": "uncompressed"}.get(name, name)
                advice = f"; use {meant}" if meant in COMPRESSIONS else ""
                raise ValueError(f"compression must be one of {', '.join(COMPRESSIONS)}, not {codec!r}{advice}")
        extension_paths.check_extensions(self.extensions)
        for encoding in self.second_encodings.values():
            if encoding not in ENCODINGS:
                raise ValueError(f"second_encodings must be one of {', '.join(ENCODINGS)}, not {encoding!r}")
        if self.second_encodings and self.encryption is not None:
            raise ValueError("second_encodings cannot be encrypted: omit encryption or second_encodings")
        check_key_values(self.key_value_metadata)
        check_geoparquet(self)
        for encoding in [self.encodings] if isinstance(self.encodings, str) else self.encodings.values():
            if encoding not in ENCODINGS:
                raise ValueError(f"encodings must be one of {', '.join(ENCODINGS)}, not {encoding!r}")
        check_combination(
            self.footer, is_encrypted=self.encryption is not None, profile=self.profile,
            has_extension=extension_paths.FILE in self.extensions,
        )
        check_profile(self)
        if self.compression_level is not None and isinstance(chosen, str):
            level = self.compression_level
            for value in level.values() if isinstance(level, Mapping) else [level]:
                check_level(chosen, value, strict=True)

    def check_leaves(self, paths: Collection[str]) -> None:
        """Raise ``ValueError`` if an option refers to a leaf that is not among the dotted ``paths``."""
        for name in (
            "compression", "compression_level", "dictionary", "encodings", "second_encodings",
            "statistics", "page_index", "bloom_filters",
        ):
            chosen = getattr(self, name)
            for path in chosen if isinstance(chosen, Mapping) else ():
                if path not in paths:
                    raise ValueError(unknown_option_column(name, path, paths))
        for target in self.extensions:
            if target not in paths and not extension_paths.is_metadata_path(target):
                raise ValueError(
                    f"extensions has {target!r}, which is neither a metadata path nor one of {join_names(paths)}"
                    f"{did_you_mean(target, paths)}"
                )
        for key in self.sort_keys:
            if key.path not in paths:
                raise ValueError(unknown_option_column("sorting", key.path, paths))
        if self.compression_level is not None:
            for path in paths:
                level = self.compression_level
                if not isinstance(level, Mapping):
                    check_level(self.compression_of(path), level, strict=False)
                elif path in level:
                    check_level(self.compression_of(path), level[path], strict=True)

    def compression_of(self, path: str) -> Compression:
        """Return the codec of the leaf at dotted ``path``."""
        return self.compression if isinstance(self.compression, str) else self.compression.get(path, "snappy")

    def level_of(self, path: str) -> int | None:
        """Return the compression level of the leaf at dotted ``path``; None for the codec's default."""
        chosen = self.compression_level
        level = chosen.get(path) if isinstance(chosen, Mapping) else chosen
        return None if level is None or levels(self.compression_of(path)) is None else level

    def statistics_of(self, path: str) -> bool:
        """Return whether statistics are written for the leaf at dotted ``path``."""
        return self.statistics if isinstance(self.statistics, bool) else self.statistics.get(path, True)

    def has_page_index(self, path: str) -> bool:
        """Return whether a page index is written for the leaf at dotted ``path``."""
        return self.page_index if isinstance(self.page_index, bool) else self.page_index.get(path, True)

    def bloom_filter_of(self, path: str) -> BloomFilterChoice | None:
        """Return the Bloom filter settings of the leaf at dotted ``path``; None if no filter is written."""
        chosen = self.bloom_filters
        return bloom_filter_choice(chosen.get(path, False) if isinstance(chosen, Mapping) else chosen)

    @property
    def sort_keys(self) -> tuple[SortKey, ...]:
        """Columns that the rows are sorted by."""
        return sort_keys(self.sorting)

    def extension_of(self, path: str) -> bytes | None:
        """Return the metadata extension to store in each chunk of the leaf at dotted ``path``; None if not set."""
        payload = self.extensions.get(path) if path != extension_paths.FILE else None
        return None if payload is None else extension_paths.serialise_payload(payload)

    def second_copy_options(self, path: str) -> WriteOptions | None:
        """Return the options for the second copy of the leaf at dotted ``path``; None if it has no second copy."""
        encoding = self.second_encodings.get(path)
        return None if encoding is None else replace(
            self, encodings={path: encoding}, dictionary=False, statistics=False, page_index=False,
            bloom_filters=False, second_encodings={}, extensions={},
        )

    def allows_dictionary(self, path: str) -> bool:
        """Return whether the option ``dictionary`` allows dictionary encoding for the leaf at dotted ``path``."""
        named = not isinstance(self.encodings, str) and self.encodings.get(path, "auto") not in ("auto", "default")
        if isinstance(self.dictionary, bool):
            return self.dictionary and not named
        return self.dictionary.get(path, not named)

    def encoding_of(self, path: str) -> EncodingName:
        """Return the encoding of the leaf at dotted ``path`` for values without a dictionary."""
        return self.encodings if isinstance(self.encodings, str) else self.encodings.get(path, "default")


Options = TypeVar("Options", ReadOptions, WriteOptions)

_cache: dict[tuple[Any, ...], Any] = {}
_MAX_CACHED = 64


def from_keywords(
    options_type: type[Options], keywords: Mapping[str, Any], *known_names: str, base: Options | None = None
) -> Options:
    """Create options from ``keywords``; other fields have the values of ``base``. Errors also suggest ``known_names``,
    the other parameters of the caller.

    Raises ``TypeError`` for an unknown name or a ``base`` of another type, and the errors of ``options_type``.
    """
    if base is None:
        # Equal options are the same object, which is the key of further caches.
        key = (options_type, *((name, type(value), value) for name, value in keywords.items()))
        if all(isinstance(value, (bool, int, str)) for value in keywords.values()):
            options: Options | None = _cache.get(key)
            if options is None:
                options = _from_keywords(options_type, keywords, known_names, None)
                if len(_cache) >= _MAX_CACHED:
                    _cache.clear()
                _cache[key] = options
            return options
    return _from_keywords(options_type, keywords, known_names, base)


def _from_keywords(
    options_type: type[Options], keywords: Mapping[str, Any], known_names: Sequence[str], base: Options | None
) -> Options:
    if base is not None and not isinstance(base, options_type):
        raise TypeError(f"options must be {options_type.__name__}, not {type(base).__name__}")
    if base is not None and not keywords:
        return base
    names: list[str] = [field.name for field in fields(options_type)]
    for name in keywords:
        if name not in names:
            replacement = FOREIGN_OPTIONS["write" if options_type is WriteOptions else "read"].get(name)
            if replacement is not None:
                raise TypeError(f"unknown option {name!r}; {replacement}")
            hint = did_you_mean(name, [*names, *known_names])
            hint = hint or f"; the options are {', '.join([*known_names, *names])}"
            raise TypeError(f"unknown option {name!r}{hint}")
    return options_type(**keywords) if base is None else replace(base, **keywords)
