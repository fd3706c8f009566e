"""Describe a file's layout for the report, from its footer."""

from __future__ import annotations

from pathlib import Path

from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.inspection import Column, inspect
from pqext.report.model import Box, Chunk, FilePicture, RowGroup
from pqext.variant.shredding.schema import schema_of_storage


def describe_layout(path: Path, label: str, name: str, column: str, geometry: str) -> FilePicture:
    """Describe the row groups of a file, their boxes in column ``geometry`` and the shredding of VARIANT ``column``."""
    with ParquetFile(path, ReadOptions(shredded=True)) as file:
        footer = file.footer.length
        schema = str(schema_of_storage(file.arrow_schema.field(column).type))
    report = inspect(path)
    leaves = [field for field in report.schema if field.column is not None]
    groups = tuple(
        RowGroup(
            group.index,
            group.rows,
            next((_box(column) for column in group.columns if column.path == (geometry,)), None),
            tuple(_chunk(column) for column in group.columns),
        )
        for group in report.row_groups
    )
    columns = tuple(".".join(leaf.path) for leaf in leaves)
    return FilePicture(label, name, report.size, columns, groups, schema, footer)


def _chunk(column: Column) -> Chunk:
    return Chunk(
        column.compressed,
        column.uncompressed,
        column.encodings,
        column.codec,
        column.minimum,
        column.maximum,
        column.null_count,
    )


def _box(column: Column) -> Box | None:
    box = column.bounding_box
    return None if box is None else Box(box["xmin"], box["xmax"], box["ymin"], box["ymax"])
