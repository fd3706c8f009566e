"""Coordinate reference systems: their representation in files, and their lookup with pyproj.

A file's CRS is unset or empty (``OGC:CRS84``), ``authority:code``, ``srid:<n>``, ``projjson:<property>`` or inline
PROJJSON; any other string is an unknown system. Coordinates are always x, y (longitude, latitude), regardless of the
axis order of the system. Spec: "Coordinate Reference System", "CRS Customization", "Coordinate axis order"
(Geospatial.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pqext.core.base.errors import GeometryError
from pqext.core.base.suggestions import did_you_mean, excerpt
from pqext.core.schema.types.geometries import crs_label

if TYPE_CHECKING:
    import pyproj

DEFAULT = "OGC:CRS84"
"""Default CRS of a column: longitude and latitude on the WGS84 datum."""

UNKNOWN = "srid:0"
"""CRS string for an unknown system."""

UNKNOWN_TO_SPARK = "SRID:0"
"""`UNKNOWN` in upper case, as Spark writes it; Spark's own reader rejects lower case."""

LONGITUDES = (-180.0, 180.0)
LATITUDES = (-90.0, 90.0)
SLACK = 1e-9
"""Tolerance in degrees, a tenth of a millimetre, for rounding errors of coordinates."""

_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*:[A-Za-z0-9_.-]+")
_CODES = re.compile(_AUTHORITY.pattern + r"(\+[A-Za-z0-9_.:-]+)?")  # possibly compound, with a vertical CRS
_WKT = re.compile(r"\s*[A-Z_]+\s*\[")
_URN = re.compile(r"urn:(?:x-)?ogc:def:crs:([A-Za-z][\w-]*):[\w.-]*:([\w.-]+)", re.IGNORECASE)
_URL = re.compile(r"https?://(?:www\.)?opengis\.net/def/crs/([A-Za-z][\w-]*)/[\w.-]+/([\w.-]+)", re.IGNORECASE)
_NUMBER = re.compile(r"\d{4,6}")
_CODE = re.compile(r"(EPSG|ESRI|OGC|SRID|WGS|CRS)\W*+(?=\w*\d)\w++", re.IGNORECASE)
_SRID = re.compile(r"srid:(\d{1,9})", re.IGNORECASE)
_WELL_KNOWN = frozenset({"EPSG:4326", "srid:4326"})  # recognised without loading pyproj
_AUTHORITIES = frozenset({"EPSG", "ESRI", "OGC", "IAU_2015", "IGNF", "NKG"})
_FILE = re.compile(r"init=|[@/\\]")
"""Characters of PROJ strings that may refer to a local file."""
_LONGEST = 1 << 20
_SHORT = 64 << 10
"""Maximum length of definitions in the large cache; longer definitions share a cache with two entries."""
_DEEPEST = 32


def normalize(crs: Any) -> str | None:
    """Return the string that represents ``crs`` in files; None for the default CRS, which files omit.

    ``crs`` is None, a string, an EPSG code, PROJJSON as a mapping, or a ``pyproj.CRS``. PROJJSON that
    only repeats the definition of its own identifier becomes ``authority:code``, which more readers support.
    Raises TypeError for other types, and GeometryError for invalid PROJJSON and for strings that are not valid UTF-8.
    """
    if crs is None:
        return None
    if isinstance(crs, int) and not isinstance(crs, bool):
        return f"EPSG:{crs}"
    if hasattr(crs, "to_json_dict"):
        crs = crs.to_json_dict()
    if isinstance(crs, Mapping):
        return _identify(dict(crs))
    if not isinstance(crs, str):
        raise TypeError(f"a CRS must be a string, PROJJSON or a pyproj.CRS, not {type(crs).__name__}")
    return _identify(_projjson(crs)) if is_projjson(crs) else storage_crs(crs)


def require(crs: Any, properties: Mapping[str, str] | None = None) -> str | None:
    """Normalise ``crs`` like :func:`normalize`, and raise GeometryError if pyproj cannot resolve the CRS.

    WKT, PROJ strings, names and other definitions that pyproj supports become an identifier or PROJJSON. Any
    ``srid:<n>`` is accepted, since a database may define it, and any ``projjson:<property>`` if ``properties`` is None.
    """
    text = normalize(crs)
    if text is None or _SRID.fullmatch(text) or (properties is None and text[:9].lower() == "projjson:"):
        return text
    if is_geographic(text, properties) is not None:
        return _identify(parse(text).to_json_dict()) if _WKT.match(text) else text
    reason = f": {hint}" if (hint := explain_mistake(text)) else ""
    if not is_projjson(text) and text[:9].lower() != "projjson:" and not _FILE.search(text):
        import pyproj

        try:
            return _identify(pyproj.CRS.from_user_input(text).to_json_dict())
        except pyproj.exceptions.CRSError:
            pass
    if text[:9].lower() == "projjson:":
        reason = f": key_value_metadata has no PROJJSON under {text[9:]!r}"
    remedy = "pass a code such as 'EPSG:4326', PROJJSON, or 'srid:0' if the CRS is unknown"
    raise GeometryError(f"CRS {excerpt(text, limit=80)!r} is unknown{reason}; {remedy}", rule="geo.crs.custom")


