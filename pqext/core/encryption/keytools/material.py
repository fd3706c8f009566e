"""Key material: the JSON that says how a data key was wrapped, in the form of parquet-java and Arrow.

Stored internally, the material is the key metadata in the Parquet file. Stored externally, the key metadata only
refers to it, and the material lies in a file beside (``store``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pqext.core.base.errors import EncryptionError

MATERIAL_TYPE = "PKMT1"
FOOTER_KEY = "footerKey"
COLUMN_KEY_PREFIX = "columnKey"


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    """How one data encryption key (DEK) is wrapped.

    In double wrapping the DEK is wrapped with a key encryption key (KEK) and the KEK with the master key; else the
    DEK is wrapped with the master key, and ``kek_id`` and ``wrapped_kek`` are ``None``. The KMS instance is known
    from the footer key's material only.
    """

    is_footer_key: bool
    master_key_id: str
    wrapped_dek: str = field(repr=False)
    kms_instance_id: str | None = None
    kms_instance_url: str | None = None
    kek_id: str | None = None
    wrapped_kek: str | None = field(default=None, repr=False)

    def serialise(self, *, internal: bool) -> str:
        """The material as JSON; ``internal`` when it is the key metadata itself."""
        fields: dict[str, Any] = {"keyMaterialType": MATERIAL_TYPE}
        if internal:
            fields["internalStorage"] = True
        fields["isFooterKey"] = self.is_footer_key
        if self.is_footer_key:
            fields["kmsInstanceID"] = self.kms_instance_id
            fields["kmsInstanceURL"] = self.kms_instance_url
        fields["masterKeyID"] = self.master_key_id
        fields["wrappedDEK"] = self.wrapped_dek
        fields["doubleWrapping"] = self.kek_id is not None
        if self.kek_id is not None:
            fields["keyEncryptionKeyID"] = self.kek_id
            fields["wrappedKEK"] = self.wrapped_kek
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str | bytes) -> KeyMaterial:
        """Raises ``EncryptionError`` for anything that is not key material of the known type."""
        return cls._of(_object(text))

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> KeyMaterial:
        footer = _member(fields, "isFooterKey", bool)
        double = _member(fields, "doubleWrapping", bool)
        return cls(
            is_footer_key=footer,
            master_key_id=_member(fields, "masterKeyID", str),
            wrapped_dek=_member(fields, "wrappedDEK", str),
            kms_instance_id=_member(fields, "kmsInstanceID", str) if footer else None,
            kms_instance_url=_member(fields, "kmsInstanceURL", str) if footer else None,
            kek_id=_member(fields, "keyEncryptionKeyID", str) if double else None,
            wrapped_kek=_member(fields, "wrappedKEK", str) if double else None,
        )


def serialise_reference(reference: str) -> str:
    """Key metadata that refers to external key material."""
    fields = {"keyMaterialType": MATERIAL_TYPE, "internalStorage": False, "keyReference": reference}
    return json.dumps(fields, separators=(",", ":"))


def parse_metadata(metadata: bytes) -> KeyMaterial | str:
    """Key metadata: the material itself, or the reference of external material.

    Raises ``EncryptionError`` for metadata that the key tools did not write.
    """
    fields = _object(metadata)
    if _member(fields, "internalStorage", bool):
        return KeyMaterial._of(fields)
    return str(_member(fields, "keyReference", str))


def parse_store(text: bytes) -> dict[str, str]:
    """The external key material of a file, by reference."""
    fields = _json(text)
    if not all(isinstance(value, str) for value in fields.values()):
        raise EncryptionError("a file of key material holds something else")
    return fields


def _json(text: str | bytes) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise EncryptionError("the key metadata is not the JSON of key tools: pass the keys themselves, or a "
                              "key_retriever that understands it") from None
    if not isinstance(fields, dict):
        raise EncryptionError("the key metadata is JSON, and not that of key tools")
    return fields


def _object(text: str | bytes) -> dict[str, Any]:
    fields = _json(text)
    kind = _member(fields, "keyMaterialType", str)
    if kind != MATERIAL_TYPE:
        raise EncryptionError(f"key material of type {kind!r} is not known, only {MATERIAL_TYPE}")
    return fields


def _member(fields: dict[str, Any], name: str, kind: type) -> Any:
    value = fields.get(name)
    if not isinstance(value, kind):
        raise EncryptionError(f"key material lacks its field {name}")
    return value
