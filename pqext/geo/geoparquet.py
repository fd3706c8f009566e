"""GeoParquet metadata: the description of geometry columns in a file's key-value metadata, read and merged.

Versions before 2.0 describe plain columns of WKB or of coordinates; 2.0 describes columns of the format's own types.
:mod:`pqext.geo.geoparquet` writes 2.0, :mod:`pqext.geo.geoparquet_types` turns descriptions into types.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pqext.core.base.errors import GeometryError
from pqext.core.format.metadata import Type
from pqext.core.schema.types.geometries import NAMES
from pqext.geo import crs as crs_
from pqext.geo.box import BoundingBox
from pqext.geo.covering import BOUNDS
from pqext.geo.summary import merge, union
from pqext.geo.types import GeospatialType

if TYPE_CHECKING:
    from pqext.core.format.metadata import ColumnMetaData
    from pqext.core.schema.annotations import WrittenColumn
    from pqext.core.schema.facts import RowGroupFacts
    from pqext.core.schema.nodes import SchemaNode

KEY = "geo"
VERSION = "2.0.0"
LONGEST = 16 << 20
_SHORT = 64 << 10
"""Characters of texts of which many are remembered, for many row groups ask for the same; of longer ones the last."""
_MEANING = {"encoding": None, "crs": "OGC:CRS84", "edges": "planar", "epoch": None}
"""What a column is, whichever rows it holds, with what is meant where it is left out."""


def of_type(type: GeospatialType, properties: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the encoding, CRS and edges that describe a column of ``type``."""
    found: dict[str, Any] = {"encoding": "WKB"}
    if type.crs is not None:
        found["crs"] = crs_.to_projjson(type.crs, properties)
    if not type.planar:
        found["edges"] = type.edges
    return found


def numbers(box: BoundingBox) -> list[Any]:
    """Return a box as GeoParquet has it: all minima, then all maxima, with Z but without M."""
    low, high = [box.xmin, box.ymin, box.zmin], [box.xmax, box.ymax, box.zmax]
    depth = 2 if box.zmin is None else 3
    return low[:depth] + high[:depth]


