"""Stages of encrypted files and of summaries, whose pages lie in other files: the rows are those of plain files."""

from __future__ import annotations

from pathlib import Path

import pytest
from dataset.test_stages import QUESTIONS, TABLE, oracle, set_small, stored

import pqext
from pqext import col
from pqext.encryption import FileDecryption, FileEncryption

FOOTER_KEY = b"0123456789012345"
COLUMN_KEYS = {"k": b"1123456789012345", "s": b"2123456789012345", "t.b.c": b"3123456789012345"}
ASKED = ["few rows", "half of the rows, then few", "where groups are null"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    set_small(monkeypatch, 64)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id=""),
        pytest.param({"page_version": 2, "page_index": False}, id="version 2, no index", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("keys", [{}, COLUMN_KEYS], ids=["one key", "keys of columns"])
def test_encrypted_files_are_read_in_stages(keys: dict[str, bytes], options: dict[str, int]) -> None:
    encryption = FileEncryption(FOOTER_KEY, column_keys=keys, plaintext_footer=bool(keys))
    data = stored(TABLE, encryption=encryption, **options)
    decryption = FileDecryption(FOOTER_KEY, keys)
    for name in ASKED:
        expected = oracle(QUESTIONS[name]).to_pylist()
        for strings in ("string", "view", "dictionary"):
            found = pqext.read_table(data, None, QUESTIONS[name], decryption=decryption, strings=strings)
            assert found.to_pylist() == expected, (name, strings)


def test_missing_keys_are_reported_when_their_columns_are_read() -> None:
    data = stored(TABLE, encryption=FileEncryption(FOOTER_KEY, column_keys=COLUMN_KEYS))
    partly = FileDecryption(FOOTER_KEY)
    found = pqext.read_table(data, ["l"], col("n") == 7, decryption=partly)
    assert found.equals(oracle(col("n") == 7).select(["l"]))
    for columns, filter in ((["l"], col("k") == 7), (["s"], col("n") == 7), (["n"], col("t.b.c") == "7")):
        with pytest.raises(pqext.EncryptionError, match="its key was not passed"):
            pqext.read_table(data, columns, filter, decryption=partly)


@pytest.mark.parametrize("options", [{}, {"page_version": 2, "page_index": False}], ids=["", "version 2, no index"])
def test_summary_is_read_in_stages(options: dict[str, int], tmp_path: Path) -> None:
    paths = [tmp_path / f"{start}.parquet" for start in range(0, len(TABLE), 2500)]
    for path in paths:
        path.write_bytes(stored(TABLE.slice(int(path.stem), 2500), **options))
    pqext.write_summary(paths, tmp_path)
    for name in ASKED:
        found = pqext.read_table(tmp_path / "_metadata", None, QUESTIONS[name])
        assert found.to_pylist() == oracle(QUESTIONS[name]).to_pylist()
