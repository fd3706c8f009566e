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
_THREADS = "use threads: 1 disables threading, 0 is one thread per processor"
_PARTITIONS = "use partitioning, \"hive\" or None"
_PATTERN = "put the pattern into the path, as in 'folder/**/part-*.parquet'"
_INSIDE = "use field(name) for a field of a struct, variant(path, type) for a value within a VARIANT"
_ALL_JSON = "use read_all, which returns a table"
_UNION = "use schema=\"union\""
OF_OTHERS: dict[str, dict[str, str]] = {
    "read": {
        "batch_size": "use batch_rows, an argument of Scan.to_batches and ParquetFile.iter_batches",
        "decryption_properties": "use decryption",
        "engine": "remove it",
        "filename": "use include_file_paths, the name of the column",
        "filters": "use filter",
        "hive_partitioning": _PARTITIONS,
        "limit": "use pqext.scan(...).limit(n)",
        "mergeSchema": _UNION,
        "memory_map": "not needed: pqext fetches only the byte ranges that it needs",
        "n_rows": "use pqext.scan(...).limit(n)",
        "pathGlobFilter": _PATTERN,
        "row_groups": "use pqext.open(path).read(columns, row_groups)",
        "schema": "pqext.scan and pqext.read_table take a schema, or schema=\"union\"; else cast the result",
        "union_by_name": _UNION,
        "use_threads": _THREADS,
        "where": "use filter",
    },
    "write": {
        "codec": "use compression",
        "data_page_size": "use page_bytes",
        "data_page_version": "use page_version, 1 or 2",
        "engine": "remove it",
        "index": "not needed: a pandas index is written where pyarrow writes it",
        "metadata": "use key_value_metadata",
        "partition_cols": "use pqext.write_dataset(..., partition_by=...)",
        "row_group_size": "use row_group_rows, and row_group_bytes in bytes",
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

MEMBERS_OF_OTHERS: dict[str, dict[str, str]] = {
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
        "group_by": "pqext does not aggregate by group: use to_polars(lazy=True) or duckdb.sql('FROM scan')",
        "num_rows": "use count() for the number of matching rows",
        "shape": "use count() for rows and len(schema) for columns",
        "sort": "use order_by",
        "to_arrow": "use to_table, or to_reader for a stream",
        "columns": "use schema.names, or select(...) to project",
        "where": "use filter",
    },
    "Value": {
        "getItem": _INSIDE,
        "is_valid": "use is_not_null",
        "str": "starts_with, ends_with, contains, like and ilike are methods of the column itself",
    },
}
"""Replacements for common members of the classes of other libraries."""


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
