"""What a store says of itself, in each version's form: Spark's schema with metadata for each column.

Spec: document 001. The version, the table and the encryption stand at ``obj_name``, each index at its own column.
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
"""How the names of parameters begin."""
OLD_PREFIX = "spark.ibm.metaindex."
"""How they begin before version 3; readers are shown the other form."""
OLDEST_USABLE = 1

_BLOOM = "metadatastore.parquet.ParquetBaseClauseTranslator$BloomFilterMetaDataTypeUDT"
_BLOOM_TYPES = {False: f"io.xskipper.{_BLOOM}", True: f"com.ibm.metaindex.metadata.{_BLOOM}"}
"""The user-defined type of a Bloom filter's column, by whether the store is older than version 3."""


@dataclass(frozen=True, slots=True)
class IndexColumn:
    """The column ``name`` of a store: the index called ``index`` over ``columns``, with the label of its ``key``.

    ``params`` has its parameters by the names of version 4, ``io.xskipper.index.bloom.fpp`` for example.
    """

    name: str
    index: str
    columns: tuple[str, ...]
    params: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", MappingProxyType(dict(self.params)))

    @classmethod
    def of(
        cls, index: str, columns: Sequence[str], params: Mapping[str, str] | None = None, key: str | None = None
    ) -> IndexColumn:
        """An index in a store of the latest version, whose column is named by the rules."""
        return cls(index_column(columns, index), index, tuple(columns), params or {}, key)

    def __hash__(self) -> int:
        return hash((self.name, self.index, self.columns, self.key))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.index, self.columns, dict(self.params), self.key)


@dataclass(frozen=True, slots=True)
class StoreEncryption:
    """Labels of keys: ``column_keys`` as key tools take them, ``label:column,column;label:column``.

    ``footer_key`` encrypts the footer and ``obj_name``; with ``plaintext_footer`` it signs the footer.
    """

    column_keys: str
    footer_key: str
    plaintext_footer: bool = False

    def labels(self) -> dict[str, list[str]]:
        """The columns of each key, as dotted paths of leaves, or of groups for all leaves below.

        Raises ``CorruptFileError`` for a list of another form.
        """
        found: dict[str, list[str]] = {}
        for part in filter(None, (one.strip() for one in self.column_keys.split(";"))):
            label, colon, columns = part.partition(":")
            named = [one.strip() for one in columns.split(",")]
            if not colon or not label.strip() or not all(named):
                raise CorruptFileError(f"the list of column keys has {part!r} where 'label:column,column' belongs")
            found.setdefault(label.strip(), []).extend(named)
        return found


@dataclass(frozen=True, slots=True)
class StoreMetadata:
    """What a store is: its version (``None`` without one), its table, its keys, its partition columns and indexes."""

    version: int | None = LATEST
    table_identifier: str | None = None
    encryption: StoreEncryption | None = None
    partitions: tuple[str, ...] = ()
    indexes: tuple[IndexColumn, ...] = ()

    @property
    def reason(self) -> str | None:
        """Why no object may be skipped by this store; None where some may."""
        if self.version is None or self.version < OLDEST_USABLE:
            told = "has no version" if self.version is None else f"is of version {self.version}"
            return f"the store {told}, whose indexes are serialised objects that are not read: build it anew"
        if self.version > LATEST:
            return f"the store is of version {self.version}, and {LATEST} is the latest that is known: update pqext"
        return None

    @property
    def is_usable(self) -> bool:
        """May objects be skipped by this store?"""
        return self.reason is None

    def with_key_list(self, schema: pa.Schema) -> StoreMetadata:
        """This with the list of column keys that follows from the keys of the indexes, for columns of ``schema``.

        Raises ``ValueError`` where an index has a key and the store has no footer key, or the other way round.
        """
        encrypted = [one for one in self.indexes if one.key is not None]
        if self.encryption is None:
            if encrypted:
                raise ValueError(f"the index column {encrypted[0].name!r} has a key, and the store no footer key")
            return self
        if not encrypted and self.indexes:
            raise ValueError("the store has a footer key, and no index a key: give one, or leave out the encryption")
        listed: dict[str, list[str]] = {}
        for one in encrypted:
            listed.setdefault(one.key or "", []).extend(_leaves(schema.field(one.name)))
        own = [OBJECT_NAME, *map(partition_column, self.partitions)]
        listed.setdefault(self.encryption.footer_key, []).extend(own)
        for name in (*listed, *(path for paths in listed.values() for path in paths)):
            if not name or any(character in name for character in ":;,"):
                raise ValueError(f"{name!r} cannot stand in a list of column keys, whose marks are ':', ';' and ','")
        text = ";".join(f"{label}:{','.join(paths)}" for label, paths in listed.items())
        return replace(self, encryption=replace(self.encryption, column_keys=text))


