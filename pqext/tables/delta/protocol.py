"""Check whether a Delta table can be written: its protocol, constraints and column properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.suggestions import join_names

if TYPE_CHECKING:
    from deltalake import DeltaTable

WRITER_FEATURES = frozenset({
    "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping",
    "deletionVectors", "timestampNtz", "variantType", "variantType-preview",
})
"""Table features that deltalake commits and that pqext supports. Unsupported uses of them are rejected separately."""
SHREDDING_FEATURES = frozenset({"variantShredding", "variantShredding-preview"})
_COLUMN_RULES = {
    "delta.invariants": "an invariant", "delta.generationExpression": "a generation expression",
    "delta.identity.start": "identity values", "delta.identity.step": "identity values", "CURRENT_DEFAULT": "a default",
}


def check_writable(table: DeltaTable, struct: Mapping[str, Any], name: str, removes_rows: bool) -> None:
    """Raise ``UnsupportedError`` with the reason if pqext cannot write to the table."""
    features = set(table.protocol().writer_features or ())
    unknown = sorted(features - WRITER_FEATURES)
    if unknown:
        advice = "; write the table with Spark" if SHREDDING_FEATURES.intersection(unknown) else ""
        raise UnsupportedError(
            f"the table requires the writer features {join_names(unknown)}, which pqext does not support{advice}",
            feature="Delta table features", path=name,
        )
    configuration = table.metadata().configuration
    constraints = sorted(key for key in configuration if key.startswith("delta.constraints."))
    if constraints:
        raise UnsupportedError(
            f"the table has the constraints {join_names(constraints)}, which pqext does not check; write the table "
            "with deltalake.write_deltalake", feature="Delta constraints", path=name,
        )
    for column, metadata in _columns(struct["fields"], ""):
        for key, rule in _COLUMN_RULES.items():
            if key in metadata:
                raise UnsupportedError(
                    f"the column has {rule} ({key}), which pqext does not evaluate; write the table with Spark or "
                    "deltalake.write_deltalake", feature="Delta column rules", path=name, column=column,
                )
    if removes_rows and (configuration.get("delta.appendOnly") or "").lower() == "true":
        raise UnsupportedError(
            "rows cannot be removed, because the table has the property delta.appendOnly; append rows, or set the "
            "property to false", feature="append-only tables", path=name,
        )


def _columns(members: list[Any], prefix: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for member in members:
        path = f"{prefix}{member['name']}"
        yield path, member.get("metadata", {})
        yield from _nested(member["type"], f"{path}.")


def _nested(type: Any, prefix: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(type, str):
        return
    if type["type"] == "struct":
        yield from _columns(type["fields"], prefix)
    for part in ("elementType", "keyType", "valueType"):
        if part in type:
            yield from _nested(type[part], prefix)
