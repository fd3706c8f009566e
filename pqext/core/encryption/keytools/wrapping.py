"""Wrap data keys with a key management service (KMS) when a file is written, and unwrap them when it is read.

Double wrapping needs one call of the KMS for each master key and access token, instead of one for each data key: data
keys are wrapped locally with a key encryption key (KEK) that is cached, and the KMS wraps only the KEK.
"""

from __future__ import annotations

import base64
import binascii
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pqext.core.base.buffers import view
from pqext.core.base.errors import EncryptionError
from pqext.core.encryption.keytools.material import (
    COLUMN_KEY_PREFIX,
    FOOTER_KEY,
    KeyMaterial,
    KeyMaterialStore,
    parse_metadata,
    serialise_reference,
)
from pqext.core.encryption.modules import LENGTH_BYTES, AesKey
from pqext.core.options.encryption import check_key

DEFAULT_INSTANCE = "DEFAULT"
"""Value in key material if no instance or URL is configured, as written by parquet-java and Arrow."""
KEK_BYTES = 16
KEK_ID_BYTES = 16

T = TypeVar("T")


class KmsClient(ABC):
    """Interface of a client that wraps keys with master keys that never leave the KMS.

    Clients written for pyarrow can be used.
    """

    @abstractmethod
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Return ``key_bytes`` encrypted with a master key, as text."""

    @abstractmethod
    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Decrypt ``wrapped_key``, a result of :meth:`wrap_key`, and return the key.

        Raises an error of the client if the caller is not authorised.
        """


@dataclass(frozen=True, slots=True)
class KmsConnectionConfig:
    """KMS instance and credentials. ``custom_kms_conf`` contains settings of the client."""

    kms_instance_id: str = ""
    kms_instance_url: str = ""
    key_access_token: str = field(default="", repr=False)
    custom_kms_conf: Mapping[str, str] = field(default_factory=dict, repr=False)


KmsClientFactory = Callable[[KmsConnectionConfig], KmsClient]


def wrap_locally(key: bytes, wrapping_key: bytes, aad: bytes) -> str:
    """Encrypt ``key`` with ``wrapping_key`` using AES GCM; return nonce, ciphertext and tag in base64."""
    sealed = AesKey(check_key(wrapping_key, "a wrapping key")).seal(key, aad)
    return base64.b64encode(sealed[LENGTH_BYTES:]).decode()


def unwrap_locally(wrapped_key: str, wrapping_key: bytes, aad: bytes) -> bytes:
    """Decrypt a key that :func:`wrap_locally` encrypted.

    Raises ``EncryptionError`` if the wrapping key or the AAD differs, or if ``wrapped_key`` is invalid.
    """
    try:
        sealed = base64.b64decode(wrapped_key, validate=True)
    except (binascii.Error, ValueError):
        raise EncryptionError("a wrapped key is not valid base64") from None
    module = view(len(sealed).to_bytes(LENGTH_BYTES, "little") + sealed)
    unwrapper = AesKey(check_key(wrapping_key, "a wrapping key"))
    try:
        return unwrapper.open(module, aad).tobytes()
    except EncryptionError:
        raise EncryptionError(
            "a wrapped key cannot be unwrapped: it is corrupt, or was wrapped with another key or AAD"
        ) from None


