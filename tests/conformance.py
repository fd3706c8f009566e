"""Judging how we read the public files of parquet-testing.

A judge is another reader (pyarrow, DuckDB, polars) or the file's own expectation: a CSV file, or the values that its
description gives. Every judge that can read a file is asked. One at least must give the same values as we do, nulls
and the bits of floating-point numbers included, and one that does not must be listed with the reason.
"""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
from conformance_files import CONTRADICTORY_CASES, CORRUPT_CHECKSUMS, DIFFERENCES, READABLE, SUFFIXES

import pqext
from pqext.core.base.errors import AnnotationWarning, VariantError
from pqext.core.encryption.keytools.wrapping import unwrap_locally
from reference import values
from reference.int96 import microseconds as int96_microseconds

Columns = list[tuple[str, list[Any]]]

FOOTER_KEY = b"0123456789012345"
COLUMN_KEYS = {"double_field": b"1234567890123450", "float_field": b"1234567890123451"}
MASTERS = {"kf": FOOTER_KEY, "kc1": COLUMN_KEYS["double_field"], "kc2": COLUMN_KEYS["float_field"]}


DIGITS = b"0123456789" * 4
LONG_KEYS = {b"kf": DIGITS[:32]} | {b"kc%d" % last: DIGITS[1:32] + b"%d" % (last + 1) for last in range(1, 9)}
"""As the README of the public files gives them, whose digits are characters."""


@dataclass(frozen=True)
class Verdict:
    """What came of one file: judges that agree, those that differ, those that cannot read it (with their words)."""

    file: str
    exercises: str
    agree: tuple[str, ...]
    differ: tuple[str, ...]
    fail: tuple[str, ...]

    @property
    def unexplained(self) -> list[str]:
        return [judge for judge in self.differ if (self.file, judge) not in DIFFERENCES]

    @property
    def right(self) -> bool:
        return bool(self.agree) and not self.unexplained


def files_of(root: Path) -> list[str]:
    """The Parquet files of the copy at ``root``, bad ones left out, as paths below it."""
    found = [str(path.relative_to(root)) for path in sorted(root.rglob("*")) if path.is_file()]
    return [name for name in found if name.startswith(("data/", "shredded_variant/")) and name.endswith(SUFFIXES)]


def is_listed(root: Path, name: str) -> bool:
    """Is it known what the file exercises?"""
    return exercises(name) != "" or name in cases(root)


def exercises(name: str) -> str:
    """What the file exercises; empty where that is not known."""
    if fnmatch(name, "data/aes256/*.encrypted"):
        return "keys of 256 bits"
    return READABLE.get(name, "")


@cache
def cases(root: Path) -> dict[str, dict[str, Any]]:
    """The cases of shredded variants by file."""
    described = root / "shredded_variant" / "cases.json"
    if not described.exists():
        return {}
    return {
        f"shredded_variant/{case['parquet_file']}": case
        for case in json.loads(described.read_bytes())
        if "parquet_file" in case
    }


def compare(root: Path, name: str) -> Verdict:
    """Read the file and ask every judge. Raises our own error where we cannot read it."""
    if name in cases(root):
        return _judged_case(root, name)
    path = root / name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnnotationWarning)  # a logical type that is not known is read without it
        ours = values.columns(_read(path, name))
    agree, differ, fail = [], [], []
    for judge, read in _judges(path, name):
        try:
            theirs = read()
        except BaseException as error:  # polars' panics are no Exceptions
            if isinstance(error, KeyboardInterrupt):
                raise
            fail.append(judge)
            continue
        (agree if _equal_columns(ours, theirs) else differ).append(judge)
    return Verdict(name, exercises(name), tuple(agree), tuple(differ), tuple(fail))


def _read(path: Path, name: str) -> pa.Table:
    options: dict[str, Any] = {}
    if name in CORRUPT_CHECKSUMS:
        options["checksums"] = False
    if name.endswith(".encrypted"):
        options |= {"decryption": _decryption(path, name), "int96": "us"}
    return pqext.read_table(path, **options)


def _decryption(path: Path, name: str) -> pqext.encryption.FileDecryption:
    if "key_material" in name:
        factory = pqext.encryption.CryptoFactory(lambda config: _OurClient())
        return factory.file_decryption_properties(pqext.encryption.KmsConnectionConfig(), None, path)
    keys = LONG_KEYS if "/aes256/" in str(path) else {id.encode(): key for id, key in MASTERS.items()}
    prefix = "tester" if "disable_aad_storage" in name else None
    return pqext.encryption.FileDecryption(key_retriever=keys.__getitem__, aad_prefix=prefix)


def _judges(path: Path, name: str) -> Iterator[tuple[str, Callable[[], Columns]]]:
    if name.endswith(".encrypted"):
        yield "pyarrow", lambda: values.columns(_decrypted_by_pyarrow(path, name))
        if "key_material" not in name:
            yield "values of its writer", lambda: _written_values(path)
        return
    yield "pyarrow", lambda: values.columns(pq.ParquetFile(path).read())
    yield "duckdb", lambda: values.columns(duckdb.sql(f"FROM read_parquet('{path}')").to_arrow_table())
    yield "polars", lambda: values.columns(pl.read_parquet(path).to_arrow())
    expected = path.with_name(f"{path.stem}_expect.csv")
    if expected.exists():
        yield "its CSV", lambda: _from_csv(path, expected)
    if name in DESCRIBED:
        yield "its description", lambda: DESCRIBED[name]


