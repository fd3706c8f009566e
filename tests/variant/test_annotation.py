"""VARIANT columns in files: written as asked, read back equal, and by DuckDB as by pqext."""

from __future__ import annotations

import io
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.core.base.limits import Limits
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import (
    BsonType,
    DecimalType,
    EnumType,
    FieldRepetitionType,
    FileMetaData,
    JsonType,
    LogicalType,
    MicroSeconds,
    TimeType,
    TimeUnit,
    Type,
    VariantType,
)
from pqext.core.format.thrift import decode
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.core.write.writer import write_table
from pqext.dataset.reading import read_table
from pqext.variant.annotation import HANDLER
from pqext.variant.shredding.schema import ShreddingSchema, schema_of_storage, shredding_schema, storage_struct
from pqext.variant.types import variant_field, variant_type
from reference import variant_shred as reference
from reference.variant_strategies import fewer, schemas, variants

prim = reference.primitive
NAMES = ["a", "b", "c"]
METADATA = reference.encode_metadata(NAMES)


def fields(**values: bytes) -> bytes:
    return reference.object_of([(NAMES.index(name), value) for name, value in sorted(values.items())])


def column(values: list[bytes | None]) -> pa.StructArray:
    return pa.array([value and {"metadata": METADATA, "value": value} for value in values], variant_type())


ROWS = [
    fields(a=prim("int32", 1), b=prim("string", "x")),
    None,
    fields(a=prim("string", "one"), c=b"\0"),
    prim("int8", 7),
    b"\0",
    fields(),
]


def file_of(array: pa.Array | pa.ChunkedArray, field: pa.Field | None = None, **options: Any) -> bytes:
    field = field if field is not None else variant_field("v")
    sink = io.BytesIO()
    write_table(pa.Table.from_arrays([array], schema=pa.schema([field])), sink, **options)
    return sink.getvalue()


def read(data: bytes, **options: Any) -> pa.Table:
    return ParquetFile(data, ReadOptions(**options)).read()


def canonical(array: Any) -> list[Any]:
    return [
        row and reference.equivalent(reference.decode(row["value"], reference.decode_metadata(row["metadata"])))
        for row in array.to_pylist()
    ]


@fewer
@given(st.lists(st.one_of(st.none(), variants()), min_size=1, max_size=6), schemas())
def test_files_preserve_every_value_under_every_schema(
    rows: list[tuple[bytes, bytes] | None], schema: ShreddingSchema
) -> None:
    array = pa.array([row and {"metadata": row[0], "value": row[1]} for row in rows], variant_type())
    data = file_of(array, shredding={"v": schema})
    back = read(data)
    assert back.schema.field("v").equals(variant_field("v"), check_metadata=True)
    assert canonical(back["v"]) == canonical(array)
    assert [row and row["metadata"] for row in back["v"].to_pylist()] == [row and row[0] for row in rows]
    shredded = read(data, shredded=True)["v"]
    assert schema_of_storage(shredded.type) == schema
    assert canonical(variant.unshred(shredded, strict=True)) == canonical(array)


@pytest.mark.parametrize(
    "field",
    [
        variant_field("v"),
        pa.field("v", variant_type()),
        pa.field("v", variant_type(), nullable=True, metadata={"note": "kept"}),
    ],
)
def test_marked_columns_are_annotated_without_an_option(field: pa.Field) -> None:
    file = ParquetFile(file_of(column(ROWS), field))
    node = file.schema.find("v")
    assert node is not None
    assert node.logical_name == "VARIANT"
    assert node.logical_type.VARIANT.specification_version == 1  # type: ignore[union-attr]
    assert [(child.name, child.repetition) for child in node.children] == [
        ("metadata", FieldRepetitionType.REQUIRED),
        ("value", FieldRepetitionType.REQUIRED),
    ]
    assert canonical(file.read()["v"]) == canonical(column(ROWS))


def test_bare_struct_is_a_variant_if_the_option_names_it() -> None:
    bare = pa.struct([("value", pa.large_binary()), ("metadata", pa.binary())])
    array = column(ROWS)
    loose = pa.StructArray.from_arrays(
        [array.field(1).cast(pa.large_binary()), array.field(0)], fields=list(bare), mask=array.is_null()
    )
    data = file_of(loose, pa.field("v", bare), shredding={"v": "a INT, b STRING"})
    assert canonical(read(data)["v"]) == canonical(array)
    assert ParquetFile(file_of(loose, pa.field("v", bare))).schema.find("v").logical_name == ""  # type: ignore[union-attr]


