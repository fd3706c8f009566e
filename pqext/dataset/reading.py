"""The functions that begin a scan: which files, which columns of theirs, and which rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import pyarrow as pa

from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.options.keywords import ReadKeywords, ScanKeywords
from pqext.core.options.read_write import ReadOptions, from_keywords
from pqext.dataset.files.file_set import FileSet, OnInvalid
from pqext.dataset.files.sources import find_sources, located
from pqext.dataset.files.summaries import expanded
from pqext.dataset.notations.dnf import Filter, as_expression
from pqext.dataset.planning.projection import parse_columns
from pqext.dataset.scan import Scan
from pqext.dataset.scan_request import ScanRequest, SchemaRule
from pqext.dataset.skipping import skipping_of
from pqext.dataset.table.partitions import Partitioning, PartitionTypes, partitions_of
from pqext.variant.timezones import DEFAULT, find_timezone

_OPTIONS = ReadKeywords.__annotations__
_ARGUMENTS = ("columns", "filter", *(name for name in ScanKeywords.__annotations__ if name not in _OPTIONS))


def scan(
    sources: Any,
    columns: Sequence[Any] | Mapping[str, Any] | None = None,
    filter: Filter = None,
    *,
    schema: SchemaRule = None,
    on_invalid: OnInvalid = "raise",
    partitioning: Partitioning = "hive",
    partition_types: PartitionTypes | None = None,
    include_file_paths: str | None = None,
    include_row_numbers: str | None = None,
    skipping: Any = None,
    ignore_table_format: bool = False,
    timezone: str = DEFAULT,
    limits: Limits = DEFAULT_LIMITS,
    options: ReadOptions | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    **keywords: Unpack[ReadKeywords],
) -> Scan:
    """A query over Parquet files: the rows for which ``filter`` is true, and of them ``columns``.

    Args:
        sources: A path, a URL (``s3://bucket/key``, ``https://host/file.parquet``, ``memory://x``), a folder (without
            the folders in it that are links), a pattern (``*``, ``?``, ``[...]``, ``[^...]``, ``**``), a ``_metadata``
            file, which stands for the files that it names, bytes, a binary file object, or a list of these.
        columns: Top-level names or dotted paths; None for all. A value within a VARIANT becomes a column of its own by
            ``col("event").variant("$.user.uid", "int64")``, called ``event.user.uid``, and a field of a struct by
            ``col("user").field("name")``, called ``user.name``. What is computed of columns needs a name,
            ``(col("price") * 2).alias("twice")`` or ``("twice", col("price") * 2)``. A mapping names all columns of the
            result, ``{"id": "id", "twice": col("price") * 2}``. Values within a VARIANT are those
            of ``pqext.variant.get``; where a leaf of the file holds them all, only that leaf is read.
        filter: An expression (:func:`pqext.col`), SQL text such as ``"mag >= 5 and place like '%Fiji%'"``
            (:func:`pqext.filters.from_sql`), or tuples as pyarrow takes them, ``[("mag", ">=", 5)]``.
        schema: How files become one table. By default their schemas must agree by name; of Arrow types beyond
            Parquet's, such as dictionaries and time zones, the first file decides, and durations must agree. With
            ``"union"`` the result has the columns of all files, including those that the filter leaves out; a file that
            lacks a column has nulls there, and types widen without loss (:mod:`pqext.dataset.table.unified_schema`).
            With a ``pyarrow.Schema`` the result has exactly these columns, those of folders included, cast as
            ``pyarrow.compute.cast`` does, and no file is opened to learn them. A geometry column keeps its CRS and
            edges: a schema with others is an error. Conditions on columns that a file lacks are conditions on null.
        on_invalid: ``"raise"`` makes one error of all files that are no Parquet or have a damaged footer; ``"skip"``
            leaves them out with a ``CorruptDataWarning``.
        partitioning: ``"hive"`` makes columns of folders such as ``year=2020``; None takes them for plain folders.
        partition_types: Types of these columns by name, as Arrow types or their names, such as ``{"day": "string"}``;
            ``"*"`` stands for the columns that are not named.
            By default a column has integers or dates if all its folders name these, and text otherwise, also for
            numbers with leading zeros (``zip=01234``).
        include_file_paths: The name of a further column, which holds the path of each row's file as it was given or
            found; filters on it leave other files unopened.
        include_row_numbers: The name of a further int64 column, which counts the rows of each file from 0, before any
            filter. Filters cannot ask about it.
        skipping: A data-skipping store (:func:`pqext.skipping.open_store`), or its path or URL. Files that it refuses
            are not opened; those that have changed since it was made are read.
        ignore_table_format: Read every file of a folder that belongs to a Delta, Iceberg or Hudi table, also those that
            the table has removed. By default such a folder is an error; files of the table that are named one by one
            are read.
        timezone: The zone of local times in casts of ``columns`` and ``filter``, an IANA name (``"Europe/Paris"``) or
            an offset (``"+02:00"``): of text without a zone, dates and timestamps without a time zone as instants,
            and of instants as text, dates, times and timestamps without a time zone.
        limits: Bounds on memory and counts, for files of strangers.
        options: How files are read (:class:`pqext.ReadOptions`), for what ``keywords`` leave out.
        filesystem: A file system of pyarrow or fsspec, or a store of obstore, in which ``sources`` are paths.
        storage_options: Credentials and other settings of the store that a URL names.
        **keywords: The fields of :class:`pqext.ReadOptions`.

    Returns:
        A :class:`pqext.Scan`. Files are listed, but none is read before rows, a count, the plan or the schema are asked
        for; columns are looked up then.

    Raises:
        FileNotFoundError: For sources that do not exist.
        ValueError: For SQL text or arguments that are not understood.
        UnsupportedError: For a URL that nothing installed opens, and for the folder of a table.

    Example:
        >>> import pqext, pyarrow
        >>> pqext.write_table(pyarrow.table({"id": [1, 2, 3], "place": ["Suva", "Nome", "Apia"]}), "places.parquet")
        >>> pqext.scan("places.parquet", ["place"], "id >= 2 and place like 'A%'").to_table().to_pylist()
        [{'place': 'Apia'}]
    """
    chosen = None if columns is None else parse_columns(columns)
    find_timezone(timezone)
    read = from_keywords(ReadOptions, keywords, *_ARGUMENTS, base=options)
    if schema is not None and not isinstance(schema, pa.Schema) and schema != "union":
        raise ValueError(f'schema must be "union", a pyarrow.Schema or None, not {schema!r}')
    found = find_sources(sources, filesystem, storage_options, ignore_table_format=ignore_table_format)
    files, summaries = expanded([*located(sources, filesystem, storage_options)], found, read, limits)
    partitions = partitions_of(
        sources, files, partitioning, types=partition_types, filesystem=filesystem, storage_options=storage_options
    )
    if isinstance(schema, pa.Schema):
        partitions = partitions.typed(schema)
        if chosen is None:
            chosen = tuple(schema.names)
    included = [name for name in (include_file_paths, include_row_numbers) if name is not None]
    if included:
        partitions = partitions.including(include_file_paths, include_row_numbers)
        if chosen is not None:
            chosen = tuple(dict.fromkeys([*chosen, *included]))
    return Scan(
        ScanRequest(
            FileSet(files, read, limits, on_invalid, summaries), chosen, as_expression(filter), partitions, schema,
            skipping=skipping_of(skipping, filesystem, storage_options), timezone=timezone,
        )
    )


def read_table(
    sources: Any,
    columns: Sequence[Any] | Mapping[str, Any] | None = None,
    filter: Filter = None,
    **keywords: Unpack[ScanKeywords],
) -> pa.Table:
    """The rows of ``sources`` for which ``filter`` is true, as one table; arguments as in :func:`scan`.

    Raises ``LimitError`` where the table takes more than ``limits`` allow, and otherwise as :func:`scan` does.

    Example:
        >>> import pqext, pyarrow
        >>> pqext.write_table(pyarrow.table({"id": [1, 2, 3]}), "ids.parquet")
        >>> pqext.read_table("ids.parquet", filter=pqext.col("id") > 1).to_pydict()
        {'id': [2, 3]}
    """
    return scan(sources, columns, filter, **keywords).to_table()
