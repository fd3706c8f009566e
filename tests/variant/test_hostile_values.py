"""Values made to hurt: each is refused with the rule and the byte, or read, in bounded time and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pqext import variant
from pqext.core.base.errors import LimitError, VariantError
from pqext.variant import Variant
from pqext.variant.shredding.schema import shredding_schema, storage_struct
from reference import variant_shred as reference
from reference.pace import FEW_THREADS, SANITIZED, SLOWER

EMPTY = reference.encode_metadata([])
AB = reference.encode_metadata(["a", "b"])


def column(metadata: bytes, value: bytes) -> pa.StructArray:
    arrays = [pa.array([metadata], pa.binary()), pa.array([value], pa.binary())]
    return pa.StructArray.from_arrays(arrays, fields=list(variant.variant_type()))


def nested(depth: int, of_objects: bool = False) -> bytes:
    """Containers of one child each, ``depth`` of them."""
    value = b"\0"
    parts = []
    for _ in range(depth):
        size = len(value).to_bytes(4, "little")
        head = b"\x0e\x01\0" + b"\0\0\0\0" + size if of_objects else b"\x0f\x01" + b"\0\0\0\0" + size
        parts.append(head)
        value = head + value if depth < 200 else value
        if depth >= 200:
            value = _Longer(len(head) + len(value))  # type: ignore[assignment]
    return value if depth < 200 else b"".join(reversed(parts)) + b"\0"


class _Longer:
    """Stands for bytes of which only the number counts, so that deep values take no quadratic time to make."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length


def nested_arrays(depth: int) -> bytes:
    """Arrays of two elements that are the same bytes, within each other: 2 to the ``depth`` values."""
    value = b"\0"
    for _ in range(depth):
        value = b"\x0f\x02" + bytes(8) + len(value).to_bytes(4, "little") + value
    return value


def laughing_objects(depth: int) -> bytes:
    value = b"\0"
    for _ in range(depth):
        value = b"\x0e\x02\0\x01" + bytes(8) + len(value).to_bytes(4, "little") + value
    return value


