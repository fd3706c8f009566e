"""Read Parquet files into data frames through the ``pqext`` data source, and filter them using file statistics."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, Unpack
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T

from pqext.core.base.suggestions import suggest_arguments_of
from pqext.dataset.expressions import MAX_DEPTH, Expression, all_of, visitors
from pqext.dataset.expressions.visitors import set_timezone
from pqext.dataset.notations.dnf import as_expression
from pqext.dataset.planning.projection import ComputedColumn, parse_columns
from pqext.dataset.table.partitions import Partitioning, PartitionTypes
from pqext.spark.base.errors import explain_user_types
from pqext.spark.base.files import absolute_paths, is_remote
from pqext.spark.base.hadoop import read_hadoop_options
from pqext.spark.base.settings import add_settings, filter_in_timezone, session_setting, session_timezone
from pqext.spark.columns.months import cast_to_intervals, has_months
from pqext.spark.columns.names import resolve_case
from pqext.spark.columns.timestamps import compares_local_times
from pqext.spark.frames.methods import is_cached, replace_count, replace_explain, replace_filters
from pqext.spark.options.file import FileOptions, encode_file_options
from pqext.spark.pushdown.conditions import is_equivalent_in_read, translate_condition
from pqext.spark.pushdown.spark_sql import (
    add_condition_columns,
    can_evaluate,
    find_session,
    is_spark_sql,
    may_split,
    needs_schema,
    read_in_two_steps,
    refers_to_column,
    split_condition,
)
from pqext.spark.reading.aggregation import Aggregate, Aggregation
from pqext.spark.reading.encoding import encode_options
from pqext.spark.reading.native import Engine, EngineChoice, check_engine, choose_engine
from pqext.spark.reading.parquet_reader import few_files_counter, read_few_rows
from pqext.spark.reading.planning import MAX_INDEXED_ROW_GROUPS, ReadPlan, plan_read
from pqext.spark.reading.request import Query
from pqext.spark.sources.data_sources import ensure_registered
from pqext.variant.timezones import DEFAULT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Box = Sequence[float]


@dataclass(frozen=True)
class _Read:
    """Arguments of a read. ``repeat`` is a function that repeats the read with a different ``where``."""

    repeat: Callable[..., DataFrame]
    where: Expression | None
    computed: frozenset[str]
    """Computed columns, which only Spark can filter."""
    query: Callable[[], Query]
    """Function that returns the query of the files."""
    engine: Engine
    is_found_here: bool
    """Whether the paths refer to the same files in this process as on the server."""


_TIME_TYPE = "spark.sql.timeType.enabled"
_reads: WeakKeyDictionary[DataFrame, _Read] = WeakKeyDictionary()
_filtered_reads: WeakKeyDictionary[DataFrame, tuple[_Read, str]] = WeakKeyDictionary()
"""Reads whose rows Spark filters, with the condition as text."""


@suggest_arguments_of("spark", options=FileOptions.__annotations__)
def read(
    spark: SparkSession,
    path: str | Sequence[str],
    columns: Sequence[Any] | Mapping[str, Any] | None = None,
    where: Any = None,
    bbox: Box | str | None = None,
    shredded: bool = False,
    bbox_column: str | None = None,
    metrics_path: str | None = None,
    partition_bytes: int | None = None,
    partitioning: Partitioning = "hive",
    trust_statistics: bool = True,
    memory_bytes: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    schema: Literal["union"] | None = None,
    include_file_paths: str | None = None,
    include_row_numbers: str | None = None,
    path_glob_filter: str | None = None,
    engine: Engine = "python",
    skipping: Any = None,
    partition_types: PartitionTypes | None = None,
    ignore_table_format: bool = False,
    **file_options: Unpack[FileOptions],
) -> DataFrame:
    """Read Parquet files into a data frame with pqext's reader or, depending on ``engine``, with Spark's own reader.

    Row groups and files without matching rows are not read. Spark's own filters on the data frame are correct, but do
    not use statistics; use :func:`where` instead. Names of columns are case-insensitive unless
    ``spark.sql.caseSensitive`` is true. The reference lists other relevant settings under "Settings of Spark".

    Args:
        spark: The session.
        path: A file, a folder, a pattern (``*``, ``?``, ``[...]``, ``**``, ``{a,b}``), a URL (``s3://``, ``s3a://``,
            ``gs://``, ``abfss://``, ``https://``, ...), a list of these, or a table, ``"delta:PATH"``.
        columns: The columns to read: names, VARIANT values (``col("event").variant("$.mag", "double")``) and computed
            values (``(col("a") * 2).alias("b")``), as in :meth:`pqext.Scan.select`, or a mapping of names to these.
            Spark does not pass the needed columns to a data source, so select them here.
        where: SQL text, a ``Column``, an expression of ``pqext.col`` or a filter in lists of tuples, as in
            :func:`where`.
        bbox: A box ``(xmin, ymin, xmax, ymax)``, or text of these numbers, that geometries must intersect; it crosses
            the antimeridian if ``xmin > xmax``.
        shredded: Return shredded VARIANT columns as their storage structs.
        bbox_column: The geometry column of ``bbox``; by default the only geometry column.
        metrics_path: A folder where tasks write metrics for :func:`read_metrics`.
        partition_bytes: Maximum number of bytes that a task reads.
        partitioning: ``"hive"`` reads columns from folders named ``year=2020``, as in :func:`pqext.scan`, and does not
            open files in folders that ``where`` excludes. None (option ``none``) reads the files only.
        trust_statistics: False reads all row groups and pages, as in :class:`pqext.ReadOptions`.
        memory_bytes: Maximum number of decoded bytes of a file in a task, by default the limit of
            ``pqext.Limits.untrusted()``.
        storage_options: Credentials and other options for URLs, as in :func:`pqext.scan`. By default, Spark's Hadoop
            settings for the store, or otherwise the environment.
        schema: ``"union"`` matches columns by name, as in :func:`pqext.scan`; names that differ only in case need
            ``spark.sql.caseSensitive``. By default all files must agree.
        include_file_paths: Name of a column for the file of each row; Spark's ``input_file_name()`` is empty.
        include_row_numbers: Name of a column for the number of each row in its file.
        path_glob_filter: A pattern that the names of files must match (Spark's ``pathGlobFilter``).
        engine: ``"python"`` reads with pqext in Python workers. ``"native"`` reads with Spark's own Parquet reader:
            pqext plans the read when this function is called and drops files without matches. VARIANT values that are
            stored only in a typed leaf are read as plain columns, without Python. Do not replace the files while the
            data frame is in use.
            ``"auto"`` uses ``"native"`` whenever possible; :func:`explain_read` returns the reasons.
        skipping: A data-skipping store of :mod:`pqext.skipping`, its path or its URL. Files without matches for
            ``where`` and ``bbox`` are dropped before they are opened. Changed and unknown files are read.
        partition_types: Types of partition columns, as in :func:`pqext.scan`.
        ignore_table_format: Read every file in the folder of a Delta, Iceberg or Hudi table.
        file_options: ``modified_after`` and ``modified_before`` select files by modification time, local times in the
            session's time zone. ``base_path`` is the root folder of partition columns. ``on_invalid="skip"`` (Spark's
            ``ignoreCorruptFiles``) skips files that cannot be opened and the remaining rows of corrupt files.
            ``ignore_missing_files`` skips removed files. ``version`` and ``timestamp`` select a version of a table. See
            :class:`pqext.ReadOptions` for ``invalid_utf8`` and ``legacy_timezone``.

    Returns:
        A data frame.

    Raises:
        UnsupportedError: If ``engine`` is ``"native"`` and Spark cannot read the files; the error lists all obstacles.
        ValueError: If an argument is invalid.

    Example:
        >>> read(spark, "events", ["id", "event"], where="event:$.mag::double > 5")  # doctest: +SKIP
    """
    check_engine(engine)
    timezone = session_timezone(spark)
    paths = absolute_paths(path)
    columns = None if columns is None else set_timezone(parse_columns(columns), timezone)
    storage = storage_options or read_hadoop_options(spark, paths)
    repeat = partial(
        read, spark, paths, bbox=bbox, shredded=shredded, bbox_column=bbox_column, metrics_path=metrics_path,
        partition_bytes=partition_bytes, partitioning=partitioning, trust_statistics=trust_statistics,
        memory_bytes=memory_bytes, storage_options=storage, schema=schema, include_file_paths=include_file_paths,
        include_row_numbers=include_row_numbers, path_glob_filter=path_glob_filter, engine=engine, skipping=skipping,
        partition_types=partition_types, ignore_table_format=ignore_table_format, **file_options,
    )
    encode = partial(
        encode_options, bbox=bbox, bbox_column=bbox_column, shredded=shredded, metrics_path=metrics_path,
        partition_bytes=partition_bytes, partitioning=partitioning, trust_statistics=trust_statistics,
        memory_bytes=memory_bytes, storage_options=storage, schema=schema, include_file_paths=include_file_paths,
        include_row_numbers=include_row_numbers, path_glob_filter=path_glob_filter, skipping=skipping,
        partition_types=partition_types, ignore_table_format=ignore_table_format,
        file_options=encode_file_options(file_options, timezone),
    )
    names = partial(_stored_names, spark, paths, encode)
    if needs_schema(where, session_setting(spark)) or refers_to_column(where, include_row_numbers):
        return read_in_two_steps(repeat, columns, where, _filter_rows, names)
    values, where = where, filter_in_timezone(where, timezone)
    expression = as_expression(where)
    options = add_settings(encode(columns, where), session_setting(spark))
    if is_spark_sql(values) and not _is_on_connect(spark) and not can_evaluate(partial(_query_of, options, paths)):
        return read_in_two_steps(repeat, columns, values, _filter_rows, names)
    ensure_registered(spark)
    choice = EngineChoice("python") if engine == "python" else choose_engine(_query_of(options, paths), engine, spark)
    if choice.reading is not None and choice.engine == "native":
        df = choice.reading.read(spark)
    else:
        df = cast_to_intervals(spark.read.format("pqext").options(**options, interval_months="true").load(paths))
    if "time(" in df.schema.simpleString() and spark.conf.get(_TIME_TYPE, "true") == "false":
        _log_time_hint()
    computed = {column.name for column in parse_columns(columns or ()) if isinstance(column, ComputedColumn)}
    computed |= {name for name in [include_row_numbers] if name is not None}
    query = partial(_query_of, options, paths)
    is_found_here = not _is_on_connect(spark)
    _reads[df] = _Read(partial(repeat, columns), expression, frozenset(computed), query, engine, is_found_here)
    if choice.engine != "native":
        replace_filters(df)
    if metrics_path is None and options.get("on_invalid") != "skip":  # the error may be caused by any column
        files = _local_files(options, paths) if is_found_here else None
        replace_count(df, partial(_make_counter, spark, paths, options, choice.engine, files))
    if not _is_on_connect(df):
        replace_explain(df, partial(_explain, spark, query, engine))
    return df


def _stored_names(
    spark: SparkSession, paths: str | list[str], encode: Callable[[], Mapping[str, str]]
) -> Sequence[str]:
    """Return the names of all columns, including columns whose type is not supported."""
    ensure_registered(spark)
    options = add_settings(encode(), session_setting(spark)) | {"names_only": "true"}
    return spark.read.format("pqext").options(**options).load(paths).schema.names


def _make_counter(
    spark: SparkSession, paths: str | list[str], options: Mapping[str, str], engine: str, files: Sequence[str] | None
) -> Callable[[], int] | None:
    """Return a function that counts the rows of a read on the driver or in tasks, or None if Spark should count.

    The function reads the same columns, so that the same schema errors are raised. ``files`` are the files at the time
    of the read. If the files have changed, Spark counts, because Spark may have planned the data frame before.
    """
    aggregation = Aggregation(0, (Aggregate("count", "count", None),))
    counting = {**options, **encode_options(aggregation=aggregation)}
    if files is not None:
        query = _query_of(counting, paths)
        if query.files != files:
            return None
        here = few_files_counter(query)
        if here is not None:
            return here
    if engine == "native":
        return None
    counts = spark.read.format("pqext").options(**counting).load(paths)
    return lambda: sum(row[0] for row in counts.select("*").collect())


@cache
def _log_time_hint() -> None:
    """Log once that Spark rejects TIME columns by default, because Spark's error does not name the setting."""
    logging.getLogger("pqext.spark").warning(
        "Spark's filters, groups and writes fail on TIME columns with UNSUPPORTED_TIME_TYPE unless %s is true",
        _TIME_TYPE,
    )


def _filter(df: DataFrame, condition: Column) -> DataFrame:
    """Call ``DataFrame.filter`` without the hint of :func:`log_filter_hint`."""
    return type(df).filter(df, condition)


def where(df: DataFrame, expression: Any) -> DataFrame:
    """Filter a data frame, using the statistics of the files if possible.

    If ``df`` is the result of :func:`read` and not cached, the files are read again with the condition, which prunes
    row groups and pages. Refer to columns by name or through the result, because the result is not derived from ``df``.
    Other data frames are filtered. For shredded structs, Spark's own Parquet reader then prunes row groups by a guard
    that is added to the exact condition: ``(g1 OR g2) AND (exact1 OR exact2)``.

    SQL text and a ``Column`` have the semantics of ``df.where``, including casts, functions and errors of ANSI mode.
    pqext evaluates clauses with identical semantics, and Spark evaluates the others on the remaining rows. In text,
    VARIANT paths (``event:$.mag::double > 5``), double-quoted names and functions that Spark does not support have the
    semantics of pqext, and ``a.b`` is the column with exactly this name if it exists.

    Expressions have the semantics of ``pqext.scan``: three-valued logic, NaN equal to itself and greater than all other
    numbers, exact comparison of numbers, and no implicit casts of literals. VARIANT fields are cast as by Spark's
    ``try_variant_get`` (``specs/variant-casts.md`` lists differences). Names are case-insensitive unless
    ``spark.sql.caseSensitive`` is true. Comparisons of strings with a collation are evaluated by Spark.

    Args:
        df: The data frame.
        expression: An expression of ``pqext.col``, a filter in lists of tuples, an SQL condition or a ``Column``.

    Returns:
        A data frame with the matching rows.

    Raises:
        ValueError: If a column does not exist.
        TypeError: If a literal cannot be compared with a column.
        UnsupportedError: If a user-defined type of a column cannot be imported.

    Example:
        >>> where(read(spark, "events"), col("event").variant("$.mag", "double") > 5)  # doctest: +SKIP
    """
    with explain_user_types(df):
        return _filter_rows(df, expression)


def _filter_rows(df: DataFrame, expression: Any) -> DataFrame:
    if is_spark_sql(expression):
        requested = split_condition(df, expression, is_bounded=df in _reads)
        narrowed = df if requested.tree is None else _filter_by_expression(df, requested.tree)
        if requested.remainder is None:
            return narrowed
        try:
            result = _filter(narrowed, requested.remainder)
            result.schema  # noqa: B018  Connect analyses no sooner
        except AnalysisException:  # an error of a column that is bound to df
            return _record_spark_filter(_filter(df, expression), df, str(expression))
        return _record_spark_filter(result, narrowed, requested.text)
    tree = set_timezone(as_expression(expression), session_timezone(df.sparkSession))
    return df if tree is None else _filter_by_expression(df, resolve_case(tree, df))


def _filter_by_expression(df: DataFrame, tree: Expression) -> DataFrame:
    """Filter ``df`` with an expression on its columns."""
    known = _reads.get(df)
    if known is not None and known.is_found_here and compares_local_times(tree):
        with suppress(FileNotFoundError):  # of a cached frame
            if known.computed.isdisjoint(visitors.columns(tree)):
                tree = known.query().convert_local_times(tree)
    filter = translate_condition(df, tree).column
    if known is None or is_cached(df) or not is_equivalent_in_read(tree, df.schema):
        return _record_spark_filter(_filter(df, filter), df, str(tree))
    both = all_of([tree] if known.where is None else [known.where, tree])
    if both.depth >= MAX_DEPTH or not known.computed.isdisjoint(visitors.columns(tree)):
        return _record_spark_filter(_filter(df, filter), df, str(tree))
    return known.repeat(where=both)


def _record_spark_filter(result: DataFrame, source: DataFrame, text: str) -> DataFrame:
    """Record that Spark filters ``source`` by ``text``, if ``source`` is an uncached read. Return ``result``."""
    known, earlier = _filtered_reads.get(source) or (_reads.get(source), "")
    if known is not None and not is_cached(source):
        text = f"({earlier}) AND ({text})" if earlier else text
        _filtered_reads[result] = known, text
        if known.is_found_here:
            replace_explain(result, lambda: _explain(source.sparkSession, known.query, known.engine, spark_filter=text))
    return result


def read_on_driver(df: DataFrame, schema: T.StructType) -> Iterator[pa.RecordBatch] | None:
    """Read the columns ``schema`` of a data frame from :func:`read` on the driver, in Spark's exchange types.

    Returns None if Spark should read them: for other or cached data frames, on Spark Connect, with ``metrics_path``,
    and for more rows than :func:`read_few_rows` reads.
    """
    known = _reads.get(df)
    if known is None or not known.is_found_here or is_cached(df) or has_months(schema):
        return None
    query = known.query()
    return None if query.metrics_path is not None else read_few_rows(query, schema)


def _local_files(options: Mapping[str, str], paths: str | Sequence[str]) -> Sequence[str] | None:
    """Return the files at local ``paths``, or None if the paths are URLs."""
    roots = [paths] if isinstance(paths, str) else paths
    return None if any(map(is_remote, roots)) else _query_of(options, paths).files


def _is_on_connect(session_or_frame: DataFrame | SparkSession) -> bool:
    return type(session_or_frame).__module__.startswith("pyspark.sql.connect")


@suggest_arguments_of("spark", options=FileOptions.__annotations__)
def explain_read(
    path: str | Sequence[str] | DataFrame,
    columns: Sequence[Any] | Mapping[str, Any] | None = None,
    where: Any = None,
    bbox: Box | str | None = None,
    bbox_column: str | None = None,
    partitioning: Partitioning = "hive",
    trust_statistics: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    schema: Literal["union"] | None = None,
    shredded: bool = False,
    path_glob_filter: str | None = None,
    engine: Engine = "python",
    spark: SparkSession | None = None,
    all_indexes: bool = False,
    skipping: Any = None,
    partition_types: PartitionTypes | None = None,
    ignore_table_format: bool = False,
    **file_options: Unpack[FileOptions],
) -> ReadPlan:
    """Return the plan of :func:`read` with these arguments, without reading rows.

    ``df.explain()`` prints this plan after Spark's, except on Spark Connect. For the other arguments, see :func:`read`.

    Args:
        path: Paths as in :func:`read`, or a result of :func:`read` or :func:`where`. With a data frame, only
            ``all_indexes`` applies in addition. ``spark_filter`` of the plan is the part of the conditions that Spark
            evaluates.
        spark: The session of the read. Required for ``engine="auto"``; SQL conditions use the active one by default.
        all_indexes: Read all page indexes and Bloom filters. By default, they are read for a few hundred row groups.
            Tasks read the others, so they may read less data than planned.

    Returns:
        The plan with the engine, its reasons, and the files and row groups with the reasons for pruning them.

    Example:
        >>> print(explain_read("events", where=col("id") > 5))  # doctest: +SKIP
    """
    if isinstance(path, DataFrame):
        known, spark_filter = _filtered_reads.get(path) or (_reads.get(path), None)
        if known is None:
            raise TypeError("explain_read accepts paths, or a data frame from read() or where() of pqext.spark")
        if columns is not None or where is not None or bbox is not None:
            raise TypeError("explain_read of a data frame accepts no columns, where or bbox; call pqext.spark.where")
        return _explain(path.sparkSession, known.query, known.engine, all_indexes, spark_filter)
    check_engine(engine)
    spark = find_session(where) if spark is None else spark
    timezone = DEFAULT if spark is None else session_timezone(spark)
    columns = None if columns is None else set_timezone(parse_columns(columns), timezone)
    encode = partial(
        encode_options, bbox=bbox, bbox_column=bbox_column, shredded=shredded, partitioning=partitioning,
        trust_statistics=trust_statistics, storage_options=storage_options, schema=schema,
        path_glob_filter=path_glob_filter, skipping=skipping, partition_types=partition_types,
        ignore_table_format=ignore_table_format, file_options=encode_file_options(file_options, timezone),
    )

    def query_of(where: Any) -> Query:
        options = encode(columns, where if spark is None else filter_in_timezone(where, timezone))
        options = options if spark is None else add_settings(options, session_setting(spark))
        return _query_of(options, [path] if isinstance(path, str) else list(path))

    if spark is not None and may_split(where, session_setting(spark), partial(query_of, where)):
        names = partial(_stored_names, spark, absolute_paths(path), encode)
        unfiltered = read(
            spark, path, add_condition_columns(columns, where, names), shredded=shredded, partitioning=partitioning,
            storage_options=storage_options, schema=schema, path_glob_filter=path_glob_filter,
            partition_types=partition_types, ignore_table_format=ignore_table_format, **file_options,
        )
        where = split_condition(unfiltered, where).tree
    return _explain(spark, partial(query_of, where), engine, all_indexes)


def _explain(
    spark: SparkSession | None, query: Callable[[], Query], engine: Engine, all_indexes: bool = False,
    spark_filter: str | None = None,
) -> ReadPlan:
    requested = query()
    choice = choose_engine(requested, engine, spark)
    names, limit = requested.values_schema().names, None if all_indexes else MAX_INDEXED_ROW_GROUPS
    plan = plan_read(requested, names, max_indexed=limit, with_reasons=True)
    return replace(plan, engine=choice.engine, reasons=choice.reasons, spark_filter=spark_filter)


def _query_of(options: Mapping[str, str], paths: str | Sequence[str]) -> Query:
    return Query.from_options({**options, "paths": json.dumps([paths] if isinstance(paths, str) else paths)}).resolve()
