"""Stores go through Spark's options as text, with what they were opened with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import Limits, UnsupportedError, col, skipping
from pqext.skipping import MinMax, open_store
from pqext.skipping.store.keys import StoreKeys
from pqext.spark import build_skipping, read
from pqext.spark.options.read import StoreReference

KEY = b"0123456789abcdef"


def test_open_store_options_round_trip(tmp_path: Path) -> None:
    opened = open_store(str(tmp_path), decryption={"k1": KEY}, on_foreign="ignore")
    given = StoreReference.from_text(StoreReference.from_argument(opened).as_text())
    assert given == StoreReference.from_argument(opened)
    found = given.open(None)
    assert (found.location, found.decryption, found.on_foreign) == (str(tmp_path), {"k1": KEY}, "ignore")
    assert "MDEyMzQ1" not in repr(given)


def test_paths_resolve_in_the_process_that_passes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert StoreReference.from_argument("store").as_text() == str(tmp_path / "store")
    assert StoreReference.from_argument(Path("store")).as_text() == str(tmp_path / "store")
    assert StoreReference.from_argument("s3://bucket/store").as_text() == "s3://bucket/store"


@pytest.mark.parametrize("text", ["", "{", '{"path": 1}', '{"path": "p", "on_foreign": ""}', '{"path": "p", "key": 1}'])
def test_invalid_reference_text_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|on_foreign must be"):
        StoreReference.from_text(text)


def test_store_with_its_own_limits_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="without limits="):
        StoreReference.from_argument(open_store(str(tmp_path), limits=Limits.untrusted()))


@pytest.mark.slow
def test_encrypted_stores_are_built_and_queried_with_their_keys(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for number in range(2):
        pqext.write_table(pa.table({"id": [number]}), tmp_path / "data" / f"{number}.parquet")
    data, store = str(tmp_path / "data"), str(tmp_path / "store")
    keys = StoreKeys({"k1": KEY}, "k1", {"id": "k1"})
    build_skipping(spark, data, [MinMax("id")], store, encryption=keys)
    frame = read(spark, data, where=col("id") > 0, skipping=open_store(store, decryption={"k1": KEY}))
    assert [row["id"] for row in frame.collect()] == [1]
    assert "MDEyMzQ1" not in frame._jdf.queryExecution().toString()
    with pytest.raises(Exception, match="decryption= of open_store"):
        read(spark, data, where=col("id") > 0, skipping=skipping.open_store(store)).count()
