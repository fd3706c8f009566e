"""Create and wrap data keys with the master keys of a KMS.

Names follow ``pyarrow.parquet.encryption`` and the key tools of parquet-java.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pyarrow import fs

from pqext.core.base.errors import EncryptionError
from pqext.core.encryption.keytools.material import FOOTER_KEY, KeyMaterial, KeyMaterialStore, list_stores
from pqext.core.encryption.keytools.wrapping import (
    FileKeyUnwrapper,
    FileKeyWrapper,
    KeyCaches,
    KmsClientFactory,
    KmsConnectionConfig,
)
from pqext.core.options.encryption import KEY_BYTES, Algorithm, ColumnKey, FileDecryption, FileEncryption

_LIFETIME = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class EncryptionConfiguration:
    """Settings for encrypting a file, including the master keys for footer and columns.

    ``footer_key`` is the name of a master key. ``column_keys`` maps names of master keys to the dotted paths of the
    columns that they protect. Alternatively, ``uniform_encryption`` encrypts all columns with the footer's key. The
    footer and each column get a random data key of ``data_key_length_bits`` bits. The master key wraps this key or,
    with ``double_wrapping``, a key encryption key (KEK) that wraps the data key. With
    ``internal_key_material`` wrapped keys are stored in the file. Otherwise, they are stored in a file next to it, so
    that master keys can be rotated. KEKs and KMS clients are cached for ``cache_lifetime``.
    """

    footer_key: str
    column_keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    uniform_encryption: bool = False
    encryption_algorithm: Algorithm = "AES_GCM_V1"
    plaintext_footer: bool = False
    double_wrapping: bool = True
    cache_lifetime: timedelta = _LIFETIME
    internal_key_material: bool = True
    data_key_length_bits: int = 128

    def __post_init__(self) -> None:
        if bool(self.column_keys) == self.uniform_encryption:
            raise ValueError("pass either column_keys or uniform_encryption=True")
        if self.data_key_length_bits not in [8 * length for length in KEY_BYTES]:
            raise ValueError(f"data_key_length_bits must be 128, 192 or 256, not {self.data_key_length_bits!r}")
        seen: set[str] = set()
        for master, columns in self.column_keys.items():
            if isinstance(columns, str) or not columns:
                raise ValueError(f"column_keys must map master key {master!r} to a list of columns, not {columns!r}")
            for column in columns:
                if column in seen:
                    raise ValueError(f"column_keys has column {column!r} twice")
                seen.add(column)


@dataclass(frozen=True, slots=True)
class DecryptionConfiguration:
    """Settings for decrypting files. KEKs and KMS clients are cached for ``cache_lifetime``.

    With ``read_kms_url``, the URL of the KMS is read from the file if it is not configured. The access token is sent to
    this URL, so set ``read_kms_url`` only if the KMS client checks the URL.
    """

    cache_lifetime: timedelta = _LIFETIME
    read_kms_url: bool = False


class CryptoFactory:
    """Factory of :class:`FileEncryption` and :class:`FileDecryption` objects with keys that a KMS protects.

    ``kms_client_factory`` creates the client of a :class:`KmsConnectionConfig`. KEKs and clients are cached for each
    connection, identified by instance, URL, ``custom_kms_conf`` and access token. Share one factory among all files of
    a process.
    """

    def __init__(self, kms_client_factory: KmsClientFactory) -> None:
        self._caches = KeyCaches(kms_client_factory)

    def file_encryption_properties(
        self, kms_connection_config: KmsConnectionConfig, encryption_config: EncryptionConfiguration,
        parquet_file_path: str | os.PathLike[str] | None = None, filesystem: fs.FileSystem | None = None,
    ) -> FileEncryption:
        """Create the keys of one file. Pass the result to its writer as ``encryption``.

        External key material requires the path of the file. The material is written next to the file immediately.
        Raises ``FileExistsError`` if key material already exists there, since the keys of another file would be lost.
        """
        config = encryption_config
        store = None
        if not config.internal_key_material:
            if parquet_file_path is None:
                raise ValueError("external key material is stored next to the file; pass parquet_file_path=")
            store = KeyMaterialStore(os.fspath(parquet_file_path), filesystem)
            if store.exists():
                raise FileExistsError(
                    f"{store.path} contains the keys of an earlier Parquet file; remove both files first"
                )
        wrapper = FileKeyWrapper(
            self._caches, kms_connection_config, config.cache_lifetime.total_seconds(),
            double_wrapping=config.double_wrapping, store=store,
        )
        length = config.data_key_length_bits // 8
        footer_key = os.urandom(length)
        footer_metadata = wrapper.wrap(footer_key, config.footer_key, footer=True)
        columns: dict[str, ColumnKey] = {}
        for master, paths in config.column_keys.items():
            for path in paths:
                key = os.urandom(length)
                columns[path] = ColumnKey(key, wrapper.wrap(key, master, footer=False))
        encryption = FileEncryption(
            footer_key, footer_metadata, columns,
            plaintext_footer=config.plaintext_footer, algorithm=config.encryption_algorithm,
        )
        if store is not None:
            store.save()
        return encryption

    def file_decryption_properties(
        self, kms_connection_config: KmsConnectionConfig, decryption_config: DecryptionConfiguration | None = None,
        parquet_file_path: str | os.PathLike[str] | None = None, filesystem: fs.FileSystem | None = None,
    ) -> FileDecryption:
        """Create decryption settings for any number of files. Pass the result to readers as ``decryption``.

        Plaintext files are also allowed.

        External key material is read from the folder of each file, or from the folder of ``parquet_file_path``.
        """
        retriever = _FileKeys(
            self._caches, kms_connection_config, decryption_config or DecryptionConfiguration(), filesystem,
            os.fspath(parquet_file_path) if parquet_file_path is not None else None,
        )
        return FileDecryption(key_retriever=retriever, plaintext_files_allowed=True)

    def rotate_master_keys(
        self, kms_connection_config: KmsConnectionConfig, parquet_file_path: str | os.PathLike[str],
        filesystem: fs.FileSystem | None = None, *, double_wrapping: bool = True,
        cache_lifetime: timedelta = _LIFETIME, master_keys: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Wrap all keys of the files in a folder again, with the current versions of the master keys.

        ``master_keys`` maps names of master keys to their replacements. Only external key material can be rotated. Each
        key material file is replaced atomically. Returns the paths of these files. Raises ``EncryptionError`` if the
        folder contains no key material or a key cannot be unwrapped. The keys of preceding files are then already
        rotated.
        """
        self._caches.written_keks.clear()
        lifetime = cache_lifetime.total_seconds()
        stores = list_stores(os.fspath(parquet_file_path), filesystem)
        if not stores:
            raise EncryptionError(
                "the folder has no key material files; to rotate keys with internal key material, rewrite the files",
                path=os.fspath(parquet_file_path),
            )
        for store in stores:
            store.load()
            unwrapper = FileKeyUnwrapper(
                self._caches, kms_connection_config, lifetime, read_kms_url=False, store=store.load
            )
            # Only the footer's material names the KMS instance, which wraps the keys again.
            references = sorted(store.references(), key=lambda name: name != FOOTER_KEY)
            materials = [KeyMaterial.parse(store.get(reference)) for reference in references]
            keys = [unwrapper.unwrap(material) for material in materials]
            wrapper = FileKeyWrapper(
                self._caches, unwrapper.connection, lifetime, double_wrapping=double_wrapping, store=store,
                stored_url=next((material.kms_instance_url for material in materials if material.is_footer_key), None),
            )
            for reference, material, key in zip(references, materials, keys, strict=True):
                master = (master_keys or {}).get(material.master_key_id, material.master_key_id)
                wrapper.wrap(key, master, footer=material.is_footer_key, reference=reference)
            store.save()
        return [store.path for store in stores]

    def remove_cache_entries_for_token(self, access_token: str) -> None:
        """Remove the KMS clients and KEKs of an access token from the caches, for example because it is compromised."""
        for cache in self._connection_caches():
            cache.remove(access_token)

    def remove_cache_entries_for_all_tokens(self) -> None:
        """Remove all KMS clients and KEKs from the caches."""
        for cache in self._connection_caches():
            cache.clear()

    def _connection_caches(self) -> tuple[Any, ...]:
        return self._caches.clients, self._caches.written_keks, self._caches.read_keks


class _FileKeys:
    """Key retriever for any file. It creates a retriever for each file, to read the key material next to the file."""

    def __init__(
        self, caches: KeyCaches, connection: KmsConnectionConfig, config: DecryptionConfiguration,
        filesystem: fs.FileSystem | None, path: str | None,
    ) -> None:
        self._caches = caches
        self._connection = connection
        self._config = config
        self._filesystem = filesystem
        self._path = path

    def for_file(self, path: str | None) -> FileKeyUnwrapper:
        """Return the retriever for the file at ``path``."""
        place = self._path if self._path is not None else path

        def load_store() -> KeyMaterialStore:
            if place is None:
                raise EncryptionError("the key material is stored next to the file, but its path is unknown; pass "
                                      "parquet_file_path= to file_decryption_properties")
            return KeyMaterialStore(place, self._filesystem).load()

        return FileKeyUnwrapper(
            self._caches, self._connection, self._config.cache_lifetime.total_seconds(),
            read_kms_url=self._config.read_kms_url, store=load_store,
        )

    def __call__(self, key_metadata: bytes) -> bytes:
        return self.for_file(None)(key_metadata)
