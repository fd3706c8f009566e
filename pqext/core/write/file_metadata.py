"""Key-value metadata that the handlers of a file's columns write, such as GeoParquet's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pqext.core.encryption.writing import FileEncryptor
from pqext.core.format.metadata import RowGroup, Type
from pqext.core.options.read_write import WriteOptions
from pqext.core.schema.annotations import Annotation, DescribesFile, WrittenColumn
from pqext.core.schema.nodes import Schema
from pqext.core.write.storage import StoredField


def pairs(
    schema: Schema, fields: Sequence[StoredField], row_groups: Sequence[RowGroup], derived: Mapping[str, str],
    encryptor: FileEncryptor | None, options: WriteOptions,
) -> dict[str, str]:
    """What is told of the top-level columns ``fields`` of ``schema``; ``derived`` gives derived columns' sources.

    Raises ``ValueError`` where an option asks for what the columns do not allow.
    """
    columns: dict[str, tuple[Annotation, list[WrittenColumn]]] = {}
    names = {source: name for name, source in derived.items()}
    for node, field in zip(schema.root.children, fields, strict=True):
        if field.annotation is None or field.storage is None:
            continue
        leaf = node.leaf_start
        column = WrittenColumn(
            node=node,
            storage=field.storage,
            chunks=[about for group in row_groups if (about := group.columns[leaf].meta_data) is not None],
            encrypted=encryptor is not None and encryptor.hides(leaf),
            derived=names.get(node.name),
        )
        columns.setdefault(field.annotation.handler, (field.annotation, []))[1].append(column)
    found: dict[str, str] = {}
    for annotation, told in columns.values():
        handler = annotation.load()
        if isinstance(handler, DescribesFile):
            found |= handler.key_value_metadata(told, options)
    if options.geoparquet and not found:
        tops = schema.root.children
        plain = (node.name for node in tops if node.physical_type == Type.BYTE_ARRAY and node.logical_type is None)
        name = next(plain, "at")
        raise ValueError(
            "geoparquet needs a geometry column at the top level; name the column of WKB in the option geometry, "
            f'such as geometry={{"{name}": "OGC:CRS84"}}'
        )
    return found
