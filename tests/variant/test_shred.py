"""Shredding agrees with the slow twin on every column, and keeps every value."""

from __future__ import annotations

import os
from contextlib import suppress
from decimal import Context, Decimal
from pathlib import Path

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.variant.shredding.schema import ShreddingSchema, shredding_schema, storage_struct
from pqext.variant.types import variant_type
from reference import variant_shred as reference
from reference.variant_strategies import canonical_variants, fewer, schemas, variants


def column(rows: list[tuple[bytes, bytes] | None]) -> pa.StructArray:
    return pa.array([row and {"metadata": row[0], "value": row[1]} for row in rows], variant_type())


def single_row(value: bytes, names: list[str] | None = None) -> pa.StructArray:
    return column([(reference.encode_metadata(names or []), value)])


def integer(number: int) -> bytes:
    return reference.primitive("int32", number)


def text(string: str) -> bytes:
    return reference.primitive("string", string)


def expected(rows: list[tuple[bytes, bytes] | None], schema: ShreddingSchema, same: bool = False) -> pa.StructArray:
    columns = []
    for row in rows:
        if row is None:
            columns.append(None)
            continue
        value = reference.decode(row[1], reference.decode_metadata(row[0]))
        columns.append({"metadata": row[0], **reference.shred(value, schema, same=same)})
    return pa.array(columns, storage_struct(schema))


rows_strategy = st.lists(st.one_of(st.none(), variants()), min_size=1, max_size=6)


@fewer
@given(rows_strategy, schemas(), st.booleans())
def test_every_column_matches_the_reference(
    rows: list[tuple[bytes, bytes] | None], schema: ShreddingSchema, same: bool
) -> None:
    shredded = variant.shred(column(rows), schema, coerce="exact" if same else "equivalent")
    shredded.validate(full=True)
    assert shredded.type == storage_struct(schema)
    assert bytewise(shredded) == bytewise(expected(rows, schema, same))


@fewer
@given(st.lists(st.one_of(st.none(), canonical_variants()), min_size=1, max_size=6), schemas())
def test_exact_coercion_preserves_canonical_values_byte_for_byte(
    rows: list[tuple[bytes, bytes] | None], schema: ShreddingSchema
) -> None:
    shredded = variant.shred(column(rows), schema, coerce="exact")
    assert variant.unshred(shredded, strict=True).equals(column(rows))


def test_exact_coercion_leaves_unusual_encodings_in_the_residual() -> None:
    long_form = b"\x40" + (3).to_bytes(4, "little") + b"abc"
    too_many_digits = reference.primitive("decimal4", (2**31 - 1, 2))
    for value, leaf in ((long_form, "STRING"), (too_many_digits, "DECIMAL(9,2)"), (too_many_digits, "DECIMAL(18,2)")):
        shredded = variant.shred(single_row(value), leaf, coerce="exact")
        assert shredded.field("typed_value").to_pylist() == [None]
        assert variant.unshred(shredded).equals(single_row(value))


_DECIMALS = st.tuples(
    st.one_of(st.integers(-(10**17), 10**17), st.integers(-(10**38) + 1, 10**38 - 1)), st.integers(0, 38)
)


@fewer
@given(st.lists(_DECIMALS, min_size=1, max_size=30))
def test_json_coercion_stores_decimals_as_doubles_if_the_text_is_equal(numbers: list[tuple[int, int]]) -> None:
    for unscaled, scale in [*numbers, (25, 1), (250, 2), (10, 1), (0, 1), (-5, 4), (5, 5), (10**16, 1), (3, 0)]:
        text = format(Decimal(unscaled).scaleb(-scale, Context(prec=60)), "f")
        text = text.rstrip("0").rstrip(".") if "." in text else text
        array = single_row(reference.primitive("decimal16", (unscaled, scale)))
        assert variant.to_json(array).to_pylist() == [text]
        shredded = variant.shred(array, "DOUBLE", coerce="json")
        alike = scale > 0 and Decimal(repr(float(text))) == Decimal(text)  # Python prints the fewest digits, too
        assert shredded.field("typed_value").to_pylist() == [float(text) if alike else None]
        (back,) = variant.to_json(variant.unshred(shredded)).to_pylist()
        assert Decimal(back) == Decimal(text)
        assert alike or back == text


def test_json_coercion_otherwise_matches_equivalent_coercion() -> None:
    array = column([(reference.encode_metadata([]), value) for value in (integer(2), text("x"), b"\0")])
    for leaf in ("DECIMAL(9,2)", "DOUBLE", "STRING"):
        assert variant.shred(array, leaf, coerce="json").equals(variant.shred(array, leaf))


