"""`pqext.inspect` describes every kind of column as its statistics allow, and nothing that they do not."""

from __future__ import annotations

import contextlib
from datetime import UTC, date, datetime, time
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import geo
from pqext.core.base.errors import ParquetError
from pqext.core.format.extension.structure import append_extension
from pqext.core.format.metadata import SchemaElement, Type
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.types.geometries import geometry_type_names
from pqext.inspection import Column, inspect
from pqext.inspection.values import format_bound, logical_type


def written(table: pa.Table, **options: object) -> bytes:
    sink = BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def single_column(column: pa.Array, **options: object) -> Column:
    (group,) = inspect(written(pa.table({"c": column}), **options)).row_groups
    return group.columns[0]


@pytest.mark.parametrize(
    ("values", "type", "minimum", "maximum", "logical"),
    [
        ([3, -7], pa.int64(), "-7", "3", None),
        ([3, 7], pa.uint8(), "3", "7", "INTEGER(8, unsigned)"),
        ([1.5, 2.5], pa.float64(), "1.5", "2.5", None),
        ([0.1, 1e-4], pa.float32(), "0.0001", "0.1", None),
        ([True, False], pa.bool_(), "false", "true", None),
        (["b", "ä"], pa.string(), "b", "ä", "STRING"),
        ([b"\x00\xff", b"\x01"], pa.binary(), "0x00ff", "0x01", None),
        ([Decimal("-1.20"), Decimal("3.40")], pa.decimal128(9, 2), "-1.20", "3.40", "DECIMAL(9, 2)"),
        ([date(1969, 12, 31), date(2020, 2, 29)], pa.date32(), "1969-12-31", "2020-02-29", "DATE"),
        ([time(1, 2, 3, 500000)], pa.time64("us"), "01:02:03.5", "01:02:03.5", "TIME(MICROS, local)"),
        (
            [datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)],
            pa.timestamp("us", "UTC"),
            "1969-12-31T23:59:59Z",
            "1969-12-31T23:59:59Z",
            "TIMESTAMP(MICROS, UTC)",
        ),
        (
            [datetime(2020, 1, 1)],
            pa.timestamp("ns"),
            "2020-01-01T00:00:00",
            "2020-01-01T00:00:00",
            "TIMESTAMP(NANOS, local)",
        ),
        ([UUID(int=1).bytes], pa.uuid(), str(UUID(int=1)), str(UUID(int=1)), "UUID"),
    ],
)
def test_bounds_are_displayed_in_the_column_type(
    values: list[object], type: pa.DataType, minimum: str, maximum: str, logical: str | None
) -> None:
    file = written(pa.table({"c": pa.array(values, type)}), use_dictionary=False)
    report = inspect(file)
    column = report.row_groups[0].columns[0]
    assert (column.minimum, column.maximum) == (minimum, maximum)
    if logical is not None:
        assert report.schema[0].logical_type == logical


def test_times_beyond_the_calendar_are_displayed_as_numbers() -> None:
    from pqext.core.format.metadata import DateType, FieldRepetitionType, LogicalType, Type
    from pqext.core.schema.nodes import SchemaNode

    node = SchemaNode(
        "c", FieldRepetitionType.REQUIRED, (), Type.INT32, None, LogicalType(DATE=DateType()), None, ("c",), 0, 0, 0, 1
    )
    assert format_bound(node, 2**31 - 1) == "2147483647 days"
    assert logical_type(node.logical_type) == "DATE"


def test_column_without_statistics_has_no_bounds() -> None:
    column = single_column(pa.array([1, 2]), write_statistics=False)
    assert (column.minimum, column.maximum, column.null_count) == (None, None, None)


def test_nan_bounds_are_not_displayed() -> None:
    column = single_column(pa.array([float("nan")]))
    assert (column.minimum, column.maximum) == (None, None)


def test_levels_follow_nesting() -> None:
    table = pa.table({"l": pa.array([[{"x": 1}]], pa.list_(pa.struct([("x", pa.int32())])))})
    schema = inspect(written(table)).schema
    assert [(field.path[-1], field.max_definition_level, field.max_repetition_level) for field in schema] == [
        ("l", 1, 0),
        ("list", 2, 1),
        ("element", 3, 1),
        ("x", 4, 1),
    ]
    assert [field.column for field in schema] == [None, None, None, 0]
    assert schema[0].logical_type == "LIST"


