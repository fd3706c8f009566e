"""Encrypt a file: its column chunks, the metadata of encrypted columns, and the footer.

Spec: "Parquet Modular Encryption", sections 5.2 to 5.5.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import EncryptionError
from pqext.core.base.suggestions import unknown_option_column
from pqext.core.encryption.modules import ORDINAL_MAX, AesKey, FileAad, Module
from pqext.core.format.metadata import (
    AesGcmCtrV1,
    AesGcmV1,
    ColumnChunk,
    ColumnCryptoMetaData,
    ColumnMetaData,
    EncryptionAlgorithm,
    EncryptionWithColumnKey,
    EncryptionWithFooterKey,
    FileCryptoMetaData,
    FileMetaData,
)
from pqext.core.format.thrift import encode
from pqext.core.options.encryption import ColumnKey, FileEncryption, key_for, to_bytes
from pqext.core.schema.nodes import Schema

FILE_UNIQUE_BYTES = 8


@dataclass(frozen=True, slots=True)
class ChunkEncryptor:
    """Encryptor of the modules of one column chunk. Several threads can use it."""

    key: AesKey
    aad: FileAad
    row_group: int
    column: int
    authenticate_pages: bool

    def encrypt(self, module: Module, data: Bytes | bytes, page: int | None = None) -> bytes:
        """Return an encrypted module with its length prefix. ``page`` is the index of the data page."""
        aad = self.aad.chunk(module, self.row_group, self.column, page)
        if module.is_page and not self.authenticate_pages:
            return self.key.seal_unauthenticated(data)
        return self.key.seal(data, aad)


class FileEncryptor:
    """Encryptor of one file with ``schema`` using ``encryption``.

    ``sources`` maps the names of derived top-level columns to their source columns. A derived column without a key of
    its own uses the key of its source column.

    Raises ``ValueError`` if a key's column is not in the schema, and ``EncryptionError`` if there are more than
    ``ORDINAL_MAX`` columns.
    """

    def __init__(
        self, encryption: FileEncryption, schema: Schema, sources: Mapping[str, str] | None = None
    ) -> None:
        self._encryption = encryption
        self._sources = sources or {}
        self._aad = FileAad(to_bytes(encryption.aad_prefix, "aad_prefix") or b"", os.urandom(FILE_UNIQUE_BYTES))
        self._footer_key = self._cipher(encryption.footer_key)
        self._columns = [self._key_of(leaf.dotted_path, self._sources.get(leaf.path[0])) for leaf in schema.leaves]
        if len(self._columns) > ORDINAL_MAX:
            raise EncryptionError(f"an encrypted file can have at most {ORDINAL_MAX} columns, not {len(self._columns)}")
        self._paths = [leaf.path for leaf in schema.leaves]
        prefixes = {".".join(path[:end]) for path in self._paths for end in range(1, len(path) + 1)}
        for path in encryption.column_keys:
            if path not in prefixes:
                leaves = [leaf.dotted_path for leaf in schema.leaves]
                raise ValueError(unknown_option_column("encryption", path, leaves))

    @property
    def has_encrypted_footer(self) -> bool:
        """Whether the footer is encrypted, so that the file begins and ends with ``PARE``."""
        return not self._encryption.plaintext_footer

    def encrypts_column(self, column: int) -> bool:
        """Return whether the column at this index is encrypted."""
        return self._columns[column] is not None

    def chunk(self, row_group: int, column: int) -> ChunkEncryptor | None:
        """Return the encryptor of one column chunk; None for a plaintext column.

        Raises ``EncryptionError`` for a row group after the first ``ORDINAL_MAX``.
        """
        if row_group >= ORDINAL_MAX:
            raise EncryptionError(
                f"an encrypted file can have at most {ORDINAL_MAX} row groups; write larger groups (row_group_rows, "
                "row_group_bytes) or several files"
            )
        choice = self._columns[column]
        if choice is None:
            return None
        key = self._footer_key if choice.key is None else self._cipher(choice.key)
        return ChunkEncryptor(key, self._aad, row_group, column, self._encryption.algorithm == "AES_GCM_V1")

    def seal_column(self, chunk: ColumnChunk, row_group: int, column: int) -> None:
        """Encrypt the metadata of ``chunk`` if its column is encrypted.

        The metadata becomes a separate module and is removed from ``chunk``, unless the footer is encrypted with the
        same key. A plaintext footer retains only the fields that are needed to find the data.
        """
        choice, encryptor = self._columns[column], self.chunk(row_group, column)
        if choice is None or encryptor is None:
            return
        if choice.key is None:
            chunk.crypto_metadata = ColumnCryptoMetaData(ENCRYPTION_WITH_FOOTER_KEY=EncryptionWithFooterKey())
        else:
            own = EncryptionWithColumnKey(
                path_in_schema=self._paths[column], key_metadata=to_bytes(choice.metadata, "key metadata")
            )
            chunk.crypto_metadata = ColumnCryptoMetaData(ENCRYPTION_WITH_COLUMN_KEY=own)
        if choice.key is None and self.has_encrypted_footer:
            return
        if chunk.meta_data is None:
            raise ValueError(f"column {'.'.join(self._paths[column])!r} of row group {row_group} has no metadata")
        if chunk.unknown and not self.has_encrypted_footer:
            raise EncryptionError(
                "the chunk of an encrypted column has an extension, which a plaintext footer would expose: "
                "put it on the column's metadata instead",
                column=".".join(self._paths[column]),
            )
        chunk.encrypted_column_metadata = encryptor.encrypt(Module.COLUMN_METADATA, encode(chunk.meta_data))
        chunk.meta_data = None if self.has_encrypted_footer else redact_metadata(chunk.meta_data)

    def footer(self, metadata: FileMetaData) -> bytes:
        """Return the bytes before the footer length: crypto metadata and the encrypted footer, or the signed footer."""
        key_metadata = to_bytes(self._encryption.footer_key_metadata, "key metadata")
        if self.has_encrypted_footer:
            crypto = FileCryptoMetaData(encryption_algorithm=self._algorithm(), key_metadata=key_metadata)
            return encode(crypto) + self._footer_key.seal(encode(metadata), self._aad.footer())
        self._check_schema(metadata)
        metadata.encryption_algorithm = self._algorithm()
        metadata.footer_signing_key_metadata = key_metadata
        serialised = encode(metadata)
        return serialised + self._footer_key.sign(serialised, self._aad.footer())

    def _check_schema(self, metadata: FileMetaData) -> None:
        leaves = (element for element in metadata.schema if element.type is not None)
        for element, choice, path in zip(leaves, self._columns, self._paths, strict=True):
            if choice is not None and element.unknown:
                raise EncryptionError(
                    "the schema element of an encrypted column has an extension, which a plaintext footer would "
                    "show: put it on the column's metadata instead",
                    column=".".join(path),
                )

    def _algorithm(self) -> EncryptionAlgorithm:
        prefix, stored = self._aad.prefix, self._encryption.store_aad_prefix
        retained = prefix if prefix and stored else None
        supply = True if prefix and not stored else None
        unique = self._aad.file_unique
        if self._encryption.algorithm == "AES_GCM_V1":
            gcm = AesGcmV1(aad_prefix=retained, aad_file_unique=unique, supply_aad_prefix=supply)
            return EncryptionAlgorithm(AES_GCM_V1=gcm)
        ctr = AesGcmCtrV1(aad_prefix=retained, aad_file_unique=unique, supply_aad_prefix=supply)
        return EncryptionAlgorithm(AES_GCM_CTR_V1=ctr)

    def _key_of(self, path: str, source: str | None) -> ColumnKey | None:
        result: ColumnKey | None = key_for(path, self._encryption.column_keys)
        if result is None and source is not None:
            result = key_for(source, self._encryption.column_keys)
        return ColumnKey() if result is None and self._encryption.encrypt_columns == "all" else result

    def _cipher(self, key: bytes) -> AesKey:
        # One cipher per key, cached in the user's object, so that all encryptions with the key are counted together.
        ciphers: dict[bytes, AesKey] = self._encryption._ciphers
        if key not in ciphers:
            ciphers.setdefault(key, AesKey(key))
        return ciphers[key]


def redact_metadata(metadata: ColumnMetaData) -> ColumnMetaData:
    """Return the metadata of an encrypted column that a plaintext footer may contain.

    The result contains the position of the data, but no values.
    """
    return ColumnMetaData(
        type=metadata.type,
        encodings=metadata.encodings,
        path_in_schema=metadata.path_in_schema,
        codec=metadata.codec,
        num_values=metadata.num_values,
        total_uncompressed_size=metadata.total_uncompressed_size,
        total_compressed_size=metadata.total_compressed_size,
        data_page_offset=metadata.data_page_offset,
        dictionary_page_offset=metadata.dictionary_page_offset,
    )


def fit_page_rows(rows: int, page_rows: int) -> int:
    """Return ``page_rows``, increased if necessary so that ``rows`` rows fit into ``ORDINAL_MAX`` pages."""
    return max(page_rows, -(-rows // ORDINAL_MAX))


def seal_columns(encryptor: FileEncryptor, row_groups: Sequence[Sequence[ColumnChunk]]) -> None:
    """Encrypt the metadata of all encrypted column chunks of a file."""
    for group, chunks in enumerate(row_groups):
        for column, chunk in enumerate(chunks):
            encryptor.seal_column(chunk, group, column)
