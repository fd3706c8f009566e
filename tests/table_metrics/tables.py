"""Tables and files that tests of metrics share."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import pqext


def written(table: pa.Table, **options: Any) -> bytes:
    """The file that pqext writes of a table."""
    sink = io.BytesIO()
    pqext.write_table(table, sink, **options)
    return sink.getvalue()


def written_by_pyarrow(table: pa.Table, **options: Any) -> bytes:
    """The file that pyarrow writes of a table."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def numbered(schema: pa.Schema) -> pa.Schema:
    """The schema with field ids 1, 2, ... on its top-level columns."""
    return pa.schema([one.with_metadata({"PARQUET:field_id": str(id)}) for id, one in enumerate(schema, 1)])
