"""Suggestions for error messages: similar names, names of other libraries, lists and excerpts of text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, NoReturn, ParamSpec, TypeVar

MAX_LISTED = 30
MAX_NAME = 200
"""Maximum length of a name to search similar names for."""

_ALL_BUT = re.compile(r"\*\s*(?:exclude|except)\s*\(?(?P<names>[^()]*)\)?", re.I)
_THREADS = "use threads: 1 disables threading, 0 is one thread per processor"
_PARTITIONS = "use partitioning, \"hive\" or None"
_PATTERN = "put the pattern into the path, as in 'folder/**/part-*.parquet'"
_INSIDE = "use field(name) for a field of a struct, variant(path, type) for a value within a VARIANT"
_ALL_JSON = "use read_all, which returns a table"
_UNION = "use schema=\"union\""
_BOX = "use filter=pqext.col('geometry').intersects(...) with a box or a shapely geometry"
_FOLDERS = "use pqext.write_dataset(..., partition_by=...)"
FOREIGN_OPTIONS: dict[str, dict[str, str]] = {
    "read": {
        "bbox": _BOX,
        "batch_size": "use batch_rows, an argument of Scan.to_batches and ParquetFile.iter_batches",
        "decryption_properties": "use decryption",
        "engine": "remove it",
        "filename": "use include_file_paths, the name of the column",
        "filters": "use filter",
        "hive_partitioning": _PARTITIONS,
        "limit": "use pqext.scan(...).limit(n)",
        "mask": _BOX,
        "mergeSchema": _UNION,
        "memory_map": "not needed: pqext fetches only the byte ranges that it needs",
        "n_rows": "use pqext.scan(...).limit(n)",
        "pathGlobFilter": _PATTERN,
        "row_groups": "use pqext.open(path).read(columns, row_groups)",
        "rows": "use pqext.scan(...).limit(n)",
        "schema": "pqext.scan and pqext.read_table take a schema, or schema=\"union\"; else cast the result",
        "union_by_name": _UNION,
        "use_threads": _THREADS,
        "where": "use filter",
    },
    "write": {
        "codec": "use compression",
        "column_encoding": "use encodings",
        "data_page_size": "use page_bytes",
        "data_page_version": "use page_version, 1 or 2",
        "engine": "remove it",
        "existing_data_behavior": "use mode",
        "format": "not needed: pqext writes Parquet",
        "index": "not needed: a pandas index is written where pyarrow writes it",
        "metadata": "use key_value_metadata",
        "partition_by": _FOLDERS,
        "partition_cols": _FOLDERS,
        "row_group_size": "use row_group_rows, and row_group_bytes in bytes",
        "sort_by": "use sorting for rows that are sorted already",
        "sorting_columns": "use sorting",
        "use_dictionary": "use dictionary",
        "use_threads": _THREADS,
        "version": "not needed: page_version sets the version of data pages",
        "write_statistics": "use statistics",
    },
    "method": {
        "batch_size": "use batch_rows",
        "columns": "use pqext.scan(path, columns)",
        "filters": "use pqext.scan(path, filter=...) or pqext.read_table",
        "i": "use row_groups, a list of numbers",
        "n": "use rows, an argument of head",
        "n_rows": "use rows, an argument of head",
        "row_group_size": "use row_group_rows of the writer, or call end_row_group()",
        "use_threads": "use threads of pqext.open and pqext.scan",
    },
    "spark": {
        "filter": "use where",
        "filters": "use where",
        "ignoreCorruptFiles": "use on_invalid=\"skip\"",
        "mergeSchema": _UNION,
        "pathGlobFilter": "use path_glob_filter",
        "recursiveFileLookup": "folders are read recursively; partitioning=None adds no partition columns",
    },
}
"""Replacements for common option names of pyarrow, pandas, polars, DuckDB and Spark."""

FOREIGN_MEMBERS: dict[str, dict[str, str]] = {
    "ParquetFile": {
        "num_row_groups": "use len(file.row_groups)",
        "read_row_group": "use read(columns, row_groups=[...])",
        "schema_arrow": "use arrow_schema",
        "to_pandas": "use read().to_pandas()",
    },
    "JsonReader": {
        "read": _ALL_JSON,
        "to_table": _ALL_JSON,
    },
    "ParquetWriter": {"write": "use write_table, or write_batch for a record batch"},
    "Scan": {
        "collect": "use to_table, or to_polars",
        "files": "use [task.path for task in scan.plan()]",
        "group_by": "pqext does not aggregate by group: use to_polars(lazy=True) or duckdb.sql('FROM scan')",
        "num_rows": "use count() for the number of matching rows",
        "sink_parquet": "use pqext.write_table(scan, path)",
        "shape": "use count() for rows and len(schema) for columns",
        "sort": "use order_by",
        "to_arrow": "use to_table, or to_reader for a stream",
        "to_pylist": "use to_table().to_pylist()",
        "columns": "use schema.names, or select(...) to project",
        "where": "use filter",
    },
    "Value": {
        "desc": "use order_by(..., descending=True)",
        "getItem": _INSIDE,
        "is_valid": "use is_not_null",
        "str": "starts_with, ends_with, contains, like and ilike are methods of the column itself",
    },
}
"""Replacements for common members of the classes of other libraries."""


def missing_attribute(owner: str, name: str, names: Iterable[str], hints: Mapping[str, str]) -> AttributeError:
    """Create the error for a missing attribute, with the replacement from ``hints`` or a similar name among ``names``.

    >>> str(missing_attribute("module 'pqext'", "scn", ["scan"], {}))
    "module 'pqext' has no attribute 'scn'; did you mean 'scan'?"
    """
    text = f"{owner} has no attribute {name!r}"
    if name.startswith("_"):  # the interpreter and tools probe for these
        return AttributeError(text)
    return AttributeError(text + (f"; {hints[name]}" if name in hints else did_you_mean(name, names)))


class SuggestionMixin:
    """Base of classes whose ``AttributeError`` suggests a similar name or a replacement for another library's name."""

    __slots__ = ()

    if not TYPE_CHECKING:  # if type checkers saw this method, they would not report unknown names

        def __getattr__(self, name: str) -> NoReturn:
            cls = type(self)
            names = (member for member in dir(cls) if not member.startswith("_"))
            hints = next((table for base in cls.__mro__ if (table := FOREIGN_MEMBERS.get(base.__name__))), {})
            raise missing_attribute(f"{cls.__name__!r} object", name, names, hints)


