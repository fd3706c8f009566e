"""Drawn damages of drawn files: what is recovered is what was there, and nothing that a twin counts is left out.

The thorough profile draws 500 of them.
"""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recovery.drawn_damages import DrawnFile, damages, files

import pqext
from pqext.recovery.row_groups.search import AMBIGUOUS
from reference import left_over
from reference.effort import share


def _is_part(part: pa.Table, whole: pa.Table) -> bool:
    """Are these rows of the whole, in its order?"""
    rows = iter(whole.to_pylist())
    return all(any(row == other for other in rows) for row in part.to_pylist())


def _source_group(part: pa.Table, drawn: DrawnFile) -> int | None:
    """The original row group that these rows are, or are rows of."""
    equal = [index for index, one in enumerate(drawn.groups) if part.equals(one)]
    parts = [index for index, one in enumerate(drawn.groups) if part.num_rows < len(one) and _is_part(part, one)]
    return next(iter(equal + parts), None)


@settings(max_examples=share(0.5), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_recovered_rows_are_original_and_all_recoverable_rows_are_included(data: st.DataObject) -> None:
    drawn = data.draw(files(), "file")
    kind, pieces = data.draw(damages(drawn), "damage")
    told = data.draw(st.sampled_from((None, drawn.group_rows)), "row_group_rows")
    made = io.BytesIO()
    report = pqext.recover(
        left_over.damaged(drawn.data, pieces), made, schema=drawn.schema, row_group_rows=told
    )
    assert report.written == bool(made.getvalue())
    rows: dict[int | None, int] = {}
    if report.written:
        assert pqext.verify(made.getvalue()).ok
        found, at = pq.read_table(io.BytesIO(made.getvalue())).cast(drawn.schema), 0
        for group in report.row_groups:
            place = _source_group(found.slice(at, group.rows), drawn)
            assert place not in rows or place is None
            rows[place] = rows.get(place, 0) + group.rows
            at += group.rows
        assert at == found.num_rows
    if drawn.has_checksums or kind in ("cut", "front"):
        assert None not in rows
    has_footer = kind != "cut" and pieces[-1][1] == len(drawn.data)
    if any(loss.reason.startswith(AMBIGUOUS) for loss in report.losses):
        return
    if not has_footer and left_over.touches_header(drawn.data, pieces):
        return  # a header that decodes and lies parts the pages wrongly
    for index in left_over.whole_groups(drawn.data, pieces):
        assert rows.get(index) == len(drawn.groups[index]), f"row group {index} is left out"
    if drawn.has_checksums:
        for index, expected in enumerate(left_over.rows_left(drawn.data, pieces)):
            assert expected is None or rows.get(index, 0) == expected, f"rows of row group {index} are left out"
