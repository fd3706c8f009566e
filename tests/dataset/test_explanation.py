"""The explanation of a plan: sums over everything, evidence for what is skipped, and bounded text."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import pqext
from pqext import col, geo, variant
from pqext.dataset.planning.plan import Task


def stored(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pqext.write_table(table, sink, **options)  # type: ignore[arg-type]
    return sink.getvalue()


NUMBERS = pa.table({"a": range(1000), "s": [f"text {n}" for n in range(1000)]})


def explained(scan: pqext.Scan) -> dict:  # type: ignore[type-arg]
    found: dict = json.loads(scan.explain("json"))  # type: ignore[type-arg]
    return found


def test_sums_match_the_plan_and_the_skipped_parts() -> None:
    data = stored(NUMBERS, row_group_rows=200, page_rows=20)
    scan = pqext.scan(data).filter((col("a") >= 310) & (col("a") < 330))
    found = explained(scan)
    (task,) = scan.plan(pages=True)
    assert found["reads"]["rows"] == {"kept": task.rows_kept, "of": 1000}
    assert found["reads"]["bytes"] == {"kept": task.bytes_kept, "of": task.bytes_total}
    assert found["reads"]["row_groups"] == {"kept": 1, "of": 5}
    assert set(found["skips"]) == {"statistics", "page bounds"}
    for name in ("rows", "bytes"):
        out = sum(numbers[name] for numbers in found["skips"].values())
        assert out + found["reads"][name]["kept"] == found["reads"][name]["of"]
    group = found["files"][0]["row_groups"][1]
    assert group["pages"] == {"kept": 4, "of": 20}  # of two columns
    assert found["skips"]["page bounds"]["pages"] == 16
    assert found["files"][0]["row_groups"][0]["evidence"] == ["statistics"]


def test_evidence_is_named() -> None:
    bloom = stored(NUMBERS.select(["s"]), bloom_filters=True)
    assert set(explained(pqext.scan(bloom).filter(col("s") == "text 5x"))["skips"]) == {"Bloom filter"}
    either = pqext.scan(stored(NUMBERS, bloom_filters=True)).filter((col("s") == "text 5x") | (col("a") > 2000))
    assert set(explained(either)["skips"]) == {"Bloom filter and statistics"}
    events = pa.table({"v": variant.parse_json([json.dumps({"n": n}) for n in range(10)])})
    leaf = pqext.scan(stored(events, shredding={"v": "n BIGINT"})).filter(col("v").variant("$.n", "int64") > 50)
    assert set(explained(leaf)["skips"]) == {"variant leaf"}
    points = pa.table({"g": pa.array(shapely.to_wkb(shapely.points([[1, 2], [3, 4]])))})
    boxed = stored(points, geometry={"g": "OGC:CRS84"})
    assert geo is not None
    assert set(explained(pqext.scan(boxed).filter(col("g").intersects((50, 50, 60, 60))))["skips"]) == {"box"}


def test_folders_and_files_are_counted(tmp_path: Path) -> None:
    for year in (2024, 2025, 2026):
        (tmp_path / f"y={year}").mkdir()
        pq.write_table(NUMBERS, tmp_path / f"y={year}" / "a.parquet")
    scan = pqext.scan(tmp_path).filter((col("y") == 2026) & (col("a") > 5))
    found = explained(scan)
    assert found["reads"]["files"] == {"kept": 1, "of": 3}
    assert found["skips"]["partition"] == {"files": 2}
    assert "\n  skips by partition: 2 files\n" in scan.explain()


def test_explanation_lists_the_first_of_many_files_and_row_groups(tmp_path: Path) -> None:
    for number in range(30):
        pq.write_table(NUMBERS.slice(0, 10), tmp_path / f"{number:02}.parquet")
    scan = pqext.scan(tmp_path).filter(col("a") < 100)
    text = scan.explain()
    assert text.count(".parquet: 1 of 1 row group") == 20
    assert text.endswith("and 10 more files: 10 of 10 row groups, 100 of 100 rows, " + text.rsplit(", ", 1)[1])
    assert "reads 30 of 30 row groups" in text
    assert scan.explain(max_entries=None).count(".parquet: 1 of 1 row group") == 30
    assert (len(explained(scan)["files"]), explained(scan)["files_not_shown"]) == (20, 10)
    totals = scan.explain(max_entries=0)
    assert totals == text.split("\n" + str(tmp_path))[0]
    assert totals.splitlines()[-1].startswith("  reads 30 of 30 row groups")
    groups = stored(NUMBERS, row_group_rows=10)
    told = pqext.scan(groups).filter(col("a") < 0).explain()
    assert told.count("skipped: a < 0") == 20
    assert told.endswith("\n  and 80 more row groups")


def test_limit_is_reported_and_invalid_formats_are_rejected() -> None:
    scan = pqext.scan(stored(NUMBERS)).limit(10, offset=5)
    assert "\n  limit: 10 rows after 5 rows\n" in scan.explain()
    assert explained(scan)["limit"] == 10
    with pytest.raises(ValueError, match="format must be 'text' or 'json', not 'xml'"):
        scan.explain("xml")  # type: ignore[arg-type]


def test_rows_withheld_by_a_limit_are_reported(tmp_path: Path) -> None:
    for number in range(3):
        pqext.write_table(NUMBERS, tmp_path / f"{number}.parquet", row_group_rows=200, page_rows=20, dictionary=False)
    scan = pqext.scan(tmp_path).limit(70, offset=200)
    found = explained(scan)
    assert found["reads"]["row_groups"] == {"kept": 2, "of": 5}
    assert found["reads"]["rows"] == {"kept": 270, "of": 1000}
    assert found["reads"]["files"] == {"kept": 1, "of": 3}
    size = sum(plan.num_bytes for plan in scan.plan(pages=True)[0].row_groups)
    out = found["skips"].pop("limit")
    assert not found["skips"]
    # Of the second row group 4 of 10 pages of each column, and three row groups and two files behind it.
    assert out == {
        "files": 2, "row_groups": 3, "rows": 730, "pages": 12, "bytes": size - found["reads"]["bytes"]["kept"]
    }
    text = scan.explain()
    assert "skips by limit: 2 files, 3 row groups, 730 rows, 12 pages" in text
    assert "row group 1: 70 of 200 rows are within the limit (8 of 20 pages): 0 to 69" in text
    assert "row group 2 skipped: the preceding rows fill the limit" in text
    assert f"{tmp_path / '2.parquet'} skipped: the preceding rows" in text
    assert scan.to_table()["a"].to_pylist() == [*range(200, 270)]
    assert scan.metrics is not None
    assert (scan.metrics.files, scan.metrics.row_groups, scan.metrics.pages) == (1, 2, 28)
    # Rows that may not match are not counted upon.
    filtered = pqext.scan(tmp_path).filter(col("a") % 2 == 0).limit(10)
    assert "limit" not in explained(filtered)["skips"]
    assert filtered.to_table()["a"].to_pylist() == [*range(0, 20, 2)]


def test_limit_decided_by_partitions_alone_is_counted(tmp_path: Path) -> None:
    for year in (2024, 2025, 2026):
        (tmp_path / f"y={year}").mkdir()
        pq.write_table(NUMBERS, tmp_path / f"y={year}" / "a.parquet")
    scan = pqext.scan(tmp_path).filter(col("y") >= 2025).limit(10)
    found = explained(scan)
    assert (found["skips"]["partition"], found["skips"]["limit"]["files"]) == ({"files": 1}, 1)
    assert scan.to_table()["y"].to_pylist() == [2025] * 10
    assert pqext.scan(tmp_path).limit(0).to_table().num_rows == 0


def test_names_of_columns_and_values_are_escaped() -> None:
    evil = "\x1b[31mred\n"
    data = stored(pa.table({evil: ["a", "b"]}))
    scan = pqext.scan(data).filter(col([evil]) > "c")
    assert "\x1b" not in scan.explain()
    assert "\x1b" not in scan.explain("json")


def test_plans_contain_evidence_and_pages() -> None:
    data = stored(NUMBERS, row_group_rows=200, page_rows=20)
    (task,) = pqext.scan(data).filter((col("a") >= 310) & (col("a") < 330)).plan(pages=True)
    assert Task.from_json(task.to_json()) == task
    assert task.row_groups[0].evidence == ("statistics",)
    assert task.row_groups[1].pages == (4, 20)


@pytest.mark.parametrize("form", ["filter", "column"])
def test_misspelled_shredded_path_gets_a_suggestion(tmp_path: Path, form: str) -> None:
    events = variant.parse_json(['{"user": {"id": 1, "name": "Ann"}, "kind": "view", "other": 1}'])
    shredding = {"e": "user STRUCT<id: INT, name: STRING>, kind STRING"}
    pqext.write_table(pa.table({"e": events}), tmp_path / "a.parquet", shredding=shredding)
    for path, told in (
        ("$.usr.id", "e has no shredded 'usr', which $.usr.id needs; did you mean 'user'?"),
        ("$.user.Name", "e has no shredded 'Name', which $.user.Name needs; did you mean 'name'?"),
        ("$.user.name", None), ("$.other", None), ("$.kind.a", None), ("$[0]", None),
    ):  # fmt: skip
        field = pqext.col("e").variant(path, "string")
        scan = pqext.scan(tmp_path, filter=field == "x") if form == "filter" else pqext.scan(tmp_path, [("x", field)])
        assert ([f"  {told}"] if told else []) == [line for line in scan.explain().split("\n") if "no shredded" in line]
        assert json.loads(scan.explain("json"))["warnings"] == ([told] if told else [])
        assert scan.to_table().num_rows == (form == "column")


def test_distance_in_degrees_is_reported_if_it_exceeds_a_circle(tmp_path: Path) -> None:
    points = geo.from_points([0.0, 90.0], [0.0, 0.0])
    near = "st_dwithin(at, st_geomfromwkt('POINT (0 0)'), {})"
    for crs, edges, distance, is_told in (
        ("OGC:CRS84", "planar", 500_000, True), ("OGC:CRS84", "planar", 360, False),
        ("EPSG:3857", "planar", 500_000, False), ("OGC:CRS84", "spherical", 500_000, False),
    ):  # fmt: skip
        schema = pa.schema([geo.geometry_field("at", crs, edges)])
        pqext.write_table(pa.table([points], schema=schema), tmp_path / "a.parquet")
        scan = pqext.scan(tmp_path / "a.parquet", filter=near.format(distance))
        told = [line for line in scan.explain().split("\n") if "in the units of its CRS, degrees" in line]
        assert told == ["  at is compared with distance 500000.0 in the units of its CRS, degrees; "
                        "only distances of GEOGRAPHY columns are in metres"] * is_told  # fmt: skip
