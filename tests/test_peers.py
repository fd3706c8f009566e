"""The cells of the comparison in the README, one by one (Spark: tests/spark; figures: test_comparison.py)."""

from __future__ import annotations

import json
from pathlib import Path

import datafusion
import duckdb
import geopandas
import peer_files
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import shapely

import pqext
from pqext import geo, variant

BY_PATH = pqext.col("event").variant("$.mag", "double") >= peer_files.LAST_MAG
BY_BOX = pqext.col("geom").intersects(peer_files.LAST_BOX)
PATH_SQL = f"event.mag::DOUBLE >= {peer_files.LAST_MAG}"
BOX_SQL = f"geom && '{shapely.box(*peer_files.LAST_BOX).wkt}'::GEOMETRY"


@pytest.fixture(scope="module")
def partial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Events of which one field is shredded, the other is in the residual."""
    return peer_files.write(tmp_path_factory.mktemp("peers") / "partial.parquet", peer_files.CHOSEN)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Events of which every field is shredded."""
    return peer_files.write(tmp_path_factory.mktemp("peers") / "whole.parquet", peer_files.WHOLE)


@pytest.fixture(scope="module")
def covered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The points in GeoParquet 1.1 with a covering column, by geopandas; only the last row group is readable."""
    path = tmp_path_factory.mktemp("peers") / "covered.parquet"
    points = geopandas.GeoSeries.from_wkb(peer_files.table()["geom"].to_pylist(), crs="OGC:CRS84")
    frame = geopandas.GeoDataFrame({"id": range(peer_files.ROWS)}, geometry=points)
    frame.to_parquet(path, write_covering_bbox=True, schema_version="1.1.0", row_group_size=peer_files.GROUP)
    return peer_files.damaged(path)


def count_in_datafusion(path: Path, condition: str) -> int:
    context = datafusion.SessionContext()
    context.register_parquet("events", str(path))
    return sum(batch.num_rows for batch in context.sql(f"SELECT * FROM events WHERE {condition}").collect())


def count_in_duckdb(path: Path, condition: str) -> int:
    ((count,),) = duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE {condition}").fetchall()
    return int(count)


def test_variant_path_skips_row_groups_of_fully_and_partially_shredded_objects(
    partial: Path, whole: Path
) -> None:
    for path in (partial, whole):
        assert pqext.scan(path, filter=BY_PATH).count() == peer_files.GROUP
        assert pqext.scan(peer_files.damaged(path), filter=BY_PATH).count() == peer_files.GROUP


def test_duckdb_skips_by_a_variant_path_only_in_fully_shredded_objects(partial: Path, whole: Path) -> None:
    assert count_in_duckdb(partial, PATH_SQL) == count_in_duckdb(whole, PATH_SQL) == peer_files.GROUP
    assert count_in_duckdb(peer_files.damaged(whole), PATH_SQL) == peer_files.GROUP
    with pytest.raises(duckdb.Error):
        count_in_duckdb(peer_files.damaged(partial), PATH_SQL)


def test_pyarrow_reads_storage_structs_and_skips_by_an_explicit_leaf(partial: Path) -> None:
    stored = pq.read_schema(partial).field("event").type
    assert [field.name for field in stored] == ["metadata", "value", "typed_value"]
    leaf = pc.field("event", "typed_value", "mag", "typed_value")
    filter = leaf >= pa.scalar(peer_files.LAST_MAG).cast(pa.decimal128(9, 2))
    damaged = ds.dataset(peer_files.damaged(partial))
    assert damaged.to_table(columns={"mag": leaf}, filter=filter).num_rows == peer_files.GROUP


def test_explicit_leaf_misses_residual_values(tmp_path: Path) -> None:
    events = variant.parse_json(pa.array(['{"mag": 5}', '{"mag": 5.125}']))
    table = pa.Table.from_arrays([events], schema=pa.schema([variant.variant_field("event")]))
    pqext.write_table(table, tmp_path / "events.parquet", shredding={"event": peer_files.CHOSEN})
    leaf = pc.field("event", "typed_value", "mag", "typed_value")
    assert ds.dataset(tmp_path / "events.parquet").to_table(filter=leaf.cast("double") >= 5).num_rows == 1
    asked = pqext.col("event").variant("$.mag", "double") >= 5
    assert pqext.scan(tmp_path / "events.parquet", filter=asked).count() == 2


def test_box_skips_row_groups_in_pqext_and_in_duckdb(partial: Path) -> None:
    damaged = peer_files.damaged(partial)
    assert pqext.scan(damaged, filter=BY_BOX).count() == peer_files.GROUP
    assert count_in_duckdb(damaged, BOX_SQL) == peer_files.GROUP


def test_duckdb_reads_the_same_values(partial: Path) -> None:
    ours = pqext.read_table(partial)
    rows = duckdb.sql(f"SELECT event.mag::DOUBLE, event.place::VARCHAR, geom::BLOB FROM '{partial}'").fetchall()
    magnitudes = variant.get(ours["event"], "$.mag", "double").to_pylist()
    places = variant.get(ours["event"], "$.place", "string").to_pylist()
    assert rows == list(zip(magnitudes, places, ours["geom"].to_pylist(), strict=True))


def test_polars_opens_no_file_with_a_variant_or_a_geometry(tmp_path: Path, partial: Path) -> None:
    points = pa.Table.from_arrays([geo.from_points([1.0], [2.0])], schema=pa.schema([geo.geometry_field("geom")]))
    pqext.write_table(points, tmp_path / "points.parquet")
    for path in (partial, tmp_path / "points.parquet"):
        with pytest.raises(pl.exceptions.ComputeError, match="LogicalType"):
            pl.read_parquet(path)


def test_only_our_box_next_to_the_antimeridian_wraps(tmp_path: Path) -> None:
    points = geo.from_points([179.0, -179.0], [-17.0, -18.0])
    table = pa.Table.from_arrays([points], schema=pa.schema([geo.geometry_field("geom")]))
    pqext.write_table(table, tmp_path / "pqext.parquet")
    pq.write_table(geo.as_extension(table), tmp_path / "pyarrow.parquet")
    with duckdb.connect() as connection:
        connection.register("points", table)
        connection.sql(f"COPY points TO '{tmp_path / 'duckdb.parquet'}' (FORMAT parquet, GEOPARQUET_VERSION 'V2')")
    frame = geopandas.GeoDataFrame(geometry=geopandas.GeoSeries.from_wkb(points.to_pylist(), crs="OGC:CRS84"))
    frame.to_parquet(tmp_path / "geopandas.parquet", write_covering_bbox=True)
    metadata = json.loads(pq.read_metadata(tmp_path / "geopandas.parquet").metadata[b"geo"])
    assert metadata["columns"]["geometry"]["bbox"] == [-179.0, -18.0, 179.0, -17.0]
    boxes = {}
    for writer in ("pqext", "pyarrow", "duckdb"):
        box = pq.read_metadata(tmp_path / f"{writer}.parquet").row_group(0).column(0).geo_statistics
        boxes[writer] = (box.xmin, box.xmax)
    assert boxes == {"pqext": (179.0, -179.0), "pyarrow": (-179.0, 179.0), "duckdb": (-179.0, 179.0)}


def test_datafusion_reads_storage_structs_without_skipping_by_leaf(partial: Path) -> None:
    context = datafusion.SessionContext()
    schema = context.read_parquet(str(partial)).schema()
    assert [field.name for field in schema.field("event").type] == ["metadata", "value", "typed_value"]
    assert schema.field("geom").type in (pa.binary(), pa.binary_view())
    leaf = f"event['typed_value']['mag']['typed_value'] >= {peer_files.LAST_MAG}"
    assert count_in_datafusion(partial, leaf) == peer_files.GROUP
    with pytest.raises(Exception, match="Parquet"):
        count_in_datafusion(peer_files.damaged(partial), leaf)


def test_geopandas_needs_geoparquet_metadata_and_skips_by_boxes_and_leaves(tmp_path: Path) -> None:
    table, last = peer_files.table(), tmp_path / "last.parquet"
    options = {"shredding": {"event": peer_files.CHOSEN}, "row_group_rows": peer_files.GROUP}
    pqext.write_table(table, last, geometry={"geom": "OGC:CRS84"}, **options)
    bare = tmp_path / "bare.parquet"
    pqext.write_table(table, bare, geometry={"geom": "OGC:CRS84"}, geoparquet=False, **options)
    with pytest.raises(ValueError, match="Missing geo metadata"):
        geopandas.read_parquet(bare)
    frame = geopandas.read_parquet(last)
    assert frame.geometry.to_wkb().tolist() == table["geom"].to_pylist()
    assert set(frame["event"][0]) == {"metadata", "value", "typed_value"}
    damaged = peer_files.damaged(last)
    assert len(geopandas.read_parquet(damaged, bbox=peer_files.LAST_BOX)) == peer_files.GROUP
    leaf = pc.field("event", "typed_value", "mag", "typed_value")
    by_leaf = leaf >= pa.scalar(peer_files.LAST_MAG).cast(pa.decimal128(9, 2))
    assert len(geopandas.read_parquet(damaged, filters=by_leaf)) == peer_files.GROUP


def test_covering_skips_row_groups_except_in_polars_and_datafusion(covered: Path) -> None:
    box, least = peer_files.LAST_BOX, peer_files.LAST_BOX[1]
    assert pqext.scan(covered, filter=pqext.col("geometry").intersects(box)).count() == peer_files.GROUP
    assert len(geopandas.read_parquet(covered, bbox=box)) == peer_files.GROUP
    assert ds.dataset(covered).to_table(filter=pc.field("bbox", "ymax") >= least).num_rows == peer_files.GROUP
    assert count_in_duckdb(covered, f"bbox.ymax >= {least} AND id >= 0") == peer_files.GROUP
    with pytest.raises(pl.exceptions.ComputeError):
        pl.scan_parquet(covered).filter(pl.col("bbox").struct.field("ymax") >= least).collect()
    with pytest.raises(Exception, match="Parquet"):
        count_in_datafusion(covered, f"bbox['ymax'] >= {least}")


def test_other_engines_run_sql_and_joins(tmp_path: Path) -> None:
    path, table = tmp_path / "ids.parquet", pa.table({"id": [1, 2, 3]})
    pq.write_table(table, path)
    context = datafusion.SessionContext()
    context.register_parquet("ids", str(path))
    query = "SELECT max(a.id) AS last FROM ids AS a JOIN ids AS b ON a.id = b.id + 1"
    assert duckdb.sql(query.replace("ids", f"'{path}'")).fetchall() == [(3,)]
    assert pl.SQLContext(ids=pl.scan_parquet(path)).execute(query, eager=True)["last"].to_list() == [3]
    assert context.sql(query).to_pydict() == {"last": [3]}
    assert table.join(table, "id", join_type="inner").num_rows == 3
    frame = geopandas.GeoDataFrame({"id": [1, 2, 3]}, geometry=geopandas.points_from_xy([0, 1, 2], [0, 1, 2]))
    assert len(frame.merge(frame, on="id")) == 3
    assert not hasattr(pa, "sql")
    assert not hasattr(pqext.Scan, "join")
    with pytest.raises(ValueError, match="SELECT"):
        pqext.scan(path, filter="id IN (SELECT id FROM ids)").count()


def test_duckdb_accepts_a_shredding_schema_in_sql(tmp_path: Path) -> None:
    path = tmp_path / "duckdb.parquet"
    with duckdb.connect() as connection:
        connection.sql("""CREATE TABLE t AS SELECT '{"mag": 4.5, "place": "Fiji"}'::JSON::VARIANT AS event""")
        connection.sql(f"COPY t TO '{path}' (FORMAT parquet, SHREDDING {{event: 'STRUCT(mag DECIMAL(9,2))'}})")
    stored = pq.read_schema(path).field("event").type
    assert [field.name for field in stored.field("typed_value").type] == ["mag"]
    assert variant.get(pqext.read_table(path)["event"], "$.mag", "double").to_pylist() == [4.5]