class KmsCache(Generic[T]):
    """Cache of objects obtained from a KMS, for each connection and access token.

    A connection is identified by the instance, its URL and the settings of the client, since one factory may use
    several KMS with master keys of the same names. The entries of an access token expire together.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, tuple[float, float, dict[Hashable, T]]] = {}

    def get(self, config: KmsConnectionConfig, name: Hashable, lifetime: float, make: Callable[[], T]) -> T:
        """Return the entry ``name`` of a connection. Create it with ``make`` if it is missing or has expired.

        All entries of an access token expire ``lifetime`` seconds after the first entry was created.
        """
        now = time.monotonic()
        token = config.key_access_token
        place = (_connection(config), name)
        with self._lock:
            self._entries = {known: entry for known, entry in self._entries.items() if entry[1] > now}
            if token in self._entries and self._entries[token][0] + lifetime <= now:
                del self._entries[token]
            retained = self._entries.setdefault(token, (now, now + lifetime, {}))[2]
            if place in retained:
                return retained[place]
        made = make()  # calls the KMS, so not under the lock
        with self._lock:
            return retained.setdefault(place, made)

    def remove(self, token: str) -> None:
        """Remove all entries of ``token``."""
        with self._lock:
            self._entries.pop(token, None)

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()

    def __repr__(self) -> str:
        return f"<cache for {len(self._entries)} tokens>"


def _connection(config: KmsConnectionConfig) -> Hashable:
    """Return a key that identifies a KMS connection, except for its access token."""
    return config.kms_instance_id, config.kms_instance_url, frozenset(config.custom_kms_conf.items())


@dataclass(frozen=True, slots=True)
class _KeyEncryptionKey:
    key: bytes = field(repr=False)
    id: bytes
    wrapped: str = field(repr=False)


class KeyCaches:
    """Caches of KMS clients and KEKs of one crypto factory."""

    def __init__(self, client_factory: KmsClientFactory) -> None:
        self._client_factory = client_factory
        self.clients: KmsCache[KmsClient] = KmsCache()
        self.written_keks: KmsCache[_KeyEncryptionKey] = KmsCache()
        self.read_keks: KmsCache[bytes] = KmsCache()

    def client(self, config: KmsConnectionConfig, lifetime: float) -> KmsClient:
        """Return the client of a KMS instance, which is cached for ``lifetime`` seconds."""
        return self.clients.get(config, None, lifetime, lambda: self._client_factory(config))


class FileKeyWrapper:
    """Wrapper of the data keys of one file. It creates key metadata, and adds external key material to ``store``."""

    def __init__(
        self, caches: KeyCaches, config: KmsConnectionConfig, lifetime: float, *,
        double_wrapping: bool, store: KeyMaterialStore | None, stored_url: str | None = None,
    ) -> None:
        """Initialise the wrapper.

        ``stored_url`` is the KMS address in existing key material, used if ``config`` has no address.
        """
        self._caches = caches
        self._config = config
        self._url = config.kms_instance_url or stored_url or DEFAULT_INSTANCE
        self._lifetime = lifetime
        self._double_wrapping = double_wrapping
        self._store = store
        self._columns = 0

    def wrap(self, key: bytes, master_key_id: str, *, footer: bool, reference: str | None = None) -> str:
        """Return the key metadata of ``key``. ``reference`` is the name of external material; None generates a name."""
        client = self._caches.client(self._config, self._lifetime)
        kek_id = wrapped_kek = None
        if self._double_wrapping:
            kek = self._caches.written_keks.get(
                self._config, master_key_id, self._lifetime, lambda: _new_kek(client, master_key_id)
            )
            wrapped = wrap_locally(key, kek.key, kek.id)
            kek_id, wrapped_kek = base64.b64encode(kek.id).decode(), kek.wrapped
        else:
            wrapped = _require_text(client.wrap_key(key, master_key_id))
        material = KeyMaterial(
            is_footer_key=footer, master_key_id=master_key_id, wrapped_dek=wrapped,
            kms_instance_id=(self._config.kms_instance_id or DEFAULT_INSTANCE) if footer else None,
            kms_instance_url=self._url if footer else None,
            kek_id=kek_id, wrapped_kek=wrapped_kek,
        )
        if self._store is None:
            return material.serialise(internal=True)
        if reference is None:
            reference = FOOTER_KEY if footer else f"{COLUMN_KEY_PREFIX}{self._columns}"
            self._columns += not footer
        self._store.add(reference, material.serialise(internal=False))
        return serialise_reference(reference)


class FileKeyUnwrapper:
    """Key retriever for the data keys of one file.

    ``store`` loads the file's external key material. It is called when a key first needs this material.
    """

    def __init__(
        self, caches: KeyCaches, config: KmsConnectionConfig, lifetime: float, *,
        read_kms_url: bool, store: Callable[[], KeyMaterialStore],
    ) -> None:
        self._caches = caches
        self._config = config
        self._lifetime = lifetime
        self._read_kms_url = read_kms_url
        self._open_store = store
        self._store: KeyMaterialStore | None = None

    def __call__(self, key_metadata: bytes) -> bytes:
        """Return the data key that ``key_metadata`` describes.

        Raises ``EncryptionError`` or an error of the KMS client.
        """
        material = parse_metadata(key_metadata)
        if isinstance(material, str):
            if self._store is None:
                self._store = self._open_store()
            material = KeyMaterial.parse(self._store.get(material))
        return self.unwrap(material)

    def unwrap(self, material: KeyMaterial) -> bytes:
        """Return the unwrapped data key of ``material``."""
        config = self._connection(material)
        client = self._caches.client(config, self._lifetime)
        if material.kek_id is None:
            return _check_unwrapped_key(client.unwrap_key(material.wrapped_dek, material.master_key_id))
        wrapped_kek = material.wrapped_kek or ""
        # The cache key has every input: the id alone comes from a file, which may be manipulated.
        name = (material.kek_id, material.master_key_id, wrapped_kek)
        kek = self._caches.read_keks.get(
            config, name, self._lifetime, lambda: _check_unwrapped_key(
                client.unwrap_key(wrapped_kek, material.master_key_id)
            )
        )
        try:
            aad = base64.b64decode(material.kek_id, validate=True)
        except (binascii.Error, ValueError):
            raise EncryptionError("the id of a key encryption key is not valid base64") from None
        return _check_unwrapped_key(unwrap_locally(material.wrapped_dek, kek, aad))

    @property
    def connection(self) -> KmsConnectionConfig:
        """KMS connection for unwrapping the keys of the file.

        The footer key's material adds the instance and, with ``read_kms_url``, the URL if they are not configured.
        """
        return self._config

    def _connection(self, material: KeyMaterial) -> KmsConnectionConfig:
        """Return the KMS connection for ``material``.

        If ``material`` wraps the footer key, it provides the instance if none is configured and, with
        ``read_kms_url``, also the URL.
        """
        known = self._config
        if material.is_footer_key:
            # The token is sent to that address, so a file may provide it only if the user allows this.
            url = (material.kms_instance_url or "") if self._read_kms_url else ""
            self._config = KmsConnectionConfig(
                known.kms_instance_id or material.kms_instance_id or "",
                known.kms_instance_url or url, known.key_access_token, known.custom_kms_conf,
            )
        return KmsConnectionConfig(
            self._config.kms_instance_id or DEFAULT_INSTANCE, self._config.kms_instance_url or DEFAULT_INSTANCE,
            known.key_access_token, known.custom_kms_conf,
        )


def _new_kek(client: KmsClient, master_key_id: str) -> _KeyEncryptionKey:
    key = os.urandom(KEK_BYTES)
    return _KeyEncryptionKey(key, os.urandom(KEK_ID_BYTES), _require_text(client.wrap_key(key, master_key_id)))


def _check_unwrapped_key(key: Any) -> bytes:
    """Return ``key`` if it is a valid AES key. A manipulated file can cause a KMS to return other bytes."""
    try:
        return check_key(key, "an unwrapped key")
    except ValueError as error:
        raise EncryptionError(str(error)) from None


def _require_text(wrapped_key: Any) -> str:
    if isinstance(wrapped_key, bytes):
        return wrapped_key.decode("ascii")
    if isinstance(wrapped_key, str):
        return wrapped_key
    raise TypeError(f"wrap_key of the KMS client must return text, not {type(wrapped_key).__name__}")
