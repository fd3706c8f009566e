"""Extension arrays of any storage are taken as the bytes in them are, and written."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import geo

PLAIN = pa.array([*geo.from_points([0.0, 1.0, 2.0], [3.0, 4.0, 5.0]).to_pylist(), None], pa.binary())
LAYOUTS: dict[str, Callable[[pa.Array], Any]] = {
    "binary": lambda array: array,
    "large_binary": lambda array: array.cast(pa.large_binary()),
    "binary_view": lambda array: array.cast(pa.binary_view()),
    "dictionary": lambda array: array.dictionary_encode(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("chunked", [False, True])
def test_extension_arrays_of_any_layout_are_accepted(layout: str, chunked: bool) -> None:
    storage = LAYOUTS[layout](PLAIN)
    marked = pa.table([PLAIN], pa.schema([geo.geometry_field("g", "EPSG:3857")]))
    type = geo.as_extension(marked).schema.field("g").type
    kind = type if layout == "binary" else type.__class__(storage.type, type.__arrow_ext_serialize__().decode())
    array = pa.ExtensionArray.from_storage(kind, storage)
    column = pa.chunked_array([array[:1], array[1:1], array[1:]]) if chunked else array
    for function in (geo.to_wkt, geo.to_iso_wkb, geo.bounds, lambda rows: geo.intersects(rows, (1, 0, 9, 9))):
        assert function(column).to_pylist() == function(PLAIN).to_pylist()
    sink = io.BytesIO()
    pqext.write_table(pa.table({"g": column, "s": pa.StructArray.from_arrays([array], ["g"])}), sink)
    found = pqext.read_table(sink.getvalue())
    assert found["g"].to_pylist() == PLAIN.to_pylist()
    assert found["s"].to_pylist() == [{"g": value} for value in PLAIN.to_pylist()]
    assert [str(node.logical_name) for node in pqext.open(sink.getvalue()).schema.leaves] == ["GEOMETRY"] * 2
