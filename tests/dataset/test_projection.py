"""Values within VARIANT columns as columns of a scan, and how little is read for them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import col, variant
from reference.effort import share

SHREDDING = "id BIGINT, user STRUCT<uid: INT, name: STRING>, price DECIMAL(9,2), tags ARRAY<STRING>"


def stored(rows: list[Any], shredding: str | None = SHREDDING, **options: Any) -> bytes:
    """A file of the documents (None is a null row) in column ``v``, beside their numbers in ``n``."""
    texts = [None if row is None else json.dumps(row) for row in rows]
    array = variant.parse_json(pa.array(texts, pa.string()), shredding=shredding)
    schema = pa.schema([pa.field("n", pa.int64()), pa.field("v", array.type)])
    sink = io.BytesIO()
    pqext.write_table(pa.table([pa.array(range(len(rows))), array], schema=schema), sink, **options)
    return sink.getvalue()


def document(i: int) -> dict[str, Any]:
    return {"id": i, "user": {"uid": i * 7, "name": f"u{i}"}, "price": i / 4, "tags": ["x"] * (i % 3), "other": i}


ROWS = [None if i % 11 == 5 else document(i) for i in range(100)]
FILE = stored(ROWS, row_group_rows=40)


def test_field_is_a_separate_column() -> None:
    columns = ["n", col("v").variant("$.user.uid", "int64"), ("name", col("v").variant("$.user.name", "string"))]
    table = pqext.read_table(FILE, columns)
    assert table.schema == pa.schema([("n", pa.int64()), ("v.user.uid", pa.int64()), ("name", pa.string())])
    expected = [row and row["user"] for row in ROWS]
    assert table["v.user.uid"].to_pylist() == [user and user["uid"] for user in expected]
    assert table["name"].to_pylist() == [user and user["name"] for user in expected]


def leaf_bytes(*names: str) -> int:
    """Stored bytes of the columns whose paths end like this, without ``typed_value`` between."""
    with pqext.open(FILE) as file:
        return sum(
            group.chunk(leaf).byte_range[1]
            for group in file.row_groups
            for leaf in file.schema.leaves
            if ".".join(part for part in leaf.path if part != "typed_value") in names and leaf.name == "typed_value"
        )


def test_only_the_leaf_is_read_if_it_contains_all_values() -> None:
    query = pqext.scan(FILE, [col("v").variant("$.user.uid", "double"), col("v").variant("$.id", "int64")])
    assert sum(task.bytes_kept for task in query.plan()) == leaf_bytes("v.user.uid", "v.id")
    with pqext.open(FILE) as whole:
        whole.read()
        everything = whole.source.bytes_read
    assert leaf_bytes("v.user.uid", "v.id") * 3 < everything
    assert query.to_table()["v.user.uid"].to_pylist() == [row and row["user"]["uid"] for row in ROWS]


@pytest.mark.parametrize("odd", ["text", None, {"uid": 3}, [1], 1.5, 2**40])
def test_residual_values_are_included(odd: Any) -> None:
    rows = [document(i) for i in range(30)] + [{"id": 1, "user": {"uid": odd}}, {"user": odd}, odd]
    for shredding in (SHREDDING, None):
        data = stored(rows, shredding, row_group_rows=16)
        for path, type in (("$.user.uid", "string"), ("$.user.uid", "int64"), ("$.user", "string"), ("$", "string")):
            found = pqext.read_table(data, [("x", col("v").variant(path, type))])["x"].to_pylist()
            whole = pqext.read_table(data)["v"]
            assert found == variant.get(whole, path, type).to_pylist(), (path, type)


@settings(max_examples=share(0.3))
@given(
    st.sampled_from(["$.id", "$.user.uid", "$.user", "$.price", "$.tags[1]", "$.other", "$.absent.x", "$.user.name.x"]),
    st.sampled_from(["int64", "string", "double", "decimal(9,2)", "variant"]),
    st.integers(1, 60),
    st.sampled_from([None, col("n") > 30, col("v").variant("$.id", "int64") < 50, col("v").is_null()]),
    st.sampled_from([{}, {"shredded": True}, {"strict": True}, {"on_corrupt": "skip"}]),
    st.sampled_from([[], ["n"], ["v"], ["n", "v"]]),
)
def test_every_path_matches_variant_get(
    path: str, type: str, batch_rows: int, filter: Any, options: Any, beside: list[str]
) -> None:
    scan = pqext.scan(FILE, [*beside, ("x", col("v").variant(path, type))], filter, **options)
    whole = pqext.read_table(FILE, ["n", "v"], filter)
    table = pa.Table.from_batches(list(scan.to_batches(batch_rows)), scan.schema)
    found, expected = table["x"], variant.get(whole["v"], path, type)
    if type == "variant":  # the same values, though names that they do not use may be gone
        found, expected = variant.to_json(found), variant.to_json(expected)
    assert found.to_pylist() == expected.to_pylist()
    assert table.schema.names == [*beside, "x"]
    assert scan.count() == len(whole)


def test_files_may_have_different_shredding(tmp_path: Any) -> None:
    for i, shredding in enumerate([SHREDDING, "user STRUCT<uid: STRING>", None]):
        (tmp_path / f"{i}.parquet").write_bytes(stored(ROWS, shredding))
    table = pqext.read_table(tmp_path, [col("v").variant("$.user.uid", "int64")])
    assert table["v.user.uid"].to_pylist() == [row and row["user"]["uid"] for row in ROWS] * 3


def test_invalid_columns_are_rejected() -> None:
    field = col("v").variant("$.id", "int64")
    with pytest.raises(ValueError, match="selected twice"):
        pqext.scan(FILE, [field, field])
    with pytest.raises(ValueError, match="selected twice"):
        pqext.read_table(FILE, ["n", ("n", field)])
    with pytest.raises(TypeError, match="a column must be a name"):
        pqext.scan(FILE, [3])
    with pytest.raises(TypeError, match="a column name must be a string"):
        pqext.scan(FILE, [(3, field)])
    with pytest.raises(TypeError, match="not a VARIANT"):
        pqext.read_table(FILE, [col("n").variant("$.id", "int64")])
    with pytest.raises(ValueError, match="absent"):
        pqext.read_table(FILE, [col("absent").variant("$.id", "int64")])


def test_text_selects_like_the_command_line() -> None:
    table = pqext.scan(FILE).select("v:$.id::bigint as id", "n * 2 as twice, n", "n+1").to_table()
    assert table.to_pydict() == {
        "id": [row and row["id"] for row in ROWS], "twice": [2 * i for i in range(len(ROWS))],
        "n": [*range(len(ROWS))], "n+1": [i + 1 for i in range(len(ROWS))],
    }  # fmt: skip
    read = pqext.read_table(FILE, ["v:$.user.uid::int", "* exclude (v)"])
    assert read.schema == pa.schema([("v.user.uid", pa.int32()), ("n", pa.int64())])
    assert read["v.user.uid"].to_pylist() == [row and row["user"]["uid"] for row in ROWS]
    for wrong, message in (("v:$.id:::int", "at character 6"), ("m * 2 as x", "no column 'm'"), ("n, ", "empty")):
        with pytest.raises(ValueError, match=message):
            pqext.read_table(FILE, [wrong])


def test_exact_name_precedes_text() -> None:
    names = ["n", "n * 2", "a, b", "x as y", "v:$.id", "price (USD)"]
    sink = io.BytesIO()
    pqext.write_table(pa.table({**{name: [at] for at, name in enumerate(names)}, "s": [{"in-out": 9}]}), sink)
    assert pqext.read_table(sink, names).to_pydict() == {name: [at] for at, name in enumerate(names)}
    scan = pqext.scan(sink).select("s.in-out", "n * 2")
    assert scan.to_table().to_pylist() == [{"s": {"in-out": 9}, "n * 2": 1}]
    assert scan.select("n * 2").to_table().to_pylist() == [{"n * 2": 1}]
    with pytest.raises(ValueError, match=r"no column 'price \(US'; did you mean 'price \(USD\)'"):
        pqext.read_table(sink, ["price (US"])


def test_names_with_punctuation_are_not_expressions(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pqext.write_table(pa.table({"id": [3], "my-list": [[{"x": 1}]]}), path)
    assert pqext.scan(path, ["id", "file-path"], include_file_paths="file-path").schema.names == ["id", "file-path"]
    assert pqext.read_table(path, ["id", "row-no"], include_row_numbers="row-no")["row-no"].to_pylist() == [0]
    assert pqext.scan(path, ["my-list.list.element.x"]).to_table()["my-list"].to_pylist() == [[{"x": 1}]]
