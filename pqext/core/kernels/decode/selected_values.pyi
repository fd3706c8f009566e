import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels import Readable
from pqext.core.kernels.encodings.page_run import PageRun

_Places = NDArray[np.int64]
_Levels = NDArray[np.int16]
_Flags = NDArray[np.uint8]

def select_fixed(run: PageRun, width: int, split: bool, places: _Places, out: _Flags) -> None: ...
def select_byte_arrays(run: PageRun, places: _Places) -> Readable: ...
def select_flags(flags: _Flags, entries: _Places, present: _Flags, places: _Places) -> int: ...
def mask_positions(bits: Readable, offset: int, length: int, base: int, out: _Places) -> None: ...
def filter_fixed(values: Readable, width: int, bits: Readable, offset: int, out: _Flags) -> None: ...
def select_entries(
    repetition: _Levels,
    definition: _Levels,
    counts: _Places,
    rows: _Places,
    slot_level: int,
    value_level: int,
    kept_repetition: _Levels,
    kept_definition: _Levels,
    present: _Flags,
    places: _Places,
    page_values: _Places,
) -> tuple[int, int, int]: ...
def select_levels(
    levels: _Levels,
    counts: _Places,
    entries: _Places,
    slot_level: int,
    value_level: int,
    chosen: _Levels,
    present: _Flags,
    places: _Places,
    page_values: _Places,
) -> tuple[int, int]: ...
