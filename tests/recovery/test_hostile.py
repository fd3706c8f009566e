"""Hostile bytes: recovery ends soon, and writes no file that verification refuses."""

from __future__ import annotations

import io
import random
import time

import pyarrow as pa
import pytest
from core.bombs import files as bomb_files
from recovery import damaged_files

import pqext
from pqext.core.base.usage import Budget
from pqext.core.format.thrift import uleb
from pqext.core.read.row_group_reader import RowGroupReader
from pqext.recovery.row_groups import assignment
from pqext.recovery.schemas import mismatches, physical_types

SECONDS = 40
"""Of the processor, so that other work beside the tests does not count."""
FEWER = 16
"""How much less effort most tests allow."""
EMPTY = bytes.fromhex("1500150015002c15001500150615060000")
"""The header of a page without values."""
EIGHT_BYTES = bytes.fromhex("1500151015102c15021500150615060000") + bytes(8)
"""A page of one value."""
LISTS = bytes.fromhex("1500152815282c15021500150615060000" "020000000200" "020000000202") + bytes(8)
"""A page of one value below any lists."""
INNER = "STRUCT<y: STRUCT<z: DECIMAL(9,2)>>"
ARRAYS = "ARRAY<DECIMAL(9,2)>"
MAPS = "MAP<BIGINT, MAP<BIGINT, DECIMAL(18,2)>>"
DICTIONARY = bytes.fromhex("1504150215004c1502150000" + "00")
"""The header of a dictionary whose value is missing."""
HEADER = bytes.fromhex("1500150415042c15021500150615061c0000")


ROOT = b"\x15\x02\x19\x1c\x48\x01r\x15\x00\x00"
"""What a footer without columns begins with."""


def repeated_trailers(groups: int, trailers: int) -> bytes:
    """One footer of many empty row groups, and many lengths behind it that lead to it."""
    count = bytes([groups & 0x7F | 0x80, groups >> 7 & 0x7F | 0x80, groups >> 14])
    data = b"PAR1" + ROOT + b"\x16\x00\x19\xfc" + count + b"\x19\x0c\x16\x00\x16\x00\x00" * groups + b"\x00"
    for _ in range(trailers):
        data += (len(data) - 4).to_bytes(4, "little") + b"PAR1"
    return data + b"??"