def storage_crs(crs: str | None) -> str | None:
    """Normalise the CRS string of a file; return None for the default CRS. Raises GeometryError if it is not UTF-8.

    OGC URNs and URLs and bare EPSG codes become ``authority:code``, with the authority in upper case, because Spark's
    own reader rejects ``epsg:4326``.
    """
    if crs is None:
        return None
    if not crs.isascii() and any("\ud800" <= character <= "\udfff" for character in crs):
        raise GeometryError("the CRS is not valid UTF-8", rule="geo.crs.custom")
    if crs[:1] in "uUhH0123456789":
        named = _URN.fullmatch(crs.strip()) or _URL.fullmatch(crs.strip())
        if named is not None:
            crs = f"{named[1].upper()}:{named[2]}"
        elif _NUMBER.fullmatch(crs.strip()):
            crs = f"EPSG:{crs.strip()}"
    authority, colon, code = crs.partition(":")
    if authority not in _AUTHORITIES and authority.strip().upper() in _AUTHORITIES:
        crs = authority.strip().upper() + colon + code
    return None if crs.strip().upper() in ("", DEFAULT) else crs


def explain_unknown(crs: str | None, properties: Mapping[str, str] | None = None) -> str | None:
    """Return the text of a warning that a file's CRS is unknown; None if the CRS is known.

    Identifiers such as ``EPSG:4326`` are not looked up, because that would load pyproj.
    """
    text = storage_crs(crs)
    if text is None or _SRID.fullmatch(text) or text.partition(":")[0].upper() in _AUTHORITIES:
        return None
    if is_geographic(text, properties) is not None:
        return None
    return f"the CRS {excerpt(crs_label(text), limit=80)!r} is unknown"


def inline_crs(crs: str | None, properties: Mapping[str, str] | None) -> str | None:
    """Normalise a CRS like :func:`storage_crs`, and replace ``projjson:<property>`` with the PROJJSON of the property.

    Spark's ``SRID:0`` becomes ``srid:0``.
    """
    result = storage_crs(crs)
    if result == UNKNOWN_TO_SPARK:
        return UNKNOWN
    if result is None or result[:9].lower() != "projjson:":
        return result
    text = (properties or {}).get(result[9:])
    try:
        return result if text is None else json.dumps(_projjson(text), separators=(",", ":"), ensure_ascii=False)
    except GeometryError:
        return result


def is_projjson(crs: str) -> bool:
    """Return whether the string begins like inline PROJJSON."""
    return crs.lstrip().startswith("{")


def to_geoarrow(crs: str | None) -> dict[str, Any]:
    """Return GeoArrow extension metadata for a CRS: ``crs`` and, if the CRS has a recognised format, ``crs_type``."""
    if crs is None:
        return {"crs": DEFAULT, "crs_type": "authority_code"}
    if is_projjson(crs):
        try:
            return {"crs": _projjson(crs), "crs_type": "projjson"}
        except GeometryError:
            return {"crs": crs}
    kind, _, identifier = crs.partition(":")
    if kind.lower() == "srid" and crs != UNKNOWN_TO_SPARK:
        return {"crs": identifier, "crs_type": "srid"}
    if kind.lower() != "projjson" and _AUTHORITY.fullmatch(crs):
        return {"crs": crs, "crs_type": "authority_code"}
    return {"crs": crs}


def to_projjson(crs: str | None, properties: Mapping[str, str] | None = None) -> dict[str, Any] | None:
    """Return a file's CRS as PROJJSON; None if the CRS is unknown."""
    try:
        text = resolve(crs, properties)
        return _projjson(text) if is_projjson(text) and _parse(text) else _parse(text).to_json_dict()
    except GeometryError:
        return None


def inline(crs: str | None, properties: Mapping[str, str] | None = None) -> str | None:
    """Return a file's CRS as PROJJSON text. The default CRS and unknown systems are returned unchanged."""
    definition = None if crs is None else to_projjson(crs, properties)
    return crs if definition is None else json.dumps(definition, separators=(",", ":"), ensure_ascii=False)


