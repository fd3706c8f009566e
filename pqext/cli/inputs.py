"""The inputs of ``pqext convert`` as streams of record batches: JSON, CSV, GeoJSON and Parquet."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard

from pqext.core.sources.streams import CODECS, codec_of, open_stream

if TYPE_CHECKING:
    import pyarrow as pa

    from pqext.core.sources.store import Location

MAX_TOLD = 5
"""Faults that are told one by one."""

_SUFFIXES = {
    ".parquet": "parquet", ".parq": "parquet", ".csv": "csv", ".tsv": "csv", ".tab": "csv",
    ".json": "json", ".jsonl": "json", ".ndjson": "json", ".geojson": "geojson", ".geojsonl": "geojson",
    ".geojsons": "geojson", ".geojsonseq": "geojson",
}


class Format(StrEnum):
    """What the inputs hold."""

    json = "json"
    csv = "csv"
    geojson = "geojson"
    parquet = "parquet"


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


def format_of(sources: Sequence[Source]) -> Format:
    """The format of all ``sources`` by the ends of their names, JSON for any other; ``ValueError`` when they differ."""
    found = {_format(str(source)) for source in sources if is_place(source)} or {Format.json}
    if len(found) > 1:
        raise ValueError(f"the inputs are of several formats ({', '.join(sorted(found))}): convert them one by one")
    return found.pop()


def _format(path: str) -> Format:
    return named_format(path) or Format.json


def named_format(path: str) -> Format | None:
    """The format that the end of a name tells, None where it tells none."""
    found = _SUFFIXES.get(suffix_of(path))
    return None if found is None else Format(found)


def suffix_of(path: str) -> str:
    """The end of the name in lower case, without that of a compressed file."""
    stem, suffix = os.path.splitext(path)
    return os.path.splitext(stem)[1].lower() if suffix.lower() in CODECS else suffix.lower()


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


def geojson(sources: Sequence[Source], geometry: str) -> Stream:
    """The features of GeoJSON files: their geometries and one column for each property, all held in memory."""
    import pyarrow as pa

    from pqext.geo.text.geojson import read_geojson

    tables = []
    for source in sources:
        plain = isinstance(source, str) and os.path.splitext(source)[1].lower() not in CODECS
        text: Any = source if plain else open_bytes(source).read()
        tables.append(read_geojson(text, geometry))
        if tables[-1].schema.field(geometry).metadata != tables[0].schema.field(geometry).metadata:
            raise ValueError(f"{name_of(source)} has its geometries in another CRS than {name_of(sources[0])}")
    table = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    return Stream(table.schema, iter(table.to_batches()))


def parquet(sources: Sequence[Source]) -> Stream:
    """The rows of Parquet files, with whole variants."""
    from pqext.dataset.reading import scan

    if not all(is_place(source) for source in sources):
        raise ValueError("Parquet is read from files only, because its footer comes last")
    found = scan(list(sources))
    return Stream(found.schema, found.to_batches())


def is_place(source: Source) -> TypeGuard[str | Location]:
    """Is this a path or a place in a store, and no open file?"""
    return not hasattr(source, "read")


def open_bytes(source: Source) -> Any:
    """The bytes of a path or a place, decompressed, or of an open file."""
    import pyarrow as pa

    if isinstance(source, str) and codec_of(source) is None:
        return pa.OSFile(source)  # which closes itself
    return open_stream(source) if is_place(source) else source


def name_of(source: Source) -> str:
    return str(source) if is_place(source) else "standard input"
