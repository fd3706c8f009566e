"""Read the footers of encrypted files: encrypted footers, and plaintext footers with a signature.

Spec: "Parquet Modular Encryption", sections 5.4 and 5.5.
"""

from __future__ import annotations

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import CorruptFileError, EncryptionError, UnsupportedError
from pqext.core.base.limits import Limits
from pqext.core.encryption.cipher import module_length
from pqext.core.encryption.reading import FileDecryptor, check_plaintext_allowed
from pqext.core.format.metadata import FileCryptoMetaData, FileMetaData
from pqext.core.format.thrift import decode
from pqext.core.options.encryption import FileDecryption


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
        remaining = len(raw) - end
        if module_length(raw[end:], remaining, remaining) != remaining:
            raise EncryptionError(
                "the length of the encrypted footer does not match the footer length at the end of the file"
            )
        return decryptor.decrypt_footer(raw[end:]), decryptor
    except (EncryptionError, UnsupportedError) as error:
        error.locate(path=path, offset=offset + end)
        raise


def check_plaintext(
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


def no_decryptor(column: str) -> CorruptFileError:
    """Create the error for a column that is declared encrypted in a file without an encryption algorithm."""
    return CorruptFileError("a column is encrypted, but the file declares no encryption algorithm", column=column)
