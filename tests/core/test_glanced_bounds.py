"""Bounds and sizes of column chunks, straight from a footer's bytes, are those that its structures give."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.base.errors import CorruptFileError, ParquetError
from pqext.core.files.summary_files import Summary
from pqext.core.read.row_group import RowGroup


def outcome(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except ParquetError as error:
        return type(error)


def open_row_groups(path: Any) -> Iterator[tuple[RowGroup, Any]]:
    """The row groups of a file, each with its leaves, of a file that is opened for each of these."""
    with pqext.open(path) as file:
        places = [(at, leaf) for at in range(len(file.metadata.row_groups)) for leaf in range(len(file.schema.leaves))]
    for at, leaf in places:
        with pqext.open(path) as file:
            yield file.row_groups[at], file.schema.leaves[leaf]


def check(path: Any) -> int:
    """Compare both ways for all column chunks; how many were glanced at."""
    count = 0
    for group, leaf in open_row_groups(path):
        bounds = outcome(lambda: group.bounds(leaf))  # noqa: B023
        size = outcome(lambda: group.stored_bytes([leaf]))  # noqa: B023
        count += not group.known
        rows = outcome(lambda: group.num_rows)  # noqa: B023
        with pqext.open(path) as file:
            other = file.row_groups[group.index]
            node = file.schema.leaves[leaf.leaf_start]
            known = outcome(lambda: other.chunk(node).bounds())  # noqa: B023
            # Of a damaged structure the bytes that are looked at may be whole.
            assert bounds == known or known is CorruptFileError
            known = outcome(lambda: other.metadata.num_rows)  # noqa: B023
            assert rows == known or known is CorruptFileError
            known = outcome(lambda: other.chunk(node).byte_range[1])  # noqa: B023
            assert size == known or known is CorruptFileError
    return count


TYPES: dict[str, list[Any]] = {
    "int32": [1, None, -7], "int64": [5, 1 << 40, None], "uint8": [3, 250, 0], "float": [1.5, None, -0.0],
    "double": [1.0, float("nan"), 2.0], "bool": [True, None, False], "string": ["b", None, "ä"],
    "binary": [b"", b"\xff", None], "timestamp[ns]": [1, None, 3], "timestamp[ms]": [1, None, 3],
    "date32": [0, 5, None], "null": [None, None, None],
}  # fmt: skip


def table() -> pa.Table:
    columns = {name: pa.array(values, pa.type_for_alias(name)) for name, values in TYPES.items()}
    columns["list"] = pa.array([[1, 2], None, []])
    columns["struct"] = pa.array([{"a": 1, "b.c": "x"}, None, {"a": None, "b.c": "y"}])
    return pa.table(columns)


@pytest.mark.spec("querying.row-groups")
@pytest.mark.parametrize("by", ["pqext", "pqext with other orders", "pyarrow", "pyarrow without statistics"])
def test_bounds_from_bytes_match_structures(tmp_path: Path, by: str) -> None:
    path = tmp_path / "x.parquet"
    if by == "pqext":
        pqext.write_table(table(), path, row_group_rows=2)
    elif by == "pqext with other orders":
        columns = ["double", "int64", "string"]  # of which the first has an order that the others cannot have
        pqext.write_table(table().select(columns), path, row_group_rows=2, float_order="ieee754")
        assert check(path) == 6
        return
    else:
        pq.write_table(table(), path, row_group_size=2, write_statistics=by == "pyarrow")
    leaves = len(table().flatten().schema)
    assert check(path) >= 2 * leaves


@pytest.mark.spec("querying.row-groups")
def test_bounds_from_bytes_of_a_summary_match_structures(tmp_path: Path) -> None:
    for number in range(3):
        pqext.write_table(table(), tmp_path / f"{number}.parquet", row_group_rows=2)
    pqext.write_summary(sorted(tmp_path.glob("*.parquet")), tmp_path)
    summary = Summary(str(tmp_path / "_metadata"), pqext.Limits())
    source = summary.unchanged_source("1.parquet", str(tmp_path / "1.parquet"))
    assert source is not None
    with pqext.open(source) as file, pqext.open(tmp_path / "1.parquet") as alone:
        for group, other in zip(file.row_groups, alone.row_groups, strict=True):
            for leaf, node in zip(file.schema.leaves, alone.schema.leaves, strict=True):
                assert group.bounds(leaf) == other.chunk(node).bounds()
                assert group.stored_bytes([leaf]) == other.chunk(node).byte_range[1]
            assert not group.known
            assert group.num_rows == other.num_rows


@pytest.mark.spec("querying.row-groups")
def test_bounds_of_corrupt_footers_match_structures(tmp_path: Path) -> None:
    pqext.write_table(table().select(["int64", "string", "list"]), tmp_path / "x.parquet", row_group_rows=2)
    data = (tmp_path / "x.parquet").read_bytes()
    with pqext.open(data) as file:
        start, length = file.footer.offset, file.footer.length
    chance, looked = random.Random(7), 0
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(chance.choice((1, 1, 2))):
            damaged[start + chance.randrange(length)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        try:
            looked += check(bytes(damaged))
        except ParquetError:
            continue  # it cannot be opened
    assert looked > 200


@pytest.mark.parametrize("name", ["alltypes_plain", "nested_lists.snappy", "datapage_v2.snappy"])
def test_bounds_of_public_files_match_structures(parquet_testing: Path, name: str) -> None:
    check(parquet_testing / "data" / f"{name}.parquet")
