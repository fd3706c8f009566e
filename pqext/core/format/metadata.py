"""Structures of the Parquet metadata, with the names and field numbers of the format.

Spec: "Metadata" and the Thrift definition that it refers to, including later additions (2.13.0 and later).
"""

from __future__ import annotations

from collections.abc import Sequence

from pqext.core.format.enums import BoundaryOrder as BoundaryOrder
from pqext.core.format.enums import CompressionCodec as CompressionCodec
from pqext.core.format.enums import ConvertedType as ConvertedType
from pqext.core.format.enums import EdgeInterpolationAlgorithm as EdgeInterpolationAlgorithm
from pqext.core.format.enums import Encoding as Encoding
from pqext.core.format.enums import FieldRepetitionType as FieldRepetitionType
from pqext.core.format.enums import PageType as PageType
from pqext.core.format.enums import Type as Type
from pqext.core.format.thrift import Struct, Union, field


class StringType(Struct): ...


class MapType(Struct): ...


class ListType(Struct): ...


class EnumType(Struct): ...


class DateType(Struct): ...


class NullType(Struct): ...


class JsonType(Struct): ...


class BsonType(Struct): ...


class UUIDType(Struct): ...


class Float16Type(Struct): ...


class FileType(Struct): ...


class MilliSeconds(Struct): ...


class MicroSeconds(Struct): ...


class NanoSeconds(Struct): ...


class TimeUnit(Union):
    """Unit of TIME and TIMESTAMP."""

    MILLIS: MilliSeconds | None = field(1, MilliSeconds, default=None)
    MICROS: MicroSeconds | None = field(2, MicroSeconds, default=None)
    NANOS: NanoSeconds | None = field(3, NanoSeconds, default=None)


class DecimalType(Struct):
    """Decimal type. A value is an unscaled integer times 10 to the power of ``-scale``."""

    scale: int = field(1, "i32")
    precision: int = field(2, "i32")


class TimeType(Struct):
    isAdjustedToUTC: bool = field(1, "bool")
    unit: TimeUnit = field(2, TimeUnit)


class TimestampType(Struct):
    isAdjustedToUTC: bool = field(1, "bool")
    unit: TimeUnit = field(2, TimeUnit)


class IntType(Struct):
    """Integer type; ``bitWidth`` is 8, 16, 32 or 64."""

    bitWidth: int = field(1, "i8")
    isSigned: bool = field(2, "bool")


class VariantType(Struct):
    """Annotation of a group with ``metadata``, ``value`` and optionally ``typed_value``."""

    specification_version: int | None = field(1, "i8", default=None)


class GeometryType(Struct):
    """WKB with straight edges. The CRS is OGC:CRS84 if ``crs`` is not set."""

    crs: str | None = field(1, "string", default=None)


class GeographyType(Struct):
    """WKB with edges on the ellipsoid. The defaults are OGC:CRS84 and SPHERICAL."""

    crs: str | None = field(1, "string", default=None)
    algorithm: EdgeInterpolationAlgorithm | int | None = field(2, EdgeInterpolationAlgorithm, default=None)


class LogicalType(Union):
    """Annotation of a schema element that defines how its values are interpreted."""

    STRING: StringType | None = field(1, StringType, default=None)
    MAP: MapType | None = field(2, MapType, default=None)
    LIST: ListType | None = field(3, ListType, default=None)
    ENUM: EnumType | None = field(4, EnumType, default=None)
    DECIMAL: DecimalType | None = field(5, DecimalType, default=None)
    DATE: DateType | None = field(6, DateType, default=None)
    TIME: TimeType | None = field(7, TimeType, default=None)
    TIMESTAMP: TimestampType | None = field(8, TimestampType, default=None)
    INTEGER: IntType | None = field(10, IntType, default=None)
    UNKNOWN: NullType | None = field(11, NullType, default=None)
    JSON: JsonType | None = field(12, JsonType, default=None)
    BSON: BsonType | None = field(13, BsonType, default=None)
    UUID: UUIDType | None = field(14, UUIDType, default=None)
    FLOAT16: Float16Type | None = field(15, Float16Type, default=None)
    VARIANT: VariantType | None = field(16, VariantType, default=None)
    GEOMETRY: GeometryType | None = field(17, GeometryType, default=None)
    GEOGRAPHY: GeographyType | None = field(18, GeographyType, default=None)
    FILE: FileType | None = field(19, FileType, default=None)


