"""Names in later steps of a scan refer to the columns of its result: the same rows as in plain Python."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyproj
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import Scan, col, geo, variant
from reference.effort import share

DOCUMENTS: list[Any] = [
    {"age": 30, "boss": {"age": 60, "boss": {"age": 5}}}, {"age": 31, "boss": {"age": 50}}, {"age": 32}, None,
    {"boss": {"age": 20}},
]  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {
        "id": row, "x": [3, None, 1, 3, -2][row], "user": DOCUMENTS[row],
        "s": [{"a": 1, "b": 9}, {"a": 2, "b": None}, None, {"a": 4, "b": 7}, {"a": 0, "b": 8}][row],
        "t": {"a": [7, 5, 6, None, 9][row], "b": 10 * row}, "x.a": [8, 1, None, 6, 4][row],
        "s.b": [5, 2, 8, 3, None][row],
    }
    for row in range(5)
]  # fmt: skip
DOTTED_NAMES = ("x.a", "s.b")


def _stored() -> bytes:
    users = variant.parse_json([None if row["user"] is None else json.dumps(row["user"]) for row in ROWS])
    others = {name: [row[name] for row in ROWS] for name in ("id", "x", "s", "t", *DOTTED_NAMES)}
    pqext.write_table(pa.table(others | {"user": users}), sink := io.BytesIO(), row_group_rows=2, page_rows=1)
    return sink.getvalue()


FILE = _stored()
POINTS = pa.table(
    {"id": [1, 2, 3], "g": geo.from_points([1.0, 2.0, 3.0], [50.0, 51.0, 52.0]), "s": [{"a": 1}, {"a": 2}, {"a": 3}]}
)


def points(**columns: pa.Array) -> Scan:
    table = POINTS
    for name, column in columns.items():
        table = table.append_column(name, column)
    pqext.write_table(table, sink := io.BytesIO(), geometry={name: {} for name in ("g", *columns)})
    return pqext.scan(sink.getvalue())


def ids(scan: Scan) -> list[Any]:
    return [row["id"] for row in scan.to_table().to_pylist()]


@pytest.mark.spec("querying.result-names")
@pytest.mark.parametrize("name", ["user", "boss"])
def test_path_in_computed_variant_is_appended_to_its_path(name: str) -> None:
    scan = pqext.scan(FILE).select({"id": "id", name: col("user").variant("$.boss")})
    ages = [((row["user"] or {}).get("boss") or {}).get("age") for row in ROWS]
    age = col(name).variant("$.age", "int64")
    expected = [row for row, age in enumerate(ages) if age is not None and age >= 50]
    assert ids(scan.filter(age >= 50)) == ids(scan.filter(f"{name}:age::bigint >= 50")) == expected
    assert scan.filter(age >= 50).count() == len(expected)
    for selected in (scan.select(age.alias("n")), scan.select(f"{name}:age::bigint as n")):
        assert selected.to_table()["n"].to_pylist() == ages
    assert ids(scan.order_by(age).limit(2)) == [4, 1]
    known = [age for age in ages if age is not None]
    assert (scan.min(age).as_py(), scan.max(age).as_py()) == (min(known), max(known))
    assert scan.null_count(age) == len(ages) - len(known)
    deeper = scan.select({name: col(name).variant("$.boss")}).select({"n": age})
    assert deeper.to_table()["n"].to_pylist() == [5, None, None, None, None]


@pytest.mark.spec("querying.result-names")
def test_fields_of_renamed_structs_are_those_of_the_result() -> None:
    scan = pqext.scan(FILE).select({"s": "t", "t": "s", "id": "id"})
    for column in ("s.a", col("s.a"), col(["s", "a"]), col("s").field("a")):
        assert (scan.min(column).as_py(), scan.max(column).as_py(), scan.null_count(column)) == (5, 9, 1)
        assert ids(scan.order_by(column)) == [1, 2, 0, 4, 3]
    assert scan.select("s.a as z").to_table()["z"].to_pylist() == [7, 5, 6, None, 9]
    assert scan.select("id").min("s.a").as_py() == 5
    with pytest.raises(ValueError, match=r"has s, t, id; for a field of a computed column, select col\('s.a'\)"):
        scan.select("s.a")
    assert scan.select(col("s.a")).to_table().to_pydict() == {"s.a": [7, 5, 6, None, 9]}


@pytest.mark.spec("querying.result-names")
def test_dotted_name_of_the_result_precedes_a_field() -> None:
    table = pa.table({"s": [{"a": 1}], "t": [{"a": 7}], "s.a": [100], "t.a": [{"a": 9}]})
    pqext.write_table(table, sink := io.BytesIO())
    scan = pqext.scan(sink.getvalue()).select({"s": "t", "s.a": "s.a", "u": "t.a"})
    assert [scan.min(name).as_py() for name in ("s.a", "u.a")] == [100, 9]
    assert scan.filter("s.a = 100 and u.a = 9").count() == 1
    assert scan.select({"z": col(["s", "a"])}).to_table().to_pydict() == {"z": [7]}


NO_FIELDS: list[Callable[[Scan], Any]] = [
    lambda scan: scan.filter(col(["s", "a"]) > 1), lambda scan: scan.filter("s.a > 1"),
    lambda scan: scan.select({"z": "s.a"}), lambda scan: scan.order_by("s.a"), lambda scan: scan.min("s.a"),
    lambda scan: scan.null_count(col("s").field("a")),
]  # fmt: skip


@pytest.mark.spec("querying.result-names")
@pytest.mark.parametrize("use", NO_FIELDS)
def test_field_of_a_computed_value_is_not_a_field_of_the_file(use: Callable[[Scan], Any]) -> None:
    with pytest.raises(ValueError, match=r"no column 's.a': 's' is computed as x . 2 and has no fields"):
        use(pqext.scan(FILE).select({"id": "id", "s": col("x") * 2}))
    with pytest.raises(TypeError, match=r"'s.a' is a value inside the VARIANT column 's'; a value inside a VARIANT "):
        use(pqext.scan(FILE).select({"id": "id", "s": col("user").variant("$.boss")}))


@pytest.mark.spec("querying.result-names")
@pytest.mark.parametrize("value", [col("x") * 2, col("user").variant("$.age", "int64"), col("id").cast("string")])
def test_path_in_a_computed_value_requires_a_variant(value: Any) -> None:
    with pytest.raises(TypeError, match=r"column 'user' is computed as .*, which is not a VARIANT"):
        pqext.scan(FILE).select({"user": value}).filter(col("user").variant("$.age", "int64") > 1)


@pytest.mark.spec("querying.result-names")
@pytest.mark.parametrize("selection", [{"q": "s"}, [col("s")], "s as q", {"q": col("s")}])
def test_struct_of_which_fields_are_excluded_is_not_selected_again(selection: Any) -> None:
    scan = pqext.scan(FILE).select("id", "s.a")
    with pytest.raises(ValueError, match=r"only s\.a of s are selected"):
        scan.select(selection)
    assert scan.select("s").to_table()["s"].to_pylist() == [row["s"] and {"a": row["s"]["a"]} for row in ROWS]
    assert scan.select({"q": "s.a"}).to_table()["q"].to_pylist() == [row["s"] and row["s"]["a"] for row in ROWS]


def dotted(**columns: Any) -> Scan:
    """Scan a file with the columns ``a.b``, ``x`` and ``columns``."""
    table = pa.table({"a.b": [1, 3, 2], "x": [7, 9, 8], **columns})
    pqext.write_table(table, sink := io.BytesIO())
    return pqext.scan(sink.getvalue())


@pytest.mark.spec("querying.result-names")
@pytest.mark.parametrize("value", [col("x") * 1, col("x"), col("v").variant("$.b"), col("v")], ids=str)
@pytest.mark.parametrize("schema", [None, "union"])
def test_stored_column_precedes_a_field_that_a_computed_column_lacks(value: Any, schema: Any) -> None:
    table = pa.table({"a.b": [1, 3, 2], "x": [7, 9, 8], "v": variant.parse_json(["{}", "{}", "{}"])})
    pqext.write_table(table, sink := io.BytesIO())
    scan = pqext.scan(sink.getvalue(), schema=schema).select({"a": value, "x": "x"})
    for query in (scan, scan.select("x")):
        assert query.filter(col("a.b") > 1).to_table()["x"].to_pylist() == [9, 8]
        assert query.filter("a.b > 1").count() == 2
        assert query.order_by("a.b").to_table()["x"].to_pylist() == [7, 8, 9]
        assert (query.min("a.b").as_py(), query.max(col("a.b")).as_py(), query.null_count("a.b")) == (1, 3, 0)
        assert query.select({"z": "a.b"}).to_table().to_pydict() == {"z": [1, 3, 2]}


@pytest.mark.spec("querying.result-names")
def test_field_of_a_renamed_struct_precedes_a_stored_column() -> None:
    scan = dotted(s=[{"b": 4}, {"b": 5}, {"b": 6}]).select({"a": col("s")})
    assert (scan.min("a.b").as_py(), scan.max("a.b").as_py()) == (4, 6)
    assert scan.select(col("a.b")).to_table().to_pydict() == {"a.b": [4, 5, 6]}


@pytest.mark.spec("querying.result-names")
def test_error_names_the_field_of_the_renamed_column() -> None:
    for name in ("a.c", col(["a", "c"])):
        with pytest.raises(ValueError, match=r"^no column 'a.c': 'a' is computed as x and has no such field$"):
            dotted().select({"a": col("x")}).min(name)
    with pytest.raises(TypeError, match=r"'u.n' is .* inside the VARIANT column 'u'; .*\('u'\).variant\('\$.n', 's"):
        pqext.scan(FILE).select({"u": col("user")}).filter(col("u.n") > 1)


@pytest.mark.spec("querying.result-names")
def test_dotted_column_is_not_a_field() -> None:
    scan = dotted(a=[4, 5, 6])
    assert scan.select("a.b").select({"y": col("a") * 2}).to_table().to_pydict() == {"y": [8, 10, 12]}
    for name, other in (("a", "a.b"), ("a.b", "a")):
        with pytest.raises(ValueError, match=f"no column '{name}'; .*'?{other}'?"):
            scan.select(other).select(name)
    both = dotted(a=[{"b": 4}, {"b": 5}, {"b": 6}]).select("a", "a.b")
    assert both.select("a").to_table().to_pydict() == {"a": [{"b": 4}, {"b": 5}, {"b": 6}]}
    assert both.select("a.b").to_table().to_pydict() == {"a.b": [1, 3, 2]}


@pytest.mark.spec("querying.result-names")
def test_values_use_columns_of_the_files_that_are_not_selected() -> None:
    scan = pqext.scan(FILE).select("id", "s.a")
    assert scan.select({"q": "s.b"}).to_table()["q"].to_pylist() == [row["s.b"] for row in ROWS]
    assert scan.select({"q": col(["s", "b"])}).to_table()["q"].to_pylist() == [_inside(row["s"], "b") for row in ROWS]
    assert ids(scan.filter(col("s").is_null() | (col("x") == 1))) == [2]
    computed = pqext.scan(FILE).select({"s": "t", "s.a": "s.a"}).select({"q": col("s")})
    assert computed.to_table()["q"].to_pylist() == [row["t"] for row in ROWS]


@pytest.mark.spec("querying.result-names")
def test_paths_into_computed_columns_raise_the_errors_of_conditions() -> None:
    with pytest.raises(ValueError, match=r"no column 'a.c': 'a' is computed as x . 1 and has no fields$"):
        dotted().select({"a": col("x") * 1}).select("a.c")
    with pytest.raises(ValueError, match=r"^no column 'a.b'; the scan has a$"):
        dotted().select({"a": col("x") * 1}).select("a.b")
    scan = pqext.scan(FILE).select({"u": col("user").variant("$.boss")})
    with pytest.raises(TypeError, match=r"age' is .* inside the VARIANT column 'u'; .*\('u'\).variant\('\$.age', 's"):
        scan.select("u.age")


@pytest.mark.spec("querying.result-names")
@pytest.mark.parametrize("columns", [None, ["n"], ["n", "year"], {"year": "n"}, ["s.a"]], ids=str)
@pytest.mark.parametrize("schema", [None, "union"])
def test_values_of_partition_columns_sort_rows_for_all_selections(tmp_path: Path, columns: Any, schema: Any) -> None:
    rows = [{"n": n, "s": {"a": n, "b": 0}, "year": 2020 + n % 3} for n in range(7)]
    pqext.write_dataset(pa.Table.from_pylist(rows), tmp_path, ["year"])
    stored = pqext.scan(tmp_path, schema=schema)
    scan = stored if columns is None else stored.select(columns)
    order = {-(row["year"] + 1) * 10 + row["n"]: row["n"] for row in rows}
    keys = -(col("year") + 1) * 10 + col("n")
    if columns == {"year": "n"}:
        order, keys = {-n - 1: n for n in range(7)}, -(col("year") + 1)
    expected = [order[key] for key in sorted(order)]
    for limit in (None, 3):
        table = scan.order_by(keys).limit(limit).to_table()
        assert table.schema.names == scan.schema.names
        numbers = table["s"].combine_chunks().field("a") if columns == ["s.a"] else table[0]
        assert numbers.to_pylist() == expected[:limit]
    assert (scan.min(keys).as_py(), scan.max(keys).as_py(), scan.null_count(keys)) == (min(order), max(order), 0)


@pytest.mark.spec("querying.result-names")
def test_order_by_a_stored_column_whose_name_a_computed_column_has() -> None:
    scan = pqext.scan(FILE).order_by("x").select({"x": col("id") * 2})
    assert scan.to_table().to_pydict() == {"x": [8, 4, 0, 6, 2]}
    assert scan.limit(3).to_table().to_pydict() == {"x": [8, 4, 0]}
    assert scan.limit(3).max("x").as_py() == 8


@pytest.mark.spec("querying.result-names")
@pytest.mark.parametrize("schema", [None, "union"])
def test_computed_column_hides_the_partition_column_of_its_name(tmp_path: Path, schema: Any) -> None:
    pqext.write_dataset(pa.table({"i": [1, 2, 3], "p": ["b", "a", "c"]}), tmp_path, ["p"])
    stored = pqext.scan(tmp_path, schema=schema)
    scan = stored.select({"p": col("i") * 2})
    assert scan.schema.types == [pa.int64()]
    assert sorted(scan.to_table()["p"].to_pylist()) == [2, 4, 6]
    assert scan.filter(col("p") > 2).order_by("p").to_table().to_pydict() == {"p": [4, 6]}
    assert (scan.min("p").as_py(), scan.max("p").as_py()) == (2, 6)
    ordered = stored.order_by("p").select({"p": "i"})
    assert ordered.to_table().to_pydict() == {"p": [2, 1, 3]}
    assert ordered.limit(2).to_table().to_pydict() == {"p": [2, 1]}


@pytest.mark.spec("querying.result-names")
def test_aggregates_accept_values() -> None:
    scan = points()
    assert (scan.min(col("g").st_x()).as_py(), scan.max(col("id") * 2 + 1).as_py()) == (1.0, 7)
    assert scan.filter("id > 1").null_count(col("g").st_y()) == 0
    box = scan.bounds(col("g").st_transform("EPSG:3857"))
    corner = pyproj.Transformer.from_crs("OGC:CRS84", "EPSG:3857", always_xy=True).transform(1, 50)
    assert box is not None
    assert (box.xmin, box.ymin) == pytest.approx(corner)
    for bad in (None, 5, b"id", col("id") > 1):
        with pytest.raises(TypeError, match="expected a column name or a value"):
            scan.min(bad)  # type: ignore[arg-type]


@pytest.mark.spec("querying.result-names")
def test_nearest_uses_the_geometry_of_the_result() -> None:
    scan = points(h=geo.from_points([9.0, 8.0, 7.0], [50.0, 51.0, 52.0]))
    transform = pyproj.Transformer.from_crs("OGC:CRS84", "EPSG:3857", always_xy=True).transform
    near = scan.select({"id": "id", "q": "h"}).to_crs("EPSG:3857")
    for query in (near, near.select("id")):
        result = query.nearest(shapely.Point(*transform(7, 52))).to_table()
        assert (result["id"].to_pylist(), result["distance"].to_pylist()) == ([3], [0.0])
    assert ids(scan.select("id", "g").nearest(shapely.Point(3, 52))) == [3]
    with pytest.raises(ValueError, match="the result has several geometry columns, g, h; select"):
        scan.nearest(shapely.Point(0, 0))
    with pytest.raises(ValueError, match="the files have several geometry columns, g, h; select"):
        scan.select("id").nearest(shapely.Point(0, 0))
    renamed = scan.select({"g2": col("h"), "h2": col("g"), "id": "id"}).select("id")
    with pytest.raises(ValueError, match=r"^earlier selections computed several geometry columns, g2, h2; select"):
        renamed.nearest(shapely.Point(0, 0))
    assert ids(renamed.nearest(shapely.Point(7, 52), column="g2")) == [3]
    for limited, name in ((scan.limit(5), "limit"), (scan.nearest(shapely.Point(0, 0), column="g"), "nearest")):
        with pytest.raises(ValueError, match=rf"^nearest\(\) after {name}\(\) is not supported"):
            limited.nearest(shapely.Point(0, 0), column="h")
    assert ids(points().select("id").nearest(shapely.Point(3, 52))) == [3]


@pytest.mark.spec("querying.result-names")
def test_distances_may_have_the_name_of_a_stored_geometry() -> None:
    scan = points().select("id", ("q", col("g"))).nearest(shapely.Point(3, 52), 2, distance_column="g")
    assert scan.select("id", "g").to_table().to_pydict() == {"id": [3, 2], "g": [0.0, 2**0.5]}
    scan = points().select("id").nearest(shapely.Point(3, 52), 2, distance_column="g")
    assert scan.to_table().to_pydict() == {"id": [3, 2], "g": [0.0, 2**0.5]}


@pytest.mark.spec("querying.result-names")
@pytest.mark.parametrize(
    ("text", "values"), [("s.a as z", [1, 2, None, 4, 0]), ("s.a * 2 as z", [2, 4, None, 8, 0])]
)  # fmt: skip
def test_text_of_a_field_can_have_another_name(text: str, values: list[Any]) -> None:
    assert pqext.scan(FILE).select(text).to_table().to_pydict() == {"z": values}


Row = dict[str, Any]
Getter = Callable[[Row], Any]
FILE_KINDS = {
    "id": "number", "x": "number", "s": "struct", "t": "struct", "user": "variant", "x.a": "number", "s.b": "number",
}  # fmt: skip
NAMES = [*FILE_KINDS, "new"]


class Model:
    """The columns of a scan in plain Python.

    ``rows`` have all values that names refer to: columns of the file, hidden by computed columns of the same name.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = [*ROWS]
        self.kinds = {**FILE_KINDS}
        self.result = [*FILE_KINDS]
        self.computed: set[str] = set()

    def field(self, data: st.DataObject, name: str) -> tuple[Any, Getter]:
        """Draw a reference to a number within struct ``name``. A dotted name may refer to another column."""
        part = data.draw(st.sampled_from("ab"))
        text = f"{name}.{part}"
        if data.draw(st.booleans()):
            return col([name, part]), lambda row: _inside(row[name], part)
        is_column = text in self.result or text in self.computed or (text in FILE_KINDS and name not in self.computed)
        return col(text), itemgetter(text) if is_column else lambda row: _inside(row[name], part)

    def number(self, data: st.DataObject) -> tuple[Any, Getter]:
        """Draw a number computed from the columns, and the same in Python."""
        name = data.draw(st.sampled_from(sorted(self.kinds)))
        head, kind = name.partition(".")[0], self.kinds[name]
        is_field = "." in name and name not in {*self.result, *self.computed} and self.kinds[head] == "struct"
        value: Any
        get: Getter
        if kind == "struct":
            value, get = self.field(data, name)
        elif kind == "variant":
            value, get = col(name).variant("$.age", "int64"), lambda row: _inside(row[name], "age")
        else:
            value, get = (col([name]) if is_field and head in self.computed else col(name)), itemgetter(name)
        if data.draw(st.booleans()):
            return value * 2 + 1, lambda row: None if get(row) is None else get(row) * 2 + 1
        return value, get

    def select(self, data: st.DataObject) -> dict[str, Any]:
        """Draw columns for ``select``, and select them from the rows."""
        columns, getters, kinds = {}, {}, {}
        for name in data.draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True)):
            is_own = name in self.kinds and data.draw(st.booleans())
            source = name if is_own else data.draw(st.sampled_from(sorted(self.kinds)))
            if data.draw(st.booleans()) or ("." in name and self.kinds[source] != "number"):
                columns[name], getters[name] = self.number(data)
                kinds[name] = "number"
            elif source == name and name in self.result:
                columns[name] = name
            else:
                columns[name], getters[name], kinds[name] = col([source]), itemgetter(source), self.kinds[source]
                if kinds[name] == "variant" and data.draw(st.booleans()):
                    columns[name], getters[name] = col(source).variant("$.boss"), _boss(source)
        self.rows = [row | {name: get(row) for name, get in getters.items()} for row in self.rows]
        self.kinds |= kinds
        self.computed |= set(kinds)
        self.result = [*columns]
        return columns