@pytest.mark.spec(
    "shredding.layout.by-name", "shredding.layout.optional", "shredding.object.required", "shredding.array.list"
)
def test_shredded_group_has_the_layout_of_the_specification() -> None:
    file = ParquetFile(file_of(column(ROWS), shredding={"v": "a INT, c ARRAY<STRING>"}))
    assert str(file.schema).split("\n") == [
        "message schema {",
        "  optional group v (VARIANT) {",
        "    required BYTE_ARRAY metadata",
        "    optional BYTE_ARRAY value",
        "    optional group typed_value {",
        "      required group a {",
        "        optional BYTE_ARRAY value",
        "        optional INT32 typed_value",
        "      }",
        "      required group c {",
        "        optional BYTE_ARRAY value",
        "        optional group typed_value (LIST) {",
        "          repeated group list {",
        "            required group element {",
        "              optional BYTE_ARRAY value",
        "              optional BYTE_ARRAY typed_value (STRING)",
        "            }",
        "          }",
        "        }",
        "      }",
        "    }",
        "  }",
        "}",
    ]


PHYSICAL = {
    "BOOLEAN": ("BOOLEAN", "None"), "TINYINT": ("INT32", "Int(bitWidth=8, isSigned=true)"),
    "SMALLINT": ("INT32", "Int(bitWidth=16, isSigned=true)"), "INT": ("INT32", "None"), "BIGINT": ("INT64", "None"),
    "FLOAT": ("FLOAT", "None"), "DOUBLE": ("DOUBLE", "None"),
    "DECIMAL(9,2)": ("INT32", "Decimal(precision=9, scale=2)"),
    "DECIMAL(18,2)": ("INT64", "Decimal(precision=18, scale=2)"),
    "DECIMAL(38,2)": ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=38, scale=2)"), "DATE": ("INT32", "Date"),
    "TIME": ("INT64", "Time(isAdjustedToUTC=false, timeUnit=microseconds)"),
    "TIMESTAMP": ("INT64", "Timestamp(isAdjustedToUTC=true, timeUnit=microseconds"),
    "TIMESTAMP_NS": ("INT64", "Timestamp(isAdjustedToUTC=true, timeUnit=nanoseconds"),
    "TIMESTAMP_NTZ": ("INT64", "Timestamp(isAdjustedToUTC=false, timeUnit=microseconds"),
    "TIMESTAMP_NTZ_NS": ("INT64", "Timestamp(isAdjustedToUTC=false, timeUnit=nanoseconds"),
    "BINARY": ("BYTE_ARRAY", "None"), "STRING": ("BYTE_ARRAY", "String"), "UUID": ("FIXED_LEN_BYTE_ARRAY", "UUID"),
}  # fmt: skip


@pytest.mark.parametrize("name", PHYSICAL)
@pytest.mark.spec("shredding.types")
def test_leaves_have_the_parquet_types_of_the_specification(name: str) -> None:
    data = file_of(column([b"\0"]), shredding={"v": name})
    leaf = pq.ParquetFile(io.BytesIO(data)).schema.column(2)
    assert leaf.path == "v.typed_value"
    assert leaf.physical_type == PHYSICAL[name][0]
    assert str(leaf.logical_type).startswith(PHYSICAL[name][1])


def test_schema_is_inferred_from_the_first_rows() -> None:
    data = file_of(column(ROWS[:1] * 20), shredding={"v": "infer"})
    assert str(schema_of_storage(read(data, shredded=True)["v"].type)) == "STRUCT<a: BIGINT, b: STRING>"


def test_shredded_array_is_written_unchanged_and_reshredded_on_request() -> None:
    array = variant.shred(column(ROWS), "a INT")
    field = pa.field("v", array.type)
    assert str(schema_of_storage(read(file_of(array, field), shredded=True)["v"].type)) == "STRUCT<a: INT>"
    again = read(file_of(array, field, shredding={"v": "b STRING"}), shredded=True)["v"]
    assert str(schema_of_storage(again.type)) == "STRUCT<b: STRING>"
    whole = read(file_of(array, field, shredding={"v": "VARIANT"}), shredded=True)["v"]
    assert whole.type == variant_type()
    for column_read in (again, whole):
        assert canonical(variant.unshred(column_read)) == canonical(column(ROWS))


