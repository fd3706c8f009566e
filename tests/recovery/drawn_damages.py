"""Strategies: files of every shape that recovery must find again, and damages of them as pieces of the original."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

import pqext
from reference.left_over import Piece, chunks

CODECS = ("uncompressed", "snappy", "zstd", "gzip", "lz4_raw", "brotli")
_POINT = pa.struct([("x", pa.float64()), ("label", pa.string())])
_TYPES: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "int64": (pa.int64(), lambda draw: draw.getrandbits(40)),
    "text": (pa.string(), lambda draw: f"name {draw.randrange(30)}"),
    "flag": (pa.bool_(), lambda draw: draw.random() < 0.5),
    "date": (pa.date32(), lambda draw: date(2000, 1, 1) + timedelta(draw.randrange(9000))),
    "decimal": (pa.decimal128(25, 2), lambda draw: Decimal(draw.getrandbits(50)) / 100),
    "fixed": (pa.binary(7), lambda draw: draw.randbytes(7)),
    "float": (pa.float32(), lambda draw: float(draw.randrange(1 << 20))),
    "list": (pa.list_(pa.int32()), lambda draw: [draw.randrange(9) for _ in range(draw.randrange(4))]),
    "point": (_POINT, lambda draw: {"x": draw.random(), "label": str(draw.random())}),
    "points": (
        pa.list_(_POINT),
        lambda draw: [{"x": draw.random(), "label": None} for _ in range(draw.randrange(3))],
    ),
}


@dataclass(repr=False)
class DrawnFile:
    """A file with its footer, its rows by row group, and where the footer begins."""

    data: bytes
    schema: pa.Schema
    group_rows: int
    groups: list[pa.Table]
    footer: int
    has_checksums: bool
    told: str

    def __repr__(self) -> str:
        return self.told


@st.composite
def files(draw: Callable[..., Any]) -> DrawnFile:
    """A file of pqext or pyarrow: types, nesting, nulls, codec, version of pages, dictionaries, row groups, pages."""
    names = draw(st.lists(st.sampled_from(sorted(_TYPES)), min_size=2, max_size=6, unique=True))
    group_rows, count = draw(st.integers(20, 300)), draw(st.integers(1, 4))
    rows = group_rows * count - draw(st.integers(0, 19))
    values, nulls = random.Random(draw(st.integers(0, 1 << 32))), draw(st.sampled_from((0.0, 0.2)))
    whole = pa.table({
        name: pa.array(
            [None if values.random() < nulls else _TYPES[name][1](values) for _ in range(rows)], _TYPES[name][0]
        )
        for name in names
    })
    writer, codec = draw(st.sampled_from(("pqext", "pyarrow"))), draw(st.sampled_from(CODECS))
    version, checksums = draw(st.sampled_from((1, 2))), draw(st.booleans())
    dictionary, pages = draw(st.booleans()), draw(st.sampled_from((32, 64, 20_000)))
    made = io.BytesIO()
    if writer == "pqext":
        pqext.write_table(
            whole, made, row_group_rows=group_rows, compression=codec, page_version=version, checksums=checksums,
            page_rows=pages,
        )
    else:
        pq.write_table(
            whole, made, row_group_size=group_rows, compression={"uncompressed": "none", "lz4_raw": "lz4"}.get(
                codec, codec
            ),
            data_page_version=f"{version}.0", use_dictionary=dictionary, write_page_checksum=checksums,
            data_page_size=pages * 8, write_batch_size=32,
        )
    data = made.getvalue()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    groups = [whole.slice(at, group_rows) for at in range(0, rows, group_rows)]
    told = f"<{writer} {codec} v{version} checksums={checksums} {names} {rows} rows by {group_rows}, pages {pages}>"
    return DrawnFile(data, whole.schema, group_rows, groups, footer, checksums, told)


@st.composite
def damages(draw: Callable[..., Any], drawn: DrawnFile) -> tuple[str, list[Piece]]:
    """(what was done, what is left in its order)."""
    kind = draw(st.sampled_from(("cut", "front", "hole", "overwritten", "swap")))
    end = len(drawn.data) if kind == "cut" or draw(st.booleans()) else drawn.footer
    if kind == "cut":
        return kind, [(0, draw(st.integers(4, end)))]
    if kind == "front":
        # A chunk that comes to lie at byte 0 has no offset that readers take for one.
        begins = {start for extents in chunks(drawn.data) for start, _ in extents}
        return kind, [(draw(st.integers(1, drawn.footer).filter(lambda at: at not in begins)), end)]
    first = draw(st.integers(4, drawn.footer - 2))
    if kind == "hole":
        return kind, [(0, first), (draw(st.integers(first + 1, min(first + 600, drawn.footer))), end)]
    if kind == "overwritten":
        stop = draw(st.integers(first + 1, min(first + 200, drawn.footer)))
        return kind, [(0, first), bytes(stop - first), (stop, end)]
    length = draw(st.integers(1, max(1, (drawn.footer - first) // 2)))
    second = draw(st.integers(first + length, drawn.footer - length))
    last = second + length
    return kind, [(0, first), (second, last), (first + length, second), (first, first + length), (last, end)]
