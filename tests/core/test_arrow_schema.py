"""Arrow types go through a file as they go through pyarrow's, in both directions, whatever the file notes of them."""

from __future__ import annotations

import base64
import io
import re
import warnings
from contextlib import suppress
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core import strategies
from core.arrow_types import COLUMNS, OURS_ONLY, comes_back, extension_columns, holds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import types as is_

import pqext
from pqext import col
from pqext.core.base.errors import AnnotationWarning, ParquetError
from pqext.core.kernels.flatbuffers.ipc_schema import from_base64
from pqext.core.schema.arrow_schema.stored_schema import UnreadableSchemaError, parse, serialise
from reference import values
from reference.effort import share

SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large]
KEY = b"ARROW:schema"


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


def by_pyarrow(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def read_by_pyarrow(data: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(data))


def read(data: bytes, **options: Any) -> pa.Table:
    table = pqext.read_table(data, **options)
    table.validate(full=True)
    return table


def check_same(found: pa.Table, expected: pa.Table) -> None:
    assert found.schema == expected.schema
    assert [field.metadata or {} for field in found.schema] == [field.metadata or {} for field in expected.schema]
    assert values.columns(found) == values.columns(expected)


@pytest.mark.parametrize("name", [*COLUMNS, *OURS_ONLY])
def test_arrow_type_round_trips_here_and_in_pyarrow(name: str) -> None:
    array = COLUMNS[name] if name in COLUMNS else OURS_ONLY[name]
    for part in (array, array[:0], array[1:]):
        table = pa.table({"c": part})
        data = written(table)
        found = read(data)
        assert found.schema.types == [comes_back(array.type)]
        assert values.plain(found["c"]) == values.plain(part)
        if name != "intervals":
            check_same(found, read_by_pyarrow(data))


@pytest.mark.parametrize("name", COLUMNS)
def test_pyarrow_file_is_read_like_pyarrow_does(name: str) -> None:
    # pyarrow aborts where it reads its own file of an extension type over dictionaries that has no rows.
    for part in (COLUMNS[name], COLUMNS[name][: name == "opaque_dictionary"]):
        table = pa.table({"c": part, "again": part})
        data = by_pyarrow(table)
        check_same(read(data), read_by_pyarrow(data))
        check_same(read(data, columns=["again"]), pq.read_table(io.BytesIO(data), columns=["again"]))


@settings(suppress_health_check=SLOW_TO_DRAW, max_examples=share(0.5))
@given(st.data())
def test_arbitrary_types_round_trip_here_and_in_pyarrow(data: st.DataObject) -> None:
    table = data.draw(strategies.tables())
    options = data.draw(strategies.options(table.schema, encrypted=False, alp=False))
    options["encodings"] = data.draw(st.sampled_from(["plain", "auto"]))
    file = written(table, **options)
    found = read(file)
    assert found.schema.types == [comes_back(field.type) for field in table.schema]
    whole = pa.struct(list(table.schema))
    if not holds(whole, is_.is_interval):
        schema = pq.read_schema(io.BytesIO(file))
        assert schema == found.schema
        try:
            other = read_by_pyarrow(file)
        except pa.ArrowNotImplementedError:  # some nested dictionaries in several chunks
            return
        except pa.ArrowInvalid as error:  # it does not read its own required fixed-size lists in null structs either
            if "lists to be of size" not in str(error):
                raise
            return
        assert values.columns(other) == values.columns(found)


@settings(suppress_health_check=SLOW_TO_DRAW)
@given(strategies.tables())
def test_arbitrary_pyarrow_file_is_read_like_pyarrow_does(table: pa.Table) -> None:
    try:
        data = by_pyarrow(table)
        expected = read_by_pyarrow(data)
    except (pa.ArrowException, OSError):  # what it does not write or read itself
        return
    check_same(read(data), expected)


@given(st.lists(extension_columns(), min_size=1, max_size=3))
def test_extension_types_round_trip_at_any_depth(arrays: list[pa.Array]) -> None:
    for array in arrays:
        table = pa.table({"c": array})
        ours, other = written(table), by_pyarrow(table)
        assert read(ours).schema.types == [array.type]
        assert values.columns(read(ours)) == values.columns(table)
        check_same(read(ours), read_by_pyarrow(ours))
        check_same(read(other), read_by_pyarrow(other))


def test_field_and_schema_metadata_round_trips() -> None:
    inner = pa.field("x", pa.int32(), metadata={"unit": "m"})
    element = pa.field("element", pa.int8(), metadata={"of": "list"})
    fields = [
        pa.field("a", pa.int64(), metadata={"k": "v"}), pa.field("s", pa.struct([inner])),
        pa.field("l", pa.large_list(element)), pa.field("id", pa.int8(), metadata={"PARQUET:field_id": "7"}),
        pa.field("odd", pa.string(), metadata={"ARROW:extension:name": "nobody.knows"}),
    ]
    schema = pa.schema(fields, {"pandas": "{}", "é": "ü"})
    for data in (written(schema.empty_table()), by_pyarrow(schema.empty_table())):
        found = read(data).schema
        assert found.metadata == {b"pandas": b"{}", "é".encode(): "ü".encode()} == read_by_pyarrow(data).schema.metadata
        assert found.field("a").metadata == {b"k": b"v"}
        assert found.field("s").type.field("x").metadata == {b"unit": b"m"}
        assert found.field("l").type.value_field.metadata == {b"of": b"list"}
        assert found.field("odd").metadata == {b"ARROW:extension:name": b"nobody.knows"}
        assert found.equals(read_by_pyarrow(data).schema, check_metadata=True)


def frame() -> pd.DataFrame:
    made = pd.DataFrame(
        {
            "day": pd.Categorical(["tue", "mon", None, "tue"], ["mon", "tue", "wed"], ordered=True),
            "code": pd.Categorical(["b", "a", "b", "b"]),
            "took": pd.to_timedelta([1, 2, None, 4], unit="s"),
            "at": pd.to_datetime([1, 2, None, 4], unit="s", utc=True).tz_convert("Europe/Paris"),
        },
        index=pd.Index([3.5, 1.5, 2.5, 0.5], name="key"),
    )
    made.columns.name = "columns"
    return made


def test_pandas_data_frame_round_trips() -> None:
    table = pa.Table.from_pandas(frame())
    for data in (written(table), by_pyarrow(table)):
        pd.testing.assert_frame_equal(read(data).to_pandas(), frame())
        pd.testing.assert_frame_equal(read_by_pyarrow(data).to_pandas(), frame())


@pytest.mark.parametrize("options", [{}, {"row_group_rows": 2}, {"page_rows": 1}, {"encodings": "auto"}], ids=str)
def test_categories_preserve_order_and_unused_entries(options: dict[str, Any]) -> None:
    kinds = {"ordered": True, "plain": False}
    entries = pa.array(["z", "m", "a", "unused"])
    indices = pa.array([2, 1, None, 1, 0], pa.int8())
    table = pa.table({k: pa.DictionaryArray.from_arrays(indices, entries, ordered=o) for k, o in kinds.items()})
    data = written(table, **options)
    for found in (read(data), read_by_pyarrow(data)):
        assert found["ordered"].type.ordered
        for name in kinds:
            assert {str(chunk.dictionary) for chunk in found[name].chunks} == {str(entries)}
            assert found[name].to_pylist() == ["a", "m", None, "m", "z"]
    with pqext.open(data) as file:
        bounds = file.row_groups[0].chunk(0).metadata.statistics
    assert bounds is not None
    assert bounds.max_value == (b"z" if "row_group_rows" not in options else b"m")
    assert bounds.distinct_count == (3 if "row_group_rows" not in options else 2)


@pytest.mark.parametrize(("beyond", "ordered"), [(0, False), (1, False), (1, True)])
def test_unordered_categories_are_preserved_up_to_a_mebibyte(beyond: int, ordered: bool) -> None:
    others = ["unused", "a"]
    entries = pa.array([*others, "z" * ((1 << 20) - pa.array([*others, ""]).nbytes + beyond)])
    assert entries.nbytes == (1 << 20) + beyond
    table = pa.table({"k": pa.DictionaryArray.from_arrays(pa.array([1, 2, 1], pa.int8()), entries, ordered=ordered)})
    found = read_by_pyarrow(written(table))["k"].combine_chunks()
    assert found.dictionary.equals(entries) is (ordered or not beyond)
    assert found.cast(pa.string()).equals(table["k"].combine_chunks().cast(pa.string()))


@pytest.mark.parametrize("encoding", ["delta_byte_array", "delta_length_byte_array"])
def test_dictionary_column_in_an_unusual_encoding_is_read_as_values(encoding: str) -> None:
    table = pa.table({"c": pa.array(["a", "b", "a"]).dictionary_encode(), "s": pa.array([["x"]] * 3)})
    data = written(table, encodings={"c": encoding})
    check_same(read(data), read_by_pyarrow(data))
    assert read(data)["c"].type == pa.string()
    auto = written(table, encodings="auto")
    check_same(read(auto), read_by_pyarrow(auto))
    assert read(auto)["c"].type == table["c"].type


@pytest.mark.spec("querying.dictionaries")
def test_dictionary_with_plain_fallback_preserves_its_first_entries() -> None:
    names = [f"{'x' * 40}{at}" for at in range(3000)]
    table = pa.table({"c": pa.array(["b", "a", *names], pa.string()).dictionary_encode()})
    data = by_pyarrow(table, dictionary_pagesize_limit=4096, data_page_size=4096, write_batch_size=64)
    found = read(data)
    assert found["c"].type == table["c"].type
    assert found["c"].to_pylist() == table["c"].to_pylist()
    assert found["c"].chunk(0).dictionary[:2].to_pylist() == ["b", "a"]
    with pqext.open(data) as file:
        assert pa.Table.from_batches(list(file.iter_batches(100)), file.arrow_schema).equals(table)


@pytest.mark.spec("querying.dictionaries")
def test_dictionary_page_with_duplicates_returns_distinct_entries() -> None:
    table = pa.table({"c": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), pa.array(["a", "b", "c"]))})
    data = written(table, compression="uncompressed", checksums=False)
    data = data.replace(b"\x01\0\0\0b\x01\0\0\0c", b"\x01\0\0\0a\x01\0\0\0c")
    found = read(data)["c"].chunk(0)
    assert found.to_pylist() == ["a", "a", "c"]
    assert found.dictionary.to_pylist() == ["a", "c"]


