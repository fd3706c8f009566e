"""The target of the data-skipping store: what strangers' stores say of themselves, names of objects, Bloom filters.

Beside what every target holds, what is read is written and read again, and a filter answers as the slow version does.
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

ASKED: tuple[int | bytes, ...] = (1, -1, b"a", b"")


def skipping(data: bytes) -> None:
    """A byte for the form, then the cell of a Bloom filter, Spark's schema, or names of objects, one a line."""
    if data:
        (_filter, _schema, _names)[data[0] % 3](data[1:])


def _filter(cell: bytes) -> None:
    stored = spark_bloom.unwrap(cell)
    found = [bool(spark_bloom.may_contain_any(pa.array([None, cell]), [one])[1]) for one in ASKED]
    assert all(found) or stored is not None
    for one, may in zip(ASKED, found, strict=True):
        assert may or not Bloom.parse(stored or b"").may_contain(one)


def _schema(text: bytes) -> None:
    try:
        about = metadata.from_spark(spark_schema.parse(text.decode("utf-8", "replace")))
    except CorruptFileError:
        return
    if about.is_usable:
        columns = [one.name for one in about.indexes] + [f"virtual_{one}" for one in about.partitions]
        schema = pa.schema({name: pa.binary() for name in columns})
        assert metadata.from_spark(metadata.to_spark(about, schema)) == about


def _names(text: bytes) -> None:
    names = text.decode("utf-8", "replace").split("\n")
    try:
        found = [parse_object_name(one) for one in names]
    except CorruptFileError:
        found = None
    try:
        paths, times = split_object_names(pa.array(names))
    except CorruptFileError:
        assert found is None
    else:
        assert found == list(zip(paths.to_pylist(), times.tolist(), strict=True))
