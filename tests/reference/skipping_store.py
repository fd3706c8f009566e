"""A data-skipping store by the written rules, with pyarrow and json alone: what pqext.skipping must agree with.

Slow and without care for damage. Bloom filters are read by a small parser of Java's serialisation, one value at a time.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


@dataclass
class Store:
    """A folder's parts: version, table, for each index's column its description, and the rows by object."""

    version: int
    table: str
    indexes: dict[str, dict[str, Any]]
    partitions: list[str]
    encryption: dict[str, str]
    rows: dict[str, dict[str, Any]]


def parts(folder: Path) -> list[Path]:
    """The files of a store as Spark lists them."""
    return sorted(one for one in folder.iterdir() if one.suffix == ".parquet" and one.name[0] not in "._")


def read(folder: Path, decryption: Any = None) -> Store:
    """A store, all of whose parts have the same columns."""
    rows: dict[str, dict[str, Any]] = {}
    for path in parts(folder):
        file = pq.ParquetFile(path, decryption_properties=decryption)
        fields = {one["name"]: one for one in json.loads(file.metadata.metadata[SCHEMA])["fields"]}
        for row in file.read().to_pylist():
            rows[row.pop("obj_name")] = row
    about = fields.pop("obj_name")["metadata"]
    indexes, partitions = {}, []
    for name, one in fields.items():
        if "index" in one["metadata"]:
            indexes[name] = one["metadata"]["index"]
        elif name.startswith("virtual_") and about["version"] >= 4:
            partitions.append(name[len("virtual_") :])
    return Store(about["version"], about["tableIdentifier"], indexes, partitions, about.get("encryption", {}), rows)


def params(version: int, index: dict[str, Any]) -> dict[str, str]:
    """The parameters of an index by the names of version 4."""
    found = index.get("params", {})
    if version >= 3:
        return dict(found)
    pairs = (pair.split(":", 1) for pair in found)
    return {key.replace("spark.ibm.metaindex.", "io.xskipper."): value for key, value in pairs}


def column_name(columns: list[str], index: str, version: int) -> str:
    """The name of an index's column, letter by letter."""
    columns, index = [one.lower() for one in columns], index.lower()
    if version == 0:
        return ":".join(columns) + "_" + index
    if version == 1:
        return "_".join(columns) + "_" + index
    signs = {"#": "##", ".": "$#$"}
    changed = ["".join(signs.get(letter, letter) for letter in one) for one in columns]
    lengths = [str(sum(2 if ord(letter) > 0xFFFF else 1 for letter in one)) for one in changed]
    return "_".join(changed) + "_" + index + "_" + "-".join(lengths)


def object_of(name: str) -> tuple[str, int]:
    """The path and the time in the name of an object."""
    at = max(place for place, letter in enumerate(name) if letter == "#")
    return name[:at], int(name[at + 1 :])


def bloom_payload(cell: bytes) -> bytes:
    """What a serialised object writes of its own accord: the contents of its blocks of data, one behind the other."""
    magic, version = struct.unpack(">HH", cell[:4])
    assert (magic, version) == (0xACED, 5)
    return b"".join(_blocks(cell[4:]))


def _blocks(stream: bytes) -> Iterator[bytes]:
    """The blocks of data behind the last class description: from the first mark of a block that fits to the end."""
    at = stream.rindex(b"\x78\x70") + 2 if b"\x78\x70\x7a" not in stream else stream.index(b"\x78\x70\x7a") + 2
    while stream[at] in (0x77, 0x7A):
        if stream[at] == 0x77:
            size, at = stream[at + 1], at + 2
        else:
            size, at = struct.unpack(">I", stream[at + 1 : at + 5])[0], at + 5
        yield stream[at : at + size]
        at += size
    assert stream[at] == 0x78


@dataclass
class Bloom:
    """Spark's Bloom filter: how many bits a value sets, and the bits; ``seed`` of the second version."""

    version: int
    functions: int
    seed: int
    words: list[int]

    @classmethod
    def parse(cls, payload: bytes) -> Bloom:
        version, functions = struct.unpack(">ii", payload[:8])
        at, seed = (8, 0) if version == 1 else (12, struct.unpack(">i", payload[8:12])[0])
        count = struct.unpack(">i", payload[at : at + 4])[0]
        words = list(struct.unpack(f">{count}Q", payload[at + 4 :]))
        return cls(version, functions, seed, words)

    def places(self, value: int | str | bytes) -> Iterator[int]:
        """The bits that ``value`` sets."""
        if isinstance(value, int):
            first = murmur_long(value, self.seed)
            second = murmur_long(value, first)
        else:
            data = value.encode() if isinstance(value, str) else value
            first = murmur_bytes(data, self.seed)
            second = murmur_bytes(data, first)
        bits = 64 * len(self.words)
        if self.version == 1:
            for step in range(1, self.functions + 1):
                combined = signed(first + step * second, 32)
                yield (combined if combined >= 0 else ~combined) % bits
        else:
            combined = first * (1 << 31) - first  # Integer.MAX_VALUE times the first hash
            for _ in range(self.functions):
                combined = signed(combined + second, 64)
                yield (combined if combined >= 0 else ~combined) % bits

    def may_contain(self, value: int | str | bytes) -> bool:
        return all(self.words[at >> 6] >> (at & 63) & 1 for at in self.places(value))


def signed(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def _rotated(number: int, by: int) -> int:
    return (number << by | number >> (32 - by)) & 0xFFFFFFFF


def _mixed_in(state: int, word: int) -> int:
    word = _rotated(word * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
    return (_rotated(state ^ word, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF


def _finished(state: int, size: int) -> int:
    state ^= size
    state = (state ^ state >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    state = (state ^ state >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return signed(state ^ state >> 16, 32)


def murmur_long(value: int, seed: int) -> int:
    value &= (1 << 64) - 1
    state = _mixed_in(seed & 0xFFFFFFFF, value & 0xFFFFFFFF)
    return _finished(_mixed_in(state, value >> 32), 8)


def murmur_bytes(data: bytes, seed: int) -> int:
    """Spark's variant: each byte behind the last whole word is mixed in alone, with its sign."""
    state = seed & 0xFFFFFFFF
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        state = _mixed_in(state, int.from_bytes(data[at : at + 4], "little"))
    for one in data[whole:]:
        state = _mixed_in(state, signed(one, 8) & 0xFFFFFFFF)
    return _finished(state, len(data))
