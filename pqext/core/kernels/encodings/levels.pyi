import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels import Readable

_Levels = NDArray[np.int16]
_Flags = NDArray[np.uint8]
_Counts = NDArray[np.int64]

def present_slots(
    definition: _Levels,
    entries: _Counts,
    slot_level: int,
    value_level: int,
    out: _Flags,
    slots: _Counts,
    values: _Counts,
) -> None: ...
def continue_lists(repetition: _Levels, definition: _Levels, least: _Levels) -> bool: ...
def count_rows(repetition: _Levels) -> int: ...
def find_row(repetition: _Levels, row: int) -> int: ...
def group_validity(
    repetition: _Levels,
    definition: _Levels,
    repetition_level: int,
    slot_level: int,
    value_level: int,
    out: _Flags,
) -> tuple[int, int]: ...
def list_offsets(
    repetition: _Levels,
    definition: _Levels,
    repetition_level: int,
    slot_level: int,
    list_level: int,
    element_level: int,
    offsets: NDArray[np.int32],
    valid: _Flags,
) -> tuple[int, int]: ...
def spread(target: NDArray[np.uint8], width: int, values: int, present: _Flags) -> None: ...
def compact(values: Readable, width: int, present: _Flags, out: NDArray[np.uint8]) -> None: ...
def nullable_entries(definition: _Levels, slot: NDArray[np.int64], valid: Readable, base: int) -> None: ...
def occupied(slot: NDArray[np.int64]) -> tuple[int, int, int]: ...
def entries_below(slot: NDArray[np.int64], offsets: NDArray[np.int32]) -> int: ...
def repeated_entries(
    repetition: _Levels,
    definition: _Levels,
    slot: NDArray[np.int64],
    offsets: NDArray[np.int32],
    repetition_level: int,
    out_repetition: _Levels,
    out_definition: _Levels,
    out_slot: NDArray[np.int64],
) -> int: ...
