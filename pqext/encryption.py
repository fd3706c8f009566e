"""Encrypted files: keys of columns and footers, and key tools that wrap keys with a key management service (KMS).

Pass a :class:`FileEncryption` as ``encryption=`` when writing, and a :class:`FileDecryption` as ``decryption=`` when
reading. A :class:`CryptoFactory` creates both from keys that your :class:`KmsClient` manages.
"""

from __future__ import annotations

from pqext.core.encryption.keytools.factory import CryptoFactory, DecryptionConfiguration, EncryptionConfiguration
from pqext.core.encryption.keytools.wrapping import KmsClient, KmsConnectionConfig
from pqext.core.encryption.reading import MissingKeyError
from pqext.core.files.file_set import verify_file_set
from pqext.core.options.encryption import ColumnKey, FileDecryption, FileEncryption

__all__ = [
    "ColumnKey",
    "CryptoFactory",
    "DecryptionConfiguration",
    "EncryptionConfiguration",
    "FileDecryption",
    "FileEncryption",
    "KmsClient",
    "KmsConnectionConfig",
    "MissingKeyError",
    "verify_file_set",
]
