"""Sizes from which another code path is taken, or from which work is split: results do not depend on them.

Each size is made so small that all data exceeds it, and so large that none does.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import shapely

import pqext
from pqext import geo, variant
from pqext.core.read.column import ColumnReader

ROWS = 900
CHANCE = np.random.default_rng(5)
LARGEST = 1 << 30


def flat(rows: int) -> pa.Table:
    numbers = CHANCE.integers(-1000, 1000, rows)
    texts = pa.array([None if number % 11 == 0 else "t" * (number % 7) + str(number % 40) for number in numbers])
    return pa.table({
        "number": pa.array(numbers),
        "text": texts,
        "distinct": [f"{row:05}" for row in range(rows)],
        "constant": pa.array([True] * rows),
        "missing": pa.nulls(rows, pa.float64()),
        "run": pa.array([row // 500 for row in range(rows)], pa.int32()),
    })  # fmt: skip


def nested(rows: int) -> pa.Table:
    lists = [None if row % 9 == 0 else list(range(row % 5)) for row in range(rows)]
    structs = [{"a": row, "b": None if row % 3 else [str(row)] * (row % 4)} for row in range(rows)]
    return pa.table({"list": pa.array(lists, pa.list_(pa.int64())), "struct": pa.array(structs)})


TABLES = [flat(ROWS), nested(ROWS)]


def by_pyarrow(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def by_pqext(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pqext.write_table(table, sink, **options)
    return sink.getvalue()


FILES = [
    (data, pq.read_table(io.BytesIO(data)))
    for table in TABLES
    for data in (
        by_pyarrow(table, row_group_size=500, compression="zstd", write_page_index=True),
        by_pyarrow(table, max_rows_per_page=ROWS, use_dictionary=False, data_page_version="2.0"),
        by_pqext(table, row_group_rows=500, page_rows=90),
        by_pqext(table.slice(0, 300), row_group_rows=25),
    )
]


def check_reading() -> None:
    for data, expected in FILES:
        with pqext.open(data) as file:
            assert file.read().equals(expected)
            assert pa.Table.from_batches(file.iter_batches(130)).equals(expected)
            last, count = len(file.row_groups) - 1, file.row_groups[-1].num_rows
            scattered = [range(1, 2), range(5, 9), range(20, 22), range(count - 1, count)]
            for parts in (scattered, [range(count // 3, count - 3)]):
                selected = [expected.slice(expected.num_rows - count + part.start, len(part)) for part in parts]
                assert file.read(rows={last: parts}).equals(pa.concat_tables(selected))
        values = expected["run"] if "run" in expected.column_names else expected["struct"].combine_chunks().field("a")
        name = "run" if "run" in expected.column_names else "struct.a"
        for value in (0, 1):
            kept = pc.equal(values, value)
            assert pqext.scan(data, filter=pqext.col(name) == value).to_table().equals(expected.filter(kept))


def check_writing() -> None:
    for table in TABLES:
        for options in ({}, {"row_group_rows": 100}, {"page_rows": 100, "dictionary": False}):
            assert pq.read_table(io.BytesIO(by_pqext(table, **options))).equals(table)


def check_geometry() -> None:
    points = shapely.points(np.round(CHANCE.uniform(-9, 9, (400, 2)), 1))
    areas = [*shapely.box(*np.round(CHANCE.uniform(-9, 5, (40, 2)), 1).T, 6, 7), shapely.Point(0, 0).buffer(3)]
    left = pa.table({"row": np.arange(len(points)), "shape": geo.from_shapely(points)})
    right = pa.table({"area": np.arange(len(areas)), "shape": geo.from_shapely(areas)})
    expected = sorted(zip(*shapely.STRtree(areas).query(points, "intersects").tolist(), strict=True))
    for edges in (None, "planar"):
        joined = geo.join(left, right, edges=edges, columns=["row", "area"])
        assert sorted(zip(joined["row"].to_pylist(), joined["area"].to_pylist(), strict=True)) == expected
    query = shapely.Point(1, 1).buffer(4)
    repeated = [*points, *[points[0]] * 900, *areas]
    for operation in ("intersects", "within"):
        result = getattr(geo, operation)(geo.from_shapely(repeated), query).to_pylist()
        assert result == getattr(shapely, operation)(repeated, query).tolist()
    box = geo.statistics(geo.from_shapely(repeated)).bbox
    assert box is not None
    assert (box.xmin, box.ymin, box.xmax, box.ymax) == tuple(shapely.total_bounds(repeated))
    east_west = [shapely.Point(x, 0) for x in CHANCE.permutation([*range(-180, -120), *range(100, 180)])]
    wrapping = geo.statistics(geo.from_shapely(east_west)).bbox
    assert wrapping is not None
    assert (wrapping.xmin, wrapping.xmax) == (100, -121)
    separate = pa.StructArray.from_arrays([*map(pa.array, shapely.get_coordinates(points).T)], ["x", "y"])
    assert geo.to_shapely(geo.from_geoarrow(separate, "geoarrow.point")).tolist() == points.tolist()


def check_variants() -> None:
    rows = range(900)
    values = [{"id": row, "tags": ["x" * (row % 5)] * (row % 3), "n": None if row % 4 else row / 8} for row in rows]
    texts = [json.dumps(value) for value in values]
    for array in (variant.parse_json(pa.array(texts)), variant.parse_json(pa.chunked_array([texts[:7], texts[7:]]))):
        assert [json.loads(text) for text in variant.to_json(array).to_pylist()] == values
        assert variant.validate(array) is None
        assert variant.to_json(variant.unshred(variant.shred(array, "id BIGINT, tags ARRAY<STRING>"))).to_pylist() == (
            variant.to_json(array).to_pylist()
        )
        assert variant.get(array, "$.id", "int64").to_pylist() == [*rows]
    for data in ("\n".join(texts), "[" + ",\n".join(texts) + "]"):
        read = pa.Table.from_batches(variant.read_json(io.BytesIO(data.encode())))
        assert [json.loads(text) for text in variant.to_json(read.column(0)).to_pylist()] == values


READING = {
    "core.read.row_group_reader": ["_FEW_ROWS", "SMALL", "STREAMED_BYTES"],
    "core.read.small_chunks": ["SMALL", "_ROOM", "_ROWS", "_COUNTED", "_AHEAD", "_AHEAD_BYTES"],
    "core.read.leaf_column": ["_WASTEFUL"],
    "core.read.row_groups": ["_KEPT", "_FEW_CHUNKS", "_SHARED_ROWS"],
    "core.read.value_slots": ["EXPANDED"],
    "core.read.column": ["_MAX_SKIPPED_ROWS", "_FEW_RANGES"],
    "core.read.assemble": ["_FILLED"],
    "core.read.schema_cache": ["_MAX_SCHEMAS", "_MAX_ELEMENTS", "_MAX_SELECTIONS", "_MAX_FOOTER_BYTES"],
    "core.read.pages.page": ["_HEADER_BYTES"],
    "core.read.pages.page_groups": ["GROUP_BYTES", "SPLIT_BYTES"],
    "core.read.pages.page_decoder": ["LONG_PAGE"],
    "core.read.pages.table_decoder": ["_LEAST", "_MOST_EXPECTED", "LONG_PAGE", "SPLIT_BYTES"],
    "core.io.source": ["MERGED_BYTES", "_METADATA_GAP", "STREAMED_BYTES", "_SHORT"],
    "core.footer.structure_lookup": ["WINDOW"],
    "core.footer.reading": ["LEAST_INDEXED"],
    "core.schema.lazy_tree": ["_SOUGHT"],
    "core.schema.arrow_schema.arrays": ["_MAX_TAKEN_ELEMENTS"],
    "core.schema.arrow_schema.stored_schema": ["_WIDE", "_TIMES_FEW"],
}
WRITING = {
    "core.write.row_order": ["_TAKEN_ROWS"],
    "core.write.write_plan": ["_KEPT", "_KEPT_LEAVES"],
    "core.write.dictionary_builder": ["MAX_BYTES", "SAMPLE", "_MOST_DISTINCT", "_WORTHWHILE"],
    "core.write.encoding_choice": ["_DICTIONARY_FACTOR", "_RUNS", "_RUN_VALUES", "_RUN_BYTES", "_LONG_VALUE"],
    "core.write.row_group_writer": ["_SMALL", "_GATHERED"],
    "core.io.sink": ["_VECTOR_BUFFERS", "_BUFFER_BYTES", "_MANY", "_SMALL"],
    "core.schema.arrow_check": ["_BLOCK"],
}
GEOMETRY = {
    "geo.joins.matching": ["_MAX_CELLS", "_PAIRS"],
    "geo.summary": ["_PIECE"],
    "geo.geoarrow": ["_PIECE"],
    "geo.predicates.planar": ["_MIN_SAMPLE", "_SAMPLE", "_SHARE", "_MOST_DISTINCT"],
    "geo.predicates.unrolling": ["_OVERLAPS", "_OVERLAPS_EACH"],
    "geo.wkb": ["_WIDE_FROM"],
}
VARIANTS = {
    "variant.json.files": ["READ_BYTES"],
    "variant.json.documents": ["READ_BYTES", "SAMPLE_BYTES"],
    "variant.json.text": ["_ALLOWANCE"],
    "variant.binary_value": ["_SHORT"],
    "variant.validation": ["_PIECES", "_PIECE_ROWS"],
    "variant.shredding.infer": ["_MAX_PLACES"],
}
CHECKS: list[tuple[Callable[[], None], dict[str, list[str]]]] = [
    (check_reading, READING), (check_writing, WRITING), (check_geometry, GEOMETRY), (check_variants, VARIANTS),
]
CASES = [
    pytest.param(check, f"pqext.{module}.{name}", size, id=f"{module}.{name}-{size}")
    for check, constants in CHECKS for module, names in constants.items() for name in names for size in (1, LARGEST)
] + [pytest.param(check_variants, "pqext.variant.json.documents._SLICE", 100, id="variant.json.documents._SLICE")]


@pytest.mark.parametrize(("check", "constant", "size"), CASES)
def test_results_do_not_depend_on_sizes(
    check: Callable[[], None], constant: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constant, size)
    check()


def test_ordinary_files_are_decoded_by_page_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pqext.core.read.small_chunks.SMALL", 1)
    reasons = []
    go_by_page = ColumnReader._switch_to_page_decoder

    def record(self: ColumnReader, pages: Any, reason: Any) -> Any:
        reasons.append(reason)
        return go_by_page(self, pages, reason)

    monkeypatch.setattr(ColumnReader, "_switch_to_page_decoder", record)
    check_reading()
    assert reasons == []
