"""The schema that recovery is given as DDL: what `pqext schema --format ddl` prints of a whole file."""

from __future__ import annotations

import io
import random
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from recovery.cut_files import by_pqext, by_pyarrow, footer_of, without_footer

import pqext
from pqext import geo, variant
from pqext.cli import app
from pqext.core.base.errors import CorruptFileError
from reference.effort import share

_POINT = bytes.fromhex("0101000000000000000000f03f0000000000000040")
_VARIANTS = variant.parse_json(['{"a": 1}', "[2]", "null"] * 7)
_VALUES: list[tuple[pa.DataType, Any]] = [
    (pa.bool_(), True), (pa.int8(), -3), (pa.int16(), 300), (pa.int32(), 70_000), (pa.int64(), 1 << 40),
    (pa.float32(), 0.5), (pa.float64(), 0.1), (pa.string(), "text"), (pa.binary(), b"\0bytes"),
    (pa.date32(), date(2026, 5, 1)), (pa.timestamp("us", "UTC"), datetime(2026, 5, 1, tzinfo=UTC)),
    (pa.timestamp("us"), datetime(2026, 5, 1)), (pa.time64("us"), time(12)), (pa.decimal128(7, 2), Decimal("12.50")),
    (pa.decimal128(15, 0), Decimal(10**14)), (pa.decimal128(30, 5), Decimal("-3.00001")),
]  # fmt: skip


def ddl_of(data: bytes, folder: Path, form: str = "ddl") -> str:
    """What the command prints of a file."""
    (folder / "whole.parquet").write_bytes(data)
    done = CliRunner().invoke(app, ["schema", str(folder / "whole.parquet"), "--format", form])
    assert done.exit_code == 0, done.output
    return done.output


