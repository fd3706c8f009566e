"""Files of one scan agree on types that Parquet has no name for, and each of their values is there."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import col, geo


def categories(count: int, index: pa.DataType) -> pa.Table:
    """A column of so many categories and a list of them."""
    values = pa.array([f"{count}-{n}" for n in range(count)])
    column = pa.DictionaryArray.from_arrays(pa.array(range(count), index), values)
    return pa.table({"x": column, "l": pa.ListArray.from_arrays([*range(count), count], column)})


@pytest.mark.parametrize("strings", ["string", "dictionary"])
@pytest.mark.parametrize("second", [pa.int16(), None], ids=["a wider index", "no dictionary"])
def test_later_file_may_have_more_categories(second: pa.DataType | None, strings: str, tmp_path: Path) -> None:
    """As pandas writes them: the index type is that of as many categories as there are."""
    many = categories(300, second or pa.int16())
    if second is None:
        many = pa.table({"x": many["x"].cast(pa.string()), "l": many["l"].cast(pa.list_(pa.string()))})
    few = categories(100, pa.int8())
    pqext.write_table(few, tmp_path / "a.parquet")
    pqext.write_table(many, tmp_path / "b.parquet")
    expected = few.to_pylist() + many.to_pylist()
    for sources in (tmp_path, [tmp_path / "b.parquet", tmp_path / "a.parquet"][::-1]):
        found = pqext.read_table(sources, strings=strings)
        found.validate(full=True)
        assert found.to_pylist() == expected
        assert found.schema.field("x").type == pa.dictionary(pa.int32(), pa.string())
    filtered = pqext.read_table(tmp_path, None, col("x") >= "100-5", strings=strings)
    assert filtered.to_pylist() == [row for row in expected if row["x"] >= "100-5"]
    assert pqext.read_table(tmp_path / "a.parquet").schema == few.schema


def test_filter_that_one_file_does_not_support_names_the_file(tmp_path: Path) -> None:
    pqext.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pqext.write_table(pa.table({"a": ["1"]}), tmp_path / "2.parquet")
    with pytest.raises(TypeError, match=r"contains string values.* \[file \S*2\.parquet\]; .*; schema=\"union\""):
        pqext.read_table(tmp_path, filter="a = 1")


@pytest.mark.parametrize("schema", [None, "union"])
@pytest.mark.parametrize("crs", ["OGC:CRS84", "EPSG:25832"])
def test_result_of_several_files_states_no_box(crs: str, schema: str | None, tmp_path: Path) -> None:
    """pyarrow writes the metadata of the result as it is, and readers skip files by their box."""
    for number in range(3):
        x = 50.0 * number
        table = pa.table({"id": [number], "at": geo.from_points([x], [0.5])})
        pqext.write_table(table, tmp_path / f"{number}.parquet", geometry={"at": crs})
    result = pqext.read_table(tmp_path, schema=schema)
    about = json.loads(result.schema.metadata[b"geo"])["columns"]["at"]
    assert about["geometry_types"] == []
    assert "bbox" not in about
    pq.write_table(result, tmp_path / "all.parquet")
    found = pqext.read_table(tmp_path / "all.parquet", ["id"], col("at").intersects((99, 0, 101, 1)))
    assert found["id"].to_pylist() == [2]
    single = pqext.read_table(tmp_path / "1.parquet").schema.metadata[b"geo"]
    assert json.loads(single)["columns"]["at"]["bbox"] == [50.0, 0.5, 50.0, 0.5]
