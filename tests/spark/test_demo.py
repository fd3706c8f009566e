"""The main job on real data: three questions answered right from a third of the files at most."""

from __future__ import annotations

import html
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from spark.sessions import SPARK_4_1

from pqext import variant
from pqext.cli import app
from pqext.demo.agreement import normalize_json, overwrite_pages
from pqext.demo.job import Job, run
from pqext.demo.questions import make_queries, run_query
from pqext.demo.source import FIJI, Source, describe_file, write_example
from pqext.report import Agreement, DemoReport, FilePicture, Question

Feature = dict[str, Any]


@dataclass
class Record:
    """Keeps what the job tells."""

    steps: list[str] = field(default_factory=list)
    files: list[FilePicture] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    agreements: tuple[Agreement, ...] = ()

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        yield
        self.steps.append(text)

    def show_file(self, file: FilePicture) -> None:
        self.files.append(file)

    def show_result(self, question: Question) -> None:
        self.questions.append(question)

    def show_agreements(self, agreements: tuple[Agreement, ...]) -> None:
        self.agreements = agreements


@dataclass(frozen=True)
class Demo:
    folder: Path
    source: Source
    report: DemoReport
    record: Record

    @property
    def files(self) -> dict[str, Path]:
        return {name: next((self.folder / name).glob("*.parquet")) for name in ("chosen", "inferred")}


