"""Variant binaries, shredded columns, JSON text, paths and schemas, and the functions of ``pqext.variant``."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import pyarrow as pa
from hostile_calls import DOUBLES, Call, change_bytes, change_text, integer, sample, word

from pqext import variant
from pqext.core.base.errors import ParquetError
from pqext.variant.value import Variant
from reference import variant_value as reference

SCHEMAS = ("BIGINT", "STRING", "a INT, b STRING", "ARRAY<DOUBLE>", "a STRUCT<b: ARRAY<DECIMAL(9,2)>>, c TIME",
           "a TIMESTAMP, b VARIANT, c UUID, `` BINARY", "a DECIMAL(38,10), b TIMESTAMP_NTZ_NS", "ARRAY<ARRAY<BOOLEAN>>",
           "a DATE, b FLOAT, c TINYINT")  # fmt: skip
PATHS = ("$", "$.a", "$.a.b[0]", "$[1]", "$['']", "$.a[*]", "$.*", "$[-1]", "a", "$.a.b.c.d", "$[2147483648]")
TYPES = ("variant", "int8", "int64", "uint64", "float", "double", "string", "binary", "boolean", "date", "timestamp",
         "timestamp_ntz", "decimal(9,2)", "decimal(38,10)", "time", "uuid", "ARRAY<INT>", "a INT, b STRING",
         "STRUCT<a: BIGINT>", "MAP<STRING, INT>", "nonsense", "decimal(0,0)", "decimal(99,1)", "ARRAY<")  # fmt: skip
TOKENS = ("<", ">", "(", ")", ",", ":", " ", "`", "STRUCT<", "ARRAY<", "MAP<", "DECIMAL(", "INT", "NOT NULL", "[", "]",
          "$", ".", "*", "'", '"', "\\u0000", "\\ud800", "e999", "1", "-", "{", "}", "true", "null", "\n", "//", "\0",
          "\ufeff", "VARIANT", "[" * 1500, '{"a":' * 1200)  # fmt: skip
ZONES = ("UTC", "Europe/Berlin", "+05:30", "nowhere", "", "../etc/passwd", "UTC\0", "+99:99")


def draw_value(chance: random.Random, depth: int = 0) -> reference.Value:
    """Draw a value of the reference implementation."""
    choice = chance.randrange(8) if depth < 4 else 9
    if choice == 0:
        return "object", {chance.choice(("a", "b", "c", "", "é")): draw_value(chance, depth + 1) for _ in range(3)}
    if choice == 1:
        return "array", [draw_value(chance, depth + 1) for _ in range(chance.choice((0, 1, 2, 5)))]
    type = chance.choice(reference.TYPES)
    if type in ("null", "true", "false"):
        return type, None
    if type in reference.INTEGERS:
        return type, integer(chance, 8 * reference.INTEGERS[type])
    if type in reference.DECIMALS:
        size, digits = reference.DECIMALS[type]
        return type, (integer(chance, 8 * size) % 10**digits, chance.choice((0, 2, digits)))
    if type in ("float", "double"):
        return type, chance.choice((0.0, 1.5, float("nan"), float("inf")))
    return type, {"binary": b"\xff\0", "uuid": bytes(16)}.get(type, "text" * chance.choice((0, 1, 30)))


def draw_binary(chance: random.Random) -> tuple[bytes, bytes]:
    """Draw the metadata and value of a variant, changed three times out of four."""
    layout = reference.Layout(
        sorted_dictionary=chance.random() < 0.7, metadata_size=chance.choice((0, 4)), id_size=chance.choice((0, 4)),
        offset_size=chance.choice((0, 4)), large=chance.random() < 0.3,
    )  # fmt: skip
    metadata, value = reference.encode(draw_value(chance), layout)
    choice = chance.randrange(8)
    if choice < 4:
        value = change_bytes(value, chance)
    elif choice == 4:
        metadata = change_bytes(metadata, chance)
    elif choice == 5:
        metadata, value = metadata[: chance.randrange(len(metadata) + 1)], chance.randbytes(chance.randrange(30))
    return metadata, value


def _storage(chance: random.Random) -> pa.Array:
    """Draw an array of variants, sometimes shredded columns with values that contradict each other."""
    rows: list[Any] = [None if chance.random() < 0.1 else draw_binary(chance) for _ in range(chance.choice((1, 2, 5)))]
    dicts = [None if row is None else {"metadata": row[0], "value": row[1]} for row in rows]
    whole = pa.array(dicts, variant.variant_type())
    if chance.random() < 0.6:
        return whole
    valid = variant.parse_json(['{"a": 1, "b": "x"}', '{"a": [1], "c": null}', "[1.5]", "7", None][: len(rows)])
    shredded = variant.shred(valid, chance.choice(SCHEMAS))
    return _swap(shredded, whole, chance)


def _swap(array: pa.Array, donor: pa.Array, chance: random.Random) -> pa.Array:
    """Replace binary fields of a struct, and of structs within it, by those of ``donor``."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if not pa.types.is_struct(array.type):
        return array
    children, fields = [], []
    for at, field in enumerate(array.type):
        child = array.field(at)
        if pa.types.is_binary(field.type) and field.name in ("metadata", "value") and chance.random() < 0.5:
            child = donor.field(field.name).cast(field.type)
        elif pa.types.is_struct(field.type):
            child = _swap(child, donor, chance)
        children.append(child)
        fields.append(pa.field(field.name, child.type, True, field.metadata))
    mask = pa.array([chance.random() < 0.2 for _ in range(len(array))]) if chance.random() < 0.3 else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def variants(chance: random.Random) -> list[Call]:
    """Arrays of changed Variant binaries."""
    array, other = _storage(chance), _storage(chance)
    path, type, schema = chance.choice(PATHS), chance.choice(TYPES[:-5]), chance.choice(SCHEMAS)
    metadata, value = draw_binary(chance)
    every = [
        Call("validate", lambda: variant.validate(array)),
        Call("validate, fast", lambda: variant.validate(array, "fast", max_depth=chance.choice((1, 1000)))),
        Call("find_faults", lambda: variant.find_faults(array, limit=2)),
        Call("get", lambda: variant.get(array, path, type), True),
        Call("get, strict", lambda: variant.get(array, path, type, strict=True), True),
        Call("explode", lambda: variant.explode(array, path, outer=True), True),
        Call("to_json", lambda: variant.to_json(array, indent=chance.choice((None, 0, 2)))),
        Call("to_python", lambda: variant.to_python(array, json_types=chance.random() < 0.5)),
        Call("canonical", lambda: variant.canonical(array)),
        Call("hash", lambda: variant.hash(array)),
        Call("equals", lambda: variant.equals(array, other), True),
        Call("delete", lambda: variant.delete(array, path), True),
        Call("set", lambda: variant.set(array, path, chance.choice((1, "x", None, [1]))), True),
        Call("merge", lambda: variant.merge(array, {"a": None})),
        Call("merge, with an array", lambda: variant.merge(array, other), True),
        Call("strip_nulls", lambda: variant.strip_nulls(array)),
        Call("shred", lambda: variant.shred(array, schema, coerce=chance.choice(("equivalent", "exact", "json")))),
        Call("unshred", lambda: variant.unshred(array, strict=chance.random() < 0.5)),
        Call("infer_schema", lambda: variant.infer_schema(array)),
        Call("to_table", lambda: variant.to_table(array)),
        Call("from_arrow", lambda: variant.from_arrow(array)),
        Call("Variant", lambda: _use_variant(value, metadata, path), True, errors=(LookupError,)),
    ]  # fmt: skip
    return sample(chance, every, 5)