def _identify(projjson: dict[str, Any]) -> str | None:
    identifier = projjson.get("id")
    try:
        text = json.dumps(projjson, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise GeometryError(f"the CRS is not PROJJSON: {error}", rule="geo.crs.projjson") from None
    if isinstance(identifier, dict) and isinstance(identifier.get("authority"), str):
        short = f"{identifier['authority']}:{identifier.get('code')}"
        if equal(text, short):
            return normalize(short)
    return storage_crs(text)


def _projjson(text: str) -> dict[str, Any]:
    if len(text) > _LONGEST:
        message = f"the CRS has {len(text)} characters, more than the maximum of {_LONGEST}"
        raise GeometryError(message, rule="geo.crs.custom")
    try:
        document = json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise GeometryError(f"the CRS is not valid JSON: {error}", rule="geo.crs.projjson") from None
    level, depth = [document], 0
    while level:  # PROJ parses nested objects recursively
        level = [child for node in level if isinstance(node, (dict, list)) for child in _children(node)]
        depth += 1
    if not isinstance(document, dict) or depth > _DEEPEST:
        raise GeometryError(f"the CRS is not a JSON object of at most {_DEEPEST} levels", rule="geo.crs.projjson")
    return document


def _reject_constant(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def _children(node: dict[str, Any] | list[Any]) -> list[Any]:
    return list(node.values()) if isinstance(node, dict) else node


def resolve(crs: str | None, properties: Mapping[str, str] | None = None) -> str:
    """Resolve ``crs`` to a definition or an identifier that pyproj can look up.

    ``properties`` is the key-value metadata of the file or table, which contains the value of ``projjson:<property>``.
    An SRID is interpreted as the EPSG code of the same number. Raises GeometryError if the property is missing, or the
    SRID is 0 (unknown).
    """
    crs = storage_crs(crs)
    if crs is None:
        return DEFAULT
    if crs[:9].lower() == "projjson:":
        result = (properties or {}).get(crs[9:])
        if result is None:
            raise GeometryError(f"CRS {crs!r}: the key-value metadata has no {crs[9:]!r}", rule="geo.crs.projjson")
        return result
    srid = _SRID.fullmatch(crs)
    if srid is None:
        return crs
    if int(srid[1]) == 0:
        raise GeometryError("SRID 0 means that the CRS is unknown", rule="geo.crs.srid")
    return f"EPSG:{int(srid[1])}"


def parse(crs: str | None, properties: Mapping[str, str] | None = None) -> pyproj.CRS:
    """Return the pyproj CRS for the CRS string of a file. Raises GeometryError if the CRS is unknown."""
    return _parse(resolve(crs, properties))


def _parse(text: str) -> pyproj.CRS:
    result = _parsed(text) if len(text) <= _SHORT else _parsed_long(text)
    if isinstance(result, str):
        raise GeometryError(f"the CRS cannot be parsed: {result}", rule="geo.crs.custom")
    return result


def _read(text: str) -> pyproj.CRS | str:
    """Return the pyproj CRS of a definition, or the reason that pyproj cannot parse the definition.

    Reasons are cached like CRSs, because PROJ takes milliseconds to find a reason.
    """
    import pyproj

    try:
        if is_projjson(text):
            return pyproj.CRS.from_json_dict(_projjson(text))
        # PROJ strings and names are not allowed in Parquet, and can name local files.
        if len(text) <= _LONGEST and (_CODES.fullmatch(text) or _WKT.match(text)):
            string = pyproj.CRS.from_string(text)
            if string.is_compound or "+" not in text or not _CODES.fullmatch(text):
                return string
    except pyproj.exceptions.CRSError as error:
        return str(error)
    return repr(text[:80])


_parsed = lru_cache(maxsize=256)(_read)
_parsed_long = lru_cache(maxsize=2)(_read)


def equal(first: str | None, second: str | None, properties: Mapping[str, str] | None = None) -> bool:
    """Return whether two CRS strings identify the same system, ignoring axis order.

    Unknown systems are equal if their strings are equal.
    """
    try:
        texts = [resolve(crs, properties) for crs in (first, second)]
        if texts[0] == texts[1]:
            return True
        return bool(_parse(texts[0]).equals(_parse(texts[1]), ignore_axis_order=True))
    except GeometryError:
        return first == second


def is_geographic(crs: str | None, properties: Mapping[str, str] | None = None) -> bool | None:
    """Return whether the coordinates are longitudes and latitudes; None if the CRS is unknown."""
    if storage_crs(crs) is None or crs in _WELL_KNOWN:
        return True
    try:
        return bool(parse(crs, properties).is_geographic)
    except GeometryError:
        return None


def explain_mistake(crs: str | None) -> str | None:
    """Explain the probable mistake in an unknown CRS. Returns None if the CRS may be a private system."""
    if crs is None or _SRID.fullmatch(crs):
        return None
    if is_projjson(crs) or _WKT.match(crs):
        return "it is a definition that cannot be read"
    if "proj=" in crs:
        return "Parquet does not support PROJ strings"
    authority, colon, code = crs.partition(":")
    if not colon:
        return "it lacks the colon of authority:code" if _CODE.fullmatch(crs) else None
    if authority.lower() == "projjson":
        return None
    from pyproj.database import get_authorities

    known = [*get_authorities(), "SRID", "projjson"]
    if authority.upper() in known:
        return f"{authority} has no code {excerpt(code, limit=80)!r}"
    return did_you_mean(authority, known).removeprefix("; ") or None