class SchemaElement(Struct):
    """Node of the schema tree. Nodes are stored depth first, each group before its children."""

    type: Type | int | None = field(1, Type, default=None)
    type_length: int | None = field(2, "i32", default=None)
    repetition_type: FieldRepetitionType | int | None = field(3, FieldRepetitionType, default=None)
    name: str = field(4, "string")
    num_children: int | None = field(5, "i32", default=None)
    converted_type: ConvertedType | int | None = field(6, ConvertedType, default=None)
    scale: int | None = field(7, "i32", default=None)
    precision: int | None = field(8, "i32", default=None)
    field_id: int | None = field(9, "i32", default=None)
    logicalType: LogicalType | None = field(10, LogicalType, default=None)


class Statistics(Struct):
    """Statistics of a chunk or page.

    Values are PLAIN encoded, byte arrays without their length; ``min`` and ``max`` are deprecated.
    """

    max: bytes | None = field(1, "binary", default=None)
    min: bytes | None = field(2, "binary", default=None)
    null_count: int | None = field(3, "i64", default=None)
    distinct_count: int | None = field(4, "i64", default=None)
    max_value: bytes | None = field(5, "binary", default=None)
    min_value: bytes | None = field(6, "binary", default=None)
    is_max_value_exact: bool | None = field(7, "bool", default=None)
    is_min_value_exact: bool | None = field(8, "bool", default=None)
    nan_count: int | None = field(9, "i64", default=None)


class SizeStatistics(Struct):
    """Size statistics. A histogram has one count for each level from 0 to the maximum."""

    unencoded_byte_array_data_bytes: int | None = field(1, "i64", default=None)
    repetition_level_histogram: Sequence[int] | None = field(2, ["i64"], default=None)
    definition_level_histogram: Sequence[int] | None = field(3, ["i64"], default=None)


class BoundingBox(Struct):
    """Bounding box. It crosses the antimeridian if ``xmin`` is greater than ``xmax``."""

    xmin: float = field(1, "double")
    xmax: float = field(2, "double")
    ymin: float = field(3, "double")
    ymax: float = field(4, "double")
    zmin: float | None = field(5, "double", default=None)
    zmax: float | None = field(6, "double", default=None)
    mmin: float | None = field(7, "double", default=None)
    mmax: float | None = field(8, "double", default=None)


class GeospatialStatistics(Struct):
    """Extent of a chunk's geometries, and the WKB type codes that occur."""

    bbox: BoundingBox | None = field(1, BoundingBox, default=None)
    geospatial_types: Sequence[int] | None = field(2, ["i32"], default=None)


class AesGcmV1(Struct):
    aad_prefix: bytes | None = field(1, "binary", default=None)
    aad_file_unique: bytes | None = field(2, "binary", default=None)
    supply_aad_prefix: bool | None = field(3, "bool", default=None)


class AesGcmCtrV1(Struct):
    aad_prefix: bytes | None = field(1, "binary", default=None)
    aad_file_unique: bytes | None = field(2, "binary", default=None)
    supply_aad_prefix: bool | None = field(3, "bool", default=None)


class EncryptionAlgorithm(Union):
    """Encryption algorithm of the file's modules."""

    AES_GCM_V1: AesGcmV1 | None = field(1, AesGcmV1, default=None)
    AES_GCM_CTR_V1: AesGcmCtrV1 | None = field(2, AesGcmCtrV1, default=None)


class EncryptionWithFooterKey(Struct): ...


class EncryptionWithColumnKey(Struct):
    path_in_schema: Sequence[str] = field(1, ["string"])
    key_metadata: bytes | None = field(2, "binary", default=None)


class ColumnCryptoMetaData(Union):
    """Key that encrypts a column."""

    ENCRYPTION_WITH_FOOTER_KEY: EncryptionWithFooterKey | None = field(1, EncryptionWithFooterKey, default=None)
    ENCRYPTION_WITH_COLUMN_KEY: EncryptionWithColumnKey | None = field(2, EncryptionWithColumnKey, default=None)


class FileCryptoMetaData(Struct):
    """Structure that precedes the footer in files with an encrypted footer."""

    encryption_algorithm: EncryptionAlgorithm = field(1, EncryptionAlgorithm)
    key_metadata: bytes | None = field(2, "binary", default=None)


