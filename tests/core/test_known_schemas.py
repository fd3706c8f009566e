"""Files of one schema share what was worked out for the first, where they are alike and nothing was said of it."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyproj
import pytest

import pqext
from pqext import geo
from pqext.core.base.errors import AnnotationWarning
from pqext.core.base.limits import Limits
from pqext.core.options.read_write import ReadOptions
from pqext.core.read import schema_cache
from pqext.core.schema.arrow_schema.stored_schema import KEY
from pqext.geo.types import type_of


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_cache, "_recent", [])


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


def opened(raw: bytes, **options: Any) -> pqext.ParquetFile:
    """A file that was read whole."""
    file = pqext.open(raw, **options)
    file.read()
    return file


TABLE = pa.table({"a": [1, None], "b": ["x", "y"], "c": [{"d": 1.5}, None]})
OTHER_ROWS = pa.table({"a": [7], "b": pa.array([None], pa.string()), "c": [{"d": None}]}, TABLE.schema)


def test_concurrent_open_of_another_file_does_not_change_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does so just when the schema has been found."""
    opened(written(pa.table({"z": [2.5]})))
    other = schema_cache._recent[:1]
    raw = written(TABLE)
    opened(raw)
    first = schema_cache._recent[0]

    class Compared(tuple[Any, ...]):
        def __eq__(self, key: object) -> bool:
            monkeypatch.setattr(schema_cache, "_recent", [*other, first])
            return tuple.__eq__(self, key)

        __hash__ = tuple.__hash__

    monkeypatch.setattr(schema_cache, "_recent", [(Compared(first[0]), *first[1:])])
    assert opened(raw).read().equals(TABLE)


def test_next_file_of_a_schema_reuses_its_columns() -> None:
    first, second = opened(written(TABLE)), opened(written(OTHER_ROWS))
    assert second.shapes is first.shapes
    assert second.arrow_schema.equals(first.arrow_schema, check_metadata=True)
    assert first.read() == TABLE
    assert second.read() == OTHER_ROWS
    assert second.read(["c.d"]) == OTHER_ROWS.select(["c"])


def test_previously_selected_columns_are_reused() -> None:
    first, second = opened(written(TABLE)), opened(written(OTHER_ROWS))
    for columns in (["c.d", "a"], ["b"], []):
        assert first.read(columns).equals(TABLE.select(first.read(columns).column_names))
        shapes = first.select(columns)
        assert second.select(tuple(columns)) is shapes
        assert second.read(columns).schema == first.read(columns).schema
        assert second.read(columns) == OTHER_ROWS.select(second.read(columns).column_names)
    with pytest.raises(KeyError, match="nothing"):
        second.read(["a", "nothing"])


def test_dictionary_compared_columns_are_returned_with_their_type(tmp_path: Path) -> None:
    words = pa.table({"n": range(400), "s": ["one", "two"] * 200})
    for number in range(3):
        pqext.write_table(words, tmp_path / f"{number}.parquet")
    file = opened((tmp_path / "0.parquet").read_bytes())
    (batch,) = file.iter_dictionary_batches(1000, ["s"], 0, None, {"s"}, file.budget())
    assert pa.types.is_dictionary(batch.schema.field("s").type)
    assert file.read(["s"]) == words.select(["s"])
    for columns in (["s"], ["n"], None):
        found = pqext.scan(tmp_path, columns, filter=pqext.col("s") == "two").to_table()
        assert found == pa.concat_tables([words.filter(pc.field("s") == "two")] * 3).select(columns or ["n", "s"])


def test_number_of_cached_column_selections_is_bounded() -> None:
    table = pa.table({f"c{i}": [i] for i in range(40)})
    file = opened(written(table))
    for i in range(40):
        assert file.read([f"c{i}"]) == table.select([i])
    ((*_, known),) = schema_cache._recent
    assert len(known._selections) <= schema_cache._MAX_SELECTIONS