def test_combined_dictionaries_record_a_wider_index_type() -> None:
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), pa.array([f"{side}{at}" for at in range(100)]))
        for side in "ab"
    ]
    table = pa.table({"c": pa.chunked_array(chunks)})
    found = read(written(table))
    assert found["c"].type == pa.dictionary(pa.int32(), pa.string())
    assert found["c"].to_pylist() == table["c"].to_pylist()


def test_parquet_types_are_used_without_an_arrow_schema() -> None:
    table = pa.table({"d": pa.array([1], pa.duration("s")), "l": pa.array(["x"], pa.large_string())})
    plain = pa.schema([("d", pa.int64()), ("l", pa.string())])
    assert read(written(table), arrow_schema=False).schema == plain
    bare = written(table, arrow_schema=False)
    assert KEY not in (pq.ParquetFile(io.BytesIO(bare)).metadata.metadata or {})
    assert read(bare).schema == plain
    assert read(by_pyarrow(table, store_schema=False)).schema == plain


def test_marks_and_types_round_trip_independently() -> None:
    storage = pa.array([bytes(16)], pa.binary(16))
    marked = pa.field("u", pa.binary(16), metadata={"ARROW:extension:name": "arrow.uuid"})
    for field, array in ((marked, storage), (pa.field("u", pa.uuid()), pa.uuid().wrap_array(storage))):
        data = written(pa.table([array], pa.schema([field])))
        assert read(data).schema.field("u").type == field.type
        assert read_by_pyarrow(data).schema.field("u").type == pa.uuid()