class KeyValue(Struct):
    """Key and value of user-defined metadata."""

    key: str = field(1, "string")
    value: str | None = field(2, "string", default=None)


class SortingColumn(Struct):
    """Column that rows are sorted by. ``column_idx`` is the index of a leaf in the schema."""

    column_idx: int = field(1, "i32")
    descending: bool = field(2, "bool")
    nulls_first: bool = field(3, "bool")


class PageEncodingStats(Struct):
    """Number of pages by page type and encoding."""

    page_type: PageType | int = field(1, PageType)
    encoding: Encoding | int = field(2, Encoding)
    count: int = field(3, "i32")


class ColumnMetaData(Struct):
    """Metadata of a column chunk, independent of its row group. Offsets are relative to the start of the file."""

    type: Type | int = field(1, Type)
    encodings: Sequence[Encoding | int] = field(2, [Encoding])
    path_in_schema: Sequence[str] = field(3, ["string"])
    codec: CompressionCodec | int = field(4, CompressionCodec)
    num_values: int = field(5, "i64")
    total_uncompressed_size: int = field(6, "i64")
    total_compressed_size: int = field(7, "i64")
    key_value_metadata: Sequence[KeyValue] | None = field(8, [KeyValue], default=None)
    data_page_offset: int = field(9, "i64")
    index_page_offset: int | None = field(10, "i64", default=None)
    dictionary_page_offset: int | None = field(11, "i64", default=None)
    statistics: Statistics | None = field(12, Statistics, default=None)
    encoding_stats: Sequence[PageEncodingStats] | None = field(13, [PageEncodingStats], default=None)
    bloom_filter_offset: int | None = field(14, "i64", default=None)
    bloom_filter_length: int | None = field(15, "i32", default=None)
    size_statistics: SizeStatistics | None = field(16, SizeStatistics, default=None)
    geospatial_statistics: GeospatialStatistics | None = field(17, GeospatialStatistics, default=None)


class ColumnChunk(Struct):
    """Column chunk; ``file_path`` is set only in summary files."""

    file_path: str | None = field(1, "string", default=None)
    file_offset: int = field(2, "i64")
    meta_data: ColumnMetaData | None = field(3, ColumnMetaData, default=None)
    offset_index_offset: int | None = field(4, "i64", default=None)
    offset_index_length: int | None = field(5, "i32", default=None)
    column_index_offset: int | None = field(6, "i64", default=None)
    column_index_length: int | None = field(7, "i32", default=None)
    crypto_metadata: ColumnCryptoMetaData | None = field(8, ColumnCryptoMetaData, default=None)
    encrypted_column_metadata: bytes | None = field(9, "binary", default=None)


class RowGroup(Struct):
    """Row group. Its chunks are in the order of the schema's leaves; ``columns`` is lazy after reading."""

    columns: Sequence[ColumnChunk] = field(1, [ColumnChunk], lazy=True)
    total_byte_size: int = field(2, "i64")
    num_rows: int = field(3, "i64")
    sorting_columns: Sequence[SortingColumn] | None = field(4, [SortingColumn], default=None)
    file_offset: int | None = field(5, "i64", default=None)
    total_compressed_size: int | None = field(6, "i64", default=None)
    ordinal: int | None = field(7, "i16", default=None)


class TypeDefinedOrder(Struct): ...


class IEEE754TotalOrder(Struct): ...


class Int96TimestampOrder(Struct): ...


class ColumnOrder(Union):
    """Order that defines a column's minima and maxima."""

    TYPE_ORDER: TypeDefinedOrder | None = field(1, TypeDefinedOrder, default=None)
    IEEE_754_TOTAL_ORDER: IEEE754TotalOrder | None = field(2, IEEE754TotalOrder, default=None)
    INT96_TIMESTAMP_ORDER: Int96TimestampOrder | None = field(3, Int96TimestampOrder, default=None)


class FileMetaData(Struct):
    """Footer; ``schema``, ``row_groups`` and ``column_orders`` are lazy after reading."""

    version: int = field(1, "i32")
    schema: Sequence[SchemaElement] = field(2, [SchemaElement], lazy=True)
    num_rows: int = field(3, "i64")
    row_groups: Sequence[RowGroup] = field(4, [RowGroup], lazy=True)
    key_value_metadata: Sequence[KeyValue] | None = field(5, [KeyValue], default=None)
    created_by: str | None = field(6, "string", default=None)
    column_orders: Sequence[ColumnOrder] | None = field(7, [ColumnOrder], default=None, lazy=True)
    encryption_algorithm: EncryptionAlgorithm | None = field(8, EncryptionAlgorithm, default=None)
    footer_signing_key_metadata: bytes | None = field(9, "binary", default=None)


