"""Hypothesis strategies: Arrow tables of every type that core writes, in every layout, and every option of the writer.

``tables`` draws a table, ``options`` the options to write it with; ``tables(CORE)`` stays within the types that all
readers have. Values are few and repeated, so that dictionaries, runs and long stretches of nulls occur.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import assume
from hypothesis import strategies as st

import pqext
from pqext.core.format.metadata import Type
from pqext.core.schema.nodes import SchemaNode
from pqext.core.write.storage import plan, to_schema

Values = st.SearchStrategy[Any]


def signed(bits: int) -> Values:
    """Integers of so many bits, the ends among them."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return st.one_of(st.sampled_from([low, -1, 0, 1, high]), st.integers(low, high), st.integers(max(low, -9), 9))


def unsigned(bits: int) -> Values:
    high = (1 << bits) - 1
    return st.one_of(st.sampled_from([0, 1, high]), st.integers(0, high))


def decimals(precision: int, scale: int) -> Values:
    most = 10**precision - 1
    whole = st.one_of(st.sampled_from([-most, 0, most]), st.integers(-most, most))
    return whole.map(lambda number: Decimal(f"{number}e-{scale}"))


def text(size: int) -> Values:
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=size)


DAY = 86_400
CORE: dict[str, tuple[pa.DataType, Values]] = {
    "boolean": (pa.bool_(), st.booleans()),
    "int8": (pa.int8(), signed(8)),
    "int16": (pa.int16(), signed(16)),
    "int32": (pa.int32(), signed(32)),
    "int64": (pa.int64(), signed(64)),
    "uint8": (pa.uint8(), unsigned(8)),
    "uint16": (pa.uint16(), unsigned(16)),
    "uint32": (pa.uint32(), unsigned(32)),
    "uint64": (pa.uint64(), unsigned(64)),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "string": (pa.string(), text(40)),
    "binary": (pa.binary(), st.binary(max_size=40)),
    "fixed": (pa.binary(5), st.binary(min_size=5, max_size=5)),
    "decimal9": (pa.decimal128(9, 2), decimals(9, 2)),
    "decimal18": (pa.decimal128(18, 18), decimals(18, 18)),
    "decimal38": (pa.decimal128(38, 5), decimals(38, 5)),
    "date": (pa.date32(), st.integers(-700_000, 700_000)),
    "time_ms": (pa.time32("ms"), st.integers(0, DAY * 10**3 - 1)),
    "time_us": (pa.time64("us"), st.integers(0, DAY * 10**6 - 1)),
    "timestamp_ms": (pa.timestamp("ms"), st.integers(-(2**44), 2**44)),
    "timestamp_us": (pa.timestamp("us", "UTC"), st.integers(-(2**53), 2**53)),
    "timestamp_ns": (pa.timestamp("ns"), st.integers(-(2**60), 2**60)),
}
"""Types that pyarrow, DuckDB and polars have alike, with values that each of them holds."""

INTERVALS = st.builds(
    lambda months, days, milliseconds: pa.MonthDayNano([months, days, milliseconds * 10**6]),
    st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1), st.integers(0, 2**32 - 1),
)
SCALARS: dict[str, tuple[pa.DataType, Values]] = {
    **CORE,
    "null": (pa.null(), st.none()),
    "float16": (pa.float16(), st.floats(width=16)),
    "decimal76": (pa.decimal256(76, 30), decimals(76, 30)),
    "decimal256_few": (pa.decimal256(12, 3), decimals(12, 3)),
    "decimal1": (pa.decimal128(1, 0), decimals(1, 0)),
    "date64": (pa.date64(), st.integers(-(2**31), 2**31 - 1).map(lambda days: days * DAY * 10**3)),
    "date_wide": (pa.date32(), signed(32)),
    "time_s": (pa.time32("s"), st.integers(0, DAY - 1)),
    "time_ns": (pa.time64("ns"), st.integers(0, DAY * 10**9 - 1)),
    "timestamp_s": (pa.timestamp("s"), st.integers(-(2**53), 2**53)),
    "timestamp_wide": (pa.timestamp("ns", "Europe/Rome"), signed(64)),
    "interval": (pa.month_day_nano_interval(), INTERVALS),
    "large_string": (pa.large_string(), text(9)),
    "large_binary": (pa.large_binary(), st.binary(max_size=9)),
    "string_view": (pa.string_view(), text(30)),
    "binary_view": (pa.binary_view(), st.binary(max_size=30)),
    "fixed1": (pa.binary(1), st.binary(min_size=1, max_size=1)),
    "fixed40": (pa.binary(40), st.binary(min_size=40, max_size=40)),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), text(5)),
    "dictionary_ordered": (pa.dictionary(pa.uint16(), pa.string(), ordered=True), text(5)),
    "dictionary_binary": (pa.dictionary(pa.int64(), pa.binary()), st.binary(max_size=3)),
    "duration_s": (pa.duration("s"), signed(64)),
    "duration_ns": (pa.duration("ns"), signed(64)),
    "timestamp_zone": (pa.timestamp("us", "+05:30"), signed(64)),
    "decimal32": (pa.decimal32(9, 2), decimals(9, 2)),
    "decimal64": (pa.decimal64(12, 12), decimals(12, 12)),
    "dictionary_wide": (pa.dictionary(pa.int32(), pa.int64()), signed(64)),
}
"""Every type of a leaf."""

