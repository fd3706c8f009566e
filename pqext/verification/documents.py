"""Values of JSON columns: which of them are no JSON documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext import variant

_LONG = 1 << 20
"""Texts longer than this are judged once, by what parses them into variants."""

_MOST = 2_147_418_112
"""The most bytes that one text may have there."""


def not_json(texts: pa.Array) -> NDArray[np.int64]:
    """Where the texts that are no JSON (RFC 8259) are; nulls are none, nor is what only nests too deeply to tell.

    Each text is judged once, however often it stands there: few bytes of a file can repeat one millions of times.
    """
    encoded = texts.dictionary_encode()
    faults = pa.array(list(_faults(encoded.dictionary)), encoded.indices.type)
    places: NDArray[np.int64] = pc.indices_nonzero(pc.is_in(encoded.indices, faults)).to_numpy().astype(np.int64)
    return places


def _faults(texts: pa.Array) -> Iterator[int]:
    parsed = variant.parse_json(texts, on_error="null", duplicate_keys="last", max_bytes=_MOST)
    for index in pc.indices_nonzero(pc.is_null(parsed)).to_pylist():
        text = texts[index].as_py()
        if len(text) > _LONG or not _is_json(text):
            yield index


def _is_json(text: str | bytes) -> bool:
    """Numbers of any size are JSON, which variants do not hold."""
    try:
        json.loads(text, parse_constant=_refuse, parse_float=str, parse_int=str)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
