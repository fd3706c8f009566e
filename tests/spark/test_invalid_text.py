"""Strings that are not UTF-8 in files that Spark writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pqext
from pqext import col
from pqext.spark import explain_read, read, write

TEXTS = ["61", "62ff", "e282", "e282ac", "f0908080c3", "c0af", "eda080", "f4908080", "", "ff61fffe", "80"]
"""In hexadecimal; ``e282ac`` is the sign of the euro, the empty text and ``61`` are UTF-8 too."""
VALUES = ", ".join(f"({number}, cast(x'{text}' as string))" for number, text in enumerate(TEXTS))


@pytest.fixture(scope="module")
def invalid(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    """A folder that Spark has written, and what Spark reads in it."""
    path = str(tmp_path_factory.mktemp("invalid") / "t")
    spark.sql(f"select id, s, array(s) l from values {VALUES} t(id, s)").coalesce(1).write.parquet(path)
    return path, spark.read.parquet(path)


@pytest.mark.spec("logical.string.invalid")
@pytest.mark.parametrize("engine", ["python", "auto"])
def test_replacement_characters_match_spark(spark: Any, invalid: tuple[str, Any], engine: Any) -> None:
    path, theirs = invalid
    expected = theirs.selectExpr("id", "make_valid_utf8(s) s", "make_valid_utf8(l[0]) l").orderBy("id").collect()
    ours = read(spark, path, invalid_utf8="replace", engine=engine).selectExpr("id", "s", "l[0] l")
    assert ours.orderBy("id").collect() == expected
    table = pqext.read_table(path, invalid_utf8="replace")
    assert table["s"].to_pylist() == [row.s for row in expected]
    for text in {row.s for row in expected}:
        same = [row.id for row in expected if row.s == text]
        assert pqext.read_table(path, filter=col("s") == text, invalid_utf8="replace")["id"].to_pylist() == same


@pytest.mark.spec("logical.string.invalid")
def test_binary_columns_contain_the_bytes_that_spark_casts(spark: Any, invalid: tuple[str, Any]) -> None:
    path, theirs = invalid
    expected = theirs.selectExpr("id", "cast(s as binary) s").orderBy("id").collect()
    ours = read(spark, path, columns=["id", "s"], invalid_utf8="binary")
    assert ours.schema["s"].dataType.simpleString() == "binary"
    assert ours.orderBy("id").collect() == expected
    assert read(spark, path, where=col("s") == b"b\xff", invalid_utf8="binary").count() == 1


@pytest.mark.spec("logical.string.invalid")
def test_errors_name_the_column_and_the_row(spark: Any, invalid: tuple[str, Any], tmp_path: Path) -> None:
    path, theirs = invalid
    assert read(spark, path, where=col("id") == 3).collect()[0].s == "€"
    with pytest.raises(pqext.CorruptFileError, match=r'row 1 of the row group: .*column s.*; .*invalid_utf8="replace"'):
        pqext.read_table(path)
    with pytest.raises(pqext.CorruptFileError, match=r"row 4 of the row group: .*column l.list.element"):
        pqext.read_table(path, columns=["l"], filter=col("id") > 3)
    valid = (col("id") == 0) | (col("id") == 3) | (col("id") == 8)
    most = pqext.read_table(path, filter=valid, columns=["s"])["s"].to_pylist()
    assert most == ["a", "€", ""]
    with pytest.raises(Exception, match=r'row 1 of the row group: .*column s.*; .*invalid_utf8="replace"'):
        read(spark, path).collect()
    frame = theirs.select("id", "s").coalesce(1)
    for save in (write, lambda frame, path: frame.write.format("pqext").mode("append").save(path)):
        with pytest.raises(Exception, match=r"column 's', row 1 of the row group: a string is not valid UTF-8"):
            save(frame, str(tmp_path / "w"))
    plan = explain_read(path, engine="auto", spark=spark, invalid_utf8="replace")
    assert (plan.engine, plan.reasons) == ("python", ("invalid_utf8 is applied by pqext",))


def test_invalid_option_error_lists_the_values(spark: Any, invalid: tuple[str, Any]) -> None:
    with pytest.raises(ValueError, match=r'invalid_utf8 must be "raise", "replace" or "binary", not .skip.'):
        read(spark, invalid[0], invalid_utf8="skip")  # type: ignore[arg-type]
