"""Valid files of many schemas and options, by number, which the modules of the harness then change."""

from __future__ import annotations

import functools
import io
import random
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import pqext
from pqext import geo, variant
from pqext.core.options.layout import FORMATS
from pqext.core.options.read_write import COMPRESSIONS

COUNT = 160
"""Number of base files; each worker writes those that it needs once."""
KEY = b"0123456789012345"
DECRYPTION = pqext.encryption.FileDecryption(KEY, plaintext_files_allowed=True)
DOCUMENTS = ('{"a": 1, "b": "x"}', '{"a": 2.5, "c": [1, {"a": null}]}', '{"a": "y"}', "null", "[1, 2]", '"text"', "7")
WKT = ("POINT (1 2)", "POINT Z (1 2 3)", "LINESTRING (0 0, 170 60)", "POLYGON ((0 0, 4 0, 4 4, 0 0))",
       "MULTIPOINT (1 2, 3 4)", "GEOMETRYCOLLECTION (POINT (1 2))", "POINT EMPTY")  # fmt: skip
TYPES = (
    pa.bool_(), pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.float16(),
    pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.large_string(), pa.binary(5), pa.date32(),
    pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.timestamp("ms"), pa.timestamp("us", "UTC"),
    pa.timestamp("ns"), pa.decimal128(9, 2), pa.decimal128(38, 10), pa.decimal256(50, 3),
    pa.dictionary(pa.int32(), pa.string()), pa.null(), pa.string_view(), pa.duration("us"),
)  # fmt: skip


@dataclass(frozen=True)
class Base:
    """A valid file and its columns; ``is_encrypted`` if pages are."""

    data: bytes
    names: tuple[str, ...]
    variants: tuple[str, ...] = ()
    geometries: tuple[str, ...] = ()
    is_encrypted: bool = False


def draw_type(chance: random.Random, depth: int = 0) -> pa.DataType:
    """Draw an Arrow type, sometimes nested."""
    choice = chance.randrange(12) if depth < 3 else 12
    if choice == 0:
        return pa.list_(draw_type(chance, depth + 1))
    if choice == 1:
        return pa.struct([(name, draw_type(chance, depth + 1)) for name in "ab"[: chance.randrange(1, 3)]])
    if choice == 2:
        return pa.map_(pa.string(), draw_type(chance, depth + 1))
    return chance.choice(TYPES)


def draw_array(chance: random.Random, type: pa.DataType, rows: int) -> pa.Array:
    """Draw an array of a type, with nulls."""
    if pa.types.is_null(type):
        return pa.nulls(rows)
    if pa.types.is_dictionary(type):
        return draw_array(chance, type.value_type, rows).dictionary_encode()
    if pa.types.is_map(type):
        rows_of_pairs = [
            None
            if chance.random() < 0.2
            else list(zip("kj", draw_array(chance, type.item_type, 2).to_pylist(), strict=True))
            for _ in range(rows)
        ]
        return pa.array(rows_of_pairs, type)
    if pa.types.is_struct(type):
        children = [draw_array(chance, field.type, rows) for field in type]
        mask = pa.array([chance.random() < 0.2 for _ in range(rows)], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(type), mask=mask)
    if pa.types.is_list(type):
        ends = [0]
        for _ in range(rows):
            ends.append(ends[-1] + chance.choice((0, 1, 2)))
        return pa.ListArray.from_arrays(
            pa.array(ends, pa.int32()), draw_array(chance, type.value_type, ends[-1]), type=type
        )
    numbers = [None if chance.random() < 0.2 else chance.randrange(100) for _ in range(rows)]
    if pa.types.is_fixed_size_binary(type):
        return pa.array([None if n is None else bytes([n]) * type.byte_width for n in numbers], type)
    if pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type):
        return pa.array([None if n is None else "t" * (n % 9) for n in numbers], type)
    if pa.types.is_binary(type):
        return pa.array([None if n is None else b"b" * (n % 9) for n in numbers], type)
    if pa.types.is_boolean(type):
        return pa.array([None if n is None else n % 2 == 0 for n in numbers], type)
    if pa.types.is_decimal(type):
        return pa.array([None if n is None else Decimal(n) for n in numbers], type)
    if pa.types.is_time32(type) or pa.types.is_date32(type):
        return pa.array(numbers, pa.int32()).cast(type)
    if pa.types.is_temporal(type):
        return pa.array(numbers, pa.int64()).cast(type)
    return pa.array(numbers, pa.float64()).cast(type)