def bytewise(array: pa.Array) -> list[object]:
    """Plain Python values in which NaN equals itself and times are integers."""
    type = array.type
    if pa.types.is_struct(type):
        parts = [bytewise(array.field(i)) for i in range(type.num_fields)]
        rows = zip(zip(*parts, strict=True), array.is_valid().to_pylist(), strict=True)
        return [row if valid else None for row, valid in rows]
    if pa.types.is_list(type):
        values = bytewise(array.values)
        offsets = array.offsets.to_pylist()
        return [
            values[a:b] if valid else None
            for a, b, valid in zip(offsets, offsets[1:], array.is_valid().to_pylist(), strict=False)
        ]
    if pa.types.is_floating(type):
        return [None if value is None else repr(value) for value in array.to_pylist()]
    if pa.types.is_temporal(type):
        return array.cast(pa.int32() if pa.types.is_date32(type) else pa.int64()).to_pylist()
    return array.to_pylist()


@fewer
@given(rows_strategy, schemas())
def test_shredding_and_reconstruction_preserve_every_value(
    rows: list[tuple[bytes, bytes] | None], schema: ShreddingSchema
) -> None:
    rebuilt = variant.unshred(variant.shred(column(rows), schema), strict=True)
    rebuilt.validate(full=True)
    assert rebuilt.type == variant_type()
    for before, after in zip(rows, rebuilt.to_pylist(), strict=True):
        if before is None:
            assert after is None
            continue
        names = reference.decode_metadata(before[0])
        assert after["metadata"] == before[0]
        assert reference.equivalent(reference.decode(after["value"], names)) == reference.equivalent(
            reference.decode(before[1], names)
        )


@fewer
@given(rows_strategy, schemas(), st.integers(0, 5), st.integers(0, 5))
def test_slices_and_chunks_are_shredded_like_the_full_array(
    rows: list[tuple[bytes, bytes] | None], schema: ShreddingSchema, start: int, length: int
) -> None:
    array = column(rows)
    whole = variant.shred(array, schema)
    assert bytewise(variant.shred(array.slice(start, length), schema)) == bytewise(whole)[start : start + length]
    chunked = variant.shred(pa.chunked_array([array.slice(0, start), array.slice(start)]), schema)
    assert isinstance(chunked, pa.ChunkedArray)
    assert [row for chunk in chunked.chunks for row in bytewise(chunk)] == bytewise(whole)


@pytest.mark.spec("shredding.value.typed", "shredding.value.residual", "shredding.primitive.one")
def test_value_is_stored_in_exactly_one_column() -> None:
    empty = reference.encode_metadata([])
    array = column([(empty, integer(34)), (empty, b"\0"), (empty, text("n/a")), (empty, integer(100))])
    shredded = variant.shred(array, "BIGINT")
    assert shredded.field("value").to_pylist() == [None, b"\0", text("n/a"), None]
    assert shredded.field("typed_value").to_pylist() == [34, None, None, 100]


@pytest.mark.spec("shredding.array.typed", "shredding.array.present")
def test_arrays_have_elements_for_every_value_including_nulls() -> None:
    empty = reference.encode_metadata([])
    arrays = [[text("comedy"), text("drama")], [text("horror"), b"\0"], []]
    array = column(
        [(empty, reference.array_of(elements)) for elements in arrays] + [(empty, b"\0"), (empty, text("x"))]
    )
    shredded = variant.shred(array, "ARRAY<STRING>")
    assert shredded.field("value").to_pylist() == [None, None, None, b"\0", text("x")]
    assert shredded.field("typed_value").to_pylist() == [
        [{"value": None, "typed_value": "comedy"}, {"value": None, "typed_value": "drama"}],
        [{"value": None, "typed_value": "horror"}, {"value": b"\0", "typed_value": None}],
        [],
        None,
        None,
    ]
    assert not shredded.type.field("typed_value").type.value_field.nullable


EVENTS = ["click", "email", "error_msg", "event_ts", "event_type"]


def event(**fields: bytes) -> bytes:
    return reference.object_of([(EVENTS.index(name), value) for name, value in sorted(fields.items())])


