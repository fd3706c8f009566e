"""Metadata of a store: a schema in Spark's format with metadata for each column.

The layout depends on the version of the store. The version, the table and the encryption are stored at the column
``obj_name``, each index at its own column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.skipping.format import spark_schema
from pqext.skipping.format.names import LATEST, OBJECT_NAME, PARTITION_PREFIX, index_column, partition_column
from pqext.skipping.format.spark_schema import SparkField

PREFIX = "io.xskipper."
"""Prefix of parameter names."""
OLD_PREFIX = "spark.ibm.metaindex."
"""Prefix before version 3; it is replaced by the current prefix on reading."""
OLDEST_USABLE = 1

_BLOOM = "metadatastore.parquet.ParquetBaseClauseTranslator$BloomFilterMetaDataTypeUDT"
_BLOOM_TYPES = {False: f"io.xskipper.{_BLOOM}", True: f"com.ibm.metaindex.metadata.{_BLOOM}"}
"""User-defined type of a Bloom filter's column, by whether the store is older than version 3."""


@dataclass(frozen=True, slots=True)
class IndexColumn:
    """Store column ``name``, which contains the entries of an index of type ``index`` on ``columns``.

    The key labelled ``key`` encrypts it. ``params`` are its parameters under the names of version 4, such as
    ``io.xskipper.index.bloom.fpp``.
    """

    name: str
    index: str
    columns: tuple[str, ...]
    params: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", MappingProxyType(dict(self.params)))

    @classmethod
    def create(
        cls, index: str, columns: Sequence[str], params: Mapping[str, str] | None = None, key: str | None = None
    ) -> IndexColumn:
        """Return an index of a store of the latest version, with the derived column name."""
        return cls(index_column(columns, index), index, tuple(columns), params or {}, key)

    def __hash__(self) -> int:
        return hash((self.name, self.index, self.columns, self.key))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.index, self.columns, dict(self.params), self.key)


@dataclass(frozen=True, slots=True)
class StoreEncryption:
    """Key labels of an encrypted store.

    ``column_keys`` has the format of key tools, ``label:column,column;label:column``. The key labelled ``footer_key``
    encrypts ``obj_name`` and the footer. With ``plaintext_footer``, this key signs the footer instead.
    """

    column_keys: str
    footer_key: str
    plaintext_footer: bool = False

    def labels(self) -> dict[str, list[str]]:
        """Parse ``column_keys``. Return the columns that each key encrypts, by key label.

        Columns are dotted paths of leaves, or of groups for all leaves below them. Raises ``CorruptFileError`` if
        ``column_keys`` is malformed.
        """
        result: dict[str, list[str]] = {}
        for part in filter(None, (part.strip() for part in self.column_keys.split(";"))):
            label, colon, columns = part.partition(":")
            names = [name.strip() for name in columns.split(",")]
            if not colon or not label.strip() or not all(names):
                raise CorruptFileError(f"the list of column keys contains {part!r} instead of 'label:column,column'")
            result.setdefault(label.strip(), []).extend(names)
        return result


@dataclass(frozen=True, slots=True)
class StoreMetadata:
    """Metadata of a store: version, table, keys, partition columns and indexes."""

    version: int | None = LATEST
    """None if the store does not state a version."""
    table_identifier: str | None = None
    encryption: StoreEncryption | None = None
    partitions: tuple[str, ...] = ()
    indexes: tuple[IndexColumn, ...] = ()

    @property
    def reason(self) -> str | None:
        """Reason why queries cannot use this store; None if the store is usable."""
        if self.version is None or self.version < OLDEST_USABLE:
            version = "has no version" if self.version is None else f"has version {self.version}"
            return f"the store {version}, whose serialised indexes are not supported: build it again"
        if self.version > LATEST:
            return f"store version {self.version} is not supported, the latest is {LATEST}: update pqext"
        return None

    @property
    def is_usable(self) -> bool:
        """Whether queries can use this store to skip objects."""
        return self.reason is None

    def with_key_list(self, schema: pa.Schema) -> StoreMetadata:
        """Return a copy whose ``column_keys`` are derived from the keys of the indexes.

        Raises ``ValueError`` if an index has a key and the store has no footer key, if no index of a store with a
        footer key has a key, or if a label or a column contains a delimiter.
        """
        encrypted = [column for column in self.indexes if column.key is not None]
        if self.encryption is None:
            if encrypted:
                name = encrypted[0].name
                raise ValueError(f"the index column {name!r} has a key, but the store has no footer key: set it")
            return self
        if not encrypted and self.indexes:
            raise ValueError(
                "the store has a footer key, but no index has a key: set a key for an index, or remove the encryption"
            )
        paths_by_label: dict[str, list[str]] = {}
        for column in encrypted:
            paths_by_label.setdefault(column.key or "", []).extend(_leaves(schema.field(column.name)))
        own = [OBJECT_NAME, *map(partition_column, self.partitions)]
        paths_by_label.setdefault(self.encryption.footer_key, []).extend(own)
        for name in (*paths_by_label, *(path for paths in paths_by_label.values() for path in paths)):
            if not name or any(character in name for character in ":;,"):
                raise ValueError(f"{name!r} cannot be in a list of column keys, which is delimited by ':', ';' and ','")
        text = ";".join(f"{label}:{','.join(paths)}" for label, paths in paths_by_label.items())
        return replace(self, encryption=replace(self.encryption, column_keys=text))

