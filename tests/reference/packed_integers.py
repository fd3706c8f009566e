"""A table with integers of every type in enough rows that the writer packs their differences by default."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

ROWS = 13_000


def table() -> pa.Table:
    """Return a table whose values need few bits between neighbours and many by themselves."""
    steps = np.random.default_rng(5).integers(0, 1000, ROWS)
    rising = np.cumsum(steps)
    columns = {
        "i8": pa.array((steps % 250 - 125).astype(np.int8)),
        "i16": pa.array((steps * 60 - 30_000).astype(np.int16)),
        "i32": pa.array((rising - 2**31).astype(np.int32)),
        "i64": pa.array(rising * 2**30 - 2**62),
        "u8": pa.array((steps % 256).astype(np.uint8)),
        "u16": pa.array((steps * 60).astype(np.uint16)),
        "u32": pa.array((rising + 2**31).astype(np.uint32)),
        "u64": pa.array(rising.astype(np.uint64) + np.uint64(2**63)),
        "date": pa.array((steps * 40).astype(np.int32)).cast(pa.date32()),
        "instant": pa.array(rising * 10**6).cast(pa.timestamp("us", "UTC")),
        "local": pa.array(rising * 10**3).cast(pa.timestamp("ms")),
        "small": pa.array(steps).cast(pa.decimal128(19, 0)).cast(pa.decimal128(9, 2)),
        "large": pa.array(rising).cast(pa.decimal128(19, 0)).cast(pa.decimal128(18, 3)),
        "nulls": pa.array(rising, mask=steps % 3 == 0),
        "list": pa.ListArray.from_arrays(pa.array(np.arange(ROWS + 1), pa.int32()), pa.array(rising)),
    }
    physical = {"small": "INT32", "large": "INT64"}
    fields = [
        pa.field(name, column.type, metadata={"PARQUET:physical_type": physical[name]} if name in physical else None)
        for name, column in columns.items()
    ]
    return pa.table(list(columns.values()), schema=pa.schema(fields))
