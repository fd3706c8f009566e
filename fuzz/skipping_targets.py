"""Fuzz target for data-skipping stores of other writers: their metadata, object names and Bloom filters.

In addition to raising no unexpected errors, metadata must survive a round trip, and Bloom filters must return the same
results as the reference implementation.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from pqext.core.base.errors import CorruptFileError
from pqext.skipping.format import metadata, spark_bloom, spark_schema
from pqext.skipping.format.names import parse_object_name, split_object_names
from reference.skipping_store import Bloom

PROBES: tuple[int | bytes, ...] = (1, -1, b"a", b"")


def skipping(data: bytes) -> None:
    """Read a byte that selects the format, then a Bloom filter, a Spark schema, or object names, one per line."""
    if data:
        (_filter, _schema, _names)[data[0] % 3](data[1:])


def _filter(cell: bytes) -> None:
    stored = spark_bloom.unwrap_filter(cell)
    results = [bool(spark_bloom.may_contain_any(pa.array([None, cell]), [value])[1]) for value in PROBES]
    assert all(results) or stored is not None
    for value, may_contain in zip(PROBES, results, strict=True):
        assert may_contain or not Bloom.parse(stored or b"").may_contain(value)


def _schema(text: bytes) -> None:
    try:
        store_metadata = metadata.from_spark(spark_schema.parse(text.decode("utf-8", "replace")))
    except CorruptFileError:
        return
    if store_metadata.is_usable:
        columns = [index.name for index in store_metadata.indexes]
        columns += [f"virtual_{name}" for name in store_metadata.partitions]
        schema = pa.schema({name: pa.binary() for name in columns})
        assert metadata.from_spark(metadata.to_spark(store_metadata, schema)) == store_metadata


def _names(text: bytes) -> None:
    names = text.decode("utf-8", "replace").split("\n")
    try:
        expected = [parse_object_name(name) for name in names]
    except CorruptFileError:
        expected = None
    try:
        paths, times = split_object_names(pa.array(names))
    except CorruptFileError:
        assert expected is None
    else:
        assert expected == list(zip(paths.to_pylist(), times.tolist(), strict=True))