@pytest.mark.parametrize(
    "other",
    [
        pa.table({"a": [1], "b": ["x"]}),
        TABLE.rename_columns(["a", "b", "d"]),
        TABLE.set_column(0, "a", pa.array([1, 2], pa.timestamp("us"))),
        TABLE.replace_schema_metadata({"k": "v"}),
        pa.table(TABLE.columns, TABLE.schema.set(0, pa.field("a", pa.int64(), metadata={"k": "v"}))),
    ],
    ids=lambda table: str(table.schema)[:40],
)
def test_different_schema_or_metadata_is_cached_separately(other: pa.Table) -> None:
    opened(written(TABLE))
    assert opened(written(other)).arrow_schema.equals(other.schema, check_metadata=True)


def test_files_read_with_other_options_are_cached_separately() -> None:
    raw = written(TABLE)
    plain = opened(raw)
    views = opened(raw, strings="view")
    assert views.arrow_schema.field("b").type == pa.string_view()
    assert plain.arrow_schema.field("b").type == pa.string()
    assert opened(raw, limits=Limits(schema_depth=50)).shapes is not plain.shapes
    assert opened(raw, strings="view").shapes is views.shapes
    assert opened(raw, arrow_schema=False).shapes is not plain.shapes


def test_types_of_another_file_stay_with_the_file_that_uses_them() -> None:
    raw = written(TABLE)
    bare = written(TABLE, arrow_schema=False)
    first, second = opened(raw), opened(bare)
    shown = second.arrow_schema
    second.set_stored_types(first.stored_schema)
    assert second.read() == TABLE
    assert opened(bare).arrow_schema == shown
    views = pa.schema([pa.field("b", pa.large_string())])
    third = opened(bare)
    plain = third.read(["b"])
    third.set_stored_types(opened(written(TABLE.select(["b"]).cast(views))).stored_schema)
    assert third.read(["b"]).schema.field("b").type == third.arrow_schema.field("b").type == pa.large_string()
    assert opened(bare).read(["b"]) == plain