@pytest.fixture(scope="session")
def demo(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("demo")
    source, record = write_example(folder), Record()
    report = run(Job(source, folder, folder / "report.html"), record, spark)
    return Demo(folder, source, report, record)


def is_in_box(feature: Feature) -> bool:
    x, y = feature["geometry"]["coordinates"][:2]
    return (x >= FIJI.xmin or x <= FIJI.xmax) and FIJI.ymin <= y <= FIJI.ymax


def strong(feature: Feature) -> bool:
    magnitude = feature["properties"]["mag"]
    return magnitude is not None and magnitude >= 5


ORACLES = (is_in_box, strong, lambda feature: is_in_box(feature) and strong(feature))


@pytest.mark.parametrize("number", range(3))
def test_each_answer_matches_plain_python(demo: Demo, events: list[Feature], number: int) -> None:
    question = demo.record.questions[number]
    expected = [feature for feature in events if ORACLES[number](feature)]
    place = question.columns.index("place")
    assert len(expected) == question.num_rows > 0
    assert Counter(row[place] for row in question.rows) == Counter(f["properties"]["place"] for f in expected)
    assert Counter(question.points) == Counter(tuple(f["geometry"]["coordinates"][:2]) for f in expected)


def test_box_around_fiji_matches_on_both_sides_of_the_antimeridian(demo: Demo) -> None:
    sides = {x > 0 for x, _ in demo.record.questions[0].points}
    assert FIJI.xmin > FIJI.xmax
    assert sides == {True, False}


@pytest.mark.parametrize("number", range(3))
def test_each_query_reads_at_most_a_third(demo: Demo, number: int) -> None:
    readings = demo.record.questions[number].readings
    assert [reading.file for reading in readings] == ["chosen schema", "inferred schema"]
    for reading, path in zip(readings, demo.files.values(), strict=True):
        metadata = pq.read_metadata(path)
        chunks = sum(
            metadata.row_group(group).column(leaf).total_compressed_size
            for group in range(metadata.num_row_groups)
            for leaf in range(metadata.num_columns)
        )
        assert reading.bytes_total == chunks + metadata.serialized_size
        assert reading.row_groups_total >= 16
        assert 0 < len(reading.row_groups) <= reading.row_groups_total / 3
        assert 0 < reading.bytes_read - metadata.serialized_size <= chunks / 3


@pytest.mark.parametrize("name", ["chosen", pytest.param("inferred", marks=pytest.mark.slow)])
@pytest.mark.parametrize("number", range(3))
def test_skipped_row_groups_may_be_destroyed(demo: Demo, spark: Any, tmp_path: Path, name: str, number: int) -> None:
    asked = make_queries(demo.source, "geom")[number]
    question = demo.record.questions[number]
    kept = next(reading.row_groups for reading in question.readings if reading.file.startswith(name))
    lost = overwrite_pages(demo.files[name], kept, tmp_path / "data" / "destroyed.parquet")
    assert lost > 0
    found = run_query(asked.frame(spark, tmp_path / "data", tmp_path / "told"), demo.source)
    assert found.rows == question.rows


@pytest.mark.parametrize("name", ["chosen", "inferred"])
def test_files_are_annotated_and_every_chunk_has_box_and_types(demo: Demo, name: str) -> None:
    metadata = pq.read_metadata(demo.files[name])
    leaves = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    assert {"event.metadata", "event.value", "event.typed_value.properties.typed_value.mag.typed_value"} <= set(leaves)
    assert "Variant(1)" in str(metadata.schema) or "VARIANT" in str(metadata.schema).upper()
    geometry = leaves.index("geom")
    assert "Geometry" in str(metadata.schema.column(geometry).logical_type)
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(geometry).geo_statistics
        assert statistics.geospatial_types == [1001]
        assert -90 <= statistics.ymin <= statistics.ymax <= 90
        assert statistics.zmin <= statistics.zmax


def test_explicit_schema_types_its_leaves_and_keeps_the_rest_as_residual(
    demo: Demo, events: list[Feature]
) -> None:
    leaf = pq.read_schema(demo.files["chosen"]).field("event").type
    properties = leaf.field("typed_value").type.field("properties").type.field("typed_value").type
    assert {child.name: child.type.field("typed_value").type for child in properties} == {
        "mag": pa.decimal128(9, 2),
        "place": pa.string(),
        "time": pa.int64(),
        "magType": pa.string(),
    }
    stored = pq.read_table(demo.files["chosen"], columns=["event"]).column("event").to_pylist()
    assert all(row["value"] for row in stored)
    magnitudes = Counter(row["typed_value"]["properties"]["typed_value"]["mag"]["typed_value"] for row in stored)
    assert magnitudes == Counter(feature["properties"]["mag"] and _decimal(feature) for feature in events)


def _decimal(feature: Feature) -> Any:
    from decimal import Decimal

    return Decimal(str(feature["properties"]["mag"]))


@pytest.mark.parametrize("name", ["chosen", "inferred"])
def test_pyarrow_reads_the_written_rows(demo: Demo, events: list[Feature], name: str) -> None:
    import shapely

    table = pq.read_table(demo.files[name], arrow_extensions_enabled=False)
    texts = variant.to_json(variant.unshred(table.column("event").combine_chunks())).to_pylist()
    points = shapely.from_wkb(table.column("geom").to_pylist())
    found = Counter((normalize_json(text), tuple(point.coords[0])) for text, point in zip(texts, points, strict=True))
    expected = Counter((normalize_json(json.dumps(f)), tuple(map(float, f["geometry"]["coordinates"]))) for f in events)
    assert found == expected


def test_spark_reader_and_duckdb_match(demo: Demo) -> None:
    pytest.importorskip("duckdb")
    assert len(demo.record.agreements) == 4
    for agreement in demo.record.agreements:
        assert agreement.agrees or (SPARK_4_1 and "does not read geometries" in agreement.note), agreement


def test_both_schemas_are_reported_with_sizes_and_origin(demo: Demo) -> None:
    chosen, inferred = demo.record.files
    assert chosen.schema == (
        "STRUCT<properties: STRUCT<mag: DECIMAL(9,2), place: STRING, time: BIGINT, magType: STRING>>"
    )
    assert inferred.schema.startswith("STRUCT<")
    assert "felt: " in inferred.schema
    for picture, path in zip((chosen, inferred), demo.files.values(), strict=True):
        data = path.read_bytes()
        assert picture.footer == int.from_bytes(data[-8:-4], "little")
        assert picture.size == len(data)
    assert any("Distribution of bytes" in note and "inferred schema" in note for note in demo.report.notes)
    assert chosen.schema in html.unescape((demo.folder / "report.html").read_text("utf-8"))


class Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_report_shows_every_row_group_and_is_self_contained(demo: Demo) -> None:
    text = (demo.folder / "report.html").read_text("utf-8")
    elements = Elements(text).found
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in elements}
    assert not {"src", "href", "srcset"} & {key for _, attrs in elements for key in attrs}
    assert not any("http" in (value or "") for _, attrs in elements for value in attrs.values())
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    groups = Counter(attrs.get("class") for tag, attrs in elements if tag == "g")
    for kind in ("read", "skipped"):
        assert groups[kind] == sum(
            len(reading.row_groups) if kind == "read" else reading.row_groups_total - len(reading.row_groups)
            for question in demo.record.questions
            for reading in question.readings
        )


