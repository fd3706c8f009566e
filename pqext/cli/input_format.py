"""Detect the format of the inputs of ``pqext convert``, with advice for unsupported formats."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from pqext.cli.inputs import Source, is_location, name_of, open_bytes
from pqext.core.base.errors import UnsupportedError
from pqext.core.io.sources.streams import CODECS

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
    """Return the first bytes of a source without consuming them; empty if they cannot be read twice."""
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
