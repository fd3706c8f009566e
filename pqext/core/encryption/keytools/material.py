"""Key material: JSON that records how a data key was wrapped, in the format of parquet-java and Arrow.

Internal key material is the key metadata in the Parquet file. External key material is in a JSON file next to the
Parquet file, ``_KEY_MATERIAL_FOR_<its name>.json``, and the key metadata only refers to it: master keys can then be
rotated without writing the Parquet file again.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pyarrow import fs

from pqext.core.base.errors import EncryptionError

MATERIAL_TYPE = "PKMT1"
FOOTER_KEY = "footerKey"
COLUMN_KEY_PREFIX = "columnKey"
PREFIX = "_KEY_MATERIAL_FOR_"
TEMPORARY_PREFIX = "_TMP"
SUFFIX = ".json"
MATERIAL_BYTES_MAX = 64 << 20


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    """A wrapped data encryption key (DEK).

    With double wrapping, a key encryption key (KEK) wraps the DEK and the master key wraps the KEK. Otherwise, the
    master key wraps the DEK, and ``kek_id`` and ``wrapped_kek`` are ``None``. Only the material of the footer key names
    the KMS instance.
    """

    is_footer_key: bool
    master_key_id: str
    wrapped_dek: str = field(repr=False)
    kms_instance_id: str | None = None
    kms_instance_url: str | None = None
    kek_id: str | None = None
    wrapped_kek: str | None = field(default=None, repr=False)

    def serialise(self, *, internal: bool) -> str:
        """Return the material as JSON. ``internal`` is true if the JSON is stored as key metadata in the Parquet file.
        """
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
        """Parse key material. Raises ``EncryptionError`` for other text, and for key material of an unknown type."""
        return cls.from_fields(_parse_material(text))

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> KeyMaterial:
        footer = _require_member(fields, "isFooterKey", bool)
        double = _require_member(fields, "doubleWrapping", bool)
        return cls(
            is_footer_key=footer,
            master_key_id=_require_member(fields, "masterKeyID", str),
            wrapped_dek=_require_member(fields, "wrappedDEK", str),
            kms_instance_id=_require_member(fields, "kmsInstanceID", str) if footer else None,
            kms_instance_url=_require_member(fields, "kmsInstanceURL", str) if footer else None,
            kek_id=_require_member(fields, "keyEncryptionKeyID", str) if double else None,
            wrapped_kek=_require_member(fields, "wrappedKEK", str) if double else None,
        )


def serialise_reference(reference: str) -> str:
    """Return key metadata that refers to external key material."""
    fields = {"keyMaterialType": MATERIAL_TYPE, "internalStorage": False, "keyReference": reference}
    return json.dumps(fields, separators=(",", ":"))


def parse_metadata(metadata: bytes) -> KeyMaterial | str:
    """Parse key metadata into the key material, or into the reference to external key material.

    Raises ``EncryptionError`` for metadata that the key tools did not write.
    """
    fields = _parse_material(metadata)
    if _require_member(fields, "internalStorage", bool):
        return KeyMaterial.from_fields(fields)
    return str(_require_member(fields, "keyReference", str))


def parse_store(text: bytes) -> dict[str, str]:
    """Parse a key material file; return the JSON of each key's material by reference."""
    fields = _parse_json(text)
    if not all(isinstance(value, str) for value in fields.values()):
        raise EncryptionError("the key material file must map key references to text")
    return fields


def _parse_json(text: str | bytes) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise EncryptionError("the key metadata is not JSON of Parquet key tools: pass the keys themselves, or a "
                              "key_retriever that understands this key metadata") from None
    if not isinstance(fields, dict):
        raise EncryptionError("the key metadata is JSON, but not key material of Parquet key tools; pass the keys, or "
                              "a key_retriever that understands this JSON")
    return fields


def _parse_material(text: str | bytes) -> dict[str, Any]:
    fields = _parse_json(text)
    kind = _require_member(fields, "keyMaterialType", str)
    if kind != MATERIAL_TYPE:
        raise EncryptionError(f"key material type {kind!r} is unknown; it must be {MATERIAL_TYPE}")
    return fields


def _require_member(fields: dict[str, Any], name: str, type_: type) -> Any:
    value = fields.get(name)
    if not isinstance(value, type_):
        raise EncryptionError(f"field {name} of the key material is missing or does not have type {type_.__name__}")
    return value


class KeyMaterialStore:
    """Key material of the Parquet file at ``path``, by reference."""

    def __init__(self, path: str, filesystem: fs.FileSystem | None = None) -> None:
        self._filesystem = filesystem if filesystem is not None else fs.LocalFileSystem()
        folder, name = posixpath.split(path.replace("\\", "/") if filesystem is None else path)
        self.path = posixpath.join(folder, f"{PREFIX}{name}{SUFFIX}")
        """Path of the key material file."""
        self._temporary = posixpath.join(folder, f"{TEMPORARY_PREFIX}{PREFIX}{name}{SUFFIX}")
        self._material: dict[str, str] = {}

    def exists(self) -> bool:
        """Return whether the key material file exists."""
        return bool(self._filesystem.get_file_info(self.path).type == fs.FileType.File)

    def load(self) -> KeyMaterialStore:
        """Read the material and return this store. Raises ``EncryptionError`` if it is missing or invalid."""
        info = self._filesystem.get_file_info(self.path)
        if info.type != fs.FileType.File:
            message = "the key material file is missing: restore it next to its Parquet file"
            raise EncryptionError(message, path=self.path)
        if info.size > MATERIAL_BYTES_MAX:
            message = f"the key material file has {info.size} bytes, more than {MATERIAL_BYTES_MAX}"
            raise EncryptionError(message, path=self.path)
        with self._filesystem.open_input_stream(self.path) as stream:
            data = stream.read()
        try:
            self._material = parse_store(data)
        except EncryptionError as error:
            error.locate(path=self.path)
            raise
        return self

    def add(self, reference: str, material: str) -> None:
        """Add the material of one key, to be written by :meth:`save`."""
        self._material[reference] = material

    def get(self, reference: str) -> str:
        """Return the material of one key. Raises ``EncryptionError`` if it is missing."""
        if reference not in self._material:
            raise EncryptionError(f"the key material file contains no reference {reference!r}", path=self.path)
        return self._material[reference]

    def references(self) -> Iterator[str]:
        """Return an iterator over all references in file order."""
        return iter(self._material)

    def save(self) -> None:
        """Write the material. It is stored completely, or not at all if writing fails."""
        try:
            with self._filesystem.open_output_stream(self._temporary) as stream:
                stream.write(json.dumps(self._material, separators=(",", ":")).encode())
            self._filesystem.move(self._temporary, self.path)
        except BaseException:
            with suppress(OSError):
                self._filesystem.delete_file(self._temporary)
            raise


def list_stores(folder: str, filesystem: fs.FileSystem | None = None) -> list[KeyMaterialStore]:
    """Return a store for each key material file in ``folder``, sorted by file name. The files are not read."""
    own = filesystem if filesystem is not None else fs.LocalFileSystem()
    names = sorted(info.base_name for info in own.get_file_info(fs.FileSelector(folder)))
    return [
        KeyMaterialStore(posixpath.join(folder, name[len(PREFIX) : -len(SUFFIX)]), filesystem)
        for name in names
        if name.startswith(PREFIX) and name.endswith(SUFFIX)
    ]
