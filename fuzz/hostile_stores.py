"""Data-skipping stores whose parts are changed, and scans that use them."""

from __future__ import annotations

import functools
import json
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hostile_calls import Call, change_bytes, change_text, sample, word
from hostile_geometries import JSON_TOKENS

import pqext
from pqext import geo, skipping, variant
from pqext.core.base.limits import Limits

KEY = b"org.apache.spark.sql.parquet.row.metadata"
LIMITS = Limits.untrusted()


@functools.cache
def _template() -> tempfile.TemporaryDirectory[str]:
    """Write a table of three files and its store."""
    folder = tempfile.TemporaryDirectory()
    table = Path(folder.name) / "t"
    table.mkdir()
    for number in range(3):
        columns = {
            "x": pa.array([number, None]), "s": pa.array([str(number), "x"]), "f": pa.array([0.5, float("nan")]),
            "p": geo.from_points([1.0, number], [2.0, 3.0]), "v": variant.parse_json(['{"a": 1}', '{"b": 2}']),
        }  # fmt: skip
        fields = [pa.field("x", pa.int64()), pa.field("s", pa.string()), pa.field("f", pa.float64()),
                  geo.geometry_field("p"), variant.variant_field("v")]  # fmt: skip
        arrays = [getattr(array, "storage", array) for array in columns.values()]
        fields = [field.with_type(array.type) for field, array in zip(fields, arrays, strict=True)]
        pqext.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), table / f"{number}.parquet")
    indexes = [skipping.MinMax("x"), skipping.Prefix("s"), skipping.BloomFilter("s", ndv=10), skipping.ValueList("x"),
               skipping.Box("p"), skipping.VariantPaths("v"), skipping.NullCount("x"),
               skipping.RowCount("x")]  # fmt: skip
    skipping.build(str(table), indexes, Path(folder.name) / "store")
    return folder


def _change_part(path: Path, chance: random.Random) -> None:
    choice = chance.randrange(4)
    if choice == 0:
        path.write_bytes(change_bytes(path.read_bytes(), chance))
        return
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata or {})
    if choice == 1 and KEY in metadata:
        text = change_text(
            metadata[KEY].decode(), chance, (*JSON_TOKENS, '"index"', '"params"', '"metadata"', '"version"')
        )
        metadata[KEY] = text.encode("utf-8", "replace")
    elif choice == 2 and KEY in metadata:
        metadata[KEY] = json.dumps(_change_json(json.loads(metadata[KEY]), chance)).encode("utf-8", "replace")
    else:
        table = _change_cells(table, chance)
    pq.write_table(table.replace_schema_metadata(metadata), path)


def _change_json(tree: Any, chance: random.Random) -> Any:
    if chance.random() < 0.1:
        return chance.choice((None, 1, -1, 1 << 70, "x", "", [], {}, [None], word(chance)))
    if isinstance(tree, dict):
        return {name: _change_json(item, chance) if chance.random() < 0.3 else item for name, item in tree.items()}
    if isinstance(tree, list):
        return [_change_json(item, chance) if chance.random() < 0.3 else item for item in tree]
    return tree


def _change_cells(table: pa.Table, chance: random.Random) -> pa.Table:
    at = chance.randrange(table.num_columns)
    field, column = table.schema.field(at), table.column(at).combine_chunks()
    if chance.random() < 0.3:
        return table.remove_column(at)
    if pa.types.is_binary(column.type) or pa.types.is_string(column.type):
        values = [None if item is None else change_bytes(item.encode() if isinstance(item, str) else item, chance)
                  for item in column.to_pylist()]  # fmt: skip
        new = pa.array([None if item is None else item.decode("utf-8", "replace") for item in values]) \
            if pa.types.is_string(column.type) else pa.array(values, pa.binary())  # fmt: skip
        return table.set_column(at, field, new)
    new = chance.choice((pa.nulls(len(table), column.type), pa.array(["x"] * len(table)), pa.array([-1] * len(table))))
    return table.set_column(at, field.with_type(new.type), new)


def stores(chance: random.Random) -> list[Call]:
    """Changed copies of a store of eight indexes."""
    number = chance.getrandbits(60)
    filters: tuple[Any, ...] = (
        "x > 1", "s = '1'", "s like '2%'", pqext.col("p").intersects((0, 0, 1.5, 9)), "v:$.a::bigint > 0", "x is null",
        "f > 0.2"
    )  # fmt: skip
    condition = chance.choice(filters)
    calls: tuple[tuple[str, Callable[[str, str], Any]], ...] = (
        ("count", lambda table, store: pqext.scan(table, filter=condition, skipping=store, limits=LIMITS).count()),
        ("explain", lambda table, store: pqext.scan(table, filter=condition, skipping=store, limits=LIMITS).explain()),
        ("describe", lambda table, store: str(skipping.describe(store, table, limits=LIMITS))),
        ("open_store", lambda table, store: skipping.open_store(store, limits=LIMITS)),
        ("refresh", lambda table, store: skipping.refresh(table, store, limits=LIMITS)),
        ("compact", lambda table, store: skipping.compact(store, table, limits=LIMITS)),
        ("list_stores", lambda table, store: skipping.list_stores(str(Path(store).parent), limits=LIMITS)),
        ("drop", lambda table, store: skipping.drop(store, [skipping.MinMax("x")], limits=LIMITS)),
    )  # fmt: skip

    def run(use: Callable[[str, str], Any]) -> Any:
        template = Path(_template().name)
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "store"
            shutil.copytree(template / "store", store)
            parts = sorted(path for path in store.rglob("*") if path.is_file())
            parts = [path for path in parts if path.suffix == ".parquet"] or parts
            changes = random.Random(number)
            _change_part(changes.choice(parts), changes)
            return use(str(template / "t"), str(store))

    every = [Call(name, functools.partial(run, use), is_argument=True) for name, use in calls]
    return sample(chance, every, 2)