def lines(folder: Path, rows: list[object]) -> Path:
    path = folder / "stations.ndjson"
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def stations(count: int = 400) -> list[object]:
    return [
        {"name": f"station {i}", "at": {"x": i % 20, "y": i // 20}, "height": (i // 20) ** 2 + i % 7 / 10}
        for i in range(count)
    ]


@pytest.mark.slow
def test_user_file_gets_suitable_queries(spark: Any, tmp_path: Path) -> None:
    record = Record()
    source = describe_file(lines(tmp_path, stations()), "station", "at.x,at.y", None)
    kept = [tmp_path / "out" / "chosen" / name for name in ("notes.txt", "mine.parquet")]
    kept[0].parent.mkdir(parents=True)
    for path in (*kept, *(kept[0].with_name(name) for name in ("_SUCCESS", "part-00000-x-1.parquet"))):
        path.touch()
    report = run(Job(source, tmp_path / "out", tmp_path / "r.html"), record, spark)
    box, number, both = record.questions
    assert box.box is not None
    inside = [s for s in stations() if _within(box, s)]
    assert 0 < box.num_rows == len(inside) < 100
    assert "$.height" in number.expression
    assert 0 < number.num_rows < 20
    assert both.num_rows <= min(box.num_rows, number.num_rows)
    assert len(report.files) == 1
    assert report.files[0].rows == 400
    assert number.columns == ("height", "name", "at.x", "at.y")
    assert all(name.startswith("station ") for _, name, *_ in number.rows)
    assert sorted((tmp_path / "out" / "chosen").iterdir()) == sorted(kept), "an older file is gone, others are not"
    assert all(agreement.agrees in (True, None) for agreement in record.agreements)


def _within(question: Question, station: Any) -> bool:
    box = question.box
    assert box is not None
    return bool(box.xmin <= station["at"]["x"] <= box.xmax and box.ymin <= station["at"]["y"] <= box.ymax)


@pytest.mark.slow
def test_invalid_json_line_may_become_null_and_is_counted(spark: Any, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    path = lines(tmp_path, [*stations(60), '{"at": oops}\n', "null\n", '{"at": 7}\n'])
    record = Record()
    source = describe_file(path, "station", "at.x,at.y", "name STRING, height DOUBLE")
    report = run(Job(source, tmp_path / "out", tmp_path / "r.html", "null"), record, spark)
    assert dict(report.facts)["lines that are not JSON"] == "1"
    assert any("line 61" in note for note in report.notes)
    table = pq.read_table(next((tmp_path / "out" / "chosen").glob("*.parquet")))
    assert table.column("station").null_count == 1
    assert table.column("geom").null_count == 3
    assert any("3 of 63 rows have no coordinates" in note for note in report.notes)
    assert all(agreement.agrees in (True, None) for agreement in record.agreements), record.agreements
    for agreement in record.agreements:
        assert agreement.reader.startswith("Spark") or "no JSON null apart from null (1 row)" in agreement.note


def test_missing_coordinates_after_the_inspected_head_are_reported_by_the_job(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pqext.demo.source.MAX_BYTES", 0)
    source = describe_file(lines(tmp_path, stations(30)), "station", "at.x,at.z", None)
    with pytest.raises(ValueError, match=r"no row of .*stations\.ndjson has numbers at the coordinates .*at\.z"):
        run(Job(source, tmp_path / "out", tmp_path / "r.html"), Record(), spark)
    assert not list((tmp_path / "out").rglob("*.parquet"))


@pytest.mark.slow
def test_command_runs_the_job_and_prints_plain_text_answers(spark: Any, tmp_path: Path) -> None:
    path = lines(tmp_path, stations(100))
    out = tmp_path / "out"
    arguments = ["demo", "--input", path, "--column", "station", "--geometry", "at.x,at.y", "--output", out]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert "inferred schema: STRUCT<" in result.output
    assert "row groups" in result.output
    assert (out / "report.html").is_file()
    shutil.rmtree(out)
