"""Columns beside VARIANT and GEOMETRY keep their Arrow types, and pyarrow reads such files."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

import pqext
from pqext import variant
from pqext.geo import types as geo_types


def sample() -> bytes:
    schema = pa.schema(
        [
            variant.variant_field("v"), pa.field("g", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"}),
            pa.field("d", pa.duration("s")), pa.field("k", pa.dictionary(pa.int8(), pa.string())),
        ]
    )
    point = bytes.fromhex("0101000000000000000000f03f0000000000000040")
    columns = [
        variant.parse_json(pa.array(['{"a": 1}', "2"])), pa.array([point, None]), pa.array([1, None], pa.duration("s")),
        pa.array(["x", "y"]).dictionary_encode().cast(schema.field("k").type),
    ]
    out = io.BytesIO()
    pqext.write_table(pa.Table.from_arrays(columns, schema=schema), out, shredding={"v": "infer"})
    return out.getvalue()


def test_pyarrow_reads_the_types_of_columns_next_to_annotated_ones() -> None:
    data = sample()
    theirs, ours = pq.read_table(io.BytesIO(data)), pqext.read_table(data)
    assert theirs.schema.field("d") == ours.schema.field("d") == pa.field("d", pa.duration("s"))
    assert theirs.schema.field("k").type == ours.schema.field("k").type == pa.dictionary(pa.int8(), pa.string())
    assert theirs.schema.field("v").metadata is None
    assert geo_types.type_of(ours.schema.field("g")) is not None
    assert variant.get(ours["v"], "$.a", "int64").to_pylist() == [1, None]


def test_reshredded_file_preserves_arrow_types() -> None:
    out = io.BytesIO()
    variant.reshred_file(sample(), out, {"v": "STRUCT<a: STRING>"})
    found = pqext.read_table(out.getvalue())
    assert found.schema.field("d").type == pa.duration("s")
    assert found.schema.field("k").type == pa.dictionary(pa.int8(), pa.string())
    assert found["d"].to_pylist() == pqext.read_table(sample())["d"].to_pylist()
