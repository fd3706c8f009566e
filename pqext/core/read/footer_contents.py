"""Read the schema and the metadata of a file from its footer, without keeping the file open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import pyarrow as pa

from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.format.metadata import FileMetaData
from pqext.core.io.source import FileSource
from pqext.core.options.keywords import ReadKeywords
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile


def read_schema(
    source: FileSource, options: ReadOptions | None = None, *, limits: Limits = DEFAULT_LIMITS, filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None, **keywords: Unpack[ReadKeywords],
) -> pa.Schema:
    """Return the Arrow schema of a file. Only the footer is read.

    Args:
        source: A path, a URL, bytes or a seekable binary file object, as in :func:`pqext.open`.
        options: Options (:class:`pqext.ReadOptions`) that ``keywords`` override.
        limits: Limits on memory and counts, for untrusted files.
        filesystem: A pyarrow or fsspec file system, or an obstore store; ``source`` is then a path in it.
        storage_options: Credentials and other settings of the store that a URL names.
        **keywords: Fields of :class:`pqext.ReadOptions`, such as ``decryption`` and ``shredded``.

    Returns:
        The schema of the tables that :func:`pqext.read_table` returns for the same options. VARIANT columns have the
        field metadata ``arrow.parquet.variant``, geometry columns ``geoarrow.wkb`` with CRS and edges. The schema of a
        folder is ``pqext.scan(folder).schema``.

    Raises:
        FileNotFoundError: If the file does not exist.
        CorruptFileError: If the file is not Parquet or its footer is corrupt.
        EncryptionError: If the footer is encrypted and ``decryption`` is missing or has another key.

    Example:
        >>> import pqext, pyarrow
        >>> table = pyarrow.table({"id": [1], "at": pqext.geo.from_points([2.5], [48.5])})
        >>> pqext.write_table(table, "cities.parquet", geometry={"at": "OGC:CRS84"})
        >>> schema = pqext.read_schema("cities.parquet")
        >>> schema.names, schema.field("at").metadata[b"ARROW:extension:name"]
        (['id', 'at'], b'geoarrow.wkb')
    """
    with ParquetFile(
        source, options, limits=limits, filesystem=filesystem, storage_options=storage_options, **keywords
    ) as file:
        return file.arrow_schema


def read_metadata(
    source: FileSource, options: ReadOptions | None = None, *, limits: Limits = DEFAULT_LIMITS, filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None, **keywords: Unpack[ReadKeywords],
) -> FileMetaData:
    """Return the metadata of a file as stored in its footer. Pages are not read.

    For the arguments and errors, see :func:`read_schema`.

    Returns:
        The structure ``FileMetaData`` of the format, as ``pqext.open(source).metadata`` has it, complete and
        independent of the file: ``num_rows``, ``schema``, ``row_groups`` with ``columns``, ``key_value_metadata``,
        ``created_by``. Sizes and offsets are in bytes. :func:`pqext.inspect` returns the same facts with decoded
        statistics.

    Example:
        >>> import pqext, pyarrow
        >>> pqext.write_table(pyarrow.table({"id": range(10)}), "ids.parquet", row_group_rows=4)
        >>> metadata = pqext.read_metadata("ids.parquet")
        >>> metadata.num_rows, [group.num_rows for group in metadata.row_groups]
        (10, [4, 4, 2])
    """
    with ParquetFile(
        source, options, limits=limits, filesystem=filesystem, storage_options=storage_options, **keywords
    ) as file:
        return file.footer.complete
