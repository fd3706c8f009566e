"""Options that cannot be meant are refused when they are given."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import geo, variant
from pqext.core.base.limits import Limits
from pqext.core.options.fields import append_field_docs
from pqext.core.options.layout import FORMATS
from pqext.core.options.read_write import ReadOptions, WriteOptions


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("compression", 5),
        ("compression", None),
        ("compression", ["zstd"]),
        ("dictionary", "x"),
        ("dictionary", None),
        ("shredding", "infer"),
        ("geometry", 5),
        ("key_value_metadata", None),
    ],
)
def test_option_of_the_wrong_type_is_named(option: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{option} must not be a|must not be None"):
        WriteOptions(**{option: value})


TEXTS: list[dict[str, Any]] = [
    *({"footer": name} for name in FORMATS),
    *({"compression": name} for name in ("uncompressed", "snappy", "gzip", "brotli", "lz4_raw", "zstd")),
    *({"encodings": {"s": name}} for name in ("auto", "plain", "delta_byte_array", "delta_length_byte_array")),
    {"bloom_filters": {"s": True}, "bloom_filter_place": "row_group"}, {"float_order": "ieee754"},
    {"profile": "spark"}, {"geoparquet": "1.1"},
]  # fmt: skip


@pytest.mark.parametrize("options", TEXTS, ids=str)
def test_options_read_from_json_write_the_same_file(options: dict[str, Any]) -> None:
    table = pa.table({"s": ["b", "a"] * 4, "f": [0.5] * 8, "g": geo.from_points([1.0] * 8, [2.0] * 8)})
    files = []
    for given in (options, json.loads(json.dumps(options))):
        pqext.write_table(table, out := io.BytesIO(), **given)
        pqext.rewrite_footer(out.getvalue(), dest=(again := io.BytesIO()), footer=given.get("footer", "thrift"))
        files.append((out.getvalue(), again.getvalue()))
    assert files[0] == files[1]


def test_column_options_print_as_written() -> None:
    with pytest.raises(TypeError, match=r"shredding must not be a str; pass a mapping of columns, shredding={'column'"):
        WriteOptions(shredding="infer")  # type: ignore[arg-type]


def test_limits_beyond_64_bits_are_rejected() -> None:
    for name in ("metadata_depth", "schema_depth", "page_bytes", "memory_bytes"):
        assert getattr(Limits(**{name: (1 << 63) - 1}), name) == (1 << 63) - 1
        with pytest.raises(ValueError, match=f"{name} must be at most 9223372036854775807"):
            Limits(**{name: 1 << 63})
    assert Limits(rows=1 << 127) == Limits()
    for name in ("page_rows", "page_bytes", "row_group_rows", "row_group_bytes", "bound_bytes"):
        with pytest.raises(ValueError, match=rf"{name} must be less than 2\*\*63"):
            pqext.WriteOptions(**{name: 1 << 63})


def test_limits_show_values_that_are_not_default() -> None:
    assert repr(Limits()) == "Limits()"
    assert repr(Limits(schema_depth=5, page_bytes=7)) == "Limits(schema_depth=5, page_bytes=7)"


@pytest.mark.parametrize("options", [ReadOptions, WriteOptions])
@pytest.mark.parametrize(
    ("option", "value"), [("threads", -1), ("threads", "2"), ("threads", True), ("threads", 1.5), ("checksums", "no")]
)
def test_invalid_flags_and_thread_counts_are_rejected(options: Any, option: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=f"{option} must be"):
        options(**{option: value})


@pytest.mark.parametrize("option", [{"dictionary": {"count": "no"}}, {"row_group_rows": True}, {"page_bytes": True}])
def test_option_that_is_not_a_bool_or_number_is_rejected(option: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=f"{next(iter(option))} must be"):
        WriteOptions(**option)


@pytest.mark.parametrize("option", [{"shredded": 1}, {"second_copies": "no"}, {"recover": "yes"}])
def test_reader_flags_must_be_bool(option: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"{next(iter(option))} must be a bool"):
        ReadOptions(**option)


def test_columns_must_be_a_list_and_options_of_the_right_class() -> None:
    out = io.BytesIO()
    pqext.write_table(pa.table({"a": [1], "b": [2]}), out)
    with pqext.open(out.getvalue()) as file, pytest.raises(TypeError, match="list of names"):
        file.read("ab")
    with pytest.raises(TypeError, match="must be ReadOptions, not dict"):
        pqext.open(out.getvalue(), {"threads": 1})  # type: ignore[arg-type]


TABLE = pa.table(
    {
        "event": variant.parse_json(pa.array(['{"a": 1}'])),
        "geom": pa.array([bytes.fromhex("0101000000") + bytes(16)]),
        "place": pa.array([{"x": 1, "at": bytes.fromhex("0101000000") + bytes(16)}]),
        "count": [1],
        "text": ["POINT (1 2)"],
    }
)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"geometry": {"event": "OGC:CRS84"}}, "'event', which is a VARIANT column: the option applies to GEOMETRY"),
        ({"geometry": {"count": "OGC:CRS84"}}, "'count': a geometry column must contain WKB in a binary array, not"),
        ({"geometry": {"text": "OGC:CRS84"}}, "'text': .* not string; geo.from_wkt converts WKT"),
        ({"geometry": {"geom": {"edge": "spherical"}}}, "unknown geometry option 'edge'; did you mean 'edges'"),
        ({"geometry": {"geom": {"page_boxes": "yes"}}}, "page_boxes must be a bool, not 'yes'"),
        ({"geometry": {"gem": "OGC:CRS84"}}, "'gem', which the schema lacks; did you mean 'geom'"),
        ({"geometry": {"place.att": "OGC:CRS84"}}, "'place.att', which .*; did you mean 'place.at'"),
        ({"geometry": {"event.value": "OGC:CRS84"}}, "'event.value', which the schema lacks"),
        ({"shredding": {"geom": "a INT"}}, "'geom', which is not a VARIANT but has type binary"),
        ({"shredding": {"geom": "a INT"}, "geometry": {"geom": "OGC:CRS84"}}, "'geom', which is not a VARIANT"),
        ({"shredding": {"count": "infer"}}, "'count', which is not a VARIANT but has type int64"),
        ({"shredding": {"events": "a INT"}}, "'events', which .*; did you mean 'event'"),
        ({"shredding": {"event": "a BIGNT"}}, "'a BIGNT', position 2: BIGNT is not a type; did you mean 'BIGINT'"),
        ({"compression": {"cuont": "zstd"}}, "lacks; did you mean 'count'. The columns are event.metadata, event.v"),
        ({"statistics": {"place": False}}, "'place', which is a group: name a column within it, place.x, place.at"),
        ({"sorting": ["Count"]}, "'Count', which the schema lacks; did you mean 'count'"),
        ({"dictionary": {"zzz": False}}, "the schema lacks; the columns are event.metadata, .*, count, text"),
    ],
)
def test_option_unsupported_by_a_column_is_rejected_with_advice(
    option: dict[str, Any], message: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        pqext.write_table(TABLE, io.BytesIO(), **option)


def test_options_apply_to_nested_columns_and_names_with_dots() -> None:
    out = io.BytesIO()
    table = TABLE.append_column("a.b", TABLE["geom"])
    pqext.write_table(table, out, geometry={"place.at": "OGC:CRS84", "a.b": "OGC:CRS84"})
    leaves = {leaf.dotted_path: leaf.logical_name for leaf in pqext.open(out.getvalue()).schema.leaves}
    assert (leaves["place.at"], leaves["a.b"], leaves["geom"]) == ("GEOMETRY", "GEOMETRY", "")


def test_long_list_of_columns_is_shortened_in_errors() -> None:
    wide = pa.table({f"c{i}": [i] for i in range(500)})
    with pytest.raises(ValueError, match=r"c29 and 470 more$"):
        pqext.write_table(wide, io.BytesIO(), compression={"unlike": "zstd"})


def test_unknown_option_suggests_the_nearest_name(tmp_path: Path) -> None:
    table = pa.table({"a": [1]})
    with pytest.raises(TypeError, match="unknown option 'shred'; did you mean 'shredding'"):
        pqext.write_table(table, tmp_path / "a", shred="infer")
    pqext.write_table(table, tmp_path / "a")
    with pytest.raises(TypeError, match="unknown option 'filters'; use filter"):
        pqext.read_table(tmp_path / "a", filters=[("a", "=", 1)])
    with pytest.raises(TypeError, match=r"unknown option 'xyz'; the options are .*shredded"):
        pqext.open(tmp_path / "a", xyz=1)
    with pytest.raises(TypeError, match="strict must be a bool"):
        pqext.open(tmp_path / "a", strict="yes")
    with pytest.raises(TypeError, match=r"pqext\.Limits"):
        pqext.open(tmp_path / "a", limits=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="lists of names"):
        pqext.verify(tmp_path / "a", columns="a")
    with pytest.raises(ValueError, match="unknown top-level column 'b'"):
        pqext.verify(tmp_path / "a", columns=["b"])


ONE = pa.table({"a": [1]})


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda path: pqext.read_table(path, filters=[("a", ">", 1)]), "use filter"),
        (lambda path: pqext.scan(path, batch_size=5), "use batch_rows"),
        (lambda path: pqext.open(path, use_threads=False), "use threads: 1"),
        (lambda path: pqext.write_table(pa.table({"a": [1]}), path, row_group_size=5), "use row_group_rows"),
        (lambda path: pqext.write_table(pa.table({"a": [1]}), path, use_dictionary=False), "use dictionary"),
        (lambda path: pqext.ParquetWriter(path, pa.schema({"a": pa.int8()}), version="2.6"), "page_version"),
        (lambda path: pqext.write_table(pa.table({"a": [1]}), path, compresion="zstd"), "did you mean 'compression'"),
        (lambda path: pqext.open(path).iter_batches(batch_size=5), "no argument 'batch_size'; use batch_rows"),
        (lambda path: pqext.open(path).read(filters=[("a", ">", 1)]), "filter=...) or pqext.read_table"),
        (lambda path: pqext.open(path).read(use_threads=False), "use threads of pqext.open"),
        (lambda path: pqext.open(path).read(colums=["a"]), "did you mean 'columns'"),
        (lambda path: pqext.open(path).head(n=5), "use rows"),
        (lambda path: pqext.scan(path).to_batches(batch_size=5), "use batch_rows"),
        (lambda path: pqext.scan(path).to_table(columns=["a"]), "use pqext.scan(path, columns)"),
        (lambda path: pqext.scan(path).head(n_rows=5), "use rows"),
        (lambda path: pqext.ParquetWriter(io.BytesIO(), ONE.schema).write_table(ONE, row_group_size=1), "end_row_"),
    ],
)
def test_options_of_other_libraries_suggest_ours(call: Any, meant: str, tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pqext.write_table(pa.table({"a": [1, 2]}), path)
    with pytest.raises(TypeError, match=meant.replace("(", r"\(").replace(")", r"\)")):
        call(path)


def test_options_are_also_accepted_as_one_object(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pqext.write_table(pa.table({"a": [1, 2]}), path, WriteOptions(compression="gzip"), checksums=False)
    chunk = pqext.open(path, ReadOptions(threads=1)).row_groups[0].chunk(0)
    assert chunk.metadata.codec.name == "GZIP"
    assert pqext.read_table(path, options=ReadOptions(threads=1)).num_rows == 2
    with pytest.raises(TypeError, match="options must be WriteOptions, not ReadOptions"):
        pqext.write_table(pa.table({"a": [1]}), path, ReadOptions())  # type: ignore[arg-type]


def test_misplaced_argument_is_an_error_with_remedy(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match=r"pqext\.scan and pqext\.read_table read folders"):
        pqext.open(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"the folder .*nowhere' does not exist") as caught:
        pqext.write_table(pa.table({"a": [1]}), tmp_path / "nowhere" / "a.parquet")
    assert "None" not in str(caught.value)
    with pytest.raises(ValueError, match=r"ymin 5\.0 is greater than ymax 2\.0"):
        pqext.col("g").intersects((0, 5, 1, 2))
    with pytest.raises(TypeError, match=r"shredding=\{'column': 'infer'\}"):
        pqext.write_table(pa.table({"a": [1]}), tmp_path / "a", shredding="infer")  # type: ignore[arg-type]


@pytest.mark.parametrize("module", ["__main__", "missing_module", "pqext.core.options.fields"])
def test_docstring_without_source_is_that_of_the_class(module: str) -> None:
    names: dict[str, Any] = {"__name__": module}
    exec("class Options:\n    '''Options\n       of a call.'''\n    size: int = 1\n    '''Size.'''", names)
    assert append_field_docs(names["Options"]).__doc__ == "Options\nof a call."


def test_docstring_without_valid_source_is_that_of_the_class(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "checksums: bool = True" in str(ReadOptions.__doc__)
    monkeypatch.setattr("inspect.getsource", lambda _: "class (")
    assert "checksums: bool = True" not in str(ReadOptions.__doc__)
    assert str(ReadOptions.__doc__).startswith("Options for reading")
