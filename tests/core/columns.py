"""Tables and files of one column, ``c``, for the suites of types."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
from core.raw_files import REQUIRED, Column, leaf, write

import pqext
from pqext.core.format.metadata import Type


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


def column(values: list[Any], kind: pa.DataType, **marks: str) -> pa.Table:
    """A table of one column ``c``."""
    metadata = {f"PARQUET:{name}": value for name, value in marks.items()}
    return pa.table([pa.array(values, kind)], schema=pa.schema([pa.field("c", kind, metadata=metadata or None)]))


def read(data: bytes, **options: Any) -> pa.Table:
    with pqext.open(data, pqext.ReadOptions(**options)) as file:
        table = file.read()
    table.validate(full=True)
    return table


def one(kind: Type, values: bytes, count: int, **annotation: Any) -> bytes:
    """A file of one required column ``c``."""
    return write([leaf("c", REQUIRED, kind, **annotation)], [Column(values, count)], count)
