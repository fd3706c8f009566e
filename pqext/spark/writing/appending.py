"""What a save may add to a folder or replace there, told before any of its tasks runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import ParquetError, SchemaMismatchError
from pqext.core.read.reader import ParquetFile
from pqext.dataset.table.agreement import check_agreement
from pqext.dataset.table.unified_schema import Unifier, widened
from pqext.dataset.writing.appending import Compare, nullable, partitions_beside
from pqext.spark.columns.instants import read_schema, unify_schemas
from pqext.spark.reading.request import Query

_ADVICE = 'save to another folder or with mode("overwrite")'


def comparison(empty: Callable[[], bytes], partition_by: tuple[str, ...] = (), merge_schema: bool = False) -> Compare:
    """Compare files like ``empty`` with those of a folder, as :func:`check_append` does."""

    def compare(target: str, sources: Any, present: Mapping[str, Any]) -> None:
        check_append(target, sources, present, empty(), partition_by, merge_schema)

    return compare


def check_append(
    target: str, sources: Any, present: Mapping[str, Any], appended: bytes, partition_by: tuple[str, ...] = (),
    merge_schema: bool = False,
) -> None:
    """Raise ``SchemaMismatchError`` if a file like ``appended`` has another schema than ``target``.

    With ``merge_schema``, the file may have other columns and other types, if one schema holds all values of all files.
    ``sources`` is what a reader of it names, and ``present`` its files by their paths. A file that is there and cannot
    be read, such as an encrypted one, is compared with nothing.
    """
    options, limits = Query(()).options, Query(()).limits
    with ParquetFile(appended, options) as file:
        new = file.arrow_schema
    partitions = partitions_beside(target, sources, present, partition_by, new.names, _ADVICE)
    path, at = next(iter(present.items()))
    try:
        there = (
            unify_schemas([*present.values()], options, limits) if merge_schema
            else read_schema(at, options, limits)
        )  # fmt: skip
    except SchemaMismatchError:
        raise
    except ParquetError:
        return
    first, other = (nullable(partitions.complete_schema(schema)) for schema in (there, new))
    advice = f"select and cast the columns that {target} has, or {_ADVICE}"
    try:
        if merge_schema:
            widened(first, other, target, "the data frame")
        else:
            check_agreement(first, other, path, "the data frame")
    except SchemaMismatchError as error:
        if merge_schema:
            raise SchemaMismatchError(f"{error}; nothing was written: {advice}") from None
        readers = 'only readers with schema="union" could' if _are_unifiable(first, other) else "no reader could"
        raise SchemaMismatchError(
            f"{error}; {readers} read both, so nothing was written: merge_schema=True adds columns and widens types; "
            f"or {advice}"
        ) from None


def _are_unifiable(first: pa.Schema, other: pa.Schema) -> bool:
    unifier = Unifier()
    try:
        unifier.add(first, "")
        unifier.add(other, "")
    except SchemaMismatchError:
        return False
    return True

