"""FlatBuffers footers, beside the Thrift footer and alone: what they say, what they are made of, and damaged ones."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core.strategies import shown, tables
from core.test_footer import everything
from core.test_thrift import structs
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import CorruptFileError
from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.footer.flatbuffers.lookup import FlatFooter, FlatLookup
from pqext.core.footer.flatbuffers.reading import build_extension, build_file_end, encode_tables
from pqext.core.footer.thrift_footer import FLATBUFFERS
from pqext.core.format.extension.structure import append_extension, set_extension
from pqext.core.format.metadata import ColumnChunk, FileMetaData, RowGroup, SchemaElement, Statistics
from pqext.core.format.thrift import LazyStructs, decode, encode
from pqext.core.indexes.reading import DamagedIndexWarning
from pqext.core.options.layout import FORMATS, FooterFormat
from reference import flat_footer as slowly
from reference.compact import Reader
from reference.effort import share

SMALL = pa.table(
    {
        "number": pa.array([1, 2, 3, 4], pa.int32()),
        "text": ["apple", "application_is_a_very_long_suffix", "b" * 40, None],
        "list": [[1], [2, 3], [], None],
        "deep": [{"a": {"b": 1.0}, "c": 1}] * 4,
        "when": pa.array([1, 2, 3, 4], pa.timestamp("us", "UTC")),
    }
)


def written(table: pa.Table, form: FooterFormat, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, footer=form, **{"row_group_rows": 2, **options})
    return out.getvalue()


def footer_of(file: bytes) -> bytes:
    return file[-8 - int.from_bytes(file[-8:-4], "little") : -8]


def with_footer(file: bytes, footer: bytes) -> bytes:
    return file[: len(file) - 8 - len(footer_of(file))] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def decode_payload(payload: bytes) -> FileMetaData:
    return everything(FlatLookup(payload, DEFAULT_LIMITS, None).load_metadata())


def thrift(serialised: bytes) -> FileMetaData:
    return everything(decode(FileMetaData, serialised)[0])


@st.composite
def footers(draw: st.DrawFn) -> FileMetaData:
    """Any footer whose row groups have the columns of its schema, whatever else is in it."""
    count, footer = draw(st.integers(1, 3)), draw(structs(FileMetaData))
    elements = [draw(structs(SchemaElement)) for _ in range(count + 1)]
    for at, element in enumerate(elements):
        element.num_children = None if at else count
    footer.schema = elements
    footer.encryption_algorithm = footer.footer_signing_key_metadata = None
    groups: list[RowGroup] = [draw(structs(RowGroup)) for _ in range(draw(st.integers(0, 2)))]
    for group in groups:
        group.columns = [draw(structs(ColumnChunk)) for _ in range(count)]
        for chunk in group.columns:
            assume(chunk.meta_data is not None)
            chunk.crypto_metadata = chunk.encrypted_column_metadata = None
    footer.row_groups = groups
    if draw(st.booleans()):
        set_extension(footer, draw(st.binary(max_size=10)))
    return footer


@pytest.mark.spec("extension.flatbuffers.equal")
@settings(max_examples=share(0.5))
@given(footers())
def test_arbitrary_footer_is_equal_in_both_formats(footer: FileMetaData) -> None:
    serialised = encode(footer)
    payload = encode_tables(serialised)
    assert decode_payload(payload) == thrift(serialised)
    assert slowly.read(payload) == slowly.plain(Reader(serialised).struct())


@pytest.mark.spec("extension.flatbuffers")
@given(tables(width=(1, 4)))
def test_framed_footer_follows_its_specification(table: pa.Table) -> None:
    plain = footer_of(written(table, "thrift"))
    payload, fields = slowly.payload_of(footer_of(written(table, "thrift+flatbuffers")))
    assert fields == plain
    assert slowly.read(payload) == slowly.plain(Reader(plain).struct())


@pytest.mark.spec("extension.flatbuffers.alone")
@settings(max_examples=share(0.5))
@given(tables(width=(1, 4)))
def test_standalone_footer_follows_its_specification(table: pa.Table) -> None:
    file = written(table, "flatbuffers")
    assert slowly.read(slowly.payload_alone(file)) == slowly.plain(
        Reader(footer_of(written(table, "thrift"))).struct()
    )
    with pqext.open(file) as opened:
        assert opened.footer.format == "flatbuffers"
        plain = pqext.open(written(table, "thrift")).read()
        assert shown(opened.read()) == shown(plain)


@pytest.mark.spec("extension.flatbuffers.equal")
def test_wide_file_returns_the_same_facts_on_every_access_path() -> None:
    table = pa.table({f"c{i}": np.arange(i, i + 8) for i in range(150)})
    plain = pqext.open(written(table, "thrift", row_group_rows=1))
    file = written(table, "flatbuffers", row_group_rows=1)
    opened = pqext.open(file)
    assert isinstance(opened.footer, FlatFooter)
    assert not opened.footer.lookup.is_whole
    assert opened.read(["c77"]).equals(plain.read(["c77"]), check_metadata=True)
    assert opened.row_groups[3].chunk("c5").metadata == plain.row_groups[3].chunk("c5").metadata
    assert opened.row_groups[3].chunk("c5").bounds() == plain.row_groups[3].chunk("c5").bounds()
    assert not opened.footer.lookup.is_whole
    assert everything(opened.footer.complete) == everything(plain.footer.complete)
    for group in pqext.open(file).row_groups:
        for at in range(150):
            assert group.chunk(at).structure == plain.row_groups[group.index].chunk(at).structure
    assert pqext.open(file).read().equals(plain.read(), check_metadata=True)
    assert isinstance(pqext.open(file).metadata.row_groups, LazyStructs)


def stated(type: int | str, low: bytes | None, high: bytes | None, **more: Any) -> tuple[bytes, bytes]:
    """A footer with the bounds of one column, exact where they can be, and its FlatBuffers form."""
    more = {"is_min_value_exact": True, "is_max_value_exact": True, **more}
    table = pa.table({"x": pa.array([1], {1: pa.int32(), 2: pa.int64(), 5: pa.float64()}.get(type, pa.int64()))})
    if type in (6, "text"):
        table = pa.table({"x": pa.array(["a" if type == "text" else b"a"])})
    if type == 7:
        table = pa.table({"x": pa.array([b"0123456789abcdef"], pa.binary(16))})
    footer = thrift(footer_of(written(table, "thrift")))
    about = footer.row_groups[0].columns[0].meta_data
    assert about is not None
    about.statistics = Statistics(min_value=low, max_value=high, null_count=0, **more)
    serialised = encode(footer)
    return serialised, encode_tables(serialised)


def in_the_tables(payload: bytes) -> Statistics:
    """The bounds that a reader sees who does not know our extension, but packs bounds of byte arrays as we do."""
    root = slowly.View(payload, int.from_bytes(payload[:4], "little"))
    chunk = ((root.children(3) or [])[0].children(0) or [])[0].child(0)
    assert chunk is not None
    about = chunk.child(8)
    type = (root.children(1) or [])[1].number(0, "Int8")
    assert about is not None
    found = {id: value for id, _, value in slowly._statistics(about, type, own=True, by_bytes=True)}
    return Statistics(
        min_value=found.get(6), max_value=found.get(5), null_count=found.get(3), is_max_value_exact=found.get(7),
        is_min_value_exact=found.get(8),
    )


@pytest.mark.spec("extension.flatbuffers.bounds")
@pytest.mark.parametrize("type", [6, 7])
@given(data=st.data())
def test_flatbuffers_bounds_contain_all_values_of_exact_bounds(type: int, data: st.DataObject) -> None:
    some = st.binary(max_size=20) | st.binary(max_size=20).map(lambda tail: b"\xff" * 17 + tail)
    low, high = sorted(data.draw(st.tuples(some, some).map(lambda pair: [b"ab" + pair[0], b"ab" + pair[1]])))
    serialised, payload = stated(type, low, high)
    found = in_the_tables(payload)
    assert found.min_value is not None or type == 7
    assert found.min_value is None or found.min_value <= low
    assert found.max_value is None or found.max_value >= high
    assert found.min_value is None or found.is_min_value_exact == (found.min_value == low)
    assert found.max_value is None or found.is_max_value_exact == (found.max_value == high)
    assert decode_payload(payload) == thrift(serialised)


@pytest.mark.spec("extension.flatbuffers.bounds")
@given(low=st.text(max_size=24), high=st.text(max_size=24))
def test_text_bounds_are_valid_text(low: str, high: str) -> None:
    least, most = sorted([("ab" + low).encode(), ("ab" + high).encode()])
    serialised, payload = stated("text", least, most)
    found = in_the_tables(payload)
    for bound in (found.min_value, found.max_value):
        assert bound is None or bound.decode()
    assert found.min_value is None or found.min_value <= least
    assert found.max_value is None or found.max_value >= most
    assert decode_payload(payload) == thrift(serialised)


@pytest.mark.spec("extension.flatbuffers.bounds")
def test_bounds_of_unknown_exactness_are_not_marked_exact() -> None:
    unknown: Any = {"is_min_value_exact": None, "is_max_value_exact": None}
    for type in (6, "text"):
        serialised, payload = stated(type, b"a", b"b", **unknown)
        found = in_the_tables(payload)
        assert (found.min_value, found.max_value) == (b"a", b"b")
        assert (found.is_min_value_exact, found.is_max_value_exact) == (False, False)
        assert decode_payload(payload) == thrift(serialised)
    serialised, payload = stated(1, b"1234", b"5678", **unknown)  # numbers are never cut
    assert in_the_tables(payload).is_max_value_exact is True
    assert decode_payload(payload) == thrift(serialised)


@pytest.mark.spec("extension.flatbuffers.bounds")
def test_bounds_that_could_be_misread_are_omitted() -> None:
    assert in_the_tables(stated(6, b"", b"b" * 30)[1]).min_value == b""
    none_above = "\U0010ffff".encode() * 8
    assert in_the_tables(stated("text", b"a", none_above)[1]).max_value is None
    inexact = stated(6, b"", b"b", is_min_value_exact=False)[1]
    assert in_the_tables(inexact).min_value is None  # a length of 0 cannot be negative
    assert in_the_tables(stated(6, b"a", b"\xff" * 30)[1]).max_value is None
    assert in_the_tables(stated(7, b"a" * 17, b"b" * 20)[1]) == Statistics(null_count=0)  # of a fixed length
    assert in_the_tables(stated(1, b"123", b"12345678")[1]) == Statistics(null_count=0)
    footer = thrift(stated(6, b"a", b"b")[0])
    footer.column_orders = None
    assert in_the_tables(encode_tables(encode(footer))) == Statistics(null_count=0)
    # A decimal is no row of unsigned bytes: a shorter bound would be none.
    table = pa.table({"x": pa.array([1], pa.decimal256(60, 0))})
    footer = thrift(footer_of(written(table, "thrift")))
    about = footer.row_groups[0].columns[0].meta_data
    assert about is not None
    about.statistics = Statistics(min_value=b"\x80" + bytes(24), max_value=b"\x01" + bytes(24))
    assert in_the_tables(encode_tables(encode(footer))) == Statistics()


def foreign(file: bytes, statistics: slowly.Slots | None = None) -> bytes:
    """A file with one int64 and one string column, whose only footer another writer made."""
    footer = thrift(footer_of(file))
    names = [element.name for element in footer.schema]
    schema: list[slowly.Slots] = [{3: ("string", names[0]), 4: ("Int32", 2)}]
    for name, type in zip(names[1:], (2, 6), strict=True):
        schema.append(
            {0: ("Int8", type), 2: ("Int8", 1), 3: ("string", name), 8: ("Uint8", 1), 9: ("table", {})}
            | ({6: ("Uint8", 1), 7: ("table", {})} if type == 6 else {})
        )
    groups = []
    for group in footer.row_groups:
        columns = []
        for chunk in group.columns:
            about = chunk.meta_data
            assert about is not None
            slots: slowly.Slots = {
                0: ("Int8", int(about.codec)), 2: ("Int64", about.total_uncompressed_size),
                3: ("Int64", about.total_compressed_size), 5: ("Int64", about.data_page_offset),
            }
            if about.dictionary_page_offset is not None:
                slots[7] = ("Int64", about.dictionary_page_offset)
            if statistics is not None and about.type == 6:
                slots[8] = ("table", statistics)
            columns.append({0: ("table", slots)})
        groups.append({0: ("tables", columns), 1: ("Int64", group.total_byte_size), 2: ("Int64", group.num_rows)})
    payload = slowly.build(
        {0: ("Int32", 1), 1: ("tables", schema), 2: ("Int64", footer.num_rows), 3: ("tables", groups)}
    )
    return file[: -8 - len(footer_of(file))] + build_file_end(payload)


@pytest.mark.spec("extension.flatbuffers.foreign")
def test_empty_fields_omitted_by_other_writers_are_read_as_empty() -> None:
    schema: list[slowly.Slots] = [{4: ("Int32", 1)}, {0: ("Int8", 2), 2: ("Int8", 0)}]  # neither has a name
    payload = slowly.build({0: ("Int32", 1), 1: ("tables", schema), 4: ("tables", [{1: ("string", "of no key")}])})
    with pqext.open(b"PAR1" + build_file_end(payload)) as file:
        assert file.read().equals(pa.table({"": pa.array([], pa.int64())}).cast(file.arrow_schema))
        assert [(pair.key, pair.value) for pair in file.metadata.key_value_metadata or ()] == [("", "of no key")]
        assert slowly.read(payload) == slowly.plain(Reader(bytes(file.footer.raw)).struct())


TWO = pa.table({"n": [1, 2, 3, None], "s": ["a", None, "ccc", "d"]})


@pytest.mark.spec("extension.flatbuffers.foreign")
def test_footer_without_pqext_fields_is_read() -> None:
    file = foreign(written(TWO, "thrift", arrow_schema=False))
    with pqext.open(file) as opened:
        assert opened.read().equals(TWO)
        assert everything(opened.metadata) == everything(decode(FileMetaData, encode(opened.metadata))[0])
        payload = slowly.payload_alone(file)
        assert slowly.read(payload) == slowly.plain(Reader(bytes(opened.footer.raw)).struct())
        assert opened.row_groups[0].chunk("n").offset_index is None


@pytest.mark.spec("extension.flatbuffers.foreign")
@pytest.mark.parametrize(
    ("length", "believed"), [(16, True), (-16, True), (0, True), (3, False), (-3, False), (17, False)]
)
def test_bounds_of_other_writers_are_used_if_their_bytes_are_unambiguous(length: int, believed: bool) -> None:
    about: slowly.Slots = {3: ("Uint64", 7), 4: ("Uint64", 9), 5: ("Int8", length), 10: ("bytes", b"pre")}
    with pqext.open(foreign(written(TWO, "thrift"), about)) as opened:
        found = opened.row_groups[0].chunk("s").metadata.statistics
        assert found is not None
        if believed:
            suffix = b"" if length == 0 else (9).to_bytes(8, "big") + (7).to_bytes(8, "big")
            assert found.min_value == b"pre" + suffix
            assert found.is_min_value_exact is (False if length < 0 else None)
        else:
            assert found.min_value is None
            assert found.is_min_value_exact is None


@pytest.mark.spec("extension.flatbuffers.foreign")
@pytest.mark.parametrize(("logical", "believed"), [(12, True), (13, True), (5, False), (14, False)])
def test_bounds_of_other_writers_are_used_if_values_sort_by_bytes(logical: int, believed: bool) -> None:
    about: slowly.Slots = {3: ("Uint64", 7), 4: ("Uint64", 9), 5: ("Int8", -16)}
    member: slowly.Slots = {0: ("Int32", 0), 1: ("Int32", 30)} if logical == 5 else {}
    leaf: slowly.Slots = {
        0: ("Int8", 7), 1: ("Int32", 16), 3: ("string", "x"), 6: ("Uint8", logical), 7: ("table", member),
    }
    column: slowly.Slots = {0: ("table", {5: ("Int64", 4), 8: ("table", about)})}
    payload = slowly.build({
        0: ("Int32", 1), 1: ("tables", [{3: ("string", "r"), 4: ("Int32", 1)}, leaf]),
        3: ("tables", [{0: ("tables", [column]), 2: ("Int64", 1)}]),
    })
    statistics = decode_payload(payload).row_groups[0].columns[0].meta_data.statistics  # type: ignore[union-attr]
    assert statistics is not None
    assert (statistics.min_value is not None) == believed
    thrift = bytes(FlatLookup(payload, DEFAULT_LIMITS, None).load_bytes())
    assert slowly.read(payload) == slowly.plain(Reader(thrift).struct())


@pytest.mark.spec("extension.flatbuffers.ignored")
def test_other_readers_read_every_format_except_pure_flatbuffers(tmp_path: Path) -> None:
    for form in FORMATS:
        path = tmp_path / f"{form}.parquet"
        path.write_bytes(written(SMALL, form))
        with pqext.open(path) as file:
            assert file.read().equals(SMALL)
        if form == "flatbuffers":
            with pytest.raises((OSError, ValueError), match=r"(?i)magic|footer"):
                pq.read_table(path)
            with pytest.raises(duckdb.Error):
                duckdb.sql(f"from '{path}'").fetchall()
            continue
        assert pq.read_table(path).equals(SMALL)
        assert pl.read_parquet(path)["number"].to_list() == [1, 2, 3, 4]
        assert duckdb.sql(f"select sum(number) from '{path}'").fetchall() == [(10,)]
        assert pq.read_metadata(path).row_group(1).column(0).statistics.min == 3


@pytest.mark.spec("extension.flatbuffers.rules")
@pytest.mark.spec("extension.flatbuffers.verified")
def test_thrift_footer_takes_precedence_and_differences_are_reported() -> None:
    file = written(SMALL, "thrift+flatbuffers")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pqext.open(file).read().equals(SMALL)
    assert pqext.verify(file).ok
    assert pqext.inspect(file).footer.agrees is True
    for at in range(1, 17):
        footer = bytearray(footer_of(file))
        footer[-1 - at] ^= 0x81  # the UUID, by which readers know the second footer
        faults = pqext.verify(with_footer(file, bytes(footer))).faults
        assert [(one.rule, "UUID" in one.message) for one in faults] == [("extension.flatbuffers.verified", True)]
    fields = slowly.payload_of(footer_of(file))[1][:-1]
    changed = with_footer(file, fields.replace(b"number", b"nUmber") + footer_of(file)[len(fields) :])
    with pytest.warns(DamagedIndexWarning, match="differ; the Thrift footer is used"):
        assert pqext.open(changed).schema.root.child_names[0] == "nUmber"
    with pytest.warns(DamagedIndexWarning):
        report = pqext.verify(changed)
    assert [fault.rule for fault in report.faults] == ["extension.flatbuffers.verified"] * len(report.faults)
    places = {fault.message.rpartition(" on ")[2] for fault in report.faults}
    assert {"schema[1].name", "row_groups[1].columns[0].meta_data.path_in_schema"} <= places
    with pytest.warns(DamagedIndexWarning):
        told = pqext.inspect(changed).footer
    assert told.agrees is False
    assert told.flatbuffers is not None


@pytest.mark.spec("extension.flatbuffers.rules")
def test_thrift_footer_takes_precedence_if_the_last_chunk_ends_at_the_footer() -> None:
    file = written(SMALL, "thrift+flatbuffers", page_index=False)
    fields = slowly.payload_of(footer_of(file))[1][:-1]
    changed = with_footer(file, fields.replace(b"number", b"nUmber") + footer_of(file)[len(fields) :])
    with pytest.warns(DamagedIndexWarning, match="differ; the Thrift footer is used"):
        table = pqext.open(changed).read()
    assert table.equals(pq.read_table(io.BytesIO(changed)))
    assert table.column_names[0] == "nUmber"


@pytest.mark.spec("extension.flatbuffers.instead")
def test_file_opens_by_its_flatbuffers_footer_if_thrift_is_corrupt(tmp_path: Path) -> None:
    file = written(SMALL, "thrift+flatbuffers")
    start = len(file) - 8 - len(footer_of(file))
    damaged = bytearray(file)
    damaged[start : start + 40] = b"\xff" * 40
    with pytest.warns(DamagedIndexWarning, match="Thrift footer is damaged.*FlatBuffers footer is used"):
        opened = pqext.open(bytes(damaged))
    assert opened.read().equals(SMALL)
    with pytest.warns(DamagedIndexWarning):
        report = pqext.verify(bytes(damaged))
    assert [fault.rule for fault in report.faults] == ["extension.flatbuffers.verified"]
    with pytest.warns(DamagedIndexWarning):
        told = pqext.inspect(bytes(damaged)).footer
    assert (told.agrees, told.form, told.read_by) == (False, "thrift", "flatbuffers")
    with pytest.warns(DamagedIndexWarning):
        assert "which is used because the Thrift footer is damaged" in str(pqext.inspect(bytes(damaged)))
    damaged[-30] ^= 1  # now neither is whole
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedIndexWarning)
        with pytest.raises(CorruptFileError, match="FileMetaData"):
            pqext.open(bytes(damaged))


@pytest.mark.spec("extension.flatbuffers.verified")
@pytest.mark.parametrize("form", ["thrift+flatbuffers", "flatbuffers"])
def test_verify_reports_tables_that_differ_from_the_footer(form: FooterFormat) -> None:
    file = written(pa.table({"s": ["a" * 40, "b" * 40]}), "flatbuffers")
    payload = bytearray(slowly.payload_alone(file))
    view = slowly.View(bytes(payload), int.from_bytes(payload[:4], "little"))
    statistics = ((view.children(3) or [])[0].children(0) or [])[0].child(0)
    assert statistics is not None
    about = statistics.child(8)
    assert about is not None
    payload[about.at(8) : about.at(8) + 8] = bytes(8)  # the highest bytes of the maximum
    if form == "flatbuffers":
        wrong = file[: -16 - len(payload)] + build_file_end(bytes(payload))
    else:
        file = written(pa.table({"s": ["a" * 40, "b" * 40]}), "thrift")
        fields = footer_of(file)
        wrong = with_footer(file, append_extension(fields, build_extension(bytes(payload), fields[:-1])))
    assert [fault.rule for fault in pqext.verify(wrong).faults] == ["extension.flatbuffers.verified"]
    assert pqext.verify(file).ok


@pytest.mark.spec("extension.flatbuffers.instead")
def test_thrift_footer_with_a_corrupt_byte_is_not_read() -> None:
    file = written(SMALL, "thrift+flatbuffers")
    start = len(file) - 8 - len(footer_of(file))
    stride = 1 if os.environ.get("PQEXT_EVERY_BYTE") else 5
    for at in range(start, start + len(slowly.payload_of(footer_of(file))[1]) - 1, stride):
        damaged = bytearray(file)
        damaged[at] ^= 1 << at % 8
        with pytest.warns(DamagedIndexWarning, match="FlatBuffers footer is used"):
            opened = pqext.open(bytes(damaged))
        assert opened.read().equals(SMALL)


@pytest.mark.spec("extension.flatbuffers.instead")
def test_inconsistent_thrift_footer_is_not_read() -> None:
    file = written(SMALL, "thrift+flatbuffers")
    fields = slowly.payload_of(footer_of(file))[1][:-1]
    for edit in (  # of a tool that knows nothing of the other footer, and makes mistakes
        lambda footer: setattr(footer.row_groups[0], "columns", list(footer.row_groups[0].columns)[1:]),
        lambda footer: setattr(footer.row_groups[1], "num_rows", -1),
        lambda footer: setattr(footer.row_groups[1].columns[0].meta_data, "data_page_offset", 1 << 40),
        lambda footer: setattr(footer.row_groups[1].columns[0].meta_data, "path_in_schema", ["text"]),
        lambda footer: setattr(footer, "num_rows", 5),
        lambda footer: setattr(footer.schema[0], "num_children", 50),
    ):
        footer = everything(decode(FileMetaData, fields + b"\0")[0])
        footer.created_by = "a tool that knows nothing"
        edit(footer)
        other = with_footer(file, encode(footer)[:-1] + footer_of(file)[len(fields) :])
        with pytest.warns(DamagedIndexWarning, match="FlatBuffers footer is used"):
            assert pqext.open(other).read().equals(SMALL)


@pytest.mark.spec("extension.flatbuffers.recovered")
@pytest.mark.parametrize("form", ["thrift+flatbuffers", "flatbuffers"])
def test_recovery_finds_the_flatbuffers_footer_of_a_damaged_file(form: FooterFormat, tmp_path: Path) -> None:
    file = bytearray(written(SMALL, form))
    source, dest = tmp_path / "damaged.parquet", tmp_path / "whole.parquet"
    if form == "flatbuffers":
        file += b"something behind"
    else:
        start = len(file) - 8 - len(footer_of(bytes(file)))
        file[start : start + 40] = b"\xff" * 40
        del file[-6:]
    source.write_bytes(bytes(file))
    pqext.recover(source, dest)
    assert pq.read_table(dest).equals(SMALL)


@pytest.mark.spec("extension.flatbuffers.unchanged")
def test_footer_is_converted_between_all_formats(tmp_path: Path) -> None:
    files = {form: written(SMALL, form) for form in FORMATS}
    for old in FORMATS:
        for new in FORMATS:
            path = tmp_path / "t.parquet"
            path.write_bytes(files[old])
            pqext.rewrite_footer(path, lambda metadata: None, footer=new)
            assert path.read_bytes() == files[new]

            def named(metadata: FileMetaData) -> None:
                metadata.created_by = "someone"

            pqext.rewrite_footer(path, named, footer=new)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with pqext.open(path) as file:
                    assert file.metadata.created_by == "someone"
            assert pqext.verify(path).ok


@pytest.mark.parametrize("form", ["thrift+flatbuffers", "flatbuffers"])
def test_append_preserves_the_footer_format(form: FooterFormat, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(written(SMALL, form))
    pqext.write_table(SMALL, path, append=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pqext.read_table(path).equals(pa.concat_tables([SMALL, SMALL]))
    assert pqext.verify(path).ok
    footer = pqext.inspect(path).footer
    assert footer.form == ("flatbuffers" if form == "flatbuffers" else "thrift")
    assert (footer.flatbuffers is not None) == (form == "thrift+flatbuffers")


def test_other_metadata_and_extensions_are_preserved() -> None:
    uuid = FLATBUFFERS.__class__(int=7)
    options: dict[str, Any] = {"extensions": {"number": {uuid: b"mine"}}, "key_value_metadata": {"k": "v\u00e9"}}
    for form in FORMATS:
        with pqext.open(written(SMALL, form, **options)) as file:
            assert {pair.key: pair.value for pair in file.metadata.key_value_metadata or ()}["k"] == "v\u00e9"
            assert any("columns[0]" in place for place in file.extensions)
    with pqext.open(written(SMALL, "flatbuffers", extensions={"file": b"whole"})) as file:
        assert file.extensions["file"] == b"whole"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"footer": "flat"}, 'footer must be "thrift", "thrift.index", "thrift.flatbuffers" or "flatbuffers", not'),
        ({"footer": "thrift+flatbuffers", "extensions": {"file": b""}}, "uses the same extension as extensions"),
        ({"footer": "flatbuffers", "profile": "spark"}, "Spark does not read"),
        ({"footer": "flatbuffers", "encryption": pqext.encryption.FileEncryption(b"0" * 16)}, "cannot be encrypted"),
    ],
)
def test_incompatible_options_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pqext.WriteOptions(**options)


def test_footers_that_flatbuffers_cannot_represent_are_rejected_on_write() -> None:
    footer = thrift(footer_of(written(TWO, "thrift")))
    short = [*footer.row_groups]
    short[0].columns = list(short[0].columns)[:1]
    footer.row_groups = short
    with pytest.raises(ValueError, match="cannot be written as FlatBuffers"):
        encode_tables(encode(footer))
    with pytest.raises(ValueError, match="cannot represent one of its structures"):
        encode_tables(b"\x00")
    with pytest.raises(ValueError, match="encryption"):
        encode_tables(b"\x15\x02\x19\x0c\x16\x02\x19\x0c\x4c\x1c\x00\x00\x00")
