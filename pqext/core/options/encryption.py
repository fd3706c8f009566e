"""Encryption options of the writer and decryption options of the reader.

Key bytes do not appear in any ``repr``. Spec: "Parquet Modular Encryption", sections 4.2 to 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pqext.core.base.text import escape_text

Algorithm = Literal["AES_GCM_V1", "AES_GCM_CTR_V1"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
KEY_BYTES = (16, 24, 32)

KeyRetriever = Callable[[bytes], bytes]
"""Function that returns the key for key metadata from a file."""
AadPrefixOf = Callable[[str | None], bytes | str | None]
"""Function that returns the AAD prefix of the file at a path."""


def check_key(key: Any, name: str) -> bytes:
    """Return ``key`` as bytes. Raises ``TypeError`` or ``ValueError`` if it is not an AES key.

    ``name`` identifies the key in errors, which never contain the key itself.
    """
    if not isinstance(key, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name} must be bytes, not {type(key).__name__}")
    if len(key) not in KEY_BYTES:
        raise ValueError(f"{name} has {len(key)} bytes; AES keys have 16, 24 or 32")
    return bytes(key)


def to_bytes(value: bytes | str | None, name: str) -> bytes | None:
    """Return ``value`` as bytes, encoding text in UTF-8. ``name`` identifies the value in errors."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"{name} must be bytes or text, not {type(value).__name__}")


@dataclass(frozen=True, slots=True)
class ColumnKey:
    """Key of a column, and the ``metadata`` that readers use to find the key.

    If ``key`` is None, the column is encrypted with the footer key.
    """

    key: bytes | None = field(default=None, repr=False)
    metadata: bytes | str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.key is not None:
            object.__setattr__(self, "key", check_key(self.key, "a column key"))
        elif self.metadata is not None:
            raise ValueError("a column encrypted with the footer key has no key metadata; pass a key or omit metadata")
        object.__setattr__(self, "metadata", to_bytes(self.metadata, "key metadata"))


@dataclass(frozen=True, slots=True)
class FileEncryption:
    """Encryption settings of a file: value of the option ``encryption`` of :class:`pqext.WriteOptions`.

    Keys have 16, 24 or 32 bytes. One object may be used for many files with the same keys. Each key encrypts at most
    2^32 modules.

    Args:
        footer_key: Key that encrypts the footer, or signs it with ``plaintext_footer``.
        footer_key_metadata: Stored in the file, so that readers can look up the footer key.
        column_keys: Maps dotted paths to a key, a :class:`ColumnKey`, or None for the footer key. The path of a group
            applies to all leaves below it.
        encrypt_columns: Treatment of all other columns: ``"listed"`` leaves them plaintext, ``"all"`` encrypts them
            with the footer key. The default is ``"listed"`` if ``column_keys`` has entries, otherwise ``"all"``.
        plaintext_footer: Sign the footer instead of encrypting it, so that it can be read without a key.
        algorithm: ``AES_GCM_CTR_V1`` encrypts pages without authenticating them.
        aad_prefix: Identity of the file. It lets readers detect that another file has replaced it.
        store_aad_prefix: Store the prefix in the file; otherwise readers must supply it.
    """

    footer_key: bytes = field(repr=False)
    footer_key_metadata: bytes | str | None = field(default=None, repr=False)
    column_keys: Mapping[str, bytes | ColumnKey | None] = field(default_factory=dict, repr=False)
    encrypt_columns: Literal["listed", "all"] | None = None
    plaintext_footer: bool = False
    algorithm: Algorithm = "AES_GCM_V1"
    aad_prefix: bytes | str | None = None
    store_aad_prefix: bool = True
    _ciphers: dict[bytes, Any] = field(default_factory=dict, repr=False, compare=False, init=False)

    def __post_init__(self) -> None:
        _set(self, "footer_key", check_key(self.footer_key, "footer_key"))
        _set(self, "footer_key_metadata", to_bytes(self.footer_key_metadata, "footer_key_metadata"))
        _set(self, "aad_prefix", to_bytes(self.aad_prefix, "aad_prefix"))
        if not isinstance(self.column_keys, Mapping):
            raise TypeError(f"column_keys must map dotted paths to keys, not {type(self.column_keys).__name__}")
        _set(self, "column_keys", {path: _column_key(path, key) for path, key in self.column_keys.items()})
        if self.encrypt_columns is None:
            _set(self, "encrypt_columns", "listed" if self.column_keys else "all")
        if self.encrypt_columns not in ("listed", "all"):
            raise ValueError(f"encrypt_columns must be 'listed' or 'all', not {self.encrypt_columns!r}")
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm must be one of {', '.join(ALGORITHMS)}, not {self.algorithm!r}")
        if not self.store_aad_prefix and not self.aad_prefix:
            raise ValueError("store_aad_prefix=False needs an aad_prefix")

    def __repr__(self) -> str:
        paths = escape_text(", ".join(self.column_keys))
        return f"FileEncryption({self.algorithm}, plaintext_footer={self.plaintext_footer}, columns=[{paths}])"

    def __reduce__(self) -> tuple[Any, ...]:
        names = [name for name in self.__slots__ if not name.startswith("_")]
        return FileEncryption, tuple(getattr(self, name) for name in names)


