"""Names and strings of a file reach no terminal as they are: each text for people has them escaped."""

from __future__ import annotations

import io
import unicodedata
import warnings
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import col, variant
from pqext.core.base.text import BYTE_UNITS, escape_text, parse_bytes
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import FileMetaData
from pqext.encryption import FileDecryption, FileEncryption
from pqext.verification import verify
from pqext.verification.report import Fault

EVIL = "a\x1b]0;x\x07\u202e\x9b31m"
TABLE = pa.table({EVIL: [EVIL + str(i) for i in range(40)], "g": [{EVIL: i} for i in range(40)]})


def file_of(table: pa.Table = TABLE, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, row_group_rows=20, page_rows=5, bloom_filters=True, **options)
    return out.getvalue()


def false_file() -> bytes:
    def change(metadata: FileMetaData) -> None:
        for chunk in metadata.row_groups[0].columns:
            about = chunk.meta_data
            assert about is not None
            assert about.statistics is not None
            about.statistics.max_value = about.statistics.min_value

    out = io.BytesIO()
    rewrite_footer(io.BytesIO(file_of()), change, out)
    return out.getvalue()


def damaged() -> bytes:
    data = bytearray(file_of())
    with pqext.open(bytes(data)) as file:
        start, length = file.row_groups[0].chunk(0).byte_range
    data[start : start + length] = b"\xff" * length
    return bytes(data)


def caught(function: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as error:  # noqa: PT011 - whatever it is, its text is looked at
        function()
    return f"{error.value}"


def warned() -> str:
    data = bytearray(file_of())
    with pqext.open(bytes(data)) as file:
        chunk = file.row_groups[0].chunk(0).structure
        start, length = chunk.column_index_offset or 0, chunk.column_index_length or 0
    data[start : start + length] = b"\xff" * length
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        pqext.read_table(bytes(data), filter=col([EVIL]) == EVIL + "3")
    assert seen
    return "\n".join(str(one.message) for one in seen)


TEXTS: dict[str, Callable[[], str]] = {
    "schema": lambda: str(pqext.open(file_of()).schema),
    "repr of a schema's node": lambda: repr(pqext.open(file_of()).schema.leaves[0]),
    "repr of a row group": lambda: repr(pqext.open(file_of()).row_groups[0].chunk(0).metadata),
    "repr of a page index": lambda: repr(dict(pqext.open(file_of()).page_index[0])),
    "repr of bounds": lambda: repr(pqext.open(file_of()).row_groups[0].chunk(0).bounds()),
    "explain": lambda: pqext.scan(file_of(), [EVIL], filter=col([EVIL]) == EVIL + "x").explain(),
    "explain, skipped": lambda: pqext.scan(file_of(), filter=col([EVIL]) > "b").explain(),
    "explain, in a group": lambda: pqext.scan(file_of(), filter=col(["g", EVIL]) == 77).explain(),
    "expression": lambda: str(col([EVIL]) == EVIL) + repr(col([EVIL]).isin([EVIL])),
    "inspect": lambda: str(pqext.inspect(file_of(key_value_metadata={EVIL: EVIL}))),
    "verify": lambda: str(verify(false_file())),
    "verify's faults": lambda: "\n".join(map(str, verify(false_file()).faults)),
    "fault": lambda: str(Fault("rule", EVIL, column=EVIL)),
    "error of a damaged page": lambda: caught(lambda: pqext.read_table(damaged())),
    "error of a missing column": lambda: caught(lambda: pqext.read_table(file_of(), ["b" + EVIL])),
    "error of a filter": lambda: caught(lambda: pqext.read_table(file_of(), filter=col([EVIL]) == 5)),
    "error of a filter's column": lambda: caught(lambda: pqext.read_table(file_of(), filter=col([EVIL + "x"]) == 5)),
    "error of a path": lambda: caught(lambda: pqext.open(f"/no/{EVIL}.parquet").read()),
    "warning": warned,
    "shredding": lambda: variant.shredding_schema(pa.struct([pa.field(EVIL, pa.int64())])).explain(),
    "encryption": lambda: repr(FileEncryption(b"0" * 16, column_keys={EVIL: b"0" * 16})),
    "decryption": lambda: repr(FileDecryption(b"0" * 16, column_keys={EVIL: b"0" * 16})),
    "error of a key": lambda: caught(lambda: pqext.read_table(
        file_of(encryption=FileEncryption(b"0" * 16, column_keys={EVIL: b"0" * 16}, plaintext_footer=True))
    )),
    "error of pyarrow's file": lambda: caught(
        lambda: pqext.read_table(_written_by_pyarrow(), filter=col([EVIL]) < 1.5)
    ),
}  # fmt: skip


def _written_by_pyarrow() -> bytes:
    out = io.BytesIO()
    pq.write_table(TABLE, out)
    return out.getvalue()


@pytest.mark.parametrize("name", TEXTS)
def test_displayed_text_contains_no_control_characters(name: str) -> None:
    shown = TEXTS[name]()
    assert escape_text(shown.replace("\n", "")) == shown.replace("\n", "")
    assert {unicodedata.category(one) for one in shown if one != "\n"} & {"Cc", "Cf"} == set()


def test_text_is_escaped_only_once() -> None:
    assert escape_text(escape_text(EVIL)) == escape_text(EVIL) == r"a\x1b]0;x\x07\u202e\x9b31m"
    assert escape_text("Zürich – 東京 ✓") == "Zürich – 東京 ✓"


@pytest.mark.parametrize("unit", sorted(set(BYTE_UNITS) - {"b"}))
def test_units_of_bytes_are_those_of_duckdb(unit: str) -> None:
    shown = []
    with duckdb.connect() as connection:
        for size in (f"1234{unit}", f"{parse_bytes(f'1234{unit}')}B"):
            connection.execute(f"set max_temp_directory_size = '{size}'")
            shown += connection.sql("select current_setting('max_temp_directory_size')").fetchall()
    assert shown[0] == shown[1]
    assert parse_bytes(f"1.25 {unit.upper()}") * 4 == parse_bytes(f"5{unit}")