def _inside(parent: Any, name: str) -> Any:
    return parent.get(name) if isinstance(parent, dict) else None


def _boss(name: str) -> Getter:
    return lambda row: _inside(row[name], "boss")


def plain(table: pa.Table, kinds: dict[str, str]) -> list[Row]:
    columns = {name: table[name].to_pylist() for name in table.schema.names}
    for name in columns:
        if kinds[name] == "variant":
            texts = variant.to_json(table[name]).to_pylist()
            columns[name] = [None if text is None else json.loads(text) for text in texts]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def check_advice(scan: Scan, name: str) -> None:
    """Check that the column that the error for ``name`` suggests can be selected."""
    try:
        scan.select(name).to_table()
    except (TypeError, ValueError) as error:
        for advice in re.findall(r"col\([^()]*\)(?:\.variant\([^()]*\))?", str(error)):
            scan.select({"z": eval(advice, {"col": col})}).to_table()


@pytest.mark.spec("querying.result-names")
@settings(max_examples=share(2.0))
@given(st.data())
def test_steps_return_the_rows_of_plain_python(data: st.DataObject) -> None:
    scan, model = pqext.scan(FILE), Model()
    keys = list[Any](range(len(ROWS)))
    for step in data.draw(st.lists(st.sampled_from(["select", "select", "filter", "order"]), max_size=4)):
        if step == "select":
            scan = scan.select(model.select(data))
            continue
        value, get = model.number(data)
        if step == "filter":
            least = data.draw(st.integers(-2, 10))
            scan = scan.filter(value >= least)
            places = [place for place, row in enumerate(model.rows) if get(row) is not None and get(row) >= least]
            model.rows, keys = [model.rows[place] for place in places], [keys[place] for place in places]
        else:
            scan = scan.order_by(value)
            keys = [(get(row) is None, get(row) or 0) for row in model.rows]
    ordered = [model.rows[place] for place in sorted(range(len(model.rows)), key=keys.__getitem__)]
    assert plain(scan.to_table(), model.kinds) == [{name: row[name] for name in model.result} for row in ordered]
    assert scan.count() == len(model.rows)
    value, get = model.number(data)
    known = [get(row) for row in model.rows if get(row) is not None]
    assert (scan.min(value).as_py(), scan.max(value).as_py()) == (min(known, default=None), max(known, default=None))
    assert scan.null_count(value) == len(model.rows) - len(known)
    check_advice(scan, f"{data.draw(st.sampled_from(NAMES))}.{data.draw(st.sampled_from('ab'))}")
