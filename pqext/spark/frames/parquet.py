"""Reading through data source ``pqext``, and filters that reach the statistics of the files."""

from __future__ import annotations

import json
import logging
import os
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
from pqext.dataset.expressions.timezones import in_timezone
from pqext.dataset.notations.dnf import as_expression
from pqext.dataset.planning.projection import Computed, parse_columns
from pqext.dataset.table.partitions import Partitioning, PartitionTypes
from pqext.spark.base.files import is_remote
from pqext.spark.base.hadoop import from_hadoop
from pqext.spark.base.settings import session_setting, with_settings
from pqext.spark.base.timezones import filter_in_timezone, session_timezone
from pqext.spark.columns.instants import compares_local_times
from pqext.spark.columns.months import cast_to_intervals, has_months
from pqext.spark.columns.names import resolve_case
from pqext.spark.frames.methods import is_cached, replace_count, replace_explain, replace_narrowing
from pqext.spark.options.file import FileOptions, as_options
from pqext.spark.pushdown.conditions import condition, reads_alike
from pqext.spark.pushdown.spark_sql import is_spark_sql, needs_schema, spark_condition
from pqext.spark.pushdown.two_step_reads import can_evaluate, names_column, read_in_two_steps
from pqext.spark.reading.aggregation import Aggregate, Aggregation
from pqext.spark.reading.driver_read import counter_of_few_files, few_rows
from pqext.spark.reading.native import Choice, Engine, check_engine, choose
from pqext.spark.reading.planning import LOOKS, ReadPlan, plan_read
from pqext.spark.reading.request import Query, encode_options
from pqext.spark.sources.registration import ensure_registered
from pqext.variant.timezones import DEFAULT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Box = Sequence[float]


@dataclass(frozen=True)
class _Read:
    """How a data frame was read: ``again`` reads it with another ``where``."""

    again: Callable[..., DataFrame]
    where: Expression | None
    computed: frozenset[str]
    """Columns that are not the files' own of that name: a filter on them is Spark's."""
    query: Callable[[], Query]
    """What is asked of the files."""
    engine: Engine
    is_found_here: bool
    """Whether this process finds the files at their paths."""


_TIME_TYPE = "spark.sql.timeType.enabled"

_reads: WeakKeyDictionary[DataFrame, _Read] = WeakKeyDictionary()


