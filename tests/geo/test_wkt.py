"""Well-known text in and out: as the slow twin and shapely have it, and refused with its place where it is none."""

from __future__ import annotations

import struct
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from pqext import geo
from pqext.core.base.errors import GeometryError
from pqext.geo.wkb import without_empty_parts
from reference import geometry_text as twin
from reference import wkb
from reference.effort import share
from reference.geometries import shapes, trees
from reference.pace import SLOWER


def texts(values: list[str | None], type: pa.DataType | None = None) -> pa.Array:
    return pa.array(values, type or pa.string())


def iso(text: str) -> bytes:
    found: bytes = geo.from_wkt(texts([text]))[0].as_py()
    return found


@pytest.mark.spec("geo.wkt.tag", "geo.wkt.numbers")
@settings(max_examples=share(0.8))
@given(trees())
def test_any_geometry_matches_the_reference_text_and_round_trips(geometry: wkb.Geometry) -> None:
    text = geo.to_wkt(pa.array([wkb.encode(geometry)]))[0].as_py()
    assert text == twin.to_wkt(geometry)
    plain = twin.plain(geometry)
    if wkb.is_strict(plain):
        assert iso(text) == wkb.encode(plain)
    else:
        with pytest.raises(GeometryError, match=r"geo\.wkb\.rings"):
            iso(text)


@settings(max_examples=share(0.4))
@given(st.lists(st.one_of(st.none(), shapes()), max_size=5))
def test_shapely_reads_and_writes_equal_text(geometries: list[Any]) -> None:
    array = geo.from_shapely(geometries)
    text = geo.to_wkt(array)
    assert shapely.to_wkb(shapely.from_wkt(text.to_pylist()), flavor="iso").tolist() == array.to_pylist()
    theirs = shapely.to_wkt(geometries, rounding_precision=-1)  # of not quite as many digits as it takes
    read = geo.from_wkt(texts(list(theirs)))
    assert read.to_pylist() == shapely.to_wkb(shapely.from_wkt(theirs), flavor="iso", byte_order=1).tolist()


@pytest.mark.spec("geo.wkt.tag", "geo.wkt.dimensions")
@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("point(1 2)", "POINT (1 2)"),
        (" \n\tPoint Zm ( 1\t2\n3 4 ) ", "POINT ZM (1 2 3 4)"),
        ("POINTZ(1 2 3)", "POINT Z (1 2 3)"),
        ("POINTM EMPTY", "POINT M EMPTY"),
        ("POINT (1 2 3)", "POINT Z (1 2 3)"),
        ("LINESTRING(1 2 3 4,5 6 7 8)", "LINESTRING ZM (1 2 3 4, 5 6 7 8)"),
        ("MULTIPOINT(1 2,3 4)", "MULTIPOINT ((1 2), (3 4))"),
        ("MULTIPOINT Z(EMPTY,(1 2 3),4 5 6)", "MULTIPOINT Z (EMPTY, (1 2 3), (4 5 6))"),
        ("POLYGON (EMPTY)", "POLYGON (EMPTY)"),
        ("MULTILINESTRING M (EMPTY, (1 2 3, 4 5 6))", "MULTILINESTRING M (EMPTY, (1 2 3, 4 5 6))"),
        # A tag, or the first coordinate, speaks for the whole; what is empty before it does not.
        (
            "GEOMETRYCOLLECTION (POINT EMPTY, POINT (1 2 3), LINESTRING EMPTY)",
            "GEOMETRYCOLLECTION Z (POINT EMPTY, POINT Z (1 2 3), LINESTRING Z EMPTY)",
        ),
        ("GEOMETRYCOLLECTION M (POINT (1 2 3))", "GEOMETRYCOLLECTION M (POINT M (1 2 3))"),
        ("GEOMETRYCOLLECTION (MULTIPOINT M (1 2 3))", "GEOMETRYCOLLECTION M (MULTIPOINT M ((1 2 3)))"),
        ("GEOMETRYCOLLECTION (GEOMETRYCOLLECTION EMPTY)", "GEOMETRYCOLLECTION (GEOMETRYCOLLECTION EMPTY)"),
        ("POINT (nan -INF)", "POINT (NaN -Infinity)"),
        ("POINT (+.5 5.)", "POINT (0.5 5)"),
        ("POINT (-0 1e-400)", "POINT (-0.0 0)"),
        ("POINT (1E+2 0012)", "POINT (100 12)"),
    ],
)
def test_text_variants_are_read(text: str, same: str) -> None:
    array = geo.from_wkt(texts([text]))
    geo.validate(array, on_fault="raise")
    assert geo.to_wkt(array).to_pylist() == [same]