@dataclass(frozen=True, slots=True)
class FileDecryption:
    """Keys for reading encrypted files: value of the option ``decryption`` of :class:`pqext.ReadOptions`.

    Reading a column whose key is missing raises ``EncryptionError``. Other columns can be read.

    Args:
        footer_key: Key of the footer.
        column_keys: Maps dotted paths of leaves, or of groups for all leaves below them, to keys.
        key_retriever: Called with the key metadata in the file for all other keys; returns the key, or None.
        aad_prefix: Expected identity of the file, or a function of the file's path. A file with another prefix,
            or written without a prefix, is rejected.
        check_footer_signature: Verify a plaintext footer if its key is known.
        plaintext_files_allowed: Accept unencrypted files, which may have replaced encrypted ones.
    """

    footer_key: bytes | None = field(default=None, repr=False)
    column_keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    key_retriever: KeyRetriever | None = field(default=None, repr=False)
    aad_prefix: bytes | str | AadPrefixOf | None = None
    check_footer_signature: bool = True
    plaintext_files_allowed: bool = False

    def __post_init__(self) -> None:
        if self.footer_key is not None:
            _set(self, "footer_key", check_key(self.footer_key, "footer_key"))
        if not isinstance(self.column_keys, Mapping):
            raise TypeError(f"column_keys must map dotted paths to keys, not {type(self.column_keys).__name__}")
        keys = {path: check_key(key, f"the key of column {path!r}") for path, key in self.column_keys.items()}
        _set(self, "column_keys", keys)
        if self.key_retriever is not None and not callable(self.key_retriever):
            type_name = type(self.key_retriever).__name__
            raise TypeError(f"key_retriever must be a function from key metadata to the key, not {type_name}")
        if not callable(self.aad_prefix):
            _set(self, "aad_prefix", to_bytes(self.aad_prefix, "aad_prefix"))

    def aad_prefix_of(self, path: str | None) -> bytes | None:
        """Return the expected AAD prefix of the file at ``path``."""
        prefix = self.aad_prefix(path) if callable(self.aad_prefix) else self.aad_prefix
        return to_bytes(prefix, "aad_prefix")

    def __repr__(self) -> str:
        names = [name for name in ("footer_key", "key_retriever") if getattr(self, name) is not None]
        return f"FileDecryption({', '.join([*names, *(f'column {escape_text(path)}' for path in self.column_keys)])})"


def _set(target: Any, name: str, value: Any) -> None:
    object.__setattr__(target, name, value)


def _column_key(path: Any, key: bytes | ColumnKey | None) -> ColumnKey:
    if not isinstance(path, str):
        raise TypeError(f"column_keys must map dotted paths to keys, got a path of type {type(path).__name__}")
    if key is None or isinstance(key, ColumnKey):
        return key if key is not None else ColumnKey()
    return ColumnKey(check_key(key, f"the key of column {path!r}"))


def key_for(path: str, keys: Mapping[str, Any]) -> Any:
    """Return the entry of ``keys`` for the leaf at ``path``, otherwise for the nearest enclosing group in ``keys``,
    otherwise None.
    """
    while path not in keys:
        path, dot, _ = path.rpartition(".")
        if not dot:
            return None
    return keys[path]
