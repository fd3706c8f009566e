"""Shredding schemas compiled for the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from pqext.variant.kernels.shredding import Kind, Leaf, ShreddingPlan
from pqext.variant.shredding.schema import UUID, Array, Object, Primitive, ShreddingSchema

_LEAVES: dict[pa.DataType, int] = {
    pa.bool_(): Leaf.LEAF_BOOLEAN,
    pa.int8(): Leaf.LEAF_INT8,
    pa.int16(): Leaf.LEAF_INT16,
    pa.int32(): Leaf.LEAF_INT32,
    pa.int64(): Leaf.LEAF_INT64,
    pa.float32(): Leaf.LEAF_FLOAT,
    pa.float64(): Leaf.LEAF_DOUBLE,
    pa.date32(): Leaf.LEAF_DATE,
    pa.time64("us"): Leaf.LEAF_TIME,
    pa.timestamp("us", "UTC"): Leaf.LEAF_TIMESTAMP,
    pa.timestamp("ns", "UTC"): Leaf.LEAF_TIMESTAMP_NANOS,
    pa.timestamp("us"): Leaf.LEAF_TIMESTAMP_NTZ,
    pa.timestamp("ns"): Leaf.LEAF_TIMESTAMP_NTZ_NANOS,
    pa.binary(): Leaf.LEAF_BINARY,
    pa.string(): Leaf.LEAF_STRING,
    UUID: Leaf.LEAF_UUID,
}


def leaf_code(type: pa.DataType) -> int:
    """Return the number that kernels use for a leaf type, which must be a result of ``schema.leaf_type``."""
    return Leaf.LEAF_DECIMAL if pa.types.is_decimal(type) else _LEAVES[type]


@dataclass(frozen=True, slots=True)
class CompiledNode:
    """Node of the schema, and the numbers of its children in the order of the schema."""

    schema: ShreddingSchema
    children: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """Plan of a schema for the kernels, and its nodes by their numbers in the plan. Children follow their parents."""

    plan: ShreddingPlan
    nodes: tuple[CompiledNode, ...]


@lru_cache(maxsize=64)
def compile_schema(schema: ShreddingSchema) -> CompiledSchema:
    """Compile a schema for the kernels.

    Nodes are numbered in breadth-first order, and the fields of an object in the byte order of their names.
    """
    queue: list[tuple[ShreddingSchema, bytes | None]] = [(schema, None)]
    nodes: list[CompiledNode] = []
    spans: list[tuple[int, int]] = []
    for node, _ in queue:  # the loop extends the queue
        first = len(queue)
        members: list[tuple[bytes, ShreddingSchema]] = []
        if isinstance(node, Object):
            members = [(name.encode(), child) for name, child in node.fields]
            ranked = sorted(members, key=lambda member: member[0])
            queue.extend((child, name) for name, child in ranked)
            place = {name: first + i for i, (name, _) in enumerate(ranked)}
            children = tuple(place[name] for name, _ in members)
        elif isinstance(node, Array):
            queue.append((node.element, None))
            children = (first,)
        else:
            children = ()
        spans.append((first, len(children)))
        nodes.append(CompiledNode(node, children))
    names = sorted({name for _, name in queue if name is not None})
    rank = {name: i for i, name in enumerate(names)}
    plan = [
        (*_describe_node(node), first, count, -1 if name is None else rank[name])
        for (node, name), (first, count) in zip(queue, spans, strict=True)
    ]
    return CompiledSchema(ShreddingPlan(plan, names), tuple(nodes))


def _describe_node(node: ShreddingSchema) -> tuple[int, int, int, int]:
    """Return the kernels' description of a node: its node type, leaf code, precision and scale."""
    if isinstance(node, Object):
        return Kind.KIND_OBJECT, 0, 0, 0
    if isinstance(node, Array):
        return Kind.KIND_ARRAY, 0, 0, 0
    if isinstance(node, Primitive):
        decimal = (node.type.precision, node.type.scale) if pa.types.is_decimal(node.type) else (0, 0)
        return Kind.KIND_PRIMITIVE, leaf_code(node.type), *decimal
    return Kind.KIND_UNTYPED, 0, 0, 0
