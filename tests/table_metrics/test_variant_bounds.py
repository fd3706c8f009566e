"""Bounds of the paths of variants: decoded, and held against the values at these paths."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_metrics.tables import written, written_by_pyarrow

import pqext
from pqext import table_metrics, variant
from pqext.core.base.errors import ParquetError, VariantError
from pqext.core.format.metadata import FileMetaData, LogicalType, VariantType
from pqext.table_metrics.variant_bounds import normalized_path
from pqext.variant.binary_value import decode_metadata
from pqext.variant.value import Variant
from reference.effort import share


def column(*documents: Any) -> pa.Table:
    """A variant column of documents, None for null rows."""
    texts = [None if one is None else json.dumps(one) for one in documents]
    return pa.table([variant.parse_json(pa.array(texts, pa.string()))], schema=pa.schema([variant.variant_field("v")]))


def decoded(bound: bytes) -> dict[str, Any]:
    """A bound as keys and Python values: what stands behind the metadata is the value."""
    size = (bound[0] >> 6) + 1
    names = int.from_bytes(bound[1 : 1 + size], "little")
    at = 1 + size * (names + 2)
    end = at + int.from_bytes(bound[at - size : at], "little")
    assert len(decode_metadata(bound[:end]).names) == names
    found: dict[str, Any] = Variant(bound[end:], bound[:end]).to_python()
    return found


def bounds(table: pa.Table, exact: bool = False, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    found = table_metrics.iceberg(written(table, **options), exact)
    low, high = found.lower_bounds.get(1), found.upper_bounds.get(1)
    return {} if low is None else decoded(low), {} if high is None else decoded(high)


SHREDDED = {"v": "a BIGINT, b STRUCT<c: STRING, d: DOUBLE>, t ARRAY<BIGINT>"}


@pytest.mark.spec("metrics.variant.object", "metrics.variant.paths")
@pytest.mark.parametrize("exact", [False, True])
def test_paths_of_shredded_fields_have_bounds(exact: bool) -> None:
    table = column({"a": 3, "b": {"c": "p", "d": 1.5}, "t": [1, 2]}, {"a": -1, "b": {"c": "q"}, "e": 1}, None, {"b": 5})
    low, high = bounds(table, exact, shredding=SHREDDED)
    more = {"$['e']": 1} if exact else {}  # which has no column of its own
    assert low == {"$['a']": -1, "$['b']['c']": "p", **more}  # 1.5 is a decimal, which no DOUBLE holds
    assert high == {"$['a']": 3, "$['b']['c']": "q", **more}


@pytest.mark.spec("metrics.variant.object")
def test_root_primitive_has_the_root_path() -> None:
    assert bounds(column(5, None, 7), shredding={"v": "BIGINT"}) == ({"$": 5}, {"$": 7})


@pytest.mark.spec("metrics.variant.clean")
@pytest.mark.parametrize("exact", [False, True])
def test_other_type_drops_its_path_but_a_variant_null_does_not(exact: bool) -> None:
    shredding = {"v": "a BIGINT, b BIGINT"}
    rows = [{"a": 1, "b": 1}, {"a": None, "b": "x"}, {"a": 2, "b": None}]
    for row_group_rows in (1, 3):
        found = bounds(column(*rows), exact, shredding=shredding, row_group_rows=row_group_rows)
        assert found == ({"$['a']": 1}, {"$['a']": 2})


@pytest.mark.spec("metrics.variant.arrays")
@pytest.mark.parametrize("exact", [False, True])
def test_array_elements_have_no_bounds(exact: bool) -> None:
    shredding = {"v": "a ARRAY<STRUCT<b: BIGINT>>, c BIGINT"}
    assert bounds(column({"a": [{"b": 1}], "c": 2}), exact, shredding=shredding) == ({"$['c']": 2}, {"$['c']": 2})


@pytest.mark.spec("metrics.variant.nan")
@pytest.mark.parametrize("exact", [False, True])
def test_nan_drops_the_bounds_of_its_path(exact: bool) -> None:
    values = [{"x": 1.5, "y": 2.5}, {"x": float("nan"), "y": 3.5}]
    array = variant.from_python(values)
    table = pa.table([array], schema=pa.schema([variant.variant_field("v")]))
    shredding = {"v": "x DOUBLE, y DOUBLE"}
    assert bounds(table, exact, shredding=shredding) == ({"$['y']": 2.5}, {"$['y']": 3.5})


@pytest.mark.spec("metrics.variant.null-count")
@pytest.mark.parametrize("exact", [False, True])
def test_variant_null_is_not_counted_as_null(exact: bool) -> None:
    table = pa.table(
        [variant.parse_json(pa.array(["null", None, "1"]))], schema=pa.schema([variant.variant_field("v")])
    )
    found = table_metrics.iceberg(written(table, shredding={"v": "BIGINT"}), exact)
    assert (found.value_counts, found.null_value_counts, found.types) == ({1: 3}, {1: 1}, {1: "variant"})


@pytest.mark.spec("metrics.exact")
def test_path_bounds_follow_values_in_any_column() -> None:
    rows = [{"a": "x", "b": 1.25, "c": True}, {"a": "y", "b": 2.5}, {"a": "z", "b": 7.75, "c": None}]
    for shredding in ("a BIGINT", "a BIGINT, b DOUBLE", "a STRING, c STRING", "d INT", "BIGINT", "ARRAY<INT>"):
        low, high = bounds(column(*rows), exact=True, shredding={"v": shredding})
        assert low == {"$['a']": "x", "$['b']": Decimal("1.25"), "$['c']": True}
        assert high == {"$['a']": "z", "$['b']": Decimal("7.75"), "$['c']": True}


def test_unshredded_variant_has_bounds_from_its_values() -> None:
    table = column({"a": 3, "b": "x"}, {"a": 7, "b": 5}, None, {"a": None, "c": {"d": True}})
    assert bounds(table) == ({}, {})
    assert bounds(table, exact=True) == ({"$['a']": 3, "$['c']['d']": True}, {"$['a']": 7, "$['c']['d']": True})


@pytest.mark.parametrize("order", [("metadata", "value"), ("value", "metadata")])
def test_unshredded_variant_of_other_writers_has_bounds_from_its_values(order: tuple[str, str]) -> None:
    """Its columns stand in either order, and ``value`` may be null where the variant is."""
    array = variant.parse_json(pa.array(['{"a": 1}', None, '{"a": 5}']))
    fields = [pa.field(name, pa.binary(), nullable=name == "value") for name in order]
    stored = pa.StructArray.from_arrays([array.field(name) for name in order], fields=fields, mask=array.is_null())

    def annotate(footer: FileMetaData) -> None:
        footer.schema[1].logicalType = LogicalType(VARIANT=VariantType(specification_version=1))

    sink = io.BytesIO()
    pqext.rewrite_footer(written_by_pyarrow(pa.table({"v": stored})), annotate, sink)
    found = table_metrics.iceberg(sink.getvalue(), exact=True)
    assert found.null_value_counts == {1: 1}
    assert (decoded(found.lower_bounds[1]), decoded(found.upper_bounds[1])) == ({"$['a']": 1}, {"$['a']": 5})


def test_later_value_of_another_type_drops_the_path_of_an_unshredded_variant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pqext.table_metrics.variant_bounds.BATCH_ROWS", 2)
    rows = [None, None, {"a": 3, "b": 1}, {"a": 4}, {"a": 5, "b": 2}, {"a": 1}, {"b": "x", "a": 9}]
    assert bounds(column(*rows), exact=True) == ({"$['a']": 1}, {"$['a']": 9})


@pytest.mark.parametrize("exact", [False, True])
def test_nested_variant_has_bounds_under_its_own_id(exact: bool) -> None:
    inner = column({"a": 1}, {"a": 99}, {"a": 3})["v"].combine_chunks()
    mask, fields = pa.array([False, True, False]), [variant.variant_field("v")]
    struct = pa.StructArray.from_arrays([inner], fields=fields, mask=mask)
    file = written(pa.table({"s": struct}), shredding={"s.v": "a BIGINT"})
    found = table_metrics.iceberg(file, exact)
    assert found.names == {2: "s.v"}
    assert (decoded(found.lower_bounds[2]), decoded(found.upper_bounds[2])) == ({"$['a']": 1}, {"$['a']": 3})
    plain = table_metrics.iceberg(written(pa.table({"s": struct})), exact)
    assert plain.null_value_counts == {2: 1}
    assert {id: decoded(bound) for id, bound in plain.upper_bounds.items()} == ({2: {"$['a']": 3}} if exact else {})


@pytest.mark.spec("metrics.iceberg.sizes")
def test_size_of_a_variant_includes_all_its_columns() -> None:
    table = column({"a": 1, "b": "x"}, {"a": 2})
    file = written(table, shredding={"v": "a BIGINT"})
    with pqext.open(file) as opened:
        stored = sum(chunk.compressed_bytes for chunk in opened.row_groups[0].chunks())
    assert table_metrics.iceberg(file).column_sizes == {1: stored}


@pytest.mark.spec("metrics.variant.paths")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ((), "$"), (("a", "b"), "$['a']['b']"), (("",), "$['']"), (("it's",), r"$['it\'s']"), (("\\",), r"$['\\']"),
        (("\b\t\n\f\r",), r"$['\b\t\n\f\r']"), (("\x00\x1f",), r"$['\u0000\u001f']"), (("é\"\x7f",), "$['é\"\x7f']"),
    ],
)  # fmt: skip
def test_paths_are_normalised(path: tuple[str, ...], expected: str) -> None:
    assert normalized_path(path) == expected


DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "i": st.none() | st.integers(-(1 << 40), 1 << 40) | st.just("odd"),
        "s": st.text(max_size=25) | st.just("\U0010ffff" * 18),
        "o": st.fixed_dictionaries({}, optional={"b": st.booleans(), "x": st.integers(0, 5) | st.just([1])})
        | st.lists(st.just({"b": True}), max_size=2),
        "f": st.decimals("-99.99", "99.99", places=2).map(float),
    },
)


def values_at(document: Any, path: str) -> list[Any]:
    """The value at a normalised path of plain names, in a list of its own, empty where there is none."""
    for name in re.findall(r"\['(\w+)'\]", path):
        if not isinstance(document, dict) or name not in document:
            return []
        document = document[name]
    return [document]


@pytest.mark.spec("metrics.variant.clean", "metrics.variant.object")
@settings(max_examples=share(2.0))
@given(st.lists(st.none() | DOCUMENTS, max_size=8), st.booleans(), st.booleans(), st.sampled_from([2, 100]))
def test_bounds_contain_every_value_at_their_path(
    documents: list[Any], exact: bool, shredded: bool, row_group_rows: int
) -> None:
    shredding = {"v": "i BIGINT, s STRING, o STRUCT<b: BOOLEAN, x: TINYINT>, f DECIMAL(9,2)"} if shredded else {}
    low, high = bounds(column(*documents), exact, shredding=shredding, row_group_rows=row_group_rows)
    assert not (low or high) or shredded or exact
    for path in low.keys() | high.keys():
        values = [value for one in documents for value in values_at(one, path) if value is not None]
        kinds = {type(value) for value in values}
        assert values
        assert len(kinds - {int, float}) + bool(kinds & {int, float}) == 1
        exactly = [Decimal(str(value)) if isinstance(value, float) else value for value in values]
        if path in low:
            assert low[path] <= min(exactly)
            assert low[path] == min(exactly) or isinstance(low[path], str)
        if path in high:
            assert high[path] >= max(exactly)
            assert high[path] == max(exactly) or isinstance(high[path], str)


_MOMENT = datetime(2020, 1, 2, 3, 4, 5, 6)
KINDS: dict[str, tuple[Any, str]] = {
    "BOOLEAN": (True, "boolean"), "TINYINT": (-1, "int8"), "SMALLINT": (300, "int16"), "INT": (70_000, "int32"),
    "BIGINT": (1 << 40, "int64"), "DECIMAL(9,2)": (Decimal("-1.25"), "decimal4"),
    "DECIMAL(18,2)": (Decimal("1.25"), "decimal8"), "DECIMAL(38,2)": (Decimal("1.25"), "decimal16"),
    "STRING": ("x", "string"), "FLOAT": (np.float32(0.5), "float"), "DOUBLE": (2.5, "double"),
    "BINARY": (b"\x01", "binary"), "DATE": (_MOMENT.date(), "date"), "TIME": (_MOMENT.time(), "time_ntz"),
    "TIMESTAMP": (_MOMENT.replace(tzinfo=UTC), "timestamp"), "TIMESTAMP_NTZ": (_MOMENT, "timestamp_ntz"),
    "TIMESTAMP_NS": (variant.Timestamp(7_000_000_001, "ns", True), "timestamp_nanos"),
    "TIMESTAMP_NTZ_NS": (variant.Timestamp(-7_000_000_001, "ns", False), "timestamp_ntz_nanos"),
    "UUID": (UUID(int=5), "uuid"),
}  # fmt: skip


@pytest.mark.spec("metrics.variant.object")
@pytest.mark.parametrize("ddl", KINDS)
def test_bound_is_a_primitive_of_its_column_type(ddl: str) -> None:
    value, kind = KINDS[ddl]
    table = pa.table([variant.from_python([value])], schema=pa.schema([variant.variant_field("v")]))
    found = table_metrics.iceberg(written(table, shredding={"v": ddl}))
    for bound in (found.lower_bounds[1], found.upper_bounds[1]):
        end = bound.index(b"$") + 1
        held = Variant(bound[end:], bound[:end])["$"]
        assert (held.type, held) == (kind, Variant.from_python(value))


def test_group_that_is_not_a_variant_is_an_error_with_file_and_column(tmp_path: Path) -> None:
    file = bytearray(written(column({"a": 1}), shredding={"v": "a BIGINT"}))
    at_name = file.rfind(b"metadata", 0, len(file))
    file[at_name : at_name + 8] = b"metadate"
    path = tmp_path / "broken.parquet"
    path.write_bytes(bytes(file))
    with pytest.raises(ParquetError, match=r"broken\.parquet") as caught:
        table_metrics.iceberg(path)
    assert "v" in str(caught.value)


def test_bound_is_read_in_both_encodings() -> None:
    file = written(column({"a": 3, "b": {"c": "x"}}, {"a": 5}), shredding=SHREDDED)
    iceberg, delta = table_metrics.iceberg(file), table_metrics.delta(file)
    lower, upper = iceberg.lower_bounds[1], iceberg.upper_bounds[1]
    for raw, text in ((lower, delta.min_values["v"]), (upper, delta.max_values["v"])):
        found = table_metrics.variant_bound(raw)
        assert found.to_python() == decoded(raw)
        assert table_metrics.variant_bound(text).value == found.value
    for broken in (b"", b"\x01", iceberg.lower_bounds[1][:-3], b"\xc1\xff\xff\xff\xff"):
        with pytest.raises(VariantError):
            table_metrics.variant_bound(broken)
