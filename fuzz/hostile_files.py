"""Parquet files whose footer, pages, indexes or bytes are changed, and the calls that read them."""

from __future__ import annotations

import functools
import io
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from core import bombs
from hostile_bases import COUNT, DECRYPTION, Base, base
from hostile_calls import Call, change_bytes, integer, sample, word
from hostile_metadata import change_key_values, change_schema, change_struct, repeat_row_groups

import pqext
from pqext import geo, table_metrics, variant
from pqext.core.base.limits import Limits
from pqext.core.footer.flatbuffers.reading import build_file_end, encode_tables
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.metadata import BloomFilterHeader, ColumnIndex, FileMetaData, OffsetIndex, PageHeader
from pqext.core.format.thrift import Struct, decode, encode
from pqext.inspection import layout

LIMITS = Limits.untrusted()
LITERALS: tuple[Any, ...] = (0, 7, -1, 1 << 40, 2.5, float("nan"), "t", "", b"b", True, None)


def _open(data: bytes, **options: Any) -> pqext.ParquetFile:
    return pqext.open(data, limits=LIMITS, decryption=DECRYPTION, **options)


def _read_metadata(data: bytes) -> None:
    with _open(data) as file:
        _ = file.num_rows, file.arrow_schema, file.extensions, file.shapes, file.metadata
        for group in list(file.row_groups)[:20]:
            for chunk in list(group.chunks())[:20]:
                chunk.bounds()
                chunk.page_bounds()
                _ = chunk.bloom_filter


def _read_batches(data: bytes, rows: int) -> None:
    with _open(data) as file:
        for batch, _ in zip(file.iter_batches(rows), range(40), strict=False):
            batch.validate(full=True)


def _read(data: bytes, **options: Any) -> pa.Table:
    with _open(data, **options) as file:
        return file.read()


def _scan(data: bytes, **options: Any) -> pqext.Scan:
    return pqext.scan(data, limits=LIMITS, decryption=DECRYPTION, **options)


