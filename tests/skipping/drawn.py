"""Drawn tables in objects, with drawn indexes on them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.write.writer import write_table
from pqext.skipping.indexes.index import Index
from pqext.skipping.indexes.statistics import MinMax, NullCount, RowCount
from pqext.skipping.indexes.values import BloomFilter, Prefix, ValueList
from pqext.skipping.maintenance.construction import storage_type_options
from pqext.skipping.maintenance.object_cells import Indexer, resolve_indexes
from pqext.skipping.store.clauses import Evidence, exclusions

MOST = {"i8", "i32", "i64"}


def by_pyarrow(table: pa.Table) -> bytes:
    """The table as pyarrow writes it."""
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=2, store_schema=False)
    return sink.getvalue()


def by_pqext(table: pa.Table) -> bytes:
    """The table as pqext writes it, which counts NaN."""
    sink = io.BytesIO()
    write_table(table, sink, row_group_rows=2)
    return sink.getvalue()


def indexes_of(name: str) -> list[Index]:
    """The indexes that suit a column of the drawn tables."""
    kind = name.removeprefix("s.")
    found: list[Index] = [MinMax(name), ValueList(name, 2), NullCount(name), RowCount(name)]
    if kind == "text":
        found += [Prefix(name, 1), Prefix(name, 2, max_values=2), BloomFilter(name, ndv=8)]
    return found + ([BloomFilter(name, ndv=8)] if kind in MOST else [])


@st.composite
def indexes(draw: st.DrawFn, batch: pa.RecordBatch) -> list[Index]:
    """Some indexes on columns of a batch."""
    names = [name for name in batch.schema.names if name != "s"]
    names += [f"s.{field.name}" for field in batch.schema.field("s").type]
    return draw(st.lists(st.sampled_from([one for name in names for one in indexes_of(name)]), min_size=1, max_size=4))


def evidence_of(chosen: Sequence[Index], objects: Sequence[bytes], data: bool = True) -> list[Evidence]:
    """What indexes say of objects."""
    options = storage_type_options(None)
    indexer = Indexer(resolve_indexes(chosen, objects[0], options, DEFAULT_LIMITS), options, read_rows=data)
    rows = [indexer.cells(one)[0] for one in objects]
    numbers = np.arange(len(objects))
    return [
        Evidence(one.index, pa.concat_arrays([row[at] for row in rows]), numbers)
        for at, one in enumerate(indexer.indexes)
    ]


def refused(filter: Any, evidence: Sequence[Evidence], count: int) -> set[int]:
    """The objects that a filter does not look at."""
    return {int(at) for one in exclusions(filter, evidence, count) for at in np.flatnonzero(one.objects)}
