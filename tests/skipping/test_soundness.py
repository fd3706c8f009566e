"""No object that a store refuses holds a row that matches: drawn tables, indexes and filters."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from dataset.strategies import expressions, tables
from hypothesis import given
from hypothesis import strategies as st
from skipping.drawn import by_pqext, by_pyarrow, evidence_of, indexes, refused

from reference import evaluate as twin


@pytest.mark.spec("skipping.sound")
@given(st.data(), st.sampled_from([by_pyarrow, by_pqext]), st.integers(1, 4), st.booleans())
def test_excluded_objects_contain_no_matching_row(
    data: st.DataObject, writer: Any, rows: int, reads: bool
) -> None:
    batch = data.draw(tables(min_rows=1))
    chosen = data.draw(indexes(batch))
    filter = data.draw(expressions(batch))
    parts = [batch.slice(start, rows) for start in range(0, batch.num_rows, rows)]
    evidence = evidence_of(chosen, [writer(pa.Table.from_batches([part])) for part in parts], reads)
    for at in refused(filter, evidence, len(parts)):
        assert True not in twin.truths(filter, parts[at])
