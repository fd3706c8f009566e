"""Tables come from other libraries and go to them, with no step between."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import geo, variant

TABLE = pa.table({"a": list(range(10)), "s": [f"s{i}" for i in range(10)]})
ROWS = TABLE.to_pylist()


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = str(tmp_path / "a.parquet")
    pqext.write_table(TABLE, place, row_group_rows=4)
    return place


def cells(html: str) -> list[str]:
    """The texts of the cells of a table."""
    return re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", html)


class Stream:
    """An object of which nothing is known but its stream."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


GIVEN: dict[str, Any] = {
    "pandas": lambda: TABLE.to_pandas(),
    "polars": lambda: pl.DataFrame(TABLE.to_pydict()),
    "duckdb": lambda: duckdb.from_arrow(TABLE),
    "mapping": lambda: {"a": TABLE["a"], "s": TABLE["s"].to_pylist()},
    "batch": lambda: TABLE.to_batches()[0],
    "reader": lambda: pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(3)),
    "stream": Stream,
}


@pytest.mark.parametrize("kind", GIVEN)
def test_tables_of_other_libraries_are_written(kind: str, tmp_path: Path) -> None:
    place = str(tmp_path / "b.parquet")
    pqext.write_table(GIVEN[kind](), place)
    assert pq.read_table(place).to_pylist() == ROWS
    with pqext.ParquetWriter(place, TABLE.schema) as writer:
        writer.write_table(GIVEN[kind]())
        writer.write_batch(GIVEN[kind]())
    assert pq.read_table(place).to_pylist() == ROWS * 2


LAYOUTS = [
    (pa.string(), ["a", None, ""]),
    (pa.binary(), [b"a", None, b""]),
    (pa.list_(pa.string()), [["a", None], None, []]),
    (pa.struct({"x": pa.string(), "y": pa.int8()}), [{"x": "a", "y": 1}, None, {"x": None, "y": 2}]),
]
OTHERS = {
    pa.string(): [pa.large_string(), pa.string_view()],
    pa.binary(): [pa.large_binary(), pa.binary_view()],
    pa.list_(pa.string()): [pa.large_list(pa.large_string()), pa.list_(pa.string_view())],
    pa.struct({"x": pa.string(), "y": pa.int8()}): [pa.struct({"x": pa.large_string(), "y": pa.int8()})],
}


@pytest.mark.parametrize(("type", "values"), LAYOUTS, ids=str)
def test_writer_accepts_every_layout_of_its_types(type: pa.DataType, values: list[Any], tmp_path: Path) -> None:
    place = str(tmp_path / "b.parquet")
    layouts = [type, *OTHERS[type]]
    for wanted in layouts:
        with pqext.ParquetWriter(place, pa.schema({"c": wanted})) as writer:
            for given in layouts:
                writer.write_table(pa.table({"c": pa.array(values, given)}))
        assert pq.read_table(place)["c"].to_pylist() == values * len(layouts)
        assert pqext.open(place).arrow_schema.field("c").type == wanted


@pytest.mark.parametrize("given", [pa.array([1], pa.int32()), pa.array([b"a"]), pa.array([["a"]])], ids=str)
def test_writer_rejects_other_types(given: pa.Array, tmp_path: Path) -> None:
    writer = pqext.ParquetWriter(tmp_path / "b.parquet", pa.schema({"c": pa.string()}))
    with pytest.raises(ValueError, match=r"column 'c' has type .* instead of the writer's string"), writer:
        writer.write_batch(pa.table({"c": given}))


def test_scan_is_written_without_an_intermediate_table(path: str, tmp_path: Path) -> None:
    place = str(tmp_path / "b.parquet")
    pqext.write_table(pqext.scan(path, filter=[("a", ">", 6)]), place)
    assert pq.read_table(place).to_pylist() == ROWS[7:]


@pytest.mark.parametrize("given", [5, "a", None, [1], [{"a": 1}], pl.LazyFrame({"a": [1]})])
def test_data_that_is_not_a_table_is_a_type_error(given: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="expected a table"):
        pqext.write_table(given, tmp_path / "b.parquet")


def test_other_libraries_accept_scans_and_files(path: str) -> None:
    scan = pqext.scan(path, filter=[("a", ">", 6)])
    assert pa.table(scan).to_pylist() == ROWS[7:]
    assert pl.DataFrame(scan).rows(named=True) == ROWS[7:]
    assert scan.to_polars().rows(named=True) == ROWS[7:]
    assert scan.to_pandas().to_dict("records") == ROWS[7:]
    assert [len(batch) for batch in scan] == [1, 2]
    with pqext.open(path) as file:
        assert pa.table(file).to_pylist() == ROWS
        assert pl.DataFrame(file).rows(named=True) == ROWS
    assert isinstance(pd.DataFrame(pa.table(scan).to_pandas()), pd.DataFrame)


