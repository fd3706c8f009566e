"""``strings="dictionary"`` and ``strings="view"`` change the layout of string and binary columns, and no value."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core import damaged_bytes, strategies
from core.damaged_bytes import FILES, damaged
from core.test_any_table import SLOW_TO_DRAW
from core.test_two_ways import CORPUS, without_small
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import col
from reference.effort import share, some

FORMS = ("string", "view", "dictionary")
KINDS = {
    name: strategies.SCALARS[name]
    for name in ("string", "binary", "large_string", "string_view", "dictionary", "dictionary_binary", "fixed", "int32")
}
WORDS = ["A", "", None, "twelve bytes", "thirteen byte", "a value that is long", "\u00e9t\u00e9", "\U0001f600" * 5]


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


def expected(shown: pa.DataType, form: str) -> pa.DataType:
    """The type that ``form`` makes of the one that is shown without it."""
    types = pa.types
    if types.is_struct(shown):
        return pa.struct([field.with_type(expected(field.type, form)) for field in shown])
    if types.is_map(shown):
        key, item = (field.with_type(expected(field.type, form)) for field in (shown.key_field, shown.item_field))
        return pa.map_(key, item)
    if types.is_fixed_size_list(shown):
        return pa.list_(shown.value_field.with_type(expected(shown.value_type, form)), shown.list_size)
    for is_list, make in (
        (types.is_list, pa.list_), (types.is_large_list, pa.large_list), (types.is_list_view, pa.list_view),
        (types.is_large_list_view, pa.large_list_view),
    ):
        if is_list(shown):
            return make(shown.value_field.with_type(expected(shown.value_type, form)))
    if types.is_dictionary(shown) and form == "view":
        shown = shown.value_type
    is_text = types.is_string(shown) or types.is_large_string(shown) or types.is_string_view(shown)
    if is_text or types.is_binary(shown) or types.is_large_binary(shown):
        plain = pa.string() if is_text else pa.binary()
        if form == "dictionary":
            return pa.dictionary(pa.int32(), plain)
        return pa.string_view() if is_text else pa.binary_view()
    return shown


@settings(max_examples=share(0.3), suppress_health_check=SLOW_TO_DRAW, deadline=None)
@given(st.data())
def test_all_layouts_have_equal_values(data: st.DataObject) -> None:
    table = data.draw(strategies.tables(KINDS, depth=2))
    source = written(table, **data.draw(strategies.options(table.schema, brotli=False, encrypted=False)))
    batch_rows = data.draw(st.sampled_from([None, 1, 5, 1000]))
    found = {}
    for form in FORMS:
        with pqext.open(source, strings=form) as file:
            if batch_rows is None:
                shown = file.read()
            else:
                shown = pa.Table.from_batches(file.iter_batches(batch_rows), file.arrow_schema)
            rows = {group.index: [range(group.num_rows // 3, group.num_rows)] for group in file.row_groups}
            chosen = file.read(rows=rows)
        shown.validate(full=True)
        chosen.validate(full=True)
        found[form] = shown.to_pylist(), chosen.to_pylist()
        plain = pqext.read_table(source).schema
        wanted = plain.types if form == "string" else [expected(kind, form) for kind in plain.types]
        assert shown.schema.types == wanted
    assert found["view"] == found["string"]
    assert found["dictionary"] == found["string"]
    assert found["string"][0] == table.to_pylist()


@settings(max_examples=share(0.3), deadline=None)
@given(
    st.lists(st.sampled_from(WORDS), max_size=60), st.booleans(), st.sampled_from([1, 4, 100]),
    st.sampled_from(["==", "!=", "<", ">=", "in", "null", "not null"]),
    st.sampled_from(["A", "", "twelve bytes", "zz"]), st.booleans(),
)
def test_filter_selects_the_same_rows_in_all_layouts(
    words: list[str | None], dictionary: bool, page_rows: int, operator: str, word: str, both: bool
) -> None:
    table = pa.table({"w": pa.array(words, pa.string()), "n": range(len(words))})
    source = written(table, dictionary=dictionary, page_rows=page_rows, row_group_rows=23)
    column = col("w")
    asked = {
        "==": column == word, "!=": column != word, "<": column < word, ">=": column >= word,
        "in": column.isin([word, "A"]), "null": column.is_null(), "not null": column.is_not_null(),
    }[operator]
    frame = polars.col("w")
    oracle = {
        "==": frame == word, "!=": frame != word, "<": frame < word, ">=": frame >= word,
        "in": frame.is_in([word, "A"]), "null": frame.is_null(), "not null": frame.is_not_null(),
    }[operator]
    kept = polars.from_arrow(table).filter(oracle)
    for form in FORMS:
        scan = pqext.scan(source, ["w", "n"] if both else ["n"], filter=asked, strings=form)
        assert scan.to_table()["n"].to_pylist() == kept["n"].to_list()
        assert not both or scan.to_table()["w"].to_pylist() == kept["w"].to_list()
        assert scan.count() == len(kept)


@pytest.mark.spec("querying.dictionaries")
@pytest.mark.parametrize("row_group_rows", [1000, 70])
def test_dictionaries_match_pyarrow(row_group_rows: int) -> None:
    table = pa.table({"w": WORDS * 40, "b": pa.array([b"x", None, b"yy", b""] * 80)})
    source = written(table, row_group_rows=row_group_rows, page_rows=33)
    ours = pqext.read_table(source, strings="dictionary")
    theirs = pq.read_table(io.BytesIO(source), read_dictionary=["w", "b"])
    assert ours.schema.types == theirs.schema.types
    for name in table.column_names:
        chunks = zip(ours[name].chunks, theirs[name].chunks, strict=True)
        assert all(mine.dictionary.equals(their.dictionary) and mine.equals(their) for mine, their in chunks)
    assert ours.unify_dictionaries().to_pylist() == table.to_pylist()


@pytest.mark.spec("querying.dictionaries")
@pytest.mark.parametrize("writer", ["pyarrow", "polars"])
def test_chunk_with_plain_fallback_is_a_dictionary_array(writer: str) -> None:
    table = pa.table({"w": [f"value {i % 900} {'x' * (i % 50)}" for i in range(6000)]})
    out = io.BytesIO()
    if writer == "pyarrow":
        pq.write_table(table, out, dictionary_pagesize_limit=2000, data_page_size=3000, write_batch_size=100)
    else:
        polars.from_arrow(table).write_parquet(out, data_page_size=3000)
    for form in FORMS:
        found = pqext.read_table(out.getvalue(), strings=form)
        found.validate(full=True)
        assert found["w"].to_pylist() == table["w"].to_pylist()
        with pqext.open(out.getvalue(), strings=form) as file:  # in batches that take parts of several pages
            batches = [*file.iter_batches(330)]
        assert [value for batch in batches for value in batch["w"].to_pylist()] == table["w"].to_pylist()
    chunk = pqext.read_table(out.getvalue(), strings="dictionary")["w"].chunk(0)
    assert len(chunk.dictionary.unique()) == len(chunk.dictionary)


def test_annotated_columns_preserve_their_types() -> None:
    events = pqext.variant.parse_json(pa.array(['{"a": "x"}', None]), shredding="a STRING")
    table = pa.table({"v": events, "g": pa.array([None, None], pa.binary()), "s": ["x", "y"]})
    source = written(table, geometry={"g": "OGC:CRS84"})
    plain = pqext.read_table(source)
    for form in FORMS[1:]:
        found = pqext.read_table(source, strings=form)
        assert found.schema.types[:2] == plain.schema.types[:2]
        assert found.schema.types[2] == expected(pa.string(), form)
        assert found["v"].combine_chunks().equals(plain["v"].combine_chunks())


def test_extension_types_preserve_their_storage() -> None:
    table = pa.table({"j": pa.array(['{"a": 1}']).cast(pa.string())})
    field = pa.field("j", pa.string(), metadata={"ARROW:extension:name": "of.others"})
    source = written(table.cast(pa.schema([field])))
    for form in FORMS:
        assert pqext.read_table(source, strings=form).schema.field("j").type == pa.string()


def test_map_with_duplicate_keys_preserves_all_entries_in_all_layouts() -> None:
    keys = ["a long key, one of two", "b", "a long key, one of two", "b"]
    maps = pa.MapArray.from_arrays([0, 3, 4], pa.array(keys), pa.array(["1", "2", "3", "4"]))
    out = io.BytesIO()
    pq.write_table(pa.table({"m": maps}), out)
    for form in FORMS:
        found = pqext.read_table(out.getvalue(), strings=form)
        assert found["m"].to_pylist() == pq.read_table(io.BytesIO(out.getvalue()))["m"].to_pylist()


def test_invalid_utf8_is_rejected_in_all_layouts() -> None:
    text = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff\xfe", b"ok"]).buffers())
    for dictionary in (True, False):
        out = io.BytesIO()
        pq.write_table(pa.table({"t": text}), out, use_dictionary=dictionary, write_statistics=False)
        for form in FORMS:
            with pytest.raises(pqext.CorruptFileError, match="UTF-8"):
                pqext.read_table(out.getvalue(), strings=form)


def test_unknown_string_layout_is_rejected() -> None:
    with pytest.raises(ValueError, match='strings must be "string", "view" or "dictionary"'):
        pqext.ReadOptions(strings="categorical")  # type: ignore[arg-type]


def outcomes(source: Any, **options: Any) -> list[str | None]:
    """What each form shows, ``None`` where it raises an error of this library's."""
    found: list[str | None] = []
    for form in FORMS:
        try:
            with warnings.catch_warnings(), pqext.open(source, strings=form, threads=1, **options) as file:
                warnings.simplefilter("ignore")
                table = file.read()
            table.validate(full=True)
            found.append(repr(table.to_pylist()))
        except pqext.ParquetError:
            found.append(None)
    return found


