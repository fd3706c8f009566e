"""JSON to variants: what is JSON and what is not, numbers, keys, dictionaries; against the reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.core.base.threads import Workers
from pqext.variant import Variant
from reference import variant_json
from reference import variant_value as reference

EXAMPLES = Path(variant.__file__).parent.parent / "examples"


def rows(array: pa.Array) -> list[reference.Value | None]:
    """The values as the reference decodes them, which checks every rule of the encoding."""
    return [None if row is None else reference.decode(row["metadata"], row["value"]) for row in array.to_pylist()]


def equal(a: Any, b: Any) -> bool:
    """Equality of decoded values that tells -0.0 from 0.0 and does not look at the order of fields."""
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


def parse_one(text: str | bytes, **options: Any) -> reference.Value:
    array = variant.parse_json(pa.array([text], pa.string() if isinstance(text, str) else pa.binary()), **options)
    value = rows(array)[0]
    assert value is not None
    return value


# Bytes that Spark 4.3's parse_json gave for the same text.
SPARK = {
    "1": "0c01", "-0": "0c00", "2.50": "2002fa000000", "2.5000000000": "240a00ba1dd205000000",
    "0.0000000001": "240a0100000000000000", "0.00000000000000000001": "281401000000000000000000000000000000",
    "0.000000000000000000000000000000000000001": "1c832d55b12fc7d537", "1e2": "1c0000000000005940",
    "1e-400": "1c0000000000000000", "9223372036854775807": "18ffffffffffffff7f",
    "9223372036854775808": "280000000000000000800000000000000000", "-9223372036854775808": "180000000000000080",
    "-9223372036854775809": "2800ffffffffffffff7fffffffffffffffff",
    "99999999999999999999999999999999999999": "2800ffffffff3f228a097ac4865aa84c3b4b",
    "999999999999999999999999999999999999999": "1c1d4a9cf487820748",
    "1.00000000000000000000000000000000000000000": "1c000000000000f03f",
    "123456789.123456789": "2409155fd0ac4b9bb601", "123456789012345678.5": "28011181e97df41022110000000000000000",
    "0.10": "20020a000000", "100.0": "2001e8030000",
    "1.5e0": "1c000000000000f83f", '"\\u0000\\ud83d\\ude00"': "1500f09f9880",
    "12345678901234567890.12": "2802143a20d80b3b12ed4200000000000000", "999999999.9": "2401ffe30b5402000000",
    "0.999999999": "2009ffc99a3b", "9999999999": "18ffe30b5402000000",
}  # fmt: skip


@pytest.mark.parametrize(("text", "encoded"), SPARK.items())
def test_scalars_are_encoded_like_in_spark(text: str, encoded: str) -> None:
    assert Variant.from_json(text).value.hex() == encoded


@pytest.mark.parametrize("zeros", [1, 9, 18, 25, 38, 41])
def test_sign_of_zero_is_preserved_for_numbers_with_a_point(zeros: int) -> None:
    text = "-0." + "0" * zeros  # Spark makes a decimal of it, 0 with a scale; DuckDB keeps the sign
    for numbers in ("decimal", "double"):
        assert Variant.from_json(text, numbers=numbers).value.hex() == "1c0000000000000080"
    assert Variant.from_json(text).to_json() == "-0.0"
    assert Variant.from_json("-0").to_json() == "0"  # an integer
    assert Variant.from_json(text) == Variant.from_json("0e0")


@given(st.from_regex(r"\A-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,41})?([eE][+-]?[0-9]{1,3})?\Z"))
@example("-0.0e-0")
@example("1" + "0" * 37)
@example("1" + "0" * 38)
@example("0." + "0" * 37 + "1")
@example("0." + "0" * 38 + "1")
@example("123456789012345678.9")
@example("1234567890123456789.0")
@example("9007199254740993e0")
@example("2.2250738585072011e-308")
@example("179769313486231580793728971405301e276")
@example("4.35e-5")
def test_numbers_are_exact_or_rounded_once(text: str) -> None:
    try:
        expected = variant_json.number(text)
    except ValueError:
        with pytest.raises(VariantError, match="too large for a double"):
            Variant.from_json(text)
        return
    assert equal(parse_one(text), expected)
    assert equal(parse_one(f"[{text}]"), ("array", [expected]))


SPACE = st.sampled_from(["", "", "", " ", "\n", "\t ", "\r\n"])
STRINGS = st.one_of(
    st.sampled_from(["", "a", "b", "aa", "ab", "é", "\x00", '"', "\\", "x" * 7, "x" * 8, "x" * 9, "y" * 40, "/"]),
    st.text(max_size=70),
)


@st.composite
def documents(draw: st.DrawFn, depth: int = 4) -> str:
    """JSON text with all the freedom of its grammar."""
    kind = draw(st.integers(0, 9 if depth else 5))
    if kind <= 1:
        return draw(st.sampled_from(["null", "true", "false"]))
    if kind <= 3:
        return draw(st.one_of(st.integers().map(str), st.floats(allow_nan=False, allow_infinity=False).map(repr)))
    if kind <= 5:
        return draw(literals())
    inner = documents(depth - 1)
    count = draw(st.integers(0, 5))
    space = [draw(SPACE) for _ in range(4)]
    if kind <= 7:
        elements = f"{space[0]},{space[1]}".join(draw(inner) for _ in range(count))
        return f"[{space[2]}{elements}{space[3]}]"
    fields = f"{space[0]},{space[1]}".join(
        f"{draw(literals())}{space[2]}:{space[3]}{draw(inner)}" for _ in range(count)
    )
    return f"{{{space[2]}{fields}{space[3]}}}"


@st.composite
def literals(draw: st.DrawFn) -> str:
    """A string literal, escaped in one of several ways."""
    text = draw(STRINGS)
    way = draw(st.integers(0, 2))
    if way == 0:
        return json.dumps(text, ensure_ascii=False)
    if way == 1:
        return json.dumps(text).replace("/", "\\/")
    units = text.encode("utf-16-be")
    return '"' + "".join(f"\\u{units[i]:02X}{units[i + 1]:02x}" for i in range(0, len(units), 2)) + '"'


@given(st.lists(documents(), min_size=1, max_size=5), st.sampled_from(["error", "first", "last"]))
def test_documents_match_the_standard_library(texts: list[str], duplicate_keys: Any) -> None:
    expected: list[reference.Value | None] = []
    for text in texts:
        try:
            expected.append(variant_json.parse(text, duplicate_keys))
        except ValueError:
            expected.append(None)
    array = variant.parse_json(pa.array(texts), duplicate_keys=duplicate_keys, on_error="null")
    assert equal(rows(array), expected)
    assert variant.validate(array) is None


@given(documents(), st.data())
def test_corrupt_documents_are_rejected_like_in_the_standard_library(text: str, data: st.DataObject) -> None:
    raw = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(0, len(raw) - 1)))
        match data.draw(st.integers(0, 2)):
            case 0:
                raw[at : at + 1] = b""
            case 1:
                raw[at:at] = data.draw(
                    st.sampled_from([b'"', b"\\", b",", b"[", b"{", b"0", b"e", b".", b"\xff", b"\x00", b" "])
                )
            case 2 if raw:
                raw[at] = data.draw(st.integers(0, 255))
    try:
        expected = variant_json.parse(raw.decode())
    except (ValueError, RecursionError):
        with pytest.raises(VariantError, match="row 0"):
            parse_one(bytes(raw))
    else:
        assert equal(parse_one(bytes(raw)), expected)


@pytest.mark.parametrize(
    ("text", "offset", "reason"),
    [
        ("", 0, "no JSON value"),
        (" \n", 2, "no JSON value"),
        ("[1", 2, "ends within a value"),
        ('{"a', 3, "ends within a string"),
        ('{"a":1', 6, "ends within a value"),
        ('{"a":1,}', 7, "key must be a string"),
        ("{'a':1}", 1, "key must be a string"),
        ('{"a" 1}', 5, "colon"),
        ('{"a":1 "b":2}', 7, "closing brace"),
        ("[1 2]", 3, "closing bracket"),
        ("[1}", 2, "closing bracket"),
        ("[1,]", 3, "no JSON value starts"),
        ("nul", 0, "only literals"),
        ("NaN", 0, "NaN and Infinity are not JSON"),
        ("Infinity", 0, "NaN and Infinity are not JSON"),
        ("-Infinity", 1, "digit"),
        ("01", 0, "leading zero"),
        ("-01", 1, "leading zero"),
        ("[1.]", 3, "digit"),
        ("[1e]", 3, "digit"),
        ("[-]", 2, "digit"),
        ("+1", 0, "no JSON value starts"),
        ("1e309", 0, "too large"),
        ("1 2", 2, "follows the end"),
        ('{"a":1}}', 7, "follows the end"),
        ('"\t"', 1, "control character"),
        ('"\\x"', 1, "escape"),
        ('"\\u12G4"', 1, "escape"),
        ('"\\ud800"', 1, "surrogate"),
        ('"\\udc00"', 1, "surrogate"),
        ('"\\ud800\\ud800"', 1, "surrogate"),
        ('{"a":{"b":1,"b":2}}', 5, "duplicate key: 'b'"),
        ("\ufeff1", 0, "no JSON value starts"),
        ("1\x00", 1, "follows the end"),
        ('"\x00"', 1, "control character"),
    ],
)
def test_error_names_row_byte_and_reason(text: str, offset: int, reason: str) -> None:
    with pytest.raises(VariantError, match=reason) as caught:
        variant.parse_json(pa.array(["1", None, text]))
    assert (caught.value.row, caught.value.offset) == (2, offset)
    assert rows(variant.parse_json(pa.array(["1", None, text, "2"]), on_error="null")) == [
        ("int8", 1),
        None,
        None,
        ("int8", 2),
    ]


@pytest.mark.parametrize(
    "raw",
    [
        "ff",
        "c080",
        "e08080",
        "eda080",
        "f0808080",
        "f4908080",
        "c3",
        "e282",
        "f09f98",
        "80",
        "f8888080",
        "c3c3",
        "e28282e2",
    ],
)
@pytest.mark.parametrize("before", [0, 1, 7, 8, 15, 16, 63, 64, 100])
@pytest.mark.spec("variant.utf8")
def test_invalid_utf8_is_rejected_at_its_byte(raw: str, before: int) -> None:
    text = b'"' + b"x" * before + bytes.fromhex(raw) + b'"'
    with pytest.raises(UnicodeDecodeError) as expected:
        text.decode()
    with pytest.raises(VariantError, match="not UTF-8") as caught:
        parse_one(text)
    assert caught.value.offset == expected.value.start


@given(st.text())
def test_arbitrary_text_round_trips(text: str) -> None:
    assert parse_one(json.dumps(text, ensure_ascii=False)) == ("string", text)


def test_depth_is_bounded_by_the_limit_instead_of_the_stack() -> None:
    assert Variant.from_json("[" * 1000 + "]" * 1000).to_json() == "[" * 1000 + "]" * 1000
    with pytest.raises(VariantError, match="max_depth") as caught:
        parse_one("[" * 1001 + "]" * 1001)
    assert caught.value.offset == 1000
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    array = variant.parse_json(pa.array([deep]), max_depth=100_000)
    assert variant.to_json(array).to_pylist() == [deep]
    assert variant.validate(array, max_depth=100_000) is None
    with pytest.raises(VariantError, match="max_depth"):
        variant.parse_json(pa.array(["[" * 1_000_001]), max_depth=1_000_000)
    assert parse_one("1", max_depth=0) == ("int8", 1)
    with pytest.raises(VariantError, match="max_depth"):
        parse_one("[]", max_depth=0)


@pytest.mark.parametrize(
    "options", [{"on_error": "ignore"}, {"duplicate_keys": "all"}, {"max_depth": -1}, {"max_depth": 10**7}]
)
def test_unknown_options_are_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        variant.parse_json(pa.array(["1"]), **options)


@pytest.mark.parametrize("wide", [3, 30, 300, 3000])
@pytest.mark.parametrize(("choice", "kept"), [("first", 0), ("last", 2)])
def test_duplicate_keys_option_preserves_one_value_and_its_keys(choice: Any, kept: int, wide: int) -> None:
    fields = [f'"k{i}":{i}' for i in range(wide)]
    for i in range(3):
        fields.insert(i * (len(fields) // 2), f'"twice":{{"x{i}":[{i}]}}')
    array = variant.parse_json(pa.array(["{" + ",".join(fields) + "}"]), duplicate_keys=choice)
    ((kind, value),) = [row for row in rows(array) if row is not None]
    assert (kind, len(value)) == ("object", wide + 1)
    assert value["twice"] == ("object", {f"x{kept}": ("array", [("int8", kept)])})
    names = reference.decode_metadata(array[0]["metadata"].as_py())
    assert set(names) == {f"k{i}" for i in range(wide)} | {"twice", f"x{kept}"}


@pytest.mark.spec("variant.metadata.sorted", "variant.object.order", "variant.utf8")
def test_metadata_contains_the_keys_of_its_row_sorted_by_bytes() -> None:
    texts = ['{"b":1,"a":{"c":2}}', "[]", '{"\\uD834\\uDD1E":1,"\\uffff":2,"":3}', '{"a":[{"a":1},{"z":[{"b":null}]}]}']
    metadata = variant.parse_json(pa.array(texts)).field("metadata").to_pylist()
    assert [reference.decode_metadata(m) for m in metadata] == [
        ["a", "b", "c"], [], ["", "\uffff", "\U0001d11e"], ["a", "b", "z"],
    ]  # fmt: skip
    assert all(m[0] & 0x10 for m in metadata)
    assert metadata[1] == b"\x11\x00\x00"


@pytest.mark.spec("variant.container.count")
@pytest.mark.parametrize("count", [0, 1, 127, 128, 255, 256, 257, 1000, 70_000])
def test_wide_objects_and_arrays_use_the_narrowest_sizes(count: int) -> None:
    object = "{" + ",".join(f'"{i:05}":{i}' for i in reversed(range(count))) + "}"
    array = "[" + ",".join(map(str, range(count))) + "]"
    mixed = f'[{object},{array},{{"00000":1,"{count:06}":{object}}}]'
    got = variant.parse_json(pa.array([object, array, mixed]))
    for value, row in zip(rows_of_large(got), (object, array, mixed), strict=True):
        assert equal(value, json.loads(row))
    head = got.field("value")[0].as_py()[0] >> 2
    assert (head >> 2 & 3) + 1 == max(1, (max(count - 1, 0).bit_length() + 7) // 8)
    assert variant.validate(got) is None


def rows_of_large(array: pa.Array) -> list[Any]:
    """As JSON: the reference decoder is too slow for large values."""
    return [json.loads(text) for text in variant.to_json(array).to_pylist()]


def test_shape_cache_evicts_many_shapes_and_keys() -> None:
    generator = np.random.default_rng(1)
    texts, expected = [], []
    for i in range(30_000):
        names = [f"k{n}" for n in generator.integers(0, 5000 if i % 2 else 12, 6)]
        document = {name: {"n": i, name: [i]} for name in names}
        expected.append(document)
        texts.append(json.dumps(document))
    array = variant.parse_json(pa.array(texts))
    assert rows_of_large(array) == expected
    assert variant.validate(array) is None


def test_any_string_layout_is_accepted() -> None:
    texts = ["1", None, '{"a":"é"}']
    expected = rows(variant.parse_json(pa.array(texts)))
    for kind in (pa.binary(), pa.large_string(), pa.large_binary(), pa.string_view(), pa.binary_view()):
        assert rows(variant.parse_json(pa.array(texts, pa.string()).cast(kind))) == expected
    assert rows(variant.parse_json(pa.array(texts).dictionary_encode())) == expected
    views = pa.DictionaryArray.from_arrays(pa.array(range(len(texts)), pa.int32()), pa.array(texts, pa.string_view()))
    assert rows(variant.parse_json(views)) == expected
    assert rows(variant.parse_json(pa.array(["x", *texts, "y"]).slice(1, 3))) == expected
    assert rows(variant.parse_json(pa.nulls(2))) == [None, None]
    chunked = variant.parse_json(pa.chunked_array([texts, [], texts[:1]]))
    assert isinstance(chunked, pa.ChunkedArray)
    assert rows(chunked) == expected + expected[:1]
    with pytest.raises(VariantError) as caught:
        variant.parse_json(pa.chunked_array([["1", "2"], ["3", "x"]]))
    assert caught.value.row == 3
    with pytest.raises(TypeError, match="expected a binary or string array, not int64"):
        variant.parse_json(pa.array([1]))
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["1"]))  # Arrow takes no rows of it
    for shredding in (None, "infer"):
        with pytest.raises(TypeError, match="expected a binary or string array, not run_end_encoded"):
            variant.parse_json(runs, shredding=shredding)


def test_result_is_a_marked_variant_array() -> None:
    array = variant.parse_json(pa.array(["1", None]))
    assert array.type == variant.variant_type()
    assert (len(array), array.null_count) == (2, 1)
    array.validate(full=True)
    assert variant.parse_json(pa.array([], pa.string())).type == variant.variant_type()


def test_real_documents_round_trip() -> None:
    features = json.loads((EXAMPLES / "earthquakes.json").read_bytes())["features"]
    array = variant.parse_json(pa.array([json.dumps(feature) for feature in features]))
    assert rows_of_large(array) == features
    assert variant.validate(array) is None


@pytest.mark.parametrize("threads", [None, 1, 2])
def test_documents_are_parsed_on_one_thread_unless_more_are_requested(
    threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []

    class Counted(Workers):
        def __init__(self, threads: int, jobs: int) -> None:
            counts.append(threads)
            super().__init__(threads, jobs)

    monkeypatch.setattr("pqext.variant.json.parser.Workers", Counted)
    choice = {} if threads is None else {"threads": threads}
    assert variant.to_json(variant.parse_json(["1", "2"], **choice)).to_pylist() == ["1", "2"]
    assert variant.to_json(variant.parse_json_lines(b"1\n2\n", **choice)[0]).to_pylist() == ["1", "2"]
    assert counts == [threads or 1] * 2