@functools.cache
def base(number: int) -> Base:
    """Write a base file."""
    chance = random.Random(f"base {number}")
    rows = chance.choice((1, 3, 8, 40))
    columns: dict[str, Any] = {}
    fields: list[pa.Field] = []
    options: dict[str, Any] = {}
    for name in ("c", "d", "e.f", "g")[: chance.randrange(1, 5)]:
        columns[name] = draw_array(chance, draw_type(chance), rows)
        fields.append(pa.field(name, columns[name].type))
    variants: tuple[str, ...] = ()
    geometries: tuple[str, ...] = ()
    if number % 3 == 0:
        array = variant.parse_json([chance.choice(DOCUMENTS) for _ in range(rows)])
        variants, columns["v"] = ("v",), array
        fields.append(variant.variant_field("v"))
        options["shredding"] = {"v": chance.choice(("infer", "a BIGINT", "a STRING, c ARRAY<VARIANT>", "none"))}
        if options["shredding"]["v"] == "none":
            del options["shredding"]
    if number % 3 == 1:
        array = geo.from_wkt([chance.choice(WKT) for _ in range(rows)])
        geometries, columns["p"] = ("p",), getattr(array, "storage", array)
        fields.append(geo.geometry_field("p", edges=chance.choice(("planar", "planar", "spherical"))))
    table = pa.Table.from_arrays([_plain(column, field) for column, field in zip(columns.values(), fields,
    strict=True)], schema=pa.schema(fields))  # fmt: skip
    out = io.BytesIO()
    is_encrypted = number % 11 == 5
    if number % 4 == 2 and not variants and not geometries:
        _write_by_pyarrow(table, out, chance)
        return Base(out.getvalue(), tuple(columns))
    options |= {
        "compression": chance.choice(("uncompressed", *COMPRESSIONS)), "checksums": chance.random() < 0.2,
        "page_version": chance.choice((1, 2)), "page_rows": chance.choice((2, 5, 20_000)),
        "row_group_rows": chance.choice((2, 5, 1000)), "dictionary": chance.random() < 0.6,
        "bloom_filters": chance.random() < 0.3, "statistics": chance.random() < 0.8,
        "page_index": chance.random() < 0.8, "arrow_schema": chance.random() < 0.7,
    }  # fmt: skip
    if is_encrypted:
        options["encryption"] = pqext.encryption.FileEncryption(
            KEY, plaintext_footer=chance.random() < 0.7, algorithm=chance.choice(("AES_GCM_V1", "AES_GCM_CTR_V1"))
        )
    elif chance.random() < 0.2:
        options["footer"] = chance.choice(FORMATS)
    try:
        pqext.write_table(table, out, **options)
    except (ValueError, TypeError):  # options that do not suit the columns
        out = io.BytesIO()
        options.pop("bloom_filters"), options.pop("footer", None), options.pop("dictionary")
        pqext.write_table(table, out, **options)
    return Base(out.getvalue(), tuple(columns), variants, geometries, is_encrypted)


def _plain(array: Any, field: pa.Field) -> Any:
    return array if array.type == field.type else array.cast(field.type)


def _write_by_pyarrow(table: pa.Table, out: io.BytesIO, chance: random.Random) -> None:
    options = {
        "compression": chance.choice(("none", "snappy", "gzip", "zstd", "brotli", "lz4")),
        "data_page_version": chance.choice(("1.0", "2.0")), "use_dictionary": chance.random() < 0.6,
        "row_group_size": chance.choice((2, 5, 1000)), "write_statistics": chance.random() < 0.8,
        "write_page_index": chance.random() < 0.6, "version": chance.choice(("1.0", "2.4", "2.6")),
        "store_schema": chance.random() < 0.6, "data_page_size": chance.choice((1, 1 << 20)),
    }  # fmt: skip
    columns = [name for name in table.column_names if not _is_unwritable(table.schema.field(name).type)]
    pq.write_table(table.select(columns) if columns else pa.table({"c": [1, None, 3]}), out, **options)


def _is_unwritable(type: pa.DataType) -> bool:
    """Whether pyarrow cannot write a type."""
    return any(word in str(type) for word in ("view", "duration", "halffloat", "decimal256"))
