"""Fixed limits: the largest size is accepted and the next one is rejected.

The sizes are written out, not imported: those of formats are in their specifications, the others in docstrings.
"""

from __future__ import annotations

import dataclasses
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import pytest

import pqext
from pqext import geo, variant
from pqext.core.base import buffers
from pqext.core.base.limits import Limits
from pqext.core.encryption import modules
from pqext.core.encryption.keytools import material
from pqext.core.encryption.keytools.material import KeyMaterialStore
from pqext.core.encryption.modules import AesKey
from pqext.core.footer.flatbuffers.reading import check_limit
from pqext.core.format.extension.framing import frame
from pqext.core.format.extension.structure import append_extension, append_readable
from pqext.core.io.sources.pending_files import check_manifest_size
from pqext.core.schema.arrow_schema import arrays
from pqext.geo import crs
from pqext.geo.geoparquet import parse_metadata
from pqext.variant.access import nested

ALBERS = {key: value for key, value in pyproj.CRS("EPSG:5070").to_json_dict().items() if key != "id"}
GEOPARQUET = '{"columns": {}}'
ONE = variant.parse_json(pa.array(["[1]"]))
LINE = geo.from_wkt(["LINESTRING (0 0, 1 0)"])


class Sized(bytes):
    """Bytes that have any length, of which only one is held."""

    length = 1

    def __len__(self) -> int:
        return self.length


def of_size(size: int) -> Sized:
    payload = Sized(b"\0")
    payload.length = size
    return payload


def nest(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def read_as_arrow(size: int) -> None:
    _, reason = append_readable(b"\0", of_size(size), "it")
    if reason is not None:
        raise ValueError(reason)


LIMITS: dict[str, tuple[int, Callable[[int], object]]] = {
    # Thrift sizes are 32-bit integers; a frame takes 28 bytes.
    "framed extension": ((1 << 31) - 1 - 28, lambda size: frame(of_size(size), UUID(int=1))),
    "extension": ((1 << 31) - 1, lambda size: append_extension(b"\0", of_size(size))),
    "extension readable by Arrow": (100_000_000, read_as_arrow),
    "FlatBuffers footer": (512 << 20, lambda size: check_limit(size, Limits())),
    "manifest": (256 << 20, lambda size: check_manifest_size(size, "folder")),
    "PROJJSON text": (1 << 20, lambda size: crs.normalize(json.dumps(ALBERS).ljust(size))),
    "PROJJSON nesting": (30, lambda levels: crs.normalize(json.dumps({**ALBERS, "extra": nest(levels)}))),
    "GeoParquet metadata": (16 << 20, lambda size: parse_metadata(GEOPARQUET.ljust(size))),
    "segments of a quarter circle": (1000, lambda count: geo.buffer(LINE, 1, quad_segs=count)),
    "JSON indent": (16, lambda indent: variant.to_json(ONE, indent=indent)),
    "JSON depth option": (1_000_000, lambda depth: variant.parse_json(pa.array(["1"]), max_depth=depth)),
    "JSON size option": (
        (1 << 31) - (1 << 16), lambda size: variant.parse_json(pa.array(["1"]), max_bytes=size)
    ),
    "path index": ((1 << 32) - 1, lambda index: variant.get(ONE, f"$[{index}]", "int64")),
    "shredding depth": (100, lambda levels: variant.shred(ONE, "ARRAY<" * levels + "INT" + ">" * levels)),
    "shredding fields": (
        19_999, lambda count: variant.shred(ONE, f"STRUCT<{', '.join(f'f{i}: INT' for i in range(count))}>")
    ),
    "inferred depth": (100, lambda depth: variant.infer_schema(ONE, max_depth=depth)),
    "value depth": (1000, lambda levels: variant.Variant.from_python(nest(levels))),
    "limit": ((1 << 63) - 1, lambda value: dataclasses.replace(Limits(), page_bytes=value)),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_largest_size_is_accepted_and_the_next_is_rejected(name: str) -> None:
    largest, call = LIMITS[name]
    call(largest)
    for size in (largest + 1, largest + 2, 2 * largest):
        with pytest.raises(ValueError, match=r"\w"):
            call(size)


def seal_often(count: int) -> None:
    key = AesKey(bytes(16))
    for _ in range(count):
        key.seal_unauthenticated(b"")


def read_null_lists(count: int) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"l": pa.nulls(count, pa.list_(pa.int8(), 1))}), sink)
    assert pqext.read_table(sink.getvalue())["l"].null_count == count


def load_material(size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = KeyMaterialStore(f"{folder}/a.parquet")
        Path(store.path).write_text("{}".ljust(size))
        store.load()


LOWERED: dict[str, tuple[ModuleType, str, Callable[[int], object]]] = {
    # A nonce takes 12 bytes and a tag 16.
    "authenticated module": (modules, "_MODULE_BYTES_MAX", lambda size: AesKey(bytes(16)).seal(bytes(size - 28), b"")),
    "other module": (
        modules, "_MODULE_BYTES_MAX", lambda size: AesKey(bytes(16)).seal_unauthenticated(bytes(size - 12))
    ),
    "modules of a key": (modules, "INVOCATIONS_MAX", seal_often),
    "key material": (material, "MATERIAL_BYTES_MAX", load_material),
    "field names of variants": (
        buffers, "ARRAY_BYTES", lambda size: nested.take_within_limit(pa.array([b"a"]), pa.array([0] * size))
    ),
    "elements of null lists": (arrays, "_MOST_FILLED", read_null_lists),
}  # fmt: skip


def test_arrays_have_offsets_of_32_bits() -> None:
    assert np.iinfo(np.int32).max == buffers.ARRAY_BYTES


@pytest.mark.parametrize("name", LOWERED)
@pytest.mark.parametrize("limit", [40, 41])
def test_lowered_limit_is_exact(name: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits too large to reach in a test."""
    module, constant, call = LOWERED[name]
    monkeypatch.setattr(module, constant, limit)
    for size in (limit - 1, limit):
        call(size)
    for size in (limit + 1, limit + 2, 2 * limit):
        with pytest.raises(pqext.ParquetError, match=r"\w"):
            call(size)