@pytest.mark.parametrize("path", [path for path in CORPUS if path.stat().st_size < 1 << 19], ids=lambda path: path.name)
def test_files_of_other_writers_have_equal_values_in_all_layouts(path: Path) -> None:
    try:
        assert len(set(outcomes(path))) == 1
    except (ValueError, OverflowError) as error:  # Python has no such time
        pytest.skip(str(error))


@pytest.mark.parametrize("name", [name for name in FILES if "encrypted" not in name])
@pytest.mark.parametrize("skip", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_corruption_is_an_error_or_equal_values_in_all_layouts(name: str, skip: bool) -> None:
    data = damaged_bytes.written(name)
    footer = int.from_bytes(data[-8:-4], "little") + 8
    with without_small():
        for at in some(range(4, len(data) - footer, 11), 2):
            bad = damaged(data, "flip", at)
            assert len(set(outcomes(bad, on_corrupt="skip" if skip else "raise"))) == 1


def test_invalid_utf8_is_read_as_binary_on_request() -> None:
    rows = [{"t": b"ok", "l": [b"\xff", b"b"], "n": 1, "b": b"\xfe"}, {"t": b"\xc3", "l": [], "n": 2, "b": None}, None]
    binary = pa.struct([("t", pa.binary()), ("l", pa.list_(pa.binary())), ("n", pa.int32()), ("b", pa.binary())])
    array = pa.array(rows, binary)
    texts, lists, numbers, plain = (array.field(name) for name in ("t", "l", "n", "b"))
    lists = pa.ListArray.from_arrays(lists.offsets, lists.values.view(pa.string()))
    children = {"t": texts.view(pa.string()), "l": lists, "n": numbers, "b": plain}
    stored = pa.StructArray.from_arrays(list(children.values()), list(children), mask=array.is_null())
    column = pa.array([b"\xff", b"a", None]).view(pa.string())
    pq.write_table(pa.table({"s": stored, "plain": column}), sink := io.BytesIO())
    found = pqext.read_table(sink.getvalue(), invalid_utf8="binary")
    assert found.schema.field("s").type.equals(binary)
    assert found["s"].to_pylist() == rows
    assert found["plain"].to_pylist() == [b"\xff", b"a", None]
    replaced = pqext.read_table(sink.getvalue(), invalid_utf8="replace")
    assert replaced["s"][1].as_py()["t"] == b"\xc3".decode("utf-8", "replace")
