"""Inputs of ``pqext convert``: their formats and their streams of record batches."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard

from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.io.sources.streams import CODECS, MARK_BYTES, codec_of_content, decompress, open_stream

if TYPE_CHECKING:
    import pyarrow as pa

    from pqext.cli.reader_options import ReaderOptions
    from pqext.core.io.sources.store import Location

MAX_MESSAGES = 5
"""Maximum number of losses that are reported individually."""
_SUFFIXES = {
    ".parquet": "parquet", ".parq": "parquet", ".csv": "csv", ".tsv": "csv", ".tab": "csv",
    ".json": "json", ".jsonl": "json", ".ndjson": "json", ".geojson": "geojson", ".geojsonl": "geojson",
    ".geojsons": "geojson", ".geojsonseq": "geojson",
    ".gpkg": "vector", ".fgb": "vector", ".shp": "vector", ".shz": "vector", ".kml": "vector", ".kmz": "vector",
    ".gml": "vector", ".gpx": "vector", ".dxf": "vector",
}
_ADVICE = {
    "shapefile": "name its .shp file",
    "Arrow": "use pqext.write_table(pyarrow.feather.read_table(path), dest) in Python",
    "ORC": "use pqext.write_table(pyarrow.orc.read_table(path), dest) in Python",
    "Avro": "use pqext.write_table(polars.read_avro(path).to_arrow(), dest) in Python",
    "Excel": "save it as CSV, or use pandas.read_excel and pqext.write_table in Python",
    "ZIP": "unpack it",
}
"""Advice for unsupported formats."""
_OTHER_SUFFIXES = {
    ".dbf": "shapefile", ".shx": "shapefile", ".arrow": "Arrow", ".feather": "Arrow", ".ipc": "Arrow", ".orc": "ORC",
    ".avro": "Avro", ".xlsx": "Excel", ".xls": "Excel", ".zip": "ZIP",
}
_VECTOR_MARKS = (b"SQLite format 3\0", b"fgb\x03", b"\0\0\x27\x0a")
_OTHER_MARKS = (
    (b"ARROW1", "Arrow"), (b"ORC", "ORC"), (b"Obj\x01", "Avro"), (b"PK\x03\x04", "ZIP"),
)
_HEAD_BYTES = 1 << 16
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],]')


FORMATS = ("json", "csv", "geojson", "vector", "parquet")


@dataclass
class Losses:
    """Counter of values that could not be read, with the first error messages and notes."""

    count: int = 0
    messages: list[str] = field(default_factory=list)

    def add(self, text: str, count: int = 1) -> None:
        """Record ``count`` lost values with the message ``text``. The count of a note is 0."""
        self.count += count
        if len(self.messages) < MAX_MESSAGES:
            self.messages.append(text)


@dataclass(frozen=True)
class Stream:
    """Stream of record batches with the same schema that can be read once."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


Source: TypeAlias = "str | IO[bytes] | Location"
"""A local path, an open file, or an object-store location."""
OnError = Literal["stop", "null", "skip"]


def read_json_documents(
    sources: Sequence[Source], column: str, shredding: Any, on_error: OnError, losses: Losses, **options: Any
) -> Stream:
    """Read JSON documents into a VARIANT column, one row per document."""
    from pqext.variant.json.faults import describe_fault
    from pqext.variant.json.files import read_json

    source: Any = [path if isinstance(path, str) else open_bytes(path) for path in sources]
    raises: Literal["raise", "null"] = "raise" if on_error == "stop" else "null"
    reader = read_json(source, column=column, shredding=shredding, on_error=raises, **options)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            for fault in reader.faults:
                losses.add(describe_fault(fault, fault.path))
            # Only invalid lines are null rows: JSON null is a variant value.
            yield batch.filter(batch.column(0).is_valid()) if on_error == "skip" and reader.faults else batch

    return Stream(reader.schema, batches())


