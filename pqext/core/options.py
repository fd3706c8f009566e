"""Options of the reader and the writer: one name each, the same in Python, Spark and on the command line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar, get_args

from pqext.core.compression import levels
from pqext.core.encryption.properties import FileDecryption, FileEncryption
from pqext.core.extension import places as extension_places
from pqext.core.indexes.options import (
    BloomFilterChoice,
    SortKey,
    bloom_filter_choice,
    check_index_options,
    sort_keys,
)
from pqext.core.suggest import did_you_mean, listed, not_a_leaf

Compression = Literal["uncompressed", "snappy", "gzip", "brotli", "lz4_raw", "zstd"]
COMPRESSIONS: tuple[Compression, ...] = get_args(Compression)
EncodingName = Literal[
    "plain", "rle", "delta_binary_packed", "delta_length_byte_array", "delta_byte_array", "byte_stream_split", "alp",
    "auto",
]
ENCODINGS: tuple[EncodingName, ...] = get_args(EncodingName)
TimestampUnit = Literal["s", "ms", "us", "ns"]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a file is read.

    ``shredded``: give shredded VARIANT columns as their storage structs instead of whole values. ``strict``: refuse
    VARIANT columns whose shredded parts contradict each other instead of following ``typed_value``, with a
    ``VariantError`` that names the row in its batch.
    ``checksums``: verify a page's CRC where it has one. ``threads``: columns decoded at once, 0 for one
    a processor. ``on_corrupt``: what damage in row groups and pages does: ``"raise"``, or ``"skip"`` to leave out the
    rows it costs, warn with ``CorruptDataWarning`` and note them in ``ParquetFile.damage``; what fails to decrypt is
    no such damage, and filters then leave out row groups but no pages. ``decryption``: the keys of encrypted files
    (:class:`pqext.FileDecryption`).
    ``int96``: the unit in which INT96 timestamps are read. ``"auto"`` takes ``"us"`` for files that Spark wrote, whose
    timestamps are whole microseconds and may lie in any year, and ``"ns"`` for others; a value that the unit cannot
    hold is an error that names a coarser one.
    ``second_copies``: read columns from their second copy, where the writer stored one (``second_encodings``).
    ``trust_statistics``: leave out what the file itself says cannot match: row groups by statistics, bounding boxes
    and Bloom filters, pages by column indexes and boxes, parts of shredded columns by their counts of nulls; and find
    pages by the offset index. ``False`` reads all row groups and pages and compares every row, for files in which any
    of these is wrong (``pqext verify`` finds out). Folder names of a partitioned dataset count all the same. Minima
    and maxima of geometries, which some writers leave there, are never used.
    ``geoparquet``: take plain columns for geometries that the file's GeoParquet metadata says are.
    ``arrow_schema``: give columns the Arrow types and field metadata that the writer noted in ``ARROW:schema``, as
    pyarrow does: durations, time zones, dictionaries, large, view and fixed-size types, narrow decimals, extension
    types. The Parquet schema decides what the values are; a note that contradicts it is passed over with an
    ``AnnotationWarning``. Without it columns are as Parquet's types show them.
    ``properties``: those of the table that the file belongs to, where a CRS ``projjson:<property>`` is looked up; what
    the file's own key-value metadata has goes before.
    ``external_files``: which other files the column chunks of a summary file may lie in: those in its own folder and
    below, ``"any"``, or none (``"refuse"``); see :mod:`pqext.core.files.external`.
    """

    shredded: bool = False
    strict: bool = False
    checksums: bool = True
    threads: int = 0
    on_corrupt: Literal["raise", "skip"] = "raise"
    decryption: FileDecryption | None = None
    int96: Literal["auto", "s", "ms", "us", "ns"] = "auto"
    second_copies: bool = False
    trust_statistics: bool = True
    external_files: Literal["folder", "any", "refuse"] = "folder"
    geoparquet: bool = True
    arrow_schema: bool = True
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def int96_unit(self) -> TimestampUnit:
        """The unit of INT96 timestamps; that of ``"auto"`` is known to the open file."""
        return "ns" if self.int96 == "auto" else self.int96

    def __post_init__(self) -> None:
        _check_flags(self, "shredded", "strict", "checksums", "second_copies", "trust_statistics", "geoparquet",
                     "arrow_schema")
        if not isinstance(self.properties, Mapping):
            raise TypeError(f"properties must map names to texts, not be a {type(self.properties).__name__}")
        if self.on_corrupt not in ("raise", "skip"):
            raise ValueError(f'on_corrupt must be "raise" or "skip", not {self.on_corrupt!r}')
        if self.decryption is not None and not isinstance(self.decryption, FileDecryption):
            raise TypeError(f"decryption must be a pqext.FileDecryption, not a {type(self.decryption).__name__}")
        if self.external_files not in ("folder", "any", "refuse"):
            raise ValueError(f'external_files must be "folder", "any" or "refuse", not {self.external_files!r}')
        if self.int96 not in ("auto", *get_args(TimestampUnit)):
            raise ValueError(f'int96 must be "auto", "s", "ms", "us" or "ns", not {self.int96!r}')


