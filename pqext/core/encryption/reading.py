"""Decrypt a file: find the required keys, and decrypt the footer and the modules of column chunks.

A footer is encrypted, or plaintext with a signature. Spec: "Parquet Modular Encryption", sections 4.3, 4.4 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pqext.core.base.buffers import Bytes, view
from pqext.core.base.errors import CorruptFileError, EncryptionError, ParquetError, UnsupportedError
from pqext.core.base.limits import Limits
from pqext.core.encryption.modules import SIGNATURE_BYTES, AesKey, FileAad, Module
from pqext.core.format.metadata import (
    ColumnChunk,
    ColumnCryptoMetaData,
    ColumnMetaData,
    EncryptionAlgorithm,
    FileCryptoMetaData,
    FileMetaData,
    RowGroup,
)
from pqext.core.format.thrift import decode
from pqext.core.options.encryption import FileDecryption, KeyRetriever, check_key, key_for


@dataclass(frozen=True, slots=True)
class ChunkDecryptor:
    """Decryptor of the modules of one column chunk. Several threads can use it."""

    key: AesKey
    aad: FileAad
    row_group: int
    column: int
    authenticate_pages: bool

    def decrypt(self, module: Module, data: Bytes, page: int | None = None) -> Bytes:
        """Return the plaintext of one module.

        ``data`` includes the length prefix, and ``page`` is the index of the data page.

        Raises ``EncryptionError`` if the module is corrupt or belongs to another position.
        """
        try:
            aad = self.aad.chunk(module, self.row_group, self.column, page)
            if module.is_page and not self.authenticate_pages:
                return self.key.open_unauthenticated(data)
            return self.key.open(data, aad)
        except EncryptionError as error:
            error.message = f"{module.label}: {error.message}"
            raise


class MissingKeyError(EncryptionError):
    """Error for a file that requires a key that was not passed to the reader."""


class MissingPrefixError(EncryptionError):
    """Error for a file without a stored AAD prefix, if the required prefix was not passed to the reader."""


class Algorithm(NamedTuple):
    """Fields of a file's ``EncryptionAlgorithm``."""

    authenticates_pages: bool
    aad_prefix: bytes | None
    file_unique: bytes
    prefix_is_supplied: bool

    @classmethod
    def from_footer(cls, algorithm: EncryptionAlgorithm) -> Algorithm:
        """Convert the structure in the footer. Raises ``UnsupportedError`` for an unknown algorithm."""
        if algorithm.member is None:
            raise UnsupportedError("the file is encrypted with an unknown algorithm", feature="encryption")
        fields = algorithm.AES_GCM_V1 or algorithm.AES_GCM_CTR_V1
        assert fields is not None
        return cls(
            algorithm.AES_GCM_V1 is not None, fields.aad_prefix, fields.aad_file_unique or b"",
            bool(fields.supply_aad_prefix),
        )