def bombs(pages: int, size: int) -> bytes:
    """Pages of zeros in few bytes, each of a quarter as many entries."""
    body = pa.compress(bytes(size), codec="zstd", asbytes=True)
    head = b"\x15\x00\x15" + uleb(2 * size) + b"\x15" + uleb(2 * len(body)) + b"\x2c\x15" + uleb(size // 2)
    return b"PAR1" + (head + bytes.fromhex("1500150615060000") + body) * pages


@pytest.fixture
def reduced_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sixteenth of the steps that searches may take."""
    steps = [(module, "_STEPS") for module in (physical_types, assignment, mismatches)]
    for module, name in (*steps, (assignment, "_CHECK_STEPS")):
        monkeypatch.setattr(module, name, getattr(module, name) // FEWER)


@pytest.mark.usefixtures("reduced_effort")
def test_search_that_takes_too_long_is_reported() -> None:
    report = pqext.recover(b"PAR1" + EIGHT_BYTES * 1200, io.BytesIO(), schema="a BIGINT NOT NULL, b BIGINT NOT NULL")
    assert "search for row groups takes too long; pass row_group_rows to shorten it" in str(report)


def recovered(data: bytes, seconds: float = SECONDS, **options: object) -> bytes:
    """What ``recover`` writes of ``data``, soon."""
    made = io.BytesIO()
    begun = time.process_time()
    report = pqext.recover(data, made, **options)  # type: ignore[arg-type]
    assert time.process_time() - begun < seconds
    assert report.written == bool(made.getvalue())
    if report.written:
        assert pqext.verify(made.getvalue()).ok
    return made.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PAR1",
        b"PAR1" * 3,
        bytes(100_000),
        b"PAR1" * 50_000,
        HEADER * 1_500,
        b"PAR1" + HEADER * 1_500,
        b"PAR1" + EMPTY * 700,
        b"PAR1" + (EMPTY * 200 + b"?") * 4,
        b"PAR1" + b"\x15\x02\x19\x2c\x48" * 25_000,
        b"\x15\x00\x15\xff\xff\xff\xff\x0f" * 15_000,
        b"PAR1" + b"\x19\x1c" * 50_000,
        random.Random(1).randbytes(250_000),
        repeated_trailers(20_000, 30),
        b"PAR1" + (ROOT + b"\x16\x00\x19\x0c\x00") * 15_000,
        b"PAR1" + EIGHT_BYTES * 1_500,
    ],
    ids=range(16),
)
@pytest.mark.spec("recovery.bounded")
@pytest.mark.usefixtures("reduced_effort")
def test_bytes_resembling_pages_and_footers_take_bounded_time(data: bytes) -> None:
    recovered(data, SECONDS / 4)
    recovered(data, SECONDS / 4, schema="id BIGINT, name STRING, price DOUBLE")
    recovered(data, SECONDS / 4, schema=pa.schema([("list", pa.list_(pa.int32()))]), drop_columns=True)


def same_type_ddl(count: int, kind: str) -> str:
    """DDL of many columns of one type."""
    return ", ".join(f"c{number} {kind}" for number in range(count))


@pytest.mark.parametrize(
    ("data", "schema"),
    [
        (b"PAR1" + DICTIONARY * 25_000, "c " + "STRUCT<a: " * 16 + "DECIMAL(9,2)" + ">" * 16),
        (b"PAR1" + EIGHT_BYTES * 1_500, same_type_ddl(50, "BIGINT NOT NULL")),
        (bombs(10, 1_000_000), "d DECIMAL(9,2)"),
        (b"PAR1" + EIGHT_BYTES, f"x STRUCT<{', '.join(f'c{number}: {INNER}' for number in range(1000))}>"),
        (b"PAR1" + LISTS * 1_500, same_type_ddl(200, "MAP<BIGINT, DECIMAL(18,2)>")),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [
                (b"PAR1" + LISTS * 1_500, "c " + "ARRAY<" * 20 + "DECIMAL(18,2)" + ">" * 20),
                (b"PAR1" + EIGHT_BYTES * 1_200, same_type_ddl(1000, "DECIMAL(9,2)")),
                (bombs(15, 8_000_000), same_type_ddl(50, "DECIMAL(9,2)")),
                (bombs(50, 1_000_000), same_type_ddl(50, "MAP<BIGINT, DECIMAL(18,2)>")),
            ]
        ),
    ],
    ids=[
        "dictionaries", "columns", "bombs", "leaves", "maps", "nested arrays", "no pages", "large bombs", "list bombs"
    ],
)
@pytest.mark.spec("recovery.bounded")
@pytest.mark.usefixtures("reduced_effort")
def test_pages_matching_many_columns_and_types_take_bounded_time(data: bytes, schema: str) -> None:
    recovered(data, SECONDS / 4, schema=schema)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "schema"),
    [
        (b"PAR1" + EIGHT_BYTES * 20_000, same_type_ddl(50, "BIGINT NOT NULL")),
        (b"PAR1" + LISTS * 30_000, same_type_ddl(1000, MAPS)),
        (b"PAR1" + LISTS * 27_000, same_type_ddl(3000, ARRAYS)),
    ],
    ids=["columns", "nested maps", "arrays"],
)
@pytest.mark.spec("recovery.bounded")
def test_total_recovery_effort_takes_bounded_time(data: bytes, schema: str) -> None:
    recovered(data, schema=schema)


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(20, 160, 20))])
def test_combined_damage_produces_no_file_that_verify_rejects(first: int) -> None:
    written = 0
    for seed in range(first, first + 20):
        draw = random.Random(1000 + seed)
        drawn = damaged_files.file(draw)
        data = bytearray(drawn.data)
        for _ in range(draw.randrange(1, 20)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        written += bool(recovered(bytes(data), schema=drawn.schema, drop_columns=draw.random() < 0.5))
    assert written > 5


def test_assessment_does_not_expand_the_dictionary_of_a_long_text(monkeypatch: pytest.MonkeyPatch) -> None:
    expanded: list[int] = []
    copy_views = RowGroupReader._copy_views
    monkeypatch.setattr(
        RowGroupReader, "_copy_views", lambda self, column: expanded.append(1) or copy_views(self, column)
    )
    data = bomb_files()["a long text looked up"]
    target = io.BytesIO()
    assert pqext.recover(data, target, null_columns=True, limits=pqext.Limits.untrusted()).rows == 1 << 20
    assert not expanded
    assert pqext.open(io.BytesIO(target.getvalue())).num_rows == 1 << 20


def test_calls_of_an_assessment_share_a_limit_of_decoded_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    restarts: list[Budget] = []
    restart = Budget.restart

    def record(budget: Budget) -> Budget:
        restarts.append(budget)
        return restart(budget)

    monkeypatch.setattr(Budget, "restart", record)
    out = io.BytesIO()
    pqext.write_table(pa.table({"a": range(1000), "b": range(1000)}), out, row_group_rows=200)
    data = bytearray(out.getvalue())
    with pqext.open(bytes(data)) as file:
        places = [file.row_groups[group].chunk(file.schema.leaves[0]).byte_range for group in range(5)]
    for start, length in places[1:3]:
        data[start + length // 2] ^= 255
    pqext.recover(bytes(data), io.BytesIO())
    assert len(restarts) > 5
    assert len({id(budget) for budget in restarts}) == 1
