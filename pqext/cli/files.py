"""Parquet files as arguments of commands that inspect files."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any

from pqext.cli.command import argument
from pqext.cli.locations import InputFile, Place

PARQUET_SUFFIXES = (".parquet", ".parq")
_SHOWN_FILES = 3
file_argument = argument(
    "file", type=InputFile(), help="A Parquet file, or a folder that contains one; - is standard input."
)
files_argument = argument(
    "files", type=InputFile(), nargs=-1, required=True, metavar="FILE...",
    help="Parquet files, glob patterns or folders; - is standard input.",
)


def find_single_file(path: Place) -> Place:
    """Return ``path`` if it is not a folder, otherwise the only Parquet file in the folder.

    Raises ``ValueError`` if the folder contains several Parquet files, and ``FileNotFoundError`` if it contains none.
    """
    if not isinstance(path, str) or not os.path.isdir(path):
        return path
    from pqext.core.base.suggestions import join_names
    from pqext.dataset.files.sources import find_sources

    files = [name for name in map(str, find_sources(path, ignore_table_format=True)) if name.endswith(PARQUET_SUFFIXES)]
    if not files:
        raise _no_parquet_error(path)
    if len(files) > 1:
        raise ValueError(
            f"the folder {path} contains {len(files):,} Parquet files; pass the path of a file: "
            + join_names(files, _SHOWN_FILES)
        )
    return files[0]


def expand_files(paths: Sequence[Place]) -> list[Place]:
    """Return the distinct files that match paths, glob patterns and folders. In folders, only Parquet files match.

    Raises:
        FileNotFoundError: If a folder contains no Parquet file, or a path or pattern matches no file.
    """
    from pqext.dataset.files.sources import find_sources

    files: dict[Any, Place] = {}
    for path in paths:
        matches: list[Place] = [*find_sources(path, ignore_table_format=True)]
        if isinstance(path, str) and os.path.isdir(path):
            matches = [match for match in matches if str(match).endswith(PARQUET_SUFFIXES)]
            if not matches:
                raise _no_parquet_error(path)
        files |= {_identity(match): match for match in matches}
    return list(files.values())


def _no_parquet_error(folder: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "No file in this folder ends in .parquet; pass the path of a file", folder)


def _identity(location: Place) -> Any:
    """Return a hashable key that identifies the file at ``location``."""
    return location if isinstance(location, str) else (location.store.number, location.key)


def split_names(text: str | None) -> list[str] | None:
    """Split ``a,b`` into names. Return None, which represents all columns, if no text is passed."""
    return None if text is None else [name.strip() for name in text.split(",")]