# What the note says may be wrong.


def relabel(data: bytes, text: str | bytes) -> bytes:
    """The file with another note."""
    out = io.BytesIO()

    def change(metadata: Any) -> None:
        for pair in metadata.key_value_metadata:
            if pair.key == "ARROW:schema":
                pair.value = text if isinstance(text, str) else text.decode("latin-1")

    pqext.rewrite_footer(data, change, out)
    return out.getvalue()


def encode_schema(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def read_plain(data: bytes) -> pa.Table:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnnotationWarning)
        return read(data)


@settings(suppress_health_check=SLOW_TO_DRAW)
@given(st.data())
def test_arrow_schema_of_other_types_never_changes_values(data: st.DataObject) -> None:
    table = data.draw(strategies.tables(width=(1, 2)))
    lie = data.draw(strategies.tables(width=(1, 2), max_rows=0)).schema
    file = written(table, row_group_rows=1000)
    wrong = relabel(file, encode_schema(lie))
    found = None
    with suppress(ParquetError):
        found = read_plain(wrong)
    if found is None:
        with pytest.raises(ParquetError, match="arrow_schema=False"):
            read_plain(wrong)
        return
    plain = read(file, arrow_schema=False)
    assert found.schema.names == plain.schema.names
    for name in plain.schema.names:
        if not holds(found.schema.field(name).type, is_.is_duration):  # of integers, which may then be any unit
            assert values.plain(found[name]) == values.plain(plain[name])


