"""Validation of shredded columns, of heads alone, and of every row."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.variant import validation
from pqext.variant.faults import MEANINGS
from pqext.variant.shredding.plan import compile_schema
from pqext.variant.shredding.schema import ShreddingSchema, shredding_schema, storage_struct
from reference import variant_shred as reference
from reference.variant_judge import disturbed, judge
from reference.variant_strategies import fewer, schemas, valid_variants

NAMES = ["a", "b", "c"]
METADATA = reference.encode_metadata(NAMES)
EMPTY = reference.encode_metadata([])


def integer(number: int) -> bytes:
    return reference.primitive("int32", number)


def text(string: str) -> bytes:
    return reference.primitive("string", string)


def fields(**values: bytes) -> bytes:
    return reference.object_of([(NAMES.index(name), value) for name, value in sorted(values.items())])


def stored(rows: list[Any], schema: Any, metadata: bytes = METADATA) -> pa.StructArray:
    full = [row and {"metadata": metadata, **row} for row in rows]
    return pa.array(full, storage_struct(shredding_schema(schema)))


def plain(*pairs: tuple[bytes, bytes] | None) -> pa.StructArray:
    return pa.array([p and {"metadata": p[0], "value": p[1]} for p in pairs], variant.variant_type())


def every_rule(array: pa.StructArray, schema: ShreddingSchema) -> list[str]:
    _, counts = validation.examine(array, compile_schema(schema), first_only=False)
    return sorted(Counter({MEANINGS[status].rule: n for status, n in counts.items()}).elements())


@fewer
@given(st.lists(st.one_of(st.none(), valid_variants()), max_size=4), schemas())
def test_shredding_output_is_valid(rows: list[tuple[bytes, bytes] | None], schema: ShreddingSchema) -> None:
    array = variant.shred(plain(*rows), schema)
    assert variant.validate(array) is None
    assert variant.validate(array, "fast") is None
    assert variant.find_faults(array).num_rows == 0


@fewer
@given(valid_variants(), valid_variants(), schemas(), st.data())
def test_modified_columns_are_classified_like_in_the_reference(
    row: tuple[bytes, bytes], other: tuple[bytes, bytes], schema: ShreddingSchema, data: st.DataObject
) -> None:
    names = reference.decode_metadata(row[0])
    shredded = reference.shred(reference.decode(row[1], names), schema)
    columns = disturbed(shredded, schema, lambda n: data.draw(st.integers(0, n - 1)), integer(7))
    known = names[: data.draw(st.integers(0, len(names)))] if data.draw(st.booleans()) else names
    whole = all(name in known for name in names) or not _ids(columns)
    known = known if whole else names
    array = pa.array([{"metadata": reference.encode_metadata(known), **columns}], storage_struct(schema))
    assert every_rule(array, schema) == judge(columns, schema, known)


def _ids(columns: Any) -> bool:
    """Is there a value in the columns that may hold field ids?"""
    if isinstance(columns, dict):
        value = columns.get("value")
        own = value is not None and value[0] & 3 >= 2
        return own or any(_ids(part) for name, part in columns.items() if name != "value")
    return isinstance(columns, list) and any(map(_ids, columns))


FAULTS: list[tuple[str, dict[str, Any], str, str, int | None]] = [
    ("INT", {"value": None, "typed_value": None}, "shredding.value.missing", "value", None),
    ("INT", {"value": text("x"), "typed_value": 1}, "shredding.value.exclusive", "value", 0),
    ("ARRAY<INT>", {"value": text("x"), "typed_value": []}, "shredding.value.exclusive", "value", 0),
    (
        "ARRAY<INT>", {"value": None, "typed_value": [{"typed_value": 1}, {}]},
        "shredding.array.present", "typed_value.list.element.typed_value", None,
    ),
    ("ARRAY<INT>", {"value": reference.array_of([]), "typed_value": None}, "shredding.array.typed", "value", 0),
    ("a INT", {"value": text("x"), "typed_value": {"a": {}}}, "shredding.object.residual-kind", "value", 0),
    ("a INT", {"value": fields(), "typed_value": None}, "shredding.object.typed", "value", 0),
    (
        "b INT", {"value": fields(a=text("x"), b=text("y")), "typed_value": {"b": {}}},
        "shredding.object.disjoint", "typed_value.b", 3,
    ),
    (
        "z INT", {"value": None, "typed_value": {"z": {"typed_value": 1}}},
        "shredding.metadata.names", "typed_value.z", None,
    ),
    (
        "a STRUCT<b: INT>", {"value": None, "typed_value": {"a": {"value": b"\x0c", "typed_value": {"b": {}}}}},
        "variant.value.layout", "typed_value.a.value", 0,
    ),
    ("STRING", {"value": b"\x09a\xff", "typed_value": None}, "variant.utf8", "value", 2),
    ("TIME", {"value": None, "typed_value": 86_400_000_000}, "variant.time.range", "typed_value", None),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "row", "rule", "column", "offset"), FAULTS)
@pytest.mark.spec(
    "shredding.value.missing", "shredding.value.exclusive", "shredding.array.present", "shredding.array.typed",
    "shredding.object.residual-kind", "shredding.object.typed", "shredding.object.disjoint",
    "shredding.metadata.names",
)  # fmt: skip
def test_fault_is_reported_with_row_column_byte_and_rule(
    schema: str, row: dict[str, Any], rule: str, column: str, offset: int | None
) -> None:
    good = {"value": b"\0", "typed_value": None}
    chunk = stored([good, None, row, row], schema)
    array = pa.chunked_array([stored([good], schema), chunk])
    found = variant.validate(array)
    assert found is not None
    assert (found.row, found.rule, found.column, found.offset) == (3, rule, column, offset)
    table = variant.find_faults(array)
    assert table["row"].to_pylist() == [3, 4]
    assert set(table["rule"].to_pylist()) == {rule}
    assert table["offset"].to_pylist() == [offset, offset]
    assert table["column"].to_pylist() == [column, column]
    with pytest.raises(VariantError) as caught:
        variant.validate(array, on_fault="raise")
    assert (caught.value.rule, caught.value.row, caught.value.offset) == (rule, 3, offset)
    assert caught.value.column == column


def test_typed_strings_must_be_utf8() -> None:
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff"))
    array = pa.StructArray.from_arrays([pa.array([EMPTY]), broken], names=["metadata", "typed_value"])
    found = variant.validate(array)
    assert found is not None
    assert (found.rule, found.column, found.offset) == ("variant.utf8", "typed_value", 1)
    assert variant.validate(array, "fast") is None


def test_typed_decimals_have_at_most_the_digits_of_their_type() -> None:
    too_wide = pa.array([12_345_678], pa.decimal128(38, 2)).cast(pa.decimal128(38, 2)).view(pa.decimal128(4, 2))
    array = pa.StructArray.from_arrays([pa.array([EMPTY]), too_wide], names=["metadata", "typed_value"])
    found = variant.validate(array)
    assert found is not None
    assert found.rule == "variant.decimal.precision"


HEADS = [
    ("variant.metadata.version", b"\x12\x00\x00", b"\0", 0),
    ("variant.metadata.layout", b"\x11\x01\x00", b"\0", 0),
    ("variant.metadata.offsets", b"\x11\x01\x00\x01ab", b"\0", 3),
    ("variant.value.layout", EMPTY, b"", 0),
    ("variant.value.layout", EMPTY, b"\x0c", 0),
    ("variant.value.layout", EMPTY, b"\x03\x01\x00\x02\x00", 0),
    ("variant.value.layout", EMPTY, b"\0\0", 1),
]
INNER = [
    (b"\x01\x02\x00\x03\x02ab", b"\0"),
    (b"\x11\x01\x00\x02a\xff", b"\0"),
    (EMPTY, b"\x03\x01\x00\x01\x0c"),
    (EMPTY, b"\x05\xff"),
    (EMPTY, b"\x02\x01\x05\x00\x01\x00"),
]


@pytest.mark.parametrize(("rule", "metadata", "value", "offset"), HEADS)
@pytest.mark.spec("variant.metadata.version", "variant.metadata.layout", "variant.value.layout")
def test_fast_validation_checks_value_headers(rule: str, metadata: bytes, value: bytes, offset: int) -> None:
    array = plain((EMPTY, b"\0"), None, (metadata, value))
    for mode in ("fast", "full"):
        found = variant.validate(array, mode)  # type: ignore[arg-type]
        assert found is not None
        assert (found.row, found.rule, found.offset) == (2, rule, offset)


@pytest.mark.parametrize(("metadata", "value"), INNER)
def test_fast_validation_skips_nested_values(metadata: bytes, value: bytes) -> None:
    array = plain((metadata, value))
    assert variant.validate(array, "fast") is None
    assert variant.validate(array) is not None


def test_faults_of_all_rows_match_those_of_single_rows() -> None:
    pairs = [(metadata, value) for _, metadata, value, _ in HEADS] + INNER + [(METADATA, fields(a=b"\0"))]
    table = variant.find_faults(plain(*pairs))
    alone = [variant.validate(plain(pair)) for pair in pairs]
    assert alone.pop() is None
    assert table.to_pylist() == [
        {"row": row, "column": f.column, "offset": f.offset, "rule": f.rule, "message": f.message}
        for row, f in enumerate(alone)
        if f is not None
    ]
    assert table.slice(0, 3).equals(variant.find_faults(plain(*pairs), limit=3))
    assert variant.find_faults(plain(*pairs), limit=0).num_rows == 0
    assert variant.find_faults(plain(*pairs), "fast")["row"].to_pylist() == list(range(len(HEADS)))


def test_slices_and_chunks_are_validated_by_their_own_rows() -> None:
    schema = "a ARRAY<STRING>"
    good = {"value": None, "typed_value": {"a": {"typed_value": [{"typed_value": "x"}]}}}
    bad = {"value": None, "typed_value": {"a": {"typed_value": [{"typed_value": "x"}, {}]}}}
    array = stored([bad, good, None, bad, good], schema)
    assert variant.find_faults(array.slice(1))["row"].to_pylist() == [2]
    assert variant.find_faults(array.slice(1, 2)).num_rows == 0
    chunked = pa.chunked_array([array.slice(3), array.slice(0, 2)])
    assert variant.find_faults(chunked)["row"].to_pylist() == [0, 2]


def test_arguments_are_checked_before_any_work() -> None:
    array = plain((EMPTY, b"\0"))
    wrong: list[dict[str, Any]] = [{"mode": "quick"}, {"max_depth": 0}, {"max_depth": 1 << 31}]
    for arguments in wrong:
        with pytest.raises(ValueError, match=r"mode|max_depth"):
            variant.validate(array, **arguments)
        with pytest.raises(ValueError, match=r"mode|max_depth"):
            variant.find_faults(array, **arguments)
    with pytest.raises(ValueError, match="on_fault"):
        variant.validate(array, on_fault="explode")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="limit"):
        variant.find_faults(array, limit=-1)
    with pytest.raises(TypeError):
        variant.validate(pa.array([1]))
    optional = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.uint8())])
    with pytest.raises(VariantError, match=r"shredding\.types"):
        variant.validate(pa.array([], optional))