@suggest_arguments_of("spark")
def read(
    spark: SparkSession,
    path: str | Sequence[str],
    columns: Sequence[Any] | Mapping[str, Any] | None = None,
    where: Any = None,
    bbox: Box | None = None,
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
    """Parquet files as a data frame, read by pqext, or by Spark as pqext has planned it.

    ``path`` is a file, a folder, a pattern (``*``, ``?``, ``[...]``, ``**``, ``{a,b}``), the URL of one (``s3://``,
    ``s3a://``, ``gs://``, ``abfss://``, ``hdfs://``, ``https://``, ...) or a list of them. ``storage_options`` are
    credentials and the like for URLs, as :func:`pqext.scan` takes them; without them, Spark's Hadoop settings for the
    store count, else the environment. ``columns`` are names, values within VARIANT columns
    (``col("event").variant("$.mag", "double")``) and named values of others (``(col("a") * 2).alias("b")``), as
    :meth:`pqext.Scan.select` takes them, or a mapping of names to these: nothing else is read, while Spark would not
    say which columns it needs.

    ``where`` is SQL text, a ``Column``, an expression of ``pqext.col`` or a filter in lists of tuples, as :func:`where`
    takes them. ``bbox`` is a box ``(xmin, ymin, xmax, ymax)`` that the file's geometry column
    (``bbox_column`` when there are several) must intersect, crossing the antimeridian when ``xmin > xmax``.
    Row groups whose statistics refuse them are never read. Spark's own
    filters on the data frame are right, but reach no statistics: :func:`where` does.

    ``shredded=True`` gives shredded VARIANT columns as their storage structs. ``metrics_path`` is a folder in which
    tasks leave what they read, for :func:`read_metrics`. ``partitioning="hive"`` takes folders named ``year=2020`` for
    columns, as :func:`pqext.scan` does: files that ``where`` refuses by them are not opened. With None (option
    ``none``) the files alone are read. ``partition_types`` states types of these columns, as in :func:`pqext.scan`.
    ``trust_statistics=False`` reads all row groups and pages, as :class:`pqext.ReadOptions` describes it.
    ``memory_bytes`` is what a task may hold decoded of a file, by default what ``pqext.Limits.untrusted()`` allows: a
    file that asks for more is refused. ``schema="union"`` matches the columns of files by name, as :func:`pqext.scan`
    does; all files must agree by default. ``include_file_paths`` and ``include_row_numbers`` name columns for the file
    of each row and its number there; Spark's ``input_file_name()`` is empty. ``path_glob_filter``, Spark's
    ``pathGlobFilter``, leaves out files whose own name does not match a pattern, and ``modified_after`` and
    ``modified_before`` those of other times, local times in the session's time zone. ``base_path`` is the folder from
    which folders name columns. ``on_invalid="skip"``, Spark's ``ignoreCorruptFiles``, leaves out files that cannot be
    opened and the rest of a file from a fault on; ``ignore_missing_files`` leaves out those that were removed since.
    Names of columns are found in any case unless ``spark.sql.caseSensitive`` is true. Other settings of the session
    that count are listed under "Settings of Spark" in the reference. ``ignore_table_format=True`` reads every file of a
    Delta, Iceberg or Hudi table's folder. ``invalid_utf8`` and ``legacy_timezone`` are those of
    :class:`pqext.ReadOptions`.

    ``skipping`` is a data-skipping store of :mod:`pqext.skipping`, its path or its URL: the files of which it proves
    that no row matches ``where`` and ``bbox`` are dropped before they are opened, whatever the engine. Files that have
    changed since the store was made are read, as are those that it does not know.

    ``engine`` says who reads the rows. ``"python"`` is pqext, in Python workers. ``"native"`` is Spark's own Parquet
    reader: the files are planned now, those that cannot match are left out, and values within VARIANT columns that lie
    in a typed leaf alone are read as plain columns, without Python. Like all files that Spark itself reads, they must
    not be replaced while the data frame is in use. ``"auto"`` is ``"native"`` where nothing speaks against it.
    :func:`explain_read` gives the reasons. Rows and types are the same.

    Raises ``UnsupportedError`` for ``engine="native"`` where Spark cannot read the files, naming every obstacle.
    """
    check_engine(engine)
    timezone = session_timezone(spark)
    paths = path if isinstance(path, str) else list(path)
    columns = None if columns is None else in_timezone(parse_columns(columns), timezone)
    storage = storage_options or from_hadoop(spark, paths)
    again = partial(
        read, spark, paths, bbox=bbox, shredded=shredded, bbox_column=bbox_column, metrics_path=metrics_path,
        partition_bytes=partition_bytes, partitioning=partitioning, trust_statistics=trust_statistics,
        memory_bytes=memory_bytes, storage_options=storage, schema=schema, include_file_paths=include_file_paths,
        include_row_numbers=include_row_numbers, path_glob_filter=path_glob_filter, engine=engine, skipping=skipping,
        partition_types=partition_types, ignore_table_format=ignore_table_format, **file_options,
    )
    if needs_schema(where) or names_column(where, include_row_numbers):
        return read_in_two_steps(again, columns, where, _where)
    given, where = where, filter_in_timezone(where, timezone)
    expression = as_expression(where)
    options = encode_options(
        columns, where, bbox, bbox_column, shredded, metrics_path, partition_bytes, partitioning, trust_statistics,
        memory_bytes, storage_options=storage, schema=schema, include_file_paths=include_file_paths,
        include_row_numbers=include_row_numbers, path_glob_filter=path_glob_filter, skipping=skipping,
        partition_types=partition_types, ignore_table_format=ignore_table_format,
        file_options=as_options(file_options, timezone),
    )
    options = with_settings(options, session_setting(spark))
    if is_spark_sql(given) and _shares_folder(spark, paths) and not can_evaluate(partial(_query_of, options, paths)):
        return read_in_two_steps(again, columns, given, _where)
    ensure_registered(spark)
    choice = Choice("python") if engine == "python" else choose(_query_of(options, paths), engine, spark)
    if choice.reading is not None and choice.engine == "native":
        df = choice.reading.read(spark)
    else:
        df = cast_to_intervals(spark.read.format("pqext").options(**options, interval_months="true").load(paths))
    if "time(" in df.schema.simpleString() and spark.conf.get(_TIME_TYPE, "true") == "false":
        _time_hint()
    computed = {one.name for one in parse_columns(columns or ()) if isinstance(one, Computed)}
    computed |= {name for name in [include_row_numbers] if name is not None}
    asked = partial(_query_of, options, paths)
    is_found_here = _shares_folder(spark, paths)
    _reads[df] = _Read(partial(again, columns), expression, frozenset(computed), asked, engine, is_found_here)
    if choice.engine != "native":
        replace_narrowing(df)
    if metrics_path is None and options.get("on_invalid") != "skip":  # the fault may be in any column
        files = _local_files(options, paths) if is_found_here else None
        replace_count(df, partial(_counter_of, spark, paths, options, choice.engine, files))
    if not _is_on_connect(df):
        replace_explain(df, partial(_explained, spark, asked, engine))
    return df


def _counter_of(
    spark: SparkSession, paths: str | list[str], options: Mapping[str, str], engine: str, files: Sequence[str] | None
) -> Callable[[], int] | None:
    """Count the rows of a read with these options: the driver counts few files, tasks others; None where Spark does.

    The columns stay those of the read, so that files whose columns differ are refused like there. ``files`` are those
    that there were, if known: when others came, Spark counts, since it may have planned the data frame before.
    """
    aggregation = Aggregation(0, (Aggregate("count", "count", None),))
    counting = {**options, **encode_options(aggregation=aggregation)}
    if files is not None:
        query = _query_of(counting, paths)
        if query.files != files:
            return None
        here = counter_of_few_files(query)
        if here is not None:
            return here
    if engine == "native":
        return None
    counts = spark.read.format("pqext").options(**counting).load(paths)
    return lambda: sum(row[0] for row in counts.select("*").collect())


@cache
def _time_hint() -> None:
    """Log once that Spark rejects TIME columns by default, in an error that does not name its setting."""
    logging.getLogger("pqext.spark").warning(
        "Spark's filters, groups and writes fail on TIME columns with UNSUPPORTED_TIME_TYPE unless %s is true",
        _TIME_TYPE,
    )


def _filter(df: DataFrame, condition: Column) -> DataFrame:
    """``DataFrame.where`` without the hint."""
    return type(df).where(df, condition)


def where(df: DataFrame, expression: Any) -> DataFrame:
    """The rows of ``df`` for which a condition is true.

    ``expression`` is an expression of ``pqext.col``, a filter in lists of tuples, the text of an SQL condition, or a
    ``Column``. When ``df`` is what :func:`read` returned, and is not cached, the files are read anew with the condition
    in the read, so that row groups and pages whose statistics refuse it are skipped. Refer to columns of the result
    by name or through the result, since it is not derived from ``df``. Every other data frame is filtered: of
    shredded structs Spark's own Parquet reader then skips row groups, by a guard beside the exact condition,
    ``(g1 OR g2) AND (exact1 OR exact2)``.

    Text and ``Column`` mean what they mean to ``df.where``, casts, functions and errors of ANSI mode included. Clauses
    that pqext evaluates alike narrow the read, and Spark evaluates the others on the rows that are left. In text, paths
    of a VARIANT (``event:$.mag::double > 5``), names in double quotes and functions that Spark does not know are
    pqext's own, and ``a.b`` is a column of exactly that name if there is one.

    Expressions mean what they mean to ``pqext.scan``: three-valued logic, NaN equal to itself and above all other
    numbers, numbers compared by their exact values, and no literal that would first have to be cast, such as text for a
    date. Variant fields cast as Spark's ``try_variant_get`` casts; on a VARIANT column of a data frame that is not read
    anew that very function does it (``specs/variant-casts.md`` lists what differs). Names of columns match in any case
    of their letters, unless ``spark.sql.caseSensitive`` is true. Strings with a collation compare by it, in Spark.

    Raises ``ValueError`` for columns that ``df`` has not and ``TypeError`` for literals of expressions that do not
    compare.
    """
    return _where(df, expression)


def _where(df: DataFrame, expression: Any) -> DataFrame:
    if is_spark_sql(expression):
        asked = spark_condition(df, expression, bounded=df in _reads)
        narrowed = df if asked.tree is None else _where_tree(df, asked.tree)
        if asked.rest is None:
            return narrowed
        try:
            found = _filter(narrowed, asked.rest)
            found.schema  # noqa: B018  Connect analyses no sooner
        except AnalysisException:  # of a column that is bound to df
            return _filter(df, expression)
        return found
    tree = in_timezone(as_expression(expression), session_timezone(df.sparkSession))
    return df if tree is None else _where_tree(df, resolve_case(tree, df))


def _where_tree(df: DataFrame, tree: Expression) -> DataFrame:
    """:func:`where` with an expression on the columns of ``df``."""
    known = _reads.get(df)
    if known is not None and known.is_found_here and compares_local_times(tree):
        with suppress(FileNotFoundError):  # of a cached frame
            if known.computed.isdisjoint(visitors.columns(tree)):
                tree = known.query().with_instants(tree)
    filter = condition(df, tree).column
    if known is None or is_cached(df) or not reads_alike(tree, df.schema):
        return _filter(df, filter)
    if not known.computed.isdisjoint(visitors.columns(tree)):
        return _filter(df, filter)
    both = all_of([tree] if known.where is None else [known.where, tree])
    return _filter(df, filter) if both.depth >= MAX_DEPTH else known.again(where=both)


def read_here(df: DataFrame, schema: T.StructType) -> Iterator[pa.RecordBatch] | None:
    """The columns of ``schema`` of what :func:`read` returned, in Spark's exchange types, read by this process.

    None where Spark is to give them: of another or a cached data frame, on Connect, where ``metrics_path`` counts what
    tasks read, and of many rows.
    """
    known = _reads.get(df)
    if known is None or not known.is_found_here or is_cached(df) or has_months(schema):
        return None
    query = known.query()
    return None if query.metrics_path is not None else few_rows(query, schema)


def _local_files(options: Mapping[str, str], paths: str | Sequence[str]) -> Sequence[str] | None:
    """The files at ``paths``; None for those in stores."""
    given = [paths] if isinstance(paths, str) else paths
    return None if any(map(is_remote, given)) else _query_of(options, paths).files


def _shares_folder(spark: SparkSession, paths: str | list[str]) -> bool:
    """Whether this process finds at ``paths`` what Spark finds there: relative ones depend on Spark's own folder."""
    if _is_on_connect(spark):
        return False
    given = [paths] if isinstance(paths, str) else paths
    if all(os.path.isabs(path) or "://" in path for path in given):
        return True
    assert spark._jvm is not None
    return bool(spark._jvm.java.lang.System.getProperty("user.dir") == os.getcwd())


def _is_on_connect(one: DataFrame | SparkSession) -> bool:
    return type(one).__module__.startswith("pyspark.sql.connect")


@suggest_arguments_of("spark")
def explain_read(
    path: str | Sequence[str] | DataFrame,
    columns: Sequence[Any] | Mapping[str, Any] | None = None,
    where: Any = None,
    bbox: Box | None = None,
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
    """What :func:`read` with these arguments would read, by the same planner, run here on the footers.

    As in :func:`read`, page indexes and Bloom filters are looked at of a few hundred row groups at most; of more the
    tasks look at them, and read less than the plan says. With ``all_indexes`` the plan tells what they will find.
    The result's ``engine`` and ``reasons`` tell who reads and why; ``spark`` is the session that :func:`read` is given,
    whose settings count, and which counts for ``engine="auto"`` and for conditions that Spark evaluates in part. With
    ``skipping``, ``tasks`` say which files the store drops, and why. Raises as :func:`read` does.

    ``path`` can be a data frame that :func:`read` or :func:`where` returned: its own arguments count then, and of the
    others only ``all_indexes``. ``df.explain()`` prints this plan after Spark's, except on Spark Connect.
    """
    if isinstance(path, DataFrame):
        known = _reads.get(path)
        if known is None:
            raise TypeError("explain_read takes paths, or a data frame as read() or where() of pqext.spark returned it")
        if columns is not None or where is not None or bbox is not None:
            raise TypeError("explain_read of a data frame takes no columns, where or bbox: use pqext.spark.where first")
        return _explained(path.sparkSession, known.query, known.engine, all_indexes)
    check_engine(engine)
    if spark is not None and needs_schema(where):
        unfiltered = read(
            spark, path, shredded=shredded, partitioning=partitioning, storage_options=storage_options, schema=schema,
            path_glob_filter=path_glob_filter, partition_types=partition_types,
            ignore_table_format=ignore_table_format, **file_options,
        )
        where = spark_condition(unfiltered, where).tree
    timezone = DEFAULT
    if spark is not None:
        timezone = session_timezone(spark)
        where = filter_in_timezone(where, timezone)
        columns = None if columns is None else in_timezone(parse_columns(columns), timezone)
    options = encode_options(
        columns, where, bbox, bbox_column, shredded, partitioning=partitioning, trust_statistics=trust_statistics,
        storage_options=storage_options, schema=schema, path_glob_filter=path_glob_filter, skipping=skipping,
        partition_types=partition_types, ignore_table_format=ignore_table_format,
        file_options=as_options(file_options, timezone),
    )
    if spark is not None:
        options = with_settings(options, session_setting(spark))
    query = _query_of(options, [path] if isinstance(path, str) else list(path))
    return _explained(spark, lambda: query, engine, all_indexes)


def _explained(
    spark: SparkSession | None, query: Callable[[], Query], engine: Engine, all_indexes: bool = False
) -> ReadPlan:
    asked = query()
    choice = choose(asked, engine, spark)
    looks = None if all_indexes else LOOKS
    plan = plan_read(asked, asked.values_schema().names, looks=looks, with_reasons=True)
    return replace(plan, engine=choice.engine, reasons=choice.reasons)


def _query_of(options: Mapping[str, str], paths: str | Sequence[str]) -> Query:
    given = [paths] if isinstance(paths, str) else paths
    return Query.from_options({**options, "paths": json.dumps(given)}).resolved()
