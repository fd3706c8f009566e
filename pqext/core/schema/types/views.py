"""Elements picked out of arrays of views, alone or within structs, lists and maps: Arrow has no kernels for it."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.schema.types.arrow_compute import is_view


def taken(array: pa.Array, places: NDArray[np.int64]) -> pa.Array:
    """The elements at ``places``, which lie within the array."""
    if is_view(array.type):
        return _views(array, places)
    with suppress(pa.ArrowNotImplementedError):
        return array.take(pa.array(places))
    return _in_runs(array, places)


def kept(array: pa.Array, flags: NDArray[np.bool_]) -> pa.Array:
    """The flagged elements."""
    if not is_view(array.type):
        with suppress(pa.ArrowNotImplementedError):
            return array.filter(pa.array(flags))
    return taken(array, np.flatnonzero(flags))


def _views(array: pa.Array, places: NDArray[np.int64]) -> pa.Array:
    """Views refer to bytes that stay where they are."""
    validity, views, *data = array.buffers()
    start = array.offset
    found = np.frombuffer(views, np.dtype("V16"))[start : start + len(array)][places]
    if validity is not None and array.null_count:
        bits = np.unpackbits(np.frombuffer(validity, np.uint8), count=start + len(array), bitorder="little")
        validity = pa.py_buffer(np.packbits(bits[start:][places], bitorder="little"))
    else:
        validity = None
    return pa.Array.from_buffers(array.type, len(places), [validity, pa.py_buffer(found), *data])


def _in_runs(array: pa.Array, places: NDArray[np.int64]) -> pa.Array:
    """Neighbours are copied together."""
    edges = [0, *(np.flatnonzero(np.diff(places) != 1) + 1).tolist(), len(places)]
    parts = [array[int(places[start]) : int(places[stop - 1]) + 1] for start, stop in pairwise(edges) if start < stop]
    return pa.concat_arrays(parts) if parts else array[:0]
