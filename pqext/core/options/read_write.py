"""Options of the reader and the writer: one name each, the same in Python, Spark and on the command line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar, get_args

from pqext.core.base.limits import ROW_GROUP_ROWS
from pqext.core.base.suggestions import FOREIGN_OPTIONS, did_you_mean, join_names, unknown_leaf_hint
from pqext.core.format.compression import levels
from pqext.core.format.extension import paths as extension_places
from pqext.core.options.encryption import FileDecryption, FileEncryption
from pqext.core.options.fields import check_flags, check_level, check_pairs, with_field_docs
from pqext.core.options.footer import Checkpoint, FooterForm, as_checkpoint, check_beside
from pqext.core.options.indexes import (
    BloomFilterChoice,
    SortKey,
    bloom_filter_choice,
    check_index_options,
    sort_keys,
)

Compression = Literal["uncompressed", "snappy", "gzip", "brotli", "lz4_raw", "zstd"]
COMPRESSIONS: tuple[Compression, ...] = get_args(Compression)
EncodingName = Literal[
    "plain", "rle", "delta_binary_packed", "delta_length_byte_array", "delta_byte_array", "byte_stream_split", "alp",
    "auto",
]
ENCODINGS: tuple[EncodingName, ...] = get_args(EncodingName)
TimestampUnit = Literal["s", "ms", "us", "ns"]
StringForm = Literal["string", "view", "dictionary"]
InvalidUtf8 = Literal["raise", "replace", "binary"]


@with_field_docs
@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a file is read. Every function that reads takes these fields as keywords, or an object as ``options=``."""

    shredded: bool = False
    """Give shredded VARIANT columns as their storage structs instead of whole values."""
    strict: bool = False
    """Refuse what is otherwise read in spite of a fault: VARIANT columns whose shredded parts contradict each other
    (``VariantError`` names the row in its batch), or that have optional ``metadata`` or a wrong flag of its order; and
    faulty page indexes, page boxes, Bloom filters and schemas (``CorruptFileError``, ``LimitError``)."""
    checksums: bool = True
    """Verify the CRC of each page that has one."""
    threads: int = 0
    """Columns decoded at once; 0 is one per processor."""
    on_corrupt: Literal["raise", "skip"] = "raise"
    """What damage in row groups and pages does. ``"skip"`` leaves out the rows that it costs, warns with
    ``CorruptDataWarning`` and notes them in ``ParquetFile.damage``; filters then leave out row groups but no pages.
    Data that fails to decrypt is always an error."""
    recover: bool = False
    """Open a file whose footer is missing or damaged by the last checkpoint in it (option ``checkpoint`` of writing),
    with a ``RecoveredFileWarning``. Without one the error stays; :func:`pqext.recover` looks for other evidence."""
    decryption: FileDecryption | None = None
    """The keys of encrypted files (:class:`pqext.encryption.FileDecryption`)."""
    int96: Literal["auto", "s", "ms", "us", "ns"] = "auto"
    """The unit in which INT96 timestamps are read. ``"auto"`` is ``"us"`` for files that Spark wrote, whose timestamps
    are whole microseconds of any year, and ``"ns"`` for others. A value that the unit cannot hold is an error."""
    int96_utc: bool = False
    """Read INT96 timestamps as instants in UTC, as Spark reads them, instead of times without a time zone."""
    second_copies: bool = False
    """Read columns from their second copy, where the writer stored one (option ``second_encodings`` of writing)."""
    trust_statistics: bool = True
    """Leave out what the file itself says cannot match: row groups by statistics, bounding boxes and Bloom filters,
    pages by their indexes and boxes; and find pages by the offset index. ``False`` reads all row groups and pages and
    compares every row, for files in which any of these is wrong (``pqext verify`` finds out). The folder names of a
    partitioned dataset count all the same. Minima and maxima of geometries are never used."""
    external_files: Literal["folder", "any", "refuse"] = "folder"
    """Which other files the column chunks of a summary file may lie in: those in its own folder and below, any, or
    none (:mod:`pqext.core.io.external_files`)."""
    geoparquet: bool = True
    """Read plain columns as geometries where the file's GeoParquet metadata says that they are."""
    arrow_schema: bool = True
    """Give columns the Arrow types and field metadata that the writer noted in ``ARROW:schema``, as pyarrow does:
    durations, time zones, dictionaries, large, view and fixed-size types, narrow decimals, extension types. A note that
    contradicts the Parquet schema is ignored with an ``AnnotationWarning``."""
    strings: StringForm = "string"
    """How string and binary columns are given, nested ones too. ``"string"`` gives plain arrays, or what the writer
    noted in ``ARROW:schema``. ``"dictionary"`` gives dictionary arrays with int32 indices: the dictionary of a column
    chunk stays as it is stored, each row group has its own, and pages without one are encoded when they are read.
    ``"view"`` gives string_view and binary_view arrays, which point to values in the memory of pages and dictionaries
    and keep all of it. Annotated columns (VARIANT, GEOMETRY) and columns of Arrow extension types keep their types."""
    invalid_values: Literal["raise", "null"] = "raise"
    """Result of values outside their type, such as a TIME beyond the day: an error when their row is read, or null."""
    invalid_utf8: InvalidUtf8 = "raise"
    """Result of strings that are not UTF-8, which Spark and others write: an error when their row is read, the string
    with U+FFFD for what is not UTF-8, or all columns of strings as binary. What is replaced prunes nothing."""
    legacy_calendar: Literal["rebase", "stored"] = "rebase"
    """Dates and instants that Spark stored in its legacy calendar (Julian before 15 October 1582), as the file's
    metadata states: converted to the proleptic Gregorian calendar, as Spark does, or as they are stored."""
    legacy_timezone: str | None = None
    """Time zone of the writer of a file in the legacy calendar that does not state one (Spark before 3.0). Without it,
    instants before 1900 in such a file are an error."""
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Properties of the table that the file belongs to, where a CRS ``projjson:<property>`` is looked up. The file's
    own key-value metadata comes first."""

    @property
    def int96_unit(self) -> TimestampUnit:
        """The unit of INT96 timestamps; that of ``"auto"`` is known to the open file."""
        return "ns" if self.int96 == "auto" else self.int96

    def __post_init__(self) -> None:
        check_flags(self, "shredded", "strict", "checksums", "recover", "int96_utc", "second_copies",
                     "trust_statistics", "geoparquet", "arrow_schema")
        if not isinstance(self.properties, Mapping):
            raise TypeError(f"properties must map names to texts, not be a {type(self.properties).__name__}")
        if self.decryption is not None and not isinstance(self.decryption, FileDecryption):
            kind = type(self.decryption).__name__
            raise TypeError(f"decryption must be a pqext.encryption.FileDecryption, not a {kind}")
        if not isinstance(self.legacy_timezone, str | None):
            raise TypeError(f"legacy_timezone must be the name of a time zone, not {self.legacy_timezone!r}")
        for name, (*others, last) in _READ_CHOICES.items():
            if (found := getattr(self, name)) not in (*others, last):
                raise ValueError(f"""{name} must be "{'", "'.join(others)}" or "{last}", not {found!r}""")


_READ_CHOICES = {
    "on_corrupt": ("raise", "skip"), "invalid_values": ("raise", "null"), "external_files": ("folder", "any", "refuse"),
    "legacy_calendar": ("rebase", "stored"), "invalid_utf8": get_args(InvalidUtf8),
    "strings": get_args(StringForm), "int96": ("auto", *get_args(TimestampUnit)),
}
_KINDS: dict[str, tuple[type, ...]] = {
    "compression": (str, Mapping),
    "dictionary": (bool, Mapping),
    "encodings": (str, Mapping),
    "shredding": (Mapping,),
    "geometry": (Mapping,),
    "annotations": (Mapping,),
    "geoparquet": (bool, str),
    "key_value_metadata": (Mapping,),
    "extensions": (Mapping,),
    "second_encodings": (Mapping,),
    "encryption": (FileEncryption, type(None)),
    "compression_level": (int, Mapping, type(None)),
}
_BY_COLUMN = ("shredding", "geometry", "second_encodings")


@with_field_docs
@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a file is written. Every function that writes takes these fields as keywords, or an object as ``options=``.

    Where a mapping is allowed, its keys are dotted paths of leaf columns, like ``"a"`` or ``"l.list.element"``.
    """

    compression: Compression | Mapping[str, Compression] = "snappy"
    """The codec: ``"uncompressed"``, ``"snappy"``, ``"gzip"``, ``"brotli"``, ``"lz4_raw"`` or ``"zstd"``."""
    compression_level: int | Mapping[str, int] | None = None
    """Gzip 1 to 9, brotli 0 to 11, lz4_raw 1 to 12, zstd up to 22; ``None`` is the codec's default. One level for all
    columns leaves out those whose codec has none."""
    dictionary: bool | Mapping[str, bool] = True
    """May columns be dictionary-encoded?"""
    encodings: EncodingName | Mapping[str, EncodingName] = "plain"
    """How values are encoded without a dictionary, or once it has grown too big: ``"plain"``, ``"rle"`` (booleans),
    ``"delta_binary_packed"`` (INT32, INT64), ``"delta_length_byte_array"`` (BYTE_ARRAY), ``"delta_byte_array"``
    (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY), ``"byte_stream_split"`` (numbers and FIXED_LEN_BYTE_ARRAY), ``"alp"`` (FLOAT,
    DOUBLE; in preview, few readers know it), or ``"auto"``, which tries those that suit on a sample of each chunk,
    never ``"alp"``. A column named in a mapping has no dictionary unless ``dictionary`` names it too."""
    row_group_rows: int = ROW_GROUP_ROWS
    """Rows at which a row group ends. Readers with many processors gain by smaller ones, selective queries too; reading
    all on a few is quicker with larger ones (``benchmarks/row_group_sizes.py``)."""
    row_group_bytes: int = 512 << 20
    """Bytes of Arrow data, before encoding, at which a row group ends."""
    page_rows: int = 20_000
    """Rows at which a page ends."""
    page_bytes: int = 1 << 20
    """Bytes of Arrow data, before encoding, at which a page ends."""
    page_version: Literal[1, 2] = 1
    """The version of data pages."""
    statistics: bool | Mapping[str, bool] = True
    """Which columns have minima, maxima and counts of nulls; columns that a mapping leaves out have them."""
    page_index: bool | Mapping[str, bool] = True
    """Which columns have a page index; columns that a mapping leaves out have one. Without statistics it tells only
    where pages are."""
    bloom_filters: bool | Mapping[str, Any] = False
    """Which columns have a Bloom filter: ``True``, or ``{"fpp": 0.01, "ndv": None}`` for the share of false positives
    and the number of distinct values; columns that a mapping leaves out have none."""
    bloom_filter_bytes: int = 128 << 20
    """The largest size of a Bloom filter, in bytes."""
    bloom_filter_place: Literal["file", "row_group"] = "file"
    """Behind all row groups, for which filters are kept in memory, or behind each row group."""
    bound_bytes: int = 64
    """Bytes to which minima and maxima of byte arrays are cut."""
    float_order: Literal["type", "ieee754"] = "type"
    """The order of floating-point bounds: ``"type"``, which every reader knows, or ``"ieee754"``, the total order."""
    sorting: Sequence[str | SortKey] = ()
    """The columns by which rows are sorted, like ``["a", "b.c desc nulls first"]``. The file notes it, and rows that
    are not sorted are refused."""
    checksums: bool = True
    """Give every page a CRC."""
    threads: int = 0
    """Columns encoded at once; 0 is one per processor."""
    shredding: Mapping[str, Any] = field(default_factory=dict)
    """The shredding schema of each VARIANT column: DDL, an Arrow type or ``"infer"``, or a mapping like
    ``{"schema": "infer", "coerce": "json", "max_fields": 50}`` (:mod:`pqext.variant.shredding.choice`). A VARIANT in a
    list or map is named by its path in the file: ``l.list.element``, ``m.key_value.value``."""
    geometry: Mapping[str, Any] = field(default_factory=dict)
    """The CRS of each WKB column, or a mapping of ``crs``, ``edges`` and these keys (:mod:`pqext.geo.annotation`).

    ``order``, ``"hilbert"`` or ``"zorder"``: the column orders the rows, of a whole table in ``write_table``, of each
    row group in a ``ParquetWriter``, of each task in Spark. Row groups and pages then end where their boxes stay small:
    a row group has about three quarters of ``row_group_rows``, a page 2,048 rows at most. ``page_boxes=False`` leaves
    out the box of each page. ``covering=True`` (or a name) adds a struct column of boxes. ``check_range`` says what is
    done with coordinates beyond the range of a geographic CRS: ``True`` refuses them, ``"clamp"`` moves them to the
    ends of the range, ``False`` writes them (GEOMETRY only)."""
    annotations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Choices for columns of types that others registered (:func:`pqext.register`): by the annotation's ``option``,
    then by column, like ``{"temperature": {"t": "kelvin"}}``."""
    geoparquet: bool | str = False
    """Write GeoParquet metadata for geopandas and others; a text names the primary column."""
    key_value_metadata: Mapping[str, str] = field(default_factory=dict)
    """Texts stored in the footer."""
    second_encodings: Mapping[str, EncodingName] = field(default_factory=dict)
    """Encodings in which leaves are stored once more, for readers that know (:mod:`pqext.core.read.second_copy`);
    all others read the ordinary pages."""
    extensions: Mapping[str, extension_places.Payload] = field(default_factory=dict)
    """Extension bytes, or a mapping from UUIDs to bytes, by place: ``"file"`` is the footer, a leaf's dotted path the
    metadata of its chunks; others are written as ``ParquetFile.extensions`` lists them."""
    encryption: FileEncryption | None = None
    """What is encrypted, with which keys (:class:`pqext.encryption.FileEncryption`). A column chunk then has at most
    32,767 pages, and pages grow beyond ``page_rows`` and ``page_bytes`` where there would be more."""
    arrow_schema: bool = True
    """Note the Arrow schema in the footer as pyarrow does (``ARROW:schema``), for types that Parquet has no name for.
    Without the note durations are plain INT64."""
    footer: FooterForm = "thrift"
    """``"thrift+index"`` adds a jump table to the footer, by which pqext opens a few of very many columns without
    looking at the others (:mod:`pqext.core.footer.jump_table.jump_table`); other readers pass over it.
    ``"thrift+flatbuffers"`` adds a FlatBuffers footer, by which a file opens whose Thrift footer is damaged.
    Either is left out, with a warning, where it would take more than the 100 MB that Arrow reads in an extension.
    ``"flatbuffers"`` makes it the only one: pqext alone reads such a file, which ends in ``PAR3``."""
    checkpoint: int | Checkpoint | None = None
    """Leave a copy of the footer so far in the file after so many row groups, or as a :class:`pqext.Checkpoint` says,
    so that what lies before it can be read if the writer dies (``recover`` of reading). Only for local files. Each copy
    lists all row groups before it: ``checkpoint=1`` adds bytes and time that grow with the square of the row groups."""
    durable: bool = False
    """Wait until the disk has the whole file before it appears under its name, and the name too. Stores do so anyway,
    file objects are refused."""
    profile: Literal["spark"] | None = None
    """``"spark"`` writes only what Spark's own reader takes (:mod:`pqext.core.schema.types.spark_profile`)."""

    def __post_init__(self) -> None:
        for name in ("row_group_rows", "row_group_bytes", "page_rows", "page_bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive number, not {value!r}")
        check_flags(self, "checksums", "arrow_schema", "durable")
        if self.checkpoint is not None and self.encryption is not None:
            raise ValueError("a checkpoint would show what is encrypted: leave out checkpoint or encryption")
        as_checkpoint(self.checkpoint)
        for name, kinds in _KINDS.items():
            if not isinstance(getattr(self, name), kinds):
                value = getattr(self, name)
                if name == "compression" and value is None:
                    raise TypeError('compression cannot be a NoneType: "uncompressed" leaves pages as they are')
                shown = "'infer'" if value == "auto" else repr(value) if isinstance(value, str) else "..."
                advice = f": it maps columns to theirs, {name}={{'column': {shown}}}" if name in _BY_COLUMN else ""
                raise TypeError(f"{name} cannot be a {type(getattr(self, name)).__name__}{advice}")
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
        extension_places.check(self.extensions)
        for encoding in self.second_encodings.values():
            if encoding not in ENCODINGS:
                raise ValueError(f"second_encodings must be one of {', '.join(ENCODINGS)}, not {encoding!r}")
        if self.second_encodings and self.encryption is not None:
            raise ValueError("second_encodings cannot be encrypted: leave out encryption or second_encodings")
        check_pairs(self.key_value_metadata)
        if self.geoparquet and "geo" in self.key_value_metadata:
            raise ValueError("key_value_metadata has the key 'geo', which geoparquet is to write: give one of them")
        for encoding in [self.encodings] if isinstance(self.encodings, str) else self.encodings.values():
            if encoding not in ENCODINGS:
                raise ValueError(f"encodings must be one of {', '.join(ENCODINGS)}, not {encoding!r}")
            if self.profile == "spark" and encoding in ("alp", "byte_stream_split"):
                raise ValueError(f'Spark does not read encoding {encoding!r}; profile="spark" forbids it')
        check_beside(
            self.footer, encrypted=self.encryption is not None, extended=extension_places.FILE in self.extensions,
            profile=self.profile,
        )
        if self.profile not in (None, "spark"):
            raise ValueError(f'profile must be None or "spark", not {self.profile!r}')
        if self.profile == "spark" and "brotli" in ([chosen] if isinstance(chosen, str) else chosen.values()):
            raise ValueError('compression "brotli" needs a codec that Spark does not bring; profile="spark" forbids it')
        if self.profile == "spark" and self.encryption is not None and self.page_version == 2:
            raise ValueError('Spark does not read encrypted pages of version 2; profile="spark" needs page_version=1')
        if self.compression_level is not None and isinstance(chosen, str):
            level = self.compression_level
            for one in level.values() if isinstance(level, Mapping) else [level]:
                check_level(chosen, one, strict=True)

    def check_leaves(self, paths: Collection[str]) -> None:
        """Raise ``ValueError`` when a choice for one leaf names none of the dotted ``paths``."""
        for name in (
            "compression", "compression_level", "dictionary", "encodings", "second_encodings",
            "statistics", "page_index", "bloom_filters",
        ):
            chosen = getattr(self, name)
            for path in chosen if isinstance(chosen, Mapping) else ():
                if path not in paths:
                    raise ValueError(f"{name} names column {path!r}{unknown_leaf_hint(path, paths)}")
        for place in self.extensions:
            if place not in paths and not extension_places.is_place(place):
                raise ValueError(
                    f"extensions names {place!r}, which is neither a place nor one of {join_names(paths)}"
                    f"{did_you_mean(place, paths)}"
                )
        for key in self.sort_keys:
            if key.path not in paths:
                raise ValueError(f"sorting names column {key.path!r}{unknown_leaf_hint(key.path, paths)}")
        if self.compression_level is not None:
            for path in paths:
                level = self.compression_level
                if not isinstance(level, Mapping):
                    check_level(self.compression_of(path), level, strict=False)
                elif path in level:
                    check_level(self.compression_of(path), level[path], strict=True)

    def compression_of(self, path: str) -> Compression:
        """The codec of the leaf at dotted ``path``."""
        return self.compression if isinstance(self.compression, str) else self.compression.get(path, "snappy")

    def level_of(self, path: str) -> int | None:
        """The compression level of the leaf at dotted ``path``, ``None`` for the codec's default."""
        chosen = self.compression_level
        level = chosen.get(path) if isinstance(chosen, Mapping) else chosen
        return None if level is None or levels(self.compression_of(path)) is None else level

    def statistics_of(self, path: str) -> bool:
        """Does the leaf at dotted ``path`` get statistics?"""
        return self.statistics if isinstance(self.statistics, bool) else self.statistics.get(path, True)

    def page_index_of(self, path: str) -> bool:
        """Does the leaf at dotted ``path`` get a page index?"""
        return self.page_index if isinstance(self.page_index, bool) else self.page_index.get(path, True)

    def bloom_filter_of(self, path: str) -> BloomFilterChoice | None:
        """The Bloom filter that the leaf at dotted ``path`` gets, if any."""
        chosen = self.bloom_filters
        return bloom_filter_choice(chosen.get(path, False) if isinstance(chosen, Mapping) else chosen)

    @property
    def sort_keys(self) -> tuple[SortKey, ...]:
        """The columns by which rows are sorted."""
        return sort_keys(self.sorting)

    def extension_of(self, path: str) -> bytes | None:
        """The extension of the chunks of the leaf at dotted ``path``, if it gets one."""
        payload = self.extensions.get(path) if path != extension_places.FILE else None
        return None if payload is None else extension_places.serialised(payload)

    def for_second_copy(self, path: str) -> WriteOptions | None:
        """How the second copy of the leaf at dotted ``path`` is written, if it gets one."""
        encoding = self.second_encodings.get(path)
        if encoding is None:
            return None
        return replace(
            self, encodings={path: encoding}, dictionary=False, statistics=False, page_index=False,
            bloom_filters=False, second_encodings={}, extensions={},
        )

    def dictionary_of(self, path: str) -> bool:
        """May the leaf at dotted ``path`` be dictionary-encoded?"""
        named = not isinstance(self.encodings, str) and self.encodings.get(path, "auto") != "auto"
        if isinstance(self.dictionary, bool):
            return self.dictionary and not named
        return self.dictionary.get(path, not named)

    def encoding_of(self, path: str) -> EncodingName:
        """How values of the leaf at dotted ``path`` are encoded without a dictionary."""
        return self.encodings if isinstance(self.encodings, str) else self.encodings.get(path, "plain")


