"""Groups of data pages that are decoded together: their temporary memory, row counts, and splits of long pages.

Short pages can expand to very many values: runs of nulls, of one value, or of empty lists. Decoded completely, these
pages would take far more memory than the requested rows. A batch therefore decodes only the first part of the page, and
the rest becomes a page for the next batch. Each part is a page of version 2. All other pages are decoded completely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from pqext.core.base.buffers import Bytes, view
from pqext.core.base.errors import CorruptFileError, OffsetIndexError
from pqext.core.format import compression
from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.metadata import DataPageHeaderV2, Encoding, PageHeader, PageType
from pqext.core.format.thrift import read_uleb, uleb
from pqext.core.kernels.encodings import levels as level_kernel
from pqext.core.read.leaf_column import Levels
from pqext.core.read.pages.page import RawPage

GROUP_BYTES = 1 << 20
"""Size of a group of pages. Smaller groups contend for the interpreter lock, and larger groups exceed the CPU cache."""
_Runs = list[tuple[int, int]]
"""Runs of equal values as pairs of count and value."""

LONG_PAGE = 1 << 14
"""Maximum number of entries of pages that are not split."""
SPLIT_BYTES = 256
"""Maximum size of pages that are split. A larger page has too many runs to split it repeatedly."""


def scratch_bytes(group: Sequence[RawPage], width: int | None) -> int:
    """Return the temporary memory in bytes for decoding the pages of a group, like :func:`estimate_scratch_bytes`."""
    unpacked = values = 0
    for raw in group:
        unpacked += raw.header.uncompressed_page_size
        values += raw.num_values
    return estimate_scratch_bytes(unpacked, values, group[0].layout[1], width)


def estimate_scratch_bytes(unpacked_bytes: int, values: int, encoding: int, width: int | None) -> int:
    """Return the temporary memory for decoding pages: their bytes, a flag per value, indices, lengths and joined
    values.

    ``width`` is the size of a value, or None for byte arrays.
    """
    if width is None:
        return unpacked_bytes + values * 13
    return unpacked_bytes + values * (width + 13 if encoding == Encoding.DELTA_BYTE_ARRAY else 1)


def check_rows(
    run: Sequence[RawPage], repetition: Levels | None, *, trusts_header: Callable[[RawPage], bool]
) -> None:
    """Raise an error if a page does not have the declared number of rows.

    If the offset index was read, ``OffsetIndexError`` is raised if the row count differs from the index or the page
    begins within a row. Otherwise, ``CorruptFileError`` is raised if the row count of a page of lists differs from its
    header and ``trusts_header`` returns true for the page: if corruption is skipped, a wrong count would shift all
    following rows.
    """
    at = 0
    for raw in run:
        levels = None if repetition is None else repetition[at : at + raw.num_values]
        at += raw.num_values
        is_indexed = raw.indexed_rows is not None
        expected = raw.indexed_rows if is_indexed else raw.num_rows if levels is not None else None
        if expected is None:
            continue
        rows = raw.num_values if levels is None else level_kernel.count_rows(levels)
        # Some old writers split rows between pages of version 2.
        is_torn = is_indexed and levels is not None and len(levels) and levels[0]
        if (rows != expected and (is_indexed or trusts_header(raw))) or is_torn:
            source = "the offset index" if is_indexed else "its header"
            kind = OffsetIndexError if is_indexed else CorruptFileError
            raise kind(f"a page has {rows} rows, but {source} declares {expected}", offset=raw.offset)


def iter_groups(run: Sequence[RawPage]) -> Iterator[list[RawPage]]:
    """Yield groups of consecutive pages that share a layout, to be decoded together."""
    group: list[RawPage] = []
    held, shared = 0, None
    for raw in run:
        form = raw.layout
        if group and (held >= GROUP_BYTES or form != shared):
            yield group
            group, held = [], 0
        shared = form
        group.append(raw)
        held += raw.header.uncompressed_page_size
    if group:
        yield group


def split_page(page: RawPage, entries: int, codec: int, max_levels: tuple[int, int]) -> tuple[RawPage, RawPage] | None:
    """Split a page after ``entries`` entries. Return None if the page must be decoded completely.

    ``max_levels`` are the maximum repetition and definition levels. A corrupt page is not split, so its decoder raises
    the error.
    """
    if page.header.uncompressed_page_size > SPLIT_BYTES or page.indexed_rows is not None:
        return None
    try:
        repetition, definition, encoding, values = _split_body(page, codec, max_levels)
        if sum(count for count, _ in definition) < page.num_values:
            return None
        defined = sum(count for count, level in definition if level == max_levels[1])
        width, runs = _value_runs(encoding, values, defined)
    except (ValueError, IndexError):
        return None
    parts = []
    for count in (entries, page.num_values - entries):
        levels, definition = _split_runs(definition, count)
        repeats, repetition = _split_runs(repetition, count)
        used, runs = _split_runs(runs, sum(number for number, level in levels if level == max_levels[1]))
        parts.append(_build_page(page, count, encoding, max_levels, (repeats, levels, used), width))
    return parts[0], parts[1]


def _split_body(page: RawPage, codec: int, max_levels: tuple[int, int]) -> tuple[_Runs, _Runs, int, Bytes]:
    """Return the repetition levels and the definition levels of a page as runs, and the encoding and bytes of its
    values.

    Raises ``ValueError`` for an unsupported layout.
    """
    body, size, count = page.plaintext(), page.header.uncompressed_page_size, page.num_values
    second, first = page.header.data_page_header_v2, page.header.data_page_header
    levels: list[_Runs] = []
    if page.header.type == PageType.DATA_PAGE_V2:
        assert second is not None
        encoding: int = second.encoding
        for length, most in zip(
            (second.repetition_levels_byte_length, second.definition_levels_byte_length), max_levels, strict=True
        ):
            levels.append(_parse_hybrid_runs(body[:length], most.bit_length(), count) if most else [(count, 0)])
            body = body[length:]
            size -= length
        if second.is_compressed is not False and size:
            body = compression.decompress(codec, body, size)
        return levels[0], levels[1], encoding, body
    assert first is not None
    body = compression.decompress(codec, body, size)
    encodings = (first.repetition_level_encoding, first.definition_level_encoding)
    for most, level_encoding in zip(max_levels, encodings, strict=True):
        if not most:
            levels.append([(count, 0)])
            continue
        if level_encoding != Encoding.RLE:
            raise ValueError("the levels are not RLE-encoded")
        length = int.from_bytes(body[:4], "little")
        levels.append(_parse_hybrid_runs(body[4 : 4 + length], most.bit_length(), count))
        body = body[4 + length :]
    return levels[0], levels[1], first.encoding, body


def _value_runs(encoding: int, values: Bytes, count: int) -> tuple[int, _Runs]:
    """Return the bit width and the runs of run-length encoded values, such as dictionary indices.

    Raises ``ValueError`` if the values are not run-length encoded.
    """
    if not count:
        return 0, []
    if encoding in DICTIONARY_ENCODINGS:
        width = int(values[0])
        if len(values) == 1 and not width:
            return 0, [(count, 0)]
        return width, _parse_hybrid_runs(values[1:], width, count)
    if encoding == Encoding.RLE:
        return 1, _parse_hybrid_runs(values[4 : 4 + int.from_bytes(values[:4], "little")], 1, count)
    raise ValueError("the values are not RLE-encoded")


def _parse_hybrid_runs(data: Bytes, width: int, count: int) -> _Runs:
    """Parse the first ``count`` values of the RLE/bit-packing hybrid into runs.

    Raises ``ValueError`` if there are fewer values.
    """
    raw, at, runs = bytes(data), 0, []
    if width > 32:
        raise ValueError(f"the bit width {width} of run-length data exceeds 32")
    while count:
        header, at = read_uleb(raw, at)
        number = header >> 1
        if header & 1:
            packed = int.from_bytes(raw[at : at + number * width], "little")
            if number * width > len(raw) - at or not width:
                raise ValueError("run-length data ends early")
            at += number * width
            used = min(number * 8, count)
            runs += [(1, packed >> (place * width) & ((1 << width) - 1)) for place in range(used)]
        else:
            size = (width + 7) // 8
            if size > len(raw) - at or not number:
                raise ValueError("run-length data ends early")
            used = min(number, count)
            runs.append((used, int.from_bytes(raw[at : at + size], "little")))
            at += size
        count -= used
    return runs


def _split_runs(runs: _Runs, count: int) -> tuple[_Runs, _Runs]:
    """Split runs after ``count`` values; return the runs of both parts."""
    first: _Runs = []
    for place, (number, value) in enumerate(runs):
        if number > count:
            return ([*first, (count, value)] if count else first), [(number - count, value), *runs[place + 1 :]]
        first.append((number, value))
        count -= number
    return first, []


def _build_page(
    page: RawPage, count: int, encoding: int, highest: tuple[int, int], runs: tuple[_Runs, _Runs, _Runs], width: int
) -> RawPage:
    repetition = _encode_runs(runs[0], highest[0].bit_length()) if highest[0] else b""
    definition = _encode_runs(runs[1], highest[1].bit_length()) if highest[1] else b""
    values = _encode_runs(runs[2], width)
    if encoding == Encoding.RLE:
        values = len(values).to_bytes(4, "little") + values
    elif encoding in DICTIONARY_ENCODINGS:
        values = bytes([width]) + values
    body = repetition + definition + values
    rows = sum(number for number, level in runs[0] if not level) if highest[0] else count
    header = PageHeader(
        type=PageType.DATA_PAGE_V2, uncompressed_page_size=len(body), compressed_page_size=len(body),
        data_page_header_v2=DataPageHeaderV2(
            num_values=count, num_nulls=count - sum(number for number, _ in runs[2]), num_rows=rows, encoding=encoding,
            definition_levels_byte_length=len(definition), repetition_levels_byte_length=len(repetition),
            is_compressed=False,
        ),
    )  # fmt: skip
    return RawPage(header, count, view(body), page.offset)


def _encode_runs(runs: Iterable[tuple[int, int]], width: int) -> bytes:
    size = (width + 7) // 8
    return b"".join(uleb(count << 1) + value.to_bytes(size, "little") for count, value in runs)