@pytest.mark.parametrize("rows", [0, 1, 4, 5, 100])
def test_head_returns_the_first_rows(path: str, rows: int) -> None:
    assert pqext.scan(path).head(rows).to_pylist() == ROWS[:rows]
    kept = pqext.scan(path, ["s"], [("a", ">", 3)]).head(rows)
    assert kept.to_pylist() == [{"s": row["s"]} for row in ROWS[4:]][:rows]
    with pqext.open(path) as file:
        assert file.head(rows, ["s"]).to_pylist() == [{"s": row["s"]} for row in ROWS[:rows]]
    with pytest.raises(ValueError, match="must not be negative"):
        pqext.scan(path).head(-1)


def test_objects_have_readable_reprs(path: str) -> None:
    with pqext.open(path) as file:
        assert repr(file) == f"<pqext.ParquetFile {path}: 10 rows, 2 columns, 3 row groups>"
        assert cells(file._repr_html_())[-2:] == ["s", "string"]
        assert repr(file.page_index[1]) == "<PageIndex of row group 1: a, s>"
        assert cells(file.page_index[0]._repr_html_())[:2] == ["a", "1 pages"]
    scan = pqext.scan(path, ["a"], pqext.col("s") < "<b>")
    Path(path).unlink()  # nothing of it is read
    assert repr(scan) == f"<pqext.Scan files: 1, {path} first; columns: a; filter: s < '<b>'>"
    assert "s &lt; &#x27;&lt;b&gt;&#x27;" in scan._repr_html_()


class Checked(HTMLParser):
    """A page of HTML whose elements must all be closed, without scripts, sources and colours of its own."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_notebook_shows_a_scan_in_the_colours_of_the_page(path: str) -> None:
    scan = pqext.scan(path, filter=pqext.col("a") > 5).limit(3)
    html = scan._repr_html_()
    page = Checked(html)
    assert page.open == []
    assert {tag for tag, _ in page.tags} <= {
        "div", "table", "caption", "tbody", "thead", "tr", "th", "td", "details", "summary"
    }
    assert all(set(attributes) <= {"style", "scope"} for _, attributes in page.tags)
    assert "color" not in html  # of dark pages too
    assert "overflow-x:auto" in html  # on narrow screens
    assert all(attributes.get("scope") in ("row", "col") for tag, attributes in page.tags if tag == "th")
    told = cells(html)
    assert told[told.index("reads") + 1].startswith("2 of 3 row groups, 6 of 10 rows")
    assert told[told.index("limit") + 1] == "3 rows"
    assert told[-4:] == ["a", "int64", "s", "string"]
    assert "<summary>2 columns</summary>" in html
    assert scan.metrics is None


def test_notebook_opens_at_most_one_local_file(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    many = pqext.scan([path, path])
    with monkeypatch.context() as patch:
        patch.setattr(pqext.ParquetFile, "__init__", None)
        assert "columns" in many._repr_html_()
        assert "<details>" not in many._repr_html_()
    assert many.schema.names == ["a", "s"]
    assert "<summary>2 columns</summary>" in many._repr_html_()


def test_names_are_escaped_in_a_notebook(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\x1b[31m"
    pq.write_table(pa.table({evil: [1], **{f"c{n}": [n] for n in range(100)}}), tmp_path / "<b>.parquet")
    html = pqext.scan(tmp_path / "<b>.parquet")._repr_html_()
    assert "<script>" not in html
    assert "\x1b" not in html
    assert "<b>" not in html
    assert "51 more" in html


def test_notebook_shows_variants_and_geometries_by_type(tmp_path: Path) -> None:
    points = geo.from_points([1], [2])
    table = pa.table({"v": variant.parse_json(['{"a": 1}']), "p": points, "g": points})
    pqext.write_table(
        table, tmp_path / "a.parquet", shredding={"v": "infer"},
        geometry={"p": "EPSG:3857", "g": {"edges": "spherical"}},
    )
    for shredded in (False, True):
        told = cells(pqext.scan(tmp_path / "a.parquet", shredded=shredded)._repr_html_())
        assert told[-6:] == ["v", "VARIANT", "p", "GEOMETRY(EPSG:3857)", "g", "GEOGRAPHY(OGC:CRS84)"]