def from_spark(fields: Sequence[SparkField], path: str | None = None) -> StoreMetadata:
    """What the columns of one part say. Parts of later versions are read as far as they are understood.

    Raises ``CorruptFileError``, with the part's ``path``, where they contradict the rules.
    """
    by_name = {one.name: one for one in fields}
    if len(by_name) < len(fields):
        raise CorruptFileError("the store has two columns of one name", path=path)
    about = by_name.get(OBJECT_NAME)
    if about is None:
        raise CorruptFileError(f"no part of a data-skipping store: it has no column {OBJECT_NAME!r}", path=path)
    if about.type != "string":
        raise CorruptFileError("the names of objects are no strings", path=path, column=OBJECT_NAME)
    version = about.metadata.get("version")
    if version is not None and (type(version) is not int or version < 0):
        raise CorruptFileError(f"the version is {version!r:.40}, which is no natural number", path=path)
    indexes, identifiers = [], []
    for one in fields:
        if "index" in one.metadata:
            try:
                indexes.append(_index(one, version or 0, path))
            except CorruptFileError:
                if (version or 0) <= LATEST:
                    raise
                continue
            identifiers.append(one.metadata["index"].get("tableIdentifier"))
    return StoreMetadata(
        version,
        _identifier(about, identifiers if not version else [], path),
        _encryption(about, indexes, path),
        tuple(_partitions(fields) if (version or 0) >= 4 else ()),
        tuple(indexes),
    )


def _index(one: SparkField, version: int, path: str | None) -> IndexColumn:
    about = _mapping(one.metadata["index"], "index", one.name, path)
    columns = about.get("cols")
    if not isinstance(columns, list) or not columns or not all(isinstance(column, str) for column in columns):
        raise _wrong("'cols' lists no columns", one.name, path)
    index = _text(about, "name", one.name, path)
    key = _text(about, "key_metadata", one.name, path) if "key_metadata" in about else None
    params = dict(_params(about["params"], version, one.name, path)) if "params" in about else {}
    return IndexColumn(one.name, index, tuple(columns), params, key)


def _params(found: Any, version: int, column: str, path: str | None) -> Iterator[tuple[str, str]]:
    if version < 3:
        if not isinstance(found, list) or not all(isinstance(pair, str) and ":" in pair for pair in found):
            raise _wrong("'params' is no list of texts 'key:value'", column, path)
        pairs = [tuple(pair.split(":", 1)) for pair in found]
    else:
        pairs = list(_mapping(found, "params", column, path).items())
    for key, value in pairs:
        if not isinstance(value, str):
            raise _wrong(f"the parameter {key!r} is no text", column, path)
        yield (PREFIX + key.removeprefix(OLD_PREFIX) if key.startswith(OLD_PREFIX) else key), value


def _identifier(about: SparkField, of_indexes: Sequence[Any], path: str | None) -> str | None:
    given = {one for one in of_indexes if isinstance(one, str)}
    if len(given) > 1:
        raise CorruptFileError(f"the indexes of one part name several tables: {sorted(given)}", path=path)
    if "tableIdentifier" in about.metadata:
        is_bucket = about.metadata["tableIdentifier"] == ""
        return "" if is_bucket else _text(about.metadata, "tableIdentifier", OBJECT_NAME, path)
    if about.metadata.get("version"):
        raise _wrong("'tableIdentifier' is missing, the table that the store is of", OBJECT_NAME, path)
    return given.pop() if given else None


def _encryption(about: SparkField, indexes: Sequence[IndexColumn], path: str | None) -> StoreEncryption | None:
    if "encryption" not in about.metadata:
        return None
    told = _mapping(about.metadata["encryption"], "encryption", OBJECT_NAME, path)
    flag = told.get("encryption.plaintext.footer", "false")
    if not isinstance(flag, str) or flag.lower() not in ("true", "false"):
        raise _wrong("'encryption.plaintext.footer' is neither 'true' nor 'false'", OBJECT_NAME, path)
    found = StoreEncryption(
        _text(told, "encryption.column.keys", OBJECT_NAME, path),
        _text(told, "encryption.footer.key", OBJECT_NAME, path),
        flag.lower() == "true",
    )
    try:
        labels = found.labels()
    except CorruptFileError as error:
        error.locate(path=path)
        raise
    for one in indexes:
        if one.key is not None and not any(_is_below(column, one.name) for column in labels.get(one.key, ())):
            raise _wrong("'key_metadata' has a key that the list of column keys gives to other columns", one.name, path)
    return found


def _partitions(fields: Sequence[SparkField]) -> Iterator[str]:
    for one in fields:
        if one.name.startswith(PARTITION_PREFIX) and "index" not in one.metadata:
            yield one.name.removeprefix(PARTITION_PREFIX)


def to_spark(metadata: StoreMetadata, schema: pa.Schema, for_spark: bool = True) -> list[SparkField]:
    """The columns of a part in the form of the store's version, 1 to 4, in order; their types are those in ``schema``.

    Where the part is not ``for_spark``, cells of types that Spark lacks are told to be binary.
    Raises ``ValueError`` for another version, and ``KeyError`` for a column that ``schema`` does not have.
    """
    version = metadata.version
    if version is None or not metadata.is_usable:
        raise ValueError(f"stores of version {version} are not written")
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
        *(SparkField(name, spark_schema.type_of(schema.field(name).type, name)) for name in partitions),
        *(_index_field(one, version, schema, for_spark) for one in metadata.indexes),
    ]


