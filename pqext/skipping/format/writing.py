"""A part of a store, written."""
from __future__ import annotations

from typing import Any

import pyarrow as pa

from pqext.core.writer import ParquetWriter
from pqext.skipping.format import spark_schema
from pqext.skipping.format.metadata import StoreMetadata, to_spark


def write_part(dest: Any, table: pa.Table, metadata: StoreMetadata, encryption: Any = None) -> None:
    import os
    if isinstance(dest, str):
        os.makedirs(os.path.dirname(dest), exist_ok=True)
    pairs = {spark_schema.KEY: spark_schema.write(to_spark(metadata, table.schema))}
    with ParquetWriter(dest, table.schema, key_value_metadata=pairs, arrow_schema=False) as writer:
        writer.write_table(table)