@pytest.mark.spec(
    "shredding.object.typed",
    "shredding.object.missing",
    "shredding.object.null",
    "shredding.object.disjoint",
    "shredding.object.empty",
    "shredding.value.partial",
    "shredding.value.exclusive",
)
def test_objects_are_stored_like_in_the_specification() -> None:
    stamp = reference.primitive("timestamp", 1729794114937)
    values = [
        event(event_type=text("noop"), event_ts=stamp),
        event(event_type=text("login"), event_ts=stamp, email=text("user@example.com")),
        event(error_msg=text("malformed")),
        text("malformed: not an object"),
        event(event_ts=stamp, click=text("_button")),
        event(event_type=b"\0", event_ts=stamp),
        event(event_type=text("noop"), event_ts=text("2024-10-24")),
        event(),
        b"\0",
    ]
    array = column([(reference.encode_metadata(EVENTS), value) for value in values])
    shredded = variant.shred(array, "event_type STRING, event_ts TIMESTAMP")
    typed = shredded.field("typed_value")
    kind, when = typed.field("event_type"), typed.field("event_ts")
    assert shredded.field("value").to_pylist() == [
        None,
        event(email=text("user@example.com")),
        event(error_msg=text("malformed")),
        text("malformed: not an object"),
        event(click=text("_button")),
        None,
        None,
        None,
        b"\0",
    ]
    assert typed.is_valid().to_pylist() == [True, True, True, False, True, True, True, True, False]
    assert kind.field("value").to_pylist() == [None, None, None, None, None, b"\0", None, None, None]
    assert kind.field("typed_value").to_pylist() == ["noop", "login", None, None, None, None, "noop", None, None]
    assert when.field("value").to_pylist() == [None] * 6 + [text("2024-10-24"), None, None]
    assert [v is not None for v in when.field("typed_value").to_pylist()] == [
        True, True, False, False, True, True, False, False, False,
    ]  # fmt: skip
    assert not any(member.nullable for member in typed.type)


@pytest.mark.parametrize(
    ("schema", "value", "typed"),
    [
        ("DECIMAL(9,2)", integer(2), True),
        ("BIGINT", reference.primitive("decimal4", (200, 2)), True),
        ("BIGINT", reference.primitive("decimal4", (250, 2)), False),
        ("DECIMAL(9,2)", reference.primitive("decimal8", (12345678900, 4)), True),
        ("DECIMAL(9,2)", reference.primitive("decimal4", (1, 3)), False),
        ("DECIMAL(9,2)", integer(10**7), False),
        ("TINYINT", integer(127), True),
        ("TINYINT", integer(128), False),
        ("DOUBLE", integer(1), False),
        ("DOUBLE", reference.primitive("float", 1.5), False),
        ("FLOAT", reference.primitive("double", 1.5), False),
        ("TIMESTAMP_NS", reference.primitive("timestamp", 5), True),
        ("TIMESTAMP", reference.primitive("timestamp_nanos", 5000), True),
        ("TIMESTAMP", reference.primitive("timestamp_nanos", 5001), False),
        ("TIMESTAMP", reference.primitive("timestamp_ntz", 5), False),
        ("TIMESTAMP_NS", reference.primitive("timestamp", 2**62), False),
        ("BINARY", text("a"), False),
        ("STRING", reference.primitive("binary", b"a"), False),
        ("TIME", reference.primitive("time", 1), True),
    ],
)
def test_leaf_accepts_exact_values_of_its_equivalence_class(schema: str, value: bytes, typed: bool) -> None:
    shredded = variant.shred(single_row(value), schema)
    assert shredded.field("typed_value").is_valid().to_pylist() == [typed]
    assert shredded.field("value").to_pylist() == [None if typed else value]


def test_exact_coercion_accepts_only_the_type_of_the_leaf() -> None:
    assert variant.shred(single_row(integer(2)), "BIGINT", coerce="exact").field("typed_value").to_pylist() == [None]
    assert variant.shred(single_row(integer(2)), "INT", coerce="exact").field("typed_value").to_pylist() == [2]


@pytest.mark.spec("shredding.metadata.top-level", "shredding.metadata.names")
def test_metadata_is_shared_with_the_input_and_names_every_field() -> None:
    value = reference.object_of([(0, integer(1)), (1, reference.object_of([(2, integer(2))]))])
    array = single_row(value, ["a", "b", "c"])
    shredded = variant.shred(array, "a INT, b STRUCT<c INT>")
    assert shredded.field("metadata").to_pylist() == array.field("metadata").to_pylist()
    assert shredded.field("metadata").buffers()[2].address == array.field("metadata").buffers()[2].address


