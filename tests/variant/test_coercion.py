"""Array arguments may be lists, Series of pandas and polars, and whatever speaks Arrow's C interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.variant import Variant

TEXTS = ['{"a":1}', None, "2"]


class OnlyArray:
    """Has no more than Arrow's C interface for one array."""

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.array.__arrow_c_array__(requested_schema)


class OnlyStream:
    """Has no more than Arrow's C interface for a stream."""

    def __init__(self, array: pa.ChunkedArray) -> None:
        self.array = array

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.array.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "texts",
    [
        TEXTS,
        tuple(TEXTS),
        ['{"a":1}', None, b"2"],
        pd.Series(TEXTS),
        pd.Series(TEXTS, dtype="string"),
        pd.Series(TEXTS, dtype=pd.ArrowDtype(pa.string())),
        pl.Series(TEXTS),
        np.array(TEXTS, dtype=object),
        OnlyArray(pa.array(TEXTS)),
        OnlyStream(pa.chunked_array([TEXTS[:1], TEXTS[1:]])),
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_text_is_parsed_in_every_representation(texts: Any) -> None:
    parsed = variant.parse_json(texts)
    assert variant.to_json(parsed).to_pylist() == TEXTS
    assert isinstance(parsed, pa.StructArray | pa.ChunkedArray)


def test_empty_and_null_text_lists_are_parsed() -> None:
    assert len(variant.parse_json([])) == 0
    assert variant.parse_json([None]).null_count == 1
    assert variant.parse_json(pa.nulls(2)).null_count == 2


@pytest.mark.parametrize("bad", ['{"a":1}', b"1", 5, None, [1], [["1"]], {"a": 1}])
def test_other_objects_are_not_text(bad: Any) -> None:
    with pytest.raises(TypeError, match=r"expected an array of JSON (texts|strings)|expected a binary or string"):
        variant.parse_json(bad)


def test_surrogates_in_a_list_are_an_error_of_their_row() -> None:
    with pytest.raises(VariantError, match="row 1"):
        variant.parse_json(["1", '"\ud800"'])
    assert variant.parse_json(['"\ud800"'], on_error="null").null_count == 1


VARIANTS = variant.parse_json(TEXTS)
FORMS: list[Any] = [
    [Variant.from_json('{"a":1}'), None, Variant.from_json("2")],
    OnlyArray(VARIANTS),
    OnlyStream(pa.chunked_array([VARIANTS])),
    pl.Series(VARIANTS),
    pd.Series(VARIANTS, dtype=pd.ArrowDtype(VARIANTS.type)),
]


@pytest.mark.parametrize("array", FORMS, ids=lambda form: type(form).__name__)
def test_variants_are_accepted_in_every_representation(array: Any) -> None:
    assert variant.to_json(array).to_pylist() == TEXTS
    assert variant.get(array, "$.a", int).to_pylist() == [1, None, None]
    assert variant.explode(array)["row"].to_pylist() == [0]
    assert variant.validate(array) is None
    assert variant.find_faults(array).num_rows == 0
    assert variant.to_python(array) == [{"a": 1}, None, 2]
    assert str(variant.infer_schema(array))
    assert variant.to_json(variant.unshred(variant.shred(array, "a INT"))).to_pylist() == TEXTS
    assert variant.hash(array).is_valid().to_pylist() == [True, False, True]
    assert variant.equals(array, VARIANTS).to_pylist() == [True, None, True]
    assert variant.to_json(variant.delete(array, "$.a")).to_pylist() == ["{}", None, "2"]
    assert variant.to_table(array, "a INT")["a"].to_pylist() == [1, None, None]


def test_python_objects_are_not_implicitly_variants() -> None:
    with pytest.raises(TypeError, match=r"variant array, but item 0 has type dict; use variant\.from_python"):
        variant.get([{"a": 1}], "$.a")
    with pytest.raises(TypeError, match="expected a variant array"):
        variant.to_json(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a variant array"):
        variant.to_json(pd.Series([1]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("type", "wanted"),
    [(int, [1, 2]), (float, [1.0, 2.5]), (str, ["1", "2.5"]), (bool, [True, True]), (bytes, [None, None])],
)
def test_get_accepts_python_types(type: Any, wanted: list[Any]) -> None:
    assert variant.get(variant.parse_json(["1", "2.5"]), "$", type).to_pylist() == wanted


def test_get_returns_variants_by_default_and_rejects_other_types() -> None:
    array = variant.parse_json(['{"a":{"b":1}}'])
    assert variant.to_json(variant.get(array, "$.a")).to_pylist() == ['{"b":1}']
    with pytest.raises(TypeError, match="bool, int, float, str or bytes"):
        variant.get(array, "$.a", dict)
    for path in ("$.a.*", "$.a[*]"):
        with pytest.raises(ValueError, match=r"use variant.explode"):
            variant.get(array, path)
    starred = variant.parse_json(['{"*":1}'])
    assert variant.get(starred, "$['*']", int).to_pylist() == [1]


@pytest.mark.parametrize("schema", [None, "a ARRAY<INT>", "ARRAY<INT>"])
def test_negative_indexes_count_from_the_end(schema: str | None) -> None:
    array = variant.parse_json(['{"a":[1,2,3]}', '{"a":[]}', "[7,8]", None, '{"a":["x"]}', '{"a":5}'])
    if schema is not None:
        array = variant.shred(array, schema)
    assert variant.get(array, "$.a[-1]", str).to_pylist() == ["3", None, None, None, "x", None]
    assert variant.get(array, ["a", -3], str).to_pylist() == ["1", None, None, None, None, None]
    assert variant.get(array, "$[-2]", int).to_pylist() == [None, None, 7, None, None, None]
    assert variant.get(array, "$.a[-4]").null_count == 6