@pytest.mark.spec(
    "shredding.value.exclusive", "shredding.object.disjoint", "shredding.object.typed", "shredding.object.invalid"
)
@pytest.mark.parametrize(
    "row",
    [
        {"value": fields(), "typed_value": None},
        {"value": fields(a=prim("int8", 1)), "typed_value": {"a": {"value": None, "typed_value": 1}}},
        {"value": prim("int8", 1), "typed_value": {"a": {"value": None, "typed_value": 1}}},
        {"value": None, "typed_value": {"a": {"value": b"\0", "typed_value": 1}}},
        {"value": fields(a=prim("int8", 1)), "typed_value": None},
        {"value": fields(b=prim("int8", 1)), "typed_value": None},
        {"value": prim("string", "a"), "typed_value": {"a": {"value": None, "typed_value": None}}},
        {"value": b"\x18", "typed_value": None},
    ],
)
def test_invalid_shredded_array_is_never_written(row: dict[str, Any]) -> None:
    type = storage_struct(shredding_schema("a INT"))
    array = pa.array([None, {"metadata": METADATA, **row}], type)
    sink = io.BytesIO()
    with pytest.raises(VariantError) as caught:
        write_table(pa.Table.from_arrays([array], schema=pa.schema([pa.field("v", type)])), sink)
    assert (caught.value.row, str(caught.value.column).partition(".")[0]) == (1, "v")


@pytest.mark.spec("shredding.array.present", "shredding.array.typed", "shredding.primitive.one")
@pytest.mark.parametrize(
    "row",
    [
        {"value": None, "typed_value": [{"value": None, "typed_value": 1}, {"value": None, "typed_value": None}]},
        {"value": b"\0", "typed_value": []},
        {"value": None, "typed_value": [{"value": b"\0", "typed_value": 1}]},
        {"value": reference.array_of([prim("int8", 1)]), "typed_value": None},
    ],
)
def test_invalid_shredded_list_is_never_written(row: dict[str, Any]) -> None:
    type = storage_struct(shredding_schema("ARRAY<INT>"))
    array = pa.array([None, {"metadata": METADATA, **row}], type)
    with pytest.raises(VariantError) as caught:
        write_table(pa.Table.from_arrays([array], schema=pa.schema([pa.field("v", type)])), io.BytesIO())
    assert (caught.value.row, str(caught.value.column).partition(".")[0]) == (1, "v")


