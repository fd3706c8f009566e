"""Options of the reader and the writer: one name each, the same in Python, Spark and on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Compression = Literal["uncompressed", "snappy", "zstd"]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a file is read.

    ``shredded``: give shredded VARIANT columns as their storage structs instead of whole values.
    ``checksums``: verify a page's CRC where it has one. ``threads``: columns decoded at once, 0 for one
    a processor.
    """

    shredded: bool = False
    checksums: bool = True
    threads: int = 0


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a file is written.

    ``compression`` and ``dictionary`` take one value or a mapping from a leaf's dotted path.
    ``shredding`` maps a VARIANT column to its shredding schema (DDL, Arrow type or ``"infer"``),
    ``geometry`` maps a WKB column to its CRS. ``page_version`` is 1 or 2.
    """

    compression: Compression | Mapping[str, Compression] = "snappy"
    dictionary: bool | Mapping[str, bool] = True
    row_group_rows: int = 1 << 20
    page_rows: int = 20_000
    page_bytes: int = 1 << 20
    page_version: Literal[1, 2] = 1
    statistics: bool = True
    checksums: bool = True
    shredding: Mapping[str, Any] = field(default_factory=dict)
    geometry: Mapping[str, Any] = field(default_factory=dict)
    key_value_metadata: Mapping[str, str] = field(default_factory=dict)
