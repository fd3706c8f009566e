"""Seeds for the data-skipping target."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from pqext.skipping.format import metadata, spark_bloom, spark_schema
from pqext.skipping.format.metadata import IndexColumn, StoreEncryption, StoreMetadata


def stores() -> Iterator[tuple[str, bytes]]:
    """Yield Bloom filters, schemas of each version and object names, after the byte that selects the format."""
    values = pa.array(["a", "b", "é"])
    for count in (3, 100, 2000):
        cell = spark_bloom.build_bloom(values, count, 0.1)
        yield f"filter of {count}", b"\0" + cell
    cell = spark_bloom.build_bloom(values, 50, 0.1)
    payload = spark_bloom.unwrap_filter(cell) or b""
    for seed in (0, 9):
        second = b"\0\0\0\2" + payload[4:8] + seed.to_bytes(4, "big") + payload[8:]
        yield f"filter of version 2 with seed {seed}", b"\0" + spark_bloom.wrap_filter(second)
    indexes = (
        IndexColumn("a_minmax_1", "minmax", ("a",), {}, "k1"),
        IndexColumn("b_bloomfilter_1", "bloomfilter", ("b",), {"io.xskipper.index.bloom.fpp": "0.01"}, "k2"),
        IndexColumn("c_valuelist_1", "valuelist", ("c", "d")),
    )
    schema = pa.schema({name: pa.binary() for name in (*(index.name for index in indexes), "virtual_p")})
    for version in (1, 2, 3, 4):
        for keys in (None, StoreEncryption("k1:a_minmax_1,obj_name;k2:b_bloomfilter_1", "k1", version == 3)):
            columns = tuple(indexes if keys else (indexes[2],))
            store_metadata = StoreMetadata(version, "/data/t", keys, ("p",) if version == 4 else (), columns)
            text = spark_schema.write(metadata.to_spark(store_metadata, schema))
            yield f"schema of version {version} {'with keys' if keys else 'without'}", b"\1" + text.encode()
    yield "names", b"\2/data/a#b.parquet#1700000000000\n/c#-5\n#0"
    yield "wrong names", b"\2/data/a\n#1"
