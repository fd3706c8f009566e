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
    layouts: dict[pa.DataType, pa.DataType] = {}
    for place, column in enumerate(table.columns):
        kind = column.type
        try:
            if kind.id in _FLAT:
                for chunk in column.chunks:
                    chunk.validate(full=chunk.buffers()[0] is not None)  # nothing to follow, but nulls to count
                continue
            # Extension types made in Python have no hash.
            known = not isinstance(kind, pa.BaseExtensionType)
            layout = _TEXT.get(kind.id) or (layouts.get(kind) if known else None)
            if layout is None:
                layout = mapped(kind, _bare)
                if known:
                    layouts[kind] = layout
            for chunk in column.chunks:
                _check(chunk, layout)
        except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
            name = table.schema.field(place).name
            raise ValueError(f"column {name!r} is no valid Arrow array: {error}") from None


_FLAT = frozenset(
    kind.id
    for kind in (
        pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
        pa.float16(), pa.float32(), pa.float64(),
    )
)
_TEXT = {pa.string().id: pa.binary(), pa.binary().id: pa.binary()}


def _check(array: pa.Array, layout: pa.DataType) -> None:
    array.validate()
    held = array.storage if isinstance(array, pa.ExtensionArray) else array
    try:
        held.view(layout).validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # Not every layout can be viewed, and views of sliced run ends are wrong.
        _check_visible(held)


def _check_visible(array: pa.Array) -> None:
    """As Arrow's full validation, but what null structs hide counts for nothing.

    pyarrow itself puts indices into empty dictionaries there.
    """
    kind = array.type
    if pa.types.is_struct(kind):
        for child in array.flatten():
            _check_visible(child)
    elif (shell := _shell(kind)) is not None:
        buffers = array.buffers()[: shell.num_buffers]
        hollow = [pa.nulls(len(array.values))]
        pa.Array.from_buffers(shell, len(array), buffers, array.null_count, array.offset, hollow).validate(full=True)
        _check_visible(array.values)
    elif isinstance(array, pa.ExtensionArray):
        _check_visible(array.storage)
    else:
        array.validate(full=True)


def _shell(kind: pa.DataType) -> pa.DataType | None:
    """The list type that has the same buffers of its own."""
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return pa.list_(pa.null())
    if pa.types.is_large_list(kind):
        return pa.large_list(pa.null())
    if pa.types.is_list_view(kind):
        return pa.list_view(pa.null())
    if pa.types.is_large_list_view(kind):
        return pa.large_list_view(pa.null())
    return pa.list_(pa.null(), kind.list_size) if pa.types.is_fixed_size_list(kind) else None


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