LAYOUTS: dict[str, Callable[[pa.Field], pa.DataType]] = {
    "list": pa.list_, "large_list": pa.large_list, "list_view": pa.list_view,
    "large_list_view": pa.large_list_view, "fixed_size_list": lambda field: pa.list_(field, 2),
}

RUNS = (pa.int16(), pa.int64(), pa.string(), pa.float64(), pa.timestamp("ns"))
"""Types of which columns are drawn as run ends too; Arrow makes no nested ones out of Python's values."""


@dataclass(frozen=True)
class Kind:
    """An Arrow type and the Python values of its arrays; ``optional`` ones include null."""

    type: pa.DataType
    values: Values
    optional: bool

    def field(self, name: str) -> pa.Field:
        return pa.field(name, self.type, self.optional)


@st.composite
def kinds(draw: st.DrawFn, scalars: Mapping[str, tuple[pa.DataType, Values]], depth: int, *, plain: bool) -> Kind:
    """A type of at most ``depth`` lists, structs and maps around a scalar; ``plain`` leaves out odd layouts."""
    shape = draw(st.sampled_from(["scalar", "scalar", "list", "struct", "map"])) if depth else "scalar"
    optional = draw(st.sampled_from([True, True, False]))
    kind: pa.DataType
    values: Values
    if shape == "scalar":
        kind, values = scalars[draw(st.sampled_from(sorted(scalars)))]
        optional = optional or pa.types.is_null(kind)
    elif shape == "struct":
        parts = draw(st.lists(kinds(scalars, depth - 1, plain=plain), min_size=1, max_size=3))
        kind = pa.struct([part.field(f"f{at}") for at, part in enumerate(parts)])
        values = st.fixed_dictionaries({f"f{at}": part.values for at, part in enumerate(parts)})
    elif shape == "map":
        key = draw(st.sampled_from(["int8", "string", "fixed"]))
        item = draw(kinds(scalars, depth - 1, plain=plain))
        kind = pa.map_(pa.field("key", CORE[key][0], False), item.field("value"))
        values = st.dictionaries(CORE[key][1], item.values, max_size=3).map(lambda pairs: [*pairs.items()])
    else:
        element = draw(kinds(scalars, depth - 1, plain=plain))
        layout = "list" if plain else draw(st.sampled_from(sorted(LAYOUTS)))
        kind = LAYOUTS[layout](element.field("element"))
        bounds = (2, 2) if layout == "fixed_size_list" else (0, 4)
        values = st.lists(element.values, min_size=bounds[0], max_size=bounds[1])
    return Kind(kind, st.one_of(st.none(), values) if optional else values, optional)


@st.composite
def tables(
    draw: st.DrawFn, scalars: Mapping[str, tuple[pa.DataType, Values]] = SCALARS, *, depth: int = 3,
    plain: bool = False, max_rows: int = 40, width: tuple[int, int] = (1, 3),
) -> pa.Table:
    """A table of ``width`` columns, cut into chunks and perhaps out of a longer one; it may be empty."""
    columns = draw(st.lists(kinds(scalars, depth, plain=plain), min_size=width[0], max_size=width[1]))
    rows = draw(st.integers(0, max_rows))
    arrays, fields = [], []
    for at, kind in enumerate(columns):
        pool = draw(st.lists(kind.values, min_size=1, max_size=6))
        picks = draw(st.lists(st.integers(0, len(pool) - 1), min_size=rows, max_size=rows))
        array = pa.array([pool[pick] for pick in picks], kind.type)
        assume(is_valid(array))  # pyarrow gives lists of dictionaries under nulls indices into nothing
        if not plain and kind.type in RUNS and draw(st.booleans()):
            array = pc.run_end_encode(array)
        arrays.append(array)
        fields.append(pa.field(f"c{at}", array.type, kind.optional))
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    start, stop = sorted(draw(st.tuples(st.integers(0, rows), st.integers(0, rows))))
    if draw(st.booleans()):
        table = table.slice(start, stop - start)
    elif rows and draw(st.booleans()):
        table = pa.concat_tables([table.slice(0, start), table.slice(start)])
    return table


def is_valid(array: pa.Array) -> bool:
    """Does pyarrow itself find nothing wrong with the array?"""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


SUITABLE: dict[Type, list[str]] = {
    Type.BOOLEAN: ["plain", "rle"],
    Type.INT32: ["plain", "delta_binary_packed", "byte_stream_split"],
    Type.INT64: ["plain", "delta_binary_packed", "byte_stream_split"],
    Type.FLOAT: ["plain", "byte_stream_split", "alp"],
    Type.DOUBLE: ["plain", "byte_stream_split", "alp"],
    Type.BYTE_ARRAY: ["plain", "delta_length_byte_array", "delta_byte_array"],
    Type.FIXED_LEN_BYTE_ARRAY: ["plain", "delta_byte_array", "byte_stream_split"],
}
"""The encodings that the Encodings document defines for each physical type."""

