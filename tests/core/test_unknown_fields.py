"""Every structure of the format keeps what it does not know, at every depth, and its extension."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pqext.core.format import metadata
from pqext.core.format.extension.structure import append_extension, extensions, set_extension, walk_extensions
from pqext.core.format.thrift import Struct, decode, encode
from reference import compact, thrift_package
from reference.effort import share
from reference.thrift_package import FORMAT

SCALARS: dict[str, tuple[int, st.SearchStrategy[Any]]] = {
    "bool": (compact.TRUE, st.booleans()),
    "i8": (compact.BYTE, st.integers(-128, 127)),
    "i16": (compact.I16, st.integers(-(1 << 15), (1 << 15) - 1)),
    "i32": (compact.I32, st.integers(-(1 << 31), (1 << 31) - 1)),
    "i64": (compact.I64, st.integers(-(1 << 63), (1 << 63) - 1)),
    "double": (compact.DOUBLE, st.floats(allow_nan=False)),
    "binary": (compact.BINARY, st.binary(max_size=8)),
    "string": (compact.BINARY, st.text(max_size=8).map(str.encode)),
}
ASCII = st.binary(max_size=6).map(lambda data: bytes(byte & 0x7F for byte in data))
SIMPLE = [pair for name, pair in SCALARS.items() if name not in ("string", "binary")] + [(compact.BINARY, ASCII)]
# The thrift package reads bytes that it passes over as UTF-8.


SCALAR = st.sampled_from(SIMPLE).flatmap(lambda pair: st.tuples(st.just(pair[0]), pair[1]))


def containers() -> st.SearchStrategy[tuple[int, Any]]:
    """Values of every wire type that a later version might bring."""
    def deeper(inner: st.SearchStrategy[tuple[int, Any]]) -> st.SearchStrategy[tuple[int, Any]]:
        lists = st.sampled_from(SIMPLE).flatmap(
            lambda pair: st.lists(pair[1], max_size=20).map(lambda values: (compact.LIST, ("list", pair[0], values)))
        )
        pairs = st.lists(st.tuples(ASCII, st.integers(-9, 9)), min_size=1, max_size=3)
        maps = pairs.map(lambda found: (compact.MAP, ("map", compact.BINARY, compact.I64, found)))
        structs = st.lists(inner, max_size=4).map(
            lambda values: (compact.STRUCT, [(i + 1, wire, value) for i, (wire, value) in enumerate(values)])
        )
        return st.one_of(lists, maps, structs, st.binary(min_size=16, max_size=16).map(lambda v: (compact.UUID, v)))

    return st.recursive(SCALAR, deeper, max_leaves=6)


CONTAINERS = containers()


def value(draw: st.DrawFn, name: str, depth: int) -> tuple[int, Any]:
    """A value of the format's type, as the compact protocol has it."""
    if name.startswith("list<"):
        element = name[5:-1]
        values = [value(draw, element, depth + 1) for _ in range(draw(st.integers(0, 2 if depth < 2 else 1)))]
        if values:
            return compact.LIST, ("list", values[0][0], [one for _, one in values])
        wire = SCALARS[element][0] if element in SCALARS else compact.I32 if element[:4] == "enum" else compact.STRUCT
        return compact.LIST, ("list", wire, [])
    if name.startswith("enum "):
        return compact.I32, draw(st.sampled_from([*FORMAT["enums"][name[5:]].values(), 99]))
    if name in SCALARS:
        wire, strategy = SCALARS[name]
        return wire, draw(strategy)
    return compact.STRUCT, fields(draw, name, depth + 1)


def fields(draw: st.DrawFn, name: str, depth: int = 0) -> compact.Fields:
    """A structure in the order of its ids, with fields among and behind its own that no version has yet."""
    described = FORMAT["structs"][name]
    declared = described["fields"]
    if described["kind"] == "union":
        chosen = [draw(st.sampled_from(declared))]
    else:
        chosen = [f for f in declared if f["requirement"] == "required" or (depth < 2 and draw(st.integers(0, 2)) == 0)]
    found = [(f["id"], *value(draw, f["type"], depth)) for f in chosen]
    free = sorted(set(range(1, 60)) - {f["id"] for f in declared})
    later = draw(st.lists(st.sampled_from([*free, 1000, 32000]), max_size=2 if depth < 2 else 1, unique=True))
    found += [(id, *draw(CONTAINERS if depth < 2 else SCALAR)) for id in later]
    found.sort(key=lambda field: field[0])
    if draw(st.booleans()):
        found.append((draw(st.sampled_from([32767, -16384])), compact.BINARY, draw(ASCII)))
    return found


@pytest.mark.spec("layout.unknown-fields", "extension.kept", "extension.any-structure", "extension.ignored")
@pytest.mark.parametrize("name", FORMAT["structs"])
@settings(max_examples=share(0.2))
@given(st.data())
def test_unknown_fields_of_a_structure_round_trip(name: str, data: st.DataObject) -> None:
    cls = getattr(metadata, name)
    drawn: compact.Fields = data.draw(st.composite(lambda draw: fields(draw, name))())
    stored = compact.write_struct(drawn)
    struct, end = decode(cls, stored)
    assert end == len(stored)
    assert encode(struct) == stored
    for _ in walk(struct):
        pass  # decode what is lazy
    assert encode(struct) == stored
    if FORMAT["structs"][name]["kind"] == "struct":
        assert thrift_package.same(struct, thrift_package.read(name, stored))
    expected = [payload for id, _, payload in drawn if id in (32767, -16384)]
    assert [extensions(struct)] == (expected or [None])
    assert len(dict(walk_extensions(struct))) == count(drawn, name)


@pytest.mark.spec("extension.any-structure", "extension.append")
@pytest.mark.parametrize("name", FORMAT["structs"])
@settings(max_examples=share(0.1))
@given(st.data())
def test_setting_an_extension_equals_appending_it(name: str, data: st.DataObject) -> None:
    cls = getattr(metadata, name)
    drawn: compact.Fields = data.draw(st.composite(lambda draw: fields(draw, name))())
    plain = compact.write_struct([field for field in drawn if field[0] not in (32767, -16384)])
    struct, _ = decode(cls, plain)
    for header in ("spec", "thrift"):
        set_extension(struct, b"mine", header=header, replace=True)  # type: ignore[arg-type]
        assert encode(struct) == append_extension(plain, b"mine", header=header)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="already has an extension"):
        set_extension(struct, b"other")
    set_extension(struct, None, replace=True)
    assert encode(struct) == plain


def walk(struct: Struct) -> Any:
    for field in struct.fields:
        found = getattr(struct, field.name)
        for one in [found] if not field.is_list or found is None else found:
            if isinstance(one, Struct):
                yield one
                yield from walk(one)


def count(drawn: compact.Fields, name: str) -> int:
    """Extensions in the declared structures."""
    described = {f["id"]: f["type"] for f in FORMAT["structs"][name]["fields"]}
    total = 0
    for id, _, found in drawn:
        kind = described.get(id, "")
        if id in (32767, -16384):
            total += 1
        elif kind.removeprefix("list<").removesuffix(">") in FORMAT["structs"]:
            inner = kind.removeprefix("list<").removesuffix(">")
            total += sum(count(one, inner) for one in (found[2] if kind.startswith("list<") else [found]))
    return total