_P = ParamSpec("_P")
_Result = TypeVar("_Result")


def suggest_arguments_of(
    *tables: str, options: Iterable[str] | None = None
) -> Callable[[Callable[_P, _Result]], Callable[_P, _Result]]:
    """Decorate a function so that its ``TypeError`` for an unknown argument suggests the name to use.

    ``tables`` are keys of :data:`FOREIGN_OPTIONS`. The suggestion comes from the first of these tables that
    contains the name. Otherwise, it is a similar argument of the function. ``options`` are the names that a function
    with variable keywords accepts in addition; by default it accepts all names.
    """

    def decorate(function: Callable[_P, _Result]) -> Callable[_P, _Result]:
        parameters = signature(function).parameters
        variable = [name for name, parameter in parameters.items() if parameter.kind is parameter.VAR_KEYWORD]
        names = [*(name for name in parameters if name not in variable), *(options or ())]
        accepts_any = bool(variable) and options is None

        @wraps(function)
        def wrapper(*args: _P.args, **keywords: _P.kwargs) -> _Result:
            for name in keywords:
                if name not in names:
                    replacement = next((hint for table in tables if (hint := FOREIGN_OPTIONS[table].get(name))), None)
                    if replacement is None and accepts_any:
                        continue
                    suggestion = f"; {replacement}" if replacement else did_you_mean(name, names[1:])
                    raise TypeError(f"{function.__qualname__} has no argument {name!r}{suggestion}")
            return function(*args, **keywords)

        return wrapper

    return decorate


