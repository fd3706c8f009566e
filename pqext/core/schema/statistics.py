"""Statistics of pages and column chunks: computed once per page, merged for the chunk, and read as bounds.

Implements ``Statistics``: minimum and maximum exclude nulls and NaN, a floating-point zero bound has the sign that
covers both zeros, long bounds of byte arrays are truncated, and types with undefined order have no bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.buffers import EMPTY, Bytes, numbers, view
from pqext.core.format.metadata import ColumnOrder, Statistics, Type
from pqext.core.format.predicate import COMPARE, Bounds, Value
from pqext.core.kernels.encode import page_statistics
from pqext.core.kernels.encode.page_boundaries import PageBoundaries
from pqext.core.schema.orders import BoundOrder, declared_order, is_float
from pqext.core.schema.types.logical import LeafType

BOUND_BYTES = 64
"""Default maximum size of minima and maxima of byte arrays. Longer bounds are truncated, and the maximum is rounded
up."""
FIXED_BOUND_BYTES = 1024
"""Maximum size of fixed-length values with bounds. Their bounds cannot be truncated, since readers expect full
length."""

Starts = NDArray[np.int64]
_Bound = bytes | None
_TEXT = frozenset({"STRING", "ENUM", "JSON"})
_NUMBERS: dict[tuple[str, int], np.dtype[Any]] = {
    ("signed", 4): np.dtype("<i4"), ("unsigned", 4): np.dtype("<u4"),
    ("signed", 8): np.dtype("<i8"), ("unsigned", 8): np.dtype("<u8"),
}


@dataclass(slots=True)
class PageExtremes:
    """Minimum and maximum of each page as PLAIN bytes, and the NaN count of each page.

    Bounds of a page without values are None.

    In the total order, a page that contains only NaN has NaN bounds; in any other order it has none. ``nan_counts`` is
    None if values cannot be NaN.
    """

    minima: Sequence[_Bound]
    maxima: Sequence[_Bound]
    nan_counts: Sequence[int] | None


def page_extremes(order: BoundOrder, physical: pa.Array, starts: Starts) -> PageExtremes:
    """Return the extremes of each page of a chunk's dense stored values. Page ``i`` begins at value ``starts[i]``."""
    leaf, pages = order.leaf, len(starts) - 1
    unknown: list[_Bound] = [None] * pages
    if not order.is_defined or (leaf.length or 0) > FIXED_BOUND_BYTES:
        return PageExtremes(unknown, unknown, None)
    if order.is_float:
        return _float_extremes(order, _fixed_width_bytes(physical, leaf.width or 0), starts)
    if leaf.physical == Type.INT96:
        return _int96_extremes(_fixed_width_bytes(physical, 12), starts)
    if leaf.physical in (Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY):
        return _byte_extremes(leaf, physical, starts)
    if leaf.physical == Type.BOOLEAN:
        values: NDArray[Any] = _unpack_booleans(physical)
    else:
        width = leaf.width or 0
        values = _fixed_width_bytes(physical, width).view(_NUMBERS[leaf.order, width])
    low, high, _ = _extremes(values, starts)
    present = starts[1:] > starts[:-1]
    return PageExtremes(_plain_bounds(low, present), _plain_bounds(high, present), None)


_CODES: dict[tuple[Type, str], str] = {
    (Type.INT32, "signed"): "i4", (Type.INT32, "unsigned"): "u4",
    (Type.INT64, "signed"): "i8", (Type.INT64, "unsigned"): "u8",
    (Type.FLOAT, "signed"): "f4", (Type.DOUBLE, "signed"): "f8",
}


def bounds_kernel(order: BoundOrder) -> str | None:
    """Return the kernel that computes page bounds: a numeric type code or "bytes"; None for other types."""
    leaf = order.leaf
    if order.kind != "type":
        return None
    if leaf.physical == Type.BYTE_ARRAY:
        return "bytes"
    return _CODES.get((leaf.physical, "signed" if order.is_float else leaf.order))