@settings(suppress_health_check=SLOW_TO_DRAW)
@given(st.data())
def test_corrupt_arrow_schema_returns_a_table_or_warns(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=3, unique=True))
    schema = pa.schema([pa.field(name, COLUMNS[name].type, metadata={"k": "v"}) for name in names])
    file = written(pa.Table.from_arrays([COLUMNS[name][:0] for name in names], schema=schema))
    message = bytearray(schema.serialize().to_pybytes())
    for _ in range(data.draw(st.integers(1, 4))):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    found = read_plain(relabel(file, base64.b64encode(bytes(message)).decode()))
    assert found.schema.names == names


@pytest.mark.parametrize("text", ["", "!", "é", "AAAA", "/////w==", "A" * 40, "\udcff"], ids=ascii)
def test_invalid_arrow_schema_is_ignored_with_a_warning(text: str) -> None:
    data = relabel(written(pa.table({"d": pa.array([1], pa.duration("s"))})), text)
    with pytest.warns(AnnotationWarning, match="ARROW:schema is ignored"):
        assert read(data)["d"].to_pylist() == [1]
    assert read(data, arrow_schema=False)["d"].to_pylist() == [1]


def test_arrow_schema_that_pyarrow_does_not_read_is_ignored_for_any_single_column() -> None:
    data = written(pa.table({"a": [[1]], "b": pa.array([1], pa.duration("s"))}))
    message = pa.schema([("a", pa.large_list(pa.int64())), ("b", pa.duration("s"))]).serialize().to_pybytes()
    rejected = 0
    for at in range(len(message)):
        wrong = message[:at] + bytes([message[at] ^ 0xFF]) + message[at + 1 :]
        with suppress(UnicodeDecodeError):
            try:
                _ = pa.ipc.read_schema(pa.py_buffer(wrong)).names
            except (pa.ArrowException, OSError):
                rejected += 1
                with pytest.warns(AnnotationWarning, match="ARROW:schema is ignored"):
                    found = read(relabel(data, base64.b64encode(wrong).decode()), columns=["b"])
                assert found.schema.types == [pa.int64()]
    assert rejected > 50


