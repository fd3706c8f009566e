"""Modules of encrypted files: the AAD that binds each module to its position, and encryption with AES.

A sealed module consists of its length (4 bytes, little-endian), a nonce (12 bytes), the ciphertext and, with GCM, a tag
(16 bytes). Spec: "Parquet Modular Encryption", sections 4.1, 4.2, 4.4 (additional authenticated data) and 5.1. AES
comes from the ``cryptography`` package, which is imported when a key is first used, so that readers of plaintext files
do not load it.
"""

from __future__ import annotations

import hmac
import itertools
import os
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from pqext.core.base.buffers import Bytes, view
from pqext.core.base.errors import EncryptionError

ORDINAL_MAX = (1 << 15) - 1
"""Maximum ordinal. Ordinals are signed 16-bit numbers.

Writers also use it as the maximum *count* of row groups, columns and pages.
"""

LENGTH_BYTES = 4
NONCE_BYTES = 12
TAG_BYTES = 16
SIGNATURE_BYTES = NONCE_BYTES + TAG_BYTES
INVOCATIONS_MAX = 1 << 32
"""Maximum number of encryptions with one key before a random nonce is too likely to repeat."""
_FIRST_COUNTER = (1).to_bytes(4, "big")
_MODULE_BYTES_MAX = (1 << 31) - 1


class Module(IntEnum):
    """Module types, with the values that the AAD contains."""

    FOOTER = 0
    COLUMN_METADATA = 1
    DATA_PAGE = 2
    DICTIONARY_PAGE = 3
    DATA_PAGE_HEADER = 4
    DICTIONARY_PAGE_HEADER = 5
    COLUMN_INDEX = 6
    OFFSET_INDEX = 7
    BLOOM_FILTER_HEADER = 8
    BLOOM_FILTER_BITSET = 9

    @property
    def is_page(self) -> bool:
        """Whether the module is the body of a page, which AES_GCM_CTR_V1 encrypts without authentication."""
        return self in (Module.DATA_PAGE, Module.DICTIONARY_PAGE)

    @property
    def has_page_ordinal(self) -> bool:
        """Whether the AAD contains the ordinal of the page."""
        return self in (Module.DATA_PAGE, Module.DATA_PAGE_HEADER)

    @property
    def label(self) -> str:
        """Name of the module type in messages."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True)
class FileAad:
    """AAD prefix and file identifier, which the AADs of all modules of a file share."""

    prefix: bytes
    file_unique: bytes

    def footer(self) -> bytes:
        """Return the AAD of the footer."""
        return self.prefix + self.file_unique + bytes([Module.FOOTER])

    def chunk(self, module: Module, row_group: int, column: int, page: int | None) -> bytes:
        """Return the AAD of one module of a column chunk. ``page`` is the index of its data page, if any."""
        ordinals = _encode_ordinal(row_group, "row groups") + _encode_ordinal(column, "columns")
        if module.has_page_ordinal:
            if page is None:
                raise ValueError(f"a {module.label} needs the ordinal of its page")
            ordinals += _encode_ordinal(page, "pages in a column chunk")
        return self.prefix + self.file_unique + bytes([module]) + ordinals


def _encode_ordinal(value: int, noun: str) -> bytes:
    if not 0 <= value <= ORDINAL_MAX:
        raise EncryptionError(f"ordinal {value} is too large: an encrypted file can have at most {ORDINAL_MAX} "
                              f"{noun}, because ordinals have 16 bits")
    return value.to_bytes(2, "little")


class AesKey:
    """AES key that several threads can use. Its ``repr`` does not show the key's bytes."""

    __slots__ = ("_aes", "_gcm", "_invocations")

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import algorithms
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._gcm: Any = AESGCM(key)  # accepts any buffer, contrary to its annotations
        self._aes = algorithms.AES(key)
        self._invocations = itertools.count(1)  # increments atomically under the interpreter's lock

    def seal(self, plaintext: Bytes | bytes, aad: bytes) -> bytes:
        """Encrypt and authenticate a module with GCM."""
        nonce = self._nonce(len(plaintext) + SIGNATURE_BYTES)
        ciphertext = self._gcm.encrypt(nonce, plaintext, aad)
        return b"".join((_encode_length(NONCE_BYTES + len(ciphertext)), nonce, ciphertext))

    def open(self, module: Bytes, aad: bytes) -> Bytes:
        """Decrypt a module sealed with GCM. Raises ``EncryptionError`` if it is not authentic."""
        from cryptography.exceptions import InvalidTag

        body = _strip_length(module, SIGNATURE_BYTES)
        try:
            return view(self._gcm.decrypt(body[:NONCE_BYTES].tobytes(), body[NONCE_BYTES:], aad))
        except InvalidTag:
            raise EncryptionError(
                "the module is not authentic: the key or the AAD prefix is wrong, or the file was tampered with"
            ) from None

    def seal_unauthenticated(self, plaintext: Bytes | bytes) -> bytes:
        """Encrypt a module with CTR, without authentication."""
        nonce = self._nonce(len(plaintext) + NONCE_BYTES)
        ciphertext = self._ctr(nonce, plaintext)
        return b"".join((_encode_length(NONCE_BYTES + len(ciphertext)), nonce, ciphertext))

    def open_unauthenticated(self, module: Bytes) -> Bytes:
        """Decrypt a module encrypted with CTR, which does not reveal tampering."""
        body = _strip_length(module, NONCE_BYTES)
        return view(self._ctr(body[:NONCE_BYTES].tobytes(), body[NONCE_BYTES:]))

    def sign(self, plaintext: Bytes | bytes, aad: bytes) -> bytes:
        """Return the GCM signature of ``plaintext``: the nonce and the tag, 28 bytes."""
        sealed = self.seal(plaintext, aad)
        return sealed[LENGTH_BYTES : LENGTH_BYTES + NONCE_BYTES] + sealed[-TAG_BYTES:]

    def verify(self, plaintext: Bytes, signature: bytes, aad: bytes) -> None:
        """Raise ``EncryptionError`` if ``signature`` is not the signature of ``plaintext`` and ``aad``."""
        tag = self._gcm.encrypt(signature[:NONCE_BYTES], plaintext, aad)[-TAG_BYTES:]
        if not hmac.compare_digest(tag, signature[NONCE_BYTES:]):
            raise EncryptionError(
                "the footer does not match its signature: the key or the AAD prefix is wrong, "
                "or the file was tampered with"
            )

    def _ctr(self, nonce: bytes, data: Bytes | bytes) -> bytes:
        """Encrypt or decrypt ``data``: return it XORed with the key stream of ``nonce``."""
        from cryptography.hazmat.primitives.ciphers import Cipher, modes

        stream: Any = Cipher(self._aes, modes.CTR(nonce + _FIRST_COUNTER)).encryptor()
        return bytes(stream.update(data))

    def _nonce(self, module_bytes: int) -> bytes:
        if module_bytes > _MODULE_BYTES_MAX:
            raise EncryptionError("a module larger than 2 GiB cannot be encrypted; write smaller pages")
        if next(self._invocations) > INVOCATIONS_MAX:
            raise EncryptionError("a key has encrypted 2^32 modules, the safe maximum; use a new key")
        return os.urandom(NONCE_BYTES)

    def __repr__(self) -> str:
        return f"<AesKey of {self._aes.key_size} bits>"

    def __reduce__(self) -> str:
        raise TypeError("an AES key cannot be pickled; pickle the FileEncryption or FileDecryption instead")