@pytest.mark.spec("geo.wkt.numbers")
@given(st.one_of(st.floats(allow_nan=False), st.floats(-1000, 1000)))
def test_numbers_have_the_shortest_text_that_round_trips(value: float) -> None:
    array = geo.from_points([value], [0.0])
    text = geo.to_wkt(array)[0].as_py()
    assert text == f"POINT ({twin.number(value)} 0)"
    assert struct.unpack("<d", iso(text)[5:13])[0].hex() == value.hex()


@pytest.mark.spec("geo.wkt.numbers")
@given(st.integers(0, 10**45), st.integers(-400, 400), st.booleans(), st.integers(0, 800))
def test_numbers_of_any_length_are_the_nearest_doubles(digits: int, exponent: int, point: bool, zeros: int) -> None:
    number = f"{digits}{'0' * zeros}{'.' + str(digits) if point else ''}e{exponent - zeros}"
    expected = float(number)
    if expected in (float("inf"), float("-inf")):
        with pytest.raises(GeometryError, match=r"geo\.wkt\.numbers"):
            iso(f"POINT ({number} 0)")
    else:
        assert struct.unpack("<d", iso(f"POINT ({number} 0)")[5:13])[0] == expected


def test_tie_is_distinguished_from_a_number_just_above_it() -> None:
    tie = "1.00000000000000011102230246251565404236316680908203125"
    for number in (tie, tie + "0" * 1000, tie + "0" * 1000 + "1", tie[:-1] + "4" + "9" * 1000):
        assert struct.unpack("<d", iso(f"POINT ({number} 0)")[5:13])[0] == float(number)


@pytest.mark.spec("geo.wkt.numbers")
@given(
    st.one_of(st.floats(-1e6, 1e6), st.floats(-1e-3, 1e-3), st.sampled_from([2.675, 0.5, 1.5, -2.5, 1e15])),
    st.integers(0, 12),
)
def test_precision_rounds_the_shortest_text(value: float, precision: int) -> None:
    text = geo.to_wkt(geo.from_points([value], [0.0]), precision)[0].as_py()
    assert text == f"POINT ({twin.number(value, precision)} 0)"


@pytest.mark.parametrize("precision", [-1, 19, True, 1.5])
def test_precision_is_a_number_of_decimals(precision: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="precision"):
        geo.to_wkt(geo.from_points([1], [2]), precision)


@pytest.mark.parametrize(
    ("text", "rule", "offset"),
    [
        ("", "geo.wkt.tag", 0),
        ("PINT (1 2)", "geo.wkt.tag", 0),
        ("POIN (1 2)", "geo.wkt.tag", 0),
        ("SRID=4326;POINT (1 2)", "geo.wkt.tag", 0),
        ("LINEARRING (0 0, 1 1, 1 0, 0 0)", "geo.wkt.tag", 0),
        ("POINTS (1 2)", "geo.wkt.tag", 0),
        ("POINT X (1 2)", "geo.wkt.tag", 6),
        ("POINT 1 2", "geo.wkt.tag", 6),
        ("POINT (1 2", "geo.wkt.tag", 10),
        ("POINT (1 2) (", "geo.wkt.tag", 12),
        ("POINT (1)", "geo.wkt.dimensions", 7),
        ("POINT (1 2 3 4 5)", "geo.wkt.tag", 15),
        ("POINT Z (1 2)", "geo.wkt.dimensions", 9),
        ("LINESTRING (1 2, 1 2 3)", "geo.wkt.dimensions", 17),
        ("GEOMETRYCOLLECTION Z (POINT M (1 2 3))", "geo.wkt.dimensions", 22),
        ("POINT (1.2.3 4)", "geo.wkt.numbers", 7),
        ("POINT (1,5 4)", "geo.wkt.dimensions", 7),
        ("POINT (1e 4)", "geo.wkt.numbers", 7),
        ("POINT (0x10 4)", "geo.wkt.numbers", 7),
        ("POINT (1e309 4)", "geo.wkt.numbers", 7),
        ("POINT (nano 4)", "geo.wkt.numbers", 7),
        ("POLYGON ((0 0, 1 0, 1 1))", "geo.wkb.rings", 9),
        ("POLYGON ((0 0, 1 0, 1 1, 0 1))", "geo.wkb.rings", 9),
    ],
)
@pytest.mark.spec("geo.wkt.tag", "geo.wkt.dimensions", "geo.wkt.numbers")
def test_invalid_text_is_rejected_with_row_and_byte(text: str, rule: str, offset: int) -> None:
    good = "POINT (1 2)"
    chunked = pa.chunked_array([texts([good, None]), texts([good, text, good])])
    with pytest.raises(GeometryError) as raised:
        geo.from_wkt(chunked)
    assert (raised.value.row, raised.value.rule, raised.value.offset) == (3, rule, offset)


