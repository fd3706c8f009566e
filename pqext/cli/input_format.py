"""The format of inputs of ``pqext convert``, by their names and first bytes, and advice for formats that it lacks."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from enum import StrEnum

from pqext.cli.inputs import Source, is_place, name_of, open_bytes
from pqext.core.base.errors import UnsupportedError
from pqext.core.io.sources.streams import CODECS

_SUFFIXES = {
    ".parquet": "parquet", ".parq": "parquet", ".csv": "csv", ".tsv": "csv", ".tab": "csv",
    ".json": "json", ".jsonl": "json", ".ndjson": "json", ".geojson": "geojson", ".geojsonl": "geojson",
    ".geojsons": "geojson", ".geojsonseq": "geojson",
}
_MAPS = (
    "ogr2ogr -t_srs OGC:CRS84 out.geojson IN makes GeoJSON of it, and in Python "
    "pqext.geo.write_geopandas(geopandas.read_file(path), dest) writes Parquet"
)
_OTHERS = {
    "GeoPackage": _MAPS, "FlatGeobuf": _MAPS, "shapefile": _MAPS, "KML": _MAPS, "GML": _MAPS,
    "Arrow": "in Python pqext.write_table(pyarrow.feather.read_table(path), dest) writes Parquet",
    "ORC": "in Python pqext.write_table(pyarrow.orc.read_table(path), dest) writes Parquet",
    "Avro": "in Python pqext.write_table(polars.read_avro(path).to_arrow(), dest) writes Parquet",
    "Excel": "save it as CSV, or in Python use pandas.read_excel and pqext.write_table",
    "ZIP": "unpack it",
}  # fmt: skip
"""Formats that are not read, and what to do with them."""
_OTHER_SUFFIXES = {
    ".gpkg": "GeoPackage", ".fgb": "FlatGeobuf", ".shp": "shapefile", ".dbf": "shapefile", ".shx": "shapefile",
    ".kml": "KML", ".kmz": "KML", ".gml": "GML", ".arrow": "Arrow", ".feather": "Arrow", ".ipc": "Arrow", ".orc": "ORC",
    ".avro": "Avro", ".xlsx": "Excel", ".xls": "Excel", ".zip": "ZIP",
}
_OTHER_MARKS = (
    (b"SQLite format 3\0", "GeoPackage"), (b"fgb\x03", "FlatGeobuf"), (b"\0\0\x27\x0a", "shapefile"),
    (b"ARROW1", "Arrow"), (b"ORC", "ORC"), (b"Obj\x01", "Avro"), (b"PK\x03\x04", "ZIP"),
)  # fmt: skip
_HEAD_BYTES = 1 << 16
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],]')


class Format(StrEnum):
    """Format of the inputs."""

    json = "json"
    csv = "csv"
    geojson = "geojson"
    parquet = "parquet"


def format_of(sources: Sequence[Source]) -> Format:
    """The format of all ``sources``: by the ends of their names, else by their first bytes, else JSON.

    Raises ``ValueError`` if they differ, and ``UnsupportedError`` for files of other formats, with what to do.
    """
    names: set[str] = set()
    for source in sources:
        suffix = suffix_of(str(source)) if is_place(source) else ""
        if suffix in _OTHER_SUFFIXES:
            raise _unsupported(_OTHER_SUFFIXES[suffix], source)
        found = _SUFFIXES.get(suffix)
        # The format of the first file decides whether the others are opened.
        if (found is None or suffix == ".json") and (source is sources[0] or names != {"json"}):
            found = _format_of_content(source)
        names.add(found or "json")
    if len(names) > 1:
        raise ValueError(f"the inputs are of several formats ({', '.join(sorted(names))}): convert them one by one")
    return Format(names.pop())


def named_format(path: str) -> Format | None:
    """Return the format of a file by its suffix, None if the suffix is not known."""
    found = _SUFFIXES.get(suffix_of(path))
    return None if found is None else Format(found)


def suffix_of(path: str) -> str:
    """The end of the name in lower case, without that of a compressed file."""
    stem, suffix = os.path.splitext(path)
    return os.path.splitext(stem)[1].lower() if suffix.lower() in CODECS else suffix.lower()


def _format_of_content(source: Source) -> str | None:
    """Parquet or GeoJSON, if a file is evidently that; ``UnsupportedError`` for files of formats that are not read."""
    head = _head(source)
    if head[:4] in (b"PAR1", b"PARE"):
        return "parquet"
    for mark, name in _OTHER_MARKS:
        if head.startswith(mark):
            raise _unsupported(name, source)
    return "geojson" if is_feature_collection(head) else None


def _head(source: Source) -> bytes:
    """The first bytes of a file, which stay to be read."""
    if is_place(source):
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
    """Whether JSON that begins with ``head`` is an object of type FeatureCollection.

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


def _unsupported(name: str, source: Source) -> UnsupportedError:
    return UnsupportedError(f"{name} is not read: {_OTHERS[name]}", feature=name, path=name_of(source))
