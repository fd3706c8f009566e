"""A file's layout for the report, from its footer."""

from __future__ import annotations

from pathlib import Path

from pqext.inspection import Column, inspect
from pqext.report.model import Box, Chunk, FilePicture, RowGroup


def picture(path: Path, label: str, name: str, geometry: str) -> FilePicture:
    """The layout of the file at ``path``; boxes are those of the column ``geometry``."""
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
    return FilePicture(label, name, report.size, tuple(".".join(leaf.path) for leaf in leaves), groups)


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
