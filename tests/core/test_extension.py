"""Extensions ride along in any structure, and nobody who does not know them is disturbed."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import CorruptFileError
from pqext.core.base.limits import Limits
from pqext.core.footer.reading import read_footer
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.extension import structure
from pqext.core.format.extension.structure import (
    MOST_READ,
    append_extension,
    extensions,
    set_extension,
    walk_extensions,
)
from pqext.core.format.metadata import ColumnMetaData, FileMetaData, KeyValue, LogicalType, StringType
from pqext.core.format.thrift import decode, encode, uleb
from pqext.core.io.sources.locations import open_source
from pqext.core.options.layout import FooterFormat
from reference import compact, thrift_package

PAIR = KeyValue(key="k", value="v")
FORMS: list[Literal["spec", "thrift"]] = ["spec", "thrift"]


def appended_by_the_text(thrift: bytes, extension: bytes) -> bytes:
    """The procedure that the format's text prints."""
    assert thrift[-1] == 0
    id, size = compact.write_varint(32767), compact.write_varint(len(extension))
    return thrift[:-1] + b"\x08" + id + size + extension + b"\x00"


@pytest.mark.spec("extension.layout", "extension.append")
@given(st.binary(max_size=300))
def test_extension_bytes_match_the_specification(payload: bytes) -> None:
    serialised = encode(PAIR)
    extended = append_extension(serialised, payload)
    assert extended == appended_by_the_text(serialised, payload)
    assert extended.startswith(serialised[:-1] + b"\x08\xff\xff\x01")


@pytest.mark.spec("extension.header-forms")
@pytest.mark.parametrize("form", FORMS)
def test_both_header_formats_are_read(form: Literal["spec", "thrift"]) -> None:
    extended = append_extension(encode(PAIR), b"payload", header=form)
    pair, end = decode(KeyValue, extended)
    assert end == len(extended)
    assert (pair.key, pair.value) == ("k", "v")
    assert extensions(pair) == b"payload"


@pytest.mark.spec("extension.header-forms")
def test_long_form_header_is_the_one_that_thrift_writes() -> None:
    id, wire, value = 32767, compact.BINARY, b"payload"
    written = compact.write_struct([(1, compact.BINARY, b"k"), (id, wire, value)])
    assert append_extension(encode(KeyValue(key="k")), value, header="thrift") == written


@pytest.mark.spec("extension.ignored")
@pytest.mark.parametrize("form", FORMS)
def test_readers_without_extension_support_read_the_same_fields(form: Literal["spec", "thrift"]) -> None:
    extended = append_extension(encode(PAIR), b"payload" * 100, header=form)
    assert thrift_package.same(PAIR, thrift_package.read("KeyValue", extended))


@pytest.mark.spec("extension.ignored")
@pytest.mark.parametrize("form", FORMS)
def test_pyarrow_reads_a_file_with_footer_extensions(form: Literal["spec", "thrift"]) -> None:
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    out = io.BytesIO()
    pq.write_table(table, out)
    footer = read_footer(open_source(out.getvalue()))
    chunk = footer.metadata.row_groups[0].columns[1]
    assert chunk.meta_data is not None
    chunk.meta_data, _ = decode(ColumnMetaData, append_extension(encode(chunk.meta_data), b"column", header=form))
    extended = append_extension(encode(footer.metadata), b"file", header=form)
    file = out.getvalue()[: footer.offset] + serialise_footer(extended)
    assert pq.read_table(io.BytesIO(file)) == table
    found = walk_extensions(read_footer(open_source(file)).metadata)
    assert list(found) == [("", b"file"), ("row_groups[0].columns[1].meta_data", b"column")]


@pytest.mark.spec("extension.kept")
@given(st.binary(max_size=300), st.sampled_from(FORMS))
def test_extension_round_trips_unchanged(payload: bytes, form: Literal["spec", "thrift"]) -> None:
    extended = append_extension(encode(PAIR), payload, header=form)
    assert encode(decode(KeyValue, extended)[0]) == extended


@pytest.mark.spec("extension.any-structure")
def test_any_structure_accepts_an_extension() -> None:
    for struct in (LogicalType(STRING=StringType()), StringType(), PAIR):
        extended = append_extension(encode(struct), b"x")
        again, _ = decode(type(struct), extended)
        assert list(walk_extensions(again)) == [("", b"x")]
    assert list(walk_extensions(again, "key_value_metadata[0]")) == [("key_value_metadata[0]", b"x")]


@pytest.mark.spec("extension.single")
@pytest.mark.parametrize("first", FORMS)
@pytest.mark.parametrize("second", FORMS)
def test_second_extension_is_rejected_unless_replace_is_set(
    first: Literal["spec", "thrift"], second: Literal["spec", "thrift"]
) -> None:
    extended = append_extension(encode(PAIR), b"first", header=first)
    with pytest.raises(ValueError, match="already has an extension"):
        append_extension(extended, b"second", header=second)
    assert append_extension(extended, b"second", header=second, replace=True) == append_extension(
        encode(PAIR), b"second", header=second
    )
    assert append_extension(encode(PAIR), b"x", replace=True) == append_extension(encode(PAIR), b"x")


@pytest.mark.spec("extension.single")
def test_structure_with_an_extension_rejects_another_unless_replaced() -> None:
    pair, _ = decode(KeyValue, append_extension(encode(PAIR), b"first"))
    with pytest.raises(ValueError, match="already has an extension"):
        set_extension(pair, b"second")
    assert list(walk_extensions(pair)) == [("", b"first")]
    set_extension(pair, b"second", replace=True)
    assert list(walk_extensions(pair)) == [("", b"second")]