def _use_variant(value: bytes, metadata: bytes, path: str) -> None:
    item = Variant(value, metadata)
    for use in (repr, str, hash, bool, len, iter, list, Variant.to_python, Variant.to_json, lambda it: it == item,
                lambda it: it.get(path), lambda it: it["a"], lambda it: it[0]):  # fmt: skip
        try:
            use(item)
        except (ParquetError, LookupError):
            continue
        except TypeError as error:
            if "Variant" not in str(error) and "variant" not in str(error):
                raise


def draw_document(chance: random.Random, depth: int = 0) -> Any:
    """Draw a JSON value."""
    choice = chance.randrange(7) if depth < 4 else chance.randrange(2, 7)
    if choice == 0:
        return {word(chance)[:20]: draw_document(chance, depth + 1) for _ in range(chance.randrange(4))}
    if choice == 1:
        return [draw_document(chance, depth + 1) for _ in range(chance.randrange(4))]
    return (integer(chance, 128), chance.choice(DOUBLES), word(chance)[:100], None, True)[choice - 2]


def texts(chance: random.Random) -> list[Call]:
    """JSON text, schemas, paths and types."""
    lines = [change_text(json.dumps(draw_document(chance)), chance, TOKENS) for _ in range(chance.choice((1, 3)))]
    lines = [line.encode("utf-8", "replace").decode() for line in lines]
    data = change_bytes("\n".join(lines).encode(), chance) if chance.random() < 0.5 else "\n".join(lines).encode()
    schema = change_text(chance.choice(SCHEMAS), chance, TOKENS)
    path, type = change_text(chance.choice(PATHS), chance, TOKENS), change_text(chance.choice(TYPES), chance, TOKENS)
    good = variant.parse_json(['{"a": {"b": [1, 2]}}', "[1, [2]]"])
    parsing = {
        "numbers": chance.choice(("decimal", "double")), "on_error": chance.choice(("raise", "null")),
        "duplicate_keys": chance.choice(("error", "first", "last")), "max_depth": chance.choice((1, 50, 1000)),
        "shredding": chance.choice((None, "infer", chance.choice(SCHEMAS))),
    }  # fmt: skip
    every = [
        Call("parse_json", lambda: variant.parse_json(lines, **parsing), True),
        Call("parse_json_lines", lambda: variant.parse_json_lines(data, **parsing), True),
        Call("read_json", lambda: [batch.num_rows for batch in variant.read_json(io.BytesIO(data))], True),
        Call("shredding_schema", lambda: variant.shredding_schema(schema), True),
        Call("shred", lambda: variant.shred(good, schema), True),
        Call("shredding_schema, JSON", lambda: variant.shredding_schema(_document(lines[0])), True),
        Call("get, path", lambda: variant.get(good, path), True),
        Call("get, type", lambda: variant.get(good, "$.a", type, timezone=chance.choice(ZONES)), True),
        Call("set, path", lambda: variant.set(good, path, draw_document(chance)), True),
        Call("delete, path", lambda: variant.delete(good, path), True),
        Call("explode, path", lambda: variant.explode(good, path, type), True),
        Call("merge", lambda: variant.merge(good, draw_document(chance)), True),
        Call("from_python", lambda: variant.from_python([draw_document(chance)]), True),
    ]  # fmt: skip
    return sample(chance, every, 4)


def _document(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