LEVELS = {"uncompressed": None, "snappy": None, "gzip": 9, "brotli": 11, "lz4_raw": 12, "zstd": 22}
"""Codec -> its highest level; the lowest is 1."""

FOOTER_KEY = b"0123456789012345"
COLUMN_KEY = b"123456789012345678901234"
DECRYPTION = pqext.encryption.FileDecryption(key_retriever={b"f": FOOTER_KEY, b"c": COLUMN_KEY}.__getitem__)


def leaves(schema: pa.Schema) -> list[SchemaNode]:
    """The leaves in which a table of this schema is stored."""
    return list(to_schema(plan(schema, pqext.WriteOptions())).leaves)


@st.composite
def encryptions(draw: st.DrawFn, paths: list[str]) -> pqext.encryption.FileEncryption:
    """Any way to encrypt a file of leaves ``paths``."""
    from pqext.core.options.encryption import ColumnKey

    listed = draw(st.lists(st.sampled_from(paths), unique=True, max_size=3)) if paths else []
    own_key = st.sampled_from([ColumnKey(COLUMN_KEY, "c"), None])
    return pqext.encryption.FileEncryption(
        FOOTER_KEY, "f", column_keys={path: draw(own_key) for path in listed},
        encrypt_columns=draw(st.sampled_from(["all", "listed", None])) if listed else None,
        plaintext_footer=draw(st.booleans()),
        algorithm=draw(st.sampled_from(["AES_GCM_V1", "AES_GCM_CTR_V1"])),
        aad_prefix=draw(st.sampled_from([None, b"prefix"])),
    )


@st.composite
def options(
    draw: st.DrawFn, schema: pa.Schema, *, encrypted: bool = True, alp: bool = True, brotli: bool = True
) -> dict[str, Any]:
    """Any options for writing a table of ``schema``."""
    codecs = [codec for codec in sorted(LEVELS) if brotli or codec != "brotli"]
    found = leaves(schema)
    paths = [leaf.dotted_path for leaf in found]
    distinct = len(set(paths)) == len(paths)

    def chosen(values: Values) -> Any:
        """One value for all, or some leaves with one each."""
        if not paths or not distinct or draw(st.booleans()):
            return draw(values)
        return draw(st.dictionaries(st.sampled_from(paths), values, max_size=3))

    codec = draw(st.sampled_from(codecs))
    highest = LEVELS[codec]
    picked: dict[str, Any] = {
        "compression": codec if draw(st.booleans()) else chosen(st.sampled_from(codecs)),
        "dictionary": chosen(st.booleans()),
        "page_version": draw(st.sampled_from([1, 2])),
        "row_group_rows": draw(st.sampled_from([1, 7, 1000])),
        "row_group_bytes": draw(st.sampled_from([50, 1 << 20])),
        "page_rows": draw(st.sampled_from([1, 3, 1000])),
        "page_bytes": draw(st.sampled_from([1, 30, 1 << 20])),
        "statistics": chosen(st.booleans()),
        "page_index": chosen(st.booleans()),
        "bloom_filters": draw(st.booleans()),
        "bloom_filter_place": draw(st.sampled_from(["file", "row_group"])),
        "bound_bytes": draw(st.sampled_from([1, 2, 64])),
        "float_order": draw(st.sampled_from(["type", "ieee754"])),
        "checksums": draw(st.booleans()),
        "threads": draw(st.sampled_from([1, 2])),
    }
    if highest and picked["compression"] == codec and draw(st.booleans()):
        # Levels that need much memory are left to the tests of compression.
        picked["compression_level"] = draw(st.integers(1, min(highest, 6)))
    known = {name for names in SUITABLE.values() for name in names if alp or name != "alp"}
    if draw(st.booleans()) and distinct:
        picked["encodings"] = {
            leaf.dotted_path: draw(
                st.sampled_from([name for name in SUITABLE[leaf.leaf_type.physical] if name in known])
            )
            for leaf in found
            if leaf.leaf_type.physical in SUITABLE and draw(st.booleans())
        }
    else:
        picked["encodings"] = draw(st.sampled_from(["plain", "auto"]))
    if paths and distinct and draw(st.booleans()):
        filters = st.sampled_from([False, True, {"fpp": 0.1, "ndv": 10}])
        picked["bloom_filters"] = {
            leaf.dotted_path: draw(filters)
            for leaf in found
            if leaf.leaf_type.physical != Type.BOOLEAN and draw(st.booleans())  # which have none
        }
    if encrypted and draw(st.booleans()):
        picked["encryption"] = draw(encryptions(paths))
    return picked


def shown(table: pa.Table) -> list[str]:
    """The table as text, in which NaN is NaN, with its schema and the metadata of its fields."""
    every = max(len(table), 1)
    values = [column.to_string(window=every, container_window=every) for column in table.columns]
    return [table.schema.to_string(truncate_metadata=False), *values]
