"""Reads copies of small files, cut or with one byte changed, and says what came of each; run in a process of its own.

``python damaged_bytes.py STRIDE CAP`` writes a line of JSON for each file and way. The address space that the process
may take, once everything is imported and the files have been read, is limited to ``CAP`` bytes more.
"""

from __future__ import annotations

import io
import json
import os
import resource
import sys
import time
import warnings
from collections import Counter
from typing import Any

import pyarrow as pa

import pqext
from pqext.core.base.errors import ParquetError

KEY = b"0123456789012345"
DECRYPTION = pqext.encryption.FileDecryption(KEY)
TABLE = pa.table(
    {
        "i": pa.array([1, None, 3, 3, 5, 8], pa.int32()),
        "s": ["a", "bb", None, "a", "dddd", "dda"],
        "l": pa.array([[1.5], [], None, [2.5, None], [3.5], [0.0]], pa.list_(pa.float64())),
        "x": pa.array([b"123", None, b"abc", b"123", b"\0\0\0", b"zzz"], pa.binary(3)),
    }
)
MAPS = pa.map_(pa.string(), pa.list_(pa.int16()))
NESTED = pa.table(
    {
        "m": pa.array([[("k", [1])], None, [], [("k", []), ("j", [2, None])]], MAPS),
        "r": pa.array([{"a": {"b": True}}, None, {"a": None}, {"a": {"b": None}}]),
    }
)
DELTA = {
    "i": "delta_binary_packed", "s": "delta_byte_array", "l.list.element": "byte_stream_split", "x": "delta_byte_array",
}
PLAIN: dict[str, Any] = {
    "dictionary": False, "compression": "uncompressed", "page_index": False, "statistics": False, "row_group_rows": 4,
}
FILES: dict[str, tuple[pa.Table, dict[str, Any]]] = {
    "plain": (TABLE, PLAIN),
    "plain without checksums": (TABLE, {**PLAIN, "checksums": False}),
    "dictionary": (TABLE, {"compression": "snappy", "page_index": False}),
    "version 2": (TABLE, {"page_version": 2, "page_rows": 2, "compression": "zstd", "checksums": False}),
    "nested": (NESTED, {"compression": "uncompressed", "checksums": False, "page_rows": 2}),
    "delta": (TABLE, {**PLAIN, "encodings": DELTA, "checksums": False}),
    "page index": (TABLE, {"page_rows": 2, "compression": "uncompressed"}),
    "bloom": (TABLE, {"bloom_filters": {"i": {"ndv": 4}, "s": {"ndv": 4}}, "compression": "uncompressed"}),
    "encrypted": (TABLE, {"encryption": pqext.encryption.FileEncryption(KEY), "row_group_rows": 4}),
    "encrypted, signed footer": (TABLE, {"encryption": pqext.encryption.FileEncryption(KEY, plaintext_footer=True)}),
}
FLIPS = (0xFF, 0x01, 0x80)


def written(name: str) -> bytes:
    """The file of that name."""
    table, options = FILES[name]
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


def damaged(data: bytes, mode: str, at: int) -> bytes:
    """``data`` cut at ``at``, or with the byte there changed."""
    if mode == "cut":
        return data[:at]
    return data[:at] + bytes([data[at] ^ FLIPS[at % 3]]) + data[at + 1 :]


def everything(data: bytes, *, encrypted: bool) -> pa.Table:
    """All that can be read of a file: values, bounds, indexes and filters."""
    options = pqext.ReadOptions(threads=1, decryption=DECRYPTION if encrypted else None)
    with warnings.catch_warnings(), pqext.open(data, options) as file:
        warnings.simplefilter("ignore")  # a damaged annotation is one that is not known
        table = file.read()
        table.validate(full=True)
        _ = file.extensions
        for group in file.row_groups:
            for chunk in group.chunks():
                chunk.bounds()
                chunk.page_bounds()
                _ = chunk.bloom_filter
        return table


def allow(more: int) -> None:
    """Limit the address space to what is taken now and ``more`` bytes; not under a sanitizer, which takes terabytes."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        return
    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + more, taken + more))


def judged(name: str, mode: str, stride: int) -> dict[str, Any]:
    """What came of the file damaged at every ``stride``-th byte."""
    data, encrypted = written(name), "encrypted" in name
    expected = everything(data, encrypted=encrypted)
    counts: Counter[str] = Counter()
    slowest, unexpected = 0.0, []
    for at in range(list(FILES).index(name) % stride, len(data), stride):
        started = time.process_time()
        try:
            found = everything(damaged(data, mode, at), encrypted=encrypted)
            counts["equal" if found.equals(expected) else "another"] += 1
        except ParquetError as error:
            counts[type(error).__name__] += 1
            if not str(error):
                unexpected.append([at, "no message"])
        except Exception as error:
            unexpected.append([at, f"{type(error).__name__}: {error}"])
        slowest = max(slowest, time.process_time() - started)
    return {"file": name, "mode": mode, "bytes": len(data), "counts": counts, "unexpected": unexpected,
            "slowest": slowest}


def main(stride: int, cap: int) -> None:
    """Damage every file in both ways; a line of JSON each, written before the next begins."""
    for name in FILES:
        everything(written(name), encrypted="encrypted" in name)
    allow(cap)
    for name in FILES:
        for mode in ("cut", "flip"):
            print(json.dumps(judged(name, mode, stride)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
