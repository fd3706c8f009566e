"""A row group is skipped only when no row in it can match, and is when the statistics prove that."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path as FilePath
from typing import Any

import duckdb
import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.format.predicate import COMPARE, Comparison, IsIn, IsNotNull, IsNull, Predicate
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.annotations import find_by_logical_type
from pqext.core.write.writer import write_table
from pqext.variant.access.path import Path
from pqext.variant.monotone import monotone_cast
from pqext.variant.pruning import VariantPredicate, find_group, may_match
from pqext.variant.types import variant_field, variant_type
from reference import variant_shred as reference
from reference.variant_strategies import fewer

prim = reference.primitive
NAMES = ["a", "b", "c"]
METADATA = reference.encode_metadata(NAMES)


def fields(**values: bytes) -> bytes:
    return reference.object_of([(NAMES.index(name), value) for name, value in sorted(values.items())])


def column(values: list[bytes | None]) -> pa.StructArray:
    return pa.array([value and {"metadata": METADATA, "value": value} for value in values], variant_type())


def written(groups: list[list[bytes | None]], schema: Any, **options: Any) -> ParquetFile:
    """A file with one row group for each list of values; all are equally long."""
    table = pa.table([column([value for group in groups for value in group])], schema=pa.schema([variant_field("v")]))
    sink = io.BytesIO()
    write_table(table, sink, shredding={"v": schema} if schema else {}, row_group_rows=len(groups[0]), **options)
    return ParquetFile(sink.getvalue())


def match(file: ParquetFile, path: str, type: str, predicate: Predicate) -> list[bool]:
    node = file.schema.find("v")
    assert node is not None
    question = VariantPredicate(path, type, predicate)
    annotation = find_by_logical_type("VARIANT")
    assert annotation is not None
    answers = [may_match(node, group, question) for group in file.row_groups]
    assert answers == [annotation.load().may_match(node, group, question) for group in file.row_groups]
    return answers


INTEGERS = [[fields(a=prim("int32", n)) for n in numbers] for numbers in ([1, 2], [3, 9], [10, 20])]


@pytest.mark.spec("shredding.skipping.statistics", "shredding.skipping.null")
@pytest.mark.parametrize(
    ("predicate", "answers"),
    [
        (Comparison("==", 5), [False, True, False]),
        (Comparison(">", 9), [False, False, True]),
        (Comparison("<=", 1), [True, False, False]),
        (IsIn((0, 2, 30)), [True, False, False]),
        (IsIn(()), [False, False, False]),
        (IsNull(), [False, False, False]),
        (IsNotNull(), [True, True, True]),
    ],
)
def test_leaf_with_an_empty_residual_is_pruned_by_bounds(predicate: Predicate, answers: list[bool]) -> None:
    assert match(written(INTEGERS, "a BIGINT"), "$.a", "bigint", predicate) == answers


@pytest.mark.spec("shredding.skipping.own-type", "shredding.skipping.statistics")
def test_other_type_in_the_residual_of_the_leaf_retains_the_row_group() -> None:
    file = written([[fields(a=prim("int32", 1)), fields(a=prim("string", "7"))], INTEGERS[0]], "a BIGINT")
    assert match(file, "$.a", "bigint", Comparison(">", 5)) == [True, False]


@pytest.mark.spec("shredding.skipping.nan")
def test_nan_condition_skips_row_groups_without_nan() -> None:
    nan = float("nan")
    numbers = [[1.0, 2.0], [nan, 1.0], [nan, nan]]
    rows = [[fields(a=prim("double", n)) for n in group] for group in numbers]
    file = written([*rows, [fields(a=prim("double", 1.0)), fields(a=prim("string", "NaN"))]], "a DOUBLE")
    assert match(file, "$.a", "double", Comparison("==", nan)) == [False, True, True, True]


@pytest.mark.spec("shredding.skipping.variant-null")
def test_variant_nulls_in_the_residual_do_not_retain_the_row_group() -> None:
    file = written([[fields(a=prim("int32", 1)), fields(a=b"\0")], [fields(a=b"\0"), fields(a=b"\0")]], "a BIGINT")
    assert match(file, "$.a", "bigint", Comparison(">", 5)) == [False, False]
    assert match(file, "$.a", "bigint", Comparison("<", 5)) == [True, False]
    assert match(file, "$.a", "bigint", IsNull()) == [True, True]
    assert match(file, "$.a", "bigint", IsNotNull()) == [True, False]
    assert match(file, "$.a", "variant", IsNotNull()) == [True, True]


@pytest.mark.spec("shredding.skipping.ancestors")
def test_residuals_of_ancestors_do_not_retain_the_row_group() -> None:
    low = fields(a=fields(b=prim("int8", 1), c=prim("string", "residual of a")), c=prim("string", "residual of $"))
    rows = [[low, low, prim("string", "no object")], [low, fields(a=prim("int8", 100)), None]]
    file = written(rows, "a STRUCT<b: BIGINT>")
    assert match(file, "$.a.b", "bigint", Comparison(">", 5)) == [False, False]
    assert match(file, "$.a.b", "bigint", Comparison("==", 1)) == [True, True]
    assert match(file, "$.a.b", "bigint", IsNull()) == [True, True]


@pytest.mark.parametrize("path", ["$", "$.b", "$.a.c", "$.c[0]", "$[0]", "$.a"])
def test_path_without_a_leaf_is_read(path: str) -> None:
    file = written([[fields(a=fields(b=prim("int8", 1)), c=reference.array_of([prim("int8", 1)]))]],
                   "a STRUCT<b: BIGINT>, c ARRAY<BIGINT>")  # fmt: skip
    assert match(file, path, "bigint", Comparison(">", 5)) == [True]


def test_absent_field_is_skipped_without_a_typed_column() -> None:
    file = written([[fields(b=prim("int8", 1))], [fields(a=prim("int8", 1))]], "a VARIANT, b BIGINT")
    assert match(file, "$.a", "bigint", Comparison(">", 5)) == [False, True]
    assert match(file, "$.a", "string", IsNotNull()) == [False, True]
    assert match(file, "$.a", "string", IsNull()) == [True, True]


def test_unshredded_files_and_files_without_statistics_are_read() -> None:
    assert match(written(INTEGERS, None), "$.a", "bigint", Comparison(">", 99)) == [True] * 3
    assert match(written(INTEGERS, "a BIGINT", statistics=False), "$.a", "bigint", Comparison(">", 99)) == [True] * 3


@pytest.mark.parametrize(
    ("leaf", "value", "type", "outside", "inside"),
    [
        ("DECIMAL(9,2)", prim("decimal4", (499, 2)), "double", 5.0, 4.99),
        ("DECIMAL(9,2)", prim("decimal4", (499, 2)), "float", 5.0, 4.99),
        ("DECIMAL(9,2)", prim("decimal4", (499, 2)), "int", 5, 4),
        ("DECIMAL(9,2)", prim("decimal4", (-499, 2)), "int", -5, -4),
        ("DECIMAL(9,2)", prim("decimal4", (495, 2)), "decimal(9,1)", Decimal("4.9"), Decimal("5.0")),
        ("DECIMAL(9,2)", prim("decimal4", (125, 2)), "decimal(9,1)", Decimal("1.2"), Decimal("1.3")),
        ("DECIMAL(9,2)", prim("decimal4", (-125, 2)), "decimal(9,1)", Decimal("-1.2"), Decimal("-1.3")),
        ("DECIMAL(9,2)", prim("decimal4", (124, 2)), "decimal(9,0)", Decimal("2"), Decimal("1")),
        ("BIGINT", prim("int64", 2**53 + 1), "double", float(2**53 - 2), float(2**53)),
        ("BIGINT", prim("int8", 5), "tinyint", 6, 5),
        ("BIGINT", prim("int8", 5), "decimal(9,2)", Decimal("5.01"), Decimal("5.00")),
        ("FLOAT", prim("float", 0.5), "double", 0.6, 0.5),
        ("DOUBLE", prim("double", 0.1), "float", 0.2, 0.10000000149011612),
        ("STRING", prim("string", "abc"), "binary", b"abd", b"abc"),
        ("STRING", prim("string", "abc"), "string", b"abd", b"abc"),
        ("DATE", prim("date", 3), "timestamp", 3 * 86_400 * 10**9 + 1, 3 * 86_400 * 10**9),
        ("TIMESTAMP", prim("timestamp", -1), "date", 0, -1),
        ("TIMESTAMP_NTZ_NS", prim("timestamp_ntz_nanos", -1), "timestamp_ntz", 0, -1000),
        ("TIME", prim("time", 5), "time", 6000, 5000),
        ("BOOLEAN", prim("true"), "boolean", False, True),
        ("UUID", prim("uuid", b"5" * 16), "uuid", b"6" * 16, b"5" * 16),
    ],
)
def test_bounds_are_cast_if_the_cast_is_monotone(
    leaf: str, value: bytes, type: str, outside: Any, inside: Any
) -> None:
    file = written([[fields(a=value)]], f"a {leaf}")
    assert match(file, "$.a", type, Comparison("==", outside)) == [False]
    assert match(file, "$.a", type, Comparison("==", inside)) == [True]


@pytest.mark.parametrize(
    ("leaf", "value", "type", "literal"),
    [
        ("BIGINT", prim("int8", 10), "string", b"5"),
        ("STRING", prim("string", "10"), "bigint", 5),
        ("BOOLEAN", prim("true"), "int", 5),
        ("BIGINT", prim("int8", 10), "timestamp", 5),
        ("TIMESTAMP", prim("timestamp", 10), "bigint", 5),
        ("DOUBLE", prim("double", 10.0), "int", 5),
        ("DATE", prim("date", 10), "string", b"5"),
    ],
)
@pytest.mark.spec("shredding.skipping.own-type", "shredding.skipping.null")
def test_nonmonotone_casts_are_read(leaf: str, value: bytes, type: str, literal: Any) -> None:
    file = written([[fields(a=value)]], f"a {leaf}")
    assert match(file, "$.a", type, Comparison("==", literal)) == [True]
    assert match(file, "$.a", type, IsNull()) == [True]


@pytest.mark.spec("shredding.skipping.null")
def test_column_nulls_decide_null_conditions() -> None:
    file = written([[None, None], [fields(), None], [fields(), b"\0"]], "a BIGINT")
    node = file.schema.find("v")
    handler = find_by_logical_type("VARIANT").load()  # type: ignore[union-attr]
    assert [handler.may_match(node, group, IsNull()) for group in file.row_groups] == [True, True, False]
    assert [handler.may_match(node, group, IsNotNull()) for group in file.row_groups] == [False, True, True]
    assert all(handler.may_match(node, group, Comparison("==", 1)) for group in file.row_groups)


def test_path_resolves_to_the_group_of_its_leaf() -> None:
    node = written(INTEGERS, "a BIGINT").schema.find("v")
    assert node is not None
    found = find_group(node, ("a",))
    assert found is not None
    assert found.dotted_path == "v.typed_value.a"
    assert find_group(node, ("a", "b")) is None
    assert find_group(node, (0,)) is None
    assert str(VariantPredicate("$.a", "BIGINT", IsNull())) == "$.a as int64: IsNull()"


# --- Soundness against every row -----------------------------------------------------------------

VALUES: list[bytes] = [
    *(prim("int32", n) for n in (-3, 0, 1, 5, 200)),
    *(prim("decimal4", (n, 2)) for n in (-350, 5, 150, 1255)),
    *(prim("double", n) for n in (-1.5, 0.0, -0.0, 2.5, float("nan"), float("inf"))),
    prim("float", 0.1),
    *(prim("string", s) for s in ("", "5", "abc", "x" * 80, "1970-01-02")),
    prim("date", 1),
    prim("timestamp", 86_400_000_000),
    prim("timestamp_nanos", -1),
    prim("timestamp_ntz", 5),
    prim("time", 5),
    prim("true"),
    prim("false"),
    b"\0",
    prim("binary", b"\xff\xfe"),
    prim("uuid", b"5" * 16),
    fields(b=prim("int8", 1)),
    reference.array_of([prim("int8", 1)]),
]
LEAVES = ["BIGINT", "TINYINT", "DECIMAL(9,2)", "DECIMAL(38,4)", "DOUBLE", "FLOAT", "STRING", "DATE", "TIMESTAMP",
          "TIMESTAMP_NS", "TIMESTAMP_NTZ", "TIME", "BOOLEAN", "BINARY", "UUID", "VARIANT", "ARRAY<INT>"]  # fmt: skip
TYPES = [leaf.lower() for leaf in LEAVES if leaf not in ("VARIANT", "ARRAY<INT>")]
TYPES += ["uint8", "uint64", "decimal256(40, 3)", "timestamp[s, tz=UTC]", "timestamp[ms]", "large_string"]


def comparable(array: pa.Array) -> list[Any]:
    """Values in comparison form."""
    type = array.type
    if pa.types.is_string(type) or pa.types.is_large_string(type):
        array = array.cast(pa.binary())
    if pa.types.is_date32(type):
        return array.cast(pa.int32()).to_pylist()
    if pa.types.is_temporal(type):
        factor = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9}[type.unit]
        return [None if v is None else v * factor for v in array.cast(pa.int64()).to_pylist()]
    return array.to_pylist()


def holds(predicate: Predicate, value: Any) -> bool:
    if isinstance(predicate, IsNull):
        return value is None
    if value is None:
        return False
    if isinstance(predicate, IsNotNull):
        return True
    if isinstance(predicate, IsIn):
        return value in predicate.values
    return COMPARE[predicate.operator](value, predicate.value)


@fewer
@given(st.data(), st.sampled_from(LEAVES), st.sampled_from(TYPES), st.sampled_from([("a",), ("a", "b")]))
def test_skipped_row_groups_contain_no_matching_row(data: st.DataObject, leaf: str, type: str, path: Path) -> None:
    value = st.sampled_from(VALUES)
    field = value if len(path) == 1 else st.one_of(value, value.map(lambda v: fields(b=v)))
    row = st.one_of(st.none(), value, field.map(lambda v: fields(a=v)), value.map(lambda v: fields(c=v)))
    group = st.lists(row, min_size=3, max_size=3)
    groups = data.draw(st.lists(group, min_size=1, max_size=4))
    file = written(groups, f"a {leaf}" if len(path) == 1 else f"a STRUCT<b: {leaf}>")
    found = [comparable(variant.get(column(rows), path, type)) for rows in groups]
    literals = [v for part in found for v in part if v is not None and v == v] or [0]
    literal = data.draw(st.sampled_from(literals))
    predicate = data.draw(
        st.one_of(
            st.sampled_from(sorted(COMPARE)).map(lambda operator: Comparison(operator, literal)),
            st.sampled_from([IsNull(), IsNotNull(), IsIn((literal,))]),
        )
    )
    node = file.schema.find("v")
    assert node is not None
    for rows, row_group in zip(found, file.row_groups, strict=True):
        if not may_match(node, row_group, VariantPredicate(path, type, predicate)):
            assert not any(holds(predicate, value) for value in rows)


@pytest.mark.spec("shredding.skipping.own-type")
def test_integers_in_the_residual_of_duckdb_retain_the_row_group(tmp_path: FilePath) -> None:
    source, path = tmp_path / "source.json", tmp_path / "v.parquet"
    source.write_bytes(b"\n".join(orjson.dumps({"id": n, "mag": n / 2}) for n in range(5000)))
    shredding = "SHREDDING {v: 'STRUCT(id BIGINT, mag DOUBLE)'}"
    with duckdb.connect() as connection:
        connection.sql(f"CREATE TABLE t AS SELECT json::VARIANT AS v FROM read_json_objects('{source}')")
        connection.sql(f"COPY t TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048, {shredding})")
    with ParquetFile(path) as file:
        found = [variant.get(chunk, "$.id", "bigint").to_pylist() for chunk in file.read()["v"].chunks]
        for predicate in (Comparison("==", 4999), Comparison("<", 10), Comparison("<", 0)):
            for values, answer in zip(found, match(file, "$.id", "bigint", predicate), strict=True):
                assert answer or not any(holds(predicate, value) for value in values)


@given(st.floats(allow_nan=False) | st.floats(-1e-37, 1e-37) | st.sampled_from([float.fromhex(text) for text in (
    "0x1.fffffep127", "0x1.ffffffp127", "0x1.fffffefffffffp127", "-0x1.ffffffp127", "0x1p-149", "0x1p-150", "0x1p-126",
)]))  # fmt: skip
def test_bounds_cast_to_single_precision_contain_the_value_rounded_by_numpy(value: float) -> None:
    cast = monotone_cast(pa.float64(), pa.float32())
    assert cast is not None
    low, high = cast.bound(value, False), cast.bound(value, True)
    with np.errstate(over="ignore"):
        rounded = np.float32(value)
    assert low <= float(rounded) <= high
    if np.isfinite(low) and np.isfinite(high):  # and no wider than some steps of single precision
        assert high - low <= 5 * float(np.spacing(abs(rounded)))
