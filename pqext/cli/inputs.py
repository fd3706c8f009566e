"""The inputs of ``pqext convert`` as streams of record batches: JSON, CSV, GeoJSON and Parquet."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard

from pqext.core.base.errors import CorruptFileError
from pqext.core.io.sources.streams import MARK_BYTES, codec_of_content, damage, decompressed, open_stream

if TYPE_CHECKING:
    import pyarrow as pa

    from pqext.cli.reader_options import Reading
    from pqext.core.io.sources.store import Location

MAX_TOLD = 5
"""Faults that are told one by one."""


@dataclass
class Losses:
    """What was left out or became null on the way: how many rows, and about the first of them."""

    count: int = 0
    told: list[str] = field(default_factory=list)

    def add(self, text: str, count: int = 1) -> None:
        """Note a fault."""
        self.count += count
        if len(self.told) < MAX_TOLD:
            self.told.append(text)


@dataclass(frozen=True)
class Stream:
    """Record batches of one schema; they can be read once."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


Source: TypeAlias = "str | IO[bytes] | Location"
"""A local path, an open file, or a place in a store."""
OnError = Literal["stop", "null", "skip"]


def json_documents(
    sources: Sequence[Source], column: str, shredding: Any, on_error: OnError, losses: Losses, **options: Any
) -> Stream:
    """One VARIANT column, with one row for each document."""
    from pqext.variant.json.faults import placed
    from pqext.variant.json.files import read_json

    source: Any = [one if isinstance(one, str) else open_bytes(one) for one in sources]
    raises: Literal["raise", "null"] = "raise" if on_error == "stop" else "null"
    reader = read_json(source, column=column, shredding=shredding, on_error=raises, **options)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            for fault in reader.faults:
                losses.add(placed(fault, fault.path))
            # A line that is not JSON is a null row, and no other is: JSON's null is a variant.
            yield batch.filter(batch.column(0).is_valid()) if on_error == "skip" and reader.faults else batch

    return Stream(reader.schema, batches())


_UNUSED = "\0geometry"
"""A name that no property has."""


def geojson(sources: Sequence[Source], properties: str | None = None) -> Stream:
    """The features of GeoJSON files: their geometries and one column for each property, all held in memory.

    The geometries are in column ``geometry``, or ``geom`` if a property has that name. ``properties`` names one column
    of JSON text for all properties.
    """
    import pyarrow as pa

    from pqext.geo.text.geojson import read_geojson

    tables = []
    for source in sources:
        with damage(name_of(source)):
            text: Any = source if isinstance(source, str) else open_bytes(source).read()
        tables.append(read_geojson(text, _UNUSED, properties=properties))
        if tables[-1].schema.field(0).metadata != tables[0].schema.field(0).metadata:
            reason = f"the geometries have another CRS than those of {name_of(sources[0])}"
            raise CorruptFileError(reason, path=name_of(source))
    table = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    name = next(name for name in ("geometry", "geom", "geom_") if name not in table.column_names)
    table = table.rename_columns([name, *table.column_names[1:]])
    return Stream(table.schema, iter(table.to_batches()))


def parquet(sources: Sequence[Source], reading: Reading) -> Stream:
    """The rows of Parquet files, with whole variants."""
    from pqext.dataset.reading import scan

    found = scan(list(sources), limits=reading.limits, options=reading.options)
    return Stream(found.schema, found.to_batches())


def is_place(source: Source) -> TypeGuard[str | Location]:
    """Is this a path or a place in a store, and no open file?"""
    return not hasattr(source, "read")


def open_bytes(source: Source) -> Any:
    """The bytes of a path or a place, or of an open file, decompressed."""
    import pyarrow as pa

    if is_place(source):
        opened = open_stream(source)
        if isinstance(source, str) and isinstance(opened, io.FileIO) and opened.seekable():
            opened.close()
            return pa.OSFile(source)  # which closes itself
        return opened
    file: Any = source
    codec = codec_of_content(file.peek(MARK_BYTES)) if hasattr(file, "peek") else None
    return file if codec is None else decompressed(file, codec)


def name_of(source: Source) -> str:
    return str(source) if is_place(source) else "standard input"
