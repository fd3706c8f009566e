"""Text to decimals, where pyarrow's own cast wraps around."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_MOST_DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}
"""Digits that every integer of a decimal's width holds, by its bits."""


def cast_exactly(array: pa.Array, type: pa.DataType) -> pa.Array:
    """Cast as ``pyarrow.compute.cast`` does, without wrapping text around that has too many digits for a decimal.

    pyarrow casts "340282366920938463463374607431768211461", which is 2**128 + 5, to the decimal 5.

    Raises:
        pa.ArrowInvalid: If a value is not one of ``type``, or has more digits than the width of the decimal holds.
    """
    types = pa.types
    if types.is_decimal(type) and (
        types.is_string(array.type) or types.is_large_string(array.type) or types.is_string_view(array.type)
    ):
        most = _MOST_DIGITS[type.bit_width]
        texts = array.cast(pa.large_string())
        texts = texts.filter(pc.fill_null(pc.greater(pc.binary_length(texts), most), False))
        if len(texts):
            digits = pc.utf8_ltrim(pc.replace_substring_regex(texts, r"^[+-]|\.|[eE].*", ""), "0")
            row = pc.index(pc.greater(pc.utf8_length(digits), most), True).as_py()
            if row >= 0:
                raise pa.ArrowInvalid(f"{texts[row].as_py()[:100]!r} has more than {most} digits")
    return pc.cast(array, type)
