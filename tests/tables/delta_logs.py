"""Commit deletion vectors to Delta tables, which deltalake reads but does not write."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyroaring import BitMap

from pqext.table_metrics.variant_bounds import encode_z85

_MAGIC = 1681511377
"""Number at the start of a serialised bitmap (Delta Transaction Log Protocol, "Deletion Vector Format")."""


def adds(folder: str) -> dict[str, dict[str, Any]]:
    """Return the current ``add`` action of each file of a table without checkpoints, by its path in the log."""
    current: dict[str, dict[str, Any]] = {}
    log = os.path.join(folder, "_delta_log")
    for name in sorted(os.listdir(log)):
        if name.endswith(".json"):
            with open(os.path.join(log, name), encoding="utf-8") as file:
                for action in map(json.loads, file):
                    if "remove" in action:
                        current.pop(action["remove"]["path"], None)
                    if "add" in action:
                        current[action["add"]["path"]] = action["add"]
    return current


def delete_rows(folder: str, path: str, rows: Iterable[int]) -> None:
    """Commit the deletion of ``rows`` of the file at ``path`` in the log, all rows deleted so far included."""
    positions = BitMap(rows)
    blob = struct.pack("<iqi", _MAGIC, 1, 0) + positions.serialize()
    old = adds(folder)[path]
    statistics = {**json.loads(old["stats"]), "tightBounds": False}
    vector = {
        "storageType": "i", "pathOrInlineDv": encode_z85(blob), "sizeInBytes": len(blob), "cardinality": len(positions),
    }  # fmt: skip
    actions = [
        {"commitInfo": {"timestamp": 1, "operation": "DELETE"}},
        {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}},
        {"add": {**old, "stats": json.dumps(statistics), "deletionVector": vector}},
    ]
    version = DeltaTable(folder).version() + 1
    with open(os.path.join(folder, "_delta_log", f"{version:020}.json"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(action) + "\n" for action in actions)


def own_rows(table: DeltaTable) -> list[dict[str, Any]]:
    """Return the rows of a table as deltalake reads them."""
    rows: list[dict[str, Any]] = pa.table(table.scan()).to_pylist()
    return rows
