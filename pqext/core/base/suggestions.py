"""Words for errors: what may have been meant by a name that is not there, what there is, what of a text to quote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, NoReturn, ParamSpec, TypeVar

MAX_LISTED = 30
MAX_NAME = 200
"""Characters of a name to which others may be close."""

_ALL_BUT = re.compile(r"\*\s*(?:exclude|except)\s*\(?(?P<names>[^()]*)\)?", re.I)
_THREADS = "use_threads=False is threads=1 here, and threads=0 is one thread per processor"
_PARTITIONS = "it is partitioning here, \"hive\" or None"
_PATTERN = "give the pattern in the path, as in 'folder/**/part-*.parquet'"
_INSIDE = "field(name) is a field of a struct, variant(path, type) a value within a VARIANT"
_ALL_JSON = "it is read_all, which gives a table with the column"
_UNION = "it is schema=\"union\" here"
OF_OTHERS: dict[str, dict[str, str]] = {
    "read": {
        "batch_size": "it is batch_rows here, an argument of Scan.to_batches and ParquetFile.iter_batches",
        "coerce_int96_timestamp_unit": "it is int96 here",
        "decryption_properties": "it is decryption here",
        "dtype_backend": "pqext returns Arrow; call to_pandas on the result",
        "engine": "leave it out",
        "file_row_number": "it is include_row_numbers here, the name of the column",
        "filename": "it is include_file_paths here, the name of the column",
        "filters": "it is filter here",
        "hive_partitioning": _PARTITIONS,
        "limit": "pqext.scan(...).limit(n) reads the first rows",
        "mergeSchema": _UNION,
        "memory_map": "leave it out: pqext fetches only the byte ranges that it needs",
        "mask": "it is filter here, as in pqext.col('geom').intersects(shape); bbox of geo.read_geopandas is a box",
        "n_rows": "pqext.scan(...).limit(n) reads the first rows",
        "page_checksum_verification": "it is checksums here, on by default",
        "predicate": "it is filter here",
        "pathGlobFilter": _PATTERN,
        "path_glob_filter": _PATTERN,
        "pre_buffer": "leave it out: pqext fetches ranges that lie close together at once",
        "read_dictionary": "arrow_schema=True, the default, gives dictionaries where the writer noted them",
        "row_index_name": "it is include_row_numbers here, the name of the column",
        "row_groups": "pqext.open(path).read(columns, row_groups) takes row groups",
        "schema": "pqext.scan and pqext.read_table take a schema, or schema=\"union\"; else cast the result",
        "thrift_string_size_limit": "it is part of limits here, limits=pqext.Limits(...)",
        "union": _UNION,
        "union_by_name": _UNION,
        "use_pandas_metadata": "leave it out: to_pandas on the result follows that metadata",
        "use_statistics": "it is trust_statistics here",
        "use_threads": _THREADS,
        "where": "it is filter here",
    },
    "write": {
        "bloom_filter_options": "it is bloom_filters here",
        "codec": "it is compression here",
        "coerce_timestamps": "cast the column before; pqext writes timestamps in their own unit",
        "allow_truncated_timestamps": "cast the column before; pqext writes timestamps in their own unit",
        "column_encoding": "it is encodings here",
        "data_page_size": "it is page_bytes here",
        "data_page_version": "it is page_version here, 1 or 2",
        "dictionary_pagesize_limit": "leave it out: a dictionary ends where it no longer pays",
        "encryption_properties": "it is encryption here",
        "engine": "leave it out",
        "index": "leave it out: a pandas index is written where pyarrow writes it",
        "max_rows_per_page": "it is page_rows here",
        "metadata": "it is key_value_metadata here",
        "partition_cols": "pqext writes one file: write each part with a call of its own",
        "row_group_size": "it is row_group_rows here, and row_group_bytes in bytes",
        "row_group_size_bytes": "it is row_group_bytes here",
        "sorting_columns": "it is sorting here",
        "store_schema": "it is arrow_schema here",
        "use_byte_stream_split": "it is encodings=\"byte_stream_split\" here",
        "use_compliant_nested_type": "leave it out: lists are always written by the specification",
        "use_deprecated_int96_timestamps": "pqext writes no INT96",
        "use_dictionary": "it is dictionary here",
        "use_threads": _THREADS,
        "version": "leave it out: the version of pages is page_version here, 1 or 2",
        "write_page_checksum": "it is checksums here, on by default",
        "write_page_index": "it is page_index here, on by default",
        "write_statistics": "it is statistics here",
    },
    "method": {
        "batch_size": "it is batch_rows here",
        "columns": "pqext.scan(path, columns) chooses columns",
        "filter": "pqext.scan(path, filter=...) and pqext.read_table take a filter",
        "filters": "pqext.scan(path, filter=...) and pqext.read_table take a filter",
        "i": "it is row_groups here, a list of numbers",
        "limit": "it is rows here, an argument of head",
        "max_chunksize": "it is batch_rows here",
        "n": "it is rows here, an argument of head",
        "n_rows": "it is rows here, an argument of head",
        "num_rows": "it is rows here, an argument of head",
        "row_group": "it is row_groups here, a list of numbers",
        "row_group_size": "row_group_rows is an option of the writer; end_row_group() ends one at any row",
        "use_threads": "threads is an option of pqext.open and pqext.scan",
    },
    "spark": {
        "filter": "it is where here",
        "filters": "it is where here",
        "basePath": "it is base_path here",
        "ignoreCorruptFiles": "it is on_invalid=\"skip\" here",
        "ignoreMissingFiles": "it is ignore_missing_files here",
        "mergeSchema": _UNION,
        "merge_schema": _UNION,
        "modifiedAfter": "it is modified_after here",
        "modifiedBefore": "it is modified_before here",
        "pathGlobFilter": "it is path_glob_filter here",
        "recursiveFileLookup": "folders are read with all below them; partitioning=None makes no columns of names",
    },
}
"""What to use for the options that pyarrow, pandas, polars and DuckDB have and pqext calls otherwise."""

MEMBERS_OF_OTHERS: dict[str, dict[str, str]] = {
    "ParquetFile": {
        "columns": "arrow_schema.names has them",
        "num_row_groups": "it is len(file.row_groups)",
        "read_row_group": "it is read(columns, row_groups=[...])",
        "read_row_groups": "it is read(columns, row_groups=[...])",
        "schema_arrow": "it is arrow_schema",
        "to_pandas": "read().to_pandas() gives a frame",
    },
    "JsonReader": {
        "collect": _ALL_JSON,
        "read": _ALL_JSON,
        "to_arrow": _ALL_JSON,
        "to_pandas": "read_all().to_pandas() gives a frame",
        "to_table": _ALL_JSON,
    },
    "ParquetWriter": {"write": "it is write_table, or write_batch for a record batch"},
    "Scan": {
        "collect": "it is to_table, or to_polars",
        "arrow": "it is to_table, or to_reader for a stream",
        "count_rows": "it is count",
        "df": "it is to_pandas",
        "group_by": "pqext reads rows: group those of to_table, to_polars(lazy=True) or duckdb.sql('FROM scan')",
        "join": "pqext reads rows: join those of to_table, to_polars(lazy=True) or duckdb.sql('FROM scan')",
        "num_rows": "count() gives the rows that match",
        "read": "it is to_table",
        "scanner": "leave it out: a scan is one",
        "shape": "count() gives the rows that match, and len(schema) the columns",
        "sort": "it is order_by",
        "sort_by": "it is order_by",
        "to_arrow": "it is to_table, or to_reader for a stream",
        "to_df": "it is to_pandas",
        "fetchall": "it is to_table().to_pylist()",
        "columns": "schema.names has them, and select(...) chooses some",
        "fetchone": "it is head(1).to_pylist()",
        "slice": "it is limit(length, offset)",
        "where": "it is filter",
    },
    "Value": {
        "getField": _INSIDE,
        "getItem": _INSIDE,
        "is_valid": "it is is_not_null",
        "rlike": "like, ilike, starts_with, ends_with and contains match text",
        "str": "starts_with, ends_with, contains, like and ilike are methods of the column itself",
        "struct": _INSIDE,
    },
}
"""What to use for the members of the classes of other libraries that those of pqext do not have."""


def missing(owner: str, name: str, known: Iterable[str], of_others: Mapping[str, str]) -> AttributeError:
    """The error for a ``name`` that ``owner`` does not have: what ``of_others`` says of it, or a close ``known`` name.

    >>> str(missing("module 'pqext'", "scn", ["scan"], {}))
    "module 'pqext' has no attribute 'scn'; did you mean 'scan'?"
    """
    text = f"{owner} has no attribute {name!r}"
    if name.startswith("_"):  # which the interpreter and tools ask for
        return AttributeError(text)
    return AttributeError(text + (f"; {of_others[name]}" if name in of_others else did_you_mean(name, known)))


class Suggesting:
    """A class whose instances say what a name that they do not have is called here."""

    __slots__ = ()

    if not TYPE_CHECKING:  # type checkers shall refuse these names

        def __getattr__(self, name: str) -> NoReturn:
            kind = type(self)
            known = (one for one in dir(kind) if not one.startswith("_"))
            of_others = next((told for one in kind.__mro__ if (told := MEMBERS_OF_OTHERS.get(one.__name__))), {})
            raise missing(f"{kind.__name__!r} object", name, known, of_others)


_P = ParamSpec("_P")
_Result = TypeVar("_Result")


def answering_with(*kinds: str) -> Callable[[Callable[_P, _Result]], Callable[_P, _Result]]:
    """A decorator of functions, which then answer arguments of other libraries with what to use here, in a
    ``TypeError``, by the first of those ``kinds`` of :data:`OF_OTHERS` that knows the name."""

    def decorated(function: Callable[_P, _Result]) -> Callable[_P, _Result]:
        parameters = signature(function).parameters
        known = list(parameters)
        takes_more = any(one.kind is one.VAR_KEYWORD for one in parameters.values())

        @wraps(function)
        def answered(*args: _P.args, **keywords: _P.kwargs) -> _Result:
            for name in keywords:
                if name not in known:
                    elsewhere = next((OF_OTHERS[kind][name] for kind in kinds if name in OF_OTHERS[kind]), None)
                    if elsewhere is None and takes_more:
                        continue
                    meant = f"; {elsewhere}" if elsewhere else did_you_mean(name, known[1:])
                    raise TypeError(f"{function.__qualname__} has no argument {name!r}{meant}")
            return function(*args, **keywords)

        return answered

    return decorated


answering = answering_with("method", "read")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'lat'?`` when a known name is close to ``name``, in any case of its letters; else nothing.

    >>> did_you_mean("latt", ["lon", "lat"])
    "; did you mean 'lat'?"
    """
    near = nearest(name, known)
    return "" if near is None else f"; did you mean {near!r}?"