def test_column_that_does_not_fit_the_arrow_schema_warns_and_reads_plainly() -> None:
    data = written(pa.table({"a": ["x"], "b": pa.array([1], pa.duration("s"))}))
    wrong = relabel(data, encode_schema(pa.schema([("a", pa.duration("s")), ("b", pa.duration("s"))])))
    with pytest.warns(AnnotationWarning, match="column 'a' .*ignored: 'a' contains bytes"):
        found = read(wrong)
    assert found.schema.types == [pa.string(), pa.duration("s")]


def test_long_type_of_the_arrow_schema_is_shortened_in_the_warning() -> None:
    data = written(pa.table({"a": ["x"]}))
    for length in (100, 101):  # struct<: int8> has 14 characters in addition to the name
        type_ = pa.struct([("n" * (length - 14), pa.int8())])
        assert len(str(type_)) == length
        shown = str(type_) if length == 100 else str(type_)[:99] + "…"
        with pytest.warns(AnnotationWarning, match=f"which are not {re.escape(shown)}$"):
            assert read(relabel(data, encode_schema(pa.schema([("a", type_)]))))["a"].to_pylist() == ["x"]


def test_values_out_of_range_of_the_arrow_schema_are_an_error_with_remedy() -> None:
    lists = written(pa.table({"c": [[1, 2], [3]]}))
    many = written(pa.table({"c": [f"{at}" for at in range(200)]}))
    cases = (
        (lists, pa.list_(pa.int64(), 2)), (lists, pa.list_(pa.int64(), 2**31 - 1)),
        (many, pa.dictionary(pa.int8(), pa.string())),
    )
    for data, kind in cases:
        wrong = relabel(data, encode_schema(pa.schema([("c", kind)])))
        with pytest.raises(ParquetError, match=r"column c.*arrow_schema=False"):
            read(wrong)
        assert len(read(wrong, arrow_schema=False))


def test_null_lists_of_a_huge_declared_size_allocate_no_memory() -> None:
    wrong = relabel(
        written(pa.table({"c": pa.nulls(1000, pa.list_(pa.int8()))})),
        encode_schema(pa.schema([("c", pa.list_(pa.int8(), 2**31 - 1))])),
    )
    with pytest.raises(pqext.LimitError, match="memory_bytes"):
        read(wrong)


def test_unknown_time_zone_is_read_as_utc() -> None:
    data = written(pa.table({"t": pa.array([1], pa.timestamp("us", "UTC"))}))
    found = read(relabel(data, encode_schema(pa.schema([("t", pa.timestamp("us", "Mars/Olympus"))]))))
    assert found.schema.field("t").type == pa.timestamp("us", "UTC")


def test_arrow_schema_with_repeated_references_is_rejected_early() -> None:
    count = 3000
    long = pa.field("n" * 30_000, pa.int8())
    message = bytearray(pa.schema([long, *[pa.field("", pa.int8())] * (count - 1)]).serialize().to_pybytes())
    counts = np.frombuffer(message, "<u4")
    at = int(np.flatnonzero(counts == count)[0]) * 4  # the vector of fields
    target = at + 4 + int.from_bytes(message[at + 4 : at + 8], "little")
    for place in range(at + 4, at + 4 + 4 * count, 4):
        message[place : place + 4] = (target - place).to_bytes(4, "little")
    assert pa.ipc.read_schema(pa.py_buffer(bytes(message))).names[-1] == long.name  # 90 MB from 200 KB
    data = relabel(written(pa.table({"d": [1]})), base64.b64encode(bytes(message)).decode())
    with pytest.warns(AnnotationWarning, match="too many times"):
        read(data)


# What stands on reading.


