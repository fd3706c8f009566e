"""JSON made to hurt: refused with row, byte and reason, or taken, in time and memory bounded by its length."""

from __future__ import annotations

import resource
import time
from typing import Any

import pyarrow as pa
import pytest

from pqext import variant
from pqext.core.base.errors import VariantError, VariantLimitError
from reference import variant_value as reference
from reference.pace import SLOWER

SCHEMAS = [None, "a INT", "ARRAY<ARRAY<INT>>", "DECIMAL(38,10)"]
LONG = 1_000_000


def parse_errors(text: str | bytes, **options: Any) -> list[VariantError]:
    """The errors of every way to parse the text, as the second row of a column and the second line of a file."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    errors = []
    for schema in SCHEMAS:
        with pytest.raises(VariantError) as caught:
            variant.parse_json(pa.array([b"1", raw]), shredding=schema, **options)
        assert caught.value.row == 1
        errors.append(caught.value)
        found = variant.parse_json(pa.array([b"1", raw, b"2"]), shredding=schema, on_error="null", **options)
        assert found.is_null().to_pylist() == [False, True, False]
        if b"\n" not in raw:
            with pytest.raises(VariantError, match="line 2") as in_lines:
                variant.parse_json_lines(b"1\n" + raw + b"\n2", shredding=schema, **options)
            assert in_lines.value.offset == caught.value.offset
    return errors


@pytest.mark.parametrize(
    ("text", "offset", "reason"),
    [
        ("[" * 10_000, 1000, "max_depth"),
        ('{"a":' * 10_000, 5000, "max_depth"),
        ("1e400", 0, "too large for a double"),
        ("[-1e400]", 1, "too large for a double"),
        ("1" * LONG, 0, "too large for a double"),
        ("1" * LONG + "e-999999x", LONG + 8, "follows the end"),
        ("1e" + "9" * LONG, 0, "too large for a double"),
        ("-" * LONG, 1, "digit"),
        ("0" * LONG, 0, "leading zero"),
        ('"\\ud800"', 1, "surrogate"),
        ('["\\udfff\\ud800"]', 2, "surrogate"),
        ('"\ud800"', 1, "not UTF-8"),
        ("\ufeff{}", 0, "no JSON value starts"),
        ('{"a":"\x00"}', 6, "control character"),
        ("\x00", 0, "no JSON value starts"),
        (b"\xff\xfe1\x00", 0, "not UTF-8"),
        (b'{"\xc0\x80":1}', 2, "not UTF-8"),
        ("[1," * 900, 2700, "ends within a value"),
        ('"' + "\\" * (LONG + 1), LONG + 1, "ends within a string"),
        ('"' + "a" * LONG, LONG + 1, "ends within a string"),
        ("[" + "1," * LONG, 2 * LONG + 1, "ends within a value"),
    ],
)
def test_hostile_text_is_rejected_with_row_byte_and_reason(text: str | bytes, offset: int, reason: str) -> None:
    for error in parse_errors(text):
        assert error.offset == offset
        assert reason in str(error)


def test_depth_and_length_limits_are_exact() -> None:
    for error in parse_errors("[" * 10_000, max_depth=9_999) + parse_errors('"' + "x" * 2000 + '"', max_bytes=2001):
        assert isinstance(error, VariantLimitError)
    assert variant.parse_json(pa.array(['"' + "x" * 2000 + '"']), max_bytes=2002).null_count == 0


def test_deep_documents_within_the_limit_are_shredded_to_the_schema_depth() -> None:
    deep = "[" * 20_000 + "]" * 20_000
    array = variant.parse_json(pa.array([deep]), max_depth=20_000, shredding="ARRAY<ARRAY<INT>>")
    assert variant.to_json(array).to_pylist() == [deep]
    object = '{"a":' * 20_000 + "1" + "}" * 20_000
    array = variant.parse_json(pa.array([object]), max_depth=20_000, shredding="a STRUCT<a: STRUCT<a: INT>>")
    assert variant.to_json(array).to_pylist() == [object]


def test_numbers_of_a_million_digits_are_rounded_once() -> None:
    for text, value in (
        ("0." + "3" * LONG, 1 / 3),
        ("1" + "0" * LONG + "e-" + str(LONG), 1.0),
        ("0." + "0" * LONG + "1", 0.0),
        ("-0e" + "9" * LONG, -0.0),
        ("1.7976931348623157" + "0" * LONG + "e308", 1.7976931348623157e308),
    ):
        for options in ({}, {"numbers": "double"}, {"shredding": "DOUBLE"}):
            array = variant.parse_json(pa.array([text]), **options)  # type: ignore[arg-type]
            row = variant.unshred(array)[0].as_py()
            assert repr(reference.decode(row["metadata"], row["value"])) == repr(("double", value))


@pytest.mark.slow
def test_document_of_16_million_elements_uses_bounded_memory() -> None:
    text = "[" + "0," * (1 << 24) + "0]"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    array = variant.parse_json(pa.array([text]))
    assert len(array[0]["value"].as_buffer()) == 5 + ((1 << 24) + 2) * 4 + ((1 << 24) + 1) * 2
    del array
    array = variant.parse_json(pa.array([text]), shredding="ARRAY<BIGINT>")
    assert len(array.field("typed_value").values) == (1 << 24) + 1
    assert time.process_time() - start < 30 * SLOWER
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 3 << 20  # KiB


def test_colliding_keys_cost_no_more_than_others() -> None:
    wide = "{" + ",".join(f'"{i}":0' for i in range(200_000)) + "}"
    many = [f'{{"{i}":{{"{i + 1}":[{{"{i + 2}":0}}]}}}}' for i in range(20_000)]
    start = time.process_time()
    variant.parse_json(pa.array([wide] * 3), shredding={"schema": "`7` INT, `nothing` INT"})
    variant.parse_json(pa.array(many), shredding="`7` STRUCT<`8`: ARRAY<STRUCT<`9`: INT>>>")
    assert time.process_time() - start < 3 * SLOWER


def test_shape_repeated_at_every_schema_node_is_shredded_at_each() -> None:
    schema = "STRUCT<" + ", ".join(f"`{i}`: STRUCT<a: INT>" for i in range(1000)) + ">"
    text = "{" + ",".join(f'"{i}":{{"a":{i}}}' for i in range(1000)) + "}"
    array = pa.array([text] * 20)
    start = time.process_time()
    found = variant.parse_json(array, shredding=schema)
    assert time.process_time() - start < 3 * SLOWER
    assert found.equals(variant.shred(variant.parse_json(array), schema))
