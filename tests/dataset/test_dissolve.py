"""``geo.dissolve`` against geopandas."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely

import pqext
from pqext import geo

ROWS = 400
RANDOM = np.random.default_rng(5)
SHAPES: list[Any] = [
    *shapely.buffer(shapely.points(RANDOM.uniform(-5, 5, (ROWS - 20, 2))), RANDOM.uniform(0.1, 1, ROWS - 20)),
    *shapely.points(RANDOM.uniform(-5, 5, (10, 2))), *[None] * 5, *[shapely.Polygon()] * 5,
]  # fmt: skip
COLUMNS = {
    "a": [["x", "y", None, "z"][n % 4] for n in range(ROWS)],
    "b": [n % 3 for n in range(ROWS)],
    "n": [float(n) for n in range(ROWS)],
}


def table() -> pa.Table:
    arrays = [*map(pa.array, COLUMNS.values()), geo.from_shapely(SHAPES)]
    schema = pa.schema([*pa.table(COLUMNS).schema, geo.geometry_field("shape", "EPSG:25832")])
    return pa.table(arrays, schema=schema)


@pytest.fixture(params=["table", "file"])
def rows(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "table":
        return table()
    monkeypatch.setattr("pqext.dataset.geometry_rows.BATCH_ROWS", 7)
    monkeypatch.setattr("pqext.dataset.dissolve._PENDING", 3)
    pqext.write_table(table(), tmp_path / "rows.parquet", row_group_rows=50)
    return tmp_path / "rows.parquet"


def by_geopandas(by: Any) -> geopandas.GeoDataFrame:
    frame = geopandas.GeoDataFrame(COLUMNS, geometry=SHAPES, crs="EPSG:25832")
    return frame.dissolve(by=by, aggfunc={"n": "sum"}, dropna=False, sort=False)


@pytest.mark.parametrize("by", ["a", ["a", "b"], ["b"]])
def test_unions_and_sums_match_geopandas(rows: Any, by: Any) -> None:
    expected = by_geopandas(by)
    result = geo.dissolve(rows, by, aggregates={"n": "sum"})
    keys = list(zip(*(result[name].to_pylist() for name in ([by] if isinstance(by, str) else by)), strict=True))
    index = [key if isinstance(key, tuple) else (key,) for key in expected.index.tolist()]
    assert keys == [tuple(None if part != part else part for part in key) for key in index]
    assert result["n_sum"].to_pylist() == expected["n"].tolist()
    unions = geo.to_shapely(result["shape"])
    difference = shapely.symmetric_difference(unions, np.array(expected.geometry.array, dtype=object))
    assert shapely.area(difference).max() < 1e-9
    assert geo.to_geopandas(result).crs == "EPSG:25832"


def test_envelopes_match_the_bounds_of_unions(rows: Any) -> None:
    expected = by_geopandas("a")
    result = geo.dissolve(rows, "a", method="envelope")
    assert result.column_names == ["a", "shape"]
    np.testing.assert_array_equal(shapely.bounds(geo.to_shapely(result["shape"])), expected.bounds.to_numpy())


def test_without_columns_all_rows_are_one_group(rows: Any) -> None:
    result = geo.dissolve(rows, aggregates={"n": "max"})
    assert (result.num_rows, result["n_max"].to_pylist()) == (1, [ROWS - 1.0])
    frame = geopandas.GeoDataFrame(geometry=SHAPES)
    difference = shapely.symmetric_difference(geo.to_shapely(result["shape"])[0], frame.union_all())
    assert difference.area < 1e-9
    assert geo.dissolve(rows).column_names == ["shape"]


def test_equal_keys_are_one_group_across_types_and_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pqext.dataset.geometry_rows.BATCH_ROWS", 2)
    keys = {
        "float": pa.array([math.nan, 1.0, math.nan, None, 1.0]), "flag": pa.array([True, False, True, None, False]),
        "name": pa.array(["u", "v", "u", None, "v"]).dictionary_encode(),
    }
    points = geo.from_points([0.0, 1, 2, 3, 4], [0.0] * 5)
    for name, values in keys.items():
        result = geo.dissolve(pa.table({name: values, "at": points}), name, column="at", method="envelope")
        assert shapely.bounds(geo.to_shapely(result["at"]))[:, [0, 2]].tolist() == [[0, 2], [1, 4], [3, 3]]


def test_groups_without_geometries_are_null() -> None:
    rows = pa.table({"k": [1, 2], "g": geo.from_shapely([None, shapely.Point(1, 2)])})
    for method in ("union", "envelope"):
        result = geo.dissolve(rows, "k", column="g", method=method)  # type: ignore[arg-type]
        assert result["g"].is_valid().to_pylist() == [False, True]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("c",), {}, ValueError, "'c'"),
        (("shape",), {}, ValueError, "'shape' is the geometry column"),
        (("a",), {"method": "hull"}, ValueError, "method must be 'union' or 'envelope', not 'hull'"),
        (("a",), {"aggregates": {"n": "middle"}}, ValueError, r"\['n'\] must be one of .*'mean', .* not 'middle'"),
        (("a",), {"aggregates": {"n": "sun"}}, ValueError, "did you mean 'sum'"),
        (("a",), {"aggregates": {"n": ["sum", "max"]}}, TypeError, r"\['n'\] must be one of .*'sum'.* not \['sum', "),
        (("a",), {"aggregates": "sum"}, TypeError, "aggregates must map columns to functions.*'sum'.* not 'sum'"),
        (("a",), {"aggregates": {"shape": "sum"}}, ValueError, "'shape' is the geometry column"),
        (("a",), {"column": "n"}, TypeError, "column 'n' of the input is double, not WKB"),
    ],
)
def test_invalid_arguments_are_typed_errors(arguments: Any, options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        geo.dissolve(table(), *arguments, **options)


def test_geography_and_nested_keys_are_rejected() -> None:
    field = geo.geometry_field("g", edges="spherical")
    globe = pa.table([geo.from_points([1.0], [2.0])], schema=pa.schema([field]))
    with pytest.raises(TypeError, match="dissolve requires planar geometries"):
        geo.dissolve(globe)
    nested = pa.table({"k": [[1]], "g": geo.from_points([1.0], [2.0])})
    with pytest.raises(TypeError, match=r"cannot group by column 'k' of type list<.*; cast it"):
        geo.dissolve(nested, "k", column="g")


def test_every_function_in_the_error_aggregates_numbers() -> None:
    with pytest.raises(ValueError, match="must be one of") as caught:
        geo.dissolve(table(), "a", aggregates={"n": "middle"})
    names = re.findall(r"'(\w+)'", str(caught.value).partition("must be one of")[2].partition(", not ")[0])
    assert {"sum", "mean", "min", "max", "count", "list", "first", "stddev"} <= {*names}
    flags = table().append_column("flag", pa.array([True] * ROWS))
    for name in names:
        if name in ("any", "all"):
            assert geo.dissolve(flags, "a", aggregates={"flag": name}).column_names[-1] == f"flag_{name}"
            continue
        assert geo.dissolve(table(), "a", aggregates={"n": name}).column_names[-1] == f"n_{name}"
