"""Files with VARIANT columns that no writer would make: plain structs by pyarrow, annotated afterwards."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import FileMetaData, LogicalType, VariantType


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, store_schema=False, **options)
    return out.getvalue()


def annotated(table: pa.Table, variants: Sequence[str] = ("v",), *, version: int | None = 1, **options: Any) -> bytes:
    """The table as a file in which every group called one of ``variants`` is annotated VARIANT."""

    def annotate(metadata: FileMetaData) -> None:
        for element in metadata.schema:
            if element.name in variants:
                element.logicalType = LogicalType(VARIANT=VariantType(specification_version=version))

    out = io.BytesIO()
    rewrite_footer(io.BytesIO(written(table, **options)), annotate, out)
    return out.getvalue()