def boundary_extremes(
    order: BoundOrder, kernel: str | None, physical: pa.Array, boundaries: PageBoundaries
) -> PageExtremes:
    """Return the extremes of pages that are being written. ``kernel`` is the result of :func:`bounds_kernel`."""
    if kernel == "bytes":
        _, offsets, data = physical.buffers()
        signed = order.leaf.order == "signed"
        return PageExtremes(*page_statistics.byte_bounds(offsets, data, physical.offset, 0, signed, boundaries), None)
    if kernel is not None:
        result = page_statistics.number_bounds(physical.buffers()[1], physical.offset, kernel, boundaries)
        if result is not None:
            return PageExtremes(result[0], result[1], result[2] if kernel[0] == "f" else None)
    return page_extremes(order, physical, boundaries.starts("values"))


def _fixed_width_bytes(physical: pa.Array, width: int) -> Bytes:
    held = physical.buffers()[1]
    if not len(physical) or held is None:
        return EMPTY
    return view(held)[physical.offset * width : (physical.offset + len(physical)) * width]


def _unpack_booleans(physical: pa.Array) -> Bytes:
    held = physical.buffers()[1]
    if not len(physical) or held is None:
        return EMPTY
    start, stop = physical.offset, physical.offset + len(physical)
    return np.unpackbits(view(held)[start // 8 : (stop + 7) // 8], bitorder="little")[start % 8 :][: stop - start]


def _extremes(values: NDArray[Any], starts: Starts) -> tuple[NDArray[Any], NDArray[Any], Starts]:
    pages = len(starts) - 1
    if not values.flags.aligned:
        values = values.copy()
    low, high = np.zeros(pages, values.dtype), np.zeros(pages, values.dtype)
    nans = np.zeros(pages, np.int64)
    page_statistics.extremes(values, starts, low, high, nans)
    return low, high, nans


def _plain_bounds(values: NDArray[Any], present: NDArray[np.bool_]) -> list[_Bound]:
    raw, width = values.tobytes(), values.dtype.itemsize
    return [raw[i * width : (i + 1) * width] if here else None for i, here in enumerate(present.tolist())]


def _float_extremes(order: BoundOrder, raw: Bytes, starts: Starts) -> PageExtremes:
    kind = {2: "<f2", 4: "<f4", 8: "<f8"}[order.leaf.width or 8]
    values = raw.view(kind)
    # The kernel does not support half floats, which wider floats represent exactly.
    wide = values.astype(np.float32) if kind == "<f2" else values
    low, high, nans = _extremes(wide, starts)
    present = np.diff(starts) > nans
    if order.kind == "type":
        low, high = low.astype(kind), high.astype(kind)
        # Some readers distinguish -0 from +0, so a zero bound covers both.
        low[low == 0], high[high == 0] = -0.0, 0.0
        return PageExtremes(_plain_bounds(low, present), _plain_bounds(high, present), nans.tolist())
    integer = np.dtype(f"<i{values.itemsize}")
    keys = _total_order(values.view(integer))
    keys = keys.astype(np.int32) if kind == "<f2" else keys
    if not nans.any():
        low, high, _ = _extremes(keys, starts)
    else:
        is_nan = np.isnan(values)
        low, high = _masked_extremes(keys, ~is_nan, starts)
        nan_low, nan_high = _masked_extremes(keys, is_nan, starts)
        low, high = np.where(present, low, nan_low), np.where(present, high, nan_high)

    def to_floats(bounds: NDArray[Any]) -> NDArray[Any]:
        return _total_order(bounds.astype(integer))

    filled = starts[1:] > starts[:-1]
    return PageExtremes(_plain_bounds(to_floats(low), filled), _plain_bounds(to_floats(high), filled), nans.tolist())


def _total_order(bits: NDArray[Any]) -> NDArray[Any]:
    """Convert the bits of floats to integers that sort in the total order, or convert these integers back."""
    flipped: NDArray[Any] = bits ^ ((bits >> (8 * bits.itemsize - 1)) & np.array(np.iinfo(bits.dtype).max, bits.dtype))
    return flipped


def _masked_extremes(keys: NDArray[Any], mask: NDArray[np.bool_], starts: Starts) -> tuple[
    NDArray[Any], NDArray[Any]
]:
    before = np.concatenate([[0], np.cumsum(mask, dtype=np.int64)])
    low, high, _ = _extremes(keys[mask], before[starts])
    return low, high


def _int96_extremes(raw: Bytes, starts: Starts) -> PageExtremes:
    values = raw.view([("nanoseconds", "<i8"), ("day", "<i4")])
    bounds: tuple[list[_Bound], list[_Bound]] = ([], [])
    for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        page = values[start:stop]
        for result, day, extreme in zip(bounds, (np.min, np.max), (np.argmin, np.argmax), strict=True):
            if start == stop:
                result.append(None)
                continue
            same = page[page["day"] == day(page["day"])]
            result.append(same[extreme(same["nanoseconds"])].tobytes())
    return PageExtremes(*bounds, None)


def _byte_extremes(leaf: LeafType, physical: pa.Array, starts: Starts) -> PageExtremes:
    pages = len(starts) - 1
    low, high = np.empty(pages, np.int64), np.empty(pages, np.int64)
    width = leaf.length or 0
    if leaf.physical == Type.BYTE_ARRAY:
        held = physical.buffers()
        offsets = np.zeros(1, np.int32)
        if len(physical):
            offsets = numbers(held[1], np.int32, physical.offset, len(physical) + 1)
        data = view(held[2]) if held[2] is not None else EMPTY
        width = 0
    else:
        offsets, data = np.zeros(1, np.int32), _fixed_width_bytes(physical, width)
    page_statistics.byte_extremes(data, offsets, width, leaf.order == "signed", starts, low, high)

    def plain_bounds(positions: Starts) -> list[_Bound]:
        results: list[_Bound] = []
        for i in positions.tolist():
            at, end = (i * width, i * width + width) if width else (int(offsets[i]), int(offsets[i + 1]))
            results.append(data[at:end].tobytes() if i >= 0 else None)
        return results

    return PageExtremes(plain_bounds(low), plain_bounds(high), None)


def chunk_statistics(
    order: BoundOrder, pages: PageExtremes, null_count: int, *,
    bound_bytes: int = BOUND_BYTES, distinct_count: int | None = None,
) -> Statistics:
    """Return the statistics of a chunk, from the extremes of its pages.

    ``bound_bytes`` is the maximum size of byte array bounds. Longer bounds are truncated. ``distinct_count`` is None if
    it is unknown.
    """
    statistics = Statistics(null_count=null_count, distinct_count=distinct_count)
    if pages.nan_counts is not None:
        statistics.nan_count = sum(pages.nan_counts)
    low = _extreme(order, pages.minima, min)
    high = _extreme(order, pages.maxima, max)
    if low is None or high is None:
        return statistics
    statistics.min_value, statistics.is_min_value_exact = truncate_lower(order.leaf, low, bound_bytes)
    statistics.max_value, statistics.is_max_value_exact = truncate_upper(order.leaf, high, bound_bytes)
    return statistics


def _extreme(order: BoundOrder, bounds: Sequence[_Bound], choose: Callable[..., tuple[Any, bytes]]) -> _Bound:
    known = [bound for bound in bounds if bound is not None]
    if len(known) < 2:
        return known[0] if known else None
    if order.kind == "total":
        # NaN bounds belong to pages that contain only NaN. They are used only if all pages are like this.
        numbers = [bound for bound, value in zip(known, order.values(known), strict=True) if value == value]
        known = numbers or known
    return choose(zip(order.keys(known), known, strict=True))[1]


def truncate_lower(leaf: LeafType, bound: bytes, size: int) -> tuple[bytes, bool]:
    """Truncate a lower bound to ``size`` bytes if the type allows it; return the bound and whether it is exact."""
    if len(bound) <= size or not is_truncatable(leaf):
        return bound, True
    end = size
    while leaf.member in _TEXT and end and bound[end] & 0xC0 == 0x80:
        end -= 1
    return bound[:end], False


def truncate_upper(leaf: LeafType, bound: bytes, size: int) -> tuple[bytes, bool]:
    """Truncate an upper bound to ``size`` bytes if possible; return the bound and whether it is exact."""
    head, exact = truncate_lower(leaf, bound, size)
    if exact:
        return bound, True
    raised = _increment_text(head) if leaf.member in _TEXT else _increment_bytes(head)
    return (bound, True) if raised is None else (raised, False)


def is_truncatable(leaf: LeafType) -> bool:
    """Return whether bounds of the leaf may be truncated."""
    return leaf.physical == Type.BYTE_ARRAY and leaf.order == "unsigned"


def _increment_bytes(head: bytes) -> bytes | None:
    """Return the smallest byte string above all byte strings with prefix ``head``; None if it does not exist."""
    stripped = head.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


def _increment_text(head: bytes) -> bytes | None:
    """Return the shortest UTF-8 text above all text with prefix ``head``; None if it does not exist."""
    try:
        characters = head.decode()
    except UnicodeDecodeError:
        return _increment_bytes(head)  # readers do not validate the text of ENUM and JSON
    for end in range(len(characters), 0, -1):
        code = ord(characters[end - 1]) + 1
        code = 0xE000 if 0xD800 <= code <= 0xDFFF else code
        if code <= 0x10FFFF and len(chr(code).encode()) == len(characters[end - 1].encode()):
            return (characters[: end - 1] + chr(code)).encode()
    return None


def to_bounds(leaf_type: LeafType, statistics: Statistics | None, num_values: int, order: ColumnOrder | None) -> Bounds:
    """Convert a chunk's statistics to bounds. Minima and maxima in an unsupported order are ignored.

    Without a known ``ColumnOrder``, ``min_value`` and ``max_value`` have no meaning.
    """
    if statistics is None:
        return Bounds(num_values=num_values, has_nan=None if is_float(leaf_type) else False)
    bound_order = declared_order(leaf_type, order)
    low = high = None
    if bound_order.is_defined:
        low, high = statistics.min_value, statistics.max_value
    if low is None and high is None and leaf_type.physical in _DEPRECATED and leaf_type.order == "signed":
        # The deprecated fields were compared as signed numbers for all types.
        low, high = statistics.min, statistics.max
    stored = (statistics.min_value, statistics.max_value, statistics.min, statistics.max)
    null_count = plausible_null_count(stored, statistics.null_count, num_values)
    return bounds_of(bound_order, low, high, null_count, statistics.nan_count, num_values)


def plausible_null_count(bounds: Iterable[bytes | None], null_count: int | None, num_values: int | None) -> int | None:
    """Return ``null_count``; None if all values would be null, which contradicts ``bounds``."""
    return None if null_count == num_values and any(bounds) else null_count


_DEPRECATED = frozenset({Type.BOOLEAN, Type.INT32, Type.INT64, Type.FLOAT, Type.DOUBLE})


def bounds_of(
    order: BoundOrder, low: _Bound, high: _Bound, null_count: int | None, nan_count: int | None,
    num_values: int | None,
) -> Bounds:
    """Build the bounds of values from counts, and from a stored minimum and maximum. ``num_values`` includes nulls."""
    if low is not None and high is not None:
        minimum, maximum = order.values([low, high])
    else:
        minimum = order.value(low) if low is not None else None
        maximum = order.value(high) if high is not None else None
    return bounds_of_values(order, minimum, maximum, null_count, nan_count, num_values)


def bounds_of_values(
    order: BoundOrder, minimum: Value | None, maximum: Value | None, null_count: int | None, nan_count: int | None,
    num_values: int | None,
) -> Bounds:
    """Build bounds like :func:`bounds_of`, from a minimum and maximum in comparison form."""
    if null_count is not None and (null_count < 0 or (num_values is not None and null_count > num_values)):
        null_count = None
    has_nan: bool | None = False
    if order.is_float:
        room = None if num_values is None else num_values - (null_count or 0)
        known = nan_count is not None and nan_count >= 0 and (room is None or nan_count <= room)
        has_nan = nan_count > 0 if known and nan_count is not None else None
    if order.leaf.calendar is not None or order.leaf.int96_step != 1:
        minimum, maximum = order.leaf.convert_bounds(minimum, maximum)
    if minimum != minimum or maximum != maximum or (
        minimum is not None and maximum is not None and COMPARE[">"](minimum, maximum)
    ):
        minimum = maximum = None
    return Bounds(minimum, maximum, null_count, num_values, has_nan)