def test_file_with_a_warning_warns_each_time() -> None:
    raw = written(TABLE.replace_schema_metadata({}), key_value_metadata={KEY: "nonsense"}, arrow_schema=False)
    for path in ("one", "two"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            opened(raw)
        assert len(caught) == 1, path
    assert not schema_cache._recent


def test_geoparquet_schemas_are_cached_unless_they_warn() -> None:
    places = pa.table({"at": geo.from_points([1.0], [2.0])})
    raw = written(places, geometry={"at": "EPSG:25832"})
    first = opened(raw)
    assert opened(raw).shapes is first.shapes
    assert b"25832" in first.arrow_schema.field("at").metadata[b"ARROW:extension:metadata"]
    assert opened(raw, geoparquet=False).shapes is not first.shapes
    for _ in range(2):
        with pytest.warns(AnnotationWarning, match="geo"):
            opened(written(TABLE, key_value_metadata={"geo": "{}"}))


def at_points(longitudes: list[float], crs: str = "OGC:CRS84") -> tuple[pa.Table, bytes]:
    table = pa.table({"at": geo.from_points(longitudes, [2.0] * len(longitudes)), "id": range(len(longitudes))})
    return table, written(table, geometry={"at": crs})


@pytest.mark.parametrize("crs", ["OGC:CRS84", "EPSG:25832"])
def test_files_whose_boxes_differ_share_a_schema_but_not_its_metadata(crs: str) -> None:
    """pyarrow, the oracle, takes each file by itself."""
    raws = [at_points(points, crs)[1] for points in ([1.0], [5.0, 7.0], [-3.0])]
    files = [opened(raw) for raw in raws]
    assert files[2].shapes is files[1].shapes is files[0].shapes
    for columns, order in ((None, 1), (["at"], -1), (["id"], 1), (["at"], 1), (["id"], -1)):
        for file, raw in [*zip(files, raws, strict=True)][::order]:
            expected = pq.read_table(io.BytesIO(raw), columns=columns)
            assert file.read(columns).schema.metadata == expected.schema.metadata
            assert file.read(columns).column_names == expected.column_names
            assert file.arrow_schema.metadata == pq.read_schema(io.BytesIO(raw)).metadata
    assert len({file.arrow_schema.metadata[b"geo"] for file in files}) == 3


def test_geoparquet_files_of_other_systems_or_without_valid_metadata_share_no_schema() -> None:
    table, raw = at_points([1.0, 2.0])
    first = opened(raw)
    assert type_of(first.arrow_schema.field("at")) == geo.GeospatialType()
    assert type_of(opened(at_points([1.0], "EPSG:4326")[1]).arrow_schema.field("at")).crs != "OGC:CRS84"
    spherical = written(table, geometry={"at": {"crs": "OGC:CRS84", "edges": "spherical"}})
    assert type_of(opened(spherical).arrow_schema.field("at")).edges == "spherical"
    assert opened(raw).shapes is first.shapes
    plain = pa.table({"at": pa.array(table["at"].to_pylist(), pa.binary())})
    for facts in ('"geometry_types": ["Point"]', '"geometry_types": [], "bbox": [1, 2, 2, 2]'):
        text = f'{{"version": "1.1.0", "primary_column": "at", "columns": {{"at": {{"encoding": "WKB", {facts}}}}}}}'
        file = opened(written(plain, key_value_metadata={"geo": text}))
        assert type_of(file.arrow_schema.field("at")) is not None
        assert file.arrow_schema.metadata == {b"geo": text.encode()}
    assert opened(written(plain, key_value_metadata={"geo": text[:-1] + " }"})).shapes is file.shapes
    found = set()
    for part in ('"crs": null', '"edges": "spherical"', f'"crs": {pyproj.CRS.from_epsg(25832).to_json()}'):
        file = opened(written(plain, key_value_metadata={"geo": text.replace('"bbox"', f'{part}, "bbox"')}))
        found.add(type_of(file.arrow_schema.field("at")))
    assert len({*found, geo.GeospatialType()}) == 4
    for _ in range(2):
        with pytest.warns(AnnotationWarning, match="geo"):
            file = opened(written(plain, key_value_metadata={"geo": text[:-1]}))
        assert type_of(file.arrow_schema.field("at")) is None


def test_metadata_without_facts_is_not_replaced_by_that_of_another_file() -> None:
    plain = pa.table({"at": pa.array(at_points([1.0])[0]["at"].to_pylist(), pa.binary())})
    bare = '{"columns": {"at": {"encoding": "WKB"}}}'
    full = bare.replace('"WKB"', '"WKB", "bbox": [1, 2, 1, 2]')
    for text in (full, bare, full):
        file = opened(written(plain, key_value_metadata={"geo": text}, arrow_schema=False))
        assert file.arrow_schema.metadata == file.read(["at"]).schema.metadata == {b"geo": text.encode()}


def test_changed_properties_of_the_caller_do_not_change_cached_schemas() -> None:
    plain = pa.table({"at": pa.array(at_points([1.0])[0]["at"].to_pylist(), pa.binary())})
    text = '{"columns": {"at": {"encoding": "WKB", "crs": "projjson:own"}}}'
    raw = written(plain, key_value_metadata={"geo": text})
    first, second = (pyproj.CRS.from_epsg(code).to_json() for code in (4326, 25832))
    properties = {"own": first}
    assert type_of(opened(raw, options=ReadOptions(properties=properties)).arrow_schema.field("at")) is not None
    properties["own"] = second
    field = opened(raw, properties={"own": second}).arrow_schema.field("at")
    assert b"25832" in field.metadata[b"ARROW:extension:metadata"]


def test_wide_schemas_and_large_footers_are_not_cached() -> None:
    wide = pa.table({f"c{i}": [1] for i in range(300)})
    assert opened(written(wide)).read() == wide
    many = pa.table({f"c{i}": range(200) for i in range(5)})
    assert opened(written(many, row_group_rows=1)).read() == many
    assert not schema_cache._recent


def test_number_of_cached_schemas_is_bounded() -> None:
    for i in range(40):
        opened(written(pa.table({f"c{i}": [1]})))
    assert len(schema_cache._recent) == schema_cache._MAX_SCHEMAS