@st.composite
def tables(draw: Any) -> pa.Table:
    """Twenty-one rows of one or more columns that DDL has exact names for."""
    values = random.Random(draw(st.integers(0, 1 << 32)))

    def column(depth: int) -> tuple[pa.Field, list[Any]]:
        kind = draw(st.sampled_from(("leaf", "leaf", "leaf", "struct", "list", "map", "geometry", "geography")))
        required = draw(st.booleans())
        if depth < 2 and kind == "struct":
            parts = {f"f{i}": column(depth + 1) for i in range(draw(st.integers(1, 3)))}
            field = pa.field("", pa.struct([one.with_name(name) for name, (one, _) in parts.items()]))
            found = [{name: part[1][i] for name, part in parts.items()} for i in range(21)]
        elif depth < 2 and kind in ("list", "map"):
            item, inner = column(depth + 1)
            inner_type = item.type
            item = pa.field("element", inner_type, metadata=item.metadata)
            if kind == "list":
                field, found = pa.field("", pa.list_(item)), [[inner[i]] * values.randrange(3) for i in range(21)]
            else:
                field = pa.field("", pa.map_(pa.string(), item.with_name("value")))
                found = [[("k", inner[i])] * values.randrange(2) for i in range(21)]
        elif kind in ("geometry", "geography"):
            crs = draw(st.sampled_from((None, "EPSG:3857", "srid:0")))
            edges = "planar" if kind == "geometry" else "spherical"
            field, found = geo.geometry_field("", crs if edges == "planar" else None, edges), [_POINT] * 21
        else:
            type, value = draw(st.sampled_from(_VALUES))
            field, found = pa.field("", type), [value] * 21
        if not required:
            found = [None if values.random() < 0.2 else one for one in found]
        return field.with_nullable(not required), found

    known = st.sampled_from(("a", "b c", "d`e", "ß", "not", "group"))
    names = draw(st.lists(known, min_size=1, max_size=4, unique=True))
    columns = {name: column(0) for name in names}
    schema = pa.schema([field.with_name(name) for name, (field, _) in columns.items()])
    return pa.Table.from_arrays(
        [pa.array(found, field.type) for (_, found), field in zip(columns.values(), schema, strict=True)],
        schema=schema,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("whole")


@pytest.mark.spec("recovery.ddl")
@settings(max_examples=share(0.3))
@given(table=tables(), has_variant=st.booleans())
def test_ddl_printed_by_the_command_recovers_the_file(table: pa.Table, has_variant: bool, folder: Path) -> None:
    if has_variant:
        table = table.append_column("variant", _VARIANTS)
    data = by_pqext(table)
    report, found = without_footer(data, schema=ddl_of(data, folder))
    whole = folder / "whole.parquet"
    assert report.rows == 21, report
    assert found is not None
    assert found.equals(pq.read_table(whole))
    assert str(pq.ParquetFile(whole).schema).splitlines()[1:] == _schema_of(data, folder).splitlines()[1:]


def _schema_of(data: bytes, folder: Path) -> str:
    """The Parquet schema of the file that DDL recovers."""
    (folder / "cut.parquet").write_bytes(data[: footer_of(data)])
    pqext.recover(folder / "cut.parquet", folder / "new.parquet", schema=ddl_of(data, folder))
    return str(pq.ParquetFile(folder / "new.parquet").schema)


@pytest.mark.spec("recovery.ddl")
def test_not_null_columns_are_required(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    table = pa.table({"id": range(300), "name": [f"n{i % 9}" for i in range(300)]}, schema)
    for data in (by_pqext(table, row_group_rows=100), by_pyarrow(table, row_group_size=100)):
        printed = ddl_of(data, tmp_path)
        assert "id BIGINT NOT NULL" in printed
        report, found = without_footer(data, schema=printed)
        assert found == table, report
        assert found.schema.field("id").nullable is False


@pytest.mark.spec("recovery.ddl")
def test_every_arrow_type_has_a_ddl_form_that_is_accepted(tmp_path: Path) -> None:
    types = [
        pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(), pa.timestamp("ns"), pa.timestamp("ms", "UTC"),
        pa.time32("ms"), pa.time64("ns"), pa.binary(7), pa.decimal256(60, 2), pa.duration("us"), pa.null(),
        pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.map_(pa.int32(), pa.date32()),
        pa.list_(pa.float64(), 3),
    ]  # fmt: skip
    table = pa.schema([(f"c{i}", type) for i, type in enumerate(types)]).empty_table()
    data = by_pqext(table)
    report, _ = without_footer(data, schema=ddl_of(data, tmp_path))
    assert report.schema_from == "the provided DDL"


_NUMBERS = pa.array(range(300))
EXACT = {
    str(type): (_NUMBERS if type.bit_width == 64 else _NUMBERS.cast(pa.int32())).cast(type)
    for type in (
        pa.uint16(), pa.uint32(), pa.uint64(), pa.date32(), pa.duration("us"), pa.timestamp("ms"),
        pa.timestamp("ns"), pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.timestamp("ns", "UTC"), pa.time64("us"),
        pa.time64("ns"), pa.float32(),
    )
} | {
    "float16": _NUMBERS.cast(pa.float32()).cast(pa.float16()),
    "time32": _NUMBERS.cast(pa.int32()).cast(pa.time32("ms")),
    "binary": pa.array([number.to_bytes(7, "big") for number in range(300)], pa.binary(7)),
    "decimal": pa.array([Decimal(number).scaleb(-2) for number in range(300)], pa.decimal256(50, 2)),
    "struct": pa.array([{"at": number, "n": number} for number in range(300)],
                       pa.struct([("at", pa.timestamp("ms")), ("n", pa.uint16())])),
    "list": pa.array([[number] for number in range(300)], pa.list_(pa.timestamp("ns"))),
    "map": pa.array([[(number, number)] for number in range(300)], pa.map_(pa.uint32(), pa.time64("ns"))),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.spec("recovery.ddl")
def test_exact_ddl_has_units_widths_and_signs(name: str, tmp_path: Path) -> None:
    table = pa.table({"id": range(300), "c": EXACT[name], "z": ["q"] * 300})
    for data in (by_pyarrow(table), by_pqext(table)):
        report, found = without_footer(data, schema=ddl_of(data, tmp_path, "exact"))
        assert found is not None, report
        assert found["c"].to_pylist() == table["c"].to_pylist() or found["c"].cast(EXACT[name].type) == table["c"]


@pytest.mark.spec("recovery.ddl")
def test_ddl_expresses_units_and_widths_beyond_spark() -> None:
    table = pa.table({
        "ms": pa.array([datetime(2026, 5, 1, tzinfo=UTC)] * 9, pa.timestamp("ms", "UTC")),
        "ns": pa.array([datetime(2026, 5, 1)] * 9, pa.timestamp("ns")),
        "t": pa.array([time(12)] * 9, pa.time32("ms")),
        "b": pa.array([b"12345"] * 9, pa.binary(5)),
    })
    report, found = without_footer(
        by_pyarrow(table, store_schema=False), schema="ms TIMESTAMP(3), ns TIMESTAMP_NTZ(9), t TIME(3), b BINARY(5)"
    )
    assert found == table, report


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("g GEOMETRY(EVERY)", "requires an SRID"),
        ("g GEOMETRY(1, 2)", "requires an SRID"),
        ("t TIMESTAMP(4), u INT", "fractional digits"),
        ("a INT, a INT", "the same name"),
        ("GEOMETRY(4326)", "must list the columns"),
        ("v STRING(ANY)", "expected a number"),
        ("a LIST<INT>", "a list is an ARRAY"),
        ("a BIGNT", "BIGNT is not a type; did you mean 'BIGINT'"),
        ("a INT -- all of it\n- b INT", "unexpected '-'"),
    ],
)
def test_ddl_without_columns_is_rejected(schema: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        without_footer(by_pqext(pa.table({"a": [1]})), schema=schema)


def test_ddl_may_contain_sql_comments() -> None:
    table = pa.table({"a": pa.array([1, 2], pa.int32()), "b": ["x", "y"]})
    text = "-- columns\na INT, -- the first\n/* the\nsecond */ b STRING -- and no more"
    report, found = without_footer(by_pqext(table), schema=text)
    assert found == table, report


def test_variant_ddl_rejects_geometries() -> None:
    for spec in ("g GEOMETRY(ANY)", "g GEOMETRY(4326)"):
        with pytest.raises(ValueError, match=r"expected a number|not a type"):
            variant.shredding_schema(spec)


@pytest.mark.parametrize(
    ("schema", "error", "told"),
    [
        ({"a": "INT"}, TypeError, "schema must be a Parquet file, an Arrow schema or DDL, not a dict"),
        (b"PAR1" + bytes(20), CorruptFileError, "the schema file cannot be read"),
        ("nowhere.ddl", FileNotFoundError, r"nowhere\.ddl"),
    ],
)
def test_error_for_an_invalid_schema_names_the_argument(schema: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        pqext.recover(by_pqext(pa.table({"a": [1]})), io.BytesIO(), schema=schema)


@pytest.mark.parametrize("text", ["\ufeffa BIGINT", "a BIGINT;", " a BIGINT ; "])
def test_ddl_may_be_text_or_a_file(text: str, tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2]})
    (tmp_path / "a.ddl").write_text(text, encoding="utf-8")
    for schema in (text, tmp_path / "a.ddl", str(tmp_path / "a.ddl")):
        assert without_footer(by_pqext(table), schema=schema)[1] == table


def test_file_without_pages_is_reported_as_such() -> None:
    for data, told in ((b"", "the file is empty"), (b"PAR1" + bytes(100), "no pages are recognised")):
        assert told in str(pqext.recover(data, io.BytesIO(), schema="a BIGINT"))