def from_spark(fields: Sequence[SparkField], path: str | None = None) -> StoreMetadata:
    """Parse the metadata of a part. Invalid indexes are omitted if pqext does not support the later version.

    Raises ``CorruptFileError``, with the part's ``path``, for other invalid metadata.
    """
    by_name = {field.name: field for field in fields}
    if len(by_name) < len(fields):
        names = [field.name for field in fields]
        name = next(name for name in by_name if names.count(name) > 1)
        raise CorruptFileError(f"the store has two columns with the same name {name!r:.100}", path=path)
    about = by_name.get(OBJECT_NAME)
    if about is None:
        raise CorruptFileError(f"not a part of a data-skipping store: column {OBJECT_NAME!r} is missing", path=path)
    if about.type != "string":
        reason = f"object names must be strings, not {about.type!r:.100}"
        raise CorruptFileError(reason, path=path, column=OBJECT_NAME)
    version = about.metadata.get("version")
    if version is not None and (type(version) is not int or version < 0):
        raise CorruptFileError(f"the store version {version!r:.40} is not a natural number", path=path)
    indexes, identifiers = [], []
    for column in fields:
        if "index" in column.metadata:
            try:
                indexes.append(_parse_index(column, version or 0, path))
            except CorruptFileError:
                if (version or 0) <= LATEST:
                    raise
                continue
            identifiers.append(column.metadata["index"].get("tableIdentifier"))
    return StoreMetadata(
        version,
        _parse_identifier(about, identifiers if not version else [], path),
        _parse_encryption(about, indexes, path),
        tuple(_iter_partition_names(fields) if (version or 0) >= 4 else ()),
        tuple(indexes),
    )


def _parse_index(field: SparkField, version: int, path: str | None) -> IndexColumn:
    about = _require_mapping(field.metadata["index"], "index", field.name, path)
    columns = about.get("cols")
    if not isinstance(columns, list) or not columns or not all(isinstance(column, str) for column in columns):
        raise _metadata_error("'cols' is not a list of columns", field.name, path)
    index = _require_string(about, "name", field.name, path)
    key = _require_string(about, "key_metadata", field.name, path) if "key_metadata" in about else None
    params = dict(_parse_params(about["params"], version, field.name, path)) if "params" in about else {}
    return IndexColumn(field.name, index, tuple(columns), params, key)


def _parse_params(params: Any, version: int, column: str, path: str | None) -> Iterator[tuple[str, str]]:
    if version < 3:
        if not isinstance(params, list) or not all(isinstance(pair, str) and ":" in pair for pair in params):
            raise _metadata_error("'params' is not a list of strings 'key:value'", column, path)
        pairs = [tuple(pair.split(":", 1)) for pair in params]
    else:
        pairs = list(_require_mapping(params, "params", column, path).items())
    for key, value in pairs:
        if not isinstance(value, str):
            raise _metadata_error(f"the parameter {key!r} is not a string", column, path)
        yield (PREFIX + key.removeprefix(OLD_PREFIX) if key.startswith(OLD_PREFIX) else key), value


