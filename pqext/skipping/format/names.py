"""Names in a store: index columns, partition columns, objects, and the table."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.errors import CorruptFileError
from pqext.core.io.sources.locations import Location

LATEST = 4
"""The version that pqext writes."""
OBJECT_NAME = "obj_name"
PARTITION_PREFIX = "virtual_"


def index_column(columns: Sequence[str], index: str, version: int = LATEST) -> str:
    """Return the name of the store column that contains an index of type ``index`` on ``columns``.

    Raises ``ValueError`` for empty columns or an unsupported version.

    >>> index_column(["nest.a.B"], "minmax")
    'nest$#$a$#$b_minmax_12'
    >>> index_column(["a", "b"], "minmax", version=1)
    'a_b_minmax'
    """
    if not columns:
        raise ValueError(f"the index {index!r} has no columns")
    if not 0 <= version <= LATEST:
        raise ValueError(f"unknown store version {version}: versions are 0 to {LATEST}")
    names = [column.lower() for column in columns]
    index = index.lower()
    if version < 2:
        return f"{(':', '_')[version].join(names)}_{index}"
    escaped = [name.replace("#", "##").replace(".", "$#$") for name in names]
    return f"{'_'.join(escaped)}_{index}_{'-'.join(str(_utf16_length(name)) for name in escaped)}"


def partition_column(name: str) -> str:
    """Return the name of the store column for the partition column ``name``."""
    return PARTITION_PREFIX + name


def check_names(partitions: Iterable[str], indexes: Mapping[str, str]) -> None:
    """Raise ``ValueError`` if names of store columns are ambiguous, ignoring case.

    ``partitions`` are the dataset's partition columns. ``indexes`` maps each index column to a description of the index
    for errors. Names are ambiguous if two columns share a name, or if the name of an index column is a prefix of
    another: xskipper uses prefixes to find the columns that a key encrypts.
    """
    names = {OBJECT_NAME: "the names of the objects"}
    described = [(partition_column(name), f"the partition column {name!r}") for name in partitions]
    for name, description in [*described, *indexes.items()]:
        other = names.setdefault(name.lower(), description)
        if other is not description:
            raise ValueError(f"{description} and {other} would have the same store column {name!r}: remove either")
    before = ""
    for name in sorted(indexes):  # sorting places a name directly after its prefix, or after names with the same prefix
        if before and name.startswith(before):
            raise ValueError(
                f"the names of two index columns are ambiguous in the store: {before!r} ({indexes[before]}) "
                f"is a prefix of {name!r} ({indexes[name]}); remove one of the indexes"
            )
        before = name


def _utf16_length(name: str) -> int:
    """Return the length of a name in UTF-16 code units, as in Java."""
    return len(name.encode("utf-16-le", "surrogatepass")) // 2


def format_path(path: Sequence[str]) -> str:
    """Join a column path with dots. Names that contain a dot are enclosed in backticks, as in Spark.

    >>> format_path(["place", "city"]), format_path(["place.city"])
    ('place.city', '`place.city`')
    """
    return ".".join("`" + name.replace("`", "``") + "`" if set("`.") & set(name) else name for name in path)


def parse_path(dotted_path: str) -> tuple[str, ...]:
    """Parse a column path of a store. Raises ``ValueError`` for unmatched backticks.

    >>> parse_path("place.city"), parse_path("`place.city`")
    (('place', 'city'), ('place.city',))
    """
    if "`" not in dotted_path:
        return tuple(dotted_path.split("."))
    matches = list(_NAMES.finditer(dotted_path))
    if "".join(match[0] for match in matches) != dotted_path or not matches or matches[-1][2]:
        raise ValueError(f"unmatched backticks in the column name {dotted_path!r}")
    return tuple(match[1][1:-1].replace("``", "`") if match[1][:1] == "`" else match[1] for match in matches)


_NAMES = re.compile("(`(?:[^`]|``)+`|[^`.]+)([.]|$)")


_MOST_DIGITS = 18
"""Maximum number of digits that always fit into 64 bits; these milliseconds end in the year 31,690,708."""


def object_name(path: str, modified_ms: int) -> str:
    """Return the name of an object: its path and its modification time, in milliseconds since 1970.

    >>> object_name("/data/a#b.parquet", 1620676090000)
    '/data/a#b.parquet#1620676090000'
    """
    return f"{path}#{modified_ms}"


def parse_object_name(text: str) -> tuple[str, int]:
    """Split an object name into path and time at the last ``#``, because a path may contain ``#``.

    Raises ``CorruptFileError`` if the name has no time.
    """
    path, separator, digits = text.rpartition("#")
    number = digits.removeprefix("-")
    if not separator or not number.isascii() or not number.isdigit() or len(number) > _MOST_DIGITS:
        raise CorruptFileError(f"{text!r} is not an object name: it must end with '#' and a time in milliseconds")
    return path, int(digits)


def split_object_names(names: pa.Array) -> tuple[pa.Array, NDArray[np.int64]]:
    """Split an array of object names into paths and times; see :func:`parse_object_name`.

    Raises ``CorruptFileError``, with the name or row, if a name is null or has no time.
    """
    if isinstance(names, pa.ChunkedArray):
        names = names.combine_chunks()
    if names.null_count:
        row = np.flatnonzero(np.asarray(names.is_null()))[0]
        raise CorruptFileError(f"row {row} has no object name")
    parts = pc.split_pattern(names, "#", max_splits=1, reverse=True)
    try:
        digits = pc.list_element(parts, 1)
        bare = pc.ascii_ltrim(digits, characters="-")
        is_number = pc.and_(pc.ascii_is_decimal(bare), pc.less_equal(pc.binary_length(bare), _MOST_DIGITS))
        times = digits.cast(pa.int64()) if pc.all(is_number).as_py() else None
    except pa.ArrowException:
        times = None
    if times is None:  # raises an error for the invalid name
        pairs = [parse_object_name(name) for name in names.to_pylist()]
        return pa.array([path for path, _ in pairs], names.type), np.array([time for _, time in pairs], np.int64)
    return pc.list_element(parts, 0), np.asarray(times, np.int64)


def table_identifier(uri: str) -> str:
    """Return the identifier that a store records for the table in the folder ``uri``, a path or a URL.

    The identifier is the path without scheme, host and trailing slashes. For a ``cos://`` URL, it is the bucket without
    the service name, followed by the path. As in Hadoop's paths, ``%`` is not decoded.

    >>> table_identifier("s3a://bucket/tables/weather/"), table_identifier("cos://bucket.service/weather")
    ('/tables/weather', 'bucket/weather')
    """
    scheme, separator, rest = uri.partition("://")
    if not separator:
        scheme, colon, path = uri.partition(":")
        return _strip_slashes(path if colon and scheme == "file" else uri)
    host, slash, path = rest.partition("/")
    if scheme.lower() == "cos":
        return _strip_slashes((host.rpartition(".")[0] or host) + slash + path)
    return _strip_slashes(slash + path)


def default_location(base: Any, identifier: str) -> Any:
    """Return the location of a table's store below ``base``, a path or a :class:`Location` of a folder."""
    name = hashlib.sha256(identifier.encode()).hexdigest()
    if isinstance(base, Location):
        return base.with_key(posixpath.join(base.key, name))
    return posixpath.join(base, name)


def _strip_slashes(path: str) -> str:
    return path.rstrip("/")