def described(text: str) -> dict[str, Mapping[str, Any]]:
    """What ``text``, the value of the key, says of each column. Raises GeometryError unless it is GeoParquet's JSON."""
    if len(text) > LONGEST:
        raise GeometryError(f"GeoParquet metadata of {len(text)} characters, more than {LONGEST}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GeometryError(f"GeoParquet metadata is not JSON: {error}") from None
    columns = found.get("columns") if isinstance(found, dict) else None
    if not isinstance(columns, dict) or not all(isinstance(about, dict) for about in columns.values()):
        raise GeometryError("GeoParquet metadata does not describe columns")
    return columns


def crs_of(crs: Any) -> str | None:
    """The file's string for a CRS in PROJJSON, or WKT as the first versions had it; null is one that nobody knows."""
    if crs is None:
        return crs_.UNKNOWN
    if not isinstance(crs, (dict, str)):
        raise GeometryError(f"GeoParquet metadata has a CRS of type {type(crs).__name__}")
    try:
        return crs_.normalize(crs if isinstance(crs, str) else json.dumps(crs))
    except RecursionError:
        raise GeometryError("GeoParquet metadata has a CRS that nests too deep") from None


def of_columns(
    text: str, find: Callable[[Sequence[str]], SchemaNode | None], properties: Mapping[str, str] | None = None
) -> str | None:
    """Return the metadata of the columns that ``find`` returns, for other rows: without boxes, with types unknown.

    The CRS and edges are those of the columns' types. None if there is none of the columns. Text that is not
    GeoParquet's JSON is returned as it is.
    """
    try:
        columns = described(text)
    except GeometryError:
        return text
    kept: dict[str, dict[str, Any]] = {}
    is_native = True
    for name, about in columns.items():
        node = find((name,))
        if node is None:
            continue
        kept[name] = {key: [] if key == "geometry_types" else about[key] for key in about if key != "bbox"}
        if not all(find(path) is not None for path in _bounds(about).values() if _is_path(path)):
            del kept[name]["covering"]
        if node.logical_name in ("GEOMETRY", "GEOGRAPHY") and node.logical_type is not None:
            type = GeospatialType.from_logical_type(node.logical_type, properties)
            others = {key: value for key, value in kept[name].items() if key not in ("encoding", "crs", "edges")}
            kept[name] = {**of_type(type, properties), **others}
        else:
            is_native = False
    found = {**json.loads(text), "columns": kept}
    if is_native and "version" in found:
        found["version"] = VERSION
    if found.get("primary_column") not in [*kept]:
        found["primary_column"] = next(iter(kept), None)
    return json.dumps(found, separators=(",", ":")) if kept else None


def merged(values: Sequence[str | None]) -> str:
    """What the metadata of several files with one schema say of all their rows; None is a file without.

    What only some of them say is left out, of the columns that the first describes, but for what a column is. Boxes
    are united; where one has no Z the union has none. Raises ValueError where CRS, encodings, edges or epochs differ.
    """
    told = list(dict.fromkeys(values))
    readable = [_columns(text) for text in told]
    first = next((text for text, columns in zip(told, readable, strict=True) if text and columns), None)
    if first is None or len(told) == 1:
        return next(text for text in told if text)
    try:
        kept = {name: _of_all(name, [columns.get(name, {}) for columns in readable]) for name in described(first)}
        return json.dumps({**json.loads(first), "columns": kept}, separators=(",", ":"))
    except RecursionError:
        raise GeometryError("GeoParquet metadata nests too deep") from None


def _columns(text: str | None) -> Mapping[str, Mapping[str, Any]]:
    try:
        return described(text) if text else {}
    except GeometryError:
        return {}


def _of_all(name: str, told: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What holds of a column in all files; an empty mapping is of a file that does not tell of it."""
    given = [about for about in told if about]
    whole = dict(given[0]) if given else {}
    for about in given[1:]:
        differing = [key for key, default in _MEANING.items() if about.get(key, default) != whole.get(key, default)]
        if differing and not (differing == ["crs"] and _same_crs(about, whole)):
            raise ValueError(f"the files' GeoParquet metadata give column {name!r} another {differing[0]} each")
    kept = {key: value for key, value in whole.items() if key in _MEANING or all(a.get(key) == value for a in told)}
    kept["geometry_types"] = _all_types([about.get("geometry_types") for about in told])
    kept.pop("bbox", None)
    found = [box for about in told if (box := box_of(about)) is not None]
    try:
        geographic = GeospatialType(crs_of(whole["crs"]) if "crs" in whole else None).geographic
    except GeometryError:
        geographic = False
    if len(found) < len(told):
        return kept
    if any(box.zmin is None for box in found):
        found = [replace(box, zmin=None, zmax=None) for box in found]
    box = union(found, geographic)
    return kept if box is None else {**kept, "bbox": numbers(box)}


def _same_crs(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    try:
        first, second = (crs_of(about["crs"]) if "crs" in about else None for about in (one, other))
        return crs_.equal(first, second)
    except GeometryError:
        return False


def _all_types(told: Sequence[Any]) -> list[str]:
    """The types of all files; empty, unknown, where one of them does not tell."""
    if not all(isinstance(names, list) and names and all(isinstance(name, str) for name in names) for names in told):
        return []
    return sorted({name for names in told for name in names}, key=lambda name: (name[-2:] == " Z", name))


def primary_column(text: str) -> str | None:
    """The column that ``text`` calls the primary one; None where it names none or is damaged."""
    try:
        described(text)
    except GeometryError:
        return None
    found = json.loads(text).get("primary_column")
    return found if isinstance(found, str) else None


def boxes(text: str) -> dict[str, BoundingBox]:
    """The boxes that the metadata gives to columns; none where it is damaged."""
    return {name: box for name, about in _columns(text).items() if (box := box_of(about)) is not None}


def box_of(about: Mapping[str, Any]) -> BoundingBox | None:
    """The box of a column's description, with Z where that has it."""
    try:
        numbers = [float(number) for number in about.get("bbox", ())]
    except (TypeError, ValueError, OverflowError):
        return None
    if len(numbers) not in (4, 6, 8):
        return None
    low, high = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
    z = (low[2], high[2]) if len(low) > 2 and math.isfinite(low[2]) and math.isfinite(high[2]) else (None, None)
    return BoundingBox(low[0], high[0], low[1], high[1], *z)


def covering_box(row_group: RowGroupFacts, node: SchemaNode, geographic: bool) -> BoundingBox | None:
    """A box around the geometries with coordinates in a row group's chunk of ``node``, by its covering columns.

    ``None`` where the file's metadata names none or their statistics do not tell, a wrapping box among them first of
    all. Bounds kept as floats may have been rounded either way, so they are taken one float wider.
    """
    text = row_group.file_property(KEY)
    paths = coverings(text).get(node.name) if text and len(node.path) == 1 else None
    nulls = row_group.chunk(node).bounds().null_count
    if paths is None or nulls is None:
        return None
    low, high = [], []
    for path in paths:
        leaf = row_group.schema.find(path)
        if leaf is None or leaf.max_repetition_level or leaf.physical_type not in (Type.FLOAT, Type.DOUBLE):
            return None
        found = row_group.chunk(leaf).bounds()
        if found.null_count != nulls or not isinstance(found.minimum, float) or not isinstance(found.maximum, float):
            return None
        single = leaf.physical_type == Type.FLOAT
        low.append(_beyond(found.minimum, -math.inf) if single else found.minimum)
        high.append(_beyond(found.maximum, math.inf) if single else found.maximum)
    box = BoundingBox(low[0], high[2], low[1], high[3])
    if not box.usable or box.wraps or (geographic and (low[0] > low[2] or high[2] < high[0])):
        return None  # some row has its west above its east
    if geographic and box.width >= 180:  # a box that wraps, with its west among wests and its east among easts
        return replace(box, xmin=min(box.xmin, -180.0), xmax=max(box.xmax, 180.0))
    return box


def _beyond(value: float, towards: float) -> float:
    return float(np.nextafter(np.float32(value), np.float32(towards)))


def encoding_of(text: str, column: str) -> str:
    """Return the encoding that the metadata gives to a column; an empty string if it gives none."""
    encodings = _encodings(text) if len(text) <= _SHORT else _read_encodings(text)
    return encodings.get(column, "")


def coverings(text: str) -> dict[str, list[tuple[str, ...]]]:
    """The paths of xmin, ymin, xmax and ymax for each column that has a covering; none in text that is damaged."""
    return _coverings(text) if len(text) <= _SHORT else _coverings_of_long(text)


def _read_coverings(text: str) -> dict[str, list[tuple[str, ...]]]:
    try:
        columns = described(text)
    except GeometryError:
        return {}
    return {name: paths for name, about in columns.items() if (paths := covering_of(about))}


def _read_encodings(text: str) -> dict[str, str]:
    return {name: str(about.get("encoding", "")) for name, about in _columns(text).items()}


_encodings = lru_cache(maxsize=64)(_read_encodings)
_coverings = lru_cache(maxsize=64)(_read_coverings)
_coverings_of_long = lru_cache(maxsize=1)(_read_coverings)


def covering_of(about: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The paths of xmin, ymin, xmax and ymax in a column's description; none where it has no covering."""
    paths = [_bounds(about).get(bound) for bound in BOUNDS]
    return [tuple(path) for path in paths if path is not None] if all(map(_is_path, paths)) else []


def _bounds(about: Mapping[str, Any]) -> Mapping[str, Any]:
    covering = about.get("covering")
    box = covering.get("bbox") if isinstance(covering, dict) else None
    return box if isinstance(box, dict) else {}


def _is_path(path: Any) -> bool:
    return isinstance(path, list) and all(isinstance(part, str) for part in path)


def metadata(
    columns: Sequence[tuple[WrittenColumn, GeospatialType]], primary: str | bool, properties: Mapping[str, str]
) -> str:
    """Return the JSON that describes ``columns``, top-level geometry columns of a file.

    ``primary`` names the primary column; True is the first. Raises ValueError if ``primary`` is not one of the columns.
    """
    names = [column.node.name for column, _ in columns]
    if primary is True:
        primary = names[0]
    if primary not in names:
        raise ValueError(f"geoparquet names column {primary!r}; the geometry columns are {', '.join(names)}")
    about = {column.node.name: _column(column, type, properties) for column, type in columns}
    return json.dumps({"version": VERSION, "primary_column": primary, "columns": about}, separators=(",", ":"))


def _column(column: WrittenColumn, type: GeospatialType, properties: Mapping[str, str]) -> dict[str, Any]:
    box, codes = (None, []) if column.encrypted else _statistics(column.chunks, type)
    found = {**of_type(type, properties), "geometry_types": [NAMES[code] for code in codes]}
    if box is not None:
        found["bbox"] = numbers(box)
    if column.derived is not None:  # not part of 2.0, but readers of 1.1 prune by it
        found["covering"] = {"bbox": {bound: [column.derived, bound] for bound in BOUNDS}}
    return found


def _statistics(chunks: Sequence[ColumnMetaData], type: GeospatialType) -> tuple[BoundingBox | None, list[int]]:
    """The box and the types of all chunks; chunks of nothing but nulls have no part in them."""
    told = [
        chunk.geospatial_statistics
        for chunk in chunks
        if chunk.geospatial_statistics is not None
        or chunk.statistics is None
        or chunk.statistics.null_count != chunk.num_values
    ]
    if not told:
        return None, []
    whole = merge(told, type.crs)
    box = BoundingBox.from_metadata(whole.bbox) if whole.bbox is not None else None
    return box, list(whole.geospatial_types or [])
