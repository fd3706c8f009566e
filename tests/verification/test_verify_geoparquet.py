"""`verify` compares GeoParquet metadata with the file: files of other writers hold true, changed ones do not."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import pytest
import shapely
from click.testing import CliRunner

import pqext
from pqext import geo
from pqext.cli import app
from pqext.core.format.metadata import FileMetaData, KeyValue

SHAPES = [shapely.Point(1, 2), None, shapely.box(3, 4, 5, 6), shapely.Point()]
About = dict[str, Any]


def by_geopandas(shapes: list[Any] = SHAPES, crs: Any = 4326, **options: Any) -> bytes:
    frame = geopandas.GeoDataFrame({"id": range(len(shapes))}, geometry=shapes, crs=crs)
    frame.to_parquet(sink := io.BytesIO(), **options)
    return sink.getvalue()


def faults(data: bytes) -> list[tuple[str, int | None]]:
    report = pqext.verify(data, checks=["geometries"])
    assert report.complete, report
    return [(fault.rule.removeprefix("geoparquet."), fault.row) for fault in report.faults]


def changed(data: bytes, change: Callable[[About], Any], whole: bool = False) -> bytes:
    """The file with its GeoParquet metadata changed: of column geometry, or as a ``whole``."""

    def rewrite(metadata: FileMetaData) -> None:
        assert metadata.key_value_metadata is not None
        pair = next(pair for pair in metadata.key_value_metadata if pair.key == "geo")
        text = json.loads(pair.value or "")
        change(text if whole else text["columns"]["geometry"])
        others = [other for other in metadata.key_value_metadata if other is not pair]
        metadata.key_value_metadata = [*others, KeyValue(key="geo", value=json.dumps(text))]

    pqext.rewrite_footer(data, rewrite, sink := io.BytesIO())
    return sink.getvalue()


@pytest.mark.spec("geoparquet.verified")
class TestVerification:
    @pytest.mark.parametrize("version", ["1.0.0", "1.1.0", "2.0.0"])
    @pytest.mark.parametrize("crs", [None, 4326, 3857])
    def test_geopandas_files_are_valid(self, version: str, crs: Any) -> None:
        assert faults(by_geopandas(crs=crs, schema_version=version)) == []
        assert faults(by_geopandas(crs=crs, write_covering_bbox=True)) == []
        assert faults(by_geopandas([shapely.Point(1, 2), None], crs, geometry_encoding="geoarrow")) == []

    @pytest.mark.parametrize("crs", [None, 3857, "srid:0"])
    def test_our_files_are_valid(self, crs: Any) -> None:
        field = geo.geometry_field("geometry", crs)
        table = pa.table([geo.from_shapely(SHAPES)], pa.schema([field]))
        for covering in (True, {"type": "float"}):
            option = {"geometry": {"covering": covering}}
            pqext.write_table(table, sink := io.BytesIO(), geometry=option, geoparquet=True, row_group_rows=3)
            assert faults(sink.getvalue()) == []
        wrapping = pa.table([geo.from_shapely([shapely.Point(179, 1), shapely.Point(-179, 2)])], pa.schema([field]))
        pqext.write_table(wrapping, sink := io.BytesIO(), geoparquet=True)
        assert faults(sink.getvalue()) == []

    @pytest.mark.skipif("GEOPARQUET_TEST_DATA" not in os.environ, reason="set GEOPARQUET_TEST_DATA")
    def test_files_of_the_specification_are_valid(self) -> None:
        paths = list(Path(os.environ["GEOPARQUET_TEST_DATA"]).glob("*.parquet"))
        assert paths
        for path in paths:
            assert faults(path.read_bytes()) == []

    @pytest.mark.parametrize(("change", "expected"), [
        (lambda about: about.update(geometry_types=["Point"]), "types"),
        (lambda about: about.update(geometry_types=["Point", "Polygon", "LineString"]), "types"),
        (lambda about: about.update(geometry_types=["Point Z", "Polygon"]), "types"),
        (lambda about: about.update(geometry_types=["Point", "Polygon", "Circle"]), "types"),
        (lambda about: about.update(bbox=[1, 2, 5]), "bbox"),
        (lambda about: about.update(bbox=[1, 6, 5, 2]), "bbox"),
        (lambda about: about.update(encoding="polygon"), "columns"),
        (lambda about: about.update(covering={"bbox": {}}), "covering"),
        (lambda about: about["covering"]["bbox"].update(xmin=["gone", "xmin"]), "covering"),
        (lambda about: about["covering"]["bbox"].update(xmin=["id"]), "covering"),
    ])  # fmt: skip
    def test_metadata_that_contradicts_a_column_is_a_fault(self, change: Any, expected: str) -> None:
        data = by_geopandas(write_covering_bbox=True)
        assert faults(changed(data, change)) == [(expected, None)]

    def test_metadata_of_missing_columns_is_a_fault(self) -> None:
        data = by_geopandas()
        gone = changed(data, lambda text: text["columns"].update(gone={"encoding": "WKB"}), whole=True)
        assert faults(gone) == [("columns", None)]
        assert faults(changed(data, lambda text: text.update(primary_column="gone"), whole=True)) == [("columns", None)]

    @pytest.mark.parametrize(("crs", "change"), [
        (3857, lambda about: about.update(crs=pyproj.CRS(5070).to_json_dict())),
        (3857, lambda about: about.pop("crs")), (3857, lambda about: about.update(crs=None)),
        (4326, lambda about: about.update(crs=pyproj.CRS(5070).to_json_dict())),
        (4326, lambda about: about.update(edges="spherical")),
    ])  # fmt: skip
    @pytest.mark.filterwarnings("ignore:.*but GeoParquet metadata states")
    def test_contradictions_between_type_and_metadata_are_faults(self, crs: int, change: Any) -> None:
        data = by_geopandas([shapely.Point(1, 2)], crs, schema_version="2.0.0")
        assert faults(data) == []
        assert faults(changed(data, change)) == [("precedence", None)]

    @pytest.mark.parametrize("group_rows", [2, 100])
    def test_covering_boxes_are_compared_row_by_row(self, group_rows: int) -> None:
        frame = geopandas.GeoDataFrame(geometry=shapely.points(np.arange(8), np.arange(8)), crs=4326)
        frame.to_parquet(sink := io.BytesIO(), write_covering_bbox=True)
        table = pq.read_table(sink)
        boxes = table["bbox"].to_pylist()
        boxes[2] |= {"xmin": 2.5, "xmax": 3.0}  # all rows but this one meet the box of their row group
        boxes[5]["ymax"] = 4.5
        boxes[6] = None
        index = table.schema.get_field_index("bbox")
        table = table.set_column(index, "bbox", pa.array(boxes, table.schema.field("bbox").type))
        pq.write_table(table, sink := io.BytesIO(), row_group_size=group_rows)
        assert sorted(faults(sink.getvalue())) == [("covering", 2), ("covering", 5), ("covering", 6)]
        assert pqext.verify(sink.getvalue(), checks=["geometries"], limit=1).total == 3
        # The rows that pyarrow loses by these boxes are the faults that it can see.
        lost = [
            row for row in range(8)
            if row not in geopandas.read_parquet(sink, bbox=(row, row, row, row)).geometry.x.tolist()
        ]  # fmt: skip
        assert lost == [2, 5, 6]

    def test_native_encodings_are_checked_against_their_metadata(self) -> None:
        data = by_geopandas([shapely.Point(1, 2), shapely.Point(5, 6)], geometry_encoding="geoarrow")
        assert faults(changed(data, lambda about: about.update(bbox=[1, 2, 4, 6]))) == [("bbox", None)]
        assert faults(changed(data, lambda about: about.update(geometry_types=["MultiPoint"]))) == [("types", None)]

    @pytest.mark.parametrize("change", [
        lambda about: about.update(geometry_types=["Point Z"]), lambda about: about.update(bbox=[0, 0, 0.5, 0.5]),
        lambda about: about.update(bbox=[1, 2, 5]), lambda about: about["covering"]["bbox"].update(xmin=["gone", "x"]),
        lambda about: about.update(covering={"bbox": {}}), None,
    ])  # fmt: skip
    def test_advised_command_repairs_wrong_boxes_and_types(self, tmp_path: Path, change: Any) -> None:
        points = [shapely.Point(x, x) for x in range(6)]
        data = by_geopandas(points, write_covering_bbox=True)
        if change is not None:
            data = changed(data, change)
        else:
            table = pq.read_table(io.BytesIO(data))
            boxes = [dict.fromkeys(box, 50.0) for box in table["bbox"].to_pylist()]
            column = pa.array(boxes, table.schema.field("bbox").type)
            pq.write_table(table.set_column(table.schema.get_field_index("bbox"), "bbox", column), sink := io.BytesIO())
            data = sink.getvalue()
        (tmp_path / "in.parquet").write_bytes(data)
        (count,) = pqext.verify(data).counts
        assert "the geometries are right" in count.advice
        commands = re.findall("`pqext ([^`]+)`", count.advice)
        assert commands
        for number, command in enumerate(commands):
            out = tmp_path / f"{number}.parquet"
            places = {"IN": str(tmp_path / "in.parquet"), "OUT": str(out)}
            result = CliRunner().invoke(app, [places.get(word, word) for word in command.split()])
            assert result.exit_code == 0, result.output
            assert pqext.verify(out).counts == ()
            assert geopandas.read_parquet(out).geometry.tolist() == points
            if "--geoparquet" in command:
                assert geopandas.read_parquet(out, bbox=(1, 1, 2, 2)).geometry.tolist() == points[1:3]

    def test_advised_option_repairs_the_orientation(self, tmp_path: Path) -> None:
        ring = shapely.Polygon([(0, 0), (0, 1), (1, 1)])  # clockwise
        data = changed(by_geopandas([ring]), lambda about: about.update(orientation="counterclockwise"))
        (count,) = pqext.verify(data).counts
        choice = re.search(r"geometry={COLUMN: ({.*})}", count.advice)
        assert choice is not None
        path = tmp_path / "out.parquet"
        pqext.write_table(pqext.read_table(data), path, geometry={"geometry": json.loads(choice[1])})
        assert pqext.verify(path).counts == ()
        assert geopandas.read_parquet(path).geometry[0].exterior.is_ccw
