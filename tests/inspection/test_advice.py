"""Advice is true: files written anew by it are smaller, and where they would not be, none is given."""

from __future__ import annotations

import random
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.encryption import FileDecryption, FileEncryption
from pqext.inspection import layout

DICE = random.Random(1)
DIFFERENT = pa.table({"a": [f"some words and {i}" for i in range(9000)]})
NUMBERS = pa.table({"a": [DICE.random() for _ in range(300_000)]})
NEARLY = pa.table({"a": [i * 9 // 10 for i in range(9000)], "b": [None if i % 9 else str(i) * 9 for i in range(9000)]})
LONG = pa.table({"a": [str(DICE.random()) * 10 for _ in range(3000)] * 10})
FOURFOLD = pa.table({"a": [DICE.random() for _ in range(3000)] * 4})


def by_pyarrow(table: pa.Table, **options: object) -> bytes:
    sink = BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def by_pqext(table: pa.Table, **options: object) -> bytes:
    sink = BytesIO()
    pqext.write_table(table, sink, **options)  # type: ignore[arg-type]
    return sink.getvalue()


def advice(data: bytes, about: str) -> str:
    """The one sentence with ``about`` in it, or none."""
    found = [sentence for sentence in layout(data).savings if about in sentence]
    assert len(found) <= 1
    return "".join(found)


@pytest.mark.parametrize("table", [DIFFERENT, NUMBERS, NEARLY, LONG, FOURFOLD], ids=range(5))
@pytest.mark.parametrize("index", [False, True])
def test_dictionaries_that_enlarge_the_file_are_named(table: pa.Table, index: bool) -> None:
    data = by_pyarrow(table, write_page_index=index)
    told = advice(data, "Dictionaries")
    assert bool(told) is (len(by_pyarrow(table, write_page_index=index, use_dictionary=False)) < len(data))


def test_row_groups_are_named_if_their_metadata_is_large() -> None:
    table = pa.table({"a": range(10_000)})
    data = by_pqext(table, row_group_rows=100, dictionary=False)
    told = advice(data, "100 row groups")
    assert len(by_pqext(table, dictionary=False)) < len(data)
    assert told.endswith("larger row groups need less.")
    assert advice(by_pqext(NUMBERS, row_group_rows=100_000), "row groups") == ""


def test_small_row_groups_are_named_with_the_cost_of_larger_dictionaries() -> None:
    clusters = [DICE.choices([DICE.getrandbits(60) for _ in range(20)], k=2000) for _ in range(40)]
    table = pa.table({"a": [value for cluster in clusters for value in cluster]})
    data = by_pyarrow(table, row_group_size=2000)
    assert len(by_pyarrow(table)) > len(data)
    assert advice(data, "40 row groups").endswith("so compare the sizes.")


def test_encryption_overhead_is_not_attributed_to_compression() -> None:
    table = pa.table({f"c{i}": [i] * 1000 for i in range(100)})
    data = by_pqext(table, encryption=FileEncryption(footer_key=b"0" * 16))
    said = layout(data, decryption=FileDecryption(footer_key=b"0" * 16)).savings
    assert not any("Compression adds" in sentence for sentence in said)


def test_pages_compression_and_arrow_schema_have_the_stated_cost() -> None:
    table = pa.table({"a": range(50_000)})
    assert advice(by_pqext(table, page_rows=50), "have less than 1 KiB")
    assert len(by_pqext(table)) < len(by_pqext(table, page_rows=50))
    swollen = pa.table({f"c{i}": [DICE.random() for _ in range(50)] for i in range(300)})
    data = by_pyarrow(swollen, use_dictionary=False)
    assert advice(data, "Compression adds")
    assert len(by_pyarrow(swollen, use_dictionary=False, compression=None)) < len(data)
    wide = pa.table({f"c{i}": [1] for i in range(100)})
    assert advice(by_pqext(wide), "arrow_schema=False")
    assert len(by_pqext(wide, arrow_schema=False)) < len(by_pqext(wide))
    assert advice(by_pqext(wide, arrow_schema=False), "arrow_schema=False") == ""


def test_checkpoints_are_reported() -> None:
    table = pa.table({"a": range(10_000)})
    data = by_pqext(table, row_group_rows=1000, checkpoint=1)
    assert advice(data, "earlier footers, of checkpoints").endswith("a rewritten file has none.")
    assert len(by_pqext(table, row_group_rows=1000)) < len(data)
