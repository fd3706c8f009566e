"""Start a scan: ``scan``, ``read_table`` and ``read_geopandas``.

The modules that run a scan are imported when the first scan is created: ``pqext.read_table`` itself is cheap to import.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from pqext.core.base.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa
    from geopandas import GeoDataFrame

    from pqext.core.io.source import FileSource
    from pqext.core.options.keywords import ReadKeywords, ScanKeywords
    from pqext.core.options.read_write import ReadOptions
    from pqext.dataset.files.file_set import OnInvalid
    from pqext.dataset.notations.dnf import Filter
    from pqext.dataset.scan import Scan
    from pqext.dataset.scan_request import SchemaRule
    from pqext.dataset.table.partitions import Partitioning, PartitionTypes


def scan(
    sources: FileSource | Sequence[FileSource],
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
    version: int | None = None,
    timestamp: str | datetime | None = None,
    timezone: str = "UTC",
    limits: Limits = DEFAULT_LIMITS,
    options: ReadOptions | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    **keywords: Unpack[ReadKeywords],
) -> Scan:
    """Create a lazy query over Parquet files that selects the ``columns`` of the rows that match ``filter``.

    Args:
        sources: A path, a URL (``s3://bucket/key``, ``https://host/file.parquet``, ``memory://x``), a folder, a pattern
            (``*``, ``?``, ``[...]``, ``[^...]``, ``**``), a ``_metadata`` file, bytes, a binary file object, or a list
            of these. Links to folders inside a folder are not followed. A ``_metadata`` file represents the files that
            it lists. Alternatively, one table: a ``deltalake.DeltaTable`` or ``"delta:PATH_OR_URL"``, or a
            ``pyiceberg`` table, ``"iceberg:CATALOG.NAMESPACE.TABLE"`` or ``"iceberg:PATH_OR_URL"`` of its metadata file
            or folder; see :mod:`pqext.tables`.
        columns: Top-level names, dotted paths or SQL text such as ``"price * 2 as twice"``, as in :meth:`Scan.select`;
            None for all columns. ``col("event").variant("$.user.uid", "int64")`` returns a value inside a VARIANT as a
            column named ``event.user.uid``, and ``col("user").field("name")`` a field of a struct as a column named
            ``user.name``. A computed column needs a name: ``(col("price") * 2).alias("twice")`` or ``("twice",
            col("price") * 2)``. A mapping names all columns of the result: ``{"id": "id", "twice": col("price") * 2}``.
            Values inside a VARIANT are extracted as by ``pqext.variant.get``. If one leaf of a file stores all of them,
            only that leaf is read.
        filter: An expression (:func:`pqext.col`), SQL text such as ``"mag >= 5 and name like '%Fiji%'"``
            (:func:`pqext.filters.from_sql`), or tuples as in pyarrow, ``[("mag", ">=", 5)]``.
        schema: Schema of the result if files differ. By default, the names and types of columns must agree in all
            files. Arrow types that Parquet does not distinguish, such as dictionaries and time zones, follow the first
            file, but durations must agree. With ``"union"``, the result has the columns of all files, including files
            that the filter excludes. Missing columns are null, and types widen without loss
            (:mod:`pqext.dataset.table.unified_schema`). With a ``pyarrow.Schema``, the result has exactly these
            columns, including partition columns, cast as ``pyarrow.compute.cast`` does, and no file is opened to infer
            the schema. Geometry columns keep their CRS and edges: a schema with another CRS or other edges is an error.
            In conditions, missing columns are null.
        on_invalid: ``"raise"`` raises one error for all files that are not Parquet or have a corrupt footer; ``"skip"``
            skips them with a ``CorruptDataWarning``.
        partitioning: ``"hive"`` reads columns from folders such as ``year=2020``; None treats them as plain folders.
        partition_types: Types of partition columns by name, as Arrow types or their names, such as ``{"day":
            "string"}``; ``"*"`` applies to all columns that are not named. By default, a column has integers or dates
            if all its folder names are integers or dates. Otherwise, and for numbers with leading zeros
            (``zip=01234``), it has text.
        include_file_paths: The name of an additional column with the path of each row's file, as passed or listed;
            filters on it prune files without opening them.
        include_row_numbers: The name of an additional int64 column that numbers the rows of each file from 0, before
            any filter. Filters cannot use it.
        skipping: A data-skipping store (:func:`pqext.skipping.open_store`), or its path or URL. Files that it prunes
            are not opened; files that changed since the store was written are read.
        ignore_table_format: Read every file of a folder that belongs to a Delta, Iceberg or Hudi table, including files
            that the table has removed. By default such a folder is an error; individually named files of the table are
            read.
        version: The version of a table, by default the current version; for Iceberg, the id of a snapshot.
        timestamp: The time of the table version to read, as ISO 8601 text or a datetime with a time zone.
        timezone: The zone of local times in casts of ``columns`` and ``filter``: an IANA name (``"Europe/Paris"``) or
            an offset (``"+02:00"``). It applies to casts of text, dates and timestamps without a time zone to instants,
            and to casts of instants to text, dates, times and timestamps without a time zone.
        limits: Bounds on memory and counts, for untrusted files.
        options: Reader options (:class:`pqext.ReadOptions`); ``keywords`` take precedence.
        filesystem: A pyarrow or fsspec file system, or an obstore store, that contains ``sources``.
        storage_options: Credentials and other settings of the store in a URL.
        **keywords: The fields of :class:`pqext.ReadOptions`.

    Returns:
        A :class:`pqext.Scan`. Files are listed immediately, but only read when rows, a count, the plan or the schema
        are requested; column names are checked then.

    Raises:
        FileNotFoundError: If a source does not exist.
        ValueError: If SQL text or an argument is invalid.
        UnsupportedError: If no installed package can open a URL, or if a folder belongs to a table.

    Example:
        >>> import pqext, pyarrow
        >>> pqext.write_table(pyarrow.table({"id": [1, 2, 3], "name": ["Suva", "Nome", "Apia"]}), "cities.parquet")
        >>> pqext.scan("cities.parquet", ["name"], "id >= 2 and name like 'A%'").to_table().to_pylist()
        [{'name': 'Apia'}]
    """
    from pqext.dataset.scan_creation import create_scan

    return create_scan(
        sources, columns, filter, keywords, schema=schema, on_invalid=on_invalid, partitioning=partitioning,
        partition_types=partition_types, included_columns=(include_file_paths, include_row_numbers), skipping=skipping,
        ignore_table_format=ignore_table_format, version=version, timestamp=timestamp, timezone=timezone, limits=limits,
        options=options, filesystem=filesystem, storage_options=storage_options,
    )


def read_table(
    sources: FileSource | Sequence[FileSource],
    columns: Sequence[Any] | Mapping[str, Any] | None = None,
    filter: Filter = None,
    **keywords: Unpack[ScanKeywords],
) -> pa.Table:
    """Read the rows of ``sources`` that match ``filter`` into one table. For the arguments, see :func:`scan`.

    Raises ``LimitError`` if the table exceeds ``limits``, and the errors of :func:`scan`.

    Example:
        >>> import pqext, pyarrow
        >>> pqext.write_table(pyarrow.table({"id": [1, 2, 3]}), "ids.parquet")
        >>> pqext.read_table("ids.parquet", filter=pqext.col("id") > 1).to_pydict()
        {'id': [2, 3]}
    """
    return scan(sources, columns, filter, **keywords).to_table()


def read_geopandas(
    sources: FileSource | Sequence[FileSource],
    columns: Sequence[Any] | Mapping[str, Any] | None = None,
    filter: Filter = None,
    bbox: Any = None,
    geometry: str | None = None,
    **keywords: Unpack[ScanKeywords],
) -> GeoDataFrame:
    """Read the rows that match ``filter`` and intersect ``bbox`` as a GeoDataFrame.

    ``bbox`` is ``(xmin, ymin, xmax, ymax)`` in the CRS of the column ``geometry``, which becomes the active one: by
    default the primary column of the file's GeoParquet metadata, or its first geometry column. As in geopandas, a
    shapely geometry represents its bounds, and a GeoSeries or GeoDataFrame its total bounds in that CRS. Without
    ``columns``, all columns are read except the covering columns of GeoParquet metadata. For other arguments and
    errors, see :func:`pqext.scan`.

    Raises:
        ValueError: If a file has no geometry column.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import geo
        >>> towns = pyarrow.table({"name": ["Suva", "Nome"], "at": geo.from_points([178.44, -165.41], [-18.14, 64.5])})
        >>> pqext.write_table(towns, "towns.parquet")
        >>> geo.read_geopandas("towns.parquet", bbox=(170, -20, 180, -10))["name"].tolist()
        ['Suva']
    """
    from pqext.dataset.expressions import col
    from pqext.geo.frames import active_geometry, bounds_of, geometry_columns, geoparquet_columns, require_geopandas

    require_geopandas()
    query = scan(sources, None, filter, **keywords)
    types, (_, coverings) = geometry_columns(query.schema), geoparquet_columns(query.schema)
    if geometry is None:
        geometry = active_geometry(query.schema)
    if geometry not in types:
        if not types:
            raise ValueError("the file has no geometry column; read it with read_table")
        raise ValueError(f"no geometry column {geometry!r}; the geometry columns are {', '.join(map(repr, types))}")
    if columns is None:
        columns = [name for name in query.schema.names if name not in coverings or name in types]
    else:
        included = (geometry, keywords.get("include_file_paths"), keywords.get("include_row_numbers"))
        columns = [*columns, *(name for name in included if name is not None and name not in columns)]
    if bbox is not None:
        query = query.filter(col([geometry]).intersects(bounds_of(bbox, types[geometry])))
    return query.select(list(columns)).to_geopandas(geometry)
