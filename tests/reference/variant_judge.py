"""What is wrong with the columns of one shredded value, one rule after another as the specification has them."""

from __future__ import annotations

from typing import Any

from pqext.variant.shredding.schema import Array, Object, Primitive, ShreddingSchema, Untyped
from reference import variant_shred as reference


def judge(columns: dict[str, Any] | None, schema: ShreddingSchema, names: list[str]) -> list[str]:
    """The broken rules, one id a fault, of the top-level columns of a row whose encoded values are whole."""
    faults, present = _judge(columns, schema, names)
    if not present:
        faults.append("variant.group.value" if isinstance(schema, Untyped) else "shredding.value.missing")
    return sorted(faults)


def _judge(columns: dict[str, Any] | None, schema: ShreddingSchema, names: list[str]) -> tuple[list[str], bool]:
    columns = columns or {}
    value, typed = columns.get("value"), columns.get("typed_value")
    if value is None and typed is None:
        return [], False
    faults = []
    residual = reference.decode(value, names) if value is not None else None
    if typed is None:
        assert residual is not None
        if isinstance(schema, Object) and residual.type == "object":
            faults.append("shredding.object.typed")
        if isinstance(schema, Array) and residual.type == "array":
            faults.append("shredding.array.typed")
    elif isinstance(schema, Object):
        if residual is not None and residual.type != "object":
            faults.append("shredding.object.residual-kind")
        if residual is not None and residual.type == "object":
            shredded = {name for name, _ in schema.fields}
            faults += ["shredding.object.disjoint" for _, name, _ in residual.data if name in shredded]
        for name, child in schema.fields:
            found, present = _judge(typed[name], child, names)
            faults += found
            if present and name not in names:
                faults.append("shredding.metadata.names")
    else:
        if residual is not None:
            faults.append("shredding.value.exclusive")
        if isinstance(schema, Array):
            for element in typed:
                found, present = _judge(element, schema.element, names)
                faults += found if present else [*found, "shredding.array.present"]
        else:
            assert isinstance(schema, Primitive)
    return faults, True


def disturbed(columns: Any, schema: ShreddingSchema, choose: Any, other: bytes) -> Any:
    """The columns with some of them emptied or filled: ``choose(n)`` picks one of n things to do."""
    if not isinstance(columns, dict):
        return columns
    value, typed = columns.get("value"), columns.get("typed_value")
    if isinstance(schema, Untyped):
        return {"value": [value, value, value, None, other][choose(5)]}
    if typed is not None and isinstance(schema, Object):
        typed = {name: disturbed(typed[name], child, choose, other) for name, child in schema.fields}
    elif typed is not None and isinstance(schema, Array):
        typed = [disturbed(element, schema.element, choose, other) for element in typed]
    action = choose(8)
    if action == 5:
        value = other
    elif action == 6:
        value = None
    elif action == 7:
        typed = None
    return {"value": value, "typed_value": typed}