class FileDecryptor:
    """Decryptor of one file with the keys of ``decryption``.

    ``key_metadata`` is the key metadata of the footer key. ``authentic`` is true after the footer was decrypted or its
    signature was verified.
    """

    def __init__(
        self, algorithm: EncryptionAlgorithm, key_metadata: bytes | None, decryption: FileDecryption | None,
        path: str | None,
    ) -> None:
        self.algorithm = Algorithm.from_footer(algorithm)
        self.authentic = False
        self._key_metadata = key_metadata
        self._decryption = decryption
        self._path = path
        self._retriever = _retriever_for(decryption, path)
        self._explicit_keys: dict[bytes, AesKey] = {}
        self._retrieved_keys: dict[bytes, AesKey] = {}

    @cached_property
    def aad(self) -> FileAad:
        """AAD prefix and file identifier, which the AADs of all modules share.

        Raises ``EncryptionError`` if the file has no identifier, or if its AAD prefix is missing or not as expected.
        """
        if not self.algorithm.file_unique:
            raise EncryptionError(
                "the file has no identifier (aad_file_unique), which binds encrypted modules to their file; "
                "DuckDB writes files without it: read the file with DuckDB, and write it again"
            )
        expected = self._decryption.aad_prefix_of(self._path) if self._decryption is not None else None
        stored = self.algorithm.aad_prefix or None
        if stored is None and expected is None and self.algorithm.prefix_is_supplied:
            raise MissingPrefixError(
                "the file does not store its AAD prefix; pass FileDecryption(aad_prefix=...)"
            )
        if expected and stored is None and not self.algorithm.prefix_is_supplied:
            raise EncryptionError(f"the file was written without an AAD prefix, but {expected!r} is expected: "
                                  "it may not be the expected file")
        if expected is not None and stored is not None and expected != stored:
            raise EncryptionError(f"the file's AAD prefix is {stored!r}, but {expected!r} is expected: "
                                  "it is not the expected file")
        return FileAad(expected or stored or b"", self.algorithm.file_unique)

    def decrypt_footer(self, module: Bytes) -> Bytes:
        """Decrypt an encrypted footer; return the serialised footer."""
        key = self.footer_key
        if key is None:
            raise MissingKeyError(
                "the footer is encrypted, but its key was not passed: pass "
                "decryption=FileDecryption(footer_key=...) or one with a key_retriever"
            )
        try:
            footer = key.open(module, self.aad.footer())
        except EncryptionError as error:
            error.message = f"footer: {error.message}"
            raise
        self.authentic = True
        return footer

    def verify_footer(self, footer: Bytes, signature: Bytes) -> None:
        """Verify the signature of a plaintext footer if its key is available and verification is requested.

        Raises ``EncryptionError`` if the signature is wrong, or has a wrong length.
        """
        if len(signature) != SIGNATURE_BYTES:
            raise EncryptionError(
                f"the footer is followed by {len(signature)} bytes instead of a signature of {SIGNATURE_BYTES} bytes"
            )
        if self._decryption is None or not self._decryption.check_footer_signature:
            return
        try:
            key = self.footer_key
        except EncryptionError as error:
            error.message += "; check_footer_signature=False reads the plaintext footer without verifying it"
            raise
        if key is not None:
            key.verify(footer, signature.tobytes(), self.aad.footer())
            self.authentic = True

    @cached_property
    def footer_key(self) -> AesKey | None:
        """The footer key; None if the reader does not have the key."""
        if self._decryption is None:
            return None
        if self._decryption.footer_key is not None:
            return AesKey(self._decryption.footer_key)
        return self._retrieve(self._key_metadata, "the footer key")

    def _column_key(self, crypto: ColumnCryptoMetaData, path: str) -> AesKey | None:
        """Return the key of an encrypted column; None if the reader does not have the key."""
        if crypto.member is None:
            raise UnsupportedError("the column's crypto metadata has an unknown type", feature="encryption")
        own = crypto.ENCRYPTION_WITH_COLUMN_KEY
        if own is None:
            return self.footer_key
        if self._decryption is None:
            return None
        column_key = key_for(path, self._decryption.column_keys)
        if column_key is not None:
            return self._explicit_keys.setdefault(column_key, AesKey(column_key))
        return self._retrieve(own.key_metadata, f"the key of column {path!r}")

    def chunk(self, chunk: ColumnChunk, path: str, row_group: int, column: int) -> ChunkDecryptor | None:
        """Return the decryptor of a column chunk; None for a plaintext column.

        ``row_group`` and ``column`` are ordinals. Raises ``EncryptionError`` if the key is missing, or if a key was
        passed for a column that is plaintext according to a footer that is not verified.
        """
        if chunk.crypto_metadata is None:
            keys = self._decryption.column_keys if self._decryption is not None else {}
            if not self.authentic and key_for(path, keys) is not None:
                raise EncryptionError(
                    "a key was passed for a column that is plaintext according to a footer that was not verified; pass "
                    "the footer key too, or no key for this column",
                    column=path,
                )
            return None
        try:
            key = self._column_key(chunk.crypto_metadata, path)
        except (EncryptionError, UnsupportedError) as error:
            error.locate(column=path)
            raise
        if key is None:
            uses_footer_key = chunk.crypto_metadata.ENCRYPTION_WITH_FOOTER_KEY is not None
            missing = "footer_key=..." if uses_footer_key else f"column_keys={{{path!r}: ...}}"
            raise MissingKeyError(
                "the column is encrypted, but its key was not passed: pass "
                f"decryption=FileDecryption({missing}) or one with a key_retriever, or omit the column",
                column=path,
            )
        return ChunkDecryptor(key, self.aad, row_group, column, self.algorithm.authenticates_pages)

    def ordinal(self, group: RowGroup, index: int) -> int:
        """Return the ordinal of the row group at position ``index`` in the footer. The ordinal is part of the AAD of
        modules.

        The ordinal in the footer is used only if the footer is authentic.
        """
        return group.ordinal if self.authentic and group.ordinal is not None else index

    def column_metadata(
        self, chunk: ColumnChunk, path: str, row_group: int, column: int, limits: Limits
    ) -> ColumnMetaData | None:
        """Return the decrypted metadata of a column chunk; None if its metadata is plaintext.

        Raises ``EncryptionError`` like :meth:`chunk`, and if a footer that is not verified contains the metadata of an
        encrypted column.
        """
        sealed = chunk.encrypted_column_metadata
        decryptor = self.chunk(chunk, path, row_group, column)
        if decryptor is None:
            return None
        if sealed is None:
            if self.authentic:
                return None
            raise EncryptionError(
                "the metadata of an encrypted column is not encrypted, and the footer was not verified; pass the "
                "footer key too",
                column=path,
            )
        try:
            plaintext = decryptor.decrypt(Module.COLUMN_METADATA, view(sealed))
            return decode(ColumnMetaData, plaintext, limits=limits)[0]
        except ParquetError as error:
            error.locate(column=path, row_group=row_group)
            raise

    def _retrieve(self, key_metadata: bytes | None, name: str) -> AesKey | None:
        assert self._decryption is not None
        if self._retriever is None or key_metadata is None:
            return None
        known = self._retrieved_keys.get(key_metadata)
        if known is None:
            try:
                key = self._retriever(key_metadata)
            except ParquetError:
                raise
            except Exception as error:
                raise EncryptionError(f"the key retriever did not return {name}: {type(error).__name__}") from error
            if key is None:
                return None
            known = self._retrieved_keys[key_metadata] = AesKey(check_key(key, name))
        return known


