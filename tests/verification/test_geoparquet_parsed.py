"""`verify` parses GeoParquet metadata, which may be megabytes, a set number of times."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import geo
from pqext.geo import geoparquet


def parsed(groups: int, columns: int, monkeypatch: pytest.MonkeyPatch) -> int:
    schema = pa.schema([geo.geometry_field(f"g{number}") for number in range(columns)])
    points = geo.from_points(range(12), range(12))
    sink = io.BytesIO()
    pqext.write_table(pa.table([points] * columns, schema), sink, row_group_rows=12 // groups, geoparquet=True)
    count = 0
    loads = geoparquet.json.loads

    def counted(text: Any) -> Any:
        nonlocal count
        count += 1
        return loads(text)

    with monkeypatch.context() as patch:
        patch.setattr(geoparquet.json, "loads", counted)
        assert pqext.verify(sink.getvalue()).ok
    return count


def test_geoparquet_is_parsed_once_for_all_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < parsed(1, 2, monkeypatch) < 8
    assert parsed(6, 4, monkeypatch) <= parsed(1, 1, monkeypatch)