def test_truncated_text_is_rejected() -> None:
    whole = "GEOMETRYCOLLECTION ZM (POINT ZM (1 2 3 4), POLYGON ZM ((0 0 1 2, 1 0 2 3, 1 1 2 3, 0 0 1 2)), POINT EMPTY)"
    for end in range(len(whole)):
        with pytest.raises(GeometryError):
            iso(whole[:end])


@pytest.mark.spec("geo.wkb.depth")
def test_hostile_text_is_rejected_in_bounded_time() -> None:
    deep = "GEOMETRYCOLLECTION (" * 128 + "POINT (1 2)" + ")" * 128
    assert geo.to_wkt(geo.from_wkt(texts([deep]))).to_pylist() == [deep]
    begin = time.process_time()
    for text in (
        "GEOMETRYCOLLECTION (" + deep + ")",
        "GEOMETRYCOLLECTION (" * 100_000,
        "POLYGON (" + "(" * 1_000_000,
        "POINT (" + "1" * 1_000_000,
        "POINT (" + "1" * 1_000_000 + " .1e",
        "MULTIPOINT (" + "EMPTY, " * 200_000,
        " " * 1_000_000,
        "POINT (1 " + "0." + "0" * 1_000_000 + "x)",
    ):
        with pytest.raises(GeometryError):
            iso(text)
    assert time.process_time() - begin < 5 * SLOWER


@given(st.lists(st.one_of(st.none(), trees()), max_size=4), st.integers(0, 2))
@settings(max_examples=share(0.4))
def test_slices_layouts_and_nulls_do_not_change_the_result(geometries: list[wkb.Geometry | None], skip: int) -> None:
    values = [None if g is None else wkb.encode(twin.plain(g)) for g in geometries]
    expected = [None if g is None else twin.to_wkt(g) for g in geometries]
    padded = pa.array([None, b"no geometry"][:skip] + values + [b""], pa.binary()).slice(skip, len(values))
    views = pa.DictionaryArray.from_arrays(pa.array(range(len(padded)), pa.int32()), padded.cast(pa.binary_view()))
    for array in (padded, padded.cast(pa.large_binary()), views.dictionary, padded.dictionary_encode(), views):
        assert geo.to_wkt(array).to_pylist() == expected
    strict = [text for text, g in zip(expected, geometries, strict=True) if g is None or wkb.is_strict(twin.plain(g))]
    sliced = texts([None, "no text", *strict]).slice(2)
    made = geo.from_wkt(sliced)
    views = pa.DictionaryArray.from_arrays(pa.array(range(len(sliced)), pa.int32()), sliced.cast(pa.string_view()))
    assert geo.from_wkt(views).equals(made)
    assert made.storage.type == pa.binary()
    for type in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        assert geo.from_wkt(sliced.cast(type)).equals(made)
    assert geo.from_wkt(pa.chunked_array([sliced, sliced])).to_pylist() == made.to_pylist() * 2
    assert geo.to_wkt(pa.chunked_array([], pa.binary())).type == pa.string()


def test_parts_of_mixed_dimensions_have_no_text() -> None:
    point = wkb.encode(wkb.Geometry(wkb.POINT, 1, [(1.0, 2.0, 3.0)]))
    for data, fine in ((struct.pack("<BII", 1, 4, 1) + point, False), (struct.pack("<BII", 1, 7, 1) + point, True)):
        array = pa.array([data])
        if fine:
            assert geo.to_wkt(array).to_pylist() == ["GEOMETRYCOLLECTION (POINT Z (1 2 3))"]
        else:
            with pytest.raises(GeometryError, match="dimensions of a"):
                geo.to_wkt(array)


def test_only_text_is_read_and_only_binary_is_written() -> None:
    for wrong in ("POINT (1 2)", pa.array([1]), pa.array([b""])):
        with pytest.raises(TypeError, match="an Arrow array of strings"):
            geo.from_wkt(wrong)
    with pytest.raises(TypeError, match="an Arrow array of WKB"):
        geo.to_wkt(texts(["POINT (1 2)"]))
    assert geo.from_wkt(pa.nulls(2)).to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MULTIPOINT (EMPTY, (1 2), (3 4))", "MULTIPOINT ((1 2), (3 4))"),
        ("GEOMETRYCOLLECTION (POINT EMPTY, MULTILINESTRING (EMPTY, (0 0, 1 1)))",
         "GEOMETRYCOLLECTION (MULTILINESTRING ((0 0, 1 1)))"),
    ],
)  # fmt: skip
def test_empty_parts_are_removed(text: str, expected: str) -> None:
    (shape,) = without_empty_parts(np.array([shapely.from_wkt(text)], dtype=object))
    assert shape.wkt == shapely.from_wkt(expected).wkt