class DataPageHeader(Struct):
    """Header of a V1 data page. Levels and values are compressed together."""

    num_values: int = field(1, "i32")
    encoding: Encoding | int = field(2, Encoding)
    definition_level_encoding: Encoding | int = field(3, Encoding)
    repetition_level_encoding: Encoding | int = field(4, Encoding)
    statistics: Statistics | None = field(5, Statistics, default=None)


class IndexPageHeader(Struct): ...


class DictionaryPageHeader(Struct):
    num_values: int = field(1, "i32")
    encoding: Encoding | int = field(2, Encoding)
    is_sorted: bool | None = field(3, "bool", default=None)


class DataPageHeaderV2(Struct):
    """Header of a V2 data page. Levels are not compressed.

    Uncompressed levels precede the values; ``is_compressed`` is true by default.
    """

    num_values: int = field(1, "i32")
    num_nulls: int = field(2, "i32")
    num_rows: int = field(3, "i32")
    encoding: Encoding | int = field(4, Encoding)
    definition_levels_byte_length: int = field(5, "i32")
    repetition_levels_byte_length: int = field(6, "i32")
    is_compressed: bool | None = field(7, "bool", default=None)
    statistics: Statistics | None = field(8, Statistics, default=None)


class PageHeader(Struct):
    """Header that precedes every page; ``crc`` is the checksum of the page as stored."""

    type: PageType | int = field(1, PageType)
    uncompressed_page_size: int = field(2, "i32")
    compressed_page_size: int = field(3, "i32")
    crc: int | None = field(4, "i32", default=None)
    data_page_header: DataPageHeader | None = field(5, DataPageHeader, default=None)
    index_page_header: IndexPageHeader | None = field(6, IndexPageHeader, default=None)
    dictionary_page_header: DictionaryPageHeader | None = field(7, DictionaryPageHeader, default=None)
    data_page_header_v2: DataPageHeaderV2 | None = field(8, DataPageHeaderV2, default=None)


class PageLocation(Struct):
    """Location of a page. ``offset`` is the offset of its header, and ``compressed_page_size`` includes the header."""

    offset: int = field(1, "i64")
    compressed_page_size: int = field(2, "i32")
    first_row_index: int = field(3, "i64")


class OffsetIndex(Struct):
    """Locations and first rows of the pages of a chunk."""

    page_locations: Sequence[PageLocation] = field(1, [PageLocation])
    unencoded_byte_array_data_bytes: Sequence[int] | None = field(2, ["i64"], default=None)


class ColumnIndex(Struct):
    """Bounds of the pages of a chunk. The bounds of null pages are empty."""


    null_pages: Sequence[bool] = field(1, ["bool"])
    min_values: Sequence[bytes] = field(2, ["binary"])
    max_values: Sequence[bytes] = field(3, ["binary"])
    boundary_order: BoundaryOrder | int = field(4, BoundaryOrder)
    null_counts: Sequence[int] | None = field(5, ["i64"], default=None)
    repetition_level_histograms: Sequence[int] | None = field(6, ["i64"], default=None)
    definition_level_histograms: Sequence[int] | None = field(7, ["i64"], default=None)
    nan_counts: Sequence[int] | None = field(8, ["i64"], default=None)


class SplitBlockAlgorithm(Struct): ...


class BloomFilterAlgorithm(Union):
    BLOCK: SplitBlockAlgorithm | None = field(1, SplitBlockAlgorithm, default=None)


class XxHash(Struct): ...


class BloomFilterHash(Union):
    XXHASH: XxHash | None = field(1, XxHash, default=None)


class Uncompressed(Struct): ...


class BloomFilterCompression(Union):
    UNCOMPRESSED: Uncompressed | None = field(1, Uncompressed, default=None)


class BloomFilterHeader(Struct):
    """Header that precedes the ``numBytes`` bytes of a Bloom filter."""

    numBytes: int = field(1, "i32")
    algorithm: BloomFilterAlgorithm = field(2, BloomFilterAlgorithm)
    hash: BloomFilterHash = field(3, BloomFilterHash)
    compression: BloomFilterCompression = field(4, BloomFilterCompression)
