"""Whatever is changed in an encrypted file, reading it says so: every module flipped, and every one put elsewhere."""

from __future__ import annotations

import io
import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import pqext
from pqext.core.base.buffers import view
from pqext.core.base.errors import CorruptFileError, EncryptionError, LimitError, ParquetError, UnsupportedError
from pqext.core.encryption.modules import Module
from pqext.core.io.sources.locations import open_source
from pqext.core.options.layout import FooterFormat
from reference import modular_encryption as reference
from reference.effort import some

KEY = b"0123456789012345"
COLUMN_KEY = b"1234567890123450"
KEYS = {"a": COLUMN_KEY}
DECRYPTION = pqext.encryption.FileDecryption(KEY, KEYS)
TABLE = pa.table({"a": pa.array([1, 2, 2, None] * 6, pa.int32()), "b": ["x", "y", "x", "z"] * 6})


def encrypt(**choices: Any) -> bytes:
    out = io.BytesIO()
    encryption = pqext.encryption.FileEncryption(KEY, column_keys={"a": COLUMN_KEY, "b": None}, **choices)
    pqext.write_table(
        TABLE, out, encryption=encryption, row_group_rows=12, page_rows=4, checksums=False, bloom_filters=True
    )
    return out.getvalue()


def with_indexes() -> bytes:
    """pyarrow's file with page indexes, one key for all."""
    out = io.BytesIO()
    pq.write_table(
        TABLE, out, encryption_properties=pe.create_encryption_properties(KEY), row_group_size=12,
        write_page_index=True, data_page_size=1, write_batch_size=4,
    )
    return out.getvalue()


def read_everything(data: bytes) -> pa.Table:
    """All values, and all structures of the encrypted columns that values do not need."""
    with pqext.open(data, pqext.ReadOptions(decryption=DECRYPTION)) as file:
        table = file.read()
        for group in file.row_groups:
            for chunk in group.chunks():
                assert chunk.decryptor is not None
                assert chunk.column_index is not None
                assert chunk.offset_index is not None
                _ = chunk.bloom_filter
        return table


FILES = {
    "encrypted footer": encrypt(),
    "signed footer": encrypt(plaintext_footer=True),
    "prefix": encrypt(aad_prefix="part0"),
    "pyarrow": with_indexes(),
}


def stored(name: str) -> list[reference.Stored]:
    prefix = b"part0" if name == "prefix" else b""
    return [one for one in reference.modules(FILES[name], KEY, KEYS, prefix) if one.offset >= 0]