suggest_arguments = suggest_arguments_of("method", "read")


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return ``; did you mean 'lat'?`` if a name is similar to ``name``, ignoring case; otherwise an empty string.

    >>> did_you_mean("latt", ["lon", "lat"])
    "; did you mean 'lat'?"
    """
    near = closest_name(name, names)
    return "" if near is None else f"; did you mean {near!r}?"


def closest_name(name: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the name most similar to ``name``, ignoring case.

    Return None if no similarity reaches ``cutoff``, or if ``name`` has more than ``MAX_NAME`` characters.

    >>> closest_name("ID", ["id", "day"])
    'id'
    """
    from difflib import get_close_matches

    if len(name) > MAX_NAME:
        return None
    by_lower = {candidate.lower(): candidate for candidate in names}
    close = get_close_matches(name.lower(), by_lower, 1, cutoff)
    return by_lower[close[0]] if close else None


def join_names(names: Iterable[str], limit: int = MAX_LISTED) -> str:
    """Join the first ``limit`` names with commas, followed by the number of names that are omitted, if any."""
    every = list(names)
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + more


def excerpt(text: str, position: int = 0, limit: int = 300) -> str:
    """Return ``text``, or ``limit`` characters around ``position`` with ``...`` for omitted text."""
    start = max(0, min(position, len(text)) - limit // 2)
    stop = start + limit
    return ("..." if start else "") + text[start:stop] + ("..." if len(text) > stop else "")


def exclusion_hint(text: str) -> str:
    """Return a hint with the Python equivalent of the command-line syntax ``* exclude (a, b)``; an empty string for
    other text.

    >>> exclusion_hint("* exclude (a)")
    "name the columns to keep: [name for name in scan.schema.names if name not in ['a']]"
    """
    match = _ALL_BUT.fullmatch(text.strip())
    if match is None:
        return ""
    excluded = [name.strip().strip('"') for name in excerpt(match["names"]).split(",")]
    return f"name the columns to keep: [name for name in scan.schema.names if name not in {excluded!r}]"


def column_list_hint(columns: str) -> str:
    """Return the error message for ``columns`` that were passed as text instead of a list.

    >>> column_list_hint("a, b")
    "columns is a list of names: columns=['a', 'b']"
    """
    if columns.strip() == "*":
        return "columns is a list of names: omit it to read all columns"
    if hint := exclusion_hint(columns):
        return f"columns is a list of names: {hint}"
    return f"columns is a list of names: columns={[name.strip() for name in excerpt(columns).split(',')]!r}"


def unknown_leaf_hint(name: str, leaves: Iterable[str]) -> str:
    """Return the end of an error message for a ``name`` that is not the dotted path of any of ``leaves``.

    It lists the leaves within a group of that name, or otherwise suggests a similar leaf and lists all leaves.
    """
    every = list(leaves)
    below = [leaf for leaf in every if leaf.startswith(name + ".")]
    if below:
        return f", which is a group: name a column within it, {join_names(below)}"
    hint = did_you_mean(name, every)
    return f"{hint} The columns are {join_names(every)}" if hint else f"; the columns are {join_names(every)}"


def unknown_option_column(option: str, name: object, leaves: Iterable[str]) -> str:
    """Return the error message for a column ``name`` of a writer's ``option`` that is not among ``leaves``.

    >>> unknown_option_column("encodings", "idd", ["id"])
    "encodings has column 'idd', which the schema lacks; did you mean 'id'? The columns are id"
    """
    hint = unknown_leaf_hint(str(name), leaves)
    lacks = "" if hint.startswith(", which") else ", which the schema lacks"
    return f"{option} has column {name!r}{lacks}{hint}"


def unknown_column_message(name: str, columns: Iterable[str]) -> str:
    """Return the error message for a ``name`` that is not among the top-level ``columns``.

    It suggests a similar column, or lists all columns.
    """
    every = list(columns)
    hint = did_you_mean(name, every) if isinstance(name, str) else ""
    return f"no column {excerpt(str(name))!r}{hint or '; the file has ' + excerpt(join_names(every), 0, 3000)}"
