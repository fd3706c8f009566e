"""How a store names objects and the table that they belong to. Spec: document 001, version 0, per-index columns."""

from __future__ import annotations

import hashlib
import posixpath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.errors import CorruptFileError
from pqext.core.io.sources.locations import Location

_MOST_DIGITS = 18
"""Digits that 64 bits hold in any case; these milliseconds end in the year 31,690,708."""


def object_name(path: str, modified_ms: int) -> str:
    """The name of an object: its path and the time of its last change, in milliseconds since 1970.

    >>> object_name("/data/a#b.parquet", 1620676090000)
    '/data/a#b.parquet#1620676090000'
    """
    return f"{path}#{modified_ms}"


def parse_object_name(text: str) -> tuple[str, int]:
    """The path and the time of :func:`object_name`; a path may hold ``#``, the last one counts.

    Raises ``CorruptFileError`` where no time stands behind it.
    """
    path, found, digits = text.rpartition("#")
    number = digits.removeprefix("-")
    if not found or not number.isascii() or not number.isdigit() or len(number) > _MOST_DIGITS:
        raise CorruptFileError(f"{text!r} names no object: behind the last '#' belongs a time in milliseconds")
    return path, int(digits)


def split_object_names(names: pa.Array) -> tuple[pa.Array, NDArray[np.int64]]:
    """The paths and times of many names at once, as :func:`parse_object_name` reads each.

    Raises ``CorruptFileError`` for a name that is null or has no time; it says which.
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
    if times is None:  # one of the names is the reason
        found = [parse_object_name(name) for name in names.to_pylist()]
        return pa.array([path for path, _ in found], names.type), np.array([time for _, time in found], np.int64)
    return pc.list_element(parts, 0), np.asarray(times, np.int64)


def table_identifier(uri: str) -> str:
    """The identifier of the table whose files lie in the folder at ``uri``, a path or a URL.

    The path without scheme, host and slashes at its end; of a ``cos://`` URL the bucket without the name of the
    service, then the path. As in Hadoop's paths, ``%`` stands for itself.

    >>> table_identifier("s3a://bucket/tables/weather/"), table_identifier("cos://bucket.service/weather")
    ('/tables/weather', 'bucket/weather')
    """
    scheme, found, rest = uri.partition("://")
    if not found:
        scheme, colon, path = uri.partition(":")
        return _bare(path if colon and scheme == "file" else uri)
    host, slash, path = rest.partition("/")
    if scheme.lower() == "cos":
        return _bare((host.rpartition(".")[0] or host) + slash + path)
    return _bare(slash + path)


def default_location(base: Any, identifier: str) -> Any:
    """Where the store of a table lies below the folder ``base``, a path or a :class:`Location`, and of its kind."""
    name = hashlib.sha256(identifier.encode()).hexdigest()
    if isinstance(base, Location):
        return base.at(posixpath.join(base.key, name))
    return posixpath.join(base, name)


def _bare(path: str) -> str:
    return path.rstrip("/")
