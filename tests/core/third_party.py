"""An annotation as a third party would add one: temperatures in BSON columns, stored in tenths of a kelvin.

The column is a text in the file, a double in Arrow, in kelvin or degrees Celsius as the writer's option says of what it
is given, and a float in Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.format.metadata import BsonType, LogicalType
from pqext.core.schema import annotations
from pqext.core.schema.annotations import EXTENSION_NAME, Annotation, ChunkFacts, Storage

NAME = "example.temperature"
ANNOTATION = Annotation(
    logical="BSON", handler="core.third_party:HANDLER", extension_names=frozenset({NAME}), option="temperature"
)
CELSIUS = 273.15


@contextmanager
def registered() -> Iterator[None]:
    """The annotation serves its type within the block."""
    annotations.register(ANNOTATION)
    try:
        yield
    finally:
        del annotations._REGISTRY[ANNOTATION.logical]


def field(name: str, type: pa.DataType | None = None) -> pa.Field:
    """A column of temperatures."""
    return pa.field(name, type or pa.float64(), metadata={EXTENSION_NAME: NAME})


class Temperatures:
    def arrow_field(self, node: Any, storage: pa.Field, options: Any) -> pa.Field:
        return field(node.name)

    def from_storage(self, node: Any, storage: pa.Array, options: Any) -> pa.Array:
        return pc.divide(storage.cast(pa.string()).cast(pa.float64()), 10.0)

    def storage(self, field: pa.Field, path: str, sample: pa.Array | None, options: Any) -> Storage:
        choice = options.annotations.get("temperature", {}).get(path, "kelvin")
        if choice not in ("kelvin", "celsius"):
            raise ValueError(f"a temperature is in kelvin or celsius, not {choice!r}")
        kept = {b"unit": choice.encode()}
        return Storage(LogicalType(BSON=BsonType()), pa.field(field.name, pa.binary(), field.nullable, kept))

    def inspects_data(self, choice: Any) -> bool:
        return False

    def to_storage(self, field: pa.Field, storage: Storage, array: pa.Array, options: Any, records: Any) -> pa.Array:
        kelvin = pc.add(array, CELSIUS) if storage.field.metadata[b"unit"] == b"celsius" else array
        return pc.round(pc.multiply(kelvin, 10.0)).cast(pa.int64()).cast(pa.string()).cast(pa.binary())

    def chunk_facts(self, *known: Any) -> ChunkFacts:
        return ChunkFacts()

    def may_match(self, node: Any, row_group: Any, predicate: object) -> bool:
        return True

    def matching_rows(self, node: Any, row_group: Any, predicate: object) -> None:
        return None

    def spark_type(self, field: pa.Field) -> pa.DataType:
        return pa.float32()


HANDLER = Temperatures()
ROWS = np.array([273.1, 300.0, 310.5])
