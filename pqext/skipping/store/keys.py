"""Keys of encrypted stores. Labels identify the keys, and a store contains only the labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pqext.core.base.errors import EncryptionError
from pqext.core.options.encryption import FileDecryption, check_key
from pqext.skipping.format.metadata import StoreEncryption
from pqext.skipping.indexes.index import Index


@dataclass(frozen=True, init=False)
class StoreKeys:
    """Encryption settings of a store: the ``encryption`` of :func:`pqext.skipping.build`.

    Args:
        keys: Keys of 16, 24 or 32 bytes by their labels. Only the labels are stored.
        footer_key: Label of the key that encrypts the footer and the names of the objects.
        column_keys: Label for the indexes on a column, by column name; other indexes use the footer key.
        plaintext_footer: Sign the footer instead of encrypting it.

    Raises:
        ValueError: If a label has no key, or a key has an invalid size.
    """

    keys: Mapping[str, bytes] = field(repr=False)
    footer_key: str
    column_keys: Mapping[str, str]
    plaintext_footer: bool = False

    def __init__(
        self,
        keys: Mapping[str, bytes],
        footer_key: str,
        column_keys: Mapping[str, str] | None = None,
        plaintext_footer: bool = False,
    ) -> None:
        checked = {label: check_key(key, f"the key {label!r}") for label, key in keys.items()}
        for label in (footer_key, *(column_keys or {}).values()):
            if label not in checked:
                raise ValueError(f"keys has no key for the label {label!r}")
        for name, value in (
            ("keys", checked), ("footer_key", footer_key), ("column_keys", dict(column_keys or {})),
            ("plaintext_footer", plaintext_footer),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    def key_of(self, index: Index) -> str:
        """Return the label of the key that encrypts an index."""
        return self.column_keys.get(index.columns[0], self.footer_key)

    def labels(self) -> StoreEncryption:
        """Return the key labels to store in the metadata."""
        return StoreEncryption("", self.footer_key, self.plaintext_footer)


def label_keys(keys: Any, labels: StoreEncryption | None) -> Mapping[str, bytes] | None:
    """Return the keys by label from a ``decryption`` argument; None if the store is not encrypted.

    Raises ``EncryptionError`` if the store is encrypted and ``keys`` provides no keys.
    """
    if labels is None:
        return None
    if isinstance(keys, Mapping):
        return keys
    retriever = keys.key_retriever if isinstance(keys, FileDecryption) else None
    if retriever is None:
        raise EncryptionError("writing to an encrypted store requires its keys by label: pass decryption={label: key}")
    return {label: retriever(label.encode()) for label in {labels.footer_key, *labels.labels()}}