Options = TypeVar("Options", ReadOptions, WriteOptions)


_MADE: dict[tuple[Any, ...], Any] = {}
_KEPT = 64


def from_keywords(
    kind: type[Options], keywords: Mapping[str, Any], *others: str, base: Options | None = None
) -> Options:
    """Options from arguments by name, beside which a function takes ``others``; ``base`` holds what is not given.

    Raises ``TypeError`` for an unknown name and for a ``base`` of another kind, and what the options raise for their
    values.
    """
    if base is None:
        # Those made before are the same object, which what is kept for them is found by.
        key = (kind, *((name, type(value), value) for name, value in keywords.items()))
        if all(isinstance(value, (bool, int, str)) for value in keywords.values()):
            made: Options | None = _MADE.get(key)
            if made is None:
                made = _from_keywords(kind, keywords, others, None)
                if len(_MADE) >= _KEPT:
                    _MADE.clear()
                _MADE[key] = made
            return made
    return _from_keywords(kind, keywords, others, base)


def _from_keywords(
    kind: type[Options], keywords: Mapping[str, Any], others: Sequence[str], base: Options | None
) -> Options:
    if base is not None and not isinstance(base, kind):
        raise TypeError(f"options must be {kind.__name__}, not {type(base).__name__}")
    if base is not None and not keywords:
        return base
    known: list[str] = [one.name for one in fields(kind)]
    for name in keywords:
        if name not in known:
            elsewhere = FOREIGN_OPTIONS["write" if kind is WriteOptions else "read"].get(name)
            if elsewhere is not None:
                raise TypeError(f"there is no option {name!r}; {elsewhere}")
            meant = did_you_mean(name, [*known, *others])
            raise TypeError(f"there is no option {name!r}{meant or '; there are ' + ', '.join([*others, *known])}")
    return kind(**keywords) if base is None else replace(base, **keywords)