@pytest.mark.spec("extension.single")
def test_last_of_two_extensions_is_used_and_both_are_replaced() -> None:
    extended = compact.write_struct(
        [(1, compact.BINARY, b"k"), (32767, compact.BINARY, b"one"), (-16384, compact.BINARY, b"two")]
    )
    pair, _ = decode(KeyValue, extended)
    assert extensions(pair) == b"two"
    assert encode(pair) == extended
    assert append_extension(extended, b"new", replace=True) == append_extension(encode(KeyValue(key="k")), b"new")


@pytest.mark.spec("extension.append")
def test_fields_after_a_replaced_extension_preserve_their_ids() -> None:
    extended = compact.write_struct(
        [
            (-16384, compact.BINARY, b"first"),
            (-16380, compact.I32, 5),
            (-16379, compact.TRUE, True),
            (1, compact.BINARY, b"k"),
        ]
    )
    replaced = append_extension(extended, b"new", replace=True)
    assert compact.Reader(replaced).struct() == [
        (-16380, compact.I32, 5),
        (-16379, compact.TRUE, True),
        (1, compact.BINARY, b"k"),
        (-16384, compact.BINARY, b"new"),
    ]


@pytest.mark.spec("extension.layout")
@pytest.mark.parametrize("wire", [(compact.I64, 5), (compact.STRUCT, []), (compact.LIST, ("list", compact.I32, [1]))])
def test_reserved_field_of_another_type_is_not_an_extension(wire: tuple[int, object]) -> None:
    data = compact.write_struct([(1, compact.BINARY, b"k"), (32767, *wire)])
    pair, _ = decode(KeyValue, data)
    assert extensions(pair) is None
    assert encode(pair) == data


@pytest.mark.spec("extension.ignored")
def test_arrow_reads_the_longest_footer_extension_that_is_written() -> None:
    made = io.BytesIO()
    pqext.write_table(pa.table({"id": [1, 2]}), made)
    with pqext.open(made.getvalue()) as file:
        metadata, data = file.footer.metadata, made.getvalue()[: file.footer.offset]
    footer = append_extension(encode(metadata), bytes(MOST_READ))
    assert pq.read_metadata(pa.BufferReader(data + serialise_footer(footer))).num_rows == 2
    footer = append_extension(encode(metadata), bytes(MOST_READ + 1))
    with pytest.raises(OSError, match="Exceeded size limit"):
        pq.read_metadata(pa.BufferReader(data + serialise_footer(footer)))


@pytest.mark.spec("extension.ignored")
@pytest.mark.parametrize("form", ["thrift+index", "thrift+flatbuffers"])
def test_second_footer_unreadable_by_arrow_is_omitted_with_a_warning(
    form: FooterFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structure, "MOST_READ", 1000)
    made = io.BytesIO()
    table = pa.table({f"c{number}": [number] for number in range(100)})
    with pytest.warns(UserWarning, match=r"the file is written without a .*: its size of [\d,]+ bytes exceeds"):
        pqext.write_table(table, made, footer=form)
    with pqext.open(made.getvalue()) as file:
        assert extensions(file.footer.metadata) is None
        assert file.read() == table


@pytest.mark.spec("extension.ignored")
@pytest.mark.parametrize("form", ["thrift+index", "thrift+flatbuffers"])
def test_file_is_complete_if_the_warning_is_raised_as_an_error(
    form: FooterFormat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(structure, "MOST_READ", 1000)
    table, path = pa.table({f"c{number}": [number] for number in range(100)}), tmp_path / "wide.parquet"
    with pytest.raises(UserWarning, match="the file is written without"):
        pqext.write_table(table, path, footer=form)
    assert pqext.read_table(path) == table
    with pytest.raises(UserWarning, match="the file is written without"):
        pqext.write_table(table, path, footer=form, append=True)
    assert pqext.read_table(path) == pa.concat_tables([table, table])
    with pytest.raises(UserWarning, match="the file is written without"):
        pqext.rewrite_footer(path, lambda metadata: None, footer=form)
    assert pqext.read_table(path) == pa.concat_tables([table, table])
    assert [one.name for one in tmp_path.iterdir()] == ["wide.parquet"]


@pytest.mark.spec("extension.append")
@pytest.mark.parametrize("serialised", [b"", b"\x18\x01k", b"\x18\x05k\x00"])
def test_only_a_complete_structure_is_extended(serialised: bytes) -> None:
    with pytest.raises(CorruptFileError):
        append_extension(serialised, b"x")


@pytest.mark.spec("extension.append")
def test_structure_of_any_size_is_extended() -> None:
    elements = Limits().metadata_elements
    serialised = b"\x19\xf1" + uleb(elements) + bytes(elements) + b"\x00"
    assert len(append_extension(serialised, b"x")) == len(serialised) + 6


@pytest.mark.spec("extension.append")
def test_bytes_after_the_structure_are_rejected() -> None:
    with pytest.raises(ValueError, match="3 bytes follow"):
        append_extension(encode(PAIR) + b"PAR", b"x")


def test_structure_without_an_extension_returns_none() -> None:
    assert extensions(PAIR) is None
    empty = FileMetaData(version=1, schema=[], num_rows=0, row_groups=[], key_value_metadata=[PAIR])
    assert list(walk_extensions(empty)) == []
