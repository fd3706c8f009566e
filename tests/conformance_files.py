"""Every file of parquet-testing that we know of, and what it exercises. A copy need not have them all."""

from __future__ import annotations

READABLE: dict[str, str] = {
    "data/alltypes_dictionary.parquet": "dictionaries, INT96",
    "data/alltypes_plain.parquet": "PLAIN, INT96",
    "data/alltypes_plain.snappy.parquet": "SNAPPY, INT96",
    "data/alltypes_tiny_pages.parquet": "many small pages, dictionaries, page index",
    "data/alltypes_tiny_pages_plain.parquet": "many small pages, PLAIN, page index",
    "data/binary.parquet": "BYTE_ARRAY without annotation",
    "data/binary_truncated_min_max.parquet": "truncated bounds and their exactness",
    "data/byte_array_decimal.parquet": "DECIMAL on BYTE_ARRAY",
    "data/byte_stream_split.zstd.parquet": "BYTE_STREAM_SPLIT of FLOAT and DOUBLE, ZSTD",
    "data/byte_stream_split_extended.gzip.parquet": "BYTE_STREAM_SPLIT of all five types, GZIP",
    "data/column_chunk_key_value_metadata.parquet": "key-value metadata of a column chunk",
    "data/concatenated_gzip_members.parquet": "two gzip members in a page",
    "data/data_index_bloom_encoding_stats.parquet": "Bloom filter, page index, encoding statistics",
    "data/data_index_bloom_encoding_with_length.parquet": "Bloom filter with its length",
    "data/datapage_v1-corrupt-checksum.parquet": "page checksums that do not match",
    "data/datapage_v1-snappy-compressed-checksum.parquet": "page checksums, SNAPPY",
    "data/datapage_v1-uncompressed-checksum.parquet": "page checksums",
    "data/datapage_v2.snappy.parquet": "data pages of version 2",
    "data/datapage_v2_empty_datapage.snappy.parquet": "a page of version 2 with no bytes to decompress",
    "data/delta_binary_packed.parquet": "DELTA_BINARY_PACKED of all bit widths",
    "data/delta_byte_array.parquet": "DELTA_BYTE_ARRAY",
    "data/delta_encoding_optional_column.parquet": "delta encodings, optional columns",
    "data/delta_encoding_required_column.parquet": "delta encodings, required columns",
    "data/delta_length_byte_array.parquet": "DELTA_LENGTH_BYTE_ARRAY",
    "data/dict-page-offset-zero.parquet": "a dictionary page offset of 0 that stands for none",
    "data/fixed_length_byte_array.parquet": "FIXED_LEN_BYTE_ARRAY, page index, null pages",
    "data/fixed_length_decimal.parquet": "DECIMAL on FIXED_LEN_BYTE_ARRAY",
    "data/fixed_length_decimal_legacy.parquet": "DECIMAL on FIXED_LEN_BYTE_ARRAY, old writer",
    "data/float16_nonzeros_and_nans.parquet": "FLOAT16",
    "data/float16_zeros_and_nans.parquet": "FLOAT16",
    "data/floating_orders_nan_count.parquet": "orders of floating-point statistics, NaN counts",
    "data/hadoop_lz4_compressed.parquet": "LZ4 in Hadoop's framing",
    "data/hadoop_lz4_compressed_larger.parquet": "LZ4 in Hadoop's framing, several frames",
    "data/incorrect_map_schema.parquet": "a map with optional keys",
    "data/int32_decimal.parquet": "DECIMAL on INT32",
    "data/int32_with_null_pages.parquet": "null pages in the page index",
    "data/int64_decimal.parquet": "DECIMAL on INT64",
    "data/int96_from_spark.parquet": "INT96 beyond 64-bit nanoseconds",
    "data/large_string_map.brotli.parquet": "a column chunk of more than 2 GB, BROTLI",
    "data/list_columns.parquet": "lists",
    "data/lz4_raw_compressed.parquet": "LZ4_RAW",
    "data/lz4_raw_compressed_larger.parquet": "LZ4_RAW",
    "data/map_no_value.parquet": "a map without a value field",
    "data/nan_in_stats.parquet": "NaN as a bound",
    "data/nation.dict-malformed.parquet": "a dictionary that its chunk's metadata does not mention",
    "data/nested_lists.snappy.parquet": "lists of lists",
    "data/nested_maps.snappy.parquet": "maps of maps",
    "data/nested_structs.rust.parquet": "structs of many fields",
    "data/non_hadoop_lz4_compressed.parquet": "LZ4 without Hadoop's framing",
    "data/nonnullable.impala.parquet": "required nested columns",
    "data/null_list.parquet": "an empty list",
    "data/nullable.impala.parquet": "nested columns with nulls at all depths",
    "data/nulls.snappy.parquet": "a struct of nulls",
    "data/old_list_structure.parquet": "a two-level list of lists",
    "data/overflow_i16_page_cnt.parquet": "more pages than 16 bits count",
    "data/page_v2_empty_compressed.parquet": "a compressed page of version 2 without values",
    "data/plain-dict-uncompressed-checksum.parquet": "PLAIN_DICTIONARY, page checksums",
    "data/repeated_no_annotation.parquet": "a repeated group without annotation",
    "data/repeated_primitive_no_list.parquet": "repeated leaves without annotation",
    "data/rle-dict-snappy-checksum.parquet": "RLE_DICTIONARY, page checksums",
    "data/rle-dict-uncompressed-corrupt-checksum.parquet": "dictionary page checksums that do not match",
    "data/rle_boolean_encoding.parquet": "RLE of booleans",
    "data/single_nan.parquet": "NaN without bounds",
    "data/sort_columns.parquet": "sorting columns",
    "data/unknown-logical-type.parquet": "a logical type that is not known",
    "data/encrypt_columns_and_footer.parquet.encrypted": "AES_GCM_V1, column keys, encrypted footer",
    "data/encrypt_columns_and_footer_aad.parquet.encrypted": "AAD prefix in the file",
    "data/encrypt_columns_and_footer_bloom_filter.parquet.encrypted": "encrypted Bloom filters",
    "data/encrypt_columns_and_footer_ctr.parquet.encrypted": "AES_GCM_CTR_V1",
    "data/encrypt_columns_and_footer_disable_aad_storage.parquet.encrypted": "AAD prefix supplied",
    "data/encrypt_columns_plaintext_footer.parquet.encrypted": "signed plaintext footer",
    "data/external_key_material_java.parquet.encrypted": "key tools, external key material",
    "data/uniform_encryption.parquet.encrypted": "one key for all",
    "data/geospatial/crs-arbitrary-value.parquet": "GEOMETRY, any text as its CRS",
    "data/geospatial/crs-default.parquet": "GEOMETRY, default CRS",
    "data/geospatial/crs-geography.parquet": "GEOGRAPHY, default CRS",
    "data/geospatial/crs-projjson.parquet": "GEOMETRY, PROJJSON in the file's metadata",
    "data/geospatial/crs-srid.parquet": "GEOMETRY, SRID",
    "data/geospatial/geography-lines.parquet": "GEOGRAPHY, lines",
    "data/geospatial/geography-points.parquet": "GEOGRAPHY, points, wraparound boxes",
    "data/geospatial/geography-polygons.parquet": "GEOGRAPHY, polygons",
    "data/geospatial/geospatial-with-nan.parquet": "GEOMETRY, NaN coordinates",
    "data/geospatial/geospatial.parquet": "GEOMETRY, all kinds and dimensions",
}
"""What each file exercises; those of ``shredded_variant`` are described by its cases.json."""

