"""LIST and MAP: the three levels that are written, and all that files of every age are understood by."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core.raw_files import OPTIONAL, REPEATED, REQUIRED, Column, byte_arrays, group, int32, leaf, write
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import AnnotationWarning, CorruptFileError
from pqext.core.format.metadata import ConvertedType, ListType, LogicalType, MapType, StringType, Type
from pqext.core.schema.shape import GroupShape, Shape
from reference.effort import share

LIST = {"logicalType": LogicalType(LIST=ListType()), "converted_type": ConvertedType.LIST}
OLD_LIST = {"converted_type": ConvertedType.LIST}
MAP = {"logicalType": LogicalType(MAP=MapType()), "converted_type": ConvertedType.MAP}
STRING = {"logicalType": LogicalType(STRING=StringType()), "converted_type": ConvertedType.UTF8}


def rows(data: bytes, **options: Any) -> list[Any]:
    """The only column of a file, maps as lists of pairs; strictly valid."""
    with pqext.open(data, **options) as file:
        table = file.read()
    table.validate(full=True)
    return table.column(0).to_pylist()


def text(name: str, repetition: Any) -> Any:
    return leaf(name, repetition, Type.BYTE_ARRAY, **STRING)


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


@pytest.mark.spec("nested.repeated.no-annotation")
def test_repeated_fields_in_repeated_groups_are_nested_lists() -> None:
    data = write(
        [group("outer", REPEATED, 1), leaf("num", REPEATED)],
        [Column(int32(1, 2, 3, 4), 6, [2, 2, 2, 1, 0, 2], [0, 2, 1, 1, 0, 0])], 3,
    )
    assert rows(data) == [[{"num": [1, 2]}, {"num": [3]}, {"num": []}], [], [{"num": [4]}]]
    assert pq.read_table(pa.BufferReader(data)).column(0).to_pylist() == rows(data)


@pytest.mark.spec("nested.repeated.no-annotation")
def test_unannotated_repeated_fields_are_required_lists() -> None:
    data = write([leaf("num", REPEATED)], [Column(int32(1, 2, 3), 4, [1, 1, 0, 1], [0, 1, 0, 0])], 3)
    assert rows(data) == [[1, 2], [], [3]]
    field = pqext.open(data).arrow_schema.field(0)
    assert (field.nullable, field.type.value_field.nullable) == (False, False)
    data = write(
        [group("my_list", REPEATED, 2), leaf("num", REQUIRED), text("str", OPTIONAL)],
        [
            Column(int32(1, 2), 3, [1, 1, 0], [0, 1, 0]),
            Column(byte_arrays(b"a"), 3, [2, 1, 0], [0, 1, 0]),
        ],
        2,
    )
    assert rows(data) == [[{"num": 1, "str": "a"}, {"num": 2, "str": None}], []]
    assert pq.read_table(io.BytesIO(data))["my_list"].to_pylist() == rows(data)


ENTRIES = [group("m", REQUIRED, 1, **MAP), group("key_value", REPEATED, 2)]
STRINGS = byte_arrays(b"a", b"b", b"c")
RULES: dict[str, tuple[list[Any], list[Column], list[Any]]] = {
    "a list of three levels, elements nullable": (
        [group("l", REQUIRED, 1, **LIST), group("list", REPEATED, 1), text("element", OPTIONAL)],
        [Column(byte_arrays(b"a"), 3, [2, 1, 0], [0, 1, 0])],
        [["a", None], []],
    ),
    "a list of three levels, list nullable": (
        [group("l", OPTIONAL, 1, **LIST), group("list", REPEATED, 1), text("element", REQUIRED)],
        [Column(byte_arrays(b"a"), 3, [2, 1, 0], [0, 0, 0])],
        [["a"], [], None],
    ),
    "a list of lists": (
        [
            group("l", OPTIONAL, 1, **LIST), group("list", REPEATED, 1), group("element", REQUIRED, 1, **LIST),
            group("list", REPEATED, 1), leaf("element", REQUIRED),
        ],
        [Column(int32(1, 2, 3), 6, [3, 3, 3, 2, 1, 0], [0, 2, 1, 0, 0, 0])],
        [[[1, 2], [3]], [[]], [], None],
    ),
    "rule 1": (
        [group("l", OPTIONAL, 1, **OLD_LIST), leaf("element", REPEATED)],
        [Column(int32(1, 2), 4, [2, 2, 1, 0], [0, 1, 0, 0])],
        [[1, 2], [], None],
    ),
    "rule 2": (
        [group("l", OPTIONAL, 1, **LIST), group("element", REPEATED, 2), text("str", REQUIRED), leaf("num", REQUIRED)],
        [Column(byte_arrays(b"a", b"b"), 2, [2, 2], [0, 1]), Column(int32(1, 2), 2, [2, 2], [0, 1])],
        [[{"str": "a", "num": 1}, {"str": "b", "num": 2}]],
    ),
    "rule 3": (
        [group("l", OPTIONAL, 1, **LIST), group("array", REPEATED, 1, **LIST), leaf("array", REPEATED)],
        [Column(int32(1, 2, 3), 5, [3, 3, 3, 2, 0], [0, 2, 1, 0, 0])],
        [[[1, 2], [3]], [[]], None],
    ),
    "rule 3, by no name": (
        [group("l", OPTIONAL, 1, **LIST), group("element", REPEATED, 1), leaf("items", REPEATED)],
        [Column(int32(1, 2, 3), 5, [3, 3, 3, 2, 0], [0, 2, 1, 0, 0])],
        [[{"items": [1, 2]}, {"items": [3]}], [{"items": []}], None],
    ),
    "rule 4, array": (
        [group("l", OPTIONAL, 1, **LIST), group("array", REPEATED, 1), text("str", REQUIRED)],
        [Column(STRINGS, 3, [2, 2, 2], [0, 1, 0])],
        [[{"str": "a"}, {"str": "b"}], [{"str": "c"}]],
    ),
    "rule 4, tuple": (
        [group("my_list", OPTIONAL, 1, **LIST), group("my_list_tuple", REPEATED, 1), text("str", REQUIRED)],
        [Column(STRINGS, 3, [2, 2, 2], [0, 1, 0])],
        [[{"str": "a"}, {"str": "b"}], [{"str": "c"}]],
    ),
    "rule 5": (
        [group("l", OPTIONAL, 1, **LIST), group("element", REPEATED, 1), text("str", OPTIONAL)],
        [Column(byte_arrays(b"a"), 3, [3, 2, 1], [0, 1, 0])],
        [["a", None], []],
    ),
    "rule 5, another list's tuple": (
        [group("l", OPTIONAL, 1, **LIST), group("m_tuple", REPEATED, 1), text("str", REQUIRED)],
        [Column(STRINGS, 3, [2, 2, 2], [0, 1, 0])],
        [["a", "b"], ["c"]],
    ),
    "a map": (
        [*ENTRIES, text("key", REQUIRED), leaf("value", OPTIONAL)],
        [Column(byte_arrays(b"a", b"b"), 3, [1, 1, 0], [0, 1, 0]), Column(int32(7), 3, [2, 1, 0], [0, 1, 0])],
        [[("a", 7), ("b", None)], []],
    ),
    "a map whose names are others": (
        [group("m", OPTIONAL, 1, **MAP), group("map", REPEATED, 2), text("str", REQUIRED), leaf("num", REQUIRED)],
        [Column(byte_arrays(b"a"), 2, [2, 0], [0, 0]), Column(int32(7), 2, [2, 0], [0, 0])],
        [[("a", 7)], None],
    ),
    "a map whose value comes first by name": (
        [group("m", OPTIONAL, 1, **MAP), group("map", REPEATED, 2), text("value", REQUIRED), leaf("key", REQUIRED)],
        [Column(byte_arrays(b"a"), 2, [2, 0], [0, 0]), Column(int32(7), 2, [2, 0], [0, 0])],
        [[("a", 7)], None],
    ),
    "MAP_KEY_VALUE": (
        [
            group("m", OPTIONAL, 1, converted_type=ConvertedType.MAP_KEY_VALUE), group("map", REPEATED, 2),
            text("key", REQUIRED), leaf("value", OPTIONAL),
        ],
        [Column(byte_arrays(b"a"), 2, [2, 0], [0, 0]), Column(b"", 2, [2, 0], [0, 0])],
        [[("a", None)], None],
    ),
    "MAP around MAP_KEY_VALUE": (
        [
            group("m", OPTIONAL, 1, converted_type=ConvertedType.MAP),
            group("map", REPEATED, 2, converted_type=ConvertedType.MAP_KEY_VALUE),
            text("key", REQUIRED), leaf("value", REQUIRED),
        ],
        [Column(byte_arrays(b"a"), 2, [2, 0], [0, 0]), Column(int32(7), 2, [2, 0], [0, 0])],
        [[("a", 7)], None],
    ),
    "a map with optional keys": (
        [*ENTRIES, text("key", OPTIONAL), leaf("value", OPTIONAL)],
        [Column(byte_arrays(b"a"), 2, [2, 0], [0, 0]), Column(int32(7), 2, [2, 0], [0, 0])],
        [[("a", 7)], []],
    ),
    "a map without values": (
        [group("m", REQUIRED, 1, **MAP), group("key_value", REPEATED, 1), leaf("key", REQUIRED)],
        [Column(int32(1, 2, 3), 3, [1, 1, 1], [0, 1, 0])],
        [[1, 2], [3]],
    ),
    "a map without values around MAP_KEY_VALUE": (
        [
            group("m", REQUIRED, 1, **MAP),
            group("map", REPEATED, 1, converted_type=ConvertedType.MAP_KEY_VALUE), leaf("key", REQUIRED),
        ],
        [Column(int32(1, 2, 3), 3, [1, 1, 1], [0, 1, 0])],
        [[1, 2], [3]],
    ),
    "duplicate keys": (
        [*ENTRIES, text("key", REQUIRED), leaf("value", OPTIONAL)],
        [
            Column(byte_arrays(b"a", b"b", b"a", b"a", b"a", b"c"), 6, [1] * 6, [0, 1, 1, 0, 1, 0]),
            Column(int32(1, 2, 3, 4, 6), 6, [2, 2, 2, 2, 1, 2], [0, 1, 1, 0, 1, 0]),
        ],
        [[("a", 1), ("b", 2), ("a", 3)], [("a", 4), ("a", None)], [("c", 6)]],
    ),
}


PYARROW_DIFFERS = {
    "a map with optional keys", "a map without values around MAP_KEY_VALUE",  # it refuses the file
}


@pytest.mark.spec(
    "nested.list.levels", "nested.list.names", "nested.list.rule-1", "nested.list.rule-2", "nested.list.rule-3",
    "nested.list.rule-4", "nested.list.rule-5", "nested.list.two-levels", "nested.map.levels", "nested.map.names",
    "nested.map.key-value-annotation", "nested.map.no-value", "nested.map.duplicate-keys", "nested.map.key",
)
@pytest.mark.parametrize("name", RULES)
def test_each_shape_of_list_and_map_has_the_intended_values(name: str) -> None:
    elements, columns, expected = RULES[name]
    count = sum(level == 0 for level in columns[0].repetition or ())
    data = write(elements, columns, count)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows(data) == expected
    if name not in PYARROW_DIFFERS:
        assert pq.read_table(io.BytesIO(data)).column(0).to_pylist() == expected


@pytest.mark.spec("nested.map.key")
def test_null_map_key_is_rejected() -> None:
    elements = [
        group("m", REQUIRED, 1, **MAP), group("key_value", REPEATED, 2), text("key", OPTIONAL), leaf("value", OPTIONAL)
    ]
    columns = [Column(b"", 1, [1], [0]), Column(int32(7), 1, [2], [0])]
    with pytest.raises(CorruptFileError, match=r"null key.*column m"):
        rows(write(elements, columns, 1))


@pytest.mark.spec("nested.annotation.unsuitable")
@pytest.mark.parametrize(
    ("elements", "columns", "expected"),
    [
        (
            [group("l", REQUIRED, 2, **LIST), leaf("a", REQUIRED), leaf("b", REQUIRED)],
            [Column(int32(1), 1), Column(int32(2), 1)],
            [{"a": 1, "b": 2}],
        ),
        ([group("m", REQUIRED, 1, **MAP), leaf("a", REQUIRED)], [Column(int32(1), 1)], [{"a": 1}]),
        ([leaf("l", REQUIRED, **LIST)], [Column(int32(1), 1)], [1]),
    ],
)
def test_invalid_list_or_map_warns_and_reads_as_stored(
    elements: list[Any], columns: list[Column], expected: list[Any]
) -> None:
    data = write(elements, columns, 1)
    with pytest.warns(AnnotationWarning, match=rf"column {elements[0].name}: "):
        assert rows(data) == expected


@pytest.mark.spec("nested.writer.lists", "nested.writer.maps")
def test_lists_and_maps_are_written_in_three_levels_with_standard_names() -> None:
    table = pa.table(
        {
            "l": pa.array([[1], None], pa.large_list(pa.field("x", pa.int32(), False))),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())),
        },
    )
    assert str(pqext.open(written(table)).schema).splitlines()[1:-1] == [
        "  optional group l (LIST) {",
        "    repeated group list {",
        "      required INT32 element",
        "    }",
        "  }",
        "  optional group m (MAP) {",
        "    repeated group key_value {",
        "      required BYTE_ARRAY key (STRING)",
        "      optional INT32 value",
        "    }",
        "  }",
    ]


@pytest.mark.spec("nested.writer.annotated")
@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.list_(pa.int32())),
        pa.map_(pa.string(), pa.list_(pa.struct([("x", pa.large_list(pa.int8()))]))),
        pa.struct([("x", pa.list_(pa.map_(pa.int8(), pa.int8()), 2)), ("y", pa.list_view(pa.string()))]),
    ],
    ids=str,
)
def test_every_repeated_field_belongs_to_a_list_or_map(kind: pa.DataType) -> None:
    root = pqext.open(written(pa.table([pa.array([None], kind)], ["c"]))).schema.root
    stack = [(root, child) for child in root.children]
    repeated = 0
    while stack:
        parent, node = stack.pop()
        stack += [(node, child) for child in node.children]
        if node.repetition == REPEATED:
            assert parent.logical_name in ("LIST", "MAP")
            repeated += 1
    assert repeated >= 2


KEYS = {
    "int": (pa.int64(), st.integers(0, 3)),
    "string": (pa.string(), st.sampled_from(["", "a", "b", "ab"])),
    "bool": (pa.bool_(), st.booleans()),
    "fixed": (pa.binary(3), st.sampled_from([b"abc", b"abd"])),
    "large string": (pa.large_string(), st.sampled_from(["", "a", "b", "ab"])),
    "large binary": (pa.large_binary(), st.sampled_from([b"", b"a", b"ab"])),
    "struct": (pa.struct([("x", pa.int32())]), st.builds(lambda n: {"x": n}, st.integers(0, 2))),
    "null-ish": (pa.list_(pa.int8()), st.lists(st.integers(0, 1), max_size=1)),
}


@pytest.mark.spec("nested.map.duplicate-keys")
@given(st.sampled_from(sorted(KEYS)), st.data())
@settings(max_examples=share(0.6))
def test_maps_with_duplicate_keys_match_pyarrow(name: str, data: st.DataObject) -> None:
    kind, keys = KEYS[name]
    maps = data.draw(
        st.lists(st.none() | st.lists(st.tuples(keys, st.integers(0, 100)), max_size=25), min_size=1, max_size=8)
    )
    table = pa.table({"m": pa.array(maps, pa.map_(kind, pa.int32()))})
    data = written(table)
    expected = pq.read_table(io.BytesIO(data))["m"].to_pylist()
    assert rows(data) == expected
    assert pa.Table.from_batches(pqext.open(data).iter_batches(2))["m"].to_pylist() == expected
    assert pqext.scan(data, filter=pqext.col("m").is_not_null()).to_table()["m"].to_pylist() == [
        entries for entries in expected if entries is not None
    ]


@pytest.mark.spec("nested.map.duplicate-keys")
@pytest.mark.parametrize("strings", ["string", "view", "dictionary"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.json_()], ids=str)
def test_map_keys_have_the_text_type_of_the_arrow_schema(kind: pa.DataType, strings: Any) -> None:
    keys = pa.array(["1", "2", "1"], pa.string() if isinstance(kind, pa.BaseExtensionType) else kind)
    if isinstance(kind, pa.BaseExtensionType):
        keys = pa.ExtensionArray.from_storage(kind, keys)
    maps = pa.MapArray.from_arrays(pa.array([0, 3], pa.int32()), keys, pa.array([1, 2, 3]))
    assert rows(written(pa.table({"m": maps})), strings=strings) == [[("1", 1), ("2", 2), ("1", 3)]]


@pytest.mark.spec("nested.map.duplicate-keys")
def test_map_with_duplicate_keys_is_not_a_variant_object() -> None:
    """The names of an object are unique (Variant Binary Encoding), so that both values cannot be kept."""
    maps = rows(written(pa.table({"m": pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int32()))})))
    assert maps == [[("a", 1), ("a", 2)]]
    with pytest.raises(pqext.VariantError, match="two fields of the same name"):
        pqext.variant.from_arrow(pa.array(maps, pa.map_(pa.string(), pa.int32())))


TESTING = Path(os.environ.get("PARQUET_TEST_DATA", "")) / "data"
needs_files = pytest.mark.skipif(not os.environ.get("PARQUET_TEST_DATA"), reason="PARQUET_TEST_DATA is not set")


@needs_files
@pytest.mark.parametrize(
    "name",
    [
        "repeated_no_annotation", "null_list", "list_columns", "nested_lists.snappy", "nested_structs.rust",
        "nonnullable.impala", "nullable.impala",
    ],
)
def test_nested_files_of_other_writers_match_pyarrow(name: str) -> None:
    path = TESTING / f"{name}.parquet"
    found = pqext.read_table(path)
    found.validate(full=True)
    expected = pq.read_table(path, coerce_int96_timestamp_unit="ns")
    assert found.column_names == expected.column_names
    for column in expected.column_names:
        kind = expected[column].type
        ours = found[column] if found[column].type == kind else found[column].cast(kind)
        assert ours.equals(expected[column]), column


@needs_files
@pytest.mark.spec("nested.list.rule-3")
def test_old_nested_list_of_parquet_java_is_read() -> None:
    assert rows((TESTING / "old_list_structure.parquet").read_bytes()) == [[[1, 2], [3, 4]]]


def test_first_leaf_of_deep_groups_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    value: Any = 1
    for _ in range(30):
        value = {"a": value}
    out = io.BytesIO()
    pq.write_table(pa.table({"a": [value] * 4}), out, row_group_size=1)
    searches: list[Shape] = []
    leaves = GroupShape.leaves
    monkeypatch.setattr(GroupShape, "leaves", lambda shape: searches.append(shape) or leaves(shape))
    with pqext.open(out.getvalue()) as file:
        batches = file.iter_batches()
        next(batches)
        searches.clear()
        assert [batch.column(0).to_pylist() for batch in batches] == [[value]] * 3
    assert len(searches) <= 3 * 30  # one descent for each batch, not one for each level
