"""PLAIN: consecutive values.

Booleans are bit-packed, and byte arrays have a 4-byte length prefix (Encodings, Plain).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pqext.core.base.buffers import EMPTY, Bytes, allocate, numbers, view
from pqext.core.base.errors import CorruptFileError
from pqext.core.base.usage import Account
from pqext.core.format.encodings.decoding import Counts, Dictionary, split_output
from pqext.core.format.metadata import Type
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder, encode_plain
from pqext.core.kernels.encodings.page_run import PageRun

_WORD = 8
"""Size in bytes to which writers of single bits may pad a page."""


def decode_fixed_width(
    run: PageRun, physical_type: Type, width: int, dictionary: Dictionary | None, out: Bytes
) -> None:
    """Decode values of a fixed width into ``out``. Booleans are stored in one bit each."""
    if physical_type != Type.BOOLEAN:
        run.copy_into(width, out)
        return
    for page, count, part in split_output(run, 1, out):
        if len(page) * 8 < count:
            raise CorruptFileError(f"a page of {len(page)} bytes is too short for {count} booleans")
        part[:] = np.unpackbits(page[: (count + 7) // 8], count=count, bitorder="little")


def decode_byte_arrays(
    run: PageRun, builder: ByteArrayBuilder, present: Bytes, slot_counts: Counts, dictionary: Dictionary | None
) -> None:
    """Decode byte arrays with length prefixes."""
    builder.append_plain(run, present, slot_counts)


def read_dictionary(
    page: Bytes, count: int, physical_type: Type, width: int | None, account: Account | None = None
) -> Dictionary:
    """Decode ``count`` values of a dictionary page. Their memory is reserved in ``account``.

    Raises ``CorruptFileError`` if the page is too short.
    """
    if width is not None:
        if len(page) < ((count + 7) // 8 if physical_type == Type.BOOLEAN else count * width):
            raise CorruptFileError(f"a dictionary page of {len(page)} bytes is too short for {count} values")
        if account is not None:
            account.reserve(count * width)
        values = allocate(count * width)
        decode_fixed_width(PageRun([page], [count]), physical_type, width, None, values)
        return Dictionary(count, values)
    if count * 4 > len(page):
        raise CorruptFileError(f"a dictionary page of {len(page)} bytes is too short for {count} byte arrays")
    if account is not None:
        account.reserve(count * 4)
    builder = ByteArrayBuilder(None if account is None else account.reserve)
    builder.append_plain(PageRun([page], [count]), EMPTY, np.array([count]))
    builder.pad()
    offsets, data, _ = builder.finish()
    return Dictionary(count, view(data), np.frombuffer(offsets, np.int32))


def count_trailing_bytes(page: Bytes, count: int, physical_type: Type, width: int | None, account: Account) -> int:
    """Return the number of bytes in a page after ``count`` values.

    Zeros that pad booleans to 8-byte words are not counted. If the page is too short, the result is negative for values
    of a fixed width, and byte arrays raise ``CorruptFileError``.
    """
    if physical_type == Type.BOOLEAN:
        size = (count + 7) // 8
        is_padded = size < len(page) < size + _WORD and len(page) % _WORD == 0 and not page[size:].any()
        return 0 if is_padded else len(page) - size
    if width is not None:
        return len(page) - count * width
    held = account.held
    dictionary = read_dictionary(page, count, physical_type, None, account)
    account.resize(held)
    assert dictionary.offsets is not None
    return len(page) - 4 * count - int(dictionary.offsets[count])


def encode(values: pa.Array) -> Bytes:
    """Encode a dense array of a physical Arrow type (see ``core.schema.types.leaf``)."""
    kind = values.type
    start, count = values.offset, len(values)
    buffers = values.buffers()
    if pa.types.is_boolean(kind):
        if not count:
            return EMPTY
        held = view(buffers[1])[start // 8 : (start + count + 7) // 8]
        bits = np.unpackbits(held, bitorder="little")[start % 8 : start % 8 + count]
        return np.packbits(bits, bitorder="little")
    if pa.types.is_binary(kind):
        offsets = numbers(buffers[1], np.int32, start, count + 1) if count else np.zeros(1, np.int32)
        data = view(buffers[2]) if buffers[2] is not None else EMPTY
        return view(encode_plain(data, offsets))
    width = kind.byte_width
    if not count:
        return EMPTY
    return view(buffers[1])[start * width : (start + count) * width]
