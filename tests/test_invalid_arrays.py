"""Every public function that takes Arrow data rejects invalid arrays before it follows them."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import invalid_arrays
import pyarrow as pa
import pytest

from pqext import geo
from pqext.core.schema.arrow_check import check_array

_MODULES = ("pqext", "pqext.variant", "pqext.geo", "pqext.skipping", "pqext.table_metrics", "pqext.filters")
_SPARK = ("pqext.spark",) if importlib.util.find_spec("pyspark") else ()
_ARRAYS = ("pa.Array", "pa.ChunkedArray", "pa.Table", "pa.RecordBatch", "VariantLike", "GeometryArray")
_OF_ANY = {
    "pqext.write_table", "pqext.write_dataset", "pqext.ParquetWriter", "pqext.filters.Column.isin",
    "pqext.variant.from_arrow",
    "pqext.geo.from_points", "pqext.geo.hilbert_index", "pqext.geo.zorder_index",
}  # fmt: skip
"""Functions that take arrays among other things, so that their annotations do not name them."""


def functions_of_arrays() -> Iterator[str]:
    yield from _OF_ANY
    for module in (*_MODULES, *_SPARK):
        package = importlib.import_module(module)
        for name in package.__all__:
            function = getattr(package, name)
            if inspect.isfunction(function):
                annotations = [str(item.annotation) for item in inspect.signature(function).parameters.values()]
                if any(array in annotation for annotation in annotations for array in _ARRAYS):
                    yield f"{module}.{name}"


def test_every_array_function_is_called_with_invalid_arrays() -> None:
    assert set(functions_of_arrays()) == {name.partition(",")[0] for name in invalid_arrays.CALLS}


def test_invalid_arrays_fail_arrow_validation() -> None:
    for arrays, _ in invalid_arrays.CALLS.values():
        for fault, array in arrays.items():
            try:
                array.validate(full=True)
            except (pa.ArrowInvalid, pa.ArrowIndexError):
                continue
            pytest.fail(f"pyarrow finds nothing wrong: {fault}")


def test_invalid_arrays_are_rejected_by_every_function() -> None:
    run = subprocess.run(
        [sys.executable, str(Path(invalid_arrays.__file__))], capture_output=True, text=True, timeout=300, check=False
    )
    lines: list[dict[str, Any]] = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0, f"status {run.returncode} after {lines[-1:]}: {run.stderr[-2000:]}"
    done = [line for line in lines if "outcome" in line]
    assert len(done) == sum(len(arrays) for arrays, _ in invalid_arrays.CALLS.values())
    expected = re.compile("builtins.ValueError: .* is not a valid Arrow array: ")
    assert not [line for line in done if not expected.match(line["outcome"])]


@pytest.mark.parametrize("kind", [pa.binary_view(), pa.string_view()])
@pytest.mark.parametrize(("length", "number"), [(-20, 0), (1 << 30, 0), (20, 7), (20, -1)])
def test_views_of_nulls_are_checked_since_arrow_reads_them_in_casts(kind: Any, length: int, number: int) -> None:
    entries = struct.pack("<i12s", 1, b"a") + struct.pack("<i4sii", length, b"abcd", number, 0)
    buffers = [pa.py_buffer(b"\1"), pa.py_buffer(entries), pa.py_buffer(b"abcdefghijklmnopqrstuvwxyz")]
    array = pa.Array.from_buffers(kind, 2, buffers)
    call = geo.length if kind == pa.binary_view() else geo.from_wkt
    with pytest.raises(ValueError, match="the view in a null slot has an invalid length"):
        call(array)
    entries = struct.pack("<i12s", 1, b"a") + struct.pack("<i4sii", 20, b"abcd", 0, 3)
    check_array(pa.Array.from_buffers(kind, 2, [buffers[0], pa.py_buffer(entries), buffers[2]]))
