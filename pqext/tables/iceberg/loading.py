"""Load Iceberg tables with ``pyiceberg``: from a catalog, or from a metadata file.

``pyiceberg`` rejects schemas with the type VARIANT. In a metadata file, each VARIANT column is therefore replaced by a
struct with new field ids, and the field ids of the VARIANT columns are returned.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from pqext.core.base.errors import CorruptFileError, SourceError, UnsupportedError
from pqext.core.io.sources.store_errors import redact_uri
from pqext.tables.error_texts import error_reason

if TYPE_CHECKING:
    from pyiceberg.table import Table

VERSIONS = (1, 2, 3)
"""Supported format versions."""
_METADATA = re.compile(r"v?(\d+)(?:-.*)?(?:\.gz)?\.metadata\.json(?:\.gz)?")


def load_table(source: Any, storage_options: Mapping[str, Any] | None) -> tuple[Table, frozenset[int]]:
    """Load a table, and return it with the field ids of its VARIANT columns.

    ``source`` is a ``pyiceberg`` table, ``CATALOG.NAMESPACE.TABLE``, or the path or URL of a metadata file or a table
    folder.

    Raises:
        ImportError: If pyiceberg is not installed.
        FileNotFoundError: If the table does not exist.
        SourceError: If the store cannot be reached or denies access.
        UnsupportedError: If the format version is not supported, or a table in a catalog has a VARIANT column.
        CorruptFileError: If the metadata is not valid.
        ValueError: If the name has no namespace, or pyiceberg's configuration does not contain the catalog.
    """
    try:
        import pyiceberg.table
    except ImportError:
        raise ImportError("Iceberg tables need pyiceberg: pip install 'pqext[iceberg]'") from None
    if isinstance(source, pyiceberg.table.Table):
        return source, frozenset()
    if "/" in source or os.sep in source or source.endswith(".json") or os.path.isdir(source):
        return _load_metadata(source, storage_options)
    return _load_from_catalog(source, storage_options), frozenset()


def _load_from_catalog(source: str, storage_options: Mapping[str, Any] | None) -> Table:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, NotInstalledError
    from pyiceberg.exceptions import ValidationError as IcebergValidationError

    catalog, _, identifier = source.partition(".")
    if not catalog or "." not in identifier:
        raise ValueError(
            f"iceberg:{source} must be iceberg:CATALOG.NAMESPACE.TABLE, or the path of a metadata file or table folder"
        )
    try:
        return load_catalog(catalog, **_properties(storage_options)).load_table(tuple(identifier.split(".")))
    except (NoSuchTableError, NoSuchNamespaceError):
        raise FileNotFoundError(f"iceberg:{source} does not exist in the catalog") from None
    except FileNotFoundError as error:
        reason = error_reason(error, storage_options)
        raise FileNotFoundError(f"a file of iceberg:{source} is missing: {reason}") from None
    except (ImportError, NotInstalledError) as error:
        reason = error_reason(error, storage_options)
        raise ImportError(f"the catalog of iceberg:{source} needs a package that is not installed: {reason}") from None
    except (ValueError, IcebergValidationError) as error:  # pydantic's errors are ValueErrors
        text = error_reason(error, storage_options)
        if "'variant'" in text:
            raise UnsupportedError(
                "pyiceberg cannot load tables with VARIANT columns from a catalog; pass the metadata file, as in "
                "'iceberg:PATH/TO/v1.metadata.json'",
                feature="VARIANT in Iceberg catalogs", path=f"iceberg:{source}",
            ) from None
        if type(error) is ValueError:
            raise ValueError(f"iceberg:{source} cannot be loaded: {text}") from None
        raise CorruptFileError(f"the table cannot be loaded: {text}", path=f"iceberg:{source}") from None
    except Exception as error:  # catalogs raise the errors of their HTTP, SQL and Thrift libraries
        raise SourceError(
            f"the catalog {catalog!r} cannot be read: {error_reason(error, storage_options)}", path=f"iceberg:{source}"
        ) from None


def _load_metadata(source: str, storage_options: Mapping[str, Any] | None) -> tuple[Table, frozenset[int]]:
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.exceptions import ValidationError as IcebergValidationError
    from pyiceberg.io import load_file_io
    from pyiceberg.table import StaticTable
    from pyiceberg.table.metadata import TableMetadataUtil

    properties = _properties(storage_options)
    name = f"iceberg:{redact_uri(source)}"

    def read(path: str) -> bytes:
        try:
            with load_file_io(properties, path).new_input(path).open() as file:
                return bytes(file.read())
        except FileNotFoundError:
            raise
        except (OSError, ValueError) as error:
            reason = error_reason(error, [source, storage_options])
            raise SourceError(f"cannot read {name}: {reason}", path=redact_uri(path)) from None

    location = _find_metadata(source, name, read)
    try:
        data = read(location)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"the metadata file {redact_uri(location)} of {name} does not exist; pass the path of an existing "
            "metadata file"
        ) from None
    try:
        metadata = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        version = metadata["format-version"]
        if version in VERSIONS:
            variants = replace_variants(metadata)
            parsed = TableMetadataUtil.parse_obj(metadata)
    except (
        ValueError, KeyError, TypeError, AttributeError, OSError, EOFError, RecursionError, IcebergValidationError,
    ) as error:
        reason = error_reason(error, storage_options)
        raise CorruptFileError(f"the table metadata is not valid: {reason}", path=redact_uri(location)) from None
    if version not in VERSIONS:
        raise UnsupportedError(
            f"{name} has format version {version!r}; versions up to 3 are supported", feature="Iceberg format version",
            path=redact_uri(location),
        )
    table = StaticTable(
        ("static-table", location), parsed, location, load_file_io({**properties, **parsed.properties}, location),
        NoopCatalog("static-table"),
    )
    return table, variants


def _properties(storage_options: Mapping[str, Any] | None) -> dict[str, str]:
    return {str(key): str(value) for key, value in (storage_options or {}).items()}


def _find_metadata(source: str, name: str, read: Callable[[str], bytes]) -> str:
    """Return the path of the current metadata file in a table folder. If ``source`` is a file, return ``source``."""
    if source.endswith((".json", ".json.gz")):
        return source
    folder = source.rstrip("/") + "/metadata"
    try:
        hint = read(f"{folder}/version-hint.text").decode().strip()
    except (FileNotFoundError, UnicodeDecodeError):
        local = folder.removeprefix("file://")
        names = os.listdir(local) if os.path.isdir(local) else []
        versions = [(int(match[1]), name) for name in names if (match := _METADATA.fullmatch(name)) is not None]
        if not versions:
            raise FileNotFoundError(f"{name} has no Iceberg metadata; pass the path of a metadata file") from None
        return f"{folder}/{max(versions)[1]}"
    if hint.endswith(".json"):
        return f"{folder}/{hint}"
    return f"{folder}/v{hint}.metadata.json" if hint.isdecimal() else f"{folder}/{hint}.metadata.json"


def replace_variants(metadata: dict[str, Any]) -> frozenset[int]:
    """Replace VARIANT types in table metadata by structs, and return the field ids of the VARIANT columns."""
    ids = count(int(metadata.get("last-column-id", 0)) + 1)
    structs: dict[int, dict[str, Any]] = {}
    schemas = [*metadata.get("schemas", ()), *([metadata["schema"]] if "schema" in metadata else ())]
    for parent, key, field_id in (entry for schema in schemas for entry in _types(schema)):
        if parent[key] == "variant":
            if field_id not in structs:
                structs[field_id] = _variant_struct(ids)
            parent[key] = structs[field_id]
    if structs:
        metadata["last-column-id"] = next(ids) - 1
    return frozenset(structs)


def _types(type: Any) -> Iterator[tuple[dict[str, Any], str, int]]:
    """Yield the JSON object that contains each nested type, the key of the type in the object, and the field id."""
    if not isinstance(type, dict):
        return
    entries = [(field, "type", field["id"]) for field in type.get("fields", ())]
    entries += [(type, part, type[f"{part}-id"]) for part in ("element", "key", "value") if f"{part}-id" in type]
    for parent, key, field_id in entries:
        yield parent, key, field_id
        yield from _types(parent[key])


def _variant_struct(ids: Iterator[int]) -> dict[str, Any]:
    members = [{"id": next(ids), "name": name, "required": True, "type": "binary"} for name in ("metadata", "value")]
    return {"type": "struct", "fields": members}