HUGE = b"\xff\xff\xff\xff"
HOSTILE: dict[str, tuple[str, int | None, bytes, bytes]] = {
    "10,000 arrays": ("variant.depth", None, EMPTY, nested(10_000)),
    "10,000 objects": ("variant.depth", None, AB, nested(10_000, of_objects=True)),
    "elements that share their bytes": ("variant.container.extent", None, EMPTY, nested_arrays(60)),
    "fields that share their bytes": ("variant.container.extent", None, AB, laughing_objects(60)),
    "metadata offsets that descend": ("variant.metadata.offsets", 4, b"\x01\x02\0\x02\x01ab", b"\0"),
    "a metadata of 4,294,967,295 strings": ("variant.metadata.layout", 0, b"\xc1" + HUGE + bytes(8), b"\0"),
    "a string of metadata beyond its end": ("variant.metadata.layout", 0, b"\x01\x01\0\x7fa", b"\0"),
    "an offset outside": ("variant.container.offsets", None, EMPTY, b"\x03\x01\x07\x01\0"),
    "a total beyond the value": ("variant.value.layout", 0, EMPTY, b"\x03\x01\0\x07\0"),
    "a total short of the value": ("variant.value.layout", 5, EMPTY, b"\x03\x01\0\x01\0\0"),
    "an array of 4,294,967,295 elements": ("variant.value.layout", 0, EMPTY, b"\x1f" + HUGE + bytes(12)),
    "an object of 4,294,967,295 fields": ("variant.value.layout", 0, AB, b"\x7e" + HUGE + bytes(12)),
    "a string of 4,294,967,295 bytes": ("variant.value.layout", 0, EMPTY, b"\x40" + HUGE + b"abc"),
    "a binary of 4,294,967,295 bytes": ("variant.value.layout", 0, EMPTY, b"\x3c" + HUGE + b"abc"),
    "a short string that is cut": ("variant.value.layout", 0, EMPTY, b"\xfdabc"),
    "a field id beyond the dictionary": ("variant.object.field-id", 3, AB, b"\x02\x02\0\x09\0\x01\x02\0\0"),
    "a field id of four bytes": ("variant.object.field-id", 2, AB, b"\x32\x01" + HUGE + b"\0\x01\0"),
    "two fields of one name": ("variant.object.unique", 3, AB, b"\x02\x02\0\0\0\x01\x02\0\0"),
    "two ids of one name": (
        "variant.object.unique", 3, b"\x01\x02\0\x01\x02aa", b"\x02\x02\0\x01\0\x01\x02\0\0",
    ),
    "fields out of order": ("variant.object.order", 3, AB, b"\x02\x02\x01\0\0\x01\x02\0\0"),
    "a name that is not UTF-8": ("variant.utf8", 4, b"\x01\x01\0\x01\xff", b"\0"),
    "a string that is not UTF-8": ("variant.utf8", 1, EMPTY, b"\x05\xff"),
    "half a surrogate pair": ("variant.utf8", 1, EMPTY, b"\x0d\xed\xa0\x80"),
    "bytes behind the value": ("variant.value.layout", 1, EMPTY, b"\0\0"),
    "version 2": ("variant.metadata.version", 0, b"\x02\0\0", b"\0"),
    "version 0": ("variant.metadata.version", 0, b"\0\0\0", b"\0"),
    "no bytes": ("variant.value.layout", 0, EMPTY, b""),
    "no metadata": ("variant.metadata.layout", 0, b"", b"\0"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.spec(
    "variant.depth", "variant.container.extent", "variant.container.offsets", "variant.metadata.offsets",
    "variant.metadata.layout", "variant.value.layout", "variant.object.field-id", "variant.object.unique",
    "variant.object.order", "variant.utf8", "variant.metadata.version",
)  # fmt: skip
def test_validation_names_the_rule_and_the_byte(name: str) -> None:
    rule, offset, metadata, value = HOSTILE[name]
    with pytest.raises(VariantError) as caught:
        variant.validate(column(metadata, value), on_fault="raise")
    assert (caught.value.rule, caught.value.row) == (rule, 0)
    assert caught.value.offset is not None
    assert offset is None or caught.value.offset == offset
    assert rule in str(caught.value)


READERS: dict[str, Callable[[pa.StructArray], Any]] = {
    "to_json": variant.to_json,
    "infer_schema": variant.infer_schema,
    "get": lambda array: [variant.get(array, path, pa.string()) for path in ("$", "$.a", "$[0]", "$.a.b[1]")],
    "find_faults": variant.find_faults,
    "validate fast": lambda array: variant.validate(array, "fast"),
    **{
        f"shred {schema}": lambda array, schema=schema: variant.unshred(variant.shred(array, schema))
        for schema in ("BIGINT", "a STRING", "ARRAY<INT>", "a ARRAY<STRUCT<b: INT>>")
    },
    "unshred": lambda array: variant.unshred(next_to_object(array, "z INT", {"z": {}})),
    "to_json of shredded": lambda array: variant.to_json(next_to_object(array, "z INT", {"z": {"typed_value": 1}})),
    "to_python": lambda array: first_value(array).to_python(),
    "hash": lambda array: hash(first_value(array)),
    "==": lambda array: first_value(array) == first_value(array),
    "repr": lambda array: repr(first_value(array)),
    "path": lambda array: first_value(array).get("$.a[0].b"),
}


def first_value(array: pa.StructArray) -> Variant:
    row = array[0].as_py()
    return Variant(row["value"], row["metadata"])


def next_to_object(array: pa.StructArray, schema: str, typed: Any) -> pa.StructArray:
    """The value as a residual beside a shredded object."""
    row = array[0].as_py()
    return pa.array([{**row, "typed_value": typed}], storage_struct(shredding_schema(schema)))


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_takes_bounded_time(reader: str) -> None:
    for name, (_, _, metadata, value) in HOSTILE.items():
        array = column(metadata, value)
        started = time.process_time()
        refusal = rejection(READERS[reader], array)
        assert time.process_time() - started < 2 * SLOWER, name
        assert refusal is None or isinstance(refusal, LimitError) or refusal.rule, name


def rejection(read: Callable[[pa.StructArray], Any], array: pa.StructArray) -> VariantError | LimitError | None:
    try:
        read(array)
    except (VariantError, LimitError) as error:
        return error
    return None


def test_array_of_sixteen_million_elements_is_supported() -> None:
    count = 1 << 24
    offsets = np.arange(count + 1, dtype="<u4").tobytes()
    value = b"\x1f" + count.to_bytes(4, "little") + offsets + bytes(count)
    array = column(EMPTY, value)
    started = time.process_time()
    assert variant.validate(array) is None
    assert variant.get(array, f"$[{count - 1}]", pa.string()).null_count == 1
    assert len(first_value(array)) == count
    assert time.process_time() - started < 5 * SLOWER
    lying = b"\x1f" + (count + 1).to_bytes(4, "little") + offsets + bytes(count)
    fault = variant.validate(column(EMPTY, lying))
    assert fault is not None
    assert fault.rule in ("variant.container.extent", "variant.container.offsets", "variant.value.layout")


@pytest.mark.spec("variant.object.values")
def test_unsorted_fields_take_no_longer_than_sorted_ones() -> None:
    count = 100_000
    names = b"".join(b"%06d" % i for i in range(count))
    places = np.arange(count + 1, dtype="<u4") * 6
    metadata = b"\xd1" + count.to_bytes(4, "little") + places.tobytes() + names
    ids = np.arange(count, dtype="<u4")
    shuffled = np.random.default_rng(1).permutation(count).astype("<u4")
    seconds = []
    for order in (ids, shuffled):
        offsets = np.append(order * 2, 2 * count).astype("<u4")
        body = np.zeros((count, 2), np.uint8)
        body[order] = np.stack([np.full(count, 0x0C, np.uint8), (ids % 100).astype(np.uint8)], axis=1)
        value = b"\x7e" + count.to_bytes(4, "little") + ids.tobytes() + offsets.tobytes() + body.tobytes()
        array = column(metadata, value)
        started = time.process_time()
        assert variant.validate(array) is None
        seconds.append(time.process_time() - started)
        assert variant.get(array, "$.099999", pa.int32()).to_pylist() == [99]
        text = json.loads(variant.to_json(array)[0].as_py())
        assert (len(text), text["000123"]) == (count, 23)
    assert seconds[1] < 0.1 * SLOWER


MEASURE = """
import resource, sys
sys.path[:0] = sys.argv[1:3]
import importlib.util
spec = importlib.util.spec_from_file_location("hostile", sys.argv[3])
hostile = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hostile)
for reader in hostile.READERS.values():
    hostile.rejection(reader, hostile.column(hostile.EMPTY, b"\\0"))
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (256 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for name, (_, _, metadata, value) in hostile.HOSTILE.items():
    for reader, read in hostile.READERS.items():
        hostile.rejection(read, hostile.column(metadata, value))
print("done")
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc to bound memory")
@pytest.mark.skipif(SANITIZED, reason="sanitizers take memory of their own")
def test_every_reader_uses_bounded_memory(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    arguments = [sys.executable, "-c", MEASURE, str(root), str(root / "tests"), __file__]
    result = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **FEW_THREADS})
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.strip() == "done"
