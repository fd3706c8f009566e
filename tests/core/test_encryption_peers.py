"""Files that others encrypted are read, and others read those that we encrypt."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from core.test_encryption_files import FOOTER_KEY, TABLE, read, written

import pqext
from pqext.core.base.errors import EncryptionError
from reference import modular_encryption as reference


@pytest.mark.spec("encryption.footer.encrypted", "encryption.footer.signed", "encryption.aad.supplied")
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize(("prefix", "stored", "length"), [(None, True, 16), (b"p", True, 24), (b"p", False, 32)])
def test_encrypted_files_are_exchanged_with_pyarrow(
    algorithm: str, plaintext_footer: bool, prefix: bytes | None, stored: bool, length: int
) -> None:
    key = bytes(range(length))
    supplied = None if stored else prefix
    for version in (1, 2):
        ours = written(
            encryption=pqext.encryption.FileEncryption(
                key, algorithm=algorithm, plaintext_footer=plaintext_footer, aad_prefix=prefix, store_aad_prefix=stored,
            ),
            row_group_rows=30, page_rows=7, page_version=version,
        )
        theirs_reading = pe.create_decryption_properties(key, aad_prefix=supplied)
        assert pq.read_table(
            io.BytesIO(ours), decryption_properties=theirs_reading, page_checksum_verification=True
        ).equals(TABLE)
        out = io.BytesIO()
        properties = pe.create_encryption_properties(
            key, aad_prefix=prefix, store_aad_prefix=stored, encryption_algorithm=algorithm,
            plaintext_footer=plaintext_footer,
        )
        pq.write_table(
            TABLE, out, encryption_properties=properties, row_group_size=30, data_page_version=f"{version}.0",
            write_page_index=True, write_page_checksum=True, data_page_size=1, write_batch_size=5,
        )
        assert read(out.getvalue(), pqext.encryption.FileDecryption(key, aad_prefix=supplied)).equals(TABLE)
        kinds = {one.kind for one in reference.modules(out.getvalue(), key, {}, prefix or b"")}
        assert {reference.COLUMN_INDEX, reference.OFFSET_INDEX, reference.DICTIONARY_PAGE} <= kinds


PUBLIC = {
    "encrypt_columns_and_footer": {"column_keys": True},
    "encrypt_columns_and_footer_aad": {"column_keys": True, "aad_prefix": "tester"},
    "encrypt_columns_and_footer_ctr": {"column_keys": True},
    "encrypt_columns_plaintext_footer": {"column_keys": True},
    "uniform_encryption": {},
}
PUBLIC_KEYS = {"double_field": b"1234567890123450", "float_field": b"1234567890123451"}


def check_public_values(table: pa.Table) -> None:
    """The values that the writer of the public files gave them."""
    rows = range(len(table))
    assert len(table) in (50, 100)
    assert table["boolean_field"].to_pylist() == [row % 2 == 0 for row in rows]
    assert pc.cast(table["int32_field"], pa.int32()).to_pylist() == list(rows)
    assert table["int64_field"].to_pylist() == [[2 * row * 10**12, (2 * row + 1) * 10**12] for row in rows]
    assert table["float_field"].to_pylist() == pytest.approx([row * 1.1 for row in rows])
    assert table["double_field"].to_pylist() == pytest.approx([row * 1.1111111 for row in rows])
    assert table["ba_field"].to_pylist() == [None if row % 2 else b"parquet%03d" % row for row in rows]
    assert table["flba_field"].to_pylist() == [bytes([row]) * 10 for row in rows]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_encrypted_files_have_the_documented_values(parquet_testing: Path, name: str) -> None:
    path = parquet_testing / "data" / f"{name}.parquet.encrypted"
    choices: dict[str, Any] = dict(PUBLIC[name])
    if choices.pop("column_keys", False):
        choices["column_keys"] = PUBLIC_KEYS
    columns = [f"{kind}_field" for kind in ("boolean", "int32", "int64", "float", "double", "ba", "flba")]
    check_public_values(read(path, pqext.encryption.FileDecryption(FOOTER_KEY, **choices), columns=columns))
    by_id = {b"kf": FOOTER_KEY, b"kc1": PUBLIC_KEYS["double_field"], b"kc2": PUBLIC_KEYS["float_field"]}
    check_public_values(read(path, pqext.encryption.FileDecryption(key_retriever=by_id.__getitem__), columns=columns))
    with pytest.raises(EncryptionError):
        read(path, pqext.encryption.FileDecryption(FOOTER_KEY[::-1], **choices), columns=columns)
    with pytest.raises(EncryptionError):
        read(path, pqext.encryption.FileDecryption(FOOTER_KEY, **{**choices, "aad_prefix": "other"}), columns=columns)


def test_other_columns_of_public_files_are_read_without_column_keys(parquet_testing: Path) -> None:
    for name in PUBLIC:
        path = parquet_testing / "data" / f"{name}.parquet.encrypted"
        decryption = pqext.encryption.FileDecryption(FOOTER_KEY) if name != "encrypt_columns_plaintext_footer" else None
        table = read(path, decryption, columns=["boolean_field", "int32_field"])
        assert pc.cast(table["int32_field"], pa.int32()).to_pylist() == list(range(50))


def test_duckdb_reads_our_encrypted_files_and_we_reject_its_anonymous_ones(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.parquet", tmp_path / "theirs.parquet"
    table = pa.table({"i": list(range(1000)), "s": [f"text {n % 7}" for n in range(1000)]})
    pqext.write_table(table, ours, encryption=pqext.encryption.FileEncryption(FOOTER_KEY), row_group_rows=300)
    with duckdb.connect() as connection:
        connection.execute("SET force_mbedtls_unsafe = 'true'")
        connection.execute(f"PRAGMA add_parquet_key('k', '{FOOTER_KEY.decode()}')")
        query = f"SELECT * FROM read_parquet('{ours}', encryption_config = {{footer_key: 'k'}})"
        found = connection.sql(query).to_arrow_table()
        assert found.equals(table)
        connection.execute(f"COPY found TO '{theirs}' (FORMAT parquet, encryption_config {{footer_key: 'k'}})")
        # What specs/encryption.md says that it does not read.
        with pytest.raises(duckdb.Error, match="AES tag"):
            connection.sql(f"{query} WHERE i > 3").fetchall()
        for options, words in (
            ({"plaintext_footer": True}, "is not encrypted"),
            ({"algorithm": "AES_GCM_CTR_V1"}, "only AES_GCM_V1 is supported"),
            ({"aad_prefix": b"p"}, "AES tag"),
            # It decrypts what is encrypted with another key and takes that for a structure: any error may follow.
            ({"column_keys": {"i": PUBLIC_KEYS["double_field"]}}, "Failed to read|bytes|AES tag"),
        ):
            encryption: Any = pqext.encryption.FileEncryption(FOOTER_KEY, **options)
            pqext.write_table(table, ours, encryption=encryption)
            with pytest.raises(duckdb.Error, match=words):
                connection.sql(query).fetchall()
    # DuckDB uses no AADs at all.
    with pytest.raises(EncryptionError, match="aad_file_unique"):
        read(theirs, pqext.encryption.FileDecryption(FOOTER_KEY))