def nearest(name: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """The known name that is closest to ``name``, in any case of its letters; None where none is ``alike``, of 1.

    >>> nearest("ID", ["id", "day"])
    'id'
    """
    from difflib import get_close_matches

    if len(name) > MAX_NAME:
        return None
    by_lower = {one.lower(): one for one in known}
    close = get_close_matches(name.lower(), by_lower, 1, alike)
    return by_lower[close[0]] if close else None


def listed(names: Iterable[str]) -> str:
    """The names, separated by commas; of a long list the first ones and how many more there are."""
    every = list(names)
    more = f" and {len(every) - MAX_LISTED} more" if len(every) > MAX_LISTED else ""
    return ", ".join(every[:MAX_LISTED]) + more


def around(text: str, position: int = 0, limit: int = 300) -> str:
    """``text``, or the ``limit`` characters of it around a position, with dots where something is left out."""
    start = max(0, min(position, len(text)) - limit // 2)
    stop = start + limit
    return ("..." if start else "") + text[start:stop] + ("..." if len(text) > stop else "")


def all_but(text: str) -> str:
    """What to write for ``* exclude (a, b)``, which is for the command line; nothing for other text.

    >>> all_but("* exclude (a)")
    "name the columns to keep: [name for name in scan.schema.names if name not in ['a']]"
    """
    match = _ALL_BUT.fullmatch(text.strip())
    if match is None:
        return ""
    left = [one.strip().strip('"') for one in around(match["names"]).split(",")]
    return f"name the columns to keep: [name for name in scan.schema.names if name not in {left!r}]"


def not_a_list(columns: str) -> str:
    """What to say of ``columns`` that are text and no list.

    >>> not_a_list("a, b")
    "columns is a list of names: columns=['a', 'b']"
    """
    if columns.strip() == "*":
        return "columns is a list of names: leave it out to have all columns"
    if kept := all_but(columns):
        return f"columns is a list of names: {kept}"
    return f"columns is a list of names: columns={[one.strip() for one in around(columns).split(',')]!r}"


def not_a_leaf(name: str, leaves: Iterable[str]) -> str:
    """What to say after the ``name`` of a column that is none of the dotted paths of ``leaves``.

    It is a group of some of them, or it is close to one, or all are listed.
    """
    every = list(leaves)
    below = [leaf for leaf in every if leaf.startswith(name + ".")]
    if below:
        return f", which is a group: name a column within it, {listed(below)}"
    meant = did_you_mean(name, every)
    return f"{meant} The columns are {listed(every)}" if meant else f"; the columns are {listed(every)}"


def not_a_column(name: str, columns: Iterable[str]) -> str:
    """What to say of a column that is none of the top-level ``columns``: what may have been meant, or what there is."""
    every = list(columns)
    meant = did_you_mean(name, every) if isinstance(name, str) else ""
    return f"no column {around(str(name))!r}{meant or '; the file has ' + around(listed(every), 0, 3000)}"
