"""What each kind of index keeps, and what it refuses."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from skipping.drawn import by_pqext, by_pyarrow, evidence_of, refused

import pqext
from pqext import geo, variant
from pqext.dataset.expressions import col
from pqext.skipping import (
    BloomFilter,
    Box,
    Index,
    MinMax,
    NullCount,
    Prefix,
    RowCount,
    ValueList,
    VariantPaths,
    register_index,
)
from pqext.skipping.store.clauses import Evidence, exclusions

C = col("c")


def objects(*columns: Any, type: pa.DataType | None = None, writer: Any = by_pqext) -> list[bytes]:
    """An object for each list of values of the column ``c``."""
    return [writer(pa.table({"c": pa.array(values, type)})) for values in columns]


def remaining_objects(index: Index, found: list[bytes], filter: Any, data: bool = True) -> list[int]:
    """The objects that are looked at."""
    out = refused(filter, evidence_of([index], found, data), len(found))
    return [at for at in range(len(found)) if at not in out]


@pytest.mark.spec("skipping.valuelist")
@pytest.mark.parametrize(
    ("filter", "kept"),
    [
        (C == "a", [0]),
        (C != "a", [0, 1]),
        (~C.isin(["a", "b"]), [1]),
        (C.like("%b%"), [0]),
        (C.ilike("C"), [1]),
        (C > "b", [1]),
        (C.is_not_null(), [0, 1]),
        (C.is_null(), [0, 1, 2]),
        (C.cast("int64") == 5, []),
    ],
)
def test_value_list_matches_its_values(filter: Any, kept: list[int]) -> None:
    assert remaining_objects(ValueList("c"), objects(["a", "b", None], ["c"], [None], type=pa.string()), filter) == kept


@pytest.mark.spec("skipping.valuelist")
def test_oversized_value_list_is_unknown() -> None:
    assert remaining_objects(ValueList("c", max_values=2), objects([1, 2, 3], [1, 2]), C == 9) == [0]


@pytest.mark.spec("skipping.bloom")
def test_bloom_filter_excludes_absent_values() -> None:
    found = objects(["a", "b"], ["c"], type=pa.string())
    assert remaining_objects(BloomFilter("c", ndv=100), found, C == "a") == [0]
    assert remaining_objects(BloomFilter("c", ndv=100), found, C.isin(["c", "zz"])) == [1]
    assert remaining_objects(BloomFilter("c", ndv=100), found, C != "a") == [0, 1]
    numbers = objects([1, -5], [1 << 40])
    assert remaining_objects(BloomFilter("c", ndv=100), numbers, C == -5) == [0]
    assert remaining_objects(BloomFilter("c", ndv=100), numbers, C == 1 << 40) == [1]
    assert remaining_objects(BloomFilter("c", ndv=100), numbers, C == 1.5) == [0, 1]


@pytest.mark.spec("skipping.nulls")
@pytest.mark.parametrize("data", [True, False])
def test_null_counts_exclude_null_and_non_null_conditions(data: bool) -> None:
    found = objects([1, 2], [None, 1], [None, None], type=pa.int64())
    assert remaining_objects(NullCount("c"), found, C.is_null(), data) == [1, 2]
    assert remaining_objects(NullCount("c"), found, C.is_not_null(), data) == [0, 1]
    assert remaining_objects(NullCount("c"), found, C > 100, data) == [0, 1]
    assert remaining_objects(NullCount("c"), found, ~C.isin([1]), data) == [0, 1]
    assert remaining_objects(NullCount("c"), found, (C + 1).is_null(), data) == [0, 1, 2]  # which may overflow


@pytest.mark.spec("skipping.nulls")
def test_nan_counts_exclude_conditions_that_only_nan_satisfies() -> None:
    found = objects([1.0, math.nan], [1.0, None], type=pa.float64())
    assert remaining_objects(NullCount("c"), found, math.nan == C) == [0]
    assert remaining_objects(NullCount("c"), found, C.isin([math.nan])) == [0]
    assert remaining_objects(NullCount("c"), found, C.isin([math.nan, 2.0])) == [0, 1]
    assert remaining_objects(NullCount("c"), found, C > 0) == [0, 1]


@pytest.mark.spec("skipping.count")
def test_empty_object_is_never_read() -> None:
    found = objects([], [1], type=pa.int64())
    assert remaining_objects(RowCount("c"), found, C.is_null()) == [1]
    assert remaining_objects(RowCount("c"), found, C > 5, data=False) == [1]


@pytest.mark.spec("skipping.prefix")
@pytest.mark.parametrize(
    ("filter", "kept"),
    [
        (C.starts_with("ab"), [0]),
        (C.starts_with("abxyz"), [0]),
        (C.like("zz%"), [1]),
        (C == "abc", [0]),
        (C == "aq", []),
        (C.isin(["zzz", "q"]), [1]),
        (C > "b", [1, 2]),
        (C < "b", [0, 2]),
        (C == "é", [2]),
        (C.is_not_null(), [0, 1, 2]),
        (C.is_null(), [0, 1, 2, 3]),
        (C != "abc", [0, 1, 2]),
    ],
)
def test_prefixes_are_text_ranges(filter: Any, kept: list[int]) -> None:
    found = objects(["abc", "ab"], ["zzz", "zzy"], ["é", "a"], [None], type=pa.string())
    assert remaining_objects(Prefix("c", 2), found, filter) == kept


def points(*rows: list[tuple[float, float] | None], edges: Any = "planar") -> list[bytes]:
    """An object for each list of points."""
    found = []
    for row in rows:
        sink = io.BytesIO()
        shapes = [None if one is None else shapely.Point(one) for one in row]
        table = pa.table({"c": geo.from_shapely(shapes)})
        pqext.write_table(table, sink, geometry={"c": {"edges": edges}}, row_group_rows=1)
        found.append(sink.getvalue())
    return found


@pytest.mark.spec("skipping.box")
@pytest.mark.parametrize("data", [True, False])
@pytest.mark.parametrize("edges", ["planar", "spherical"])
def test_boxes_exclude_distant_queries(data: bool, edges: str) -> None:
    found = points([(0, 0), (1, 1)], [(50, 50), None], [(179, 0), (-179, 1)], edges=edges)
    assert remaining_objects(Box("c"), found, C.intersects((-1, -1, 2, 2)), data) == [0]
    assert remaining_objects(Box("c"), found, C.within((49, 49, 51, 51)), data) == [1]
    assert remaining_objects(Box("c"), found, C.intersects((178, -1, -178, 2)), data) == [2]
    assert remaining_objects(Box("c"), found, C.disjoint((-1, -1, 2, 2)), data) == [0, 1, 2]
    assert remaining_objects(Box("c"), found, ~C.within((-1, -1, 2, 2)), data) == [0, 1, 2]


@pytest.mark.spec("skipping.box")
def test_objects_without_a_box_are_read() -> None:
    found = points([None], [(1, 1)])
    assert remaining_objects(Box("c"), found, C.intersects((5, 5, 6, 6))) == [0]


def documents(*texts: list[str], shred: bool = True) -> list[bytes]:
    """An object for each list of JSON documents."""
    found = []
    for several in texts:
        sink = io.BytesIO()
        table = pa.table([variant.parse_json(pa.array(several))], schema=pa.schema([variant.variant_field("c")]))
        pqext.write_table(table, sink, shredding={"c": "infer"} if shred else {})
        found.append(sink.getvalue())
    return found


N = C.variant("$.n", "int64")


@pytest.mark.spec("skipping.variant")
@pytest.mark.parametrize("shred", [True, False])
def test_variant_values_have_their_own_indexes(shred: bool) -> None:
    found = documents(['{"n": 1}', '{"n": "7"}'], ['{"n": 9}', '{"m": 1}'], ["5"], shred=shred)
    assert remaining_objects(MinMax(N), found, N > 8) == [1]
    assert remaining_objects(ValueList(N), found, N == 7) == [0]
    assert remaining_objects(NullCount(N), found, N.is_null()) == [1, 2]
    assert remaining_objects(NullCount(N), found, C.variant("$.m", "int64") == 1) == [0, 1, 2]
    assert remaining_objects(MinMax(N), found, C.variant("$.n", "string") == "8") == [0, 1, 2]
    assert remaining_objects(MinMax(N), found, C.variant("$.m", "int64") > 8) == [0, 1, 2]


@pytest.mark.spec("skipping.variant-paths")
@pytest.mark.parametrize("shred", [True, False])
def test_objects_are_excluded_by_missing_variant_paths(shred: bool) -> None:
    found = documents(['{"a": {"b": 1}}', "{}"], ['{"a": [{"b": 1}]}', '{"x": {"y": 1}}'], shred=shred)
    paths = VariantPaths("c")
    assert remaining_objects(paths, found, C.variant("$.a.b", "int64") == 1) == [0]
    assert remaining_objects(paths, found, C.variant("$.a", "string") == "1") == [0, 1]
    assert remaining_objects(paths, found, C.variant("$.a[0].b", "int64") == 1) == [0, 1]
    assert remaining_objects(paths, found, C.variant("$.x.y", "int64") > 0) == [1]
    assert remaining_objects(paths, found, ~C.variant("$.x.y", "int64").isin([5])) == [1]
    assert remaining_objects(paths, found, C.variant("$.x.y", "int64").is_null()) == [0, 1]
    assert remaining_objects(paths, found, C.variant("$.q", "int64") == 1) == []


@pytest.mark.spec("skipping.and")
def test_one_operand_of_and_excludes_and_all_operands_of_or_must() -> None:
    found = objects([1], [5], [9])
    index = MinMax("c")
    assert remaining_objects(index, found, (C > 4) & (C < 8)) == [1]
    assert remaining_objects(index, found, (C < 4) | (C > 8)) == [0, 2]
    assert remaining_objects(index, found, (C < 4) | (col("d") > 8)) == [0, 1, 2]
    assert remaining_objects(index, found, (C < 4) & (col("d") > 8)) == [0]
    assert remaining_objects(index, found, ~((C < 4) | (C > 8))) == [1]


@pytest.mark.spec("skipping.unknown")
def test_unknown_facts_exclude_no_object() -> None:
    assert remaining_objects(ValueList("c", max_values=1), objects([1, 2], [5]), C > 7) == [0]
    assert remaining_objects(MinMax("c"), objects([1.0], [5.0], writer=by_pyarrow), C > 7, data=False) == [0, 1]


@pytest.mark.spec("skipping.repeated")
def test_conflicting_facts_of_one_object_are_combined_cautiously() -> None:
    cells = pa.array([{"min": 1, "max": 2}, {"min": 5, "max": 6}])
    evidence = [Evidence(MinMax("c"), cells, np.array([0, 0]))]
    assert not exclusions(C > 4, evidence, 1)
    assert not exclusions(C < 4, evidence, 1)
    (found,) = exclusions(C > 6, evidence, 1)
    assert found.objects.all()


@pytest.mark.spec("skipping.footers")
def test_footers_provide_extremes_only_if_nan_is_counted() -> None:
    found = objects([1.0, 2.0], [1.0, math.nan], writer=by_pyarrow)
    assert remaining_objects(MinMax("c"), found, C > 5, data=False) == [0, 1]
    assert remaining_objects(MinMax("c"), found, C > 5) == [1]
    assert remaining_objects(MinMax("c"), objects([1.0, 2.0], [1.0, math.nan]), C > 5, data=False) == [1]


@pytest.mark.spec("skipping.register")
def test_custom_index_types_are_supported() -> None:
    class Longest(Index):
        name = "longest"

        def cell_type(self, values: pa.DataType) -> pa.DataType:
            return pa.int64()

        def collector(self, values: pa.DataType) -> Any:
            return _Longest()

        def may_match(self, leaf: Any, cells: pa.Array) -> pa.Array | None:
            return pa.compute.greater_equal(cells, len(leaf.value))

    class _Longest:
        def __init__(self) -> None:
            self.most = 0

        def add(self, values: pa.Array) -> None:
            self.most = max([self.most, *(len(one) for one in values.to_pylist() if one)])

        def cell(self) -> pa.Array:
            return pa.array([self.most], pa.int64())

    register_index(Longest)
    assert remaining_objects(Longest("c"), objects(["ab"], ["abcd"]), C == "xyz") == [1]
    with pytest.raises(ValueError, match="minmax"):
        register_index(type("Other", (Longest,), {"name": "minmax"}))


@pytest.mark.spec("skipping.box")
def test_footer_box_exceeded_by_page_boxes_is_not_used() -> None:
    schema = pa.schema([pa.field("c", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"})])
    wkb = [shapely.to_wkb(shapely.Point(x, 0)) for x in range(50)]
    whole, narrowed = io.BytesIO(), io.BytesIO()
    pqext.write_table(pa.table([pa.array(wkb, pa.binary())], schema=schema), whole, page_rows=10)

    def narrow(footer: Any) -> None:
        footer.row_groups[0].columns[0].meta_data.geospatial_statistics.bbox.xmax = 1.0

    pqext.rewrite_footer(whole.getvalue(), narrow, narrowed)
    assert pqext.read_table(narrowed.getvalue(), filter=C.intersects((20, -1, 30, 1))).num_rows == 11
    assert remaining_objects(Box("c"), [narrowed.getvalue()], C.intersects((20, -1, 30, 1))) == [0]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (documents(['{"n": 1}']), "is VARIANT: index the values at a path"),
        (points([(0, 0)]), "contains geometries: use a Box index"),
        (objects([[1]], type=pa.list_(pa.int64())), "no minimum and maximum"),
    ],
)
def test_minimum_of_an_unordered_type_is_rejected(found: list[bytes], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        evidence_of([MinMax("c")], found)


def test_bloom_filter_of_unsigned_integers_is_rejected() -> None:
    with pytest.raises(TypeError, match="requires signed integers or strings; c has type uint32"):
        evidence_of([BloomFilter("c")], objects([1], type=pa.uint32()))
