"""What a footer says once and contradicts in other places: one bit of it is wrong, and the rows are there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy

from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.footer.checkpoints import ask_schema
from pqext.core.format.metadata import FileMetaData, RowGroup, SchemaElement, Type
from pqext.core.io.source import Source
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.nodes import SchemaNode
from pqext.recovery.claims import ClaimedGroup
from pqext.recovery.placing import lines, pages_of


def rows_of(group: RowGroup, leaves: Sequence[SchemaNode], more: int) -> int:
    """The rows of a row group: what all its columns without lists have, where it is said otherwise.

    A single column is believed where the rows of the file, of which there are so many ``more`` than in all row groups,
    say so too.
    """
    counts = [
        chunk.meta_data.num_values
        for leaf, chunk in zip(leaves, group.columns, strict=False)
        if not leaf.max_repetition_level and chunk.meta_data is not None
    ]
    if not counts or min(counts) != max(counts) or counts[0] <= 0:
        return group.num_rows
    return counts[0] if len(counts) > 1 or more == counts[0] - group.num_rows else group.num_rows


def correct_values(source: Source, group: ClaimedGroup, leaves: Sequence[SchemaNode], limits: Limits) -> list[str]:
    """Give chunks without lists as many values as there are rows, where their pages have so many; these leaves."""
    found = []
    for leaf, chunk in zip(leaves, group.chunks, strict=True):
        if chunk is None or leaf.max_repetition_level or chunk.num_values == group.rows:
            continue
        counted = copy(chunk)
        counted.num_values = group.rows
        if pages_of(source, counted, limits):
            chunk.num_values = group.rows
            found.append(leaf.dotted)
    return found


def correct_schema(metadata: FileMetaData, limits: Limits) -> list[str]:
    """Give schema elements names and physical types that all chunks of a column tell, of two row groups at least.

    Says which, and changes nothing where the schema would be none then.
    """
    schema = list(metadata.schema)
    told = list(_corrections(metadata, schema))
    try:
        ask_schema(from_elements(schema, limits))
    except ParquetError:
        return []
    metadata.schema = schema
    return told


def _corrections(metadata: FileMetaData, schema: list[SchemaElement]) -> Iterator[str]:
    of_leaves = lines(schema)
    groups = [group.columns for group in metadata.row_groups if len(group.columns) == len(of_leaves)]
    for leaf, line in enumerate(of_leaves) if len(groups) > 1 else ():
        abouts = [columns[leaf].meta_data for columns in groups]
        told = {None if about is None else (tuple(about.path_in_schema), about.type) for about in abouts}
        (found, *others) = told
        if found is None or others or len(found[0]) != len(line) - 1:
            continue
        element, kind = schema[line[-1]], found[1]
        if isinstance(kind, Type) and kind != element.type:
            said = getattr(element.type, "name", element.type)
            yield f"column {element.name}: the schema calls it {said}, and all its chunks {kind.name}"
            schema[line[-1]] = element = copy(element)
            element.type = kind
        for number, name in zip(line[1:], found[0], strict=True):
            if schema[number].name != name:
                yield f"column {schema[number].name}: all its chunks call it {name}"
                schema[number] = copy(schema[number])
                schema[number].name = name


def correct_path(group: ClaimedGroup, leaves: Sequence[SchemaNode]) -> str | None:
    """Give the only chunk of a row group that names another path than its column the path of that; this leaf.

    Where all chunks of a column do so, the schema is wrong: of a single row group nothing tells which it is.
    """
    others = [
        (leaf, chunk)
        for leaf, chunk in zip(leaves, group.chunks, strict=True)
        if chunk is not None and tuple(chunk.path_in_schema) != leaf.path
    ]
    if len(others) != 1 or len(leaves) == 1 or others[0][1].type != others[0][0].physical_type:
        return None
    ((leaf, chunk),) = others
    chunk.path_in_schema = list(leaf.path)
    return leaf.dotted
