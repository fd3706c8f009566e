"""Write summary files: a footer with the row groups of many files. Each column chunk stores the path of its file.

``_metadata`` lists the row groups of all files, ``_common_metadata`` only the schema. Spec: "File format" (columns in
several files, one metadata file for several) and the format's definition of ``file_path``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import PurePosixPath
from zlib import crc32

from pqext.core.base.errors import ParquetError, UnsupportedError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.local_paths import check_target
from pqext.core.files.summary_files import METADATA, FileRecord, store_records
from pqext.core.footer.merge import FooterMerge, Merge
from pqext.core.footer.thrift_footer import MAGIC, serialise_footer
from pqext.core.footer.writing import footer_format_of, read_unencrypted_footer
from pqext.core.format.metadata import FileMetaData, RowGroup
from pqext.core.io.sink import Sink
from pqext.core.io.source import PathSource

COMMON_METADATA = "_common_metadata"


def write_summary(
    paths: Iterable[str | os.PathLike[str]], folder: str | os.PathLike[str], *,
    key_value_metadata: Merge = "merge", limits: Limits = DEFAULT_LIMITS,
) -> tuple[str, str]:
    """Write ``_metadata`` and ``_common_metadata`` of the files at ``paths`` into ``folder``; return the two paths.

    The files must be in ``folder`` or below it, and have the same schema. Their row groups are listed in the order of
    ``paths``, and are not read. The size, modification time and footer CRC of each file are recorded, so that a scan of
    the folder can use the metadata of unchanged files from ``_metadata``. They are not recorded if the writers of the
    files differ, a file has only a FlatBuffers footer or is listed twice, or bounds of a file were dropped.
    ``key_value_metadata`` has the same values as for :func:`pqext.concatenate`. Extensions and unknown fields of row
    groups are preserved, since their offsets stay valid. Those of footers are dropped.

    Raises ``ValueError`` if a file is outside ``folder`` or the schemas differ, and ``UnsupportedError`` for files that
    are partly encrypted or have chunks in other files.

    >>> import pqext
    >>> for name, ids in {"a.parquet": [1, 2], "b.parquet": [3]}.items():
    ...     pqext.write_table({"id": ids}, name)
    >>> paths = pqext.write_summary(["a.parquet", "b.parquet"], ".")
    >>> pqext.scan("_metadata").to_table()["id"].to_pylist()
    [1, 2, 3]
    """
    if isinstance(paths, (str, bytes)):
        raise TypeError(f"paths must be a list of paths, not {paths!r}")
    check_target(folder, "folder")
    root = os.path.realpath(os.fsdecode(folder))
    merge = FooterMerge(key_value_metadata)
    groups: list[RowGroup] = []
    files: dict[str, FileRecord] = {}
    writers: set[str | None] = set()
    is_alike = True
    for entry in paths:
        path = os.fsdecode(entry)
        try:
            relative = os.path.relpath(os.path.realpath(path), root)
        except ValueError:  # on another drive
            relative = os.pardir
        if relative.split(os.sep)[0] == os.pardir or os.path.isabs(relative):
            raise ValueError(
                f"{path} is not below the summary's folder {os.fsdecode(folder)}; pass a folder that contains all files"
            )
        name = str(PurePosixPath(*relative.split(os.sep)))
        with PathSource(path) as source:
            try:
                footer = read_unencrypted_footer(source, limits)
                metadata = footer.metadata
                merge.add(metadata, path)
                named = _name_row_groups(metadata, name)
                foreign = merge.remove_foreign_bounds(metadata, [group.columns for group in named])
                groups += named
                writers.add(metadata.created_by)
                is_noted = footer_format_of(source) != "flatbuffers" and not foreign and name not in files
                is_alike = is_alike and is_noted and len(writers) == 1
                crc = crc32(footer.raw.data)
                files[name] = FileRecord(*source.stamp, metadata.key_value_metadata, footer.length, crc)
            except ParquetError as error:
                error.locate(path=path)
                raise
    written = []
    for name, listed in ((METADATA, groups), (COMMON_METADATA, [])):
        whole = merge.finish(listed)
        whole.unknown = ()
        if is_alike and listed:
            store_records(whole, files)
        with Sink(os.path.join(root, name)) as sink:
            sink.write(MAGIC)
            sink.write(serialise_footer(whole))
        written.append(os.path.join(os.fsdecode(folder), name))
    return written[0], written[1]


def _name_row_groups(metadata: FileMetaData, name: str) -> list[RowGroup]:
    """Return the row groups of one file, and set the file path of each chunk to ``name``."""
    groups = list(metadata.row_groups)
    for group in groups:
        group.columns = list(group.columns)
        group.ordinal = None  # an ordinal is relative to one file
        for chunk in group.columns:
            if chunk.file_path is not None:
                raise UnsupportedError(
                    f"a column chunk is in another file, {chunk.file_path!r}; pass that file instead",
                    feature="summaries of summaries",
                )
            chunk.file_path = name
    return groups