_KINDS: dict[str, tuple[type, ...]] = {
    "compression": (str, Mapping),
    "dictionary": (bool, Mapping),
    "encodings": (str, Mapping),
    "shredding": (Mapping,),
    "geometry": (Mapping,),
    "geoparquet": (bool, str),
    "key_value_metadata": (Mapping,),
    "extensions": (Mapping,),
    "second_encodings": (Mapping,),
    "encryption": (FileEncryption, type(None)),
    "compression_level": (int, Mapping, type(None)),
}
_BY_COLUMN = ("shredding", "geometry", "second_encodings")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a file is written.

    ``compression``, ``compression_level``, ``dictionary`` and ``encodings`` take one value or a mapping from a leaf's
    dotted path. ``encodings`` says how values are encoded where there is no dictionary or where it has grown too big:
    ``"plain"``, ``"rle"`` (booleans), ``"delta_binary_packed"`` (INT32, INT64), ``"delta_length_byte_array"``
    (BYTE_ARRAY), ``"delta_byte_array"`` (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY), ``"byte_stream_split"`` (numbers and
    FIXED_LEN_BYTE_ARRAY), ``"alp"`` (FLOAT, DOUBLE; in preview, few readers know it), or ``"auto"``, which tries
    those that suit on a sample of each chunk, never ``"alp"``. A column that a mapping gives an encoding has no
    dictionary unless ``dictionary`` names it too; columns left out are ``"plain"``.
    Levels are those of the codec: gzip 1 to 9, brotli 0 to 11, lz4_raw 1 to 12, zstd up to 22; ``None`` is its
    default, and one level for all columns passes over those whose codec has none.
    ``shredding`` maps a VARIANT column to its shredding schema (DDL, Arrow type or ``"infer"``), or to a mapping like
    ``{"schema": "infer", "coerce": "json", "max_fields": 50}`` (:mod:`pqext.variant.shredding.choice`). A VARIANT in a
    list or map is named by its path in the file: ``l.list.element``, ``m.key_value.value``.
    ``geometry`` maps a WKB column to its CRS, or to a mapping like ``{"crs": ..., "order": "hilbert"}``
    (:mod:`pqext.geo.annotation`). With an ``order``, ``"hilbert"`` or ``"zorder"``, the column orders the rows: of a
    whole table in ``write_table``, of each row group in a ``ParquetWriter``, of each task in Spark. Row groups and
    pages, those of all columns, then end where their boxes stay small, somewhere in the last half of what they may
    hold: a row group has about three quarters of ``row_group_rows``, and pages hold 2,048 rows at most.
    ``page_boxes=False`` among these leaves out the box that each page gets, ``covering=True`` (or a name) adds a plain
    struct column of boxes (:mod:`pqext.geo.covering`). ``check_range`` decides what is done with coordinates beyond the
    longitudes and latitudes of a geographic CRS by more than rounding: True, the default, refuses them, ``"clamp"``
    moves them to the ends of the range, False writes them (GEOMETRY only). ``geoparquet=True``, or the name of the
    primary column, writes GeoParquet metadata for geopandas and others (:mod:`pqext.geo.geoparquet`).
    A row group or page ends at whichever of its rows and bytes is reached first (``row_group_rows``,
    ``row_group_bytes``, ``page_rows``, ``page_bytes``); bytes are those of Arrow before encoding. ``page_version`` is
    1 or 2. ``threads``: columns encoded at once, 0 for one a processor.
    ``statistics``, ``page_index`` and ``bloom_filters`` take one value or such a mapping too; columns that it leaves
    out have statistics and a page index, but no Bloom filter. Without statistics a page index tells only where pages
    are. ``checksums``: every page has a CRC. ``key_value_metadata`` maps text to text and goes into the footer.
    A Bloom filter is ``True`` or ``{"fpp": 0.01, "ndv": None}``, its size at most ``bloom_filter_bytes``;
    ``bloom_filter_place`` is ``"file"`` (behind all row groups, kept in memory till then) or ``"row_group"`` (behind
    each). Bounds of byte arrays are cut to ``bound_bytes``. ``float_order`` is the order of floating-point bounds:
    ``"type"``, which every reader knows, or ``"ieee754"``, the total order. ``sorting`` names the columns by which
    rows are sorted, like ``["a", "b.c desc nulls first"]``: it is noted in the file, and rows that are not sorted so
    are refused.
    ``extensions`` maps places in the metadata to extension bytes, or to a mapping from UUIDs to bytes that becomes a
    container: ``"file"`` is the footer, a leaf's dotted path the metadata of its chunks, and other places are written
    as ``ParquetFile.extensions`` lists them (:mod:`pqext.core.extension.places`).
    ``second_encodings`` maps leaves to an encoding in which they are stored once more, at the start of the row group,
    for readers that know of it (:mod:`pqext.core.extension.second_copy`); all others read the ordinary pages.
    ``encryption`` says what is encrypted, with which keys (:class:`pqext.FileEncryption`); a column chunk then has
    32,767 pages at most, and pages grow beyond ``page_rows`` and ``page_bytes`` where there would be more.
    ``arrow_schema``: note the Arrow schema in the footer as pyarrow does (``ARROW:schema``), for types that Parquet has
    no name for; :mod:`pqext.core.arrow_schema.written` says what comes back as what. Without the note durations are
    plain INT64.
    ``profile="spark"`` writes only what Spark's own reader takes: see :mod:`pqext.core.types.profile`.
    """

    compression: Compression | Mapping[str, Compression] = "snappy"
    compression_level: int | Mapping[str, int] | None = None
    dictionary: bool | Mapping[str, bool] = True
    encodings: EncodingName | Mapping[str, EncodingName] = "plain"
    row_group_rows: int = 1 << 20
    row_group_bytes: int = 512 << 20
    page_rows: int = 20_000
    page_bytes: int = 1 << 20
    page_version: Literal[1, 2] = 1
    statistics: bool | Mapping[str, bool] = True
    page_index: bool | Mapping[str, bool] = True
    bloom_filters: bool | Mapping[str, Any] = False
    bloom_filter_bytes: int = 128 << 20
    bloom_filter_place: Literal["file", "row_group"] = "file"
    bound_bytes: int = 64
    float_order: Literal["type", "ieee754"] = "type"
    sorting: Sequence[str | SortKey] = ()
    checksums: bool = True
    threads: int = 0
    shredding: Mapping[str, Any] = field(default_factory=dict)
    geometry: Mapping[str, Any] = field(default_factory=dict)
    geoparquet: bool | str = False
    key_value_metadata: Mapping[str, str] = field(default_factory=dict)
    second_encodings: Mapping[str, EncodingName] = field(default_factory=dict)
    extensions: Mapping[str, extension_places.Payload] = field(default_factory=dict)
    encryption: FileEncryption | None = None
    arrow_schema: bool = True
    profile: Literal["spark"] | None = None

    def __post_init__(self) -> None:
        for name in ("row_group_rows", "row_group_bytes", "page_rows", "page_bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive number, not {value!r}")
        _check_flags(self, "checksums", "arrow_schema")
        for name, kinds in _KINDS.items():
            if not isinstance(getattr(self, name), kinds):
                advice = f": it maps columns to theirs, {name}={{'column': ...}}" if name in _BY_COLUMN else ""
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
        _check_pairs(self.key_value_metadata)
        if self.geoparquet and "geo" in self.key_value_metadata:
            raise ValueError("key_value_metadata has the key 'geo', which geoparquet is to write: give one of them")
        for encoding in [self.encodings] if isinstance(self.encodings, str) else self.encodings.values():
            if encoding not in ENCODINGS:
                raise ValueError(f"encodings must be one of {', '.join(ENCODINGS)}, not {encoding!r}")
            if self.profile == "spark" and encoding in ("alp", "byte_stream_split"):
                raise ValueError(f'Spark does not read encoding {encoding!r}; profile="spark" forbids it')
        if self.profile not in (None, "spark"):
            raise ValueError(f'profile must be None or "spark", not {self.profile!r}')
        if self.profile == "spark" and "brotli" in ([chosen] if isinstance(chosen, str) else chosen.values()):
            raise ValueError('compression "brotli" needs a codec that Spark does not bring; profile="spark" forbids it')
        if self.profile == "spark" and self.encryption is not None and self.page_version == 2:
            raise ValueError('Spark does not read encrypted pages of version 2; profile="spark" needs page_version=1')
        if self.compression_level is not None and isinstance(chosen, str):
            level = self.compression_level
            for one in level.values() if isinstance(level, Mapping) else [level]:
                _check_level(chosen, one, strict=True)

    def check_leaves(self, paths: Collection[str]) -> None:
        """Raise ``ValueError`` when a choice for one leaf names none of the dotted ``paths``."""
        for name in (
            "compression", "compression_level", "dictionary", "encodings", "second_encodings",
            "statistics", "page_index", "bloom_filters",
        ):
            chosen = getattr(self, name)
            for path in chosen if isinstance(chosen, Mapping) else ():
                if path not in paths:
                    raise ValueError(f"{name} names column {path!r}{not_a_leaf(path, paths)}")
        for place in self.extensions:
            if place not in paths and not extension_places.is_place(place):
                raise ValueError(
                    f"extensions names {place!r}, which is neither a place nor one of {listed(paths)}"
                    f"{did_you_mean(place, paths)}"
                )
        for key in self.sort_keys:
            if key.path not in paths:
                raise ValueError(f"sorting names column {key.path!r}{not_a_leaf(key.path, paths)}")
        if self.compression_level is not None:
            for path in paths:
                level = self.compression_level
                if not isinstance(level, Mapping):
                    _check_level(self.compression_of(path), level, strict=False)
                elif path in level:
                    _check_level(self.compression_of(path), level[path], strict=True)

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


def from_keywords(
    kind: type[Options], keywords: Mapping[str, Any], *others: str, base: Options | None = None
) -> Options:
    """Options from arguments by name, beside which a function takes ``others``; ``base`` holds what is not given.

    Raises ``TypeError`` for a name that is none, and what the options raise for their values.
    """
    known: list[str] = [one.name for one in fields(kind)]
    for name in keywords:
        if name not in known:
            meant = did_you_mean(name, [*known, *others])
            raise TypeError(f"there is no option {name!r}{meant or '; the options are ' + ', '.join(known)}")
    return kind(**keywords) if base is None else replace(base, **keywords)


def _check_flags(options: ReadOptions | WriteOptions, *flags: str) -> None:
    """Raise for flags that are no bools and for ``threads`` that are no number of them."""
    for name in flags:
        if not isinstance(getattr(options, name), bool):
            raise TypeError(f"{name} must be a bool, not {getattr(options, name)!r}")
    threads = options.threads
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 0:
        raise ValueError(f"threads must be 0, for one a processor, or a positive number, not {threads!r}")


def _check_pairs(pairs: Mapping[Any, Any]) -> None:
    """Raise for key-value metadata that is no text."""
    for text in (part for pair in pairs.items() for part in pair):
        if not isinstance(text, str):
            raise TypeError(f"key_value_metadata maps text to text, not {text!r}")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"key_value_metadata holds {text!r}, which is not Unicode text") from None


def _check_level(codec: str, level: Any, *, strict: bool) -> None:
    """Raise for a level that the codec does not have; ``strict``: for a codec without levels too."""
    if not isinstance(level, int) or isinstance(level, bool):
        raise TypeError(f"compression_level must be a number, not {level!r}")
    allowed = levels(codec)
    if allowed is None and strict:
        raise ValueError(f"compression {codec!r} has no levels, so compression_level must be None")
    if allowed is not None and not allowed[0] <= level <= allowed[1]:
        raise ValueError(f"compression {codec!r} has levels {allowed[0]} to {allowed[1]}, not {level}")
