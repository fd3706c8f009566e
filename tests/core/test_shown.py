"""What objects show of themselves: types that say what columns hold, and no page of bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

import pqext
from pqext import geo, variant


def test_files_metadata_and_schemas_have_readable_reprs(tmp_path: Path) -> None:
    events = variant.parse_json([json.dumps({"a": n, "b": {"c": str(n)}}) for n in range(5)])
    table = pa.table(
        {"id": range(5), "event": events, "whole": events, "at": geo.from_points([1.0] * 5, [2.0] * 5)}
    )
    path = tmp_path / "x.parquet"
    pqext.write_table(table, path, shredding={"event": "infer"}, geometry={"at": {"crs": "EPSG:4326"}})
    with pqext.open(path) as file:
        shown = file._repr_html_()
        for cells in (">id</th><td", ">int64<", ">VARIANT, shredded<", ">VARIANT<", ">GEOMETRY(EPSG:4326)<"):
            assert cells in shown
        assert "metadata: binary" not in shown
        assert len(repr(file.metadata)) < 600
        assert "ARROW:schema" in repr(file.metadata)
        assert "characters)" in repr(file.metadata)
    assert repr(variant.infer_schema(events)) == "<shredding schema STRUCT<a: BIGINT, b: STRUCT<c: STRING>>>"