def _index_field(one: IndexColumn, version: int, schema: pa.Schema, for_spark: bool) -> SparkField:
    about: dict[str, Any] = {"cols": list(one.columns), "name": one.index}
    if one.key is not None:
        about["key_metadata"] = one.key
    if one.params and version < 3:
        old = [(OLD_PREFIX + key.removeprefix(PREFIX) if key.startswith(PREFIX) else key) for key in one.params]
        about["params"] = [f"{key}:{value}" for key, value in zip(old, one.params.values(), strict=True)]
    elif one.params:
        about["params"] = dict(one.params)
    kind: Any = {"type": "udt", "class": _BLOOM_TYPES[version < 3], "pyClass": None, "sqlType": "binary"}
    if one.index != "bloomfilter":
        try:
            kind = spark_schema.type_of(schema.field(one.name).type, one.name)
        except UnsupportedError:
            if for_spark:
                raise
            kind = "binary"
    return SparkField(one.name, kind, True, {"index": about})


def merged(parts: Sequence[tuple[str | None, StoreMetadata]]) -> StoreMetadata:
    """What several parts, each with its path, say together: every partition column and index that one of them has.

    Raises ``CorruptFileError`` where two parts contradict each other; its message names the first, its path the second.
    """
    first_path, whole = parts[0]
    partitions = dict.fromkeys(whole.partitions)
    indexes = {one.name: (one, first_path) for one in whole.indexes}
    encryption, encrypted_by = whole.encryption, first_path
    for path, part in parts[1:]:
        for what, mine, theirs in (
            ("version", whole.version, part.version),
            ("table", whole.table_identifier, part.table_identifier),
        ):
            if mine != theirs:
                raise _conflict(what, mine, first_path, theirs, path)
        if part.encryption is not None:
            if encryption is None:
                encryption, encrypted_by = part.encryption, path
            for what, ours, others in (
                ("footer key", encryption.footer_key, part.encryption.footer_key),
                ("plaintext footer", encryption.plaintext_footer, part.encryption.plaintext_footer),
            ):
                if ours != others:
                    raise _conflict(what, ours, encrypted_by, others, path)
            encryption = replace(encryption, column_keys=_joined(encryption, part.encryption))
        partitions |= dict.fromkeys(part.partitions)
        for one in part.indexes:
            known, there = indexes.setdefault(one.name, (one, path))
            if (known.index, known.columns, known.key) != (one.index, one.columns, one.key):
                raise _conflict(f"column {one.name!r}", _told(known), there, _told(one), path)
            if known.params != one.params:  # a parameter tells of all cells, or of none
                both = {key: value for key, value in known.params.items() if one.params.get(key) == value}
                indexes[one.name] = replace(known, params=both), there
    listed = tuple(one for one, _ in indexes.values())
    return StoreMetadata(whole.version, whole.table_identifier, encryption, tuple(partitions), listed)


def _joined(one: StoreEncryption, other: StoreEncryption) -> str:
    """The columns of each key in either list."""
    if one.column_keys == other.column_keys:
        return one.column_keys
    listed = one.labels()
    for label, columns in other.labels().items():
        listed[label] = list(dict.fromkeys([*listed.get(label, ()), *columns]))
    return ";".join(f"{label}:{','.join(columns)}" for label, columns in listed.items())


def _told(one: IndexColumn) -> str:
    key = "no key" if one.key is None else f"the key {one.key!r}"
    return f"{one.index} of {', '.join(one.columns)} with {key}"


def _conflict(what: str, mine: object, first: str | None, theirs: object, second: str | None) -> CorruptFileError:
    message = f"the parts of the store contradict each other: {what} {mine!r} in {first}, but {theirs!r} here"
    return CorruptFileError(message, path=second)


def _leaves(field: pa.Field) -> list[str]:
    """The dotted paths of the leaves that a column is stored in."""
    kind = field.type
    if pa.types.is_struct(kind):
        below = [leaf for at in range(kind.num_fields) for leaf in _leaves(kind.field(at))]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        below = [f"list.{leaf}" for leaf in _leaves(kind.value_field.with_name("element"))]
    else:
        return [str(field.name)]
    return [f"{field.name}.{leaf}" for leaf in below]


def _is_below(path: str, column: str) -> bool:
    return path == column or path.startswith(column + ".")


def _mapping(found: Any, what: str, column: str, path: str | None) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise _wrong(f"{what!r} is no object", column, path)
    return found


def _text(about: Mapping[str, Any], key: str, column: str, path: str | None) -> str:
    found = about.get(key)
    if not isinstance(found, str) or not found:
        raise _wrong(f"{key!r} is no text", column, path)
    return found


def _wrong(reason: str, column: str, path: str | None) -> CorruptFileError:
    return CorruptFileError(f"the metadata of the store's column is wrong: {reason}", path=path, column=column)
