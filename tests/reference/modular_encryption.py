"""An encrypted file taken apart module by module, straight from the text of "Parquet Modular Encryption".

Uses the ``cryptography`` package for AES and pqext for Thrift alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pqext.core.format.metadata import ColumnMetaData, FileCryptoMetaData, FileMetaData, PageHeader, RowGroup
from pqext.core.format.thrift import decode

FOOTER, COLUMN_METADATA, DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_HEADER = range(5)
DICTIONARY_PAGE_HEADER, COLUMN_INDEX, OFFSET_INDEX, BLOOM_FILTER_HEADER, BLOOM_FILTER_BITSET = range(5, 10)


def suffix(unique: bytes, module: int, *ordinals: int) -> bytes:
    """The part of the AAD that the format makes itself."""
    return unique + struct.pack("<B", module) + b"".join(struct.pack("<h", ordinal) for ordinal in ordinals)


def open_gcm(key: bytes, module: bytes, aad: bytes) -> bytes:
    """The plaintext of a module with its length."""
    (length,) = struct.unpack_from("<I", module)
    assert length == len(module) - 4
    return AESGCM(key).decrypt(module[4:16], module[16:], aad)


def open_ctr(key: bytes, module: bytes) -> bytes:
    """The plaintext of a page under AES_GCM_CTR_V1."""
    (length,) = struct.unpack_from("<I", module)
    assert length == len(module) - 4
    decryptor = Cipher(algorithms.AES(key), modes.CTR(module[4:16] + b"\0\0\0\1")).decryptor()
    return decryptor.update(module[16:]) + decryptor.finalize()


@dataclass(frozen=True)
class Stored:
    """One module: what it is, where it lies in the file, and what it says."""

    kind: int
    row_group: int
    column: int
    page: int | None
    offset: int
    length: int
    plaintext: bytes


def footer_of(data: bytes, footer_key: bytes, prefix: bytes = b"") -> tuple[FileMetaData, bytes, bool]:
    """(metadata, the file's unique bytes, are pages authenticated?), the signature of a plaintext footer proved."""
    length = int.from_bytes(data[-8:-4], "little")
    raw = data[-8 - length : -8]
    if data[:4] == b"PARE":
        assert data[-4:] == b"PARE"
        crypto, end = decode(FileCryptoMetaData, raw)
        algorithm = crypto.encryption_algorithm
        fields = algorithm.AES_GCM_V1 or algorithm.AES_GCM_CTR_V1
        plain = open_gcm(footer_key, raw[end:], prefix + suffix(fields.aad_file_unique, FOOTER))
        metadata, used = decode(FileMetaData, plain)
        assert used == len(plain)
    else:
        assert data[:4] == data[-4:] == b"PAR1"
        metadata, end = decode(FileMetaData, raw)
        algorithm = metadata.encryption_algorithm
        fields = algorithm.AES_GCM_V1 or algorithm.AES_GCM_CTR_V1
        signature = raw[end:]
        assert len(signature) == 28
        aad = prefix + suffix(fields.aad_file_unique, FOOTER)
        assert AESGCM(footer_key).encrypt(signature[:12], raw[:end], aad)[-16:] == signature[12:]
    return metadata, fields.aad_file_unique, algorithm.AES_GCM_V1 is not None


def modules(
    data: bytes, footer_key: bytes, column_keys: Mapping[str, bytes], prefix: bytes = b""
) -> Iterator[Stored]:
    """The modules of all encrypted columns that lie in the file, and the metadata of columns with their own key.

    The offset of the latter, which lies in the footer, is -1.
    """
    metadata, unique, authenticated = footer_of(data, footer_key, prefix)
    for group_index, group in enumerate(metadata.row_groups):
        ordinal = group.ordinal if group.ordinal is not None else group_index
        for column, chunk in enumerate(group.columns):
            if chunk.crypto_metadata is None:
                continue
            own = chunk.crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY
            key = footer_key if own is None else column_keys[".".join(own.path_in_schema)]
            yield from _chunk(data, group, column, key, ordinal, prefix + unique, authenticated)


def _chunk(
    data: bytes, group: RowGroup, column: int, key: bytes, ordinal: int, stem: bytes, authenticated: bool
) -> Iterator[Stored]:
    chunk = group.columns[column]

    def gcm(kind: int, at: int, page: int | None = None) -> Stored:
        length = 4 + int.from_bytes(data[at : at + 4], "little")
        ordinals = (ordinal, column) if page is None else (ordinal, column, page)
        plaintext = open_gcm(key, data[at : at + length], suffix(stem, kind, *ordinals))
        return Stored(kind, ordinal, column, page, at, length, plaintext)

    def body(kind: int, at: int, page: int | None = None) -> Stored:
        if authenticated:
            return gcm(kind, at, page)
        length = 4 + int.from_bytes(data[at : at + 4], "little")
        return Stored(kind, ordinal, column, page, at, length, open_ctr(key, data[at : at + length]))

    meta = chunk.meta_data
    if chunk.encrypted_column_metadata is not None:
        sealed = chunk.encrypted_column_metadata
        plaintext = open_gcm(key, sealed, suffix(stem, COLUMN_METADATA, ordinal, column))
        yield Stored(COLUMN_METADATA, ordinal, column, None, -1, len(sealed), plaintext)
        meta, _ = decode(ColumnMetaData, plaintext)
    assert meta is not None
    at = meta.dictionary_page_offset if meta.dictionary_page_offset is not None else meta.data_page_offset
    end = at + meta.total_compressed_size
    if meta.dictionary_page_offset is not None:
        header = gcm(DICTIONARY_PAGE_HEADER, at)
        yield header
        stored = decode(PageHeader, header.plaintext)[0].compressed_page_size
        page = body(DICTIONARY_PAGE, at + header.length)
        assert page.length == stored
        yield page
        at += header.length + page.length
        assert at == meta.data_page_offset
    number = 0
    while at < end:
        header = gcm(DATA_PAGE_HEADER, at, number)
        yield header
        stored = decode(PageHeader, header.plaintext)[0].compressed_page_size
        page = body(DATA_PAGE, at + header.length, number)
        assert page.length == stored
        yield page
        at += header.length + page.length
        number += 1
    assert at == end
    if chunk.column_index_offset is not None:
        index = gcm(COLUMN_INDEX, chunk.column_index_offset)
        assert index.length == chunk.column_index_length
        yield index
    if chunk.offset_index_offset is not None:
        index = gcm(OFFSET_INDEX, chunk.offset_index_offset)
        assert index.length == chunk.offset_index_length
        yield index
    if meta.bloom_filter_offset is not None:
        header = gcm(BLOOM_FILTER_HEADER, meta.bloom_filter_offset)
        yield header
        yield gcm(BLOOM_FILTER_BITSET, meta.bloom_filter_offset + header.length)