def _equal_columns(ours: Columns, theirs: Columns) -> bool:
    """The same columns in the same order; names too, where they are said."""
    return [column for _, column in ours] == [column for _, column in theirs] and all(
        name in (other, "") for (other, _), (name, _) in zip(ours, theirs, strict=True)
    )


def _from_csv(path: Path, expected: Path) -> Columns:
    """The expectation, in the types of the file; in these files an empty field is null."""
    kinds = pq.read_schema(path).types
    with expected.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    columns = []
    for at, kind in enumerate(kinds):
        texts = [row[at] if row[at] != "" else None for row in rows]
        columns.append(("", values.plain(pa.array(texts, pa.string()).cast(kind))))
    return columns


DESCRIBED: dict[str, Columns] = {
    "data/int96_from_spark.parquet": [
        (
            "a",
            [
                None if at is None else at * 1000
                for at in (
                    1704141296123456, 1704070800000000, 253402225200000000, 1735599600000000, None, 9089380393200000000,
                )
            ],
        )
    ],
    "data/old_list_structure.parquet": [("a", [[[1, 2], [3, 4]]])],
    "data/map_no_value.parquet": [
        ("my_map", [[(key, None) for key in range(row, row + 3)] for row in (1, 4, 7)]),
        ("my_map_no_v", [[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
        ("my_list", [[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
    ],
}
"""What the descriptions of some files say that is in them."""


def _written_values(path: Path) -> Columns:
    """The values that the sample writer of the encrypted files gives its rows; how many, its footer says."""
    name = path.name
    with pqext.open(path, pqext.ReadOptions(decryption=_decryption(path, name))) as file:
        rows = range(file.num_rows)
    milliseconds = values.NANOSECONDS["ms"]
    return [
        ("boolean_field", [row % 2 == 0 for row in rows]),
        ("int32_field", [row * milliseconds for row in rows]),
        ("int64_field", [[2 * row * 10**12, (2 * row + 1) * 10**12] for row in rows]),
        ("int96_field", [int96_microseconds(row, row + 1, row + 2) * 1000 for row in rows]),
        ("float_field", values.plain(pa.array(np.arange(len(rows), dtype=np.float32) * np.float32(1.1)))),
        ("double_field", values.plain(pa.array([row * 1.1111111 for row in rows], pa.float64()))),
        ("ba_field", [None if row % 2 else b"parquet%03d" % row for row in rows]),
        ("flba_field", [bytes([row]) * 10 for row in rows]),
    ]


class _OurClient(pqext.encryption.KmsClient):
    """Unwraps as the mock KMS of parquet-java does."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        raise NotImplementedError

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        return unwrap_locally(wrapped_key, MASTERS[master_key_identifier], master_key_identifier.encode())


class _TheirClient(pe.KmsClient):
    def __init__(self, config: Any) -> None:
        super().__init__()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        raise NotImplementedError

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        return unwrap_locally(wrapped_key, MASTERS[master_key_identifier], master_key_identifier.encode())


def _decrypted_by_pyarrow(path: Path, name: str) -> pa.Table:
    if "key_material" in name:
        properties = pe.CryptoFactory(_TheirClient).file_decryption_properties(
            pe.KmsConnectionConfig(), pe.DecryptionConfiguration(), str(path)
        )
    else:
        properties = pe.create_decryption_properties(FOOTER_KEY)
    return pq.ParquetFile(path, decryption_properties=properties, coerce_int96_timestamp_unit="us").read()


def is_labelled_invalid(case: dict[str, Any]) -> bool:
    """Is a case of shredded variants one that readers may refuse and may read?"""
    return "INVALID" in case["parquet_file"] or "notes" in case


def _judged_case(root: Path, name: str) -> Verdict:
    case = cases(root)[name]
    kind = f"shredded VARIANT: {case.get('test', 'case')}"
    if "error_message" in case:
        try:
            pqext.read_table(root / name)
        except VariantError:
            return Verdict(name, f"{kind}, to be refused", ("its error",), (), ())
        return Verdict(name, f"{kind}, to be refused", (), ("its error",), ())
    (column,) = [column for column in pqext.read_table(root / name).columns if pa.types.is_struct(column.type)]
    ours = [row and row["metadata"] + row["value"] for row in column.to_pylist()]
    expected = case["variant_files"] if "variant_files" in case else [case["variant_file"]]
    theirs = [None if file is None else (root / "shredded_variant" / file).read_bytes() for file in expected]
    note = " (contradicts itself)" if case["case_number"] in CONTRADICTORY_CASES else ""
    judge = ("its variant.bin",)
    return Verdict(name, kind + note, judge if ours == theirs else (), judge if ours != theirs else (), ())
