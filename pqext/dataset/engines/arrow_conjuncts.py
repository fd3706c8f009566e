"""The parts of a condition of pyarrow that ``and`` joins.

An expression of pyarrow has no public parts, but it can be pickled: as a batch of its literals whose schema has the
calls and columns in its metadata, one after the other.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

Items = list[tuple[str, str]]
"""Calls with their ends, columns, literals and options by their places in the batch."""
_AND = ("call", "and_kleene")
_HEADER, _METADATA = 2, 2
"""Places of fields: the schema in its message, the metadata in the schema."""


def conjuncts(condition: pc.Expression) -> list[pc.Expression]:
    """The conditions that are all true wherever ``condition`` is: itself alone where it has no parts."""
    try:
        make, (stored,) = condition.__reduce__()
        with pa.ipc.open_file(stored) as file:
            batch = file.get_batch(0)
        items = _items(batch.schema)
        if items[0] != _AND or not make(_stored(batch, items)).equals(condition):
            return [condition]
        return [make(_stored(batch, items[part.start : part.stop])) for part in _joined(items)]
    except (pa.ArrowException, ValueError, TypeError, IndexError, struct.error):  # of another version of pyarrow
        return [condition]


def _joined(items: Items) -> list[range]:
    """Where the parts stand that are joined, however deep."""
    found: list[range] = []
    opened: list[bool] = []
    at = 0
    while at < len(items):
        if all(opened) and items[at] == _AND:
            opened.append(True)
        elif all(opened) and items[at][0] == "end":
            opened.pop()
        else:
            stop = _stop(items, at)
            found.append(range(at, stop))
            at = stop
            continue
        at += 1
    return found


def _stop(items: Items, at: int) -> int:
    """Where the argument ends that begins at ``at``."""
    kind, value = items[at]
    if kind == "nested_field_ref":
        return at + 1 + int(value)
    depth = 0
    while True:
        depth += (items[at][0] == "call") - (items[at][0] == "end")
        at += 1
        if not depth:
            return at


def _stored(batch: pa.RecordBatch, items: Sequence[tuple[str, str]]) -> pa.Buffer:
    """``batch`` with other calls, as pyarrow stores it."""
    changed = batch.replace_schema_metadata(pa.KeyValueMetadata(items))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, changed.schema) as file:
        file.write_batch(changed)
    return sink.getvalue()


def _items(schema: pa.Schema) -> Items:
    """The metadata of a schema with keys that stand in it several times, which Python's mapping has once."""
    data = schema.serialize().to_pybytes()[8:]  # behind a mark and the length of the message

    def number(at: int, form: str = "<I") -> int:
        return int(struct.unpack_from(form, data, at)[0])

    def to(at: int) -> int:
        return at + number(at)

    def field(table: int, place: int) -> int:
        offsets = table - number(table, "<i")
        return table + number(offsets + 4 + 2 * place, "<H")

    def text(at: int) -> str:
        return bytes(data[at + 4 : at + 4 + number(at)]).decode()

    pairs = to(field(to(field(to(0), _HEADER)), _METADATA))
    tables = [to(pairs + 4 + 4 * one) for one in range(number(pairs))]
    return [(text(to(field(table, 0))), text(to(field(table, 1)))) for table in tables]