SUFFIXES = (".parquet", ".parquet.encrypted")
"""How the names of the files end; others are descriptions, expectations, programs, key material, bare Bloom filters."""

DIFFERENCES: dict[tuple[str, str], str] = {
    ("data/int96_from_spark.parquet", "pyarrow"): "wraps timestamps that 64-bit nanoseconds cannot hold",
    ("data/int96_from_spark.parquet", "duckdb"): "wraps timestamps that 64-bit nanoseconds cannot hold",
    ("data/int96_from_spark.parquet", "polars"): "wraps timestamps that 64-bit nanoseconds cannot hold",
    ("data/repeated_no_annotation.parquet", "polars"): "believes the footer's 0 rows, where the row group has 6",
}
"""(file, judge) -> why a judge that reads the file gives other values than we do."""

CORRUPT_CHECKSUMS = {
    "data/datapage_v1-corrupt-checksum.parquet",
    "data/rle-dict-uncompressed-corrupt-checksum.parquet",
}
"""Refused by default; the values are judged with checksums switched off, as the other readers have them."""

LARGE = {"data/large_string_map.brotli.parquet"}
"""Needs several gigabytes of memory; read only where the environment variable PQEXT_LARGE_FILES is set."""

CONTRADICTORY_CASES = {43, 84, 125}
"""Shredded variants that contradict themselves; published as invalid, read with the shredded columns in the right."""
