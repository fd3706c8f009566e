"""External key material: a JSON file beside the Parquet file, ``_KEY_MATERIAL_FOR_<its name>.json``.

Keeping the material outside lets master keys be rotated without touching the Parquet file.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from contextlib import suppress

from pyarrow import fs

from pqext.core.base.errors import EncryptionError
from pqext.core.encryption.keytools.material import parse_store

PREFIX = "_KEY_MATERIAL_FOR_"
TEMPORARY_PREFIX = "_TMP"
SUFFIX = ".json"
MATERIAL_BYTES_MAX = 64 << 20


class KeyMaterialStore:
    """The key material of one Parquet file, by reference. ``path`` is that of the Parquet file."""

    def __init__(self, path: str, filesystem: fs.FileSystem | None = None) -> None:
        self._filesystem = filesystem if filesystem is not None else fs.LocalFileSystem()
        folder, name = posixpath.split(path.replace("\\", "/") if filesystem is None else path)
        self.path = posixpath.join(folder, f"{PREFIX}{name}{SUFFIX}")
        """Where the material lies."""
        self._temporary = posixpath.join(folder, f"{TEMPORARY_PREFIX}{PREFIX}{name}{SUFFIX}")
        self._material: dict[str, str] = {}

    def exists(self) -> bool:
        """Is there key material for the file?"""
        return bool(self._filesystem.get_file_info(self.path).type == fs.FileType.File)

    def load(self) -> KeyMaterialStore:
        """Read the material. Raises ``EncryptionError`` when it is missing or damaged."""
        info = self._filesystem.get_file_info(self.path)
        if info.type != fs.FileType.File:
            raise EncryptionError("the keys' material is stored outside the file and is not there", path=self.path)
        if info.size > MATERIAL_BYTES_MAX:
            raise EncryptionError(f"a file of key material has {info.size} bytes", path=self.path)
        with self._filesystem.open_input_stream(self.path) as stream:
            data = stream.read()
        try:
            self._material = parse_store(data)
        except EncryptionError as error:
            error.locate(path=self.path)
            raise
        return self

    def add(self, reference: str, material: str) -> None:
        """Remember the material of one key."""
        self._material[reference] = material

    def get(self, reference: str) -> str:
        """The material of one key. Raises ``EncryptionError`` when there is none."""
        if reference not in self._material:
            raise EncryptionError(f"there is no key material for {reference!r}", path=self.path)
        return self._material[reference]

    def references(self) -> Iterator[str]:
        """All references, in the order of the file."""
        return iter(self._material)

    def save(self) -> None:
        """Write the material, which appears whole or not at all."""
        try:
            with self._filesystem.open_output_stream(self._temporary) as stream:
                stream.write(json.dumps(self._material, separators=(",", ":")).encode())
            self._filesystem.move(self._temporary, self.path)
        except BaseException:
            with suppress(OSError):
                self._filesystem.delete_file(self._temporary)
            raise


def stores_in(folder: str, filesystem: fs.FileSystem | None = None) -> list[KeyMaterialStore]:
    """The key material of all files in ``folder``, by name."""
    own = filesystem if filesystem is not None else fs.LocalFileSystem()
    names = sorted(info.base_name for info in own.get_file_info(fs.FileSelector(folder)))
    return [
        KeyMaterialStore(posixpath.join(folder, name[len(PREFIX) : -len(SUFFIX)]), filesystem)
        for name in names
        if name.startswith(PREFIX) and name.endswith(SUFFIX)
    ]