@pytest.mark.parametrize("name", COLUMNS)
def test_filters_and_batches_preserve_types(name: str) -> None:
    array = COLUMNS[name]
    rows = pa.array(range(len(array)))
    data = written(pa.table({"c": array, "row": rows}))
    last = len(array) - 1
    found = read(data, filter=col("row") == last)
    assert found.schema.field("c").type == read(data).schema.field("c").type
    assert values.plain(found["c"]) == values.plain(array[last:])
    null = read(data, filter=col("c").is_null())
    assert null["row"].to_pylist() == [at for at in range(len(array)) if not array[at].is_valid]


def test_filters_compare_stored_values() -> None:
    table = pa.table(
        {
            "d": pa.array([1, 2, None], pa.duration("s")), "k": pa.array(["a", "b", None]).dictionary_encode(),
            "v": pa.array(["a", "b", None], pa.string_view()), "j": pa.json_().wrap_array(pa.array(["a", "b", None])),
            "n": pa.array([1, 2, None], pa.decimal32(5, 0)),
        }
    )
    data = written(table)
    took = col("d") == timedelta(seconds=2)
    for condition in (took, col("k") == "b", col("v") == "b", col("j") == "b", col("n") == 2, col("k") > "a"):
        found = read(data, filter=condition)
        assert found.schema == table.schema
        assert found["d"].to_pylist() == table["d"].to_pylist()[1:2], condition


def test_files_with_different_arrow_schemas_are_scanned_like_the_first() -> None:
    first = pa.table({"s": pa.array(["a"]).dictionary_encode(), "t": pa.array([1], pa.timestamp("us", "Asia/Tokyo"))})
    other = pa.table({"s": pa.array(["b"], pa.large_string()), "t": pa.array([2], pa.timestamp("us", "UTC"))})
    for tables in ((first, other), (other, first)):
        files = [written(tables[0]), by_pyarrow(tables[1])]
        found = pqext.read_table(files)
        assert found.schema == tables[0].schema
        assert sorted(found["s"].to_pylist()) == ["a", "b"]
        bare = written(tables[0], arrow_schema=False)
        assert pqext.read_table([bare, files[1]]).schema.field("s").type == pa.string()
        filtered = pqext.read_table(files, filter=col("s") == "b")
        assert filtered["s"].to_pylist() == ["b"]


def test_files_with_durations_of_different_units_conflict() -> None:
    seconds, milliseconds = (written(pa.table({"d": pa.array([1], pa.duration(unit))})) for unit in ("s", "ms"))
    with pytest.raises(ValueError, match=r"duration\[s\].*duration\[ms\]"):
        pqext.read_table([seconds, milliseconds])
    with pytest.raises(ValueError, match=r"duration\[s\].*int64"):
        pqext.read_table([seconds, written(pa.table({"d": [1]}))])
    assert pqext.read_table([seconds, milliseconds], arrow_schema=False)["d"].to_pylist() == [1, 1]


def test_nested_fields_are_read_with_their_types() -> None:
    durations = pa.array([1, None, 2], pa.duration("s"))
    inner = pa.StructArray.from_arrays([durations, COLUMNS["large_string"]], ["d", "l"])
    table = pa.table({"s": inner})
    for data in (written(table), by_pyarrow(table)):
        assert read(data, columns=["s.l"]).schema.field("s").type == pa.struct([("l", pa.large_string())])
        assert read(data, columns=["s.d"])["s"].to_pylist() == [{"d": row["d"]} for row in inner.to_pylist()]


