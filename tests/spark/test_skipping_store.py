"""Files of a data-skipping store in Spark's own hands: its Bloom filters, its deserialisation, its reader."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pqext.skipping.format.metadata import IndexColumn, StoreMetadata
from pqext.skipping.format.parts import write_part
from pqext.skipping.format.spark_bloom import build_bloom, may_contain_any, unwrap_filter, wrap_filter

SKETCH = "org.apache.spark.util.sketch."
CLASSES = """
package io.xskipper.index.metadata;
public abstract class MetadataType implements java.io.Serializable {
    static final long serialVersionUID = 0x603f5d1b7b764446L;
}
class BloomFilterMetaData extends MetadataType {
    static final long serialVersionUID = 1L;
    org.apache.spark.util.sketch.BloomFilter bloomFilter;
}
class Reader {
    public static Object read(byte[] cell) throws Exception {
        Object read = new java.io.ObjectInputStream(new java.io.ByteArrayInputStream(cell)).readObject();
        return ((BloomFilterMetaData) read).bloomFilter;
    }
}
"""
"""The shape of the original's classes around a filter, as their serialised form describes them."""


def stored(filter: Any, jvm: Any) -> bytes:
    """A filter of Spark's as it writes it."""
    out = jvm.java.io.ByteArrayOutputStream()
    filter.writeTo(out)
    return bytes(out.toByteArray())


def random_values() -> tuple[list[Any], list[Any]]:
    """Values to insert, and others."""
    chance = random.Random(4)
    longs = [chance.randrange(-(1 << 63), 1 << 63) for _ in range(60)] + [0, -1, 1, (1 << 63) - 1, -(1 << 63)]
    letters = "aé漢😀 \x7f"
    texts = ["".join(chance.choices(letters, k=size)) for size in range(40)]
    return longs[:40] + texts[:20], longs[40:] + texts[20:]


def put(filter: Any, value: Any) -> None:
    filter.putLong(value) if isinstance(value, int) else filter.putString(value)


def has(filter: Any, value: Any) -> bool:
    return bool(filter.mightContainLong(value) if isinstance(value, int) else filter.mightContainString(value))


@pytest.mark.spec("store.bloom.v1", "store.bloom.v2", "store.bloom.hash", "store.bloom.payload")
@pytest.mark.parametrize("seed", [None, 0, 7, -3])
def test_spark_filters_match_spark(spark: Any, seed: int | None) -> None:
    jvm = spark._jvm
    sketch, held = jvm.org.apache.spark.util.sketch, random_values()[0]
    made = sketch.BloomFilter.create(200, 0.05)
    if seed is not None:
        versions = jvm.java.lang.Class.forName(SKETCH + "BloomFilter$Version").getEnumConstants()
        kind = next((one for one in versions if one.toString() == "V2"), None)
        if kind is None:
            pytest.skip(f"Spark {spark.version} has no filters with seeds")
        made = sketch.BloomFilter.create(kind, 200, 1500, seed)
    for value in held:
        put(made, value)
    cell = pa.array([wrap_filter(stored(made, jvm))])
    for value in [*held, *random_values()[1]]:
        asked = value.encode() if isinstance(value, str) else value
        assert may_contain_any(cell, [asked]).tolist() == [has(made, value)]


@pytest.mark.spec("store.bloom.v1", "store.bloom.hash", "store.bloom.payload", "store.bloom.size")
def test_spark_reads_our_filters_like_its_own(spark: Any) -> None:
    jvm, held = spark._jvm, random_values()[0]
    sketch = jvm.org.apache.spark.util.sketch
    values = pa.array([one for one in held if isinstance(one, int)]), pa.array([x for x in held if isinstance(x, str)])
    for expected, fpp in ((200, 0.05), (100_000, 0.01), (7, 0.5), (3, 0.0001), (1_000_000, 0.001)):
        payload = unwrap_filter(build_bloom(values[0], expected, fpp))
        assert payload is not None
        read = sketch.BloomFilter.readFrom(jvm.java.io.ByteArrayInputStream(bytearray(payload)))
        assert stored(read, jvm) == payload
        own = stored(sketch.BloomFilter.create(expected, fpp), jvm)
        words_at = 12 if own[3] == 2 else 8
        assert own[4:8] + own[words_at : words_at + 4] == payload[4:12]
    read = sketch.BloomFilter.readFrom(
        jvm.java.io.ByteArrayInputStream(bytearray(unwrap_filter(build_bloom(values[1], 200, 0.05)) or b""))
    )
    assert all(has(read, one) for one in values[1].to_pylist())
    assert sum(has(read, one) for one in random_values()[1]) < 10


@pytest.mark.spec("store.cell.java", "store.bloomfilter")
def test_java_deserialises_the_written_cells(spark: Any) -> None:
    """Spark compiles classes of the original's shape. The number of its own class is that of the Spark that runs."""
    jvm = spark._jvm
    loader = jvm.java.lang.Class.forName(SKETCH + "BloomFilter").getClassLoader()
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.cook(CLASSES)
    reader = compiler.getClassLoader().loadClass("io.xskipper.index.metadata.Reader")
    values = pa.array(["Haifa", "é", None, "x" * 100])
    cell = bytearray(build_bloom(values, 1000, 0.01))
    at = cell.index(b"BloomFilterImpl") + len(b"BloomFilterImpl")
    local = jvm.java.io.ObjectStreamClass.lookup(jvm.java.lang.Class.forName(SKETCH + "BloomFilterImpl"))
    assert cell[at : at + 8] == struct.pack(">Q", 0xA6DEA6A48CBA1FF6)  # that of Spark 3.5, on which the original runs
    cell[at : at + 8] = struct.pack(">q", local.getSerialVersionUID())
    gateway = spark.sparkContext._gateway
    kinds, arguments = gateway.new_array(jvm.java.lang.Class, 1), gateway.new_array(jvm.java.lang.Object, 1)
    kinds[0], arguments[0] = jvm.java.lang.Class.forName("[B"), cell
    method = reader.getDeclaredMethod("read", kinds)
    method.setAccessible(True)
    read = method.invoke(None, arguments)
    assert stored(read, jvm) == unwrap_filter(bytes(cell))
    assert [read.mightContainString(one) for one in ("Haifa", "é", "x" * 100, "y")] == [True, True, True, False]


@pytest.mark.spec("store.row", "store.index.nullable")
def test_spark_reads_a_written_part(spark: Any, tmp_path: Path) -> None:
    indexes = (IndexColumn.create("minmax", ["t"]), IndexColumn.create("valuelist", ["c"]))
    table = pa.table({
        "obj_name": ["/a#1", "/b#2"], "virtual_p": pa.array([1, None], pa.int32()),
        "t_minmax_1": pa.array([{"min": 1.5, "max": 2.5}, None], pa.struct({"min": pa.float64(), "max": pa.float64()})),
        "c_valuelist_1": pa.array([["x", "y"], []], pa.list_(pa.string())),
    })  # fmt: skip
    write_part(tmp_path / "store/part.parquet", table, StoreMetadata(4, "/data", None, ("p",), indexes))
    read = spark.read.parquet(str(tmp_path / "store"))
    assert [row.asDict(recursive=True) for row in read.orderBy("obj_name").collect()] == table.to_pylist()
    assert read.schema["obj_name"].metadata == {"tableIdentifier": "/data", "version": 4}
    assert read.schema["t_minmax_1"].metadata == {"index": {"cols": ["t"], "name": "minmax"}}
    assert all(one.nullable for one in read.schema)
