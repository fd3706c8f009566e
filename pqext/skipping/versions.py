"""Which version of an object the facts of pqext's own part of a store are about: its size and etag beside the time."""

from __future__ import annotations

import pyarrow as pa

from pqext.skipping.format.metadata import IndexColumn

COLUMN = IndexColumn.of("object", ["obj_name"])
VERSION = COLUMN.name
TYPE = pa.struct([("size", pa.int64()), ("etag", pa.string())])