def _retriever_for(decryption: FileDecryption | None, path: str | None) -> KeyRetriever | None:
    """Return the key retriever for the file at ``path``; None if ``decryption`` has no key retriever."""
    retriever = decryption.key_retriever if decryption is not None else None
    for_file = getattr(retriever, "for_file", None)
    return for_file(path) if for_file is not None else retriever


def check_plaintext_allowed(decryption: FileDecryption | None) -> None:
    """Raise ``EncryptionError`` for a plaintext file if ``decryption`` does not allow plaintext files."""
    if decryption is not None and not decryption.plaintext_files_allowed:
        raise EncryptionError(
            "the file is not encrypted, but keys were passed: it may not be the expected file; "
            "FileDecryption(plaintext_files_allowed=True) reads it anyway"
        )


def open_encrypted(
    raw: Bytes, decryption: FileDecryption | None, limits: Limits, offset: int, path: str | None
) -> tuple[Bytes, FileDecryptor]:
    """Decrypt the footer of a file that ends in ``PARE``; return the serialised FileMetaData and the file's decryptor.

    ``raw`` contains the crypto metadata and the encrypted footer, which begin at ``offset`` in the file. Raises
    ``EncryptionError`` if the key is missing or wrong, or if the bytes were tampered with, and ``UnsupportedError`` if
    the algorithm is unknown.
    """
    crypto, end = decode(FileCryptoMetaData, raw, limits=limits, base=offset, path=path)
    try:
        decryptor = FileDecryptor(crypto.encryption_algorithm, crypto.key_metadata, decryption, path)
        return decryptor.decrypt_footer(raw[end:]), decryptor
    except (EncryptionError, UnsupportedError) as error:
        error.locate(path=path, offset=offset + end)
        raise


def open_plaintext_footer(
    metadata: FileMetaData, raw: Bytes, length: int, decryption: FileDecryption | None, offset: int, path: str | None
) -> FileDecryptor | None:
    """Return the decryptor of a file with a plaintext footer; None if nothing in the file is encrypted.

    The first ``length`` bytes of ``raw`` are the FileMetaData, and the rest is its signature. ``raw`` begins at
    ``offset`` in the file. Raises ``EncryptionError`` if the signature is wrong, or if the file is not encrypted and
    ``decryption`` does not allow plaintext files. Raises ``UnsupportedError`` if the algorithm is unknown.
    """
    try:
        if metadata.encryption_algorithm is None:
            check_plaintext_allowed(decryption)
            return None
        decryptor = FileDecryptor(
            metadata.encryption_algorithm, metadata.footer_signing_key_metadata, decryption, path
        )
        decryptor.verify_footer(raw[:length], raw[length:])
    except (EncryptionError, UnsupportedError) as error:
        error.locate(path=path, offset=offset)
        raise
    return decryptor


def missing_algorithm_error(column: str) -> CorruptFileError:
    """Create the error for an encrypted column in a file that declares no encryption algorithm."""
    return CorruptFileError("a column is encrypted, but the file declares no encryption algorithm", column=column)