def _parse_identifier(field: SparkField, index_identifiers: Sequence[Any], path: str | None) -> str | None:
    identifiers = {identifier for identifier in index_identifiers if isinstance(identifier, str)}
    if len(identifiers) > 1:
        raise CorruptFileError(f"the indexes of a part belong to several tables: {sorted(identifiers)}", path=path)
    if "tableIdentifier" in field.metadata:
        is_bucket = field.metadata["tableIdentifier"] == ""
        return "" if is_bucket else _require_string(field.metadata, "tableIdentifier", OBJECT_NAME, path)
    if field.metadata.get("version"):
        raise _metadata_error("'tableIdentifier', the table of the store, is missing", OBJECT_NAME, path)
    return identifiers.pop() if identifiers else None


def _parse_encryption(field: SparkField, indexes: Sequence[IndexColumn], path: str | None) -> StoreEncryption | None:
    if "encryption" not in field.metadata:
        return None
    stored = _require_mapping(field.metadata["encryption"], "encryption", OBJECT_NAME, path)
    flag = stored.get("encryption.plaintext.footer", "false")
    if not isinstance(flag, str) or flag.lower() not in ("true", "false"):
        reason = f"'encryption.plaintext.footer' is {flag!r:.40}, neither 'true' nor 'false'"
        raise _metadata_error(reason, OBJECT_NAME, path)
    encryption = StoreEncryption(
        _require_string(stored, "encryption.column.keys", OBJECT_NAME, path),
        _require_string(stored, "encryption.footer.key", OBJECT_NAME, path),
        flag.lower() == "true",
    )
    try:
        labels = encryption.labels()
    except CorruptFileError as error:
        error.locate(path=path)
        raise
    for index in indexes:
        if index.key is not None and not any(_is_below(column, index.name) for column in labels.get(index.key, ())):
            reason = f"the list of column keys does not assign {index.key!r:.100} of 'key_metadata' to this column"
            raise _metadata_error(reason, index.name, path)
    return encryption


def _iter_partition_names(fields: Sequence[SparkField]) -> Iterator[str]:
    for column in fields:
        if column.name.startswith(PARTITION_PREFIX) and "index" not in column.metadata:
            yield column.name.removeprefix(PARTITION_PREFIX)


def to_spark(metadata: StoreMetadata, schema: pa.Schema, spark_compatible: bool = True) -> list[SparkField]:
    """Return the Spark columns of a part, in order. The store's version, 1 to 4, determines the layout.

    Entries of types that Spark lacks are declared as binary if ``spark_compatible`` is false. Raises ``ValueError`` for
    another version, ``KeyError`` if ``schema`` lacks a column, and ``UnsupportedError`` for types that Spark lacks if
    ``spark_compatible`` is true.
    """
    version = metadata.version
    if version is None or not metadata.is_usable:
        raise ValueError(f"store version {version} cannot be written; use a version from 1 to {LATEST}")
    about: dict[str, Any] = {"tableIdentifier": metadata.table_identifier, "version": version}
    if metadata.encryption is not None:
        about["encryption"] = {
            "encryption.column.keys": metadata.encryption.column_keys,
            "encryption.footer.key": metadata.encryption.footer_key,
            **({"encryption.plaintext.footer": "true"} if metadata.encryption.plaintext_footer else {}),
        }
    partitions = map(partition_column, metadata.partitions) if version >= 4 else ()
    return [
        SparkField(OBJECT_NAME, "string", True, about),
        *(SparkField(name, spark_schema.spark_type(schema.field(name).type, name)) for name in partitions),
        *(_index_field(column, version, schema, spark_compatible) for column in metadata.indexes),
    ]


def _index_field(column: IndexColumn, version: int, schema: pa.Schema, spark_compatible: bool) -> SparkField:
    about: dict[str, Any] = {"cols": list(column.columns), "name": column.index}
    if column.key is not None:
        about["key_metadata"] = column.key
    if column.params and version < 3:
        old = [(OLD_PREFIX + key.removeprefix(PREFIX) if key.startswith(PREFIX) else key) for key in column.params]
        about["params"] = [f"{key}:{value}" for key, value in zip(old, column.params.values(), strict=True)]
    elif column.params:
        about["params"] = dict(column.params)
    type: Any = {"type": "udt", "class": _BLOOM_TYPES[version < 3], "pyClass": None, "sqlType": "binary"}
    if column.index != "bloomfilter":
        try:
            type = spark_schema.spark_type(schema.field(column.name).type, column.name)
        except UnsupportedError:
            if spark_compatible:
                raise
            type = "binary"
    return SparkField(column.name, type, True, {"index": about})


