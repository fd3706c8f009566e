"""What Spark's Python workers call: functions of Arrow arrays and the matchers of joins, in threads of one process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from stress.cases import Case
from stress.spatial import polygon, shapes
from stress.variants import documents

from pqext import geo
from pqext.geo.joins.matching import Condition, Matcher, Nearest
from pqext.geo.wkb import from_points, from_shapely
from pqext.spark.functions import (
    geometry_accessors,
    geometry_formats,
    geometry_operations,
    geometry_predicates,
    variant_schemas,
    variant_values,
)
from pqext.spark.functions.geometry_arrays import Geometries
from pqext.spark.functions.udf import FLAT, GEOMETRIES

PREDICATES = ("intersects", "within", "contains", "covers", "touches", "overlaps")


def cases(folder: Path) -> Iterator[Case]:
    rows = shapes(1500, 5)
    wkb = from_shapely(list(rows))
    present = ~shapely.is_missing(rows)
    for module in (geometry_accessors, geometry_formats, geometry_operations):
        for name in sorted(vars(module)):
            function = getattr(module, name)
            if name.isupper() and getattr(function, "takes", None) in ((FLAT,), (GEOMETRIES,)) and name != "TRANSFORM":
                yield Case(f"{module.__name__.rpartition('.')[2]}.{name}", partial(call, function.evaluate, wkb))
    areas = [float(area) if there else None for area, there in zip(shapely.area(rows), present, strict=True)]
    yield Case("st_area", lambda _: geometry_accessors.AREA.evaluate(wkb).to_pylist(), areas)
    yield Case("st_buffer", lambda _: geometry_operations.BUFFER.evaluate(wkb.slice(0, 100), pa.array([1.0] * 100)))
    yield Case(
        "st_transform", lambda _: geometry_operations.TRANSFORM.evaluate(wkb, target="EPSG:3857", source="EPSG:4326")
    )
    yield Case(
        "st_geohash", lambda _: geometry_accessors.GEOHASH.evaluate(from_points([1.5] * 50, [2.5] * 50), precision=7)
    )
    texts = geo.to_wkt(wkb)
    yield Case("st_geomfromwkt", lambda _: geometry_formats.FROM_WKT.evaluate(texts))
    yield from of_predicates(rows, wkb)
    yield from of_joins()
    yield from of_variants()


def call(function: Any, array: Any, _: int) -> Any:
    return function(array)


def of_predicates(rows: Any, wkb: pa.Array) -> Iterator[Case]:
    query = polygon(8000)
    others = np.roll(rows, 7)
    missing = shapely.is_missing(rows)
    for operation in PREDICATES:
        question = geometry_predicates._Constant(operation, shapely.to_wkb(query), None, None, None)  # type: ignore[arg-type]
        expected = [
            None if none else bool(answer)
            for none, answer in zip(missing, getattr(shapely, operation)(rows, query), strict=True)
        ]
        yield Case(f"st_{operation} of a query", partial(related, wkb, question), expected)
        answers = getattr(shapely, operation)(rows, others)
        expected = [
            None if none else bool(answer) for none, answer in zip(missing | np.roll(missing, 7), answers, strict=True)
        ]
        pairs = geometry_predicates.PAIRS[f"st_{operation}"].evaluate
        yield Case(f"st_{operation} of pairs", partial(paired, pairs, wkb, from_shapely(list(others))), expected)


def related(wkb: pa.Array, question: Any, _: int) -> list[Any]:
    found: list[Any] = geometry_predicates._evaluate_constant(wkb, question).to_pylist()
    return found


def paired(pairs: Any, one: pa.Array, other: pa.Array, _: int) -> list[Any]:
    found: list[Any] = pairs(one, other).to_pylist()
    return found


def of_joins() -> Iterator[Case]:
    left, right = shapes(800, 6), shapes(400, 7)
    points = shapely.centroid(left)
    sides = Geometries.from_arrow(from_shapely(list(left))), Geometries.from_arrow(from_shapely(list(right)))
    for operation in PREDICATES:
        matcher = Matcher(sides[1], Condition(operation))  # type: ignore[arg-type]
        for name, rows in (("shapes", left), ("points", points)):
            one, other = np.nonzero(getattr(shapely, operation)(rows[:, None], right[None, :]))
            yield Case(
                f"join of {name}: {operation}",
                partial(matched, matcher, Geometries.from_arrow(from_shapely(list(rows)))),
                [one, other],
            )
    nearest = Nearest(sides[1], 2, None)
    yield Case("join with the nearest", lambda _: list(nearest.pairs(sides[0])))


def matched(matcher: Matcher, left: Geometries, _: int) -> list[Any]:
    return list(matcher.pairs(left))


def of_variants() -> Iterator[Case]:
    wanted = documents()[:800]
    texts = pa.array([json.dumps(event) for event in wanted])
    parsed = variant_values.PARSE_JSON.evaluate(texts)
    yield Case("parse_json", lambda _: reloaded(variant_values.PARSE_JSON.evaluate(texts)), wanted)
    yield Case("variant_hash", lambda _: variant_values.VARIANT_HASH.evaluate(parsed))
    yield Case("variant_key", lambda _: variant_values.VARIANT_KEY.evaluate(parsed))
    yield Case(
        "variant_equals",
        lambda _: variant_values.VARIANT_EQUALS.evaluate(parsed, parsed).to_pylist(),
        [True] * len(wanted),
    )
    yield Case("schema_of_variant", lambda _: variant_schemas.SCHEMA_OF_VARIANT.evaluate(parsed))


def reloaded(array: pa.Array) -> list[Any]:
    return [json.loads(text) for text in variant_values.TO_JSON.evaluate(array).to_pylist()]
