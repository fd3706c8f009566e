"""Arrow arrays that contradict themselves, refused before their buffers are followed.

Arrow looks into arrays only when it is asked to: those that come over the C data interface, from files or from other
libraries may hold offsets, views, indices or run ends that lead out of their buffers.
"""

from __future__ import annotations

import pyarrow as pa

from pqext.core.types.mapped import mapped


def check_table(table: pa.Table) -> None:
    """Raise ``ValueError`` naming the column unless all that ``table`` refers to is there.

    Values are left to those who store them: whether strings are UTF-8, decimals within their digits and times
    within the day.
    """
    for field, column in zip(table.schema, table.columns, strict=True):
        layout = mapped(field.type, _bare)
        try:
            for chunk in column.chunks:
                _check(chunk, layout)
        except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
            raise ValueError(f"column {field.name!r} is no valid Arrow array: {error}") from None


def _check(array: pa.Array, layout: pa.DataType) -> None:
    array.validate()
    held = array.storage if isinstance(array, pa.ExtensionArray) else array
    try:
        held.view(layout).validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # Not every layout can be viewed, and views of sliced run ends are wrong.
        array.validate(full=True)


def _bare(arrow: pa.DataType) -> pa.DataType:
    """A type of the same buffers whose values are not looked at, to be checked in less time."""
    for is_kind, bare in _BARE:
        if is_kind(arrow):
            return bare
    return pa.binary(arrow.byte_width) if pa.types.is_decimal(arrow) else arrow


_BARE = (
    (pa.types.is_string, pa.binary()),
    (pa.types.is_large_string, pa.large_binary()),
    (pa.types.is_string_view, pa.binary_view()),
    (pa.types.is_time32, pa.int32()),
    (pa.types.is_time64, pa.int64()),
    (pa.types.is_date64, pa.int64()),
)