@pytest.mark.spec("encryption.gcm.detects")
@pytest.mark.parametrize("name", FILES)
def test_changed_byte_in_any_module_is_detected(name: str) -> None:
    data = FILES[name]
    assert read_everything(data).equals(TABLE)
    seen = set()
    for module in stored(name):
        # Two bytes each of the length, the nonce, the ciphertext and the tag.
        places = [0, 3, 4, 15, module.length // 2, 16, module.length - 1, module.length - 16]
        for place in some(places, 2):
            broken = bytearray(data)
            broken[module.offset + place] ^= 0x40
            with pytest.raises(EncryptionError):
                read_everything(bytes(broken))
        seen.add(module.kind)
    assert seen == set(range(2, 8 if name == "pyarrow" else 10))


@pytest.mark.spec("encryption.modules.all")
def test_encrypted_file_consists_of_modules_only() -> None:
    data = FILES["encrypted footer"]
    at = 4
    for module in sorted(stored("encrypted footer"), key=lambda one: one.offset):
        assert module.offset == at
        at += module.length
    assert at == len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def swaps(name: str) -> Iterator[tuple[reference.Stored, reference.Stored]]:
    """Pairs of modules of one kind, key and length: between pages, columns and row groups."""
    for one, other in itertools.combinations(stored(name), 2):
        if one.kind == other.kind and one.length == other.length:
            yield one, other


@pytest.mark.spec("encryption.gcm.swaps")
@pytest.mark.parametrize("name", FILES)
def test_swapped_modules_are_detected(name: str) -> None:
    data = FILES[name]
    moves = set()
    for one, other in swaps(name):
        broken = bytearray(data)
        broken[one.offset : one.offset + one.length] = data[other.offset : other.offset + other.length]
        broken[other.offset : other.offset + other.length] = data[one.offset : one.offset + one.length]
        with pytest.raises(EncryptionError):
            read_everything(bytes(broken))
        moves.add((one.row_group != other.row_group, one.column != other.column, one.page != other.page))
    assert {(False, False, True), (True, False, False)} <= moves


@pytest.mark.spec("encryption.gcm.swaps")
def test_module_of_another_file_with_equal_keys_is_detected() -> None:
    data, other = FILES["encrypted footer"], encrypt()
    mine, theirs = stored("encrypted footer"), list(reference.modules(other, KEY, KEYS))
    for one, two in zip(mine, [one for one in theirs if one.offset >= 0], strict=True):
        assert (one.kind, one.length, one.offset) == (two.kind, two.length, two.offset)
        assert one.plaintext == two.plaintext
        broken = bytearray(data)
        broken[one.offset : one.offset + one.length] = other[two.offset : two.offset + two.length]
        with pytest.raises(EncryptionError):
            read_everything(bytes(broken))


@pytest.mark.spec("encryption.gcm.swaps")
def test_swapped_column_chunks_and_row_groups_are_detected() -> None:
    data = FILES["encrypted footer"]
    chunks: dict[tuple[int, int], list[reference.Stored]] = {}
    for one in stored("encrypted footer"):
        if one.kind > reference.DICTIONARY_PAGE_HEADER:
            continue
        chunks.setdefault((one.row_group, one.column), []).append(one)
    spans = {place: (parts[0].offset, parts[-1].offset + parts[-1].length) for place, parts in chunks.items()}
    first, second = spans[0, 0], spans[1, 0]
    assert first[1] - first[0] == second[1] - second[0]
    broken = bytearray(data)
    broken[slice(*first)], broken[slice(*second)] = data[slice(*second)], data[slice(*first)]
    with pytest.raises(EncryptionError):
        read_everything(bytes(broken))


@pytest.mark.spec("encryption.row-group.ordinal")
def test_swapped_row_groups_in_an_unverified_footer_are_detected() -> None:
    from pqext.core.footer.reading import read_footer
    from pqext.core.footer.thrift_footer import serialise_footer
    from pqext.core.format.thrift import encode

    data = FILES["signed footer"]
    footer = read_footer(open_source(data))
    footer.metadata.row_groups = list(footer.metadata.row_groups)[::-1]
    tampered = data[: footer.offset] + serialise_footer(encode(footer.metadata) + bytes(28))
    with pytest.raises(EncryptionError, match="signature"):
        pqext.open(tampered, pqext.ReadOptions(decryption=DECRYPTION))
    unsigned = pqext.encryption.FileDecryption(column_keys=KEYS)
    with pqext.open(tampered, pqext.ReadOptions(decryption=unsigned)) as file, pytest.raises(EncryptionError):
        file.read(columns=["a"])
    # Without a footer key, hidden metadata that is gone is not replaced by what the footer shows.
    for group in footer.metadata.row_groups:
        group.columns[0].encrypted_column_metadata = None
    bare = data[: footer.offset] + serialise_footer(encode(footer.metadata) + bytes(28))
    with pqext.open(bare, pqext.ReadOptions(decryption=unsigned)) as file, pytest.raises(EncryptionError):
        file.read(columns=["a"])


@pytest.mark.spec("encryption.row-group.ordinal")
def test_row_groups_are_decrypted_by_the_ordinals_of_a_signed_footer() -> None:
    from pqext.core.encryption.modules import AesKey, FileAad
    from pqext.core.footer.reading import read_footer
    from pqext.core.footer.thrift_footer import serialise_footer
    from pqext.core.format.thrift import encode

    data = FILES["signed footer"]
    footer = read_footer(open_source(data))
    algorithm = footer.metadata.encryption_algorithm
    assert algorithm is not None
    assert algorithm.AES_GCM_V1 is not None
    footer.metadata.row_groups = list(footer.metadata.row_groups)[::-1]
    serialised = encode(footer.metadata)
    aad = FileAad(b"", algorithm.AES_GCM_V1.aad_file_unique or b"").footer()
    moved = data[: footer.offset] + serialise_footer(serialised + AesKey(KEY).sign(serialised, aad))
    with pqext.open(moved, pqext.ReadOptions(decryption=DECRYPTION)) as file:
        assert file.read().equals(pa.concat_tables([TABLE[12:], TABLE[:12]]).combine_chunks())
    # Who does not know the footer's key believes no ordinal in it.
    unsigned = pqext.ReadOptions(decryption=pqext.encryption.FileDecryption(column_keys=KEYS))
    with pqext.open(moved, unsigned) as file, pytest.raises(EncryptionError, match="not authentic"):
        file.read(columns=["a"])


@pytest.mark.spec("encryption.footer.tampered")
@pytest.mark.parametrize("name", FILES)
def test_changed_byte_in_the_footer_is_a_typed_error(name: str) -> None:
    data = FILES[name]
    length = int.from_bytes(data[-8:-4], "little")
    for at in range(len(data) - 8 - length, len(data)):
        broken = bytearray(data)
        broken[at] ^= 0x10
        with pytest.raises((EncryptionError, CorruptFileError, LimitError, ParquetError)):
            read_everything(bytes(broken))


@pytest.mark.spec("encryption.footer.tampered")
def test_truncated_encrypted_file_is_a_typed_error() -> None:
    data = FILES["encrypted footer"]
    for size in range(0, len(data), 7):
        with pytest.raises(ParquetError):
            read_everything(data[:size])


def test_encrypted_column_without_an_algorithm_is_corrupt() -> None:
    from pqext.core.footer.reading import read_footer
    from pqext.core.footer.thrift_footer import serialise_footer

    data = FILES["signed footer"]
    footer = read_footer(open_source(data))
    footer.metadata.encryption_algorithm = None
    stripped = data[: footer.offset] + serialise_footer(footer.metadata)
    with pqext.open(stripped) as file, pytest.raises(CorruptFileError, match="declares no encryption algorithm"):
        file.read()
    with pytest.raises(EncryptionError, match="not encrypted"):
        pqext.open(stripped, pqext.ReadOptions(decryption=DECRYPTION))


def test_unknown_algorithm_and_crypto_metadata_are_unsupported() -> None:
    from pqext.core.footer.reading import read_footer
    from pqext.core.footer.thrift_footer import serialise_footer
    from pqext.core.format.metadata import ColumnCryptoMetaData, EncryptionAlgorithm, FileCryptoMetaData
    from pqext.core.format.thrift import encode

    empty_struct = (3, 12, b"\0")  # field 3, which is not part of either union
    crypto = encode(FileCryptoMetaData(encryption_algorithm=EncryptionAlgorithm(unknown=(empty_struct,))))
    encrypted = b"PARE" + crypto + len(crypto).to_bytes(4, "little") + b"PARE"
    with pytest.raises(UnsupportedError, match="unknown algorithm") as caught:
        pqext.open(encrypted, pqext.ReadOptions(decryption=DECRYPTION))
    assert caught.value.offset == 4 + len(crypto)
    data = FILES["signed footer"]
    footer = read_footer(open_source(data))
    footer.metadata.row_groups = list(footer.metadata.row_groups)
    columns = footer.metadata.row_groups[0].columns = list(footer.metadata.row_groups[0].columns)
    columns[0].crypto_metadata = ColumnCryptoMetaData(unknown=(empty_struct,))
    changed = data[: footer.offset] + serialise_footer(encode(footer.metadata) + bytes(28))
    unsigned = pqext.encryption.FileDecryption(KEY, KEYS, check_footer_signature=False)
    with pqext.open(changed, pqext.ReadOptions(decryption=unsigned)) as file:
        assert file.read(["b"]).equals(TABLE.select(["b"]))
        with pytest.raises(UnsupportedError, match="crypto metadata has an unknown type") as caught:
            file.read(["a"])
        assert caught.value.column == "a"


@pytest.mark.parametrize("extra", [-1, 1])
def test_footer_module_and_signature_of_a_wrong_length_are_rejected(extra: int) -> None:
    for name, message in (
        ("encrypted footer", "footer: .* declares a length"), ("signed footer", rf"followed by {28 + extra} bytes"),
    ):
        data = FILES[name]
        length = int.from_bytes(data[-8:-4], "little")
        footer = data[-8 - length : -8] + b"\0" if extra > 0 else data[-8 - length : -9]
        changed = data[: -8 - length] + footer + len(footer).to_bytes(4, "little") + data[-4:]
        with pytest.raises(EncryptionError, match=message):
            pqext.open(changed, pqext.ReadOptions(decryption=DECRYPTION))


def test_error_for_a_missing_footer_key_offers_to_skip_the_verification() -> None:
    def fail(metadata: bytes) -> bytes:
        raise KeyError(metadata)

    data = encrypt(plaintext_footer=True, footer_key_metadata=b"k")
    with pytest.raises(EncryptionError, match=r"the footer key: KeyError \[.*\]; check_footer_signature=False reads"):
        pqext.open(data, decryption=pqext.encryption.FileDecryption(key_retriever=fail))


@pytest.mark.spec("encryption.v2.plaintext-levels")
def test_version_2_pages_with_plaintext_levels_are_read() -> None:
    """parquet-java encrypts only the values of such a page; here one of its pages is made from one of ours."""
    from pqext.core.encryption.modules import AesKey, FileAad
    from pqext.core.encryption.reading import ChunkDecryptor
    from pqext.core.encryption.writing import ChunkEncryptor
    from pqext.core.format.metadata import CompressionCodec, DataPageHeaderV2, Encoding, PageHeader, PageType
    from pqext.core.read.pages.page import RawPage, open_data

    aad = FileAad(b"", b"unique")
    encryptor, decryptor = (make(AesKey(KEY), aad, 0, 0, True) for make in (ChunkEncryptor, ChunkDecryptor))
    values = (7).to_bytes(4, "little") + (9).to_bytes(4, "little")
    levels = b"\x06\x01"  # three times level 1
    body = view(levels + encryptor.encrypt(Module.DATA_PAGE, values, 3))
    header = PageHeader(
        type=PageType.DATA_PAGE_V2, uncompressed_page_size=len(levels) + 8, compressed_page_size=len(body),
        data_page_header_v2=DataPageHeaderV2(
            num_values=3, num_nulls=0, num_rows=3, encoding=Encoding.PLAIN, is_compressed=False,
            definition_levels_byte_length=2, repetition_levels_byte_length=0,
        ),
    )
    stored = RawPage(header, 3, body, 0, decryptor, 3)
    opened = open_data([stored], CompressionCodec.UNCOMPRESSED, max_repetition=0, max_definition=1)
    assert opened.definition is not None
    assert [page.tobytes() for page in opened.values.pages] == [values]
    assert [page.tobytes() for page in opened.definition.pages] == [levels]
    body = body.copy()
    body[-1] ^= 1
    with pytest.raises(EncryptionError):
        RawPage(header, 3, body, 0, decryptor, 3).plaintext()


@pytest.mark.parametrize("form", ["thrift", "thrift+index", "thrift+flatbuffers", "flatbuffers"])
def test_plaintext_replacement_of_an_encrypted_file_is_detected(
    form: FooterFormat, tmp_path: Path
) -> None:
    path = tmp_path / "another.parquet"
    pqext.write_table(pa.table({"a": range(5000)}), path, footer=form, checkpoint=1)
    whole = path.read_bytes()
    with pytest.raises(EncryptionError, match="not encrypted"):
        pqext.open(path, decryption=DECRYPTION)
    path.write_bytes(whole[:-9])  # it opens by its checkpoint
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert pqext.open(path, recover=True).num_rows == 5000
        with pytest.raises(EncryptionError, match="not encrypted"):
            pqext.open(path, recover=True, decryption=DECRYPTION)
    if form == "thrift+flatbuffers":
        start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
        path.write_bytes(whole[:start] + b"\xff" * 9 + whole[start + 9 :])
        with pytest.warns(UserWarning, match="Thrift footer is damaged"), pytest.raises(EncryptionError):
            pqext.open(path, decryption=DECRYPTION)