def test_sorting_columns_and_page_indexes_are_reported() -> None:
    sorting = [pq.SortingColumn(0, descending=True)]
    report = inspect(written(pa.table({"a": [3, 2, 1]}), sorting_columns=sorting, write_page_index=True))
    assert report.row_groups[0].sorting == ("a descending",)
    assert report.row_groups[0].columns[0].column_index
    assert report.row_groups[0].columns[0].offset_index


def test_footer_extension_is_reported() -> None:
    file = written(pa.table({"a": [1]}))
    length = int.from_bytes(file[-8:-4], "little")
    footer = append_extension(file[-8 - length : -8], b"hello extension, of many bytes")
    extended = file[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    (extension,) = inspect(extended).extensions
    assert (extension.place, extension.length, extension.beginning) == ("file", 30, b"hello extension,".hex())
    assert "extensions" in str(inspect(extended))


def test_missing_column_or_row_group_is_a_value_error() -> None:
    file = written(pa.table({"a": [1]}))
    with pytest.raises(ValueError, match="unknown column 'b'"):
        inspect(file, columns=["b"])
    with pytest.raises(ValueError, match="row group 1"):
        inspect(file, row_groups=[1])


def test_every_truncation_of_a_file_is_an_error() -> None:
    file = written(pa.table({"a": [1, 2], "b": ["x", None]}))
    for length in range(0, len(file), 7):
        with pytest.raises(ParquetError):
            inspect(file[:length])


def test_changed_byte_in_the_footer_is_a_typed_error() -> None:
    file = bytearray(written(pa.table({"a": [1, 2], "b": ["x", None]}), store_schema=False))
    length = int.from_bytes(file[-8:-4], "little")
    for at in range(len(file) - 8 - length, len(file)):
        for bit in (1, 0x80):
            file[at] ^= bit
            with contextlib.suppress(ParquetError):
                inspect(bytes(file)).to_dict()
            file[at] ^= bit


def test_public_test_files_are_described_or_rejected(parquet_testing: Path) -> None:
    described = 0
    refused = []
    for path in sorted(parquet_testing.rglob("*.parquet")):
        try:
            report = inspect(path)
        except ParquetError as error:
            refused.append((error.path, str(path)))
            continue
        footer = pq.read_metadata(path)
        assert (report.num_row_groups, report.num_columns) == (footer.num_row_groups, footer.num_columns)
        report.to_dict()
        described += 1
    assert described > 100
    assert all(named == path for named, path in refused)


def test_boxes_and_types_of_geometries_match_pyarrow(parquet_testing: Path) -> None:
    path = parquet_testing / "data" / "geospatial" / "geospatial.parquet"
    footer = pq.read_metadata(path)
    for group in inspect(path).row_groups:
        theirs = footer.row_group(group.index).column(2).geo_statistics
        ours = group.columns[2]
        box = ours.bounding_box or {}
        assert (box.get("xmin"), box.get("ymax"), box.get("mmax")) == (theirs.xmin, theirs.ymax, theirs.mmax)
        assert list(ours.geospatial_types or ()) == (theirs.geospatial_types or [])


def test_geometry_types_have_names() -> None:
    shapes = ["POINT (1 2)", "POLYGON Z EMPTY", "MULTIPOINT M ((1 2 3))", "GEOMETRYCOLLECTION ZM EMPTY"]
    table = pa.table({"g": geo.from_wkt(pa.array(shapes))})
    pqext.write_table(table, sink := BytesIO(), geometry={"g": None})
    report = inspect(sink.getvalue())
    (column,) = report.row_groups[0].columns
    assert column.geospatial_types == (1, 1003, 2004, 3007)
    assert column.geometry_types == ("Point", "Polygon Z", "MultiPoint M", "GeometryCollection ZM")
    shown = "geometry types Point (1), Polygon Z (1003), MultiPoint M (2004), GeometryCollection ZM (3007)"
    assert shown in str(report)
    assert geometry_type_names([16, 3001, 4001]) == ("unknown", "Point ZM", "unknown")


def test_bound_with_an_absurd_scale_is_not_expanded() -> None:
    element = SchemaElement(name="d", type=Type.INT32, repetition_type=0)
    element.converted_type, element.scale, element.precision = 5, 2**31 - 1, 9
    node = from_elements([SchemaElement(name="schema", num_children=1), element]).leaves[0]
    assert format_bound(node, node.leaf_type.comparison_value(b"\x07\0\0\0")) == "7E-2147483647"
