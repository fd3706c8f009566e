"""Drawn files, drawn damages, and what an independent look at both says is left: pyarrow's footer of the whole file."""

from __future__ import annotations

import io
import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import pqext
from pqext.recovery import Recovery
from pqext.recovery.row_groups.search import AMBIGUOUS

CODECS = ("none", "snappy", "zstd", "gzip", "lz4_raw")


@dataclass
class DrawnFile:
    """A file, the tables of its row groups, and where the bytes of each begin and end."""

    data: bytes
    schema: pa.Schema
    groups: list[pa.Table]
    extents: list[tuple[int, int]]
    footer: int
    has_checksums: bool
    told: str


def table(draw: random.Random, rows: int) -> pa.Table:
    """Some columns of several types, nested ones among them."""
    columns: dict[str, Any] = {
        "id": pa.array([draw.getrandbits(40) for _ in range(rows)], pa.int64()),
        "name": pa.array([None if draw.random() < 0.1 else f"name {draw.randrange(30)}" for _ in range(rows)]),
        "list": pa.array(
            [[draw.randrange(9) for _ in range(draw.randrange(4))] for _ in range(rows)], pa.list_(pa.int32())
        ),
        "flag": pa.array([draw.random() < 0.5 for _ in range(rows)]),
        "point": pa.array(
            [{"x": draw.random(), "label": str(draw.random())} for _ in range(rows)],
            pa.struct([("x", pa.float64()), ("label", pa.string())]),
        ),
        "text": pa.array([str(draw.getrandbits(60)) for _ in range(rows)]),
    }
    names = draw.sample(list(columns), draw.randrange(2, 7))
    return pa.table({name: columns[name] for name in names})


def file(draw: random.Random) -> DrawnFile:
    """A file of one of two writers, with any codec, version of pages and size of row groups."""
    group_rows = draw.randrange(20, 400)
    whole = table(draw, group_rows * draw.randrange(1, 5) - draw.randrange(19))
    codec, version, dictionary = draw.choice(CODECS), draw.choice((1, 2)), draw.random() < 0.6
    made = io.BytesIO()
    checksums = draw.random() < 0.7
    if draw.random() < 0.5:
        pqext.write_table(
            whole,
            made,
            row_group_rows=group_rows,
            compression=codec if codec != "none" else "uncompressed",
            page_version=version,
            checksums=checksums,
            page_rows=draw.choice((50, 20_000)),
        )
        writer = "pqext"
    else:
        pq.write_table(
            whole,
            made,
            row_group_size=group_rows,
            compression="lz4" if codec == "lz4_raw" else codec,
            data_page_version=f"{version}.0",
            use_dictionary=dictionary,
            write_page_checksum=checksums,
            write_page_index=draw.random() < 0.5,
            data_page_size=draw.choice((300, 1 << 20)),
            write_batch_size=32,
        )
        writer = "pyarrow"
    data = made.getvalue()
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    extents = []
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        chunks = [group.column(at) for at in range(group.num_columns)]
        starts = [
            min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset) for chunk in chunks
        ]
        ends = [start + chunk.total_compressed_size for start, chunk in zip(starts, chunks, strict=True)]
        extents.append((min(starts), max(ends)))
    groups = [whole.slice(at, group_rows) for at in range(0, whole.num_rows, group_rows)]
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    told = f"{writer} {codec} v{version} checksums={checksums} {whole.schema.names} {group_rows}"
    return DrawnFile(data, whole.schema, groups, extents, footer, checksums, told)


def damage(draw: random.Random, drawn: DrawnFile) -> tuple[str, bytes, list[int], bool]:
    """(what was done, the bytes, the row groups of which no byte was touched, is the footer left)."""
    data, size = bytearray(drawn.data), len(drawn.data)
    kind = draw.choice(("cut", "front", "hole", "zeros", "flip", "swap", "no footer", "no footer, hole"))
    touched: list[tuple[int, int]] = []
    has_footer = True
    if kind.startswith("no footer"):
        data, has_footer, size = data[: drawn.footer], False, drawn.footer
    if kind == "cut":
        at = draw.randrange(4, size)
        data, touched, has_footer = data[:at], [(at, size)], False
    elif kind == "front":
        # A chunk at byte 0 has no offset that readers take for one.
        at = draw.choice([at for at in range(1, drawn.footer) if at not in {start for start, _ in drawn.extents}])
        data, touched = data[at:], [(0, at)]
    elif kind.endswith("hole"):
        at = draw.randrange(4, drawn.footer)
        stop = min(at + draw.randrange(1, 600), drawn.footer)
        del data[at:stop]
        touched = [(at, stop)]
    elif kind in ("zeros", "flip"):
        at = draw.randrange(4, drawn.footer)
        stop = min(at + draw.randrange(1, 300), drawn.footer) if kind == "zeros" else at + 1
        data[at:stop] = bytes(stop - at) if kind == "zeros" else bytes([data[at] ^ (1 << draw.randrange(8))])
        touched = [(at, stop)]
    elif kind == "swap":
        length = draw.randrange(1, max(2, (drawn.footer - 4) // 2))
        first = draw.randrange(4, drawn.footer - 2 * length + 1)
        second = draw.randrange(first + length, drawn.footer - length + 1)
        one, other = bytes(data[first : first + length]), bytes(data[second : second + length])
        data[first : first + length], data[second : second + length] = other, one
        touched = [(first, first + length), (second, second + length)]
    left = [
        index
        for index, (start, stop) in enumerate(drawn.extents)
        if not any(start < end and begin < stop for begin, end in touched)
    ]
    return f"{kind} {touched}", bytes(data), left, has_footer


def places(found: pa.Table, report: Recovery, drawn: DrawnFile) -> list[int | None]:
    """For each row group that was written, the original one that it equals, or holds only rows of, in their order."""
    at, known = 0, list[int | None]()
    for group in report.row_groups:
        part = found.slice(at, group.rows)
        at += group.rows
        known.append(next((i for i, one in enumerate(drawn.groups) if part.equals(one) or is_part(part, one)), None))
    return known


def is_part(part: pa.Table, whole: pa.Table) -> bool:
    """Are these rows of the whole, in its order, with one gap or more between them?"""
    if part.num_rows >= whole.num_rows:
        return False
    rows = iter(whole.to_pylist())
    return all(any(row == other for other in rows) for row in part.to_pylist())


def is_ambiguous(report: Recovery) -> bool:
    """Was anything given up because it could be read in several ways?"""
    return any(loss.reason.startswith(AMBIGUOUS) for loss in report.losses)
