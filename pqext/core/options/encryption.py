"""What a user says of keys: how a file is to be encrypted, and with what it can be decrypted.

Nothing here shows key bytes in its ``repr``. Spec: "Parquet Modular Encryption", sections 4.2 to 4.4.
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
"""Gives the key that the key metadata found in a file stands for."""
AadPrefixOf = Callable[[str | None], bytes | str | None]
"""Gives the AAD prefix of the file at a path."""


def check_key(key: Any, what: str) -> bytes:
    """``key`` as bytes; ``what`` names it in errors, which never show it."""
    if not isinstance(key, (bytes, bytearray, memoryview)):
        raise TypeError(f"{what} must be bytes, not {type(key).__name__}")
    if len(key) not in KEY_BYTES:
        raise ValueError(f"{what} has {len(key)} bytes; AES keys have 16, 24 or 32")
    return bytes(key)


def to_bytes(value: bytes | str | None, what: str) -> bytes | None:
    """``value`` as bytes, text in UTF-8."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"{what} must be bytes or text, not {type(value).__name__}")


@dataclass(frozen=True, slots=True)
class ColumnKey:
    """The ``key`` of a column and the ``metadata`` that lets readers find it; both are the column's own.

    Without a ``key`` the column is encrypted with the footer key.
    """

    key: bytes | None = field(default=None, repr=False)
    metadata: bytes | str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.key is not None:
            object.__setattr__(self, "key", check_key(self.key, "a column key"))
        elif self.metadata is not None:
            raise ValueError("a column encrypted with the footer key has no key metadata of its own")
        object.__setattr__(self, "metadata", to_bytes(self.metadata, "key metadata"))


@dataclass(frozen=True, slots=True)
class FileEncryption:
    """How a file is encrypted: the ``encryption`` of :class:`pqext.WriteOptions`.

    ``footer_key`` encrypts the footer, or signs it when ``plaintext_footer`` leaves it readable for those without
    any key. ``column_keys`` maps dotted paths to a key, a :class:`ColumnKey`, or ``None`` for the footer key; the
    path of a group stands for all leaves below it. ``encrypt_columns`` says what happens to the other columns:
    ``"listed"`` leaves them plaintext, ``"all"`` encrypts them with the footer key; the default is ``"listed"`` when
    ``column_keys`` lists any and ``"all"`` otherwise. Keys have 16, 24 or 32 bytes.

    ``aad_prefix`` is the identity of the file (text or bytes), against which readers can check that they were not
    given another; with ``store_aad_prefix=False`` it is not in the file and readers must supply it.
    ``AES_GCM_CTR_V1`` encrypts pages without authenticating them.

    One object may serve many files, with the same keys; each key encrypts at most 2^32 modules.
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
            raise TypeError(f"column_keys maps dotted paths to keys; a {type(self.column_keys).__name__} does not")
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
    """What a reader knows of keys: the ``decryption`` of :class:`pqext.ReadOptions`.

    ``column_keys`` maps dotted paths of leaves, or of groups for all leaves below, to keys. For keys that are not
    given here ``key_retriever`` is called with the key metadata in the file; it returns the key, and ``None`` where
    there is none. Columns whose key is missing, or for which it raises an exception, raise ``EncryptionError`` when
    they are read; the others read as usual.

    ``aad_prefix`` is the identity that the file is expected to have: a file that stores another, or none, is
    refused. It may be a function of the file's path, for sets of files. ``check_footer_signature`` verifies a
    plaintext footer whenever its key is known. A file that is not encrypted at all is refused, since it may have
    been put in the place of an encrypted one, unless ``plaintext_files_allowed``.
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
            raise TypeError(f"column_keys maps dotted paths to keys; a {type(self.column_keys).__name__} does not")
        keys = {path: check_key(key, f"the key of column {path!r}") for path, key in self.column_keys.items()}
        _set(self, "column_keys", keys)
        if self.key_retriever is not None and not callable(self.key_retriever):
            raise TypeError("key_retriever must be a function from key metadata to the key")
        if not callable(self.aad_prefix):
            _set(self, "aad_prefix", to_bytes(self.aad_prefix, "aad_prefix"))

    def aad_prefix_of(self, path: str | None) -> bytes | None:
        """The AAD prefix expected of the file at ``path``."""
        prefix = self.aad_prefix(path) if callable(self.aad_prefix) else self.aad_prefix
        return to_bytes(prefix, "aad_prefix")

    def __repr__(self) -> str:
        known = [name for name in ("footer_key", "key_retriever") if getattr(self, name) is not None]
        return f"FileDecryption({', '.join([*known, *(f'column {escape_text(path)}' for path in self.column_keys)])})"


def _set(target: Any, name: str, value: Any) -> None:
    object.__setattr__(target, name, value)


def _column_key(path: Any, key: bytes | ColumnKey | None) -> ColumnKey:
    if not isinstance(path, str):
        raise TypeError(f"column_keys maps dotted paths to keys, and {type(path).__name__} is no path")
    if key is None or isinstance(key, ColumnKey):
        return key if key is not None else ColumnKey()
    return ColumnKey(check_key(key, f"the key of column {path!r}"))


def key_for(path: str, keys: Mapping[str, Any]) -> Any:
    """The entry of ``keys`` for a leaf: its own, or that of the nearest group around it; ``None`` without one."""
    while path not in keys:
        path, dot, _ = path.rpartition(".")
        if not dot:
            return None
    return keys[path]
