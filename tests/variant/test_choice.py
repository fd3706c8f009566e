"""How to shred is said in one form: a schema, the word infer, or a mapping of options, as Python or as JSON."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import variant
from pqext.variant.shredding.choice import parse_shredding
from pqext.variant.shredding.schema import Untyped, schema_of_storage

DOCUMENTS = [{"a": n, "b": n / 4 + 0.1, "c": "x" * n} for n in range(20)]


def documents() -> pa.Table:
    array = variant.parse_json(pa.array([orjson.dumps(document) for document in DOCUMENTS]))
    return pa.Table.from_arrays([array], schema=pa.schema([variant.variant_field("v")]))


def stored(choice: Any) -> pa.Array:
    sink = io.BytesIO()
    pqext.write_table(documents(), sink, shredding={"v": choice})
    return pqext.read_table(sink.getvalue(), shredded=True)["v"].combine_chunks()


@pytest.mark.parametrize(
    ("choice", "schema"),
    [
        ("a BIGINT", "STRUCT<a: BIGINT>"),
        ({"schema": "a BIGINT"}, "STRUCT<a: BIGINT>"),
        (pa.struct([("a", pa.int64())]), "STRUCT<a: BIGINT>"),
        ("infer", "STRUCT<a: BIGINT, b: DECIMAL(18,2), c: STRING>"),
        ({}, "STRUCT<a: BIGINT, b: DECIMAL(18,2), c: STRING>"),
        ({"max_fields": 1}, "STRUCT<a: BIGINT>"),
        ({"schema": "infer", "integers": "narrowest", "decimals": 1}, "STRUCT<a: TINYINT, b: DECIMAL(4,2), c: STRING>"),
        ('{"schema": "a BIGINT"}', "STRUCT<a: BIGINT>"),
        (' {"max_fields": 1, "integers": "narrowest"}', "STRUCT<a: TINYINT>"),
        ({"coerce": "exact", "max_fields": 1}, "STRUCT<a: TINYINT>"),
    ],
)
def test_every_shredding_choice_produces_its_schema(choice: Any, schema: str) -> None:
    array = stored(choice)
    assert str(schema_of_storage(array.type)) == schema
    assert [orjson.loads(text) for text in variant.to_json(array).to_pylist()] == DOCUMENTS


def test_writer_uses_the_requested_coercion() -> None:
    def typed(choice: Any, name: str) -> list[Any]:
        return [row["typed_value"][name]["typed_value"] for row in stored(choice).to_pylist()]

    numbers = [document["b"] for document in DOCUMENTS]
    assert typed({"schema": "b DOUBLE"}, "b") == [None] * 20
    assert typed({"schema": "b DOUBLE", "coerce": "json"}, "b") == numbers
    assert typed({"schema": "a BIGINT"}, "a") == list(range(20))
    assert typed({"schema": "a BIGINT", "coerce": "exact"}, "a") == [None] * 20


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"shema": "a INT"}, "unknown shredding option 'shema'; did you mean 'schema'"),
        ({"schema": "a INT", "max_fields": 3}, "'max_fields' requires the schema 'infer'"),
        ({"coerce": "same"}, "coerce must be one of 'equivalent', 'exact', 'json', not 'same'"),
        ({"min_frequency": 2}, "min_frequency must be between 0 and 1"),
        ({"mixed": "untyped"}, "mixed must be one of"),
        ("infr", "invalid shredding schema 'infr'; did you mean 'infer'"),
        ({"schema": " INFERED"}, "did you mean 'infer'"),
        ("intr", "did you mean 'INT'"),
        ("binry", "did you mean 'BINARY'"),
        ("{'schema'}", "are not JSON"),
        ('{"a":' * 100_000, "are not JSON"),
    ],
)
def test_invalid_choice_is_rejected_before_any_work(choice: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_shredding(choice)
    sink = io.BytesIO()
    with pytest.raises(ValueError, match=message):
        pqext.write_table(documents(), sink, shredding={"v": choice})
    assert sink.getvalue() == b""


@pytest.mark.parametrize("as_stream", [False, True])
@pytest.mark.parametrize(("numbers", "is_warning"), [(["0.5", "1"], False), (["0.5", "0.5", "0.5", "1"], True)])
def test_write_table_warns_if_most_values_are_in_the_residual(
    numbers: list[str], is_warning: bool, as_stream: bool
) -> None:
    rows = pa.table({"v": variant.parse_json([f'{{"x": {number}}}' for number in numbers])})
    sink = io.BytesIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pqext.write_table(rows.to_reader() if as_stream else rows, sink, shredding={"v": "x INT"})
        pqext.write_table(rows, io.BytesIO())
    texts = [str(each.message).partition(";")[0] for each in caught]
    assert texts == ["typed columns do not fit most values: the residual contains 75.0% of v: $.x"] * is_warning
    assert all(each.filename == __file__ for each in caught)
    residual = pq.read_table(sink)["v"].combine_chunks().field("typed_value").field("x").field("value")
    assert residual.null_count == numbers.count("1")


def test_writer_warns_like_write_table(tmp_path: Path) -> None:
    rows = pa.table({"v": variant.parse_json(['{"x": 0.5}', '{"x": 0.5}', '{"x": 1}'])})
    message = r"the residual contains 66\.7% of v: \$\.x; use types that fit"
    writer = pqext.ParquetWriter(tmp_path / "a.parquet", rows.schema, shredding={"v": "x INT"})
    for batch in rows.to_batches(1):
        writer.write_batch(batch)
    with pytest.warns(UserWarning, match=message) as caught:
        writer.close()
    assert [each.filename for each in caught] == [__file__]
    with pqext.ParquetWriter(tmp_path / "b.parquet", rows.schema, shredding={"v": "x DECIMAL(9,2)"}) as writer:
        writer.write_table(rows)
    with pytest.warns(UserWarning, match=message):
        variant.reshred_file(tmp_path / "b.parquet", tmp_path / "c.parquet", "x INT")
    pqext.repair(tmp_path / "c.parquet", tmp_path / "d.parquet")
    variant.unshred_file(tmp_path / "c.parquet", tmp_path / "d.parquet", overwrite=True)


@pytest.mark.parametrize("as_stream", [False, True])
def test_warning_as_an_error_leaves_no_file(tmp_path: Path, as_stream: bool) -> None:
    rows = pa.table({"v": variant.parse_json(['{"x": 0.5}'])})
    pqext.write_table(rows, tmp_path / "old.parquet", shredding={"v": "x INT"})
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "typed columns do not fit")
        for name in ("new.parquet", "old.parquet"):
            with pytest.raises(UserWarning, match="typed columns do not fit most values"):
                pqext.write_table(
                    rows.to_reader() if as_stream else rows, tmp_path / name, shredding={"v": "x INT"}, append=True
                )
        with pytest.raises(UserWarning, match="typed columns do not fit most values"):
            pqext.write_dataset(rows, tmp_path / "folder", shredding={"v": "x INT"})
    assert [path.name for path in tmp_path.glob("*.parquet")] == ["old.parquet"]
    assert not [*(tmp_path / "folder").rglob("*.parquet")]
    assert pq.read_metadata(tmp_path / "old.parquet").num_rows == 1


def test_empty_sample_types_nothing() -> None:
    assert parse_shredding("infer").schema_for(None) == Untyped()
