"""VARIANT columns of other writers: optional metadata, and a sorted flag on dictionaries that are not sorted.

DuckDB reads both, and so does pqext unless reading is strict.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import col, variant
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import FileMetaData, LogicalType, VariantType

BYTES = pa.binary()
OPTIONAL = pa.struct([pa.field("metadata", BYTES), pa.field("value", BYTES)])
REQUIRED = pa.struct([pa.field("metadata", BYTES, False), pa.field("value", BYTES, False)])
UNSORTED = b"\x11\x02\x00\x01\x02ba"
"""A dictionary of the names b and a, flagged as sorted."""
A_AND_B = b"\x02\x02\x01\x00\x00\x02\x04\x0c\x01\x0c\x02"
"""An object whose field a is 1 and whose field b is 2, by that dictionary."""
TEXTS = ['{"a":1,"b":"x"}', "[1,2]", None, "5", '{"a":1}', "null"]


def stored(column: pa.Array, path: Path) -> Path:
    out = io.BytesIO()
    pq.write_table(pa.table({"id": range(len(column)), "v": column}), out)

    def annotate(metadata: FileMetaData) -> None:
        metadata.schema[2].logicalType = LogicalType(VARIANT=VariantType(specification_version=1))

    target = io.BytesIO()
    rewrite_footer(io.BytesIO(out.getvalue()), annotate, target)
    path.write_bytes(target.getvalue())
    return path


def by_duckdb(path: Path, column: str = "v::JSON") -> list[object]:
    rows = duckdb.sql(f"select {column} from '{path}' order by id").fetchall()
    return [None if value is None else json.loads(value) if isinstance(value, str) else value for (value,) in rows]


def as_json(table: pa.Table) -> list[object]:
    return [None if text is None else json.loads(text) for text in variant.to_json(table["v"]).to_pylist()]


@pytest.fixture
def optional(tmp_path: Path) -> Path:
    values = variant.parse_json(pa.array(TEXTS)).to_pylist()
    return stored(pa.array(values, OPTIONAL), tmp_path / "optional.parquet")


@pytest.fixture
def unsorted(tmp_path: Path) -> Path:
    rows = [{"metadata": UNSORTED, "value": A_AND_B}] * 3
    return stored(pa.array(rows, REQUIRED), tmp_path / "unsorted.parquet")


@pytest.mark.spec("variant.group.metadata")
def test_variants_with_optional_metadata_are_read(optional: Path) -> None:
    assert as_json(pqext.read_table(optional)) == by_duckdb(optional)
    ones = pqext.read_table(optional, filter=col("v").variant("$.a", "bigint") == 1)["id"].to_pylist()
    assert ones == [row for row, in duckdb.sql(f"select id from '{optional}' where v.a::int = 1").fetchall()]
    assert pqext.read_table(optional, filter=col("v").is_null())["id"].to_pylist() == [2]
    assert pqext.scan(optional, filter=col("v").is_not_null()).count() == 5


@pytest.mark.spec("variant.group.metadata")
def test_strict_reading_rejects_optional_metadata(optional: Path) -> None:
    with pytest.raises(pqext.VariantError, match="metadata must be required"):
        pqext.read_table(optional, strict=True)


@pytest.mark.spec("variant.metadata.sorted")
def test_paths_are_found_in_dictionaries_wrongly_flagged_as_sorted(unsorted: Path) -> None:
    assert as_json(pqext.read_table(unsorted)) == by_duckdb(unsorted)
    for name in ("a", "b", "c"):
        found = pqext.scan(unsorted).select({"x": col("v").variant(f"$.{name}", "bigint")}).to_table()["x"].to_pylist()
        sql = f"try_cast(variant_extract(v, '{name}') as bigint)"
        expected = by_duckdb(unsorted, sql) if name != "c" else [None] * 3
        assert found == expected, name
        assert variant.get(pqext.read_table(unsorted)["v"], f"$.{name}", "bigint").to_pylist() == expected
    assert pqext.scan(unsorted, filter=col("v").variant("$.b", "bigint") == 2).count() == 3


@pytest.mark.spec("variant.metadata.sorted")
def test_strict_reading_rejects_a_sorted_flag_on_an_unsorted_dictionary(unsorted: Path) -> None:
    with pytest.raises(pqext.VariantError, match="not sorted") as caught:
        pqext.read_table(unsorted, strict=True)
    assert (caught.value.rule, caught.value.column) == ("variant.metadata.sorted", "v")


@pytest.mark.spec("variant.metadata.sorted")
def test_shredded_variants_are_reconstructed_with_an_unsorted_dictionary() -> None:
    typed = pa.struct([pa.field("b", pa.struct([("value", BYTES), ("typed_value", pa.int32())]), False)])
    kind = pa.struct([pa.field("metadata", BYTES, False), ("value", BYTES), ("typed_value", typed)])
    only_a = b"\x02\x01\x01\x00\x02\x0c\x01"
    row = {"metadata": UNSORTED, "value": only_a, "typed_value": {"b": {"value": None, "typed_value": 7}}}
    assert variant.to_json(variant.unshred(pa.array([row], kind))).to_pylist() == ['{"a":1,"b":7}']


@pytest.mark.spec("variant.metadata.sorted")
@pytest.mark.parametrize("write", [
    lambda array: variant.shred(array, "a BIGINT"),
    lambda array: pqext.write_table(pa.table({"v": array}), io.BytesIO(), shredding={"v": "a BIGINT"}),
])  # fmt: skip
def test_unsorted_dictionary_is_not_written_with_a_sorted_flag(write: Callable[[pa.Array], object]) -> None:
    array = pa.array([{"metadata": UNSORTED, "value": A_AND_B}], REQUIRED)
    with pytest.raises(pqext.VariantError, match="not sorted"):
        write(array)
