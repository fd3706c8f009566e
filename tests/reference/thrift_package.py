"""Metadata structures as the ``thrift`` package's pure-Python protocol reads and writes them.

Its classes are made from the format's own list of structures, not from pqext's tables.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

STRUCTS_JSON = Path(__file__).parent.parent / "data" / "structs.json"
FORMAT: dict[str, Any] = json.loads(STRUCTS_JSON.read_text("utf-8"))
_TTYPES = {
    "bool": (TType.BOOL, None),
    "i8": (TType.BYTE, None),
    "i16": (TType.I16, None),
    "i32": (TType.I32, None),
    "i64": (TType.I64, None),
    "double": (TType.DOUBLE, None),
    "binary": (TType.STRING, "BINARY"),
    "string": (TType.STRING, "UTF8"),
}


class Peer:
    """A structure as Thrift's generator would write it."""

    thrift_spec: tuple[Any, ...] = ()

    def __init__(self) -> None:
        for declared in self.thrift_spec:
            if declared is not None:
                setattr(self, declared[2], None)

    def read(self, protocol: TCompactProtocol) -> None:
        protocol.readStruct(self, self.thrift_spec)

    def write(self, protocol: TCompactProtocol) -> None:
        protocol.writeStruct(self, self.thrift_spec)


def _type(name: str) -> tuple[int, Any]:
    element = re.fullmatch(r"list<(.*)>", name)
    if element:
        ttype, arguments = _type(element[1])
        return TType.LIST, (ttype, arguments, False)
    if name.startswith("enum "):
        return TType.I32, None
    if name in _TTYPES:
        return _TTYPES[name]
    return TType.STRUCT, (PEERS[name], PEERS[name].thrift_spec)


PEERS: dict[str, type[Peer]] = {name: type(name, (Peer,), {}) for name in FORMAT["structs"]}


def _specify(name: str, done: set[str]) -> None:
    if name in done:
        return
    done.add(name)
    fields = FORMAT["structs"][name]["fields"]
    for declared in fields:
        inner = re.sub(r"list<|>", "", declared["type"])
        if inner in PEERS:
            _specify(inner, done)
    spec: list[Any] = [None] * (max((declared["id"] for declared in fields), default=0) + 1)
    for declared in fields:
        ttype, arguments = _type(declared["type"])
        spec[declared["id"]] = (declared["id"], ttype, declared["name"], arguments, None)
    PEERS[name].thrift_spec = tuple(spec)


_done: set[str] = set()
for _name in PEERS:
    _specify(_name, _done)


def to_peer(struct: Any) -> Any:
    """Copy one of pqext's structures into the peer's class, field by field."""
    if isinstance(struct, (list, tuple)):
        return [to_peer(one) for one in struct]
    if type(struct).__name__ not in PEERS:
        return struct
    peer = PEERS[type(struct).__name__]()
    for declared in peer.thrift_spec:
        if declared is not None:
            setattr(peer, declared[2], to_peer(getattr(struct, declared[2])))
    return peer


def same(struct: Any, peer: Any) -> bool:
    """Do both hold the same values?"""
    if isinstance(peer, Peer):
        names = [declared[2] for declared in peer.thrift_spec if declared is not None]
        return all(same(getattr(struct, name), getattr(peer, name)) for name in names)
    if isinstance(peer, list):
        return len(struct) == len(peer) and all(same(a, b) for a, b in zip(struct, peer, strict=True))
    return bool(struct == peer) and (struct is None) == (peer is None)


def write(peer: Peer) -> bytes:
    transport = TMemoryBuffer()
    peer.write(TCompactProtocol(transport))
    return bytes(transport.getvalue())


def read(name: str, data: bytes) -> Peer:
    peer = PEERS[name]()
    peer.read(TCompactProtocol(TMemoryBuffer(data)))
    return peer
