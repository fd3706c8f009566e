"""Encrypted files: what is hidden, from whom, and that those with the keys read all of it."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core import tables
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import CorruptFileError, EncryptionError
from pqext.core.encryption.reading import MissingKeyError
from pqext.core.format.metadata import PageHeader
from pqext.core.format.thrift import decode
from pqext.encryption import ColumnKey, FileDecryption, FileEncryption, verify_file_set
from reference import modular_encryption as reference
from reference.effort import share

FOOTER_KEY = b"0123456789012345"
KEYS = {"a": b"1234567890123450", "c.list.element": b"123456789012345678901234"}
DECRYPTION = FileDecryption(FOOTER_KEY, KEYS)

TABLE = pa.table(
    {
        "a": pa.array([5, None, 7, 5] * 25, pa.int64()),
        "b": pa.array(["x", "secret text", None, "x"] * 25),
        "c": pa.array([[1.5], [], None, [2.5, None]] * 25, pa.list_(pa.float64())),
    }
)
MODES: dict[str, dict[str, Any]] = {
    "uniform": {},
    "columns": {"column_keys": KEYS},
    "columns and footer key": {"column_keys": {**KEYS, "b": None}},
    "all": {"column_keys": KEYS, "encrypt_columns": "all"},
    "group": {"column_keys": {"a": KEYS["a"], "c": KEYS["c.list.element"]}},
    "prefix": {"column_keys": KEYS, "aad_prefix": "table.part0"},
    "hidden prefix": {"aad_prefix": b"table.part0", "store_aad_prefix": False},
}


def written(table: pa.Table = TABLE, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


def encrypted(**choices: Any) -> bytes:
    encryption = FileEncryption(FOOTER_KEY, **choices)
    return written(encryption=encryption, row_group_rows=60, page_rows=20)


def read(data: Any, decryption: FileDecryption | None = DECRYPTION, **selection: Any) -> pa.Table:
    with pqext.open(data, pqext.ReadOptions(decryption=decryption)) as file:
        return file.read(**selection)


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.spec(
    "encryption.algorithm.gcm", "encryption.algorithm.gcm-ctr", "encryption.footer.encrypted",
    "encryption.footer.signed", "encryption.modules.all", "encryption.aad.module-types", "encryption.columns.plaintext",
)
def test_file_in_any_encryption_mode_round_trips_with_format_modules(
    mode: str, plaintext_footer: bool, algorithm: str
) -> None:
    data = encrypted(**MODES[mode], plaintext_footer=plaintext_footer, algorithm=algorithm)
    assert data[:4] == data[-4:] == (b"PAR1" if plaintext_footer else b"PARE")
    prefix = "table.part0" if "prefix" in mode else None
    assert read(data, FileDecryption(FOOTER_KEY, KEYS, aad_prefix=prefix)).equals(TABLE)
    stored = list(reference.modules(data, FOOTER_KEY, KEYS, (prefix or "").encode()))
    columns = {module.column for module in stored}
    assert columns == ({0, 2} if mode in ("columns", "group", "prefix") else {0, 1, 2})
    kinds = {module.kind for module in stored}
    assert {reference.DATA_PAGE, reference.DATA_PAGE_HEADER} <= kinds
    pages = [module for module in stored if module.kind == reference.DATA_PAGE]
    assert {(page.row_group, page.page) for page in pages} == {(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)}


@pytest.mark.parametrize("page_version", [1, 2])
@settings(max_examples=share(0.15))
@given(table=tables.tables(), choices=st.fixed_dictionaries({
    "plaintext_footer": st.booleans(), "algorithm": st.sampled_from(["AES_GCM_V1", "AES_GCM_CTR_V1"]),
    "aad_prefix": st.sampled_from([None, "p"]),
}), dictionary=st.booleans())
def test_arbitrary_table_round_trips_encrypted(
    page_version: int, table: pa.Table, choices: dict[str, Any], dictionary: bool
) -> None:
    data = written(
        table, encryption=FileEncryption(FOOTER_KEY, **choices), page_version=page_version,
        dictionary=dictionary, row_group_rows=7, page_rows=3,
    )
    assert read(data, FileDecryption(FOOTER_KEY)).equals(read(written(table), None))


@pytest.mark.spec("encryption.crc")
@pytest.mark.parametrize("page_version", [1, 2])
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_page_checksum_covers_the_encrypted_bytes(algorithm: str, page_version: int) -> None:
    import zlib

    encryption = FileEncryption(FOOTER_KEY, algorithm=algorithm)
    data = written(encryption=encryption, row_group_rows=60, page_rows=20, page_version=page_version)
    stored = list(reference.modules(data, FOOTER_KEY, KEYS))
    checked = 0
    for header, page in itertools.pairwise(stored):
        if header.kind in (reference.DATA_PAGE_HEADER, reference.DICTIONARY_PAGE_HEADER):
            crc = decode(PageHeader, header.plaintext)[0].crc
            assert crc is not None
            assert zlib.crc32(data[page.offset : page.offset + page.length]) == crc & 0xFFFFFFFF
            checked += 1
    assert checked > 10


@pytest.mark.spec("encryption.ctr.unauthenticated")
def test_ctr_page_is_covered_by_its_checksum() -> None:
    data = bytearray(encrypted(algorithm="AES_GCM_CTR_V1"))
    page = next(one for one in reference.modules(data, FOOTER_KEY, KEYS) if one.kind == reference.DATA_PAGE)
    data[page.offset + page.length - 1] ^= 1
    with pytest.raises(CorruptFileError, match="checksum"):
        read(bytes(data))


# --- who sees what ---


@pytest.mark.spec("encryption.keys.missing", "encryption.columns.plaintext")
def test_other_columns_are_read_without_a_column_key() -> None:
    for plaintext_footer in (False, True):
        data = encrypted(column_keys=KEYS, plaintext_footer=plaintext_footer)
        some = FileDecryption(FOOTER_KEY, {"a": KEYS["a"]})
        assert read(data, some, columns=["a", "b"]).equals(TABLE.select(["a", "b"]))
        with pytest.raises(EncryptionError, match=r"column_keys=\{'c.list.element': ...\}") as caught:
            read(data, some)
        assert caught.value.column == "c.list.element"
        assert read(data, columns=["c"]).equals(TABLE.select(["c"]))
        with pytest.raises(EncryptionError, match="not authentic"):
            read(data, FileDecryption(FOOTER_KEY, {"a": KEYS["a"][::-1]}), columns=["a"])


@pytest.mark.spec("encryption.footer.plaintext-readable")
def test_plaintext_columns_are_read_without_keys_with_a_plaintext_footer() -> None:
    data = encrypted(column_keys=KEYS, plaintext_footer=True)
    assert read(data, None, columns=["b"]).equals(TABLE.select(["b"]))
    assert pq.read_table(io.BytesIO(data), columns=["b"]).equals(TABLE.select(["b"]))
    with pqext.open(data) as file:
        assert file.num_rows == 100
        chunk = file.row_groups[0].chunk(0)
        assert chunk.metadata.statistics is None
        assert chunk.bounds().minimum is None
        with pytest.raises(EncryptionError, match="key was not passed"):
            file.read(columns=["a"])
    # A reader of the time before encryption stumbles over the encrypted page header.
    with pytest.raises((OSError, pa.ArrowException)):
        pq.read_table(io.BytesIO(data), columns=["a"])


@pytest.mark.spec("encryption.footer.encrypted")
def test_encrypted_footer_requires_its_key() -> None:
    data = encrypted(column_keys=KEYS)
    with pytest.raises(MissingKeyError, match="footer_key") as caught:
        read(data, None)
    assert "[" not in str(caught.value).split("pass")[0]
    with pytest.raises(MissingKeyError):
        read(data, FileDecryption(column_keys=KEYS))
    with pytest.raises(EncryptionError, match="not authentic"):
        read(data, FileDecryption(FOOTER_KEY[::-1]))
    uniform = encrypted()
    for hidden in (b"secret text", b"list", b"element"):
        assert hidden in written(compression="uncompressed")
        assert hidden not in uniform


@pytest.mark.spec("encryption.metadata.column-key", "encryption.metadata.footer-key", "encryption.metadata.redacted")
@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_column_metadata_is_stored_where_the_format_requires(plaintext_footer: bool) -> None:
    data = encrypted(column_keys={**KEYS, "b": None}, plaintext_footer=plaintext_footer)
    metadata, _, _ = reference.footer_of(data, FOOTER_KEY)
    for group in metadata.row_groups:
        for chunk, own_key in zip(group.columns, (True, False, True), strict=True):
            assert chunk.crypto_metadata is not None
            assert (chunk.crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY is not None) == own_key
            if own_key or plaintext_footer:
                assert chunk.encrypted_column_metadata is not None
                assert (chunk.meta_data is not None) == plaintext_footer
            else:
                assert chunk.encrypted_column_metadata is None
                assert chunk.meta_data is not None
                assert chunk.meta_data.statistics is not None
            if plaintext_footer:
                seen = chunk.meta_data
                hidden = (
                    "statistics", "size_statistics", "geospatial_statistics", "key_value_metadata", "encoding_stats",
                    "bloom_filter_offset", "bloom_filter_length", "index_page_offset",
                )
                assert [getattr(seen, name) for name in hidden] == [None] * len(hidden)
                assert seen.unknown == ()
                assert seen.data_page_offset > 0
                assert seen.total_compressed_size > 0
    with pqext.open(data, pqext.ReadOptions(decryption=DECRYPTION)) as file:
        for index in (0, 1):
            statistics = file.row_groups[0].chunk(index).metadata.statistics
            assert statistics is not None
            assert statistics.null_count == 15


@pytest.mark.spec("encryption.metadata.key-metadata", "encryption.key-metadata")
def test_key_metadata_identifies_the_keys_for_a_reader() -> None:
    keys = {b"kf": FOOTER_KEY, b"ka": KEYS["a"], b"kc": KEYS["c.list.element"]}
    asked: list[bytes] = []

    def retrieve(metadata: bytes) -> bytes:
        asked.append(metadata)
        return keys[metadata]

    column_keys = {"a": ColumnKey(KEYS["a"], b"ka"), "c": ColumnKey(KEYS["c.list.element"], "kc")}
    for plaintext_footer in (False, True):
        data = encrypted(footer_key_metadata="kf", column_keys=column_keys, plaintext_footer=plaintext_footer)
        asked.clear()
        assert read(data, FileDecryption(key_retriever=retrieve)).equals(TABLE)
        assert sorted(asked) == [b"ka", b"kc", b"kf"]
        with pqext.open(data, decryption=FileDecryption(key_retriever=retrieve)) as file:
            crypto = [chunk.crypto_metadata for chunk in file.metadata.row_groups[0].columns]
        own = [None if one is None else one.ENCRYPTION_WITH_COLUMN_KEY for one in crypto]
        assert [None if one is None else (one.path_in_schema, one.key_metadata) for one in own] == [
            (["a"], b"ka"), None, (["c", "list", "element"], b"kc"),
        ]
        # A key that is given is not asked for, and one that is not found costs only its column.
        explicit = FileDecryption(FOOTER_KEY, {"a": KEYS["a"]}, key_retriever=lambda _: None)
        assert read(data, explicit, columns=["a", "b"]).equals(TABLE.select(["a", "b"]))
        with pytest.raises(MissingKeyError):
            read(data, explicit)
        denied = FileDecryption(FOOTER_KEY, key_retriever={}.__getitem__)
        assert read(data, denied, columns=["b"]).equals(TABLE.select(["b"]))
        with pytest.raises(EncryptionError, match=r"did not return the key of column 'a': KeyError"):
            read(data, denied)


@pytest.mark.spec("encryption.footer.verified")
def test_plaintext_footer_is_verified_if_its_key_is_available() -> None:
    data = bytearray(encrypted(column_keys=KEYS, plaintext_footer=True))
    at = data.rindex(b"pqext")
    data[at] ^= 1
    for decryption in (DECRYPTION, FileDecryption(FOOTER_KEY)):
        with pytest.raises(EncryptionError, match="does not match its signature"):
            read(bytes(data), decryption)
    unchecked = FileDecryption(FOOTER_KEY, KEYS, check_footer_signature=False)
    assert read(bytes(data), unchecked).equals(TABLE)
    assert read(bytes(data), FileDecryption(column_keys=KEYS)).equals(TABLE)


# --- identity ---


@pytest.mark.spec("encryption.aad.stored", "encryption.aad.supplied", "encryption.aad.verify")
@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_expected_aad_prefix_is_checked(plaintext_footer: bool) -> None:
    def reading(prefix: Any) -> FileDecryption:
        return FileDecryption(FOOTER_KEY, KEYS, aad_prefix=prefix)

    stored = encrypted(aad_prefix="employees.part0", plaintext_footer=plaintext_footer)
    assert b"employees.part0" in stored
    for right in (None, "employees.part0", b"employees.part0", lambda path: "employees.part0"):
        assert read(stored, reading(right)).equals(TABLE)
    with pytest.raises(EncryptionError, match=r"'employees.part0', but b'contractors.part0' is expected"):
        read(stored, reading("contractors.part0"))
    hidden = encrypted(aad_prefix="employees.part0", store_aad_prefix=False, plaintext_footer=plaintext_footer)
    assert b"employees" not in hidden
    assert read(hidden, reading("employees.part0")).equals(TABLE)
    with pytest.raises(EncryptionError, match=r"pass FileDecryption\(aad_prefix"):
        read(hidden, reading(None))
    with pytest.raises(EncryptionError, match="AAD prefix is wrong"):
        read(hidden, reading("employees.part1"))
    with pytest.raises(EncryptionError, match="without an AAD prefix"):
        read(encrypted(plaintext_footer=plaintext_footer), reading("employees.part0"))


@pytest.mark.spec("encryption.aad.file-set")
def test_set_of_files_is_verified_by_its_prefixes(tmp_path: Path) -> None:
    def part(prefix: str, name: str, **choices: Any) -> str:
        path = tmp_path / name
        path.write_bytes(encrypted(aad_prefix=prefix, **choices))
        return str(path)

    prefixes = [f"employees_23May2018.part{n}" for n in range(4)]
    files = [
        part(prefixes[2], "x"), part(prefixes[0], "y", store_aad_prefix=False),
        part(prefixes[3], "z", plaintext_footer=True), part(prefixes[1], "w", store_aad_prefix=False),
    ]
    keys = FileDecryption(FOOTER_KEY)
    found = verify_file_set(files, prefixes, keys)
    assert found == dict(zip([one.encode() for one in prefixes], [files[1], files[3], files[0], files[2]], strict=True))
    with pytest.raises(EncryptionError, match=r"no file has the AAD prefix b'employees_23May2018.part1'"):
        verify_file_set(files[:3], prefixes, keys)
    old = part("employees_23May2016.part0", "old")
    with pytest.raises(EncryptionError, match=r"old: its AAD prefix b'employees_23May2016.part0' does not belong"):
        verify_file_set([*files, old], prefixes, keys)
    with pytest.raises(EncryptionError, match="another file has its AAD prefix"):
        verify_file_set([*files, files[0]], prefixes, keys)
    with pytest.raises(EncryptionError, match="none of the remaining AAD prefixes"):
        verify_file_set([*files, part("else", "e", store_aad_prefix=False)], prefixes, keys)
    (tmp_path / "plain").write_bytes(written())
    with pytest.raises(EncryptionError, match="plain: the file is not encrypted"):
        verify_file_set([*files, str(tmp_path / "plain")], prefixes, keys)
    with pytest.raises(EncryptionError, match="AAD prefix cannot be verified"):
        verify_file_set(files[2:3], prefixes[3:], FileDecryption())
    with pytest.raises(ValueError, match="distinct"):
        verify_file_set(files, [prefixes[0]] * 2, keys)


def test_plaintext_file_in_place_of_an_encrypted_one_is_rejected() -> None:
    with pytest.raises(EncryptionError, match="not encrypted"):
        read(written())
    assert read(written(), FileDecryption(FOOTER_KEY, plaintext_files_allowed=True)).equals(TABLE)


def test_plaintext_column_in_place_of_an_encrypted_one_needs_a_verified_footer() -> None:
    data = encrypted(column_keys={"a": KEYS["a"]}, plaintext_footer=True)
    expecting = {"a": KEYS["a"], "b": KEYS["a"]}
    with pytest.raises(EncryptionError, match="a key was passed for a column that is plaintext"):
        read(data, FileDecryption(column_keys=expecting))
    assert read(data, FileDecryption(FOOTER_KEY, expecting)).equals(TABLE)


# --- limits ---


@pytest.mark.spec("encryption.page-limit")
def test_chunk_of_many_pages_is_repaginated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pqext.core.encryption.writing.ORDINAL_MAX", 30)
    data = written(encryption=FileEncryption(FOOTER_KEY), page_rows=1)
    pages = [one.page for one in reference.modules(data, FOOTER_KEY, KEYS) if one.kind == reference.DATA_PAGE]
    assert pages == list(range(25)) * 3
    assert read(data).equals(TABLE)


@pytest.mark.spec("encryption.ordinal-limit")
def test_row_groups_or_columns_beyond_the_ordinal_range_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pqext.core.encryption.writing.ORDINAL_MAX", 2)
    encryption = FileEncryption(FOOTER_KEY)
    with pytest.raises(EncryptionError, match="2 row groups; write larger groups"):
        written(TABLE.select(["a"]), encryption=encryption, row_group_rows=34)
    two = written(TABLE.select(["a"]), encryption=encryption, row_group_rows=50)
    assert read(two, FileDecryption(FOOTER_KEY)).num_rows == 100
    with pytest.raises(EncryptionError, match="2 columns, not 3"):
        written(encryption=encryption)


def test_keys_of_missing_columns_are_rejected() -> None:
    with pytest.raises(ValueError, match="encryption has column 'nothing', which the schema lacks"):
        encrypted(column_keys={"nothing": KEYS["a"]})
    with pytest.raises(TypeError, match="encryption"):
        written(encryption=FOOTER_KEY)
    with pytest.raises(TypeError, match="decryption"):
        pqext.ReadOptions(decryption=FOOTER_KEY)  # type: ignore[arg-type]