def read_vector_layers(sources: Sequence[Source], layer: str | None) -> Stream:
    """Read one layer of each file through GDAL. All layers must have the same columns and CRS."""
    from pqext.geo.vector_files import open_file

    paths = [source for source in sources if isinstance(source, str) and "://" not in source]
    if len(paths) < len(sources):
        other = next(source for source in sources if source not in paths)
        raise ValueError(f"{name_of(other)}: GDAL reads local files only; copy the file to a local path")

    def batches(stack: ExitStack, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        with stack:
            yield from reader
        for path in paths[1:]:
            with open_file(path, layer=layer) as other:
                if not other.schema.equals(reader.schema, check_metadata=True):
                    reason = f"the columns or the CRS differ from {paths[0]}"
                    raise CorruptFileError(reason, path=path)
                yield from other

    stack = ExitStack()
    first = stack.enter_context(open_file(paths[0], layer=layer))
    return Stream(first.schema, batches(stack, first))


def read_parquet(sources: Sequence[Source], reading: ReaderOptions) -> Stream:
    """Read the rows of Parquet files. VARIANT columns are returned unshredded."""
    from pqext.dataset.reading import scan

    rows = scan(list(sources), limits=reading.limits, options=reading.options)
    return Stream(rows.schema, rows.to_batches())


def is_location(source: Source) -> TypeGuard[str | Location]:
    """Return whether ``source`` is a path or an object-store location, as opposed to an open file."""
    return not hasattr(source, "read")


def open_bytes(source: Source) -> Any:
    """Open a source and decompress its bytes while reading."""
    import pyarrow as pa

    if is_location(source):
        opened = open_stream(source)
        if isinstance(source, str) and isinstance(opened, io.FileIO) and opened.seekable():
            opened.close()
            return pa.OSFile(source)  # closes itself
        return opened
    file: Any = source
    codec = codec_of_content(file.peek(MARK_BYTES)) if hasattr(file, "peek") else None
    return file if codec is None else decompress(file, codec)


def name_of(source: Source) -> str:
    return str(source) if is_location(source) else "standard input"


def format_of(sources: Sequence[Source]) -> str:
    """Return the common format of ``sources``, by their extensions or first bytes. JSON is the default.

    Raises:
        ValueError: If the formats differ.
        UnsupportedError: If a format is not supported; the message contains advice.
    """
    formats: set[str] = set()
    for source in sources:
        suffix = suffix_of(str(source)) if is_location(source) else ""
        if suffix in _OTHER_SUFFIXES:
            raise _unsupported_error(_OTHER_SUFFIXES[suffix], source)
        format = _SUFFIXES.get(suffix)
        # The format of the first file decides whether the others are opened.
        if (format is None or suffix == ".json") and (source is sources[0] or formats != {"json"}):
            format = _format_of_content(source)
        formats.add(format or "json")
    if len(formats) > 1:
        raise ValueError(f"the inputs have several formats ({', '.join(sorted(formats))}); convert them separately")
    return formats.pop()


def format_of_name(path: str) -> str | None:
    """Return the format that the extension of a path identifies; None if the extension is unknown."""
    return _SUFFIXES.get(suffix_of(path))


def suffix_of(path: str) -> str:
    """Return the extension of a path in lower case, without the extension of a compression format."""
    stem, suffix = os.path.splitext(path)
    return os.path.splitext(stem)[1].lower() if suffix.lower() in CODECS else suffix.lower()


def _format_of_content(source: Source) -> str | None:
    """Detect Parquet, GeoJSON and GDAL formats by content. Raises ``UnsupportedError`` for unsupported formats."""
    head = _first_bytes(source)
    if head[:4] in (b"PAR1", b"PARE"):
        return "parquet"
    if head.startswith(_VECTOR_MARKS):
        return "vector"
    for mark, name in _OTHER_MARKS:
        if head.startswith(mark):
            raise _unsupported_error(name, source)
    return "geojson" if is_feature_collection(head) else None


def _first_bytes(source: Source) -> bytes:
    """Return the first bytes of a source without consuming them; empty if the source cannot be read twice."""
    if is_location(source):
        if isinstance(source, str) and not os.path.isfile(source):
            return b""  # a named pipe cannot be read twice
        opened = open_bytes(source)
        try:
            return bytes(opened.read(_HEAD_BYTES))
        finally:
            opened.close()
    peek = getattr(source, "peek", None)
    return b"" if peek is None else bytes(peek(_HEAD_BYTES))


def is_feature_collection(head: bytes) -> bool:
    """Return whether JSON text that begins with ``head`` is a GeoJSON FeatureCollection.

    >>> is_feature_collection(b'{"name": "a", "type": "FeatureCollection", "features": [')
    True
    >>> is_feature_collection(b'{"map": {"type": "FeatureCollection"}}')
    False
    """
    depth, key = 0, b""
    for match in _TOKEN.finditer(head.removeprefix(b"\xef\xbb\xbf")):
        token = match[0]
        if depth == 0 and token != b"{":
            return False
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            if not depth:
                return False
        elif depth == 1:
            if key == b'"type"' and token != b",":
                return token == b'"FeatureCollection"'
            key = b"" if key or token == b"," else token
    return False


def _unsupported_error(name: str, source: Source) -> UnsupportedError:
    return UnsupportedError(f"{name} is not supported: {_ADVICE[name]}", feature=name, path=name_of(source))
