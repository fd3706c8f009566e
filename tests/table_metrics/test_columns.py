"""Summaries of columns, from the footer and from the data, agree with each other on every public file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from table_metrics.tables import written

import pqext
from pqext import table_metrics
from pqext.core.base.errors import ParquetError
from pqext.table_metrics.columns import UNKNOWN, merge_summaries


@pytest.mark.spec("metrics.exact", "metrics.footer")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_facts_from_public_footers_hold_for_their_values(parquet_testing: Path) -> None:
    compared = 0
    for path in sorted((parquet_testing / "data").glob("*.parquet")):
        if path.name == "large_string_map.brotli.parquet":
            continue
        try:
            file = pqext.open(path, geoparquet=False)
        except ParquetError:
            continue
        with file:
            for leaf in file.schema.leaves:
                (told,) = table_metrics.summarize(file, [leaf])
                try:
                    (found,) = table_metrics.summarize(file, [leaf], exact=True)
                except ParquetError:
                    continue
                compared += 1
                assert told.num_values in (None, found.num_values)
                if (path.name, leaf.dotted_path) != ("list_columns.parquet", "utf8_list.list.item"):
                    # Its writer counts no entry of an empty or null list.
                    assert told.null_count in (None, found.null_count)
                assert told.nan_count in (None, found.nan_count)
                if told.minimum is not None and found.minimum is not None:
                    assert told.minimum <= found.minimum  # type: ignore[operator]
                if told.maximum is not None and found.maximum is not None:
                    assert told.maximum >= found.maximum  # type: ignore[operator]
    assert compared > 300


@pytest.mark.parametrize("exact", [False, True])
def test_summary_of_all_columns_is_in_column_order(exact: bool) -> None:
    table = pa.table({"a": [1, None, 3], "s": [{"x": 0.5, "y": "t"}, None, {"x": None, "y": None}]})
    with pqext.open(written(table)) as file:
        found = table_metrics.summarize(file, exact=exact)
    assert found == [
        table_metrics.ColumnSummary(3, 1, 0, 1, 3, True), table_metrics.ColumnSummary(3, 2, 0, 0.5, 0.5, True),
        table_metrics.ColumnSummary(3, 2, 0, b"t", b"t", True),
    ]  # fmt: skip


def part(**known: Any) -> table_metrics.ColumnSummary:
    return table_metrics.ColumnSummary(**{"num_values": 2, "minimum": 1, "maximum": 2, **known})


@pytest.mark.spec("metrics.footer")
def test_merged_summaries_contain_facts_known_to_all() -> None:
    assert merge_summaries([]) == table_metrics.ColumnSummary()
    assert merge_summaries([part(), part(minimum=0, maximum=1)]) == part(num_values=4, minimum=0)
    assert merge_summaries([part(), part(minimum=None)]) == part(num_values=4, minimum=None)
    nulls = table_metrics.ColumnSummary(5, 5, 0, tight=False)
    assert merge_summaries([part(), nulls]) == part(num_values=7, null_count=5)
    assert (nulls.all_null, nulls.is_void, part().is_void, UNKNOWN.all_null) == (True, True, False, False)
    assert merge_summaries([part(), UNKNOWN]) == UNKNOWN
    assert merge_summaries([part(nan_count=None), part()]).nan_count is None
    assert str(merge_summaries([part(minimum=0.0, maximum=-0.0)]).minimum) == "-0.0"
    assert merge_summaries([part(), part(tight=False)]).tight is False