def _append(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        path.write_bytes(data)
        pqext.write_table(pa.table({"c": [1]}), path, append=True)


def calls_on(data: bytes, valid: Base, chance: random.Random, count: int = 4) -> list[Call]:
    """Choose calls on the bytes of a file, given a valid file whose columns it may have."""
    name = chance.choice(valid.names) if chance.random() < 0.95 else word(chance)
    column, literal = pqext.col((name,)), chance.choice(LITERALS)
    tests: tuple[Callable[[], Any], ...] = (
        column.is_null, column.is_not_null, lambda: column > literal, lambda: column == literal,
        lambda: column.isin([literal, 1]),
    )  # fmt: skip
    if name in valid.variants:
        tests = (lambda: column.variant("$.a", "int64") > 1, lambda: column.variant("$.c[0]", "string").is_null())
    if name in valid.geometries:
        tests = (lambda: column.intersects((0, 0, 2, 2)), lambda: column.st_x() > 1)
    test = chance.choice(tests)
    every = [
        Call("metadata", lambda: _read_metadata(data)),
        Call("read", lambda: _read(data)),
        Call("read, skip", lambda: _read(data, on_corrupt="skip")),
        Call("read, recover", lambda: _read(data, recover=True)),
        Call("read, lenient", lambda: _read(data, invalid_values="null", invalid_utf8="replace", strings="view")),
        Call("read, shredded", lambda: _read(data, shredded=True, checksums=False, strings="dictionary")),
        Call("batches", lambda: _read_batches(data, chance.choice((1, 3, 1000)))),
        Call("read_table", lambda: pqext.read_table(data, [name], limits=LIMITS, decryption=DECRYPTION), True),
        Call("count", lambda: _scan(data).count()),
        Call("filter", lambda: _scan(data, filter=test()).to_table(), True),
        Call("filter, skip", lambda: _scan(data, filter=test(), on_corrupt="skip").count(), True),
        Call("head", lambda: _scan(data).head(3)),
        Call("head, text", lambda: _scan(data).to_table(variants="json", geometry="wkt")),
        Call("order_by", lambda: _scan(data).order_by(name).limit(3, 1).to_table(), True),
        Call("aggregates", lambda: (_scan(data).null_count(name), _scan(data).min(name), _scan(data).max(name)), True),
        Call("explain", lambda: _scan(data, filter=test()).explain(), True),
        Call("verify", lambda: pqext.verify(data, limits=LIMITS, decryption=DECRYPTION)),
        Call("recover", lambda: pqext.recover(data, io.BytesIO(), limits=LIMITS)),
        Call("recover, null_columns", lambda: pqext.recover(data, io.BytesIO(), null_columns=True, limits=LIMITS)),
        Call("repair", lambda: pqext.repair(data, io.BytesIO(), limits=LIMITS, decryption=DECRYPTION), True),
        Call("inspect", lambda: str(pqext.inspect(data, limits=LIMITS, decryption=DECRYPTION))),
        Call("layout", lambda: str(layout(data, limits=LIMITS, decryption=DECRYPTION))),
        Call("concatenate", lambda: pqext.concatenate([data, valid.data], io.BytesIO(), limits=LIMITS), True),
        Call("rewrite_footer", lambda: pqext.rewrite_footer(data, None, io.BytesIO(), limits=LIMITS)),
        Call("delta", lambda: table_metrics.delta(data, limits=LIMITS, decryption=DECRYPTION)),
        Call("delta, exact", lambda: table_metrics.delta(data, True, limits=LIMITS, decryption=DECRYPTION)),
        Call("iceberg", lambda: table_metrics.iceberg(data, limits=LIMITS, decryption=DECRYPTION)),
        Call("append", lambda: _append(data), True),
        Call("unshred_file", lambda: variant.unshred_file(data, io.BytesIO(), limits=LIMITS), True),
        Call("reshred_file", lambda: variant.reshred_file(data, io.BytesIO(), limits=LIMITS), True),
        Call("explain_layout", lambda: geo.explain_layout(data), True),
    ]  # fmt: skip
    memory = LIMITS.max_memory_bytes(len(data))
    return [Call(call.name, call.run, call.is_argument, memory=memory) for call in sample(chance, every, count)]


def _split(data: bytes) -> tuple[bytes, bytes] | None:
    """Return the bytes before a plaintext Thrift footer, and the footer."""
    size = int.from_bytes(data[-8:-4], "little")
    if data[-4:] != b"PAR1" or size + 12 > len(data):
        return None
    return data[: -8 - size], data[-8 - size : -8]


def _plaintext(chance: random.Random) -> tuple[Base, bytes, FileMetaData]:
    """Choose a base file with a plaintext Thrift footer; return its pages and its metadata."""
    while True:
        valid = base(chance.randrange(COUNT))
        parts = _split(valid.data)
        if parts is not None:
            return valid, parts[0], decode(FileMetaData, parts[1])[0]


def _with_footer(pages: bytes, metadata: FileMetaData) -> bytes:
    return pages + serialise_footer(metadata)


def footers(chance: random.Random) -> list[Call]:
    """Files whose metadata structures are changed."""
    valid, pages, metadata = _plaintext(chance)
    choice = chance.randrange(10)
    if choice < 3:
        change_schema(metadata, chance)
    elif choice == 3:
        change_key_values(metadata, chance)
    if choice > 1:
        change_struct(metadata, chance, chance.choice((1, 1, 2, 4)))
    return calls_on(_encoded(pages, metadata, valid), valid, chance)


def _encoded(pages: bytes, metadata: FileMetaData, valid: Base) -> bytes:
    """Return the file, or the valid one if the metadata cannot be encoded."""
    try:
        return _with_footer(pages, metadata)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return valid.data


def row_groups(chance: random.Random) -> list[Call]:
    """Files with thousands of row groups that share column chunks, some of them changed."""
    valid, pages, metadata = _plaintext(chance)
    repeat_row_groups(metadata, chance)
    if chance.random() < 0.4:
        change_struct(metadata, chance, 1)
    return calls_on(_encoded(pages, metadata, valid), valid, chance, 3)


@functools.cache
def _bombs() -> dict[str, bytes]:
    return bombs.files()


def bomb_files(chance: random.Random) -> list[Call]:
    """Files of few bytes that claim gigabytes, some with row groups that share one bomb."""
    every = _bombs()
    data = every[chance.choice(sorted(every))]
    if chance.random() < 0.5:
        pages, footer = _split(data) or (data, b"")
        metadata = decode(FileMetaData, footer)[0]
        repeat_row_groups(metadata, chance)
        data = _with_footer(pages, metadata)
    return calls_on(data, Base(data, ("a",)), chance, 2)


def pages(chance: random.Random) -> list[Call]:
    """Files whose pages, page headers, indexes, filters or other bytes are changed."""
    valid = base(chance.randrange(COUNT))
    data, parts = valid.data, _split(valid.data)
    choice = chance.randrange(10)
    if choice == 0:
        data = data[: chance.randrange(len(data))] + (data[-8:] if chance.random() < 0.5 else b"")
    elif choice == 1:
        data = change_bytes(data, chance)
    elif choice == 2:
        tail = (integer(chance, 32) % (1 << 32)).to_bytes(4, "little") + chance.choice((b"PAR1", b"PARE", b"PAR3"))
        data = data[: chance.randrange(len(data))] + chance.randbytes(chance.randrange(40)) + tail
    elif parts is None or choice < 6:
        data = change_bytes(data, chance, 4, len(parts[0]) if parts else len(data) - 8)
    else:
        data = _change_structure(parts[0], decode(FileMetaData, parts[1])[0], chance) or data
    return calls_on(data, valid, chance)


def _change_structure(body: bytes, metadata: FileMetaData, chance: random.Random) -> bytes | None:
    """Change the header of a page or filter, or an index, and move the offsets that follow it."""
    chunks = [chunk for group in metadata.row_groups for chunk in group.columns if chunk.meta_data is not None]
    if not chunks:
        return None
    chunk = chance.choice(chunks)
    meta = chunk.meta_data
    assert meta is not None
    places: list[tuple[type[Struct], int | None]] = [
        (PageHeader, meta.data_page_offset), (PageHeader, meta.dictionary_page_offset),
        (PageHeader, meta.data_page_offset), (ColumnIndex, chunk.column_index_offset),
        (OffsetIndex, chunk.offset_index_offset), (BloomFilterHeader, meta.bloom_filter_offset),
    ]  # fmt: skip
    structure, offset = chance.choice(
        [(structure, at) for structure, at in places if at is not None and 0 < at < len(body)]
    )
    try:
        struct, size = decode(structure, body[offset:])
        change_struct(struct, chance, chance.choice((1, 1, 2)))
        new = encode(struct)
    except (ValueError, TypeError, OverflowError, AttributeError):  # encrypted, or not encodable
        return None
    _move(metadata, offset, len(new) - size)
    if structure is ColumnIndex:
        chunk.column_index_length = len(new)
    elif structure is OffsetIndex:
        chunk.offset_index_length = len(new)
    elif structure is PageHeader:
        meta.total_compressed_size += len(new) - size
    return _with_footer(body[:offset] + new + body[offset + size :], metadata)


def _move(metadata: FileMetaData, offset: int, difference: int) -> None:
    """Add ``difference`` to the offsets after ``offset``."""
    for group in metadata.row_groups:
        for chunk in group.columns:
            for struct, names in (
                (chunk, ("column_index_offset", "offset_index_offset")),
                (chunk.meta_data, ("data_page_offset", "dictionary_page_offset", "bloom_filter_offset")),
            ):
                for name in names if struct is not None else ():
                    value = getattr(struct, name)
                    if value is not None and value > offset:
                        setattr(struct, name, value + difference)


def flat_footers(chance: random.Random) -> list[Call]:
    """Files whose only footer is FlatBuffers tables, changed in bytes or made of changed metadata."""
    valid, body, metadata = _plaintext(chance)
    try:
        if chance.random() < 0.4:
            change_struct(metadata, chance, 1)
        tables = encode_tables(encode(metadata))
    except (ValueError, TypeError, OverflowError, AttributeError):
        return []
    tables = change_bytes(tables, chance) if chance.random() < 0.8 else tables
    return calls_on(body + build_file_end(tables), valid, chance)
