"""Copies of a file in which row groups are destroyed: a reader that still answers right has not read them."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from pqext.core.read.reader import ParquetFile


def destroy_others(path: Path, kept: Collection[int], copy: Path) -> int:
    """Copy ``path`` to ``copy`` and overwrite all pages of row groups not in ``kept`` with 0xFF; returns the bytes."""
    with ParquetFile(path) as file:
        ranges = [
            group.chunk(leaf).byte_range
            for group in file.row_groups
            if group.index not in kept
            for leaf in file.schema.leaves
        ]
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, copy)
    with copy.open("r+b") as target:
        for start, length in ranges:
            target.seek(start)
            target.write(b"\xff" * length)
    return sum(length for _, length in ranges)