def joined(files: list[bytes], **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.concatenate(files, out, **options)
    return out.getvalue()


def test_concatenated_files_preserve_types_that_all_declare() -> None:
    def made(kind: pa.DataType, note: str) -> pa.Table:
        return pa.table({"d": pa.array([1], kind)}, metadata={"pandas": note, note: "x"})

    same = [written(made(pa.duration("s"), "p")), by_pyarrow(made(pa.duration("s"), "q"))]
    found = joined(same)
    assert read(found).schema.types == [pa.duration("s")]
    expected = {b"pandas": b"p", b"p": b"x", b"q": b"x"}
    assert read(found).schema.metadata == read_by_pyarrow(found).schema.metadata == expected
    for other in (pa.duration("ms"), pa.int64()):
        mixed = [same[0], written(made(other, "q"))]
        assert read(joined(mixed)).schema.types == read_by_pyarrow(joined(mixed)).schema.types == [pa.int64()]
        assert read(joined(mixed, key_value_metadata="first")).schema.types == [pa.duration("s")]


def test_encrypted_file_preserves_arrow_types() -> None:
    key = b"0123456789012345"
    table = pa.table({"d": pa.array([1], pa.duration("s")), "k": pa.array(["x"]).dictionary_encode()})
    data = written(table, encryption=pqext.encryption.FileEncryption(key, "f"))
    decryption = pqext.encryption.FileDecryption(key_retriever={b"f": key}.__getitem__)
    assert read(data, decryption=decryption).equals(table)


def wide_text(metadata: bool) -> str:
    fields = [
        pa.field(f"column {i}", COLUMNS_OF_TEXT[i % 4], metadata={"of": str(i)} if metadata and i % 5 == 0 else None)
        for i in range(400)
    ]
    text = serialise(pa.schema(fields, {"held": "not for these"}), {})
    assert text is not None
    return text


COLUMNS_OF_TEXT = [
    pa.int64(), pa.dictionary(pa.int8(), pa.string()), pa.struct([("a", pa.large_string())]),
    pa.timestamp("ns", "Asia/Tokyo"),
]


@given(st.booleans(), st.sets(st.integers(0, 399)))
def test_single_schema_fields_equal_those_of_the_full_schema(metadata: bool, chosen: set[int]) -> None:
    text, positions = wide_text(metadata), sorted(chosen)
    whole, some = parse(text), parse(text, positions)
    assert [field.equals(whole.field(at), check_metadata=True) for field, at in zip(some, positions, strict=True)] == (
        [True] * len(positions)
    )


@pytest.mark.parametrize("positions", [[400], [-1], [3, 3], [4, 2], [1 << 40]])
def test_missing_schema_fields_are_rejected(positions: list[int]) -> None:
    with pytest.raises(UnreadableSchemaError, match="too few fields"):
        parse(wide_text(False), positions)


@given(st.sets(st.integers(0, 399), max_size=4), st.integers(0, 40_000), st.integers(0, 255))
def test_single_fields_of_a_corrupt_schema_are_read_or_rejected(chosen: set[int], place: int, byte: int) -> None:
    message = bytearray(base64.b64decode(wide_text(True)))
    message[place % len(message)] = byte
    with suppress(UnreadableSchemaError):
        assert len(parse(base64.b64encode(message).decode(), sorted(chosen))) == len(chosen)


DIGIT = "A-Za-z0-9+/"
BASE64 = re.compile(f"([{DIGIT}]{{4}})*([{DIGIT}]{{2}}==|[{DIGIT}]{{3}}=)?")


@given(st.binary().map(lambda raw: base64.b64encode(raw).decode()) | st.text("AZaz09+/=-_ \né", max_size=12))
def test_base64_is_decoded_like_the_standard_library_does(text: str) -> None:
    assert from_base64(text) == (base64.b64decode(text) if BASE64.fullmatch(text) else None)


def test_columns_of_a_wide_file_have_their_declared_types() -> None:
    names = [f"column {i}" for i in range(1200)]
    kinds = [pa.large_string() if i % 2 else pa.dictionary(pa.int16(), pa.string()) for i in range(1200)]
    table = pa.table([pa.array(["a", "b"], kind) for kind in kinds], names=names)
    raw = by_pyarrow(table)
    with pqext.open(raw) as file:
        for at in (1199, 0, 7, 7, 8, 600, 601, 602, 3):  # at first alone, and then from the whole schema
            assert file.read([names[at], "column 5"]).schema.field(names[at]).type == kinds[at]
    assert pqext.read_table(raw).schema.types == kinds