@pytest.mark.spec("shredding.types", "shredding.layout.by-name", "shredding.array.members")
@pytest.mark.parametrize("physical", ["FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY"])
def test_wide_decimals_are_read_from_both_physical_types(physical: str) -> None:
    numbers = [0, 1, -1, 10**37, -(10**37), 127, 128, -128, -129]
    if physical == "BYTE_ARRAY":
        typed = pa.array([n.to_bytes(n.bit_length() // 8 + 1, "big", signed=True) for n in numbers], pa.binary())
    else:
        typed = pa.array([n.to_bytes(16, "big", signed=True) for n in numbers], pa.binary(16))
    group = pa.StructArray.from_arrays(
        [typed, pa.array([b"\x01\0\0"] * len(numbers))],
        fields=[pa.field("typed_value", typed.type), pa.field("metadata", pa.binary(), nullable=False)],
    )
    sink, out = io.BytesIO(), io.BytesIO()
    pq.write_table(pa.table({"v": group}), sink, store_schema=False)

    def annotate(metadata: FileMetaData) -> None:
        for element in metadata.schema:
            if element.name == "v":
                element.logicalType = LogicalType(VARIANT=VariantType(specification_version=1))
            if element.name == "typed_value":
                element.logicalType = LogicalType(DECIMAL=DecimalType(scale=3, precision=38))

    rewrite_footer(sink, annotate, out)
    file = ParquetFile(out.getvalue())
    leaf = file.schema.find("v.typed_value")
    assert leaf is not None
    assert leaf.physical_type == Type[physical]
    assert canonical(file.read()["v"]) == [
        reference.equivalent(reference.decode(prim("decimal16", (number, 3)), [])) for number in numbers
    ]
    assert variant.get(file.read()["v"], "$", "decimal(38,3)").to_pylist() == [
        Decimal(number).scaleb(-3, Context(prec=60)) for number in numbers
    ]


def test_optional_groups_and_missing_columns_are_normalised() -> None:
    member = pa.struct([("typed_value", pa.large_string())])
    loose = pa.struct(
        [
            ("typed_value", pa.struct([("a", member), ("b", pa.struct([("value", pa.binary())]))])),
            pa.field("metadata", pa.binary(), metadata={"pqext:variant": "1"}),
        ]
    )
    array = pa.array(
        [
            {"typed_value": {"a": {"typed_value": "x"}, "b": {"value": b"\0"}}, "metadata": METADATA},
            {"typed_value": {"a": None, "b": None}, "metadata": METADATA},
            None,
        ],
        loose,
    )
    data = file_of(array, pa.field("v", loose))
    shredded = read(data, shredded=True)["v"]
    assert shredded.type == storage_struct(shredding_schema("a STRING, b VARIANT"))
    assert canonical(read(data)["v"]) == canonical(variant.unshred(array))


def test_slices_are_written_like_complete_arrays() -> None:
    lists = [reference.array_of([prim("int32", n)] * n) for n in range(4)]
    array = variant.shred(column([None, *lists, prim("string", "x")]), "ARRAY<INT>")
    for start, stop in ((0, 6), (1, 3), (3, 6), (5, 5)):
        data = file_of(array.slice(start, stop - start), pa.field("v", array.type))
        assert canonical(read(data)["v"]) == canonical(variant.unshred(array))[start:stop]


def test_nested_variants_are_read_and_written() -> None:
    variants_ = column(ROWS)
    nested = pa.StructArray.from_arrays(
        [pa.ListArray.from_arrays(pa.array([0, 2, 2, 6], pa.int32()), variants_)],
        fields=[pa.field("list", pa.list_(variant_field("element")))],
    )
    data = file_of(nested, pa.field("s", nested.type), shredding={})
    back = read(data)["s"].combine_chunks()
    assert canonical(back.field("list").values) == canonical(variants_)
    assert back.field("list").offsets.to_pylist() == [0, 2, 2, 6]


def test_partially_selected_variant_columns_are_read_as_stored() -> None:
    data = file_of(column(ROWS), shredding={"v": "a INT, b STRING"})
    table = ParquetFile(data).read(columns=["v.typed_value.a.typed_value"])
    assert [row and row["typed_value"] and row["typed_value"]["a"] for row in table["v"].to_pylist()] == [
        {"typed_value": 1}, None, {"typed_value": None}, None, None, {"typed_value": None},
    ]  # fmt: skip


def test_column_that_is_not_a_variant_is_not_written_as_one() -> None:
    with pytest.raises(TypeError, match="'v', which is not a VARIANT but has type int64"):
        file_of(pa.array([1]), pa.field("v", pa.int64()), shredding={"v": "INT"})


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        (pa.struct([pa.field("metadata", pa.binary()), ("value", pa.binary())]), "variant.group.metadata"),
        (pa.struct([pa.field("value", pa.binary())]), "shredding.layout.group"),
        (
            pa.struct([pa.field("metadata", pa.binary(), False), ("value", pa.binary()), ("extra", pa.int8())]),
            "shredding.layout.group",
        ),
        (
            pa.struct([pa.field("metadata", pa.binary(), False), ("typed_value", pa.uint32())]),
            "shredding.types",
        ),
    ],
)
@pytest.mark.spec("shredding.layout.group", "shredding.types", "variant.group.metadata")
def test_wrongly_annotated_groups_are_rejected_with_their_column(schema: pa.DataType, rule: str) -> None:
    sink = io.BytesIO()
    write_table(pa.table([pa.array([None], schema)], names=["v"]), sink)
    file = ParquetFile(sink.getvalue())
    node = file.schema.find("v")
    assert node is not None
    with pytest.raises(VariantError) as caught:
        HANDLER.arrow_field(node, pa.field("v", schema), ReadOptions(strict=True))
    assert caught.value.rule == rule
    assert "v" in str(caught.value)


@pytest.mark.spec("shredding.types")
@pytest.mark.parametrize(
    ("type", "logical"),
    [
        (pa.time64("us"), LogicalType(TIME=TimeType(isAdjustedToUTC=True, unit=TimeUnit(MICROS=MicroSeconds())))),
        (pa.string(), LogicalType(ENUM=EnumType())),
        (pa.string(), LogicalType(JSON=JsonType())),
        (pa.string(), LogicalType(BSON=BsonType())),
    ],
    ids=["a time in UTC", "ENUM", "JSON", "BSON"],
)
def test_annotations_invisible_in_arrow_are_not_shredded_types(type: pa.DataType, logical: LogicalType) -> None:
    kind = pa.struct([pa.field("metadata", pa.binary(), nullable=False), pa.field("typed_value", type)])
    sink, out = io.BytesIO(), io.BytesIO()
    write_table(pa.table([pa.array([{"metadata": METADATA, "typed_value": None}], kind)], names=["v"]), sink)

    def annotate(metadata: FileMetaData) -> None:
        for element in metadata.schema:
            if element.name == "v":
                element.logicalType = LogicalType(VARIANT=VariantType(specification_version=1))
            if element.name == "typed_value":
                element.logicalType, element.converted_type = logical, None

    rewrite_footer(sink, annotate, out)
    with pytest.raises(VariantError) as caught:
        read(out.getvalue())
    assert (caught.value.rule, caught.value.column) == ("shredding.types", "v.typed_value")


@pytest.mark.spec("variant.version", "variant.group.annotation")
@pytest.mark.parametrize("options", [{}, {"shredding": {"v": "a INT"}}])
def test_annotation_states_version_1(options: dict[str, Any]) -> None:
    data = file_of(column(ROWS), **options)
    length = int.from_bytes(data[-8:-4], "little")
    metadata, _ = decode(FileMetaData, data[-8 - length : -8], limits=Limits())
    assert metadata.schema[1].logicalType == LogicalType(VARIANT=VariantType(specification_version=1))


DOCUMENTS = [
    {"id": n, "mag": [n / 4, None, "none"][n % 3], "place": {"name": "é" * n, "tags": ["a", n]}} for n in range(30)
]


@pytest.mark.parametrize("schema", [None, "id BIGINT, mag DECIMAL(9,2), place STRUCT<name: STRING>", "infer"])
def test_duckdb_reads_the_written_documents(schema: str | None, tmp_path: Path) -> None:
    array = variant.parse_json(pa.array([orjson.dumps(document) for document in DOCUMENTS]))
    path = tmp_path / "v.parquet"
    path.write_bytes(file_of(array, shredding={"v": schema} if schema else {}))
    rows = duckdb.sql(f"SELECT v::JSON FROM '{path}'").fetchall()
    assert [orjson.loads(row[0]) for row in rows] == DOCUMENTS
    assert [orjson.loads(text) for text in variant.to_json(read(path.read_bytes())["v"]).to_pylist()] == DOCUMENTS


@pytest.mark.spec("shredding.compat.schemas", "shredding.compat.unshredded", "shredding.reconstruct.required")
def test_files_with_different_shredding_form_one_column(tmp_path: Path) -> None:
    schemas = [None, "a INT", "a STRING, b INT", "ARRAY<INT>", "b STRING, c STRUCT<d: INT>"]
    for number, schema in enumerate(schemas):
        data = file_of(column(ROWS), shredding={"v": schema} if schema else {})
        (tmp_path / f"{number}.parquet").write_bytes(data)
    table = read_table([tmp_path / f"{number}.parquet" for number in range(len(schemas))])
    assert canonical(table["v"].combine_chunks()) == canonical(column(ROWS)) * len(schemas)


@pytest.mark.spec("shredding.compat.schemas", "shredding.compat.unshredded")
def test_files_shredded_by_duckdb_are_read(tmp_path: Path) -> None:
    source, path = tmp_path / "source.json", tmp_path / "v.parquet"
    source.write_bytes(b"\n".join(map(orjson.dumps, DOCUMENTS)))
    rows = f"SELECT json::VARIANT AS v FROM read_json_objects('{source}')"
    duckdb.sql(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    texts = variant.to_json(read(path.read_bytes())["v"]).to_pylist()
    assert [orjson.loads(text) for text in texts] == DOCUMENTS