def module_length(prefix: Bytes, remaining: int, max_length: int) -> int:
    """Return the length of the module that begins with ``prefix``, including its length field.

    Raises ``EncryptionError`` if this length exceeds ``max_length`` or the ``remaining`` bytes, or is too small for a
    nonce.
    """
    length = LENGTH_BYTES + int.from_bytes(prefix[:LENGTH_BYTES].tobytes(), "little")
    limit = min(remaining, max_length)
    if not LENGTH_BYTES + NONCE_BYTES <= length <= limit:
        raise EncryptionError(
            f"an encrypted module declares {length - LENGTH_BYTES} bytes, but must have {NONCE_BYTES} to "
            f"{max(limit - LENGTH_BYTES, 0)}: the file is damaged, or the column is not encrypted "
            "as its metadata declares"
        )
    return length


def _encode_length(length: int) -> bytes:
    return length.to_bytes(LENGTH_BYTES, "little")


def _strip_length(module: Bytes, min_length: int) -> Bytes:
    """Return a module without its length field.

    Raises ``EncryptionError`` if the field is wrong or less than ``min_length``.
    """
    length = int.from_bytes(module[:LENGTH_BYTES].tobytes(), "little")
    if length != len(module) - LENGTH_BYTES or length < min_length:
        raise EncryptionError(
            f"an encrypted module of {len(module)} bytes declares a length of {length} bytes: the file is damaged"
        )
    return module[LENGTH_BYTES:]