def merge_metadata(parts: Sequence[tuple[str | None, StoreMetadata]]) -> StoreMetadata:
    """Merge the metadata of a store's parts. ``parts`` contains pairs of path and metadata.

    The result has the partition columns and indexes of all parts. Raises ``CorruptFileError`` if two parts are
    inconsistent: the message names the first part, and the error has the path of the second.
    """
    first_path, first = parts[0]
    partitions = dict.fromkeys(first.partitions)
    indexes = {column.name: (column, first_path) for column in first.indexes}
    encryption, encrypted_by = first.encryption, first_path
    for path, part in parts[1:]:
        for label, first_value, second_value in (
            ("version", first.version, part.version),
            ("table", first.table_identifier, part.table_identifier),
        ):
            if first_value != second_value:
                raise _conflict_error(label, first_value, first_path, second_value, path)
        if part.encryption is not None:
            if encryption is None:
                encryption, encrypted_by = part.encryption, path
            for label, ours, others in (
                ("footer key", encryption.footer_key, part.encryption.footer_key),
                ("plaintext footer", encryption.plaintext_footer, part.encryption.plaintext_footer),
            ):
                if ours != others:
                    raise _conflict_error(label, ours, encrypted_by, others, path)
            encryption = replace(encryption, column_keys=_merge_keys(encryption, part.encryption))
        partitions |= dict.fromkeys(part.partitions)
        for column in part.indexes:
            known, known_path = indexes.setdefault(column.name, (column, path))
            if (known.index, known.columns, known.key) != (column.index, column.columns, column.key):
                label = f"column {column.name!r}"
                raise _conflict_error(label, _describe_index(known), known_path, _describe_index(column), path)
            if known.params != column.params:  # all parts must agree on a parameter
                common = {key: value for key, value in known.params.items() if column.params.get(key) == value}
                indexes[column.name] = replace(known, params=common), known_path
    merged_indexes = tuple(column for column, _ in indexes.values())
    return StoreMetadata(first.version, first.table_identifier, encryption, tuple(partitions), merged_indexes)


def _merge_keys(first: StoreEncryption, other: StoreEncryption) -> str:
    """Merge the column keys of two parts by label, and return them in the format of ``column_keys``."""
    if first.column_keys == other.column_keys:
        return first.column_keys
    paths_by_label = first.labels()
    for label, columns in other.labels().items():
        paths_by_label[label] = list(dict.fromkeys([*paths_by_label.get(label, ()), *columns]))
    return ";".join(f"{label}:{','.join(columns)}" for label, columns in paths_by_label.items())


def _describe_index(column: IndexColumn) -> str:
    key = "no key" if column.key is None else f"the key {column.key!r}"
    return f"{column.index} of {', '.join(column.columns)} with {key}"


def _conflict_error(
    label: str, first_value: object, first_path: str | None, second_value: object, second_path: str | None
) -> CorruptFileError:
    values = f"{label} {first_value!r} in {first_path}, but {second_value!r} in this part"
    message = f"the parts of the store contradict each other: {values}"
    return CorruptFileError(message, path=second_path)


def _leaves(field: pa.Field) -> list[str]:
    """Return the dotted paths of all leaves in a column."""
    type = field.type
    if pa.types.is_struct(type):
        below = [leaf for at in range(type.num_fields) for leaf in _leaves(type.field(at))]
    elif pa.types.is_list(type) or pa.types.is_large_list(type):
        below = [f"list.{leaf}" for leaf in _leaves(type.value_field.with_name("element"))]
    else:
        return [str(field.name)]
    return [f"{field.name}.{leaf}" for leaf in below]


def _is_below(path: str, column: str) -> bool:
    """Return whether ``path`` equals ``column`` or is a path within ``column``."""
    return path == column or path.startswith(column + ".")


def _require_mapping(value: Any, label: str, column: str, path: str | None) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _metadata_error(f"{label!r} is not an object", column, path)
    return value


def _require_string(members: Mapping[str, Any], key: str, column: str, path: str | None) -> str:
    value = members.get(key)
    if not isinstance(value, str) or not value:
        raise _metadata_error(f"{key!r} is not a string", column, path)
    return value


def _metadata_error(reason: str, column: str, path: str | None) -> CorruptFileError:
    return CorruptFileError(f"invalid metadata of a store column: {reason}", path=path, column=column)
