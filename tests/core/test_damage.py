"""Damage costs only itself when that is asked for: its rows are left out of every column, and it is reported."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.base.errors import CorruptDataWarning, CorruptFileError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.usage import Account, Budget
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.encodings import plain
from pqext.core.format.metadata import FieldRepetitionType, FileMetaData, Type
from pqext.core.io.source import Span
from pqext.core.read.pages import page
from reference.effort import some

ROWS, PAGE_ROWS, GROUP_ROWS = 1000, 100, 500
TABLE = pa.table(
    {
        "n": pa.array(range(ROWS)),
        "s": pa.array([None if i % 7 == 0 else f"value {i}" for i in range(ROWS)]),
        "tags": pa.array([[i] * (i % 4) for i in range(ROWS)]),
        "at": pa.array([{"x": i, "y": [i, None]} if i % 5 else None for i in range(ROWS)]),
    }
)


def written(version: int) -> bytes:
    out = io.BytesIO()
    pqext.write_table(
        TABLE, out, page_version=version, page_rows=PAGE_ROWS, row_group_rows=GROUP_ROWS, dictionary=False,
        compression="uncompressed", encodings="plain",
    )
    return out.getvalue()


def pages(data: bytes, group: int, leaf: str) -> list[tuple[int, int, int]]:
    """(offset of the header, of the body, end) of each page of a chunk."""
    with pqext.open(data) as file:
        node = file.schema.find(leaf)
        assert node is not None
        start, length = file.row_groups[group].chunk(node).byte_range
        found = list(page.raw_pages(Span(file.source, start, length), Limits()))
        ends = [*(raw.offset for raw in found[1:]), start + length]
        return [(raw.offset, end - len(raw.body), end) for raw, end in zip(found, ends, strict=True)]


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def skipped(data: bytes, batch_rows: int | None = None) -> tuple[pa.Table, list[tuple[int, str | None, int, int]]]:
    options = pqext.ReadOptions(on_corrupt="skip")
    with pqext.open(data, options) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", CorruptDataWarning)
        if batch_rows is None:
            table = file.read()
        else:
            table = pa.Table.from_batches(list(file.iter_batches(batch_rows)), file.arrow_schema)
        return table, [(d.row_group, d.column, d.start, d.stop) for d in file.damage]


def without(start: int, stop: int) -> pa.Table:
    return pa.concat_tables([TABLE.slice(0, start), TABLE.slice(stop)])


@pytest.mark.spec("layout.page-lost")
@pytest.mark.parametrize("batch_rows", [None, 33, 100, 1000])
@pytest.mark.parametrize(
    ("version", "leaf"),
    [(1, "n"), (2, "n"), (1, "s"), (2, "s"), (2, "tags.list.element"), (2, "at.y.list.element")],
)
def test_corrupt_page_loses_its_rows_in_every_column(version: int, leaf: str, batch_rows: int | None) -> None:
    data = written(version)
    _, body, _ = pages(data, 1, leaf)[2]
    damaged = flipped(data, body + 3)
    with pytest.raises(CorruptFileError, match="checksum"):
        pqext.read_table(damaged)
    table, damage = skipped(damaged, batch_rows)
    assert damage == [(1, leaf, 200, 300)]
    assert table.equals(without(GROUP_ROWS + 200, GROUP_ROWS + 300))


@pytest.mark.spec("layout.page-lost")
def test_lone_corrupt_page_of_a_chunk_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    pqext.write_table(TABLE.select(["n"]), out, page_rows=ROWS, dictionary=False, compression="uncompressed")
    ((_, body, _),) = pages(out.getvalue(), 0, "n")
    checks: list[page.RawPage] = []
    verify = page.verify_checksum
    monkeypatch.setattr(page, "verify_checksum", lambda raw: checks.append(raw) or verify(raw))
    with pqext.open(flipped(out.getvalue(), body), on_corrupt="skip") as file:
        with pytest.warns(CorruptDataWarning, match="checksum"):
            assert file.read().num_rows == 0
        assert [(item.start, item.stop) for item in file.damage] == [(0, ROWS)]
    assert len(checks) == 1


def test_corrupt_dictionary_loses_its_row_group_and_is_named() -> None:
    made = io.BytesIO()
    table = pa.table({"id": range(300), "name": [f"name {row % 9}" for row in range(300)]})
    pqext.write_table(table, made, row_group_rows=100)
    damaged = bytearray(made.getvalue())
    start = damaged.index(b"name 0")
    damaged[start : start + 6] = bytes(6)
    with pqext.open(bytes(damaged), on_corrupt="skip") as file:
        with pytest.warns(CorruptDataWarning):
            assert file.read() == table.slice(100)
        (damage,) = file.damage
    assert (damage.column, damage.start, damage.stop) == ("name", 0, 100)
    assert "checksum" in damage.error.message


@pytest.mark.spec("layout.page-lost")
def test_corrupt_page_with_unknown_row_count_loses_the_following_rows() -> None:
    data = written(1)
    _, body, _ = pages(data, 0, "tags.list.element")[2]
    table, damage = skipped(flipped(data, body + 3))
    # A page of version 1 may start within a row, so the row before it is not known to be whole either.
    assert damage == [(0, "tags.list.element", 199, 500)]
    assert table.equals(without(199, 500))


@pytest.mark.spec("layout.page-header-lost")
@pytest.mark.parametrize("leaf", ["n", "s"])
def test_corrupt_page_header_loses_the_rest_of_its_chunk(leaf: str) -> None:
    data = written(1)
    header, _, _ = pages(data, 0, leaf)[3]
    table, damage = skipped(flipped(data, header))
    assert damage == [(0, leaf, 300, 500)]
    assert table.equals(without(300, 500))


@pytest.mark.spec("layout.page-lost")
@pytest.mark.parametrize(
    ("values", "lost"), [(200, [(200, 400), (400, 500)]), (301, [(200, 500)]), (8191, [(200, 500)])]
)
def test_corrupt_page_with_more_values_than_remain_loses_the_remaining_rows(
    values: int, lost: list[tuple[int, int]]
) -> None:
    def change(metadata: FileMetaData) -> None:
        about = metadata.row_groups[0].columns[0].meta_data
        assert about is not None
        about.num_values = 10_000

    data = bytearray(written(1))
    (header, body, _), (following, _, _) = pages(data, 0, "n")[2:4]
    at = data.index(b"\x15\xc8\x01", header, body)  # 100 values
    data[at + 1 : at + 3] = bytes([2 * values & 0x7F | 0x80, 2 * values >> 7])
    damaged = io.BytesIO()
    rewrite_footer(io.BytesIO(flipped(bytes(data), following)), change, damaged)
    table, damage = skipped(damaged.getvalue())
    assert damage == [(0, "n", start, stop) for start, stop in lost]
    assert table.equals(without(200, 500))


@pytest.mark.spec("layout.page-lost")
def test_page_with_an_encoding_unlisted_by_its_chunk_is_corrupt() -> None:
    data = written(1)
    header, body, _ = pages(data, 0, "n")[1]
    claim = bytes([0x15, 0x00, 0x15, 0x06, 0x15, 0x06])  # encoding PLAIN, and RLE for both kinds of levels
    at = data.index(claim, header, body)
    damaged = data[: at + 1] + bytes([2 * 30]) + data[at + 2 :]
    with pytest.raises(CorruptFileError, match="encoding 30, which its column chunk does not list"):
        pqext.read_table(damaged)
    table, damage = skipped(damaged)
    assert damage == [(0, "n", 100, 200)]
    assert table.equals(without(100, 200))


@pytest.mark.spec("layout.chunk-lost")
def test_corrupt_chunk_metadata_loses_its_row_group() -> None:
    from pqext.core.footer.thrift_footer import serialise_footer

    data = written(1)
    with pqext.open(data) as file:
        metadata = file.metadata
        end = file.footer.offset
        metadata.row_groups[1].columns[2].meta_data.data_page_offset = 1 << 40
    damaged = data[:end] + serialise_footer(metadata)
    with pytest.raises(CorruptFileError):
        pqext.read_table(damaged)
    table, damage = skipped(damaged)
    assert damage == [(1, None, 0, 500)]
    assert table.equals(TABLE.slice(0, 500))


@pytest.mark.parametrize(
    ("rows", "message"), [(0, "no rows are skipped"), (1, "row 0 is skipped"), (2, "rows 0 to 1 are skipped")]
)
def test_warning_of_a_lost_row_group_counts_its_rows(rows: int, message: str) -> None:
    def change(metadata: FileMetaData) -> None:
        about = metadata.row_groups[0].columns[0].meta_data
        assert about is not None
        about.data_page_offset = 1 << 40
        metadata.num_rows = metadata.row_groups[0].num_rows = rows

    intact, damaged = io.BytesIO(), io.BytesIO()
    pqext.write_table(TABLE.slice(0, rows or 1), intact)
    rewrite_footer(intact, change, damaged)
    with pytest.warns(CorruptDataWarning, match=f"^{message}"):
        assert pqext.read_table(damaged.getvalue(), on_corrupt="skip").num_rows == 0


def test_corruption_is_warned_of_and_listed_once() -> None:
    data = written(1)
    _, body, _ = pages(data, 0, "n")[0]
    damaged = flipped(data, body)
    with pytest.warns(CorruptDataWarning, match="rows 0 to 99 are skipped.*checksum"):
        table = pqext.read_table(damaged, on_corrupt="skip")
    assert table.equals(TABLE.slice(100))
    with pqext.open(damaged, pqext.ReadOptions(on_corrupt="skip")) as file:
        for _ in range(2):
            with pytest.warns(CorruptDataWarning):
                file.read(["n"])
        assert [(d.start, d.stop) for d in file.damage] == [(0, 100)]
        assert "checksum" in str(file.damage[0].error)


def test_corruption_of_unselected_columns_loses_no_rows() -> None:
    data = written(1)
    _, body, _ = pages(data, 0, "s")[1]
    table, damage = skipped(flipped(data, body))
    assert len(table) == ROWS - PAGE_ROWS
    assert len(damage) == 1
    with pqext.open(flipped(data, body), pqext.ReadOptions(on_corrupt="skip")) as file:
        assert file.read(["n", "tags"]).equals(TABLE.select(["n", "tags"]))
        assert file.damage == []


def with_flipped_bytes(data: bytes, step: int) -> Iterator[bytes]:
    for at in some(range(4, len(data) - 8, step), 3):
        yield flipped(data, at)


def test_rows_returned_from_a_corrupt_file_are_rows_of_the_table() -> None:
    data = written(2)
    numbers = np.array(TABLE["n"])
    read = 0
    with pqext.open(data) as file:
        end = file.footer.offset
    for damaged in with_flipped_bytes(data[:end], 97):
        table, _ = skipped(damaged + data[end:])
        assert table.equals(TABLE.filter(pa.array(np.isin(numbers, np.array(table["n"])))))
        read += len(table)
    assert read > 0


def test_unknown_option_value_is_rejected() -> None:
    with pytest.raises(ValueError, match='"raise" or "skip"'):
        pqext.ReadOptions(on_corrupt="ignore")  # type: ignore[arg-type]


def test_inconsistent_value_counts_are_reported_with_both_totals() -> None:
    def change(metadata: FileMetaData) -> None:
        about = metadata.row_groups[0].columns[0].meta_data
        assert about is not None
        about.num_values = 10_000

    damaged = io.BytesIO()
    rewrite_footer(io.BytesIO(written(1)), change, damaged)
    totals = "declare 500 values in total, but the metadata of the column chunk declares 10000"
    with pytest.warns(UserWarning, match=totals):
        pqext.open(damaged.getvalue(), pqext.ReadOptions(on_corrupt="skip")).read()


@pytest.mark.parametrize("version", [1, 2])
def test_data_page_of_a_corrupt_type_shifts_no_rows(version: int) -> None:
    table = pa.table({"id": list(range(60)), "l": [[i] * (i % 3) for i in range(60)]})
    out = io.BytesIO()
    pqext.write_table(table, out, page_version=version, page_rows=20, page_index=True, dictionary=False)
    damaged = bytearray(out.getvalue())
    index = pqext.open(out.getvalue()).row_groups[0].chunk(1).offset_index
    assert index is not None
    damaged[index.page_locations[0].offset + 1] = 14  # the type, as zigzag: 7
    with pytest.warns(UserWarning, match="a page with a data page header declares page type 7"):
        read = pqext.open(bytes(damaged), pqext.ReadOptions(on_corrupt="skip")).read().to_pylist()
    assert all(row in table.to_pylist() for row in read)
    with pytest.raises(pqext.CorruptFileError, match="a page with a data page header declares page type 7"):
        pqext.open(bytes(damaged)).read()


@pytest.mark.parametrize(
    "column",
    [
        pa.array(range(1000), pa.int64()), pa.array([f"x{row % 7}" for row in range(1000)]),
        pa.array([row % 3 == 0 for row in range(1000)]),
    ],
    ids=["int64", "text", "flags"],
)
@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0"}, {"data_page_size": 500, "write_batch_size": 9}])
@pytest.mark.spec("encoding.plain.whole")
def test_values_that_do_not_fill_their_page_are_corrupt(column: pa.Array, options: dict[str, Any]) -> None:
    made, changed = io.BytesIO(), io.BytesIO()
    table = pa.table({"a": column})
    pq.write_table(table, made, use_dictionary=False, compression="none", write_statistics=False, **options)

    def required(metadata: FileMetaData) -> None:
        metadata.schema[1].repetition_type = FieldRepetitionType.REQUIRED

    assert pqext.verify(made.getvalue()).ok
    rewrite_footer(io.BytesIO(made.getvalue()), required, changed)
    for source, expected in ((made, 1000), (changed, 0)):
        with pqext.open(source.getvalue(), on_corrupt="skip") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore", CorruptDataWarning)
            assert file.read().num_rows == expected
    rule = "page.v2.levels" if "data_page_version" in options else "encoding.plain.whole"
    assert rule in {one.rule for one in pqext.verify(changed.getvalue()).faults}


@pytest.mark.spec("encoding.plain.whole")
def test_boolean_pages_may_be_zero_padded() -> None:
    def excess_bytes(page: bytes, count: int) -> int:
        account = Account(Budget(DEFAULT_LIMITS, len(page)))
        return plain.count_trailing_bytes(np.frombuffer(page, np.uint8), count, Type.BOOLEAN, None, account)

    assert excess_bytes(b"\x05\x02" + bytes(6), 10) == 0
    assert excess_bytes(b"\x05\x02", 10) == 0
    assert excess_bytes(b"\x05\x02" + bytes(5), 10) == 5
    assert excess_bytes(b"\x05\x02" + bytes(5) + b"\x01", 10) == 6
    assert excess_bytes(b"\x05\x02" + bytes(14), 10) == 14


@pytest.mark.spec("layout.damage-limit")
def test_corruption_beyond_the_limit_is_an_error_that_names_the_limit() -> None:
    data, pieces = written(1), [(group, place) for group in (0, 1) for place in (0, 2, 4)]
    for group, place in pieces:
        _, _, end = pages(data, group, "n")[place]
        data = flipped(data, end - 1)
    exactly, fewer = Limits(damaged_pieces=len(pieces)), Limits(damaged_pieces=len(pieces) - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CorruptDataWarning)
        with pqext.open(data, on_corrupt="skip", limits=exactly) as file:
            assert file.read().num_rows == ROWS - len(pieces) * PAGE_ROWS
            assert file.read().num_rows == ROWS - len(pieces) * PAGE_ROWS  # the same pieces count once
        limit = pytest.raises(pqext.LimitError, match=r"Limits\.damaged_pieces")
        with pqext.open(data, on_corrupt="skip", limits=fewer) as file, limit:
            file.read()