def test_shredded_array_is_reshredded() -> None:
    array = single_row(reference.object_of([(0, integer(1)), (1, text("x"))]), ["a", "b"])
    again = variant.shred(variant.shred(array, "a INT"), "b STRING")
    assert again.equals(variant.shred(variant.unshred(variant.shred(array, "a INT")), "b STRING"))


def test_untyped_schema_leaves_variants_unshredded() -> None:
    array = single_row(integer(1))
    assert variant.shred(array, "VARIANT").equals(array)
    assert variant.shred(array, "VARIANT").type == variant_type()


def test_large_and_view_binaries_are_accepted() -> None:
    array = single_row(integer(7))
    parts = [array.field(0).cast(pa.large_binary()), array.field(1).cast(pa.binary_view())]
    loose = pa.StructArray.from_arrays(parts[::-1], names=["value", "metadata"])
    assert variant.shred(loose, "INT").field("typed_value").to_pylist() == [7]


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (b"", "variant.value.layout"),
        (b"\x18\x01", "variant.value.layout"),
        (integer(1) + b"\0", "variant.value.layout"),
        (b"\x02\x01\x07\x00\x01\x00", "variant.object.field-id"),
        (b"\x02\x01\x00\x09\x01\x00", "variant.container.offsets"),
        (b"\x02\x02\x01\x00\x00\x01\x02\x00\x00", "variant.object.order"),
        (b"\x02\x02\x00\x00\x00\x01\x02\x00\x00", "variant.object.unique"),
        (b"\x02\x02\x00\x01\x00\x00\x05\x18\0\0\0\0", "variant.value.layout"),
        (reference.object_of([(0, b"\x05\xff")]), "variant.utf8"),
        (reference.object_of([(1, reference.primitive("time", -1))]), "variant.time.range"),
        (reference.object_of([(1, reference.primitive("time", 86_400_000_000))]), "variant.time.range"),
    ],
)
def test_invalid_values_are_rejected_with_their_row(value: bytes, rule: str) -> None:
    metadata = reference.encode_metadata(["a", "b"])
    with pytest.raises(VariantError) as caught:
        variant.shred(column([(metadata, b"\0"), (metadata, value)]), "a STRING, b TIME")
    assert caught.value.rule == rule
    assert caught.value.row == 1


def test_overlapping_elements_cannot_multiply_the_output() -> None:
    inner = reference.primitive("binary", b"x" * 200)
    count = 100
    overlapping = bytes([3 | 1 << 2, count]) + b"\0\0" * count + len(inner).to_bytes(2, "little") + inner
    with pytest.raises(VariantError) as caught:
        variant.shred(single_row(overlapping), "ARRAY<BINARY>")
    assert caught.value.rule == "variant.container.extent"


@fewer
@given(variants(), schemas(), st.data())
def test_corrupt_bytes_raise_a_typed_error_or_pass(
    row: tuple[bytes, bytes], schema: ShreddingSchema, data: st.DataObject
) -> None:
    parts = [bytearray(part) for part in row]
    for part in parts:
        for _ in range(data.draw(st.integers(0, 2))):
            if part:
                part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
        if data.draw(st.booleans()):
            del part[data.draw(st.integers(0, len(part))) :]
    damaged = column([(bytes(parts[0]), bytes(parts[1]))])
    with suppress(ValueError):
        variant.unshred(variant.shred(damaged, schema))


REAL = Path(os.environ.get("PARQUET_TEST_DATA", "")).parent / "real"


@pytest.mark.skipif(not (REAL / "movies.json").exists(), reason="PARQUET_TEST_DATA is not set")
@pytest.mark.parametrize("name", ["movies.json", "flights-20k.json"])
def test_real_records_round_trip(name: str) -> None:
    records = orjson.loads((REAL / name).read_bytes())
    array = variant.parse_json(pa.array([orjson.dumps(record) for record in records]))
    rebuilt = variant.unshred(variant.shred(array, "infer"), strict=True)
    for before, after in zip(array.to_pylist()[:500], rebuilt.to_pylist()[:500], strict=True):
        names = reference.decode_metadata(before["metadata"])
        assert reference.equivalent(reference.decode(before["value"], names)) == reference.equivalent(
            reference.decode(after["value"], names)
        )


def test_invalid_schema_is_rejected() -> None:
    with pytest.raises(ValueError, match="coerce"):
        variant.shred(single_row(integer(1)), "INT", coerce="loose")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="variant array"):
        variant.shred(pa.array([1]), "INT")
    assert str(shredding_schema("INT")) == "INT"
